#include "collectives/gpu/gpu_private.h"
#include <errno.h>
#include <string.h>

/* Granularity of the driver's allocations: a block that starts and ends on it is exported alone. */
#define HEAP_ROUND ((size_t)2 << 20)

#define HEAP_GUARDS 5U

/* Large sizes are for GPUs with so many times as much free memory: two areas, scratch space, and
 * what the libraries need for themselves. */
#define HEAP_SPARE 16U

static size_t heap_up(size_t value, size_t to)
{
    return (value + to - 1) / to * to;
}

/* For the longest message of either exchange kernel. */
static size_t heap_stage(size_t max_bytes, bool lines)
{
    const size_t step = (size_t)SHK_GPU_LL128_VECTORS * 16; /* of data in SHK_GPU_LL128_BYTES */
    size_t most = lines ? SHK_GPU_LL128_MAX : SHK_GPU_EXCHANGE_MAX;
    size_t bytes = max_bytes < most ? max_bytes : most;

    return heap_up(lines ? (bytes + step - 1) / step * SHK_GPU_LL128_BYTES : bytes,
                   GPU_GUARD_BYTES);
}

void gpu_heap_layout(struct gpu_heap *heap, unsigned ranks, size_t max_bytes,
                     const struct gpu_room *room)
{
    size_t at = 0;

    memset(heap, 0, sizeof *heap);
    heap->area_bytes = heap_up(max_bytes + GPU_AREA_SLACK, GPU_GUARD_BYTES);
    heap->control = 0;
    at = heap_up(sizeof(struct shk_gpu_control), GPU_GUARD_BYTES) + GPU_GUARD_BYTES;
    heap->send = at;
    at += heap->area_bytes + GPU_GUARD_BYTES;
    heap->recv = at;
    at += heap->area_bytes + GPU_GUARD_BYTES;
    heap->slots = at;
    if (room->slots) {
        heap->slot_bytes = 2 * (max_bytes < SHK_GPU_ONESHOT_MAX
                                    ? heap_up(max_bytes + GPU_AREA_SLACK, GPU_GUARD_BYTES)
                                    : SHK_GPU_ONESHOT_MAX);
        at += 2 * ranks * heap->slot_bytes;
    }
    heap->stage = at;
    if (room->slots && ranks == 2) {
        heap->lines = room->lines;
        heap->stage_bytes = heap_stage(max_bytes, room->lines);
        at += 2 * heap->stage_bytes;
    }
    heap->scratch = at;
    if (room->push_from != 0 && max_bytes >= room->push_from) {
        heap->scratch_bytes = heap_up(max_bytes / ranks + 16, GPU_GUARD_BYTES);
        at += (ranks - 1) * heap->scratch_bytes;
        heap->engines = room->engines;
    }
    at += GPU_GUARD_BYTES;
    heap->bytes = heap_up(at, HEAP_ROUND);
}

static int heap_agree(struct gpu_rank *g, struct shk_error *err)
{
    uint64_t mine = g->heap.bytes;
    uint64_t theirs = 0;
    size_t len = 0;
    int rc = shk_job_put(g->job, GPU_KEY_HEAP, &mine, sizeof mine, err);

    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        rc = shk_job_get(g->job, peer, GPU_KEY_HEAP, &theirs, sizeof theirs, &len, err);
        if (rc == 0 && theirs != mine) {
            rc = gpu_fail(g, GPU_CAUSE_UNEQUAL,
                          shk_error_set(err, EINVAL,
                                        "rank %u has a buffer of %llu bytes, rank %u one of %llu: "
                                        "they must be equal to be registered",
                                        g->rank, (unsigned long long)mine, peer,
                                        (unsigned long long)theirs));
        }
    }
    return rc;
}

/* Least free memory of any rank's GPU. */
static int heap_free(struct gpu_rank *g, uint64_t *bytes_p, struct shk_error *err)
{
    size_t free_bytes = 0;
    size_t total = 0;
    int rc =
        gpu_ok(g, g->gpu.api.memory_info(&free_bytes, &total), err, "memory of GPU %d", g->ordinal);

    *bytes_p = UINT64_MAX - free_bytes;
    if (rc == 0) {
        rc = shk_job_barrier(g->job, *bytes_p, bytes_p, NULL, NULL);
        rc = rc == 0 ? 0 : shk_error_sys(err, -rc, "barrier");
    }
    *bytes_p = UINT64_MAX - *bytes_p;
    return rc;
}

int gpu_heap_plan(struct gpu_rank *g, bool own, struct shk_error *err)
{
    struct gpu_room room = {.slots = own, .push_from = own ? gpu_push_from(g) : 0};
    const struct shk_collective_options *options = g->run->options;
    bool large = options->brief && options->large_bytes > options->max_bytes;
    uint64_t free_bytes = 0;
    int rc = large ? heap_free(g, &free_bytes, err) : 0;

    if (rc == 0 && own && g->ranks == 2)
        rc = gpu_access_lines(g, &room.lines, err);
    if (rc == 0 && room.lines)
        rc = gpu_engines_open(g, &room.engines, err);
    g->max_bytes = large && free_bytes / HEAP_SPARE >= options->large_bytes ? options->large_bytes
                                                                            : options->max_bytes;
    gpu_heap_layout(&g->heap, g->ranks, g->max_bytes, &room);
    if (g->heap.scratch_bytes > 0 && rc == 0) {
        rc = heap_free(g, &free_bytes, err);
        if (rc == 0 && free_bytes - free_bytes / 8 < g->heap.bytes) {
            room.push_from = 0;
            gpu_heap_layout(&g->heap, g->ranks, g->max_bytes, &room);
        }
    }
    return rc == 0 ? heap_agree(g, err) : rc;
}

/* Where the guards are, and what they stand behind. */
static size_t heap_guard(const struct gpu_heap *heap, unsigned i, const char **behind_p)
{
    static const char *const names[HEAP_GUARDS] = {"control block", "send area", "receive area",
                                                   "slots and scratch", "heap"};
    size_t at[HEAP_GUARDS];

    at[0] = heap->send - GPU_GUARD_BYTES;
    at[1] = heap->send + heap->area_bytes;
    at[2] = heap->recv + heap->area_bytes;
    at[3] = heap->slots + (heap->bytes - heap->slots) / GPU_GUARD_BYTES * GPU_GUARD_BYTES -
            GPU_GUARD_BYTES;
    at[4] = heap->bytes - GPU_GUARD_BYTES;
    *behind_p = names[i];
    return at[i];
}

/* As after so many launches: epoch and all flags alike, and no error. */
static int heap_control(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    gpu_ptr control = g->base[g->rank] + g->heap.control;
    size_t head = offsetof(struct shk_gpu_control, error);
    int rc = gpu_ok(g,
                    api->set_words(control, g->run->tweaks->first_epoch,
                                   sizeof(struct shk_gpu_control) / sizeof(uint32_t), g->stream),
                    err, "clear of the control block");

    return rc == 0 ? gpu_ok(g,
                            api->set_words(control + head, 0,
                                           (offsetof(struct shk_gpu_control, start) - head) /
                                               sizeof(uint32_t),
                                           g->stream),
                            err, "clear of the control block")
                   : rc;
}

int gpu_heap_prepare(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    const struct gpu_heap *heap = &g->heap;
    gpu_ptr base = g->base[g->rank];
    const char *behind = NULL;
    int rc = heap_control(g, err);

    g->engines.started = g->run->tweaks->first_epoch;
    if (rc == 0 && heap->slot_bytes > 0) {
        rc = gpu_ok(g,
                    api->set_words(base + heap->slots, 0,
                                   2 * (size_t)g->ranks * heap->slot_bytes / sizeof(uint32_t),
                                   g->stream),
                    err, "clear of the slots");
    }
    if (rc == 0 && heap->lines) { /* no flag is the epoch of a launch to come */
        rc = gpu_ok(g,
                    api->set_words(base + heap->stage, 0, 2 * heap->stage_bytes / sizeof(uint32_t),
                                   g->stream),
                    err, "clear of the lines");
    }
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        rc = gpu_ok(g,
                    api->set_words(base + (i == 0 ? heap->send : heap->recv), SHK_GPU_POISON,
                                   heap->area_bytes / sizeof(uint32_t), g->stream),
                    err, "poison");
    }
    for (unsigned i = 0; i < HEAP_GUARDS && rc == 0; i++) {
        rc = gpu_ok(g,
                    api->set_words(base + heap_guard(heap, i, &behind), GPU_GUARD_WORD,
                                   GPU_GUARD_BYTES / sizeof(uint32_t), g->stream),
                    err, "guard behind the %s", behind);
    }
    if (rc == 0)
        rc = gpu_ok(g, api->stream_wait(g->stream), err, "preparation of %zu bytes", heap->bytes);
    return rc;
}

int gpu_heap_guards(struct gpu_rank *g, struct shk_error *err)
{
    uint32_t words[GPU_GUARD_BYTES / sizeof(uint32_t)];
    const char *behind = NULL;
    int rc = 0;

    for (unsigned i = 0; i < HEAP_GUARDS; i++) {
        size_t at = heap_guard(&g->heap, i, &behind);

        rc = gpu_ok(g, g->gpu.api.to_host(words, g->base[g->rank] + at, sizeof words), err,
                    "read of a guard");
        if (rc < 0)
            return rc;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            if (words[k] != GPU_GUARD_WORD) {
                return shk_error_set(err, EILSEQ, "memory behind the %s was written to, at +%zu",
                                     behind, k * sizeof(uint32_t));
            }
        }
    }
    return 0;
}
