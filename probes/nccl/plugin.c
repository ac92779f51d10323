/* Plugins that the installed NCCL or RCCL would take, found in its own search order, inspected
 * without executing, and, on a live host, tried step by step in children. */
#include "probes/base/registry.h"

#include "core/host/hostcall.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/library/libcopies.h"
#include "probes/nccl/plugin_try.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLUGIN_MAX = 64, PLUGIN_PROBE_MS = 60000 };

/* Where packages put plugins that nothing asks for by default: worth a hint, not a candidate. */
static const char *const plugin_dirs[] = {
    "/opt/amazon/ofi-nccl/lib*",
    "/opt/amazon/ofi-nccl/lib*/*",
    "/opt/amazon/aws-ofi-nccl/lib*",
    "/opt/aws-ofi-nccl*/lib*",
    "/opt/aws-ofi-rccl*/lib*",
    "/usr/local/lib*",
    "/opt/nccl-rdma-sharp-plugins/lib",
    "/opt/hpcx/nccl_rdma_sharp_plugin/lib",
    NULL,
};
static const char *const plugin_patterns[] = {"libnccl-net*.so", "librccl-net*.so"};

struct owner {
    enum shk_nccl_owner id;
    const char *prefix; /* of its facts */
    bool present;
    const char *version;
    struct shk_elf *elf;
    struct shk_ldsearch_asker asker;
    json_t *names; /* plugin file names that it knows; borrowed, NULL unknown */
    struct shk_nccl_abis accepts;
    bool accepts_known;
};

struct plugin_run {
    struct shk_probe_context *ctx;
    struct shk_ldsearch *search;
    struct owner owners[2];
    struct shk_plugin list[PLUGIN_MAX];
    size_t count;
    json_t *requests; /* [{kind, owner, variable, value, source, none, program, skipped}] */
    struct shk_error *err;
    int rc;
};

static const char *plugin_fact_text(const struct plugin_run *run, const char *prefix,
                                    const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", prefix, name);
    return run->ctx->known ? shk_facts_get_text(run->ctx->known, key) : NULL;
}

static json_t *plugin_fact_array(const struct plugin_run *run, const char *prefix, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", prefix, name);
    return run->ctx->known ? shk_facts_get_array(run->ctx->known, key) : NULL;
}

static void plugin_owner_abis(struct plugin_run *run, struct owner *owner)
{
    for (int k = 0; k < SHK_ABI_COUNT; k++) {
        char name[32];
        size_t i;
        json_t *v, *list;
        snprintf(name, sizeof name, "%s_abi", shk_nccl_abi_name((enum shk_nccl_abi)k));
        list = plugin_fact_array(run, owner->prefix, name);
        owner->accepts_known |= list != NULL;
        json_array_foreach(list, i, v)
        {
            json_int_t n = json_integer_value(v);
            if (n > 0 && n < 64)
                owner->accepts.set[k] |= 1ull << n;
        }
    }
}

static void plugin_owner_open(struct plugin_run *run, struct owner *owner)
{
    const char *path = plugin_fact_text(run, owner->prefix, "path");
    owner->present = path != NULL;
    owner->version = plugin_fact_text(run, owner->prefix, "version");
    owner->names = plugin_fact_array(run, owner->prefix, "plugin_names");
    if (path && shk_elf_open(&owner->elf, run->ctx->host, path, NULL) == 0)
        owner->asker = (struct shk_ldsearch_asker){.elf = owner->elf, .path = path};
    plugin_owner_abis(run, owner);
}

/* The variable as the library would see it: the environment, else its configuration file. */
static const char *plugin_value(struct plugin_run *run, const char *variable, const char **source_p)
{
    char key[96];
    struct shk_fact fact;
    const char *value = shk_host_getenv(run->ctx->host, variable);
    *source_p = "environment";
    if (value)
        return value;
    snprintf(key, sizeof key, "env.file.%s", variable);
    if (!run->ctx->known || !shk_facts_get(run->ctx->known, key, &fact) || !fact.value)
        return NULL;
    *source_p = fact.source;
    return json_string_value(fact.value);
}

static bool plugin_listed(const struct plugin_run *run, const char *name, enum shk_nccl_abi kind)
{
    for (size_t i = 0; i < run->count; i++) {
        const char *path = json_string_value(json_object_get(run->list[i].row, "path"));
        if (run->list[i].kind == kind &&
            (strcmp(run->list[i].name, name) == 0 || (path && strcmp(path, name) == 0)))
            return true;
    }
    return false;
}

static void plugin_add(struct plugin_run *run, const struct owner *owner, enum shk_nccl_abi kind,
                       const char *name, const char *reason, bool considered)
{
    if (run->rc || run->count == PLUGIN_MAX || strlen(name) >= sizeof run->list[0].name)
        return;
    struct shk_plugin *p = &run->list[run->count];
    const struct shk_plugin_scene scene = {
        .search = run->search,
        .loader = owner->elf ? &owner->asker : NULL,
        .accepts = owner->accepts_known ? &owner->accepts : NULL,
    };
    *p = (struct shk_plugin){.owner = owner->id, .kind = kind, .considered = considered};
    snprintf(p->name, sizeof p->name, "%s", name);
    run->rc = shk_plugin_inspect(p, &scene, reason, run->err);
    /* a default that is not there is the usual case for all kinds but the net */
    if (!run->rc && kind != SHK_ABI_NET && !p->found && strncmp(reason, "default", 7) == 0)
        json_decref(p->row);
    else
        run->count++;
}

static void plugin_request(struct plugin_run *run, const struct owner *owner,
                           enum shk_nccl_abi kind)
{
    const char *source, *variable = shk_nccl_plugin_variable(kind);
    const char *value = plugin_value(run, variable, &source);
    struct shk_nccl_names *names = calloc(1, sizeof *names);
    if (!names) {
        run->rc = shk_error_sys(run->err, ENOMEM, "%s", variable);
        return;
    }
    shk_nccl_search(names, &(struct shk_nccl_request){.owner = owner->id,
                                                      .version = owner->version,
                                                      .kind = kind,
                                                      .value = value,
                                                      .names = owner->names});
    if (value) {
        json_t *row = json_pack("{s:s, s:s, s:s, s:o, s:o, s:b, s:b, s:b, s:I}", "kind",
                                shk_nccl_abi_name(kind), "owner", owner->prefix, "variable",
                                variable, "value", shk_json_text(value, strlen(value)), "source",
                                shk_json_text(source, strlen(source)), "none", names->none,
                                "program", names->program, "unread", names->unread, "skipped",
                                (json_int_t)names->skipped);
        json_array_append_new(run->requests, row);
    }
    for (size_t i = 0; i < names->count; i++)
        plugin_add(run, owner, kind, names->list[i].name, names->list[i].reason, true);
    free(names);
}

static int plugin_extra(const char *path, void *arg)
{
    struct plugin_run *run = arg;
    const char *base = strrchr(path, '/');
    bool rccl = base && strncmp(base + 1, "librccl", 7) == 0;
    const struct owner *owner = &run->owners[rccl ? 1 : 0];
    if (base && !plugin_listed(run, path, SHK_ABI_NET))
        plugin_add(run, owner, SHK_ABI_NET, path, "is there, but nothing asks for it", false);
    return run->rc;
}

static void plugin_extras_in(struct plugin_run *run, const char *dir)
{
    for (size_t i = 0; i < 2; i++) {
        char *pattern = shk_strf("%s/%s", dir, plugin_patterns[i]);
        if (pattern)
            shk_host_glob(run->ctx->host, pattern, plugin_extra, run);
        free(pattern);
    }
}

static void plugin_extras(struct plugin_run *run)
{
    const char *path = shk_host_getenv(run->ctx->host, shk_variable("loader-path"));
    for (const char *const *dir = plugin_dirs; *dir; dir++)
        plugin_extras_in(run, *dir);
    for (const char *p = path; p && *p;) {
        size_t n = strcspn(p, ":;");
        char *dir = *p == '/' ? shk_strf("%.*s", (int)n, p) : NULL;
        if (dir)
            plugin_extras_in(run, dir);
        free(dir);
        p += n + (p[n] != '\0');
    }
}

/* Died or did not return: so would the rank, and no later plugin has its turn. */
static bool plugin_fatal(const json_t *row)
{
    static const char *const steps[] = {"load", "init", "devices"};
    static const char *const outcomes[] = {"crashed", "exited", "timeout", "memory"};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const char *outcome = shk_gather_get(json_object_get(row, steps[i]), "outcome");
        for (size_t k = 0; outcome && k < sizeof outcomes / sizeof outcomes[0]; k++) {
            if (strcmp(outcome, outcomes[k]) == 0)
                return true;
        }
    }
    return false;
}

/* NCCL takes a plugin that loads, starts and has a device; as far as that was tried. */
static bool plugin_works(const json_t *row)
{
    const json_t *load = json_object_get(row, "load"), *init = json_object_get(row, "init");
    const json_t *devices = json_object_get(row, "devices");
    bool loads = load ? json_is_true(json_object_get(load, "ok"))
                      : json_object_get(row, "problems") &&
                            !json_array_size(json_object_get(row, "problems"));
    return loads && (!init || json_is_true(json_object_get(init, "ok"))) &&
           (!devices || json_integer_value(json_object_get(devices, "count")) > 0);
}

/* The net plugin that the library ends up with: of the candidates in order, the first that works
 * and has a version in common. */
static const struct shk_plugin *plugin_chosen(const struct plugin_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct shk_plugin *p = &run->list[i];
        if (!p->considered || p->kind != SHK_ABI_NET)
            continue;
        if (plugin_fatal(p->row))
            return NULL;
        if (p->usable && plugin_works(p->row))
            return p;
    }
    return NULL;
}

static void plugin_note(struct plugin_run *run, int rc)
{
    if (rc && !run->rc)
        run->rc = shk_error_sys(run->err, -rc, "facts of the plugins");
}

/* On a capture that holds no libraries, "no such file" would tell about the capture only. */
static bool plugin_blind(const struct plugin_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->list[i].found || json_object_get(run->list[i].row, "passed_over"))
            return false;
    }
    return run->count && !shk_ldsearch_complete(run->search);
}

static void plugin_write_candidates(struct plugin_run *run)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < run->count; i++)
        json_array_append(rows, run->list[i].row);
    if (plugin_blind(run)) {
        json_decref(rows);
        plugin_note(run, shk_facts_failed(run->ctx->facts, "plugin.candidates", "search order",
                                          "the capture holds no libraries"));
    } else {
        plugin_note(run, shk_facts_present(run->ctx->facts, "plugin.candidates", rows, NULL,
                                           "search order"));
    }
}

static void plugin_write(struct plugin_run *run)
{
    struct shk_facts *facts = run->ctx->facts;
    const char *source, *requested = plugin_value(run, shk_variable("net-plugin"), &source);
    const struct shk_plugin *chosen = plugin_chosen(run);
    plugin_write_candidates(run);
    plugin_note(run, shk_facts_present(facts, "plugin.requests", json_incref(run->requests), NULL,
                                       "environment"));
    if (requested)
        plugin_note(run,
                    shk_facts_present(facts, "plugin.requested",
                                      shk_json_text(requested, strlen(requested)), NULL, source));
    else
        plugin_note(run, shk_facts_absent(facts, "plugin.requested", shk_variable("net-plugin"),
                                          "not set"));
    if (plugin_blind(run))
        plugin_note(run, shk_facts_failed(facts, "plugin.chosen", "search order",
                                          "the capture holds no libraries"));
    else if (chosen)
        plugin_note(run, shk_facts_present(facts, "plugin.chosen",
                                           json_incref(json_object_get(chosen->row, "path")), NULL,
                                           "search order"));
    else
        plugin_note(run, shk_facts_absent(facts, "plugin.chosen", "search order",
                                          "no candidate works with a version in common"));
}

static void plugin_gather(struct plugin_run *run)
{
    static const enum shk_nccl_abi asked[] = {SHK_ABI_NET, SHK_ABI_TUNER, SHK_ABI_PROFILER,
                                              SHK_ABI_ENV, SHK_ABI_GIN,   SHK_ABI_RMA};
    bool any = run->owners[0].present || run->owners[1].present;
    for (size_t o = 0; o < 2 && !run->rc; o++) {
        /* without either library, NCCL's newest rules still tell what would be tried */
        if (!run->owners[o].present && (any || o > 0))
            continue;
        for (size_t k = 0; k < sizeof asked / sizeof asked[0] && !run->rc; k++)
            plugin_request(run, &run->owners[o], asked[k]);
    }
    if (!run->rc)
        plugin_extras(run);
}

static int plugin_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const struct shk_plugin_deadlines deadlines = SHK_PLUGIN_DEADLINES;
    struct plugin_run *run = calloc(1, sizeof *run);
    if (!run)
        return shk_error_sys(err, ENOMEM, "plugins");
    run->ctx = ctx;
    run->err = err;
    run->requests = json_array();
    run->owners[0] = (struct owner){.id = SHK_OWNER_NCCL, .prefix = "nccl"};
    run->owners[1] = (struct owner){.id = SHK_OWNER_RCCL, .prefix = "rccl"};
    run->rc = shk_ldsearch_create(&run->search, ctx->host, err);
    for (size_t o = 0; o < 2 && !run->rc; o++)
        plugin_owner_open(run, &run->owners[o]);
    if (!run->rc)
        plugin_gather(run);
    if (!run->rc && ctx->executes)
        run->rc = shk_plugin_try(run->list, run->count, &deadlines, ctx->quick, err);
    if (!run->rc)
        plugin_write(run);
    int rc = run->rc;
    for (size_t i = 0; i < run->count; i++)
        json_decref(run->list[i].row);
    for (size_t o = 0; o < 2; o++)
        shk_elf_close(run->owners[o].elf);
    shk_ldsearch_destroy(run->search);
    json_decref(run->requests);
    free(run);
    return rc;
}

static const char *const plugin_provides[] = {
    "plugin.candidates", "plugin.requests", "plugin.requested", "plugin.chosen", NULL,
};

const struct shk_probe shk_probe_plugin = {
    .name = "plugin",
    .phase = SHK_PHASE_DERIVED,
    .doc = "net, tuner and profiler plugins in the library's search order, tried in children",
    .provides = plugin_provides,
    .deadline_ms = PLUGIN_PROBE_MS,
    .apart = true,
    .run = plugin_run,
};
