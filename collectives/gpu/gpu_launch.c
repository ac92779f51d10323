#include "collectives/gpu/gpu_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdio.h>

/* Threads of a block, and what each moves per step of the two-shot kernels (kernels.cu). */
#define LAUNCH_THREADS 512U

/* One-shot moves every vector to every rank and twice the bytes, two-shot waits three times for a
 * peer: below this many bytes times peers one-shot is faster. */
#define LAUNCH_CROSSOVER ((size_t)512 << 10)

/* Push waits for every tile but only ever writes to others, which links do faster than reads: above
 * this it is ahead. Two H200 over 18 links of NVLink 4, busbw of two-shot and push in GB/s: 276 and
 * 273 at 8 MiB, 303 and 298 at 16, 332 and 355 at 64, 339 and 361 at 256, 343 and 364 at 1024. */
#define LAUNCH_PUSH_FROM ((size_t)24 << 20)

/* Exchange sends as much as two-shot reads and writes, and waits once instead of three times, but
 * for a fence that one-shot does not need. Two H200 over 18 links of NVLink 4, one-shot, exchange
 * and two-shot in us: 5.6, 6.5 and - at 256 KiB, 7.9, 7.1 and - at 512, -, 8.8 and 11.8 at 1 MiB,
 * -, 18.6 and 20.1 at 4, -, 31.9 and 31.8 at 8. */
#define LAUNCH_EXCHANGE_FROM ((size_t)384 << 10)

/* In lines of 128 bytes the same exchange has a flag in every line and waits for no fence. The same
 * GPUs, one-shot, exchange, two-shot and this in us, launches overlapping: 3.2, -, - and 3.3 at 32
 * KiB, 3.4, -, - and 3.4 at 64, 4.6, -, - and 3.9 at 256, -, 6.1, - and 4.8 at 512, -, 11.2, -
 * and 9.8 at 2 MiB, -, -, 32.5 and 29 at 8, -, -, 59.4 and 54.8 at 16; push 96.5 and this 104.5
 * at 32. */
#define LAUNCH_LL128_FROM ((size_t)64 << 10)

/* One-shot: more blocks only add launch time. The others: fewer leave links idle, and all should
 * run at once, which 132 processors allow. */
#define LAUNCH_ONESHOT_BLOCKS  64U
#define LAUNCH_TWOSHOT_BLOCKS  132U
#define LAUNCH_PUSH_BLOCKS     132U
#define LAUNCH_EXCHANGE_BLOCKS 132U
#define LAUNCH_LL128_BLOCKS    264U

static unsigned launch_variant(unsigned ranks)
{
    return ranks == 2 || ranks == 4 || ranks == 8 ? ranks : 0;
}

static unsigned launch_unroll(unsigned ranks, enum gpu_algorithm algorithm)
{
    if (algorithm == GPU_PUSH)
        return ranks == 2 ? 4 : 2;
    if (algorithm == GPU_MULTIMEM)
        return 4;
    switch (algorithm == GPU_ONESHOT ? 1 : launch_variant(ranks)) {
    case 1: return 1;
    case 2: return 8;
    case 8: return 2;
    default: return 4;
    }
}

static int launch_function(struct gpu_rank *g, void **function_p, struct shk_error *err,
                           const char *prefix, const char *suffix)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", prefix, suffix);
    return gpu_ok(g, g->gpu.api.module_function(function_p, g->module, name), err, "kernel %s",
                  name);
}

static int launch_functions(struct gpu_rank *g, struct shk_error *err)
{
    char variant[16] = "n";
    char name[48];
    int rc = 0;

    if (launch_variant(g->ranks) != 0)
        snprintf(variant, sizeof variant, "%u", g->ranks);
    for (unsigned type = 0; type < SHK_GPU_TYPE_COUNT && rc == 0; type++) {
        const char *tag = shk_gpu_type_tag((enum shk_gpu_type)type);

        rc = launch_function(g, &g->reduce[GPU_ONESHOT][type], err, "shk_oneshot_", tag);
        snprintf(name, sizeof name, "shk_twoshot_%s_", tag);
        if (rc == 0)
            rc = launch_function(g, &g->reduce[GPU_TWOSHOT][type], err, name, variant);
        if (rc == 0)
            rc = launch_function(g, &g->reduce[GPU_EXCHANGE][type], err, "shk_exchange_", tag);
        if (rc == 0)
            rc = launch_function(g, &g->reduce[GPU_LL128][type], err, "shk_ll128_", tag);
        snprintf(name, sizeof name, "shk_push_%s_", tag);
        if (rc == 0) {
            rc = launch_function(g, &g->reduce[GPU_PUSH][type], err, name,
                                 g->ranks == 2 ? "2" : "n");
        }
        if (rc == 0)
            rc = launch_function(g, &g->reduce[GPU_MULTIMEM][type], err, "shk_multimem_", tag);
        if (rc == 0)
            rc = launch_function(g, &g->fill[type], err, "shk_fill_", tag);
        if (rc == 0)
            rc = launch_function(g, &g->check[type], err, "shk_check_", tag);
    }
    if (rc == 0)
        rc = launch_function(g, &g->sum[SHK_GPU_F32], err, "shk_sum_", "f32");
    if (rc == 0)
        rc = launch_function(g, &g->sum[SHK_GPU_I32], err, "shk_sum_", "i32");
    return rc == 0 ? launch_function(g, &g->delay, err, "shk_delay", "") : rc;
}

int gpu_kernels_load(struct gpu_rank *g, struct shk_error *err)
{
    size_t len = 0;
    const void *image = g->run->tweaks->image;
    int rc = 0;

    image = image ? image : shk_kernels_image(&len);
    if (g->gpu.vendor == GPU_HIP || !image) {
        return g->run->path->kernels
                   ? gpu_fail(g, GPU_CAUSE_NA,
                              shk_error_set(err, ENOSYS,
                                            "this build has no kernels: it was built without a "
                                            "CUDA compiler (nvcc)"))
                   : 0;
    }
    shk_crumb_call("cuModuleLoadData");
    rc = gpu_ok(g, g->gpu.api.module_load(&g->module, image), err, "load of the kernels");
    if (rc == 0)
        rc = launch_functions(g, err);
    /* Without kernels of our own the library's collectives can still be run and verified. */
    if (rc < 0 && !g->run->path->kernels) {
        g->module = NULL;
        return 0;
    }
    return rc;
}

int gpu_launch(struct gpu_rank *g, void *function, unsigned blocks, unsigned threads, void **params,
               struct shk_error *err, const char *what)
{
    return gpu_ok(
        g, g->gpu.api.launch(function, blocks, 1, 1, threads, 1, 1, 0, g->stream, params, NULL),
        err, "launch of %s", what);
}

/* Every kernel of an all-reduce waits for what is ahead of it in the stream before it reads
 * anything (begin() in kernels_common.cuh). */
static int launch_reduce(struct gpu_rank *g, void *function, unsigned blocks, unsigned threads,
                         void **params, struct shk_error *err)
{
    struct gpu_launch_attribute overlap = {.id = GPU_ATTRIBUTE_OVERLAP, .value.on = 1};
    struct gpu_launch_config config = {
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .stream = g->stream,
        .attributes = &overlap,
        .attribute_count = 1,
    };

    return g->overlap ? gpu_ok(g, g->gpu.api.launch_with(&config, function, params, NULL), err,
                               "launch of the all-reduce")
                      : gpu_launch(g, function, blocks, threads, params, err, "the all-reduce");
}

size_t gpu_push_from(const struct gpu_rank *g)
{
    size_t forced = g->run->tweaks->push_from;

    return g->ranks < 2 ? 0 : forced != 0 ? forced : g->ranks == 2 ? LAUNCH_PUSH_FROM : 0;
}

/* Steps of a warp of GPU_LL128. */
static size_t launch_steps(size_t bytes)
{
    const size_t step = (size_t)SHK_GPU_LL128_VECTORS * 16;

    return (bytes + step - 1) / step;
}

/* Is there room for the whole message in the other rank's stage? */
static bool launch_exchanges(const struct gpu_rank *g, size_t bytes)
{
    const struct gpu_heap *heap = &g->heap;

    return heap->lines ? bytes >= LAUNCH_LL128_FROM &&
                             launch_steps(bytes) * SHK_GPU_LL128_BYTES <= heap->stage_bytes
                       : bytes >= LAUNCH_EXCHANGE_FROM && bytes <= heap->stage_bytes;
}

enum gpu_algorithm gpu_kernel_algorithm(const struct gpu_rank *g, const struct gpu_op *op)
{
    size_t bytes = op->count * shk_gpu_type_bytes(op->type);
    size_t peers = g->ranks > 1 ? g->ranks - 1 : 1;
    bool aligned = ((op->in | op->out) & 15) == 0;

    if (aligned && gpu_engines_take(g, op))
        return GPU_ENGINES;
    if (g->heap.scratch_bytes > 0 && bytes >= gpu_push_from(g) && aligned)
        return GPU_PUSH;
    if (aligned && launch_exchanges(g, bytes))
        return g->heap.lines ? GPU_LL128 : GPU_EXCHANGE;
    return bytes * 2 <= g->heap.slot_bytes && bytes * peers <= LAUNCH_CROSSOVER ? GPU_ONESHOT
                                                                                : GPU_TWOSHOT;
}

/* Blocks for so many items, the same on every rank: it follows from what all agree on. */
static unsigned launch_blocks(const struct gpu_rank *g, size_t items, size_t per_block,
                              unsigned most, unsigned threads)
{
    size_t blocks = (items + per_block - 1) / per_block;
    size_t at_once =
        (size_t)g->processors * (2048 / 2 / threads); /* of 2048 threads, 64 registers */

    most = at_once > 0 && at_once < most ? (unsigned)at_once : most;
    return blocks < 1 ? 1 : blocks > most ? most : (unsigned)blocks;
}

static void launch_grid(const struct gpu_rank *g, const struct gpu_op *op,
                        enum gpu_algorithm algorithm, unsigned *blocks_p, unsigned *threads_p)
{
    size_t bytes = op->count * shk_gpu_type_bytes(op->type);
    size_t items = algorithm == GPU_ONESHOT ? (bytes + 7) / 8 : (bytes / 16 + g->ranks) / g->ranks;
    size_t per = algorithm == GPU_EXCHANGE ? 2 : launch_unroll(g->ranks, algorithm);
    unsigned most = algorithm == GPU_ONESHOT ? LAUNCH_ONESHOT_BLOCKS : LAUNCH_TWOSHOT_BLOCKS;
    unsigned threads = LAUNCH_THREADS;

    if (algorithm == GPU_EXCHANGE) { /* half of the threads where all blocks have some */
        items = bytes / 16;
        most = LAUNCH_EXCHANGE_BLOCKS;
        threads = items <= most * SHK_GPU_EXCHANGE_THREADS ? SHK_GPU_EXCHANGE_THREADS / 2
                                                           : SHK_GPU_EXCHANGE_THREADS;
    } else if (algorithm == GPU_LL128) {
        items = launch_steps(bytes); /* of a warp */
        most = LAUNCH_LL128_BLOCKS;
        threads = SHK_GPU_LL128_THREADS;
    } else if (algorithm == GPU_PUSH) {
        threads = SHK_GPU_PUSH_THREADS;
        most = LAUNCH_PUSH_BLOCKS;
    } else if (algorithm == GPU_ONESHOT && items < LAUNCH_THREADS) {
        threads = (unsigned)(items + 31) / 32 * 32;
    } else if (algorithm == GPU_TWOSHOT && items <= most * LAUNCH_THREADS * per) {
        threads = LAUNCH_THREADS / 2; /* more processors at work */
    }
    *threads_p = threads;
    *blocks_p = launch_blocks(g, items, algorithm == GPU_LL128 ? threads / 32 : threads * per, most,
                              threads);
}

int gpu_kernel_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err)
{
    enum gpu_algorithm algorithm = g->run->path->algorithm(g, op);
    struct shk_gpu_reduce args = {
        .in = op->in,
        .out = op->out,
        .control = g->heap.control,
        .slots = g->heap.slots,
        .slot_bytes = g->heap.slot_bytes,
        .scratch = g->heap.scratch,
        .scratch_bytes = g->heap.scratch_bytes,
        .stage = g->heap.stage,
        .stage_bytes = g->heap.stage_bytes,
        .multicast = g->multicast,
        .count = op->count,
        .timeout_ns = g->kernel_timeout_ns,
        .rank = g->rank,
        .ranks = g->ranks,
    };
    void *params[] = {&args};
    unsigned threads = 0;
    unsigned blocks = 0;

    if (op->count == 0)
        return 0;
    if (algorithm == GPU_ENGINES)
        return gpu_engines_reduce(g, op, err);
    for (unsigned rank = 0; rank < g->ranks; rank++)
        args.base[rank] = g->base[rank];
    launch_grid(g, op, algorithm, &blocks, &threads);
    return launch_reduce(g, g->reduce[algorithm][op->type], blocks, threads, params, err);
}

int gpu_kernel_delay(struct gpu_rank *g, unsigned ms, struct shk_error *err)
{
    uint64_t ns = ms * UINT64_C(1000000);
    void *params[] = {&ns};

    return gpu_launch(g, g->delay, 1, 1, params, err, "the delay");
}

int gpu_late(struct gpu_rank *g, unsigned peer, unsigned late, struct shk_error *err)
{
    static const char *const what[] = {
        [SHK_GPU_OK] = "",
        [SHK_GPU_LATE_START] = "start the operation",
        [SHK_GPU_LATE_DATA] = "send its data",
        [SHK_GPU_LATE_END] = "finish the operation",
    };
    int rc = shk_error_set(err, ETIMEDOUT, "rank %u did not %s within %llu ms", peer,
                           late <= SHK_GPU_LATE_END ? what[late] : "arrive",
                           (unsigned long long)(g->kernel_timeout_ns / 1000000));

    shk_job_fail(g->job, ETIMEDOUT, true, err->text);
    return gpu_fail(g, GPU_CAUSE_LATE, rc);
}

static int launch_late(struct gpu_rank *g, struct shk_error *err)
{
    struct shk_gpu_control head;
    size_t bytes = offsetof(struct shk_gpu_control, ticket);
    int rc = gpu_ok(g, g->gpu.api.to_host(&head, g->base[g->rank] + g->heap.control, bytes), err,
                    "read of the control block");

    return rc < 0 || head.error == SHK_GPU_OK ? rc : gpu_late(g, head.error_peer, head.error, err);
}

int gpu_wait(struct gpu_rank *g, struct shk_error *err)
{
    int rc = gpu_settle(g, err);

    return rc == 0 && g->run->path->kernels ? launch_late(g, err) : rc;
}
