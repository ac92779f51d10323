/* The job over its nodes: are all tasks there, and where. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/job/collective_why.h"
#include "core/text/uses.h"

#include <string.h>

/* Was the rank lost that the all-reduce blames? Then that has the cause. */
static const char *missing_cause(const struct shk_check_context *ctx, const json_t *missing)
{
    const char *cause = NULL;
    json_t *nodes = NULL, *item;
    (void)shk_look_text(ctx->facts, "collective.fabric.cause", &cause);
    (void)shk_look_texts(ctx->facts, "collective.fabric.nodes", &nodes);
    size_t i;
    json_array_foreach((json_t *)missing, i, item)
    {
        const char *host = shk_member_words(item, "host");
        if (!host || !shk_array_has(nodes, host, false))
            return "rank-missing";
    }
    const char *key = shk_collective_cause_key(cause);
    return key ? key : "rank-missing";
}

static void missing_text(struct shk_strbuf *sb, const json_t *missing)
{
    json_t *item;
    size_t i, n = json_array_size(missing);
    json_array_foreach((json_t *)missing, i, item)
    {
        const char *host = shk_member_words(item, "host"), *why = shk_member_words(item, "why");
        long long rank = -1; /* a node that could not be probed has none */
        (void)shk_look_member_int(item, "rank", &rank);
        if (i == 8) {
            shk_strbuf_printf(sb, "; and %zu more", n - i);
            break;
        }
        shk_strbuf_puts(sb, i ? "; " : "");
        if (rank >= 0)
            shk_strbuf_printf(sb, "rank %lld", rank);
        shk_strbuf_printf(sb, "%s%s: %s", rank >= 0 && host && *host ? " on " : "",
                          host ? host : "", why ? why : "missing");
    }
}

/* Of a rank that is missing: what is known against its node? */
enum missing_kind {
    MISSING_NODE,
    MISSING_LAUNCH, /* nothing: rank 0 rejected it */
    MISSING_EITHER, /* it or rank 0's node lost the other */
    MISSING_KINDS
};

static void missing_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const json_t *missing, enum missing_kind kind)
{
    bool launch = kind == MISSING_LAUNCH;
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_job_missing, launch ? "ranks that were not taken" : "ranks");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    missing_text(&sb, missing);
    row.fact = "job.missing";
    row.scope = kind == MISSING_NODE ? SHK_SCOPE_UNSET : SHK_SCOPE_LAUNCH;
    row.diagnosis = launch ? "ranks-not-taken" : missing_cause(ctx, missing);
    shk_row_verdict(&row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_text(&row.expected, "every rank of the job");
    shk_row_text(&row.why, "%zu of the job's ranks or nodes did not take part to the end",
                 json_array_size(missing));
    shk_strbuf_free(&sb);
    shk_row_end(findings, &row);
    shk_row_nodes(findings, missing, "host");
}

static enum missing_kind missing_kind(const json_t *item)
{
    bool launch = false, either = false;
    (void)shk_look_member_bool(item, "launch", &launch);
    (void)shk_look_member_bool(item, "either", &either);
    return launch ? MISSING_LAUNCH : either ? MISSING_EITHER : MISSING_NODE;
}

/* Facts of a job of one rank do not have it. */
static bool not_of_job(const struct shk_check_context *ctx, const char *key)
{
    enum shk_look look = shk_look(ctx->facts, key, NULL);
    return look == SHK_LOOK_MISSING || look == SHK_LOOK_ABSENT;
}

static void eval_missing(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_missing, "ranks");
    json_t *missing = NULL, *item, *of[MISSING_KINDS] = {json_array(), json_array(), json_array()};
    size_t i;
    enum shk_look look = shk_read_array(&row, "job.missing", &missing);
    json_array_foreach(missing, i, item) json_array_append(of[missing_kind(item)], item);
    for (i = 0; i < MISSING_KINDS; i++)
        if (json_array_size(of[i]))
            missing_row(ctx, findings, of[i], (enum missing_kind)i);
    bool judged = json_array_size(missing) || not_of_job(ctx, "job.missing");
    if (look == SHK_LOOK_PRESENT && !judged) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "all there");
    }
    row.fact = "job.missing";
    if (judged)
        shk_row_drop(&row);
    else
        shk_row_end(findings, &row);
    for (i = 0; i < MISSING_KINDS; i++)
        json_decref(of[i]);
}

const struct shk_check shk_check_job_missing = {
    .id = "job.missing",
    .diagnosis = "rank-missing",
    .family = "launcher",
    .title = "Every rank of the job started and stayed until the end",
    .eval = eval_missing,
    .of_job = true,
    .doc = "Fact: job.missing.\nA rank that never came to rank 0, went away, or whose node could "
           "not be probed is FAIL and named with its node; one that rank 0 did not take (another "
           "version, no more open files) says nothing against its node. When rank 0 lost the only "
           "other node, either may be at fault; of a rank that fell silent on a host that answers, "
           "nothing is known.",
};

/* A variable of Slurm's; 0 when it is known not to be set. */
static long long env_number(struct shk_row *row, const char *name)
{
    const char *text = NULL;
    return shk_read_env(row, name, &text) == SHK_LOOK_PRESENT ? strtoll(text, NULL, 10) : 0;
}

/* srun keeps to the number of nodes; and every rank came. */
static bool placed_by_srun(struct shk_row *row)
{
    json_t *missing = NULL;
    const char *launcher = NULL;
    bool all = shk_read_array(row, "job.missing", &missing) == SHK_LOOK_PRESENT &&
               !json_array_size(missing);
    return shk_read_text(row, "job.launcher", &launcher) == SHK_LOOK_PRESENT && all &&
           strcmp(launcher, "slurm") == 0;
}

static void eval_spread(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_spread, "nodes in use");
    json_t *layout = NULL;
    if (not_of_job(ctx, "job.layout"))
        return; /* not a job of several ranks */
    (void)shk_read_array(&row, "job.layout", &layout);
    long long used = (long long)json_array_size(layout);
    long long nodes = env_number(&row, shk_variable("job-nodes"));
    long long step = env_number(&row, shk_variable("step-nodes"));
    row.fact = "job.layout";
    if (!nodes)
        nodes = env_number(&row, shk_variable("job-nodes-old"));
    if (shk_row_lacking(&row)) {
        shk_row_end(findings, &row);
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row.observed, "%lld", used);
    if (step > used && placed_by_srun(&row)) {
        row.verdict = SHK_FAIL;
        shk_row_text(&row.expected, "%lld, as srun placed them", step);
        shk_row_text(
            &row.why,
            "srun started tasks on %lld nodes and all of them joined, but they report %lld "
            "different host name%s: nodes have the same name, and are distinguished by "
            "nothing",
            step, used, used == 1 ? "" : "s");
        char count[32];
        snprintf(count, sizeof count, "%lld", step);
        shk_row_fix(&row, "same-names", "nodes", count, NULL);
    } else if (nodes > used) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "%lld, as many as the job has", nodes);
        shk_row_text(&row.why,
                     "the ranks run on %lld of the %lld nodes of the allocation: the "
                     "others are not tested",
                     used, nodes);
        char count[32];
        snprintf(count, sizeof count, "%lld", nodes);
        shk_row_fix(&row, "all-nodes", "nodes", count, NULL);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_spread = {
    .id = "job.spread",
    .diagnosis = "hostname-not-unique",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "Ranks run on every node of the allocation",
    .eval = eval_spread,
    .of_job = true,
    .doc = "Facts: job.layout, job.missing, env.{job-nodes} (or {job-nodes-old}), "
           "env.{step-nodes}.\nFewer nodes with ranks than the job has is WARN. Fewer host "
           "names than the step has nodes, with no rank missing, is FAIL.",
};
