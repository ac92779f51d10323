#include "checks/coded.h"

#include <string.h>

#define MIB (1LL << 20)
#define GIB (1LL << 30)

/* Registration of a few communicator buffers needs tens of MiB; the kernel's own defaults (64 KiB,
 * 8 MiB since Linux 5.16) are below that, so a finite limit of this size was set on purpose. */
enum { NOFILE_ANY = 1024, NOFILE_FABRIC = 65536 };

static bool limit_of(const struct shk_facts *facts, const char *key, long long *soft_p,
                     long long *hard_p)
{
    const json_t *limit = shk_facts_get_object(facts, key);
    const json_t *soft = json_object_get(limit, "soft");
    if (!json_is_integer(soft))
        return false;
    *soft_p = json_integer_value(soft);
    *hard_p = shk_member_int(limit, "hard", *soft_p);
    return true;
}

static void eval_memlock(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_memlock, "RLIMIT_MEMLOCK");
    long long soft, hard;
    bool rdma = shk_profile_is_rdma(ctx->profile);
    row.fact = "limits.memlock";
    row.required = rdma;
    row.source = "linux-rdma/rdma-core:libibverbs/init.c";
    if (!limit_of(ctx->facts, "limits.memlock", &soft, &hard)) {
        shk_row_unread(findings, &row, ctx->facts, "limits.memlock");
        return;
    }
    char *text = shk_bytes_text(soft);
    shk_row_text(&row.observed, "%s", text ? text : "");
    free(text);
    if (soft < 0) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else if (!rdma) {
        shk_row_na(findings, &row, "finite, but profile %s registers no memory with a NIC",
                   ctx->profile->name);
        return;
    } else {
        shk_row_verdict(&row, soft < 64 * MIB ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
        row.diagnosis = "memlock-too-low";
        shk_row_text(&row.expected, "unlimited");
        shk_row_text(&row.why,
                     "memory that the NIC reads must be locked; registration fails at "
                     "this limit%s",
                     soft < 64 * MIB ? "" : " once buffers grow");
        shk_row_text(&row.fix, "%s",
                     hard < 0 || hard > soft
                         ? "ulimit -l unlimited"
                         : "LimitMEMLOCK=infinity for slurmd (or --ulimit memlock=-1 for a "
                           "container), and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_memlock = {
    .id = "limits.memlock",
    .family = "limits",
    .title = "Memory can be locked for RDMA",
    .eval = eval_memlock,
    .doc = "Fact: limits.memlock of this process, so run it inside the job step.\n"
           "Profiles with an RDMA provider: unlimited is pass, below 64 MiB FAIL (distribution "
           "defaults are 64 KiB to 8 MiB), any other finite value WARN. libibverbs itself warns "
           "only up to 32 KiB (linux-rdma/rdma-core:libibverbs/init.c), so its silence proves "
           "nothing.",
};

static void eval_nofile(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_nofile, "RLIMIT_NOFILE");
    long long soft, hard;
    row.fact = "limits.nofile";
    if (!limit_of(ctx->facts, "limits.nofile", &soft, &hard)) {
        shk_row_unread(findings, &row, ctx->facts, "limits.nofile");
        return;
    }
    bool large = shk_profile_is_rdma(ctx->profile) && shk_job_nodes(ctx->facts) != 1;
    long long need = large ? NOFILE_FABRIC : NOFILE_ANY;
    shk_row_text(&row.observed, soft < 0 ? "unlimited" : "%lld", soft);
    if (soft < 0 || soft >= need) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = "nofile-too-low";
        shk_row_text(&row.expected, "at least %lld", need);
        shk_row_text(&row.why, "each peer takes file descriptors; at scale start-up ends with "
                               "\"Too many open files\"");
        shk_row_text(&row.fix,
                     hard < 0 || hard >= need ? "ulimit -n %lld" : "LimitNOFILE=%lld for slurmd",
                     need);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nofile = {
    .id = "limits.nofile",
    .family = "limits",
    .title = "Enough open files for the peers of a job",
    .eval = eval_nofile,
    .doc = "Fact: limits.nofile.\n"
           "At least 65536 for multi-node profiles with an RDMA provider (NCCL user guide, "
           "troubleshooting), 1024 otherwise; below is WARN.",
};

static void eval_stack(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_stack, "RLIMIT_STACK");
    long long soft, hard;
    row.fact = "limits.stack";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (!limit_of(ctx->facts, "limits.stack", &soft, &hard)) {
        shk_row_unread(findings, &row, ctx->facts, "limits.stack");
        return;
    }
    const char *nccl = shk_facts_get_text(ctx->facts, "nccl.version");
    char *text = shk_bytes_text(soft);
    shk_row_text(&row.observed, "%s", text ? text : "");
    free(text);
    bool old = nccl && shk_version_cmp(nccl, "2.28.3") < 0;
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    if (soft < 0 && old) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "8 MiB");
        shk_row_text(&row.why,
                     "with an unlimited stack glibc gives new threads 2 MiB, which NCCL "
                     "%s can overrun; 2.28.3 sets its own",
                     nccl);
        shk_row_text(&row.fix, "ulimit -s 8192");
    } else if (soft >= 0 && soft < 2 * MIB) {
        row.verdict = SHK_WARN;
        shk_row_text(&row.expected, "8 MiB");
        shk_row_text(&row.why, "threads inherit it, and communication libraries need more");
        shk_row_text(&row.fix, "ulimit -s 8192");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_stack = {
    .id = "limits.stack",
    .family = "limits",
    .title = "The stack limit suits the threads of NCCL",
    .eval = eval_stack,
    .doc = "Facts: limits.stack, nccl.version.\n"
           "WARN below 2 MiB, and when unlimited with NCCL before 2.28.3: glibc then gives "
           "threads 2 MiB on x86-64 (NCCL user guide, troubleshooting).",
};

static void eval_shm(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_shm, "/dev/shm");
    long long size = shk_facts_get_int(ctx->facts, "shm.size", -1);
    long long space = shk_facts_get_int(ctx->facts, "shm.free", -1);
    row.fact = "shm.size, shm.free";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (size < 0) {
        shk_row_unread(findings, &row, ctx->facts, "shm.size");
        return;
    }
    char *text = shk_bytes_text(size), *left = space >= 0 ? shk_bytes_text(space) : NULL;
    shk_row_text(&row.observed, "%s%s%s", text ? text : "", left ? ", free " : "",
                 left ? left : "");
    free(text);
    free(left);
    long long gpus = shk_gpu_count(ctx->facts);
    if (gpus == 0) {
        shk_row_na(findings, &row,
                   "no GPU on this node: the collective test shows whether it is "
                   "enough for host memory");
        return;
    }
    shk_row_text(&row.expected, "at least 1 GiB");
    shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    if (size < GIB) {
        row.verdict = size <= 64 * MIB && gpus > 1 ? SHK_FAIL : SHK_WARN;
        row.diagnosis = "shm-too-small";
        shk_row_text(&row.why, "NCCL and data loaders put shared segments there%s",
                     shk_container(ctx->facts) ? "; container engines give 64 MiB" : "");
        shk_row_text(&row.fix, shk_container(ctx->facts) ? "--shm-size=1g, or --ipc=host"
                                                         : "mount -o remount,size=50%% /dev/shm");
    } else if (space >= 0 && space < 64 * MIB) {
        row.verdict = SHK_WARN;
        row.diagnosis = "stale-resources-previous-job";
        shk_row_text(&row.why, "nearly full: segments of an earlier job are still there");
        shk_row_text(&row.fix, "ls -l /dev/shm, and remove what no process uses");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_shm = {
    .id = "shm.size",
    .family = "limits",
    .title = "/dev/shm has room for shared-memory transport",
    .eval = eval_shm,
    .doc = "Facts: shm.size, shm.free, pci.count.*.\n"
           "On nodes with GPUs: below 1 GiB WARN (the size that NCCL's troubleshooting page gives "
           "containers), at 64 MiB or less, the container default, with several GPUs FAIL; less "
           "than 64 MiB free WARN. Without GPUs n/a.",
};
