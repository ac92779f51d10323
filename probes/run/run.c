#include "probes/base/probe.h"

#include "core/host/hostcall.h"
#include "core/text/strbuf.h"
#include "probes/run/run_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int run_child(void *arg, json_t **result_p, struct shk_error *err)
{
    const struct run_unit *unit = arg;
    struct shk_facts *facts = shk_facts_create();
    if (!facts)
        return shk_error_sys(err, ENOMEM, "%s", unit->probe->name);
    struct shk_probe_context ctx = {
        .host = unit->host,
        .names = unit->names,
        .known = unit->known,
        .facts = facts,
        .quick = unit->quick,
        .executes = shk_host_is_live(unit->host),
    };
    int rc = unit->probe->run(&ctx, err);
    *result_p = shk_facts_to_json(facts);
    shk_facts_destroy(facts);
    return rc;
}

static void run_note(struct shk_facts *facts, const struct shk_probe *probe, const char *what,
                     const char *text)
{
    char key[128];
    snprintf(key, sizeof key, "probe.%s.%s", probe->name, what);
    if (text && *text)
        shk_facts_text(facts, key, text, "shakedown");
}

static const char *run_status(enum shk_isolate_outcome outcome)
{
    switch (outcome) {
    case SHK_CHILD_OK: return "ok";
    case SHK_CHILD_EXITED:
    case SHK_CHILD_SIGNALED: return "crashed";
    case SHK_CHILD_TIMEOUT: return "timeout";
    case SHK_CHILD_STARVED: return "starved";
    case SHK_CHILD_MEMORY: return "memory";
    case SHK_CHILD_FAILED:
    case SHK_CHILD_NOT_RUN: break;
    }
    return "failed";
}

static bool run_is_prefix(const char *key)
{
    return key[strlen(key) - 1] == '.';
}

/* Facts that the probe promised and did not deliver are failed, never silently missing. */
static void run_mark_missing(struct shk_facts *facts, const struct shk_probe *probe,
                             const char *reason)
{
    struct shk_fact fact;
    for (const char *const *key = probe->provides; key && *key; key++)
        if (!run_is_prefix(*key) && !shk_facts_get(facts, *key, &fact))
            shk_facts_failed(facts, *key, "shakedown", "%s", reason);
}

/* What a captured library answered stands against "this is a capture, I could not ask"; in a tree
 * that was recorded, which has no libraries, against everything. */
static void run_keep_known(const struct shk_facts *facts, json_t *doc, bool recorded)
{
    json_t *table = json_object_get(doc, "facts"), *entry;
    const char *key;
    void *tmp;
    struct shk_fact known;
    json_object_foreach_safe(table, tmp, key, entry)
    {
        const char *state = json_string_value(json_object_get(entry, "state"));
        bool library = recorded && shk_probes_is_library_fact(key);
        if (((state && strcmp(state, "failed") == 0) || library) &&
            shk_facts_get(facts, key, &known) && (library || known.state != SHK_FACT_FAILED))
            json_object_del(table, key);
    }
}

static int run_absorb(struct shk_facts *facts, const struct run_unit *unit,
                      struct shk_isolate_result *result)
{
    const struct shk_probe *probe = unit->probe;
    struct shk_facts *mine = NULL;
    struct shk_error why = {""};
    bool recorded =
        !shk_host_is_live(unit->host) && shk_host_exists(unit->host, "/.shakedown/recorded");
    run_keep_known(facts, result->result, recorded);
    int rc = result->result ? shk_facts_from_child(&mine, result->result, &why) : 0;
    if (rc) {
        result->outcome = SHK_CHILD_FAILED;
        shk_error_set(&result->error, -rc, "%s: %.400s", probe->name, why.text);
    } else if (mine) {
        rc = shk_facts_merge(facts, mine);
        shk_facts_destroy(mine);
    }
    char key[128];
    snprintf(key, sizeof key, "probe.%s.ms", probe->name);
    /* Eighths are exact in binary: few digits, which every node of a job sends. */
    double ms = (double)(long long)(result->ms * 8 + 0.5) / 8;
    shk_facts_present(facts, key, json_real(ms), "ms", "shakedown");
    run_note(facts, probe, "status", run_status(result->outcome));
    if (result->outcome == SHK_CHILD_OK)
        return rc;
    run_note(facts, probe, "reason", result->error.text);
    run_note(facts, probe, "library", result->library);
    run_note(facts, probe, "call", result->call);
    run_note(facts, probe, "output", result->output);
    run_mark_missing(facts, probe, result->error.text);
    return rc;
}

/* A capture cannot ask libraries; what they answered there may be part of it. */
static int run_captured(const struct shk_host *host, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_facts *captured = NULL;
    json_t *doc;
    int rc = shk_host_json(host, "/.shakedown/facts.json", &doc, err);
    if (!doc)
        return rc;
    rc = shk_facts_from_json(&captured, doc, err);
    if (!rc)
        rc = shk_facts_merge(facts, captured);
    shk_facts_destroy(captured);
    json_decref(doc);
    return rc;
}

static void run_skip(struct shk_facts *facts, const struct shk_probe *probe)
{
    static const char reason[] = "needs a live host; this is a capture";
    run_note(facts, probe, "status", "skipped");
    run_note(facts, probe, "reason", reason);
    run_mark_missing(facts, probe, reason);
}

static unsigned run_deadline(const struct shk_probe *probe, unsigned cap)
{
    return cap && (!probe->deadline_ms || cap < probe->deadline_ms) ? cap : probe->deadline_ms;
}

static struct run_unit run_unit_of(const struct shk_probe *probe, const struct shk_host *host,
                                   const struct shk_probe_options *options,
                                   const struct shk_facts *facts, bool local)
{
    bool alone =
        probe->apart && !(probe->files && local) && !(probe->idle && probe->idle(host, facts));
    return (struct run_unit){.probe = probe,
                             .host = host,
                             .known = facts,
                             .names = options->names,
                             .deadline_ms = run_deadline(probe, options->deadline_ms),
                             .quick = options->quick,
                             .apart = alone};
}

static int run_absorb_one(struct shk_facts *facts, const struct run_unit *unit,
                          struct shk_isolate_result *result, struct shk_error *err)
{
    int rc = run_absorb(facts, unit, result);
    return rc ? shk_error_sys(err, -rc, "%s", unit->probe->name) : 0;
}

static int run_phase(enum shk_phase phase, const struct shk_host *host,
                     const struct shk_probe_options *options, struct shk_facts *facts,
                     struct shk_error *err)
{
    size_t all, n = 0;
    const struct shk_probe *const *probes = shk_probes(&all);
    struct run_unit *units = calloc(all, sizeof *units);
    struct shk_isolate_result *results = calloc(all, sizeof *results);
    bool local = shk_host_is_live(host) && shk_host_mounts_local(host);
    int rc = units && results ? 0 : shk_error_sys(err, ENOMEM, "probes");
    for (size_t i = 0; i < all && !rc; i++) {
        const struct shk_probe *probe = probes[i];
        if (probe->phase != phase)
            continue;
        if (probe->needs_live && !shk_host_is_live(host)) {
            run_skip(facts, probe);
            continue;
        }
        if (options->progress)
            options->progress(probe->name, options->progress_arg);
        units[n++] = run_unit_of(probe, host, options, facts, local);
    }
    if (!rc)
        rc = run_units(units, results, n, err);
    for (size_t i = 0; i < n && !rc; i++)
        rc = run_absorb_one(facts, &units[i], &results[i], err);
    for (size_t i = 0; results && i < n; i++)
        shk_isolate_result_clear(&results[i]);
    free(results);
    free(units);
    return rc;
}

/* A probe that needs nothing of the others and mostly waits for a library: begun first, waited for
 * when the others are done. */
struct run_early {
    struct run_unit unit;
    struct shk_isolate_pending *pending;
};

static int run_early_begin(struct run_early *early, const struct shk_host *host,
                           const struct shk_probe_options *options, struct shk_facts *facts,
                           struct shk_error *err)
{
    size_t all;
    const struct shk_probe *const *probes = shk_probes(&all);
    for (size_t i = 0; i < all; i++) {
        if (probes[i]->phase != SHK_PHASE_EARLY)
            continue;
        if (options->progress)
            options->progress(probes[i]->name, options->progress_arg);
        early->unit = run_unit_of(probes[i], host, options, facts, false);
        const struct shk_isolate_job job = {.name = probes[i]->name,
                                            .fn = run_child,
                                            .arg = &early->unit,
                                            .deadline_ms = early->unit.deadline_ms};
        return shk_isolate_begin(&early->pending, &job, err);
    }
    return 0;
}

static int run_early_end(struct run_early *early, struct shk_facts *facts, struct shk_error *err)
{
    struct shk_isolate_result result;
    shk_isolate_end(early->pending, &result);
    int rc = run_absorb_one(facts, &early->unit, &result, err);
    shk_isolate_result_clear(&result);
    early->pending = NULL;
    return rc;
}

int shk_probes_run(const struct shk_host *host, const struct shk_probe_options *options,
                   struct shk_facts *facts, struct shk_error *err)
{
    struct run_early early = {.pending = NULL};
    struct shk_error late = {""};
    int rc = shk_host_is_live(host) ? 0 : run_captured(host, facts, err);
    if (!rc)
        rc = run_early_begin(&early, host, options, facts, err);
    for (int phase = SHK_PHASE_HOST; phase < SHK_PHASE_COUNT && !rc; phase++)
        rc = run_phase((enum shk_phase)phase, host, options, facts, err);
    int end = early.pending ? run_early_end(&early, facts, rc ? &late : err) : 0;
    return rc ? rc : end;
}
