/* libfabric: the copy that the loader takes and every other, its providers, domains and variables.
 *
 * The files are inspected here, the library is asked in children of its own, side by side: once in
 * the job's environment as it is, and, when FI_PROVIDER filters, once without the filter. On a
 * capture the answers come from SYSROOT/.shakedown/facts.json. */
#include "probes/base/registry.h"

#include "core/host/hostcall.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/fabric/libfabric_ask.h"
#include "probes/fabric/libfabric_dl.h"
#include "probes/fabric/libfabric_file.h"
#include "probes/library/elfdeps.h"
#include "probes/library/libcopies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fi_getinfo() opens every device of the node: 0.3 s without any, seconds with 32 NICs and GPUs. */
enum {
    FABRIC_ASK_MS = 8000,
    FABRIC_PROBE_MS = 12000,
    FABRIC_MAX_LOG_LINES = 40,
    FABRIC_MAX_LOG_LINE = 300
};

static const char *const fabric_soname = "libfabric.so.1";

static const char *const fabric_dirs[] = {
    "/opt/amazon/efa/lib*",       "/opt/amazon/efa/lib*/*",
    "/opt/cray/libfabric/*/lib*", "/opt/cray/pe/lib64",
    "/opt/libfabric*/lib*",       "/usr/local/lib*",
    "/usr/local/libfabric*/lib*", NULL,
};

struct fabric {
    struct shk_probe_context *ctx;
    int rc; /* first failure of a write */
};

static void fabric_note(struct fabric *f, int rc)
{
    if (rc && !f->rc)
        f->rc = rc;
}

static void fabric_put(struct fabric *f, const char *key, json_t *value, const char *source)
{
    fabric_note(f, shk_facts_present(f->ctx->facts, key, value, NULL, source));
}

/* Keys that only the library itself can fill. */
static const char *const fabric_asked[] = {
    "fabric.version",        "fabric.providers", "fabric.domains",
    "fabric.core_providers", "fabric.params",
};
enum { FABRIC_ASKED = sizeof fabric_asked / sizeof fabric_asked[0] };

static void fabric_all_failed(struct fabric *f, const char *reason, bool absent)
{
    struct shk_fact fact;
    for (int i = 0; i < FABRIC_ASKED; i++) {
        if (shk_facts_get(f->ctx->facts, fabric_asked[i], &fact))
            continue;
        if (absent)
            fabric_note(
                f, shk_facts_absent(f->ctx->facts, fabric_asked[i], fabric_soname, "%s", reason));
        else
            fabric_note(
                f, shk_facts_failed(f->ctx->facts, fabric_asked[i], fabric_soname, "%s", reason));
    }
}

/* Appends names that are not there yet. "hmem:cuda" is no provider. */
static void fabric_merge(json_t *names, const json_t *more, const char *member)
{
    size_t i, k;
    json_t *row, *have;
    json_array_foreach(more, i, row)
    {
        json_t *name = member ? json_object_get(row, member) : row;
        bool seen = !json_is_string(name) || strchr(json_string_value(name), ':');
        json_array_foreach(names, k, have)
        {
            seen = seen || json_equal(have, name);
        }
        if (!seen)
            json_array_append(names, name);
    }
}

static json_t *fabric_distinct(const json_t *rows, const char *member)
{
    json_t *names = json_array();
    fabric_merge(names, rows, member);
    return names;
}

/* Members of the answer that become facts as they are. */
static const struct {
    const char *member, *key;
    json_type type;
} fabric_members[] = {
    {.member = "version", .key = "fabric.version", .type = JSON_STRING},
    {.member = "api", .key = "fabric.api", .type = JSON_STRING},
    {.member = "domains", .key = "fabric.domains", .type = JSON_ARRAY},
    {.member = "domains_left_out", .key = "fabric.domains_left_out", .type = JSON_INTEGER},
    {.member = "params", .key = "fabric.params", .type = JSON_ARRAY},
    {.member = "hints", .key = "fabric.hints", .type = JSON_ARRAY},
    {.member = "getinfo", .key = "fabric.getinfo", .type = JSON_OBJECT},
    {.member = "open_ms", .key = "fabric.open_ms", .type = JSON_REAL},
    {.member = "getinfo_ms", .key = "fabric.getinfo_ms", .type = JSON_REAL},
};

/* What the library lists, what it is linked for, and what lies beside it as a plug-in: efa and
 * verbs are not listed by a library that has them when the node lacks the device. */
static json_t *fabric_core_providers(const struct fabric *f, const json_t *listed, const char *path)
{
    json_t *names = json_array(), *copy;
    size_t i;
    fabric_merge(names, listed, "name");
    json_t *copies = shk_facts_get_array(f->ctx->facts, "fabric.copies");
    json_array_foreach(copies, i, copy)
    {
        const char *of = json_string_value(json_object_get(copy, "path"));
        if (of && path && strcmp(of, path) == 0)
            fabric_merge(names, json_object_get(copy, "links"), NULL);
    }
    json_t *dl_providers = shk_facts_get_array(f->ctx->facts, "fabric.dl_providers");
    json_array_foreach(dl_providers, i, copy)
    {
        json_t *usable =
            json_is_null(json_object_get(copy, "problem")) ? json_pack("[O]", copy) : NULL;
        fabric_merge(names, usable, "name");
        json_decref(usable);
    }
    return names;
}

static void fabric_write_answer(struct fabric *f, const json_t *answer)
{
    const char *path = json_string_value(json_object_get(answer, "path"));
    const char *source = path ? path : fabric_soname;
    if (path)
        fabric_put(f, "fabric.path", json_string(path), "link map");
    for (size_t i = 0; i < sizeof fabric_members / sizeof fabric_members[0]; i++) {
        json_t *value = json_object_get(answer, fabric_members[i].member);
        if (value && json_typeof(value) == fabric_members[i].type)
            fabric_put(f, fabric_members[i].key, json_incref(value), source);
    }
    json_t *core = json_object_get(answer, "core_providers");
    if (json_is_array(core))
        fabric_put(f, "fabric.core_providers", fabric_core_providers(f, core, path), source);
    json_t *domains = json_object_get(answer, "domains");
    if (json_is_array(domains))
        fabric_put(f, "fabric.providers", fabric_distinct(domains, "provider"), source);
}

static void fabric_write_unfiltered(struct fabric *f, const json_t *answer, const char *reason,
                                    const char *source)
{
    json_t *core = json_object_get(answer, "core_providers");
    json_t *domains = json_object_get(answer, "domains");
    if (!json_is_array(core) || !json_is_array(domains)) {
        fabric_note(f, shk_facts_failed(f->ctx->facts, "fabric.unfiltered", source, "%s",
                                        reason && *reason ? reason : "no answer"));
        return;
    }
    json_t *hints = json_object_get(answer, "hints");
    json_t *value =
        json_pack("{s:o, s:o, s:O}", "core_providers", fabric_distinct(core, "name"), "providers",
                  fabric_distinct(domains, "provider"), "domains", domains);
    if (value && json_is_array(hints))
        json_object_set(value, "hints", hints);
    fabric_put(f, "fabric.unfiltered", value, source);
}

/* A line without the "libfabric:<pid>:<time>::" in front, which makes every line different. */
static const char *fabric_log_line(const char *line, size_t *len)
{
    static const char head[] = "libfabric:";
    size_t skip = *len > sizeof head && strncmp(line, head, sizeof head - 1) == 0
                      ? sizeof head - 1 + strspn(line + sizeof head - 1, "0123456789:")
                      : 0;
    *len -= skip;
    if (*len > FABRIC_MAX_LOG_LINE)
        *len = FABRIC_MAX_LOG_LINE;
    return line + skip;
}

static void fabric_write_log(struct fabric *f, const char *output)
{
    json_t *lines = json_array(), *have;
    for (const char *p = output; p && *p && json_array_size(lines) < FABRIC_MAX_LOG_LINES;) {
        size_t n = strcspn(p, "\n"), len = n, i;
        const char *text = fabric_log_line(p, &len);
        json_t *line = shk_json_text(text, len);
        bool seen = !len;
        json_array_foreach(lines, i, have)
        {
            seen = seen || json_equal(have, line);
        }
        if (!seen)
            json_array_append(lines, line);
        json_decref(line);
        p += n + (p[n] == '\n');
    }
    fabric_put(f, "fabric.log", lines, fabric_soname);
}

/* Providers worth the widening hints: those that GPU collectives use, and what the user names. */
enum { FABRIC_MAX_WIDEN = 16 };

struct fabric_widen {
    const char *names[FABRIC_MAX_WIDEN + 1];
    size_t count;
    char *owned; /* copy of FI_PROVIDER that names point into */
};

static void fabric_widen_add(struct fabric_widen *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++) {
        if (strcasecmp(w->names[i], name) == 0)
            return;
    }
    if (*name && w->count < FABRIC_MAX_WIDEN)
        w->names[w->count++] = name;
}

static void fabric_widen_fill(struct fabric_widen *w, const char *filter)
{
    static const char *const usual[] = {"efa", "cxi", "verbs"};
    char *save = NULL;
    for (size_t i = 0; i < 3; i++)
        fabric_widen_add(w, usual[i]);
    w->owned = filter && *filter != '^' ? strdup(filter) : NULL;
    for (char *t = w->owned ? strtok_r(w->owned, ",", &save) : NULL; t;
         t = strtok_r(NULL, ",", &save))
        fabric_widen_add(w, t);
}

static bool fabric_has_path(const struct fabric *f)
{
    struct shk_fact fact;
    return shk_facts_get(f->ctx->facts, "fabric.path", &fact) || getenv(SHK_LIBFABRIC_OVERRIDE);
}

/* A library that dies while it is loaded is known by its bare name only: say which file that is. */
static void fabric_name_file(const struct fabric *f, struct shk_isolate_result *result)
{
    const char *path = shk_facts_get_text(f->ctx->facts, "fabric.path");
    if (path && result->outcome != SHK_CHILD_FAILED && !strstr(result->error.text, path)) {
        struct shk_error first = result->error;
        shk_error_set(&result->error, EIO, "%s (%s)", first.text, path);
    }
}

/* The library is asked while its files are inspected: once as it is, and once without the filter.
 */
struct fabric_asking {
    struct fabric_widen widen;
    struct shk_libfabric_question as_is, plain;
    struct shk_isolate_pending *pending[2];
};

static int fabric_ask_begin(struct fabric *f, const char *filter, struct fabric_asking *asking,
                            struct shk_error *err)
{
    fabric_widen_fill(&asking->widen, filter);
    asking->as_is =
        (struct shk_libfabric_question){.no_gpu = f->ctx->quick, .widen = asking->widen.names};
    asking->plain = asking->as_is;
    asking->plain.unfiltered = true;
    const struct shk_isolate_job jobs[] = {
        {.name = "libfabric",
         .fn = shk_libfabric_ask,
         .arg = &asking->as_is,
         .deadline_ms = FABRIC_ASK_MS},
        {.name = "libfabric without the filter",
         .fn = shk_libfabric_ask,
         .arg = &asking->plain,
         .deadline_ms = FABRIC_ASK_MS},
    };
    int rc = shk_isolate_begin(&asking->pending[0], &jobs[0], err);
    return rc || !filter ? rc : shk_isolate_begin(&asking->pending[1], &jobs[1], err);
}

static void fabric_ask_wait(struct fabric_asking *asking, struct shk_isolate_result *results)
{
    for (int i = 0; i < 2; i++)
        if (asking->pending[i])
            shk_isolate_end(asking->pending[i], &results[i]);
    free(asking->widen.owned);
}

static int fabric_ask_end(struct fabric *f, struct shk_isolate_result *results, bool filter,
                          struct shk_error *err)
{
    int rc = 0;
    if (results[0].result)
        fabric_write_answer(f, results[0].result);
    if (results[0].outcome == SHK_CHILD_STARVED) {
        fabric_all_failed(f, results[0].error.text, false);
        rc = shk_error_set(err, EAGAIN, "%s", results[0].error.text);
    } else if (results[0].outcome != SHK_CHILD_OK) {
        fabric_name_file(f, &results[0]);
        fabric_put(f, "fabric.problem",
                   json_pack("{s:s, s:s, s:s, s:s}", "outcome",
                             shk_isolate_outcome_name(results[0].outcome), "text",
                             results[0].error.text, "library", results[0].library, "call",
                             results[0].call),
                   fabric_soname);
        if (results[0].outcome != SHK_CHILD_FAILED || fabric_has_path(f))
            fabric_all_failed(f, results[0].error.text, false);
    }
    fabric_write_log(f, results[0].output);
    if (filter)
        fabric_write_unfiltered(f, results[1].result, results[1].error.text,
                                shk_variable("provider-filter"));
    return rc;
}

static void fabric_write_env(struct fabric *f, const char *filter, const char *provider_path)
{
    fabric_note(
        f, shk_facts_text(f->ctx->facts, "fabric.filter", filter, shk_variable("provider-filter")));
    fabric_note(f, shk_facts_text(f->ctx->facts, "fabric.provider_path", provider_path,
                                  shk_variable("code-path.provider")));
}

/* A libfabric whose own dependencies are not met does not load at all. */
static int fabric_dependencies(struct fabric *f, const struct shk_ldsearch *search,
                               const struct shk_libcopy *copy, struct shk_error *err)
{
    json_t *needed = NULL, *problems = NULL;
    int rc = copy->elf
                 ? shk_elfdeps_walk(search, copy->elf, copy->path, NULL, &needed, &problems, err)
                 : 0;
    if (rc || !copy->elf)
        return rc;
    fabric_put(f, "fabric.needed", needed, copy->path);
    fabric_put(f, "fabric.problems", problems, copy->path);
    return 0;
}

static int fabric_inspect(struct fabric *f, const struct shk_ldsearch *search,
                          struct shk_libcopies *copies, struct shk_error *err)
{
    int rc = shk_libcopies_find(copies, search, fabric_soname, fabric_dirs, err);
    if (rc)
        return rc;
    json_t *rows = json_array();
    for (size_t i = 0; i < copies->count; i++)
        json_array_append_new(rows, shk_libfabric_copy_json(&copies->list[i]));
    if (!copies->count && !shk_ldsearch_complete(search)) {
        json_decref(rows);
        fabric_note(f, shk_facts_failed(f->ctx->facts, "fabric.copies", fabric_soname,
                                        "the capture holds no libfabric"));
    } else {
        fabric_put(f, "fabric.copies", rows, fabric_soname);
    }
    for (size_t i = 0; i < copies->count; i++) {
        if (copies->list[i].loader) {
            const char *path = copies->list[i].path;
            fabric_put(f, "fabric.path", shk_json_text(path, strlen(path)), copies->list[i].via);
            return fabric_dependencies(f, search, &copies->list[i], err);
        }
    }
    return 0;
}

/* After the library was asked, or the capture: what nobody knows by now is not there. */
static void fabric_conclude(struct fabric *f, const struct shk_ldsearch *search)
{
    struct shk_fact fact;
    bool complete = shk_ldsearch_complete(search);
    if (shk_facts_get(f->ctx->facts, "fabric.path", &fact)) {
        fabric_all_failed(f, "a captured library is not executed", false);
        return;
    }
    char *places = shk_ldsearch_places(search);
    if (complete)
        fabric_note(f, shk_facts_absent(f->ctx->facts, "fabric.path", fabric_soname,
                                        "not found in %s", places ? places : "any place"));
    else
        fabric_note(f, shk_facts_failed(f->ctx->facts, "fabric.path", fabric_soname,
                                        "the capture holds no libfabric"));
    fabric_all_failed(f, complete ? "libfabric.so.1 not found" : "the capture holds no libfabric",
                      complete);
    free(places);
}

static void fabric_write_files(struct fabric *f, const struct shk_ldsearch *search,
                               const char *filter, const char *provider_path,
                               const struct shk_libcopies *copies)
{
    fabric_write_env(f, filter, provider_path);
    fabric_put(f, "fabric.dl_providers",
               shk_libfabric_dl(search, provider_path, shk_libcopies_chosen(copies)),
               provider_path ? shk_variable("code-path.provider") : fabric_soname);
}

static int fabric_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct fabric f = {.ctx = ctx};
    struct fabric_asking asking = {.pending = {NULL, NULL}};
    struct shk_isolate_result results[2] = {{.outcome = SHK_CHILD_NOT_RUN},
                                            {.outcome = SHK_CHILD_NOT_RUN}};
    struct shk_ldsearch *search = NULL;
    struct shk_libcopies copies = {0};
    const char *filter = shk_host_getenv(ctx->host, shk_variable("provider-filter"));
    const char *provider_path = shk_host_getenv(ctx->host, shk_variable("code-path.provider"));
    filter = filter && *filter ? filter : NULL;
    /* the loader is asked even when we find nothing: it may know better (hwcaps, preloads) */
    int rc = ctx->executes ? fabric_ask_begin(&f, filter, &asking, err) : 0;
    if (!rc)
        rc = shk_ldsearch_create(&search, ctx->host, err);
    if (!rc)
        rc = fabric_inspect(&f, search, &copies, err);
    if (!rc)
        fabric_write_files(&f, search, filter, provider_path, &copies);
    fabric_ask_wait(&asking, results);
    if (rc)
        goto out;
    if (ctx->executes)
        rc = fabric_ask_end(&f, results, filter != NULL, err);
    fabric_conclude(&f, search);
    if (!rc && f.rc)
        rc = shk_error_sys(err, -f.rc, "facts of libfabric");
out:
    for (int i = 0; i < 2; i++)
        shk_isolate_result_clear(&results[i]);
    shk_libcopies_free(&copies);
    shk_ldsearch_destroy(search);
    return rc;
}

static const char *const fabric_provides[] = {
    "fabric.path",
    "fabric.version",
    "fabric.copies",
    "fabric.providers",
    "fabric.core_providers",
    "fabric.domains",
    "fabric.params",
    "fabric.",
    NULL,
};

const struct shk_probe shk_probe_libfabric = {
    .name = "libfabric",
    .phase = SHK_PHASE_EARLY,
    .doc = "libfabric: copies, version, providers, domains, variables it reads",
    .provides = fabric_provides,
    .deadline_ms = FABRIC_PROBE_MS,
    .apart = true,
    .run = fabric_run,
};
