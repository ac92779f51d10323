#include "checks/coded.h"

#include <string.h>

/* Device nodes of hardware that is on the bus and was not passed into the container. */
static const struct {
    const char *kind, *fact, *node;
    bool nic;
} container_nodes[] = {
    {"gpu-nvidia", "dev.nvidia0", "/dev/nvidia*", false},
    {"gpu-amd", "dev.kfd", "/dev/kfd", false},
    {"neuron", "dev.neuron0", "/dev/neuron*", false},
    {"mlx5", "dev.infiniband/uverbs0", "/dev/infiniband", true},
    {"efa", "dev.infiniband/uverbs0", "/dev/infiniband", true},
    {"cxi", "dev.cxi0", "/dev/cxi*", true},
};

/* Names of the nodes that are hidden; true when a NIC's is among them. */
static bool hidden_nodes(const struct shk_facts *facts, struct shk_strbuf *names)
{
    bool nic = false;
    for (size_t i = 0; i < sizeof container_nodes / sizeof *container_nodes; i++) {
        char *key = shk_strf("pci.count.%s", container_nodes[i].kind);
        bool there = key && shk_facts_get_int(facts, key, 0) > 0;
        free(key);
        if (!there || shk_look(facts, container_nodes[i].fact, NULL) != SHK_LOOK_ABSENT)
            continue;
        shk_strbuf_printf(names, "%s%s", names->len ? ", " : "", container_nodes[i].node);
        nic |= container_nodes[i].nic;
    }
    return nic;
}

static void eval_container(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_container, "container");
    const char *kind = shk_facts_get_text(ctx->facts, "host.container");
    row.fact = "host.container";
    if (!kind) {
        struct shk_fact fact;
        if (shk_look(ctx->facts, "host.container", &fact) == SHK_LOOK_ABSENT)
            shk_row_na(findings, &row, "not in a container");
        else
            shk_row_unread(findings, &row, ctx->facts, "host.container");
        return;
    }
    if (strcmp(kind, "none") == 0) {
        shk_row_na(findings, &row, "not in a container");
        return;
    }
    struct shk_strbuf names = SHK_STRBUF_INIT;
    bool nic = hidden_nodes(ctx->facts, &names);
    shk_row_verdict(&row, nic ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    shk_row_text(&row.observed, names.len ? "%s, without %s" : "%s", kind, shk_strbuf_text(&names));
    shk_row_text(&row.why, nic ? "the NICs are on the bus, but the container has no device to use "
                                 "them: traffic goes over TCP"
                               : "limits, /dev/shm, devices and libraries below are those of the "
                                 "container, not of the host");
    if (nic) {
        row.diagnosis = "rdma-device-not-in-container";
        shk_row_text(&row.expected, "the device nodes of the NICs");
        shk_row_text(&row.fix, "--device=/dev/infiniband or /dev/cxi*, with --ulimit memlock=-1");
    }
    shk_strbuf_free(&names);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_container = {
    .id = "container.kind",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "container",
    .title = "Whether this is a container, and of which kind",
    .eval = eval_container,
    .doc = "Facts: host.container, pci.count.*, dev.<node>.\nNICs on the bus without their device "
           "nodes in the container are WARN. Whatever else a container hides is judged where it "
           "matters: accelerators, limits, /dev/shm, providers.",
};

/* "4(x2),3" -> does it name different counts? */
static bool uneven(const char *tasks)
{
    long first = -1;
    for (const char *p = tasks; p && *p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
        long count = strtol(p, NULL, 10);
        if (first >= 0 && count != first)
            return true;
        first = count;
    }
    return false;
}

static void eval_job(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_job, "launcher");
    const char *launcher = shk_facts_get_text(ctx->facts, "job.launcher");
    const char *tasks = shk_facts_get_text(ctx->facts, "job.slurm.tasks_per_node");
    long long nodes = shk_job_nodes(ctx->facts);
    long long ranks = shk_facts_get_int(ctx->facts, "job.ranks", -1);
    row.fact = "job.launcher";
    if (!tasks)
        tasks = shk_env_get(ctx->facts, "SLURM_STEP_TASKS_PER_NODE");
    if (!tasks)
        tasks = shk_env_get(ctx->facts, "SLURM_TASKS_PER_NODE");
    if (!launcher) {
        struct shk_fact fact;
        if (shk_look(ctx->facts, "job.launcher", &fact) == SHK_LOOK_ABSENT)
            shk_row_na(findings, &row, "not in a job");
        else
            shk_row_unread(findings, &row, ctx->facts, "job.launcher");
        return;
    }
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_puts(&sb, launcher);
    if (nodes > 0)
        shk_strbuf_printf(&sb, ", %lld node%s", nodes, nodes == 1 ? "" : "s");
    if (ranks > 0)
        shk_strbuf_printf(&sb, ", %lld rank%s", ranks, ranks == 1 ? "" : "s");
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&sb));
    shk_strbuf_free(&sb);
    if (strcmp(launcher, "local") == 0) {
        shk_row_na(findings, &row, "not in a job");
        return;
    }
    if (!tasks && ranks < 0 && nodes != 1) {
        shk_row_unread(findings, &row, ctx->facts, "job.ranks");
        return;
    }
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    if (tasks && uneven(tasks)) {
        row.verdict = SHK_WARN;
        row.diagnosis = "uneven-ranks-per-node";
        shk_row_text(&row.expected, "the same number of ranks on every node");
        shk_row_text(&row.why, "tasks per node are %s", tasks);
        shk_row_text(&row.fix, "--ntasks-per-node=N");
    } else if (nodes > 1 && ranks > 0 && ranks < nodes) {
        row.verdict = SHK_FAIL;
        shk_row_text(&row.why, "fewer ranks than nodes: some nodes would stay idle");
        shk_row_text(&row.fix, "--ntasks-per-node=N");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job = {
    .id = "job.launcher",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "The job starts as many ranks on every node",
    .eval = eval_job,
    .doc = "Facts: job.launcher, job.nodes, job.ranks, env.SLURM_STEP_TASKS_PER_NODE, "
           "env.SLURM_TASKS_PER_NODE.\nUneven tasks per node are WARN, fewer ranks than nodes "
           "FAIL.",
};

static void eval_vni(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_vni, "SLINGSHOT_VNIS");
    const char *launcher = shk_facts_get_text(ctx->facts, "job.launcher");
    const char *vnis = shk_env_get(ctx->facts, "SLINGSHOT_VNIS");
    row.fact = "env.SLINGSHOT_VNIS";
    row.source = "ofiwg/libfabric:prov/cxi/src";
    if (!shk_profile_wants_provider(ctx->profile, "cxi")) {
        shk_row_na(findings, &row, "no Slingshot fabric");
    } else if (vnis && *vnis) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "%s", vnis);
        shk_row_end(findings, &row);
    } else if (!launcher || strcmp(launcher, "slurm") != 0) {
        shk_row_na(findings, &row, "only job steps have it");
    } else if (shk_job_nodes(ctx->facts) == 1) {
        shk_row_na(findings, &row, "a job of one node may have none");
    } else if (!shk_env_known(ctx->facts)) {
        shk_row_unread(findings, &row, ctx->facts, "env.SLINGSHOT_VNIS");
    } else {
        shk_row_verdict(&row, SHK_WARN, SHK_DECLARED);
        row.diagnosis = "cxi-vni-missing";
        shk_row_text(&row.observed, "not set");
        shk_row_text(&row.why, "the scheduler gave this step no network identifier, or the "
                               "container does not pass it on; the provider then uses the default "
                               "service, which many sites close");
        shk_row_text(&row.fix, "start inside a job step (srun), and pass SLINGSHOT_* into "
                               "containers");
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_vni = {
    .id = "job.vni",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "A Slingshot job step has its network identifiers",
    .eval = eval_vni,
    .doc = "Facts: env.SLINGSHOT_VNIS, job.launcher, job.nodes.\n"
           "Missing in a Slurm step of several nodes is WARN.",
};
