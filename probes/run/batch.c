#include "probes/run/run_private.h"

#include "core/facts/facts.h"
#include "core/run/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A fork and its page faults cost about as much as reading a dozen files; on a large node the
 * probes read thousands of them, which four do sooner than one. */
enum { BATCH_MOST = 4, BATCH_CPUS = 4 };

struct batch {
    struct run_unit **units;
    size_t count;
    unsigned deadline_ms;
};

/* In the child: [{rc, error, ms, facts}], one per unit. */
static int batch_child(void *arg, json_t **result_p, struct shk_error *err)
{
    struct batch *b = arg;
    (void)err;
    *result_p = json_array();
    for (size_t i = 0; i < b->count; i++) {
        struct shk_error why = {""};
        json_t *facts = NULL;
        double start = shk_clock_s();
        int rc = run_child(b->units[i], &facts, &why);
        json_array_append_new(*result_p, json_pack("{s:i, s:o, s:f, s:o?}", "rc", rc, "error",
                                                   shk_json_text(why.text, strlen(why.text)), "ms",
                                                   (shk_clock_s() - start) * 1e3, "facts", facts));
    }
    return 0;
}

/* What the child says of one unit, as if it had had a child of its own. */
static void batch_take(struct run_unit *unit, const json_t *answer,
                       struct shk_isolate_result *result)
{
    int rc = (int)json_integer_value(json_object_get(answer, "rc"));
    const char *text = json_string_value(json_object_get(answer, "error"));
    json_t *facts = json_object_get(answer, "facts");
    if (!json_is_object(answer))
        return;
    *result = (struct shk_isolate_result){
        .outcome = rc ? SHK_CHILD_FAILED : SHK_CHILD_OK,
        .result = json_is_null(facts) ? NULL : json_incref(facts),
        .ms = json_real_value(json_object_get(answer, "ms")),
    };
    if (rc && text && *text)
        shk_error_set(&result->error, -rc, "%s", text);
    else if (rc)
        shk_error_sys(&result->error, -rc, "%s", unit->probe->name);
    unit->done = true;
}

static size_t batch_width(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    long width = cpus / BATCH_CPUS;
    return width < 1 ? 1 : width > BATCH_MOST ? BATCH_MOST : (size_t)width;
}

/* Deals the units out; each batch has as long as the hastiest of its probes: together they take a
 * few milliseconds. */
static void batch_deal(struct batch *batches, size_t width, struct run_unit *units, size_t n)
{
    for (size_t i = 0, dealt = 0; i < n; i++) {
        struct batch *b = &batches[dealt % width];
        if (units[i].apart || units[i].done)
            continue;
        b->units[b->count++] = &units[i];
        if (units[i].deadline_ms && (!b->deadline_ms || units[i].deadline_ms < b->deadline_ms))
            b->deadline_ms = units[i].deadline_ms;
        dealt++;
    }
}

struct plan {
    struct batch batches[BATCH_MOST];
    struct run_unit **slots; /* of all batches */
    struct shk_isolate_job *jobs;
    struct shk_isolate_result *results;
    size_t width, count;
};

static int plan_make(struct plan *plan, struct run_unit *units, size_t n, struct shk_error *err)
{
    *plan = (struct plan){.width = batch_width()};
    plan->slots = calloc(n * plan->width + 1, sizeof(struct run_unit *));
    plan->jobs = calloc(n + plan->width, sizeof *plan->jobs);
    plan->results = calloc(n + plan->width, sizeof *plan->results);
    if (!plan->slots || !plan->jobs || !plan->results)
        return shk_error_sys(err, ENOMEM, "probes");
    for (size_t i = 0; i < plan->width; i++)
        plan->batches[i].units = plan->slots + i * n;
    batch_deal(plan->batches, plan->width, units, n);
    for (size_t i = 0; i < plan->width; i++)
        if (plan->batches[i].count)
            plan->jobs[plan->count++] =
                (struct shk_isolate_job){.name = "probes",
                                         .fn = batch_child,
                                         .arg = &plan->batches[i],
                                         .deadline_ms = plan->batches[i].deadline_ms};
    return 0;
}

static void plan_free(struct plan *plan)
{
    for (size_t i = 0; plan->results && i < plan->count; i++)
        shk_isolate_result_clear(&plan->results[i]);
    free(plan->slots);
    free(plan->jobs);
    free(plan->results);
}

/* Jobs of units that have no result yet and are (not) to be apart: in the order of the units. */
static size_t unit_jobs(struct run_unit *units, size_t n, bool apart, struct shk_isolate_job *jobs)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!units[i].done && units[i].apart == apart)
            jobs[count++] = (struct shk_isolate_job){.name = units[i].probe->name,
                                                     .fn = run_child,
                                                     .arg = &units[i],
                                                     .deadline_ms = units[i].deadline_ms};
    return count;
}

/* Moves results of such jobs to their units. */
static void unit_results(struct run_unit *units, size_t n, bool apart,
                         struct shk_isolate_result *from, struct shk_isolate_result *results)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (units[i].done || units[i].apart != apart)
            continue;
        results[i] = from[count];
        from[count++] = (struct shk_isolate_result){.outcome = SHK_CHILD_NOT_RUN};
        units[i].done = true;
    }
}

static void batch_results(const struct plan *plan, size_t batches, const struct run_unit *units,
                          struct shk_isolate_result *results)
{
    for (size_t i = 0; i < batches; i++) {
        const struct batch *b = plan->jobs[i].arg;
        const json_t *answers = plan->results[i].result;
        if (plan->results[i].outcome != SHK_CHILD_OK || json_array_size(answers) != b->count)
            continue;
        for (size_t k = 0; k < b->count; k++)
            batch_take(b->units[k], json_array_get(answers, k), &results[b->units[k] - units]);
    }
}

static void unit_derive(struct run_unit *unit, struct shk_isolate_result *result)
{
    double start = shk_clock_s();
    int rc = run_child(unit, &result->result, &result->error);
    result->outcome = rc ? SHK_CHILD_FAILED : SHK_CHILD_OK;
    result->ms = (shk_clock_s() - start) * 1e3;
    if (rc && !*result->error.text)
        shk_error_sys(&result->error, -rc, "%s", unit->probe->name);
    unit->done = true;
}

int run_units(struct run_unit *units, struct shk_isolate_result *results, size_t n,
              struct shk_error *err)
{
    struct plan plan;
    for (size_t i = 0; i < n; i++)
        if (units[i].probe->derives)
            unit_derive(&units[i], &results[i]);
    int rc = plan_make(&plan, units, n, err);
    size_t batches = plan.count;
    if (!rc) {
        plan.count += unit_jobs(units, n, true, plan.jobs + batches);
        rc = shk_isolate_run(plan.jobs, plan.results, plan.count, 0, err);
    }
    if (!rc) {
        batch_results(&plan, batches, units, results);
        unit_results(units, n, true, plan.results + batches, results);
    }
    plan_free(&plan);
    if (rc)
        return rc;
    struct shk_isolate_job *jobs = calloc(n + 1, sizeof *jobs);
    struct shk_isolate_result *again = calloc(n + 1, sizeof *again);
    rc = jobs && again ? 0 : shk_error_sys(err, ENOMEM, "probes");
    size_t left = rc ? 0 : unit_jobs(units, n, false, jobs);
    if (!rc)
        rc = shk_isolate_run(jobs, again, left, 0, err);
    if (!rc)
        unit_results(units, n, false, again, results);
    free(jobs);
    free(again);
    return rc;
}
