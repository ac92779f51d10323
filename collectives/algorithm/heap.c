#include "collectives/algorithm/heap.h"
#include "collectives/algorithm/memory.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Both patterns repeat every 4 bytes. Poison is a float NaN and, as an integer, far from any sum.
 */
#define HEAP_POISON UINT32_C(0xffdeadbe)
#define HEAP_GUARD  UINT32_C(0xa55a17c3)

static const char *const area_names[SHK_AREA_COUNT] = {
    [SHK_AREA_SEND] = "send buffer",
    [SHK_AREA_RECV] = "receive buffer",
    [SHK_AREA_SLOT0] = "one-shot slots (even)",
    [SHK_AREA_SLOT1] = "one-shot slots (odd)",
    [SHK_AREA_PART0] = "ring partial sums (even)",
    [SHK_AREA_PART1] = "ring partial sums (odd)",
    [SHK_AREA_RAIL] = "rail tokens",
};

static void heap_fill(unsigned char *at, size_t bytes, uint32_t pattern)
{
    size_t done = bytes < sizeof pattern ? bytes : sizeof pattern;

    memcpy(at, &pattern, done);
    while (done < bytes) { /* what is there, twice */
        size_t more = bytes - done < done ? bytes - done : done;

        memcpy(at + done, at, more);
        done += more;
    }
}

/* Offset of the first byte that differs from the pattern; `bytes` when none does. A repeating block
 * equals itself shifted by the period, which memcmp() tests at memory speed. */
static size_t heap_differs(const unsigned char *at, size_t bytes, uint32_t pattern)
{
    const unsigned char *expect = (const unsigned char *)&pattern;
    size_t period = sizeof pattern;
    size_t head = bytes < period ? bytes : period;
    size_t i = 0;

    if (memcmp(at, expect, head) == 0 &&
        (bytes <= period || memcmp(at, at + period, bytes - period) == 0)) {
        return bytes;
    }
    while (i < bytes && at[i] == expect[i % period])
        i++;
    return i;
}

static bool heap_round(size_t *value)
{
    size_t up = 0;

    if (__builtin_add_overflow(*value, SHK_HEAP_GUARD - 1, &up))
        return false;
    *value = up / SHK_HEAP_GUARD * SHK_HEAP_GUARD;
    return true;
}

/* Bytes read at a time of memory that is not the host's; a multiple of the pattern. */
#define HEAP_LOOK ((size_t)65536)

/* heap_differs() of `bytes` from `offset` on, wherever the heap lies: *bad_p is `bytes` when all is
 * as it was. */
static int heap_look(const struct shk_heap *heap, size_t offset, size_t bytes, uint32_t pattern,
                     size_t *bad_p, struct shk_error *err)
{
    unsigned char *buf = NULL;
    int rc = 0;

    *bad_p = bytes;
    if (!heap->memory) {
        *bad_p = heap_differs(heap->base + offset, bytes, pattern);
        return 0;
    }
    buf = malloc(HEAP_LOOK);
    if (!buf)
        return shk_error_set(err, ENOMEM, "out of memory");
    for (size_t at = 0; at < bytes && *bad_p == bytes && rc == 0; at += HEAP_LOOK) {
        size_t part = bytes - at < HEAP_LOOK ? bytes - at : HEAP_LOOK;
        size_t bad = part;

        rc = heap->memory->load(heap->memory, buf, heap->base + offset + at, part, err);
        if (rc == 0)
            bad = heap_differs(buf, part, pattern);
        if (bad < part)
            *bad_p = at + bad;
    }
    free(buf);
    return rc;
}

/* Areas one after the other, each with a guard before it, and one at the end. */
static int heap_layout(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                       struct shk_error *err)
{
    size_t at = SHK_HEAP_GUARD;

    for (unsigned i = 0; i < SHK_AREA_COUNT; i++) {
        size_t room = length[i];

        heap->offset[i] = at;
        heap->length[i] = length[i];
        if (!heap_round(&room) || __builtin_add_overflow(at, room, &at) ||
            __builtin_add_overflow(at, SHK_HEAP_GUARD, &at)) {
            return shk_error_set(err, EOVERFLOW, "symmetric heap would not fit an address space");
        }
    }
    heap->bytes = at;
    return 0;
}

static void heap_mark(const struct shk_heap *heap)
{
    heap_fill(heap->base, heap->bytes, HEAP_GUARD);
    for (unsigned i = 0; i < SHK_AREA_COUNT; i++)
        heap_fill(heap->base + heap->offset[i], heap->length[i], HEAP_POISON);
}

int shk_heap_bytes(const size_t length[SHK_AREA_COUNT], size_t *bytes_p, struct shk_error *err)
{
    struct shk_heap heap = {0};
    int rc = heap_layout(&heap, length, err);

    *bytes_p = heap.bytes;
    return rc;
}

int shk_heap_create_at(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                       unsigned char *base, struct shk_error *err)
{
    struct shk_heap made = {.base = base, .borrowed = true};
    int rc = heap_layout(&made, length, err);

    if (rc == 0) {
        heap_mark(&made);
        *heap = made;
    }
    return rc;
}

int shk_heap_create(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                    struct shk_error *err)
{
    struct shk_heap made = {0};
    void *map = NULL;
    int rc = heap_layout(&made, length, err);

    if (rc < 0)
        return rc;
    map = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return shk_error_sys(err, errno, "symmetric heap of %zu bytes", made.bytes);
    made.base = map;
    (void)madvise(map, made.bytes, MADV_HUGEPAGE); /* a hint: fewer page faults and TLB misses */
    heap_mark(&made);
    *heap = made;
    return 0;
}

int shk_heap_create_in(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                       struct shk_memory *memory, struct shk_error *err)
{
    struct shk_heap made = {.memory = memory};
    size_t longest = 0;
    int rc = heap_layout(&made, length, err);

    if (rc == 0)
        rc = memory->alloc(memory, made.bytes, &made.base, err);
    if (rc == 0)
        rc = memory->fill(memory, made.base, HEAP_GUARD, made.bytes, err);
    for (unsigned i = 0; i < SHK_AREA_COUNT && rc == 0; i++) {
        longest = made.length[i] > longest ? made.length[i] : longest;
        rc = shk_heap_poison(&made, (enum shk_area)i, 0, made.length[i], err);
    }
    if (rc == 0) {
        made.stage = malloc(longest > 0 ? longest : 1);
        rc = made.stage ? 0 : shk_error_set(err, ENOMEM, "out of memory");
    }
    if (rc < 0) {
        shk_heap_destroy(&made);
        return rc;
    }
    *heap = made;
    return 0;
}

void shk_heap_destroy(struct shk_heap *heap)
{
    if (!heap || !heap->base)
        return;
    if (heap->memory) {
        heap->memory->release(heap->memory, heap->base);
        free(heap->stage);
    } else if (!heap->borrowed) {
        munmap(heap->base, heap->bytes);
    }
    memset(heap, 0, sizeof *heap);
}

int shk_heap_poison(struct shk_heap *heap, enum shk_area area, size_t from, size_t to,
                    struct shk_error *err)
{
    unsigned char *base = heap->base + heap->offset[area];

    to = to < heap->length[area] ? to : heap->length[area];
    if (from >= to)
        return 0;
    if (heap->memory)
        return heap->memory->fill(heap->memory, base + from, HEAP_POISON, to - from, err);
    heap_fill(base + from, to - from, HEAP_POISON);
    return 0;
}

int shk_heap_poisoned(const struct shk_heap *heap, enum shk_area area, size_t from,
                      struct shk_error *err)
{
    size_t bytes = heap->length[area];
    size_t bad = 0;
    int rc = 0;

    if (from >= bytes)
        return 0;
    rc = heap_look(heap, heap->offset[area] + from, bytes - from, HEAP_POISON, &bad, err);
    if (rc < 0 || bad == bytes - from)
        return rc;
    return shk_error_set(err, EILSEQ, "the %s was written to at byte %zu, beyond its %zu bytes",
                         area_names[area], from + bad, from);
}

/* The guard before area `next` (SHK_AREA_COUNT: the one at the end) also has the slack that rounds
 * the area in front up to a page. */
static int heap_check_one(const struct shk_heap *heap, unsigned next, struct shk_error *err)
{
    size_t from = next == 0 ? 0 : heap->offset[next - 1] + heap->length[next - 1];
    size_t to = next == SHK_AREA_COUNT ? heap->bytes : heap->offset[next];
    /* Areas hold 4-byte elements, but their lengths are the caller's: keep the pattern's phase. */
    size_t first = (from + 3) / 4 * 4;
    size_t bad = 0;
    int rc = heap_look(heap, first, to - first, HEAP_GUARD, &bad, err);

    if (rc < 0 || bad == to - first)
        return rc;
    if (next == 0) {
        return shk_error_set(err, EILSEQ,
                             "guard zone before the %s overwritten, %zu bytes before it",
                             area_names[0], to - bad);
    }
    return shk_error_set(err, EILSEQ,
                         "guard zone after the %s overwritten, %zu bytes after its end",
                         area_names[next - 1], first - from + bad);
}

int shk_heap_check(const struct shk_heap *heap, struct shk_error *err)
{
    int rc = 0;

    for (unsigned i = 0; i <= SHK_AREA_COUNT && rc == 0; i++)
        rc = heap_check_one(heap, i, err);
    return rc;
}
