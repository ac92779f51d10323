#include "collectives/gpu/gpu_private.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>

/* Stores of kernels reach 0.93 of what the engines copy, but each change between a copy and
 * anything else in a stream costs them some 5 us. Two H200 over 18 links of NVLink 4, push and this
 * in GB/s: 358 and some 353 at 128 MiB, 360 and 376 at 256, 363 and 384 at 512, 363 and 388 at
 * 1024; cut into three pieces instead of two, 369 at 256 and 380 at 512. */
#define ENGINES_FROM ((size_t)256 << 20)

#define ENGINES_BLOCKS  132U
#define ENGINES_THREADS 512U

/* Bytes of an operation, from its first: what a rank sums, in halves. */
struct engines_part {
    size_t at[3];
};

static struct engines_part engines_part(size_t bytes, unsigned rank)
{
    size_t middle = bytes / 32 * 16;
    size_t first = rank == 0 ? 0 : middle;
    size_t end = rank == 0 ? middle : bytes;

    return (struct engines_part){{first, first + (end - first) / 32 * 16, end}};
}

static bool engines_can(const struct gpu_rank *g)
{
    const struct gpu_api *api = &g->gpu.api;
    int can = 0;

    return g->gpu.vendor == GPU_CUDA && g->ranks == 2 && api->stream_query && api->stream_after &&
           api->stream_write && api->stream_until && g->sum[SHK_GPU_F32] &&
           api->device_attribute(&can, GPU_ATTR_STREAM_OPS, g->device) == GPU_SUCCESS && can != 0;
}

/* Undone at process exit. */
static int engines_make(struct gpu_rank *g)
{
    const struct gpu_api *api = &g->gpu.api;
    struct gpu_engines *e = &g->engines;
    int status = api->event_create(&e->reached, GPU_EVENT_UNTIMED);

    for (unsigned i = 0; i < 2 && status == GPU_SUCCESS; i++)
        status = api->event_create(&e->summed[i], GPU_EVENT_UNTIMED);
    return status == GPU_SUCCESS ? api->stream_create(&e->sums, GPU_STREAM_FREE) : status;
}

int gpu_engines_open(struct gpu_rank *g, bool *can_p, struct shk_error *err)
{
    uint64_t lacking = 0;
    int rc = 0;

    if (!g->engines.sums && engines_can(g) && engines_make(g) != GPU_SUCCESS)
        g->engines.sums = NULL;
    lacking = g->engines.sums ? 0 : 1;
    rc = shk_job_barrier(g->job, lacking, &lacking, NULL, NULL);
    *can_p = rc == 0 && lacking == 0;
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "barrier");
}

bool gpu_engines_take(const struct gpu_rank *g, const struct gpu_op *op)
{
    size_t forced = g->run->tweaks->engines_from;

    return g->heap.engines && g->sum[op->type] &&
           op->count * shk_gpu_type_bytes(op->type) >= (forced != 0 ? forced : ENGINES_FROM);
}

static gpu_ptr engines_flag(const struct gpu_rank *g, unsigned rank, unsigned which)
{
    return g->base[rank] + g->heap.control + offsetof(struct shk_gpu_control, copied) +
           which * sizeof(uint32_t);
}

/* Tells the other rank that its data is there. */
static int engines_mark(struct gpu_rank *g, unsigned which)
{
    return g->gpu.api.stream_write(g->stream, engines_flag(g, !g->rank, which), g->engines.started,
                                   0);
}

static int engines_until(struct gpu_rank *g, void *stream, unsigned which)
{
    return g->gpu.api.stream_until(stream, engines_flag(g, g->rank, which), g->engines.started,
                                   GPU_WAIT_REACHED);
}

/* The other rank's part of this one's input into that rank's scratch, which was free when the
 * operation before this ended on both. */
static int engines_send(struct gpu_rank *g, const struct gpu_op *op, unsigned half)
{
    unsigned peer = !g->rank;
    struct engines_part part = engines_part(op->count * shk_gpu_type_bytes(op->type), peer);
    int status = g->gpu.api.copy(g->base[peer] + g->heap.scratch + part.at[half] - part.at[0],
                                 g->base[g->rank] + op->in + part.at[half],
                                 part.at[half + 1] - part.at[half], g->stream);

    return status == GPU_SUCCESS ? engines_mark(g, SHK_GPU_COPIED_FIRST + half) : status;
}

static int engines_sum(struct gpu_rank *g, const struct gpu_op *op, unsigned half)
{
    const struct gpu_api *api = &g->gpu.api;
    size_t size = shk_gpu_type_bytes(op->type);
    struct engines_part part = engines_part(op->count * size, g->rank);
    gpu_ptr base = g->base[g->rank];
    gpu_ptr to = base + op->out + part.at[half];
    gpu_ptr own = base + op->in + part.at[half];
    gpu_ptr sent = base + g->heap.scratch + part.at[half] - part.at[0];
    uint64_t count = (part.at[half + 1] - part.at[half]) / size;
    void *params[] = {&to, &own, &sent, &count};
    int status = engines_until(g, g->engines.sums, SHK_GPU_COPIED_FIRST + half);

    if (status == GPU_SUCCESS && count > 0) {
        status = api->launch(g->sum[op->type], ENGINES_BLOCKS, 1, 1, ENGINES_THREADS, 1, 1, 0,
                             g->engines.sums, params, NULL);
    }
    return status == GPU_SUCCESS ? api->event_record(g->engines.summed[half], g->engines.sums)
                                 : status;
}

/* The other rank has sent its input, so it has started and needs nothing of its result's place. */
static int engines_return(struct gpu_rank *g, const struct gpu_op *op, unsigned half)
{
    const struct gpu_api *api = &g->gpu.api;
    struct engines_part part = engines_part(op->count * shk_gpu_type_bytes(op->type), g->rank);
    int status = api->stream_after(g->stream, g->engines.summed[half], 0);

    return status == GPU_SUCCESS ? api->copy(g->base[!g->rank] + op->out + part.at[half],
                                             g->base[g->rank] + op->out + part.at[half],
                                             part.at[half + 1] - part.at[half], g->stream)
                                 : status;
}

/* All calls in an order in which they could be carried out one by one, so that it does not matter
 * which streams share a hardware queue. Copies of one stream follow each other with hardly a gap,
 * and a half is summed while another is on its way. */
static int engines_enqueue(struct gpu_rank *g, const struct gpu_op *op)
{
    const struct gpu_api *api = &g->gpu.api;
    struct gpu_engines *e = &g->engines;
    int status = api->event_record(e->reached, g->stream);

    if (status == GPU_SUCCESS)
        status = api->stream_after(e->sums, e->reached, 0);
    for (unsigned half = 0; half < 2 && status == GPU_SUCCESS; half++)
        status = engines_send(g, op, half);
    for (unsigned half = 0; half < 2 && status == GPU_SUCCESS; half++) {
        status = engines_sum(g, op, half);
        if (status == GPU_SUCCESS)
            status = engines_return(g, op, half);
    }
    if (status == GPU_SUCCESS)
        status = engines_mark(g, SHK_GPU_COPIED_SUM);
    return status == GPU_SUCCESS ? engines_until(g, g->stream, SHK_GPU_COPIED_SUM) : status;
}

int gpu_engines_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err)
{
    g->engines.started++;
    g->engines.pending = true;
    return gpu_ok(g, engines_enqueue(g, op), err, "all-reduce by copy engines");
}

static int engines_late(struct gpu_rank *g, struct shk_error *err)
{
    uint32_t copied[SHK_GPU_COPIED_COUNT] = {0};
    int rc = gpu_ok(g, g->gpu.api.to_host(copied, engines_flag(g, g->rank, 0), sizeof copied), err,
                    "read of the control block");

    return rc < 0 ? rc
                  : gpu_late(g, !g->rank,
                             copied[SHK_GPU_COPIED_FIRST] == copied[SHK_GPU_COPIED_SUM]
                                 ? SHK_GPU_LATE_START
                                 : SHK_GPU_LATE_DATA,
                             err);
}

int gpu_settle(struct gpu_rank *g, struct shk_error *err)
{
    uint64_t end = shk_job_now_ns() + g->kernel_timeout_ns;
    int status = GPU_UNFINISHED;

    if (!g->engines.pending)
        return gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "wait for the GPU");
    while (status == GPU_UNFINISHED && shk_job_now_ns() < end)
        status = g->gpu.api.stream_query(g->stream);
    if (status == GPU_UNFINISHED)
        return engines_late(g, err);
    g->engines.pending = false;
    return gpu_ok(g, status, err, "wait for the GPU");
}
