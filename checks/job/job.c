#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "core/text/uses.h"

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

struct hidden {
    struct shk_strbuf names;
    bool nic; /* a NIC's is among them */
};

/* Device nodes that are known not to be there, of hardware that is on the bus. */
static void find_hidden(struct shk_row *row, struct hidden *hidden)
{
    for (size_t i = 0; i < sizeof container_nodes / sizeof *container_nodes; i++) {
        bool nic = container_nodes[i].nic;
        const char *fact = container_nodes[i].fact, *kind = container_nodes[i].kind;
        enum shk_look look = shk_look(row->ctx->facts, fact, NULL);
        long long count = shk_device_count(row->ctx->facts, kind);
        if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_MISSING || count == 0)
            continue;
        if (nic && count < 0)
            (void)shk_read_device_count(row, kind);
        if (nic && look == SHK_LOOK_FAILED)
            (void)shk_read(row, fact, NULL);
        if (look == SHK_LOOK_FAILED || count < 0)
            continue;
        shk_strbuf_printf(&hidden->names, "%s%s", hidden->names.len ? ", " : "",
                          container_nodes[i].node);
        hidden->nic |= container_nodes[i].nic;
    }
}

static void say_container(struct shk_row *row, const char *kind, const struct hidden *hidden)
{
    shk_row_verdict(row, hidden->nic ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, hidden->names.len ? "%s, without %s" : "%s", kind,
                 shk_strbuf_text(&hidden->names));
    shk_row_text(&row->why, hidden->nic
                                ? "the NICs are on the bus, but the container has no device to use "
                                  "them: traffic goes over TCP"
                                : "limits, /dev/shm, devices and libraries below are those of the "
                                  "container, not of the host");
    if (hidden->nic) {
        row->diagnosis = "rdma-device-not-in-container";
        shk_row_text(&row->expected, "the device nodes of the NICs");
        shk_row_fix(row, "pass-rdma", NULL);
    }
}

static void eval_container(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_container, "container");
    const char *kind = NULL;
    enum shk_look look = shk_read_container(&row, &kind);
    row.fact = "host.container";
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "not in a container");
        return;
    }
    if (look == SHK_LOOK_PRESENT) {
        struct hidden hidden = {.names = SHK_STRBUF_INIT};
        find_hidden(&row, &hidden);
        say_container(&row, kind, &hidden);
        shk_strbuf_free(&hidden.names);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_container = {
    .id = "container.kind",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "container",
    .title = "Whether this is a container, and which engine runs it",
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

/* "4(x2),3"; ABSENT: known that nothing says so. */
static enum shk_look read_tasks(struct shk_row *row, const char **tasks_p)
{
    const char *const *names = shk_variables("tasks-per-node");
    if (shk_look_text(row->ctx->facts, "job.slurm.tasks_per_node", tasks_p) == SHK_LOOK_PRESENT) {
        shk_row_was_read(row);
        return SHK_LOOK_PRESENT;
    }
    if (shk_look(row->ctx->facts, "job.slurm.tasks_per_node", NULL) == SHK_LOOK_FAILED)
        (void)shk_read_text(row, "job.slurm.tasks_per_node", tasks_p);
    for (const char *const *v = names; *v; v++) {
        enum shk_look look = shk_look_env(row->ctx->facts, *v, tasks_p);
        if (look != SHK_LOOK_MISSING)
            (void)shk_read_env(row, *v, tasks_p);
        if (look == SHK_LOOK_PRESENT)
            return look;
    }
    return shk_read_env(row, shk_variable("tasks-per-node"), tasks_p);
}

static void say_job(struct shk_row *row, const char *launcher, long long nodes, long long ranks)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_puts(&sb, launcher);
    if (nodes > 0)
        shk_strbuf_printf(&sb, ", %lld node%s", nodes, nodes == 1 ? "" : "s");
    if (ranks > 0)
        shk_strbuf_printf(&sb, ", %lld rank%s", ranks, ranks == 1 ? "" : "s");
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&sb));
    shk_strbuf_free(&sb);
}

static void judge_job(struct shk_row *row, const char *launcher)
{
    const char *tasks = NULL;
    long long ranks = -1, nodes = shk_read_job_nodes(row);
    enum shk_look told = read_tasks(row, &tasks);
    if (told == SHK_LOOK_PRESENT)
        (void)shk_look_int(row->ctx->facts, "job.ranks", &ranks);
    if (told != SHK_LOOK_PRESENT || nodes > 1)
        (void)shk_read_int(row, "job.ranks", &ranks);
    say_job(row, launcher, nodes, ranks);
    if (told == SHK_LOOK_PRESENT && uneven(tasks)) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        row->diagnosis = "uneven-ranks-per-node";
        shk_row_text(&row->expected, "the same number of ranks on every node");
        shk_row_text(&row->why, "tasks per node are %s", tasks);
        shk_row_fix(row, "ranks-per-node", NULL);
    } else if (nodes > 1 && ranks > 0 && ranks < nodes) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        shk_row_text(&row->why, "fewer ranks than nodes: some nodes would stay idle");
        shk_row_fix(row, "ranks-per-node", NULL);
    } else if (told == SHK_LOOK_PRESENT || ranks > 0 || nodes == 1) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    }
}

static void eval_job(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_job, "launcher");
    const char *launcher = NULL;
    enum shk_look look = shk_read_text(&row, "job.launcher", &launcher);
    row.fact = "job.launcher";
    if (look == SHK_LOOK_ABSENT || (launcher && strcmp(launcher, "local") == 0)) {
        shk_row_na(findings, &row, "not in a job");
        return;
    }
    if (look == SHK_LOOK_PRESENT)
        judge_job(&row, launcher);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_job = {
    .id = "job.launcher",
    .diagnosis = "uneven-ranks-per-node",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "The job starts the same number of ranks on every node",
    .eval = eval_job,
    .doc = "Facts: job.launcher, job.nodes, job.ranks, the tasks "
           "per node of the job.\nUneven tasks per node are WARN, fewer ranks than nodes "
           "FAIL.",
};

static void say_no_vni(struct shk_row *row)
{
    shk_row_verdict(row, SHK_WARN, SHK_DECLARED);
    row->diagnosis = "cxi-vni-missing";
    shk_row_text(&row->observed, "not set");
    shk_row_text(&row->why, "the scheduler gave this step no network identifier, or the "
                            "container does not pass it on; the provider then uses the default "
                            "service, which many sites close");
    shk_row_fix(row, "vni-step", NULL);
}

static void eval_vni(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_vni, shk_variable("job.slurm.vnis"));
    const char *launcher = NULL, *vnis = NULL;
    row.fact = shk_variable_fact("job.slurm.vnis");
    row.source = "ofiwg/libfabric:prov/cxi/src";
    shk_read_profile(&row);
    if (!shk_profile_wants_provider(ctx->profile, "cxi")) {
        shk_row_na(findings, &row, "no Slingshot fabric");
        return;
    }
    enum shk_look look = shk_look_env(ctx->facts, shk_variable("job.slurm.vnis"), &vnis);
    if (look == SHK_LOOK_FAILED || look == SHK_LOOK_PRESENT)
        (void)shk_read_env(&row, shk_variable("job.slurm.vnis"), &vnis);
    if (look == SHK_LOOK_PRESENT && *vnis) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "%s", vnis);
        shk_row_end(findings, &row);
        return;
    }
    enum shk_look job = shk_read_text(&row, "job.launcher", &launcher);
    if (job == SHK_LOOK_ABSENT || (job == SHK_LOOK_PRESENT && strcmp(launcher, "slurm") != 0)) {
        shk_row_na(findings, &row, "only job steps have it");
        return;
    }
    long long nodes = shk_read_job_nodes(&row);
    if (nodes == 1) {
        shk_row_na(findings, &row, "a job of one node may have none");
        return;
    }
    look = shk_read_env(&row, shk_variable("job.slurm.vnis"), &vnis);
    if (nodes > 1 && job == SHK_LOOK_PRESENT &&
        (look == SHK_LOOK_ABSENT || look == SHK_LOOK_PRESENT))
        say_no_vni(&row);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_vni = {
    .id = "job.vni",
    .diagnosis = "cxi-vni-missing",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "launcher",
    .title = "A Slingshot job step has its network identifiers",
    .eval = eval_vni,
    .doc = "Facts: env.{job.slurm.vnis}, job.launcher, job.nodes.\n"
           "Missing in a Slurm step of several nodes is WARN.",
};
