#include "collectives/gpu/multicast/gpu_multicast.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rank r's word for the test of the address: the sum tells which ranks are in it. */
#define MULTIMEM_BIT(rank_)  (UINT32_C(1) << (rank_))
#define MULTIMEM_MARK(rank_) (UINT32_C(0x3c000000) + (rank_))

static struct gpu_multicast the_team;

/* As NCCL reads it: 0 turns NVLS off, anything else leaves it on. */
static bool nvls_off(void)
{
    const char *text = getenv(shk_variable("nvlink-multicast"));
    char *end = NULL;

    return text && *text != '\0' && strtoll(text, &end, 0) == 0 && end != text && *end == '\0';
}

/* Whether this rank may use multicast; nothing of it has been touched yet. */
static int multimem_gate(struct gpu_rank *g, struct shk_error *err)
{
    int supported = 0;

    if (nvls_off()) {
        return shk_error_set(err, ENOTSUP, "%s=%.20s: multicast is disabled",
                             shk_variable("nvlink-multicast"),
                             getenv(shk_variable("nvlink-multicast")));
    }
    if (g->ranks < 2)
        return shk_error_set(err, ENOTSUP, "multicast needs at least 2 ranks");
    if (g->gpu.api.device_attribute(&supported, GPU_ATTR_MULTICAST, g->device) != GPU_SUCCESS) {
        return shk_error_set(err, ENOTSUP,
                             "the driver (CUDA %d.%d) has no multicast, which came with 12.1",
                             g->driver / 1000, g->driver % 1000 / 10);
    }
    return supported != 0
               ? 0
               : shk_error_set(
                     err, ENOTSUP,
                     "GPU %d (%s) has no multicast: it needs Hopper or later, and NVSwitch",
                     g->ordinal, g->pci);
}

static int multimem_open(struct gpu_rank *g, struct shk_error *err)
{
    int rc = multimem_gate(g, err);

    if (rc < 0)
        return gpu_fail(g, GPU_CAUSE_NA, rc);
    /* Not before every rank may. */
    rc = shk_job_fence(g->job, 0, err);
    return rc == 0 ? gpu_multicast_open(g, &the_team, err) : rc;
}

static int probe_text(struct gpu_rank *g, struct shk_error *err, const char *what, unsigned rank)
{
    return gpu_fail(g, GPU_CAUSE_NO_MULTICAST,
                    shk_error_set(err, EILSEQ,
                                  "the multicast address does not reach all ranks: %s rank %u",
                                  what, rank));
}

static int probe_launch(struct gpu_rank *g, struct shk_error *err)
{
    uint64_t from = the_team.at + g->heap.send;
    uint64_t to = the_team.at + g->heap.recv + g->rank * sizeof(uint32_t);
    uint32_t mark = MULTIMEM_MARK(g->rank);
    void *params[] = {&from, &to, &mark, &g->result};
    void *function = NULL;
    int rc = gpu_ok(g, g->gpu.api.module_function(&function, g->module, "shk_multicast_probe"), err,
                    "kernel shk_multicast_probe");

    if (rc == 0)
        rc = gpu_launch(g, function, 1, 1, params, err, "shk_multicast_probe");
    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "test of the multicast address");
    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

/* Sums and stores through the address reach every rank, each once. */
static int multimem_probe(struct gpu_rank *g, struct shk_error *err)
{
    uint32_t all = MULTIMEM_BIT(g->ranks) - 1;
    uint32_t word = MULTIMEM_BIT(g->rank);
    uint32_t marks[SHK_GPU_MAX_RANKS];
    int rc = gpu_put(g, g->base[g->rank] + g->heap.send, &word, sizeof word, err);

    shk_crumb_call("test of the multicast address");
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    if (rc == 0)
        rc = probe_launch(g, err);
    if (rc == 0)
        rc = gpu_ok(g, g->gpu.api.to_host(&word, g->result, sizeof word), err, "read of the sum");
    if (rc == 0) {
        rc = gpu_ok(
            g,
            g->gpu.api.to_host(marks, g->base[g->rank] + g->heap.recv, g->ranks * sizeof marks[0]),
            err, "read of the marks");
    }
    for (unsigned rank = 0; rank < g->ranks && rc == 0; rank++) {
        if ((word & MULTIMEM_BIT(rank)) == 0 || (word & ~all) != 0)
            rc = probe_text(g, err, "the sum lacks", rank);
        else if (marks[rank] != MULTIMEM_MARK(rank))
            rc = probe_text(g, err, "no store arrived from", rank);
    }
    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

static int multimem_memory(struct gpu_rank *g, struct shk_error *err)
{
    int rc = gpu_heap_plan(g, false, err);

    if (rc == 0)
        rc = gpu_multicast_memory(g, &the_team, err);
    if (rc == 0)
        rc = gpu_multicast_team(g, &the_team, err);
    g->multicast = the_team.at;
    return rc == 0 ? multimem_probe(g, err) : rc;
}

/* What the probe has shown, or this would not be reached. */
static int multimem_prove(struct gpu_rank *g, struct shk_error *err)
{
    char text[160];

    snprintf(text, sizeof text,
             "{\"multicast\": true, \"devices\": %u, \"bytes\": %zu, \"granularity\": %zu, "
             "\"via\": \"NVLS\"}",
             g->ranks, the_team.bytes, the_team.granularity);
    return shk_job_put(g->job, GPU_KEY_PROOF, text, strlen(text) + 1, err);
}

static void multimem_close(struct gpu_rank *g)
{
    gpu_multicast_close(g, &the_team);
}

static enum gpu_algorithm multimem_algorithm(const struct gpu_rank *g, const struct gpu_op *op)
{
    (void)g;
    (void)op;
    return GPU_MULTIMEM;
}

const struct gpu_path gpu_path_multimem = {
    .name = "multimem",
    .doc = "verified all-reduce by NVLink switches, through multicast memory (NVLS)",
    .vendor = GPU_CUDA,
    .kernels = true,
    .open = multimem_open,
    .memory = multimem_memory,
    .reduce = gpu_kernel_reduce,
    .extra = multimem_prove,
    .close = multimem_close,
    .algorithm = multimem_algorithm,
};
