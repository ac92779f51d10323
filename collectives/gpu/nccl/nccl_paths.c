#include "collectives/gpu/nccl/nccl_comm.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <string.h>

/* Written to each heap's guard-free start of the send area before the pointers are trusted. */
#define LSA_MARK(rank_) (0x15a00000U + (rank_))

static enum gpu_algorithm library_algorithm(const struct gpu_rank *g, const struct gpu_op *op)
{
    (void)g;
    (void)op;
    return GPU_LIBRARY;
}

static int plain_memory(struct gpu_rank *g, struct shk_error *err)
{
    int rc = nccl_comm_memory(g, false, err);

    shk_crumb_call("ncclAllReduce"); /* what comes next */
    return rc;
}

static int window_memory(struct gpu_rank *g, struct shk_error *err)
{
    int rc = nccl_comm_memory(g, false, err);

    if (rc == 0)
        rc = nccl_comm_window(g, err);
    shk_crumb_call("ncclAllReduce");
    return rc;
}

/* Versions without a host function: one thread of a kernel built with NCCL's own header. */
static int lsa_pointers_by_kernel(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    struct nccl_comm *comm = g->comm;
    unsigned char head[32];
    void *function = NULL;
    gpu_ptr at = 0;
    size_t bytes = 0;
    int headers = 0;
    int ranks = (int)g->ranks;
    char have[24];
    void *params[] = {&comm->window, &ranks, &comm->pointers};
    int rc = 0;

    if (api->module_global(&at, &bytes, g->module, "shk_nccl_headers") != GPU_SUCCESS ||
        api->to_host(&headers, at, sizeof headers) != GPU_SUCCESS ||
        !nccl_window_fits(headers, comm->lib.version)) {
        nccl_version_text(comm->lib.version, have, sizeof have);
        return gpu_fail(
            g, GPU_CAUSE_NA,
            shk_error_set(err, ENOSYS,
                          "NCCL %s gives no device pointers to the host, and this build "
                          "has no kernel for its windows (headers %d)",
                          have, headers));
    }
    /* A window without effect is a host structure, which a kernel must not touch. */
    if (api->to_host(head, (gpu_ptr)(uintptr_t)comm->window, sizeof head) != GPU_SUCCESS) {
        /* so it is with NCCL 2.28 on one H200, where there is nobody to share it with */
        if (g->ranks > 1)
            return nccl_comm_no_window(g, err, "the window is not on the GPU");
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, ENOTSUP,
                                      "NCCL makes no symmetric memory for one rank: the window is "
                                      "not on the GPU"));
    }
    rc =
        gpu_ok(g, api->alloc(&comm->pointers, ranks * sizeof *g->base), err, "memory for pointers");
    if (rc == 0) {
        rc = gpu_ok(g, api->module_function(&function, g->module, "shk_lsa_pointers"), err,
                    "kernel shk_lsa_pointers");
    }
    if (rc == 0)
        rc = gpu_launch(g, function, 1, 1, params, err, "shk_lsa_pointers");
    if (rc == 0)
        rc = gpu_ok(g, api->stream_wait(g->stream), err, "shk_lsa_pointers");
    return rc == 0 ? gpu_ok(g, api->to_host(g->base, comm->pointers, ranks * sizeof g->base[0]),
                            err, "read of the pointers")
                   : rc;
}

static int lsa_pointers(struct gpu_rank *g, struct shk_error *err)
{
    const struct nccl_api *api = &g->comm->lib.api;
    int rc = 0;

    if (!api->lsa_pointer)
        return lsa_pointers_by_kernel(g, err);
    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        void *at = NULL;

        rc = nccl_ok(g, api->lsa_pointer(g->comm->window, 0, (int)peer, &at), err,
                     "ncclGetLsaDevicePointer");
        g->base[peer] = (gpu_ptr)(uintptr_t)at;
        if (rc == 0 && !at) {
            rc = gpu_fail(g, GPU_CAUSE_NO_WINDOW,
                          shk_error_set(err, ENOTSUP, "no pointer to rank %u", peer));
        }
    }
    return rc;
}

/* Each pointer leads to the memory of its rank: copies fail where a kernel would crash. */
static int lsa_trust(struct gpu_rank *g, gpu_ptr own, struct shk_error *err)
{
    uint32_t mark = LSA_MARK(g->rank);
    int rc = gpu_put(g, own + g->heap.send, &mark, sizeof mark, err);

    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        mark = 0;
        rc = gpu_ok(g, g->gpu.api.to_host(&mark, g->base[peer] + g->heap.send, sizeof mark), err,
                    "read through the pointer to rank %u", peer);
        if (rc == 0 && mark != LSA_MARK(peer)) {
            rc = gpu_fail(g, GPU_CAUSE_NO_WINDOW,
                          shk_error_set(err, ENOTSUP,
                                        "no symmetric memory: the pointer to rank %u leads "
                                        "elsewhere",
                                        peer));
        }
    }
    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

static int lsa_memory(struct gpu_rank *g, struct shk_error *err)
{
    gpu_ptr own = 0;
    int rc = nccl_comm_memory(g, true, err);

    own = g->base[g->rank];
    if (rc == 0)
        rc = nccl_comm_window(g, err);
    shk_job_set_phase(g->job, SHK_PHASE_EXCHANGE, 0);
    if (rc == 0)
        rc = lsa_pointers(g, err);
    if (rc == 0)
        rc = lsa_trust(g, own, err);
    /* Same memory; the address that was registered is the one to free. */
    g->base[g->rank] = own;
    return rc;
}

const struct gpu_path gpu_path_nccl = {
    .name = "nccl",
    .doc = "verified ncclAllReduce as frameworks call it",
    .vendor = GPU_CUDA,
    .nccl = true,
    .open = nccl_comm_open,
    .memory = plain_memory,
    .reduce = nccl_comm_reduce,
    .extra = nccl_comm_prove,
    .close = nccl_comm_close,
    .leave = nccl_comm_leave,
    .again = nccl_comm_again,
    .algorithm = library_algorithm,
};

const struct gpu_path gpu_path_nccl_window = {
    .name = "nccl-window",
    .doc = "verified ncclAllReduce on symmetric windows",
    .vendor = GPU_CUDA,
    .nccl = true,
    .open = nccl_comm_open,
    .memory = window_memory,
    .reduce = nccl_comm_reduce,
    .extra = nccl_comm_prove,
    .close = nccl_comm_close,
    .leave = nccl_comm_leave,
    .again = nccl_comm_again,
    .algorithm = library_algorithm,
};

const struct gpu_path gpu_path_rccl = {
    .name = "rccl",
    .doc = "verified ncclAllReduce of RCCL on AMD GPUs",
    .vendor = GPU_HIP,
    .nccl = true,
    .open = nccl_comm_open,
    .memory = plain_memory,
    .reduce = nccl_comm_reduce,
    .extra = nccl_comm_prove,
    .close = nccl_comm_close,
    .leave = nccl_comm_leave,
    .again = nccl_comm_again,
    .algorithm = library_algorithm,
};

const struct gpu_path gpu_path_lsa = {
    .name = "lsa",
    .doc = "the same kernels through the pointers of an NCCL symmetric window",
    .vendor = GPU_CUDA,
    .kernels = true,
    .nccl = true,
    .open = nccl_comm_open,
    .memory = lsa_memory,
    .reduce = gpu_kernel_reduce,
    .extra = nccl_comm_prove,
    .close = nccl_comm_close,
    .leave = nccl_comm_leave,
    .again = nccl_comm_again,
    .algorithm = gpu_kernel_algorithm,
};
