/* The job over its nodes: are all tasks there, and where. */
#include "checks/coded.h"

#include <string.h>

/* Was the rank lost that the all-reduce blames? Then that has the cause. */
static const char *missing_cause(const struct shk_check_context *ctx, const json_t *missing)
{
    const char *cause = shk_facts_get_text(ctx->facts, "collective.fabric.cause");
    json_t *nodes = shk_facts_get_array(ctx->facts, "collective.fabric.nodes"), *item;
    size_t i;
    json_array_foreach((json_t *)missing, i, item)
    {
        const char *host = shk_member_text(item, "host");
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
        const char *host = shk_member_text(item, "host"), *why = shk_member_text(item, "why");
        long long rank = shk_member_int(item, "rank", -1);
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

/* `launch`: those that rank 0 did not take, which says nothing against their nodes. */
static void missing_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const json_t *missing, bool launch)
{
    struct shk_row row =
        shk_row_start(&shk_check_job_missing, launch ? "ranks that were not taken" : "ranks");
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    missing_text(&sb, missing);
    row.fact = "job.missing";
    row.scope = launch ? SHK_SCOPE_LAUNCH : SHK_SCOPE_UNSET;
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

static void eval_missing(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    json_t *missing = shk_facts_get_array(ctx->facts, "job.missing"), *item;
    json_t *own = json_array(), *launch = json_array();
    size_t i;
    json_array_foreach(missing, i, item)
        json_array_append(shk_member_bool(item, "launch", false) ? launch : own, item);
    if (json_array_size(own))
        missing_row(ctx, findings, own, false);
    if (json_array_size(launch))
        missing_row(ctx, findings, launch, true);
    if (missing && !json_array_size(missing)) { /* not there: not a job of several ranks */
        struct shk_row row = shk_row_start(&shk_check_job_missing, "ranks");
        row.fact = "job.missing";
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "all there");
        shk_row_end(findings, &row);
    }
    json_decref(own);
    json_decref(launch);
}

const struct shk_check shk_check_job_missing = {
    .id = "job.missing",
    .family = "launcher",
    .title = "Every rank of the job came and stayed",
    .eval = eval_missing,
    .of_job = true,
    .doc = "Fact: job.missing.\nA rank that never came to rank 0, went away, or whose node could "
           "not be probed is FAIL and named with its node; one that rank 0 did not take (another "
           "version, no more open files) says nothing against its node.",
};

static long long env_number(const struct shk_check_context *ctx, const char *name)
{
    const char *text = shk_env_get(ctx->facts, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

static void eval_spread(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_spread, "nodes in use");
    json_t *layout = shk_facts_get_array(ctx->facts, "job.layout");
    json_t *missing = shk_facts_get_array(ctx->facts, "job.missing");
    long long used = (long long)json_array_size(layout);
    long long nodes = env_number(ctx, "SLURM_JOB_NUM_NODES");
    long long step = env_number(ctx, "SLURM_STEP_NUM_NODES");
    const char *launcher = shk_facts_get_text(ctx->facts, "job.launcher");
    row.fact = "job.layout";
    if (!layout) {
        return; /* not a job of several ranks */
    }
    if (!nodes)
        nodes = env_number(ctx, "SLURM_NNODES");
    shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row.observed, "%lld", used);
    if (step > used && launcher && strcmp(launcher, "slurm") == 0 && !json_array_size(missing)) {
        row.verdict = SHK_FAIL;
        shk_row_text(&row.expected, "%lld, as srun placed them", step);
        shk_row_text(&row.why,
                     "srun started tasks on %lld nodes, and all came, but they report %lld "
                     "different host name%s: nodes have the same name, and are told apart by "
                     "nothing",
                     step, used, used == 1 ? "" : "s");
        shk_row_text(&row.fix, "srun -N%lld hostname; give each node a name of its own", step);
    } else if (nodes > used) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "%lld, as many as the job has", nodes);
        shk_row_text(&row.why,
                     "the ranks run on %lld of the %lld nodes of the allocation: the "
                     "others are not tested",
                     used, nodes);
        shk_row_text(&row.fix, "srun -N%lld --ntasks-per-node=N, mpirun --map-by node", nodes);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_spread = {
    .id = "job.spread",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "Ranks run on every node of the allocation",
    .eval = eval_spread,
    .of_job = true,
    .doc = "Facts: job.layout, job.missing, env.SLURM_JOB_NUM_NODES (or SLURM_NNODES), "
           "env.SLURM_STEP_NUM_NODES.\nFewer nodes with ranks than the job has is WARN. Fewer host "
           "names than the step has nodes, with no rank missing, is FAIL.",
};

/* Processors in "0-3,8". */
static long long cpu_count(const char *list)
{
    long long count = 0;
    while (list && *list) {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (end == list)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        count += last >= first ? last - first + 1 : 0;
        list = *end == ',' ? end + 1 : NULL;
    }
    return count;
}

/* The largest count in "8(x2),4": what Slurm gave of a node; 0 when it says nothing. */
static long long cpu_given(const char *list)
{
    long long most = 0;
    while (list && *list) {
        char *end;
        long long count = strtoll(list, &end, 10);
        most = count > most ? count : most;
        list = strchr(end, ',');
        list += list != NULL;
    }
    return most;
}

static void eval_slots(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_slots, "ranks per node");
    json_t *layout = shk_facts_get_array(ctx->facts, "job.layout"), *item;
    json_t *numa = shk_facts_get_array(ctx->facts, "host.numa");
    size_t i, most = 0;
    const char *where = NULL;
    long long cpus = 0;
    row.fact = "job.layout, host.numa";
    json_array_foreach(layout, i, item)
    {
        size_t ranks = json_array_size(json_object_get(item, "ranks"));
        where = ranks > most ? shk_member_text(item, "node") : where;
        most = ranks > most ? ranks : most;
    }
    long long given = cpu_given(shk_env_get(ctx->facts, "SLURM_JOB_CPUS_PER_NODE"));
    json_array_foreach(numa, i, item) cpus += cpu_count(shk_member_text(item, "cpus"));
    bool of_job = given > 0 && (!cpus || given < cpus);
    cpus = of_job ? given : cpus;
    if (!layout) {
        return; /* not a job of several ranks */
    }
    if (!cpus) {
        shk_row_unread(findings, &row, ctx->facts, "host.numa");
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%zu on %lld processors%s", most, cpus,
                 of_job ? " of the allocation" : "");
    if ((long long)most > cpus) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "at most one rank for each processor");
        shk_row_text(&row.why,
                     "%s has more ranks than %s: they take turns, and every "
                     "collective waits for the one that does not run",
                     where ? where : "a node",
                     of_job ? "slots, the processors that Slurm gave the job there" : "processors");
        shk_row_text(&row.fix, "srun without --overcommit, mpirun without --oversubscribe, "
                               "or fewer --ntasks-per-node");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_slots = {
    .id = "job.slots",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "No node has more ranks than processors",
    .eval = eval_slots,
    .of_job = true,
    .doc =
        "Facts: job.layout, host.numa of rank 0's node, env.SLURM_JOB_CPUS_PER_NODE.\nMore ranks "
        "than processors, of the node or of the allocation, is WARN.",
};
