#include "collectives/algorithm/heap.h"
#include "tests/unit/collectives/hidden.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

static const size_t lengths[SHK_AREA_COUNT] = {
    [SHK_AREA_SEND] = 100,   [SHK_AREA_RECV] = 10000, [SHK_AREA_SLOT0] = 4096,
    [SHK_AREA_SLOT1] = 4096, [SHK_AREA_PART0] = 0,    [SHK_AREA_PART1] = 4,
    [SHK_AREA_RAIL] = 512,
};

static const char *const area_names[SHK_AREA_COUNT] = {
    "send buffer",          "receive buffer",           "one-shot slots (even)",
    "one-shot slots (odd)", "ring partial sums (even)", "ring partial sums (odd)",
    "rail tokens",
};

static struct shk_heap heap;
static struct shk_error err;

static void setup(void)
{
    cr_assert_eq(shk_heap_create(&heap, lengths, &err), 0, "%s", err.text);
}

static void teardown(void)
{
    shk_heap_destroy(&heap);
}

TestSuite(heap, .init = setup, .fini = teardown);

Test(heap, areas_are_apart_aligned_and_alike)
{
    struct shk_heap twin;
    size_t end = 0;
    int i = 0;

    cr_assert_eq(shk_heap_create(&twin, lengths, &err), 0);
    for (i = 0; i < SHK_AREA_COUNT; i++) {
        cr_expect_eq(heap.offset[i] % SHK_HEAP_GUARD, 0);
        cr_expect_geq(heap.offset[i], end + SHK_HEAP_GUARD, "area %d has no guard before it", i);
        cr_expect_eq(heap.offset[i], twin.offset[i]);
        end = heap.offset[i] + heap.length[i];
    }
    cr_expect_geq(heap.bytes, end + SHK_HEAP_GUARD);
    cr_expect_eq(heap.bytes, twin.bytes);
    shk_heap_destroy(&twin);
}

Test(heap, fresh_heap_is_whole_and_poisoned)
{
    int i = 0;

    cr_expect_eq(shk_heap_check(&heap, &err), 0, "%s", err.text);
    for (i = 0; i < SHK_AREA_COUNT; i++) {
        cr_expect_eq(shk_heap_poisoned(&heap, (enum shk_area)i, 0, &err), 0, "%s", err.text);
    }
}

Test(heap, writing_inside_areas_is_fine)
{
    int i = 0;

    for (i = 0; i < SHK_AREA_COUNT; i++) {
        memset(shk_heap_at(&heap, (enum shk_area)i), 0x11, heap.length[i]);
    }
    cr_expect_eq(shk_heap_check(&heap, &err), 0, "%s", err.text);
}

Test(heap, one_byte_beyond_any_area_is_found)
{
    int i = 0;

    for (i = 0; i < SHK_AREA_COUNT; i++) {
        unsigned char *at = heap.base + heap.offset[i] + heap.length[i];
        unsigned char was = *at;

        *at ^= 1;
        err.text[0] = '\0';
        cr_expect_eq(shk_heap_check(&heap, &err), -EILSEQ, "after area %d", i);
        if (heap.length[i] != 0) {
            cr_expect_not_null(strstr(err.text, area_names[i]), "%s", err.text);
            cr_expect_not_null(strstr(err.text, " 0 bytes after its end"), "%s", err.text);
        }
        *at = was;
        at = heap.base + heap.offset[i] - 1;
        was = *at;
        *at ^= 0x80;
        cr_expect_eq(shk_heap_check(&heap, &err), -EILSEQ, "before area %d", i);
        *at = was;
    }
    cr_expect_eq(shk_heap_check(&heap, &err), 0);
}

Test(heap, last_byte_of_the_block_is_guarded)
{
    heap.base[heap.bytes - 1] ^= 0xff;
    cr_expect_eq(shk_heap_check(&heap, &err), -EILSEQ);
    heap.base[heap.bytes - 1] ^= 0xff;
    heap.base[0] ^= 0xff;
    cr_expect_eq(shk_heap_check(&heap, &err), -EILSEQ);
    cr_expect_not_null(strstr(err.text, "4096 bytes before it"), "%s", err.text);
}

Test(heap, poison_is_no_sum)
{
    float value = 0;

    memcpy(&value, shk_heap_at(&heap, SHK_AREA_RECV), sizeof(value));
    cr_expect_neq(value, value, "poison must be NaN");
}

Test(heap, writing_past_a_message_is_found)
{
    unsigned char *recv = shk_heap_at(&heap, SHK_AREA_RECV);

    memset(recv, 0, 64);
    cr_expect_eq(shk_heap_poisoned(&heap, SHK_AREA_RECV, 64, &err), 0, "%s", err.text);
    recv[77] = 0;
    cr_expect_eq(shk_heap_poisoned(&heap, SHK_AREA_RECV, 64, &err), -EILSEQ);
    cr_expect_not_null(strstr(err.text, "byte 77, beyond its 64 bytes"), "%s", err.text);
    cr_assert_eq(shk_heap_poison(&heap, SHK_AREA_RECV, 0, 80, &err), 0);
    cr_expect_eq(shk_heap_poisoned(&heap, SHK_AREA_RECV, 0, &err), 0, "%s", err.text);
}

Test(heap, absurd_sizes_are_refused)
{
    size_t huge[SHK_AREA_COUNT] = {[SHK_AREA_SEND] = SIZE_MAX - 100};
    struct shk_heap other = {.base = (unsigned char *)&huge};

    cr_expect_eq(shk_heap_create(&other, huge, &err), -EOVERFLOW);
    cr_expect_eq(other.base, (unsigned char *)&huge, "written although it failed");
    huge[SHK_AREA_SEND] = (size_t)1 << 60;
    cr_expect_eq(shk_heap_create(&other, huge, &err), -ENOMEM);
}

Test(heap, memory_that_is_not_the_hosts)
{
    struct hidden_memory hidden = {.memory = hidden_ops};
    struct shk_heap far;
    size_t i = 0;

    cr_assert_eq(shk_heap_create_in(&far, lengths, &hidden.memory, &err), 0, "%s", err.text);
    cr_expect_eq(far.bytes, heap.bytes);
    cr_expect_eq(shk_heap_check(&far, &err), 0, "%s", err.text);
    for (i = 0; i < SHK_AREA_COUNT; i++) {
        unsigned char *end = hidden.behind + far.offset[i] + far.length[i];

        cr_expect_eq(shk_heap_poisoned(&far, (enum shk_area)i, 0, &err), 0, "%s", err.text);
        *end ^= 1;
        cr_expect_eq(shk_heap_check(&far, &err), -EILSEQ, "after area %zu", i);
        *end ^= 1;
    }
    hidden.behind[far.offset[SHK_AREA_RECV] + 9000] = 0;
    cr_expect_eq(shk_heap_poisoned(&far, SHK_AREA_RECV, 64, &err), -EILSEQ);
    cr_expect_not_null(strstr(err.text, "at byte 9000,"), "%s", err.text);
    hidden.fail_after = hidden.calls;
    cr_expect_eq(shk_heap_poisoned(&far, SHK_AREA_RECV, 64, &err), -EIO);
    cr_expect_eq(shk_heap_check(&far, &err), -EIO);
    cr_expect_eq(shk_heap_poison(&far, SHK_AREA_RECV, 0, 64, &err), -EIO);
    shk_heap_destroy(&far);
    munmap(hidden.behind, hidden.bytes);
}

/* Whichever call fails while the heap is made: nothing is left of it. */
Test(heap, memory_that_cannot_be_had)
{
    unsigned fail = 0;

    for (fail = 1; fail <= SHK_AREA_COUNT; fail++) {
        struct hidden_memory hidden = {.memory = hidden_ops, .fail_after = fail};
        struct shk_heap far = {0};

        cr_expect_eq(shk_heap_create_in(&far, lengths, &hidden.memory, &err), -EIO);
        cr_expect_null(hidden.base, "not given back");
        cr_expect_null(far.base);
        munmap(hidden.behind, hidden.bytes);
    }
}
