#include "collectives/gpu/gpu_memory.h"
#include "collectives/gpu/gpu_private.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Sums without a kernel: bytes that go to the host and back at a time. */
#define MEMORY_STAGE ((size_t)1 << 20)

#define MEMORY_THREADS 256U
#define MEMORY_BLOCKS  256U

struct gpu_memory {
    struct shk_gpu_memory shown; /* first */
    struct gpu_rank gpu;
    struct gpu_run run;
    unsigned char *stage; /* two of MEMORY_STAGE; NULL: there are kernels */
};

static const struct gpu_path memory_paths[] = {
    [GPU_CUDA] = {.name = "fabric-hmem", .vendor = GPU_CUDA, .shared = true},
    [GPU_HIP] = {.name = "fabric-hmem", .vendor = GPU_HIP, .shared = true},
};

static struct gpu_memory *memory_of(struct shk_memory *memory)
{
    return (struct gpu_memory *)memory;
}

static gpu_ptr memory_at(const void *at)
{
    return (gpu_ptr)(uintptr_t)at;
}

static int memory_wait(struct gpu_rank *g, struct shk_error *err)
{
    return gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "wait for the GPU");
}

/* Until what a network device has written is what the GPU reads. */
static int memory_flush(struct gpu_memory *m, struct shk_error *err)
{
    struct gpu_rank *g = &m->gpu;

    return m->shown.flushes ? gpu_ok(g, g->gpu.api.flush_writes(GPU_FLUSH_CONTEXT, GPU_ORDER_OWNER),
                                     err, "cuFlushGPUDirectRDMAWrites")
                            : 0;
}

static int memory_alloc(struct shk_memory *memory, size_t bytes, unsigned char **base_p,
                        struct shk_error *err)
{
    struct gpu_rank *g = &memory_of(memory)->gpu;
    gpu_ptr at = 0;
    int rc = gpu_ok(g, g->gpu.api.alloc(&at, bytes), err, "%zu bytes on GPU %d", bytes, g->ordinal);

    if (rc == 0)
        *base_p = (unsigned char *)(uintptr_t)at;
    return rc;
}

static void memory_release(struct shk_memory *memory, unsigned char *base)
{
    (void)memory_of(memory)->gpu.gpu.api.release(memory_at(base));
}

static int memory_fill(struct shk_memory *memory, unsigned char *to, uint32_t word, size_t bytes,
                       struct shk_error *err)
{
    struct gpu_rank *g = &memory_of(memory)->gpu;
    int rc =
        gpu_ok(g, g->gpu.api.set_words(memory_at(to), word, bytes / sizeof(uint32_t), g->stream),
               err, "fill of %zu bytes", bytes);

    return rc == 0 ? memory_wait(g, err) : rc;
}

static int memory_store(struct shk_memory *memory, unsigned char *to, const void *from,
                        size_t bytes, struct shk_error *err)
{
    return gpu_put(&memory_of(memory)->gpu, memory_at(to), from, bytes, err);
}

static int memory_load(struct shk_memory *memory, void *to, const unsigned char *from, size_t bytes,
                       struct shk_error *err)
{
    struct gpu_memory *m = memory_of(memory);
    int rc = memory_flush(m, err);

    return rc == 0 ? gpu_ok(&m->gpu, m->gpu.gpu.api.to_host(to, memory_at(from), bytes), err,
                            "copy of %zu bytes to the host", bytes)
                   : rc;
}

static int memory_copy(struct shk_memory *memory, unsigned char *to, const unsigned char *from,
                       size_t bytes, struct shk_error *err)
{
    struct gpu_rank *g = &memory_of(memory)->gpu;
    int rc = gpu_ok(g, g->gpu.api.copy(memory_at(to), memory_at(from), bytes, g->stream), err,
                    "copy of %zu bytes", bytes);

    return rc == 0 ? memory_wait(g, err) : rc;
}

static int memory_sum_on_host(struct gpu_memory *m, enum shk_type type, unsigned char *dst,
                              const unsigned char *a, const unsigned char *b, size_t count,
                              struct shk_error *err)
{
    struct shk_memory *memory = &m->shown.memory;
    unsigned char *second = m->stage + MEMORY_STAGE;
    size_t bytes = count * SHK_TYPE_BYTES;
    int rc = 0;

    for (size_t at = 0; at < bytes && rc == 0; at += MEMORY_STAGE) {
        size_t part = bytes - at < MEMORY_STAGE ? bytes - at : MEMORY_STAGE;

        rc = memory_load(memory, m->stage, a + at, part, err);
        rc = rc == 0 ? memory_load(memory, second, b + at, part, err) : rc;
        if (rc == 0) {
            shk_reduce_sum(type, m->stage, m->stage, second, part / SHK_TYPE_BYTES);
            rc = memory_store(memory, dst + at, m->stage, part, err);
        }
    }
    return rc;
}

static int memory_sum(struct shk_memory *memory, enum shk_type type, unsigned char *dst,
                      const unsigned char *a, const unsigned char *b, size_t count,
                      struct shk_error *err)
{
    struct gpu_memory *m = memory_of(memory);
    gpu_ptr to = memory_at(dst);
    gpu_ptr first = memory_at(a);
    gpu_ptr second = memory_at(b);
    uint64_t elements = count;
    void *params[] = {&to, &first, &second, &elements};
    size_t blocks = (count + 4 * MEMORY_THREADS - 1) / (4 * MEMORY_THREADS);
    void *function = m->gpu.sum[type == SHK_FLOAT32 ? SHK_GPU_F32 : SHK_GPU_I32];
    int rc = 0;

    if (count == 0)
        return 0;
    if (!m->shown.kernels)
        return memory_sum_on_host(m, type, dst, a, b, count, err);
    rc = memory_flush(m, err);
    if (rc == 0) {
        rc = gpu_launch(&m->gpu, function,
                        (unsigned)(blocks < MEMORY_BLOCKS ? blocks : MEMORY_BLOCKS), MEMORY_THREADS,
                        params, err, "the sum");
    }
    /* The network device must see the sum before it is told to send it. */
    return rc == 0 ? memory_wait(&m->gpu, err) : rc;
}

static const struct shk_memory memory_ops = {
    .alloc = memory_alloc,
    .release = memory_release,
    .fill = memory_fill,
    .store = memory_store,
    .load = memory_load,
    .copy = memory_copy,
    .sum = memory_sum,
};

/* Does the GPU see writes of network devices in order by itself? Where not, and where the driver
 * can wait for them, it is asked to. */
static bool memory_needs_flush(const struct gpu_rank *g)
{
    const struct gpu_api *api = &g->gpu.api;
    int order = GPU_ORDER_OWNER;
    int options = 0;

    return g->gpu.vendor == GPU_CUDA && api->flush_writes &&
           api->device_attribute(&order, GPU_ATTR_WRITES_ORDER, g->device) == GPU_SUCCESS &&
           api->device_attribute(&options, GPU_ATTR_FLUSH_WRITES, g->device) == GPU_SUCCESS &&
           order < GPU_ORDER_OWNER && (options & GPU_FLUSH_BY_HOST) != 0;
}

/* AMD's kernel driver and none of NVIDIA's: HIP. Else CUDA, whose driver says what is missing. */
static enum gpu_vendor memory_vendor(const struct shk_gpu_tweaks *tweaks)
{
    if (tweaks->driver_names)
        return tweaks->hip ? GPU_HIP : GPU_CUDA;
    return access("/dev/kfd", F_OK) == 0 && access("/dev/nvidiactl", F_OK) != 0 ? GPU_HIP
                                                                                : GPU_CUDA;
}

int shk_gpu_memory_open(struct shk_gpu_memory **memory_p, struct shk_job *job,
                        const struct shk_gpu_tweaks *tweaks, struct shk_error *err)
{
    static const struct shk_gpu_tweaks none = {0};
    struct gpu_memory *m = calloc(1, sizeof *m);
    int rc = 0;

    if (!m)
        return shk_error_set(err, ENOMEM, "out of memory");
    m->run.tweaks = tweaks ? tweaks : &none;
    m->run.path = &memory_paths[memory_vendor(m->run.tweaks)];
    m->gpu.run = &m->run;
    m->gpu.job = job;
    m->gpu.rank = shk_job_rank(job);
    m->gpu.ranks = shk_job_size(job);
    rc = gpu_device_open(&m->gpu, err);
    if (rc == 0 && !m->gpu.module) {
        m->stage = malloc(2 * MEMORY_STAGE);
        rc = m->stage ? 0 : shk_error_set(err, ENOMEM, "out of memory");
    }
    if (rc < 0) {
        free(m);
        return rc;
    }
    m->shown = (struct shk_gpu_memory){
        .memory = memory_ops,
        .hip = m->gpu.gpu.vendor == GPU_HIP,
        .device = m->gpu.ordinal,
        .kernels = m->gpu.module,
        .flushes = memory_needs_flush(&m->gpu),
        .driver = m->gpu.gpu.dynlib.path,
    };
    *memory_p = &m->shown;
    return 0;
}

json_t *shk_gpu_memory_devices(const struct shk_job *job)
{
    return gpu_device_json(job);
}
