#include "collectives/gpu/gpu_private.h"
#include "collectives/gpu/load/gpu_copies.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PEER_KEY_HANDLE "gpu.ipc"

/* Copies timed for the rate between two GPUs, and how long. */
#define PEER_COPY_BYTES   ((size_t)256 << 20)
#define PEER_COPY_REPEATS 8U

/* *way_p: enum gpu_access. Not an error when access is what lacks: first all are tried. */
static int peer_map(struct gpu_rank *g, unsigned peer, uint8_t *way_p, struct shk_error *err)
{
    struct gpu_ipc handle;
    size_t len = 0;
    int status = 0;
    int rc = shk_job_get(g->job, peer, PEER_KEY_HANDLE, &handle, sizeof handle, &len, err);

    if (rc < 0)
        return rc;
    shk_crumb_call("cuIpcOpenMemHandle of rank %u", peer);
    status = g->gpu.api.ipc_open(&g->base[peer], handle, GPU_IPC_LAZY_PEER);
    if (status == GPU_OUT_OF_MEMORY) {
        rc = gpu_check(&g->gpu, status, err, "memory of rank %u cannot be mapped on GPU %d (%s)",
                       peer, g->ordinal, g->pci);
        return gpu_fail(g, GPU_CAUSE_MEMORY, rc);
    }
    *way_p = GPU_ACCESS_OK;
    if (status != GPU_SUCCESS) {
        g->base[peer] = 0;
        *way_p = gpu_access_offered(g, peer) == GPU_ACCESS_REFUSED ? GPU_ACCESS_REFUSED
                                                                   : GPU_ACCESS_BROKEN;
        (void)gpu_check(&g->gpu, status, err, "cuIpcOpenMemHandle");
    }
    return 0;
}

/* The same on every rank: that two GPUs do not reach each other is the fault of neither. `last`:
 * what the driver said, "" when not to this rank. */
static int peer_judge(struct gpu_rank *g, const char *last, struct shk_error *err)
{
    char pairs[400];

    if (gpu_access_lacking(g, GPU_ACCESS_BROKEN, pairs, sizeof pairs) > 0) {
        return gpu_fail(g, GPU_CAUSE_NO_PEER,
                        shk_error_set(err, ENOTSUP,
                                      "memory cannot be mapped between the GPUs %s, and the driver "
                                      "does not say that they lack peer access%s%s",
                                      pairs, *last != '\0' ? ": " : "", last));
    }
    if (gpu_access_lacking(g, GPU_ACCESS_REFUSED, pairs, sizeof pairs) > 0) {
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, ENOTSUP,
                                      "the driver offers no peer access between the GPUs %s",
                                      pairs));
    }
    return 0;
}

static int peer_exchange(struct gpu_rank *g, struct shk_error *err)
{
    uint8_t ways[SHK_GPU_MAX_RANKS] = {GPU_ACCESS_UNKNOWN};
    struct shk_error last = {{0}};
    struct gpu_ipc handle;
    int rc = gpu_ok(g, g->gpu.api.ipc_get(&handle, g->base[g->rank]), err, "cuIpcGetMemHandle");

    if (rc == 0)
        rc = shk_job_put(g->job, PEER_KEY_HANDLE, &handle, sizeof handle, err);
    shk_job_set_phase(g->job, SHK_PHASE_EXCHANGE, 0);
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        if (peer != g->rank)
            rc = peer_map(g, peer, &ways[peer], &last);
    }
    if (rc < 0) {
        *err = last;
        return rc;
    }
    rc = rc == 0 ? gpu_access_put(g, ways, err) : rc;
    rc = rc == 0 ? peer_judge(g, last.text, err) : rc;
    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

static int peer_memory(struct gpu_rank *g, struct shk_error *err)
{
    int rc = gpu_heap_plan(g, true, err);

    if (rc == 0) {
        rc = gpu_ok(g, g->gpu.api.alloc(&g->base[g->rank], g->heap.bytes), err,
                    "%zu bytes on GPU %d", g->heap.bytes, g->ordinal);
    }
    if (rc == 0)
        rc = gpu_heap_prepare(g, err);
    return rc == 0 ? peer_exchange(g, err) : rc;
}

/* Rate of copies to the next rank in GB/s; all ranks copy when `all`, else rank 0 only. */
static int peer_copy(struct gpu_rank *g, size_t bytes, bool all, double *gbs_p,
                     struct shk_error *err)
{
    unsigned next = (g->rank + 1) % g->ranks;
    uint64_t start = 0;
    uint64_t ns = 0;
    int rc = gpu_barrier(g, err);

    start = shk_job_now_ns();
    for (unsigned i = 0; i < PEER_COPY_REPEATS && rc == 0 && (all || g->rank == 0); i++) {
        rc = gpu_ok(g,
                    g->gpu.api.copy(g->base[next] + g->heap.recv, g->base[g->rank] + g->heap.send,
                                    bytes, g->stream),
                    err, "copy to rank %u", next);
    }
    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "copy to rank %u", next);
    ns = all || g->rank == 0 ? shk_job_now_ns() - start : 0;
    if (rc == 0) {
        rc = shk_job_barrier(g->job, ns, &ns, NULL, NULL);
        *gbs_p = ns > 0 ? (double)bytes * PEER_COPY_REPEATS / (double)ns : 0;
    }
    return rc;
}

/* What the links do without any arithmetic: the yardstick for the kernels. */
static int peer_extra(struct gpu_rank *g, struct shk_error *err)
{
    size_t bytes = g->heap.area_bytes < PEER_COPY_BYTES ? g->heap.area_bytes : PEER_COPY_BYTES;
    double rates[2] = {0, 0};
    double warm = 0;
    int rc = 0;

    rc = gpu_copies_measure(g, err);
    rc = rc == 0 ? gpu_stress_run(g, err) : rc;
    if (g->ranks < 2)
        return rc;
    rc = rc == 0 ? peer_copy(g, bytes, true, &warm, err) : rc;
    if (rc == 0)
        rc = peer_copy(g, bytes, false, &rates[0], err);
    if (rc == 0)
        rc = peer_copy(g, bytes, true, &rates[1], err);
    return rc == 0 ? shk_job_put(g->job, GPU_KEY_COPY, rates, sizeof rates, err) : rc;
}

static void peer_close(struct gpu_rank *g)
{
    for (unsigned peer = 0; peer < g->ranks; peer++) {
        if (peer != g->rank && g->base[peer] != 0)
            (void)g->gpu.api.ipc_close(g->base[peer]);
    }
    /* Nobody frees what another still has mapped. */
    if (shk_job_fence(g->job, 2000, NULL) == 0)
        (void)g->gpu.api.release(g->base[g->rank]);
}

const struct gpu_path gpu_path_peer = {
    .name = "peer",
    .doc = "verified all-reduce by own kernels through CUDA IPC, without NCCL",
    .vendor = GPU_CUDA,
    .kernels = true,
    .memory = peer_memory,
    .reduce = gpu_kernel_reduce,
    .extra = peer_extra,
    .close = peer_close,
    .leave = peer_close,
    .algorithm = gpu_kernel_algorithm,
};
