/* Ranks and the processors that they share. */
#include "checks/job/slots.h"
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/cpulist.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>

/* The largest count in "8(x2),4": what Slurm gave of a node; 0 when it says nothing. */
static long long cpu_given(const char *list)
{
    long long most = 0;
    while (list && *list) {
        char *end;
        long long count = strtoll(list, &end, 10);
        most = count > most ? count : most;
        const char *comma = strchr(end, ',');
        list = comma ? comma + 1 : NULL;
    }
    return most;
}

/* Processors that Slurm gave the job on a node (*of_job_p), else those of rank 0's node. */
static long long slots_cpus(struct shk_row *row, bool *of_job_p)
{
    const char *list = NULL;
    json_t *numa = NULL, *item;
    size_t i;
    long long cpus = 0;
    if (shk_read_env(row, shk_variable("job-cpus"), &list) == SHK_LOOK_PRESENT)
        cpus = cpu_given(list);
    *of_job_p = cpus > 0;
    if (cpus)
        return cpus;
    (void)shk_read_array(row, "host.numa", &numa);
    json_array_foreach(numa, i, item)
    {
        if (shk_read_member_text(row, "host.numa", item, "cpus", &list) == SHK_LOOK_PRESENT)
            cpus += shk_cpulist_count(list);
    }
    return cpus;
}

static const char *const local_keys[] = {"collective.peer.ranks", "collective.nccl.ranks",
                                         "collective.rccl.ranks"};
enum { LOCAL_KEYS = sizeof local_keys / sizeof *local_keys };

static bool is_job(const struct shk_facts *facts)
{
    enum shk_look look = shk_look(facts, "job.layout", NULL);
    return look != SHK_LOOK_MISSING && look != SHK_LOOK_ABSENT;
}

bool shk_local_slots(const struct shk_facts *facts, long long *ranks_p, long long *cpus_p)
{
    const char *list = NULL;
    long long ranks = 0;
    *ranks_p = *cpus_p = 0;
    if (is_job(facts))
        return false;
    for (size_t i = 0; i < LOCAL_KEYS; i++)
        if (shk_look_int(facts, local_keys[i], &ranks) == SHK_LOOK_PRESENT && ranks > *ranks_p)
            *ranks_p = ranks;
    if (shk_look_text(facts, "host.affinity", &list) == SHK_LOOK_PRESENT)
        *cpus_p = shk_cpulist_count(list);
    return *ranks_p > 0 && *cpus_p > 0;
}

static void say_crowded(struct shk_row *row, const char *where, const char *what)
{
    row->verdict = SHK_WARN;
    row->diagnosis = "ranks-share-processors";
    shk_row_text(&row->expected, "at most one rank for each processor");
    shk_row_text(&row->why,
                 "%s has more ranks than %s: they take turns, and every collective waits for the "
                 "one that does not run",
                 where, what);
}

/* Thousandths of a processor that the control group may use; 0: no quota, or a document that has
 * none (0.2.0). */
static long long slots_quota(struct shk_row *row)
{
    long long quota = 0;
    enum shk_look look = shk_look(row->ctx->facts, "cgroup.cpu.max", NULL);
    if (look != SHK_LOOK_MISSING && look != SHK_LOOK_ABSENT)
        (void)shk_read_int(row, "cgroup.cpu.max", &quota);
    return quota > 0 ? quota : 0;
}

/* Ranks beyond the quota: all of them stand still for the rest of each period. */
static void say_throttled(struct shk_row *row, long long ranks, long long quota)
{
    const char *engine = shk_container(row->ctx->facts);
    if (!quota || ranks < 2 || quota >= ranks * 1000)
        return;
    row->verdict = SHK_WARN;
    row->diagnosis = "ranks-share-processors";
    row->fact = "cgroup.cpu.max";
    shk_row_text(&row->expected, "at least one processor for each rank");
    shk_row_text(
        &row->why,
        "the control group may use the time of %lld.%lld processors: %lld ranks use it up and "
        "stand still for the rest of each period, whatever else is idle",
        quota / 1000, quota % 1000 / 100, ranks);
    if (engine && (strcmp(engine, "kubernetes") == 0 || strcmp(engine, "containerd") == 0))
        shk_row_fix(row, "cpu-quota-pod", NULL);
    else if (engine && (strcmp(engine, "docker") == 0 || strcmp(engine, "podman") == 0))
        shk_row_fix(row, "cpu-quota-engine", "engine", engine, NULL);
    else
        shk_row_fix(row, "cpu-quota-group", NULL);
}

/* Without a job: all ranks are on the processors that this process was given. */
static void eval_local(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_slots, "ranks per node");
    const char *list = NULL;
    long long ranks = 0, cpus = 0;
    row.fact = "host.affinity";
    for (size_t i = 0; i < LOCAL_KEYS; i++)
        if (shk_look(ctx->facts, local_keys[i], NULL) != SHK_LOOK_MISSING)
            (void)shk_read_int(&row, local_keys[i], &ranks);
    bool known = shk_local_slots(ctx->facts, &ranks, &cpus);
    long long quota = slots_quota(&row);
    if (ranks < 2 && !shk_row_lacking(&row)) {
        shk_row_drop(&row);
        return;
    }
    if (shk_read_text(&row, "host.affinity", &list) == SHK_LOOK_PRESENT && !cpus)
        shk_row_lacks(&row, "host.affinity", "%s is no list of processors", list);
    if (known && !shk_row_lacking(&row)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%lld on %lld processor%s that may be used", ranks, cpus,
                     cpus == 1 ? "" : "s");
        if (ranks > cpus) {
            say_crowded(&row, "this node", "processors that this process may use (affinity)");
            shk_row_fix(&row, "oversubscribed-here", NULL);
        } else {
            say_throttled(&row, ranks, quota);
        }
    }
    shk_row_end(findings, &row);
}

static void eval_slots(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    if (!is_job(ctx->facts)) {
        eval_local(ctx, findings);
        return;
    }
    struct shk_row row = shk_row_begin(ctx, &shk_check_job_slots, "ranks per node");
    json_t *layout = NULL, *item, *ranks = NULL;
    size_t i, most = 0;
    const char *where = NULL;
    bool of_job = false;
    row.fact = "job.layout, host.numa";
    (void)shk_read_array(&row, "job.layout", &layout);
    json_array_foreach(layout, i, item)
    {
        if (shk_read_member_array(&row, "job.layout", item, "ranks", &ranks) != SHK_LOOK_PRESENT ||
            json_array_size(ranks) <= most)
            continue;
        where = shk_member_words(item, "node");
        most = json_array_size(ranks);
    }
    long long cpus = slots_cpus(&row, &of_job), quota = slots_quota(&row);
    if (!cpus || shk_row_lacking(&row)) {
        shk_row_end(findings, &row);
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, "%zu on %lld processor%s%s", most, cpus, cpus == 1 ? "" : "s",
                 of_job ? " of the allocation" : "");
    if ((long long)most > cpus) {
        say_crowded(&row, where ? where : "a node",
                    of_job ? "slots, the processors that Slurm gave the job there" : "processors");
        shk_row_fix(&row, "oversubscribed", NULL);
    } else {
        say_throttled(&row, (long long)most, quota);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job_slots = {
    .id = "job.slots",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "No node has more ranks than CPUs",
    .eval = eval_slots,
    .of_job = true,
    .doc =
        "Facts: job.layout, host.numa of rank 0's node, env.{job-cpus}; without a job "
        "collective.{peer, nccl, rccl}.ranks and host.affinity; for both cgroup.cpu.max, for the "
        "fix host.container.\nMore ranks than processors, of the node, of the allocation, or that "
        "this process may use, is WARN; as is a quota of its control group (a pod's limits.cpu) "
        "of less than one processor for each rank.",
};
