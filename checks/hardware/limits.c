/* Limits of this process (ulimit). */
#include "checks/hardware/limits.h"
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <limits.h>
#include <string.h>

enum { NOFILE_ANY = 1024, NOFILE_FABRIC = 65536 };

/* What a rank may open toward one other node: 8 ranks there, 32 channels each, a socket each way,
 * and as much again for the rest. */
enum { NOFILE_PER_NODE = 1024 };

struct limit {
    long long soft, hard; /* -1: unlimited */
};

/* A limit below -1, without an end in 63 bits, or soft above hard is none that a kernel gives. */
static bool is_possible(const struct limit *limit)
{
    bool ordered = limit->hard < 0 || (limit->soft >= 0 && limit->soft <= limit->hard);
    return limit->soft >= -1 && limit->hard >= -1 && limit->soft < LLONG_MAX &&
           limit->hard < LLONG_MAX && ordered;
}

static bool read_limit(struct shk_row *row, const char *key, struct limit *limit)
{
    json_t *object = NULL;
    enum shk_look look = shk_read_object(row, key, &object);
    if (look == SHK_LOOK_ABSENT)
        shk_row_lacks(row, key, "%s was not read", key);
    if (look != SHK_LOOK_PRESENT || !shk_read_told_int(row, key, object, "soft", &limit->soft) ||
        !shk_read_told_int(row, key, object, "hard", &limit->hard))
        return false;
    if (!is_possible(limit))
        shk_row_lacks(row, key, "%s has an unexpected form", key);
    return is_possible(limit);
}

/* What gave this process its limits, and so where they are raised. */
enum giver { GIVER_SHELL, GIVER_SLURM, GIVER_DOCKER, GIVER_PODMAN, GIVER_PODS };

static enum giver giver_of(const struct shk_facts *facts)
{
    const char *container = shk_container(facts), *launcher = NULL;
    if (container && strcmp(container, "docker") == 0)
        return GIVER_DOCKER;
    if (container && strcmp(container, "podman") == 0)
        return GIVER_PODMAN;
    if (container && (strcmp(container, "kubernetes") == 0 || strcmp(container, "containerd") == 0))
        return GIVER_PODS;
    if (shk_look_text(facts, "job.scheduler", &launcher) != SHK_LOOK_PRESENT)
        (void)shk_look_text(facts, "job.launcher", &launcher);
    return launcher && strcmp(launcher, "slurm") == 0 ? GIVER_SLURM : GIVER_SHELL;
}

/* The line that raises the hard limit, too, for whoever started this process. */
static void raise_hard(struct shk_row *row, const char *unit, const char *name, const char *value)
{
    const char *no_end = strcmp(value, "unlimited") == 0 ? "-1" : value;
    const char *systemd = strcmp(value, "unlimited") == 0 ? "infinity" : value;
    switch (giver_of(row->ctx->facts)) {
    case GIVER_DOCKER:
        shk_row_fix(row, "limit-docker", "limit", name, "value", no_end, NULL);
        break;
    case GIVER_PODMAN:
        shk_row_fix(row, "limit-podman", "limit", name, "value", no_end, NULL);
        break;
    case GIVER_PODS:
        shk_row_fix(row, strcmp(name, "memlock") == 0 ? "limit-pods-memlock" : "limit-pods", "unit",
                    unit, "value", systemd, NULL);
        break;
    case GIVER_SLURM:
        shk_row_fix(row, "limit-slurm", "unit", unit, "value", systemd, "slurm",
                    unit + strlen("Limit"), NULL);
        break;
    default:
        shk_row_fix(
            row, strcmp(name, "memlock") == 0 ? "limit-shell-memlock" : "limit-shell-nofile", NULL);
    }
}

static void observe_bytes(struct shk_row *row, const struct limit *limit)
{
    char *soft = shk_bytes_text(limit->soft), *hard = shk_bytes_text(limit->hard);
    if (limit->soft == limit->hard)
        shk_row_text(&row->observed, "%s", soft ? soft : "");
    else
        shk_row_text(&row->observed, "%s (hard limit %s)", soft ? soft : "", hard ? hard : "");
    free(soft);
    free(hard);
}

enum shk_memlock shk_memlock_judge(const struct shk_facts *facts, long long soft, bool ib_core)
{
    json_t *ids = NULL;
    long long euid = -1;
    bool may = false;
    if (soft < 0)
        return SHK_MEMLOCK_UNLIMITED;
    (void)shk_look_object(facts, "host.ids", &ids);
    (void)shk_look_member_int(ids, "euid", &euid);
    enum shk_look look = shk_look_member_bool(ids, "ipc_lock", &may);
    if (ib_core && look == SHK_LOOK_PRESENT && may)
        return SHK_MEMLOCK_EXEMPT;
    if (soft >= SHK_MEMLOCK_LEAST)
        return SHK_MEMLOCK_ENOUGH;
    return ib_core && look != SHK_LOOK_PRESENT && euid == 0 ? SHK_MEMLOCK_UNTOLD : SHK_MEMLOCK_LOW;
}

static void memlock_finite(struct shk_row *row, const struct limit *limit, bool low)
{
    shk_row_verdict(row, low ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "memlock-too-low";
    shk_row_text(&row->expected, "unlimited");
    shk_row_text(&row->why,
                 "memory that the NIC reads must be locked; registration fails at "
                 "this limit%s",
                 low ? "" : " once buffers grow");
    if (limit->hard < 0)
        shk_row_fix(row, "raise-memlock", NULL);
    else
        raise_hard(row, "LimitMEMLOCK", "memlock", "unlimited");
}

static void memlock_row(struct shk_row *row, const struct limit *limit)
{
    const char *kind = shk_profile_nic_kind(row->ctx->profile);
    bool ib_core = kind && strcmp(kind, "cxi") != 0;
    enum shk_memlock judged = shk_memlock_judge(row->ctx->facts, limit->soft, ib_core);
    switch (judged) {
    case SHK_MEMLOCK_UNLIMITED: shk_row_verdict(row, SHK_PASS, SHK_EFFECT); break;
    case SHK_MEMLOCK_EXEMPT:
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->why, "this process has CAP_IPC_LOCK, which the limit does not bind; "
                                "other users are bound by theirs");
        break;
    case SHK_MEMLOCK_UNTOLD:
        shk_row_lacks(row, "host.ids",
                      "too low for most processes, but root with CAP_IPC_LOCK is not bound by it, "
                      "and whether this process has that was not read");
        break;
    default: memlock_finite(row, limit, judged == SHK_MEMLOCK_LOW);
    }
}

static void eval_memlock(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_memlock, "RLIMIT_MEMLOCK");
    struct limit limit = {0};
    bool rdma = shk_profile_is_rdma(ctx->profile);
    row.fact = "limits.memlock";
    row.required = rdma;
    row.source = "linux-rdma/rdma-core:libibverbs/init.c";
    if (read_limit(&row, "limits.memlock", &limit)) {
        observe_bytes(&row, &limit);
        if (limit.soft >= 0 && !rdma) {
            shk_read_profile(&row);
            shk_row_na(findings, &row, "finite, but profile %s registers no memory with a NIC",
                       ctx->profile->name);
            return;
        }
        memlock_row(&row, &limit);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_memlock = {
    .id = "limits.memlock",
    .diagnosis = "memlock-too-low",
    .family = "limits",
    .title = "Enough memory can be locked for RDMA",
    .eval = eval_memlock,
    .doc =
        "Fact: limits.memlock of this process, so run it inside the job step; for the fix "
        "host.container, job.scheduler, job.launcher.\n"
        "Profiles with an RDMA provider: unlimited is pass, below 64 MiB FAIL (distribution "
        "defaults are 64 KiB to 8 MiB), any other finite value WARN; pass with CAP_IPC_LOCK in the "
        "initial user namespace where ib_core registers the memory (host.ids.ipc_lock). libibverbs "
        "itself warns "
        "only up to 32 KiB (linux-rdma/rdma-core:libibverbs/init.c), so its silence proves "
        "nothing. A limit that no kernel gives (below -1, soft above hard) is UNKNOWN.",
};

static void nofile_low(struct shk_row *row, const struct limit *limit, long long need, bool many)
{
    bool raisable = limit->hard < 0 || limit->hard >= need;
    bool tiny = limit->soft < NOFILE_ANY;
    char value[24];
    snprintf(value, sizeof value, "%lld", need);
    row->diagnosis = "nofile-too-low";
    shk_row_text(&row->expected, "at least %lld", need);
    if (tiny || (many && !raisable)) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row->why, "each peer takes file descriptors; at scale start-up ends with "
                                "\"Too many open files\"");
    } else {
        row->diagnosis = NULL;
        shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        shk_row_text(&row->why,
                     raisable ? "NCCL raises it by itself up to the hard limit, but only for the "
                                "bootstrap of rank 0; other programs at scale do not"
                              : "enough on one node; a job of many nodes needs more");
    }
    if (raisable)
        shk_row_fix(row, "raise-nofile", "value", value, NULL);
    else
        raise_hard(row, "LimitNOFILE", "nofile", value);
}

static void eval_nofile(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nofile, "RLIMIT_NOFILE");
    struct limit limit = {0};
    row.fact = "limits.nofile";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting/runtime_and_mpi_issues.rst; "
                 "NVIDIA/nccl:src/bootstrap.cc (setFilesLimit)";
    if (read_limit(&row, "limits.nofile", &limit)) {
        if (limit.soft == limit.hard || limit.soft < 0 || limit.soft >= NOFILE_FABRIC)
            shk_row_text(&row.observed, limit.soft < 0 ? "unlimited" : "%lld", limit.soft);
        else
            shk_row_text(&row.observed,
                         limit.hard < 0 ? "%lld (hard limit unlimited)" : "%lld (hard limit %lld)",
                         limit.soft, limit.hard);
        if (limit.soft < 0 || limit.soft >= NOFILE_FABRIC) {
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
            shk_row_end(findings, &row);
            return;
        }
        shk_read_profile(&row);
        long long nodes = shk_read_job_nodes(&row);
        bool large = shk_profile_is_rdma(ctx->profile) ? nodes != 1 : nodes > 1;
        long long need = large ? NOFILE_FABRIC : NOFILE_ANY;
        if (limit.soft >= need)
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        else
            nofile_low(&row, &limit, need, nodes > 1 && limit.hard <= NOFILE_PER_NODE * nodes);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nofile = {
    .id = "limits.nofile",
    .diagnosis = "nofile-too-low",
    .family = "limits",
    .title = "Enough open files for the peers of a job",
    .eval = eval_nofile,
    .doc = "Facts: limits.nofile, job.nodes; for the fix host.container, job.scheduler, "
           "job.launcher.\n"
           "A job of several nodes wants 65536 (NCCL user guide, troubleshooting): less is WARN "
           "where the hard limit is below that, too, and gives no 1024 for each node of the job; "
           "else a note, for NCCL raises the limit by itself. Below 1024 WARN everywhere. A limit "
           "that no kernel gives is UNKNOWN.",
};

static void eval_stack(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_stack, "RLIMIT_STACK");
    struct limit limit = {0};
    row.fact = "limits.stack";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (!read_limit(&row, "limits.stack", &limit)) {
        shk_row_end(findings, &row);
        return;
    }
    limit.hard = limit.soft; /* threads inherit the soft one */
    observe_bytes(&row, &limit);
    const char *nccl = NULL;
    bool old = limit.soft < 0 && shk_read_text(&row, "nccl.version", &nccl) == SHK_LOOK_PRESENT &&
               shk_version_cmp(nccl, "2.28.3") < 0;
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    if (old) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "8 MiB");
        shk_row_text(&row.why,
                     "with an unlimited stack glibc gives new threads 2 MiB, which NCCL "
                     "%s can overrun; 2.28.3 sets its own",
                     nccl);
        shk_row_fix(&row, "stack-8m", NULL);
    } else if (limit.soft >= 0 && limit.soft < (2LL << 20)) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "8 MiB");
        shk_row_text(&row.why, "threads inherit it, and communication libraries need more");
        shk_row_fix(&row, "stack-8m", NULL);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_stack = {
    .id = "limits.stack",
    .family = "limits",
    .title = "The stack limit suits NCCL's threads",
    .eval = eval_stack,
    .doc = "Facts: limits.stack, nccl.version.\n"
           "WARN below 2 MiB, and when unlimited with NCCL before 2.28.3: glibc then gives "
           "threads 2 MiB on x86-64 (NCCL user guide, troubleshooting).",
};
