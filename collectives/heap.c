#include "collectives/heap.h"
#include <errno.h>
#include <stdbool.h>
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
};

const char *shk_area_name(enum shk_area area)
{
    return area_names[area];
}

static void heap_fill(unsigned char *at, size_t bytes, uint32_t pattern)
{
    uint64_t wide = (uint64_t)pattern << 32 | pattern;
    size_t i = 0;

    for (i = 0; i + sizeof(wide) <= bytes; i += sizeof(wide)) {
        memcpy(at + i, &wide, sizeof(wide));
    }
    memcpy(at + i, &wide, bytes - i);
}

/* Offset of the first byte that differs from the pattern; `bytes` when none does. A repeating block
 * equals itself shifted by the period, which memcmp() tests at memory speed. */
static size_t heap_differs(const unsigned char *at, size_t bytes, uint32_t pattern)
{
    const unsigned char *expect = (const unsigned char *)&pattern;
    size_t period = sizeof(pattern);
    size_t head = bytes < period ? bytes : period;
    size_t i = 0;

    if (memcmp(at, expect, head) == 0 &&
        (bytes <= period || memcmp(at, at + period, bytes - period) == 0)) {
        return bytes;
    }
    while (i < bytes && at[i] == expect[i % period]) {
        i++;
    }
    return i;
}

static bool heap_round(size_t *value)
{
    size_t up = 0;

    if (__builtin_add_overflow(*value, SHK_HEAP_GUARD - 1, &up)) {
        return false;
    }
    *value = up / SHK_HEAP_GUARD * SHK_HEAP_GUARD;
    return true;
}

int shk_heap_create(struct shk_heap *heap, const size_t length[SHK_AREA_COUNT],
                    struct shk_error *err)
{
    struct shk_heap made = {0};
    size_t at = SHK_HEAP_GUARD;
    void *map = NULL;
    unsigned i = 0;

    for (i = 0; i < SHK_AREA_COUNT; i++) {
        size_t room = length[i];

        made.offset[i] = at;
        made.length[i] = length[i];
        if (!heap_round(&room) || __builtin_add_overflow(at, room, &at) ||
            __builtin_add_overflow(at, SHK_HEAP_GUARD, &at)) {
            return shk_error_set(err, EOVERFLOW, "symmetric heap would not fit an address space");
        }
    }
    made.bytes = at;
    map = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return shk_error_sys(err, errno, "symmetric heap of %zu bytes", made.bytes);
    }
    made.base = map;
    (void)madvise(map, made.bytes, MADV_HUGEPAGE); /* a hint: fewer page faults and TLB misses */
    heap_fill(made.base, made.bytes, HEAP_GUARD);
    for (i = 0; i < SHK_AREA_COUNT; i++) {
        heap_fill(made.base + made.offset[i], made.length[i], HEAP_POISON);
    }
    *heap = made;
    return 0;
}

void shk_heap_destroy(struct shk_heap *heap)
{
    if (heap != NULL && heap->base != NULL) {
        munmap(heap->base, heap->bytes);
        memset(heap, 0, sizeof(*heap));
    }
}

void shk_heap_poison(struct shk_heap *heap, enum shk_area area, size_t from, size_t to)
{
    to = to < heap->length[area] ? to : heap->length[area];
    if (from < to) {
        heap_fill(heap->base + heap->offset[area] + from, to - from, HEAP_POISON);
    }
}

int shk_heap_poisoned(const struct shk_heap *heap, enum shk_area area, size_t from,
                      struct shk_error *err)
{
    size_t bytes = heap->length[area];
    size_t bad = 0;

    if (from >= bytes) {
        return 0;
    }
    bad = heap_differs(heap->base + heap->offset[area] + from, bytes - from, HEAP_POISON);
    if (bad == bytes - from) {
        return 0;
    }
    return shk_error_set(err, EILSEQ, "the %s was written to at byte %zu, beyond its %zu bytes",
                         area_names[area], from + bad, from);
}

/* The guard before area `next` (SHK_AREA_COUNT: the one at the end) also has the slack that rounds
 * the area in front up to a page. */
static int heap_check_one(const struct shk_heap *heap, unsigned next, struct shk_error *err)
{
    size_t from = next == 0 ? 0 : heap->offset[next - 1] + heap->length[next - 1];
    size_t to = next == SHK_AREA_COUNT ? heap->bytes : heap->offset[next];
    size_t bad = 0;

    /* Areas hold 4-byte elements, but their lengths are the caller's: keep the pattern's phase. */
    bad = heap_differs(heap->base + (from + 3) / 4 * 4, to - (from + 3) / 4 * 4, HEAP_GUARD);
    if (bad == to - (from + 3) / 4 * 4) {
        return 0;
    }
    if (next == 0) {
        return shk_error_set(err, EILSEQ,
                             "guard zone before the %s overwritten, %zu bytes before it",
                             area_names[0], to - bad);
    }
    return shk_error_set(err, EILSEQ,
                         "guard zone after the %s overwritten, %zu bytes after its end",
                         area_names[next - 1], (from + 3) / 4 * 4 - from + bad);
}

int shk_heap_check(const struct shk_heap *heap, struct shk_error *err)
{
    unsigned i = 0;
    int rc = 0;

    for (i = 0; i <= SHK_AREA_COUNT && rc == 0; i++) {
        rc = heap_check_one(heap, i, err);
    }
    return rc;
}
