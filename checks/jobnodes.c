/* The job over its nodes: do the tasks find each other, are all of them there, and where. */
#include "checks/coded.h"

#include <string.h>

static void eval_pmix(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_pmix, "PMIx");
    json_t *alone = shk_facts_get_object(ctx->facts, "job.alone");
    const char *mpi = shk_facts_get_text(ctx->facts, "job.slurm.mpi_type");
    const char *launcher = shk_member_text(alone, "launcher");
    bool slurm = launcher && strcmp(launcher, "Slurm") == 0;
    struct shk_fact fact;
    enum shk_look look = shk_look(ctx->facts, "job.pmix.library", &fact);
    row.fact = "job.pmix.library";
    if (look == SHK_LOOK_PRESENT) {
        const char *version = shk_facts_get_text(ctx->facts, "job.pmix.version");
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version ? version : "joined");
    } else if (look == SHK_LOOK_FAILED) {
        shk_row_verdict(&row, SHK_FAIL, SHK_TESTED);
        row.diagnosis = strstr(fact.reason ? fact.reason : "", "not found")
                            ? "pmix-plugin-missing"
                            : "pmix-version-mismatch";
        shk_row_text(&row.observed, "failed");
        shk_row_text(&row.why, "%s", fact.reason ? fact.reason : "no reason was recorded");
        shk_row_text(&row.fix, "install libpmix.so.2 of the launcher's version on every node");
    } else if (alone) {
        row.fact = "job.alone";
        shk_row_verdict(&row, SHK_WARN, SHK_TESTED);
        row.diagnosis = "pmi-flavour-mismatch";
        shk_row_text(&row.observed, "%lld tasks of %s%s%s, no PMIx",
                     shk_member_int(alone, "tasks", 0), launcher ? launcher : "a launcher",
                     slurm && mpi ? " with --mpi=" : "", slurm && mpi ? mpi : "");
        shk_row_text(&row.expected, "tasks that find each other");
        shk_row_text(&row.why, "without PMIx the tasks cannot find each other: each node was "
                               "tested on its own, and nothing between nodes");
        shk_row_text(&row.fix, "%s",
                     slurm ? "srun --mpi=pmix shakedown (srun --mpi=list shows what there is)"
                           : "start with a launcher that offers PMIx: srun --mpi=pmix, prterun, "
                             "mpirun of Open MPI");
    } else {
        return; /* one task */
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_pmix = {
    .id = "job.pmix",
    .family = "launcher",
    .title = "The tasks of the launcher find each other",
    .eval = eval_pmix,
    .of_job = true,
    .doc =
        "Facts: job.pmix.library, job.pmix.version, job.alone, job.slurm.mpi_type.\nPMIx that is "
        "offered and fails is FAIL. Several tasks without PMIx are WARN: each node is then "
        "tested on its own.",
};

static void eval_missing(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_missing, "ranks");
    json_t *missing = shk_facts_get_array(ctx->facts, "job.missing"), *item;
    size_t i, n = json_array_size(missing);
    row.fact = "job.missing";
    if (!missing) {
        return; /* not a job of several ranks */
    }
    if (!n) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "all there");
        shk_row_end(findings, &row);
        return;
    }
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    json_array_foreach(missing, i, item)
    {
        const char *host = shk_member_text(item, "host"), *why = shk_member_text(item, "why");
        long long rank = shk_member_int(item, "rank", -1);
        if (i == 8) {
            shk_strbuf_printf(&sb, "; and %zu more", n - i);
            break;
        }
        shk_strbuf_puts(&sb, i ? "; " : "");
        if (rank >= 0)
            shk_strbuf_printf(&sb, "rank %lld", rank);
        shk_strbuf_printf(&sb, "%s%s: %s", rank >= 0 && host && *host ? " on " : "",
                          host ? host : "", why ? why : "missing");
    }
    shk_row_verdict(&row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_row_text(&row.expected, "every rank of the job");
    shk_row_text(&row.why, "%zu of the job's ranks or nodes did not take part to the end", n);
    shk_row_text(&row.fix, "look at the node and its slurmd log; leave it out with srun --exclude");
    shk_strbuf_free(&sb);
    shk_row_end(findings, &row);
    shk_row_nodes(findings, missing, "host");
}

const struct shk_check shk_check_job_missing = {
    .id = "job.missing",
    .family = "launcher",
    .title = "Every rank of the job came and stayed",
    .eval = eval_missing,
    .of_job = true,
    .doc = "Fact: job.missing.\nA rank that never came to rank 0, went away, or whose node could "
           "not be probed is FAIL and named with its node.",
};

/* Ranks of one node of job.layout; the smallest and largest over the nodes. */
static void eval_spread(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job_spread, "nodes in use");
    json_t *layout = shk_facts_get_array(ctx->facts, "job.layout");
    long long used = (long long)json_array_size(layout);
    const char *asked = shk_env_get(ctx->facts, "SLURM_JOB_NUM_NODES");
    long long nodes = asked ? strtoll(asked, NULL, 10) : 0;
    row.fact = "job.layout";
    if (!layout) {
        return; /* not a job of several ranks */
    }
    shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row.observed, "%lld", used);
    if (nodes > used) {
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
    .family = "launcher",
    .title = "Ranks run on every node of the allocation",
    .eval = eval_spread,
    .of_job = true,
    .doc =
        "Facts: job.layout, env.SLURM_JOB_NUM_NODES.\nFewer nodes with ranks than the job has is "
        "WARN.",
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
    json_array_foreach(numa, i, item) cpus += cpu_count(shk_member_text(item, "cpus"));
    if (!layout) {
        return; /* not a job of several ranks */
    }
    if (!cpus) {
        shk_row_unread(findings, &row, ctx->facts, "host.numa");
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%zu on %lld processors", most, cpus);
    if ((long long)most > cpus) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "at most one rank for each processor");
        shk_row_text(&row.why,
                     "%s has more ranks than processors: they take turns, and every "
                     "collective waits for the one that does not run",
                     where ? where : "a node");
        shk_row_text(&row.fix, "srun without --overcommit, mpirun without --oversubscribe, "
                               "or fewer --ntasks-per-node");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_slots = {
    .id = "job.slots",
    .family = "launcher",
    .title = "No node has more ranks than processors",
    .eval = eval_slots,
    .of_job = true,
    .doc = "Facts: job.layout, host.numa of rank 0's node.\nMore ranks than processors is WARN.",
};
