#include "collectives/ranks/data.h"
#include "collectives/ranks/reduce.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 5000U /* more than one block of the comparison */

static const unsigned rank_counts[] = {1, 2, 3, 4, 7, 61, 62, 100, 513};

/* Sum over ranks, upwards or downwards, leaving out rank `without`. */
static void sum_ranks(enum shk_type type, void *sum, unsigned ranks, uint32_t seed, bool down,
                      unsigned without)
{
    uint32_t *part = malloc(COUNT * SHK_TYPE_BYTES);
    unsigned i = 0;

    cr_assert_not_null(part);
    memset(sum, 0, COUNT * SHK_TYPE_BYTES);
    for (i = 0; i < ranks; i++) {
        unsigned rank = down ? ranks - 1 - i : i;

        if (rank != without) {
            shk_data_fill(type, part, COUNT, rank, ranks, seed);
            shk_reduce_sum(type, sum, sum, part, COUNT);
        }
    }
    free(part);
}

Test(data, sums_are_exact_in_any_order)
{
    uint32_t *sum = malloc(COUNT * SHK_TYPE_BYTES);
    struct shk_mismatch bad = {0};
    size_t i = 0;
    int type = 0;

    for (type = 0; type < SHK_TYPE_COUNT; type++) {
        for (i = 0; i < sizeof(rank_counts) / sizeof(rank_counts[0]); i++) {
            unsigned n = rank_counts[i];

            sum_ranks((enum shk_type)type, sum, n, 17, false, UINT32_MAX);
            cr_expect(shk_data_verify((enum shk_type)type, sum, COUNT, n, 17, &bad),
                      "%s up, %u ranks: %zu wrong", shk_type_name((enum shk_type)type), n,
                      bad.wrong);
            sum_ranks((enum shk_type)type, sum, n, 17, true, UINT32_MAX);
            cr_expect(shk_data_verify((enum shk_type)type, sum, COUNT, n, 17, &bad),
                      "%s down, %u ranks: %zu wrong", shk_type_name((enum shk_type)type), n,
                      bad.wrong);
        }
    }
    free(sum);
}

Test(data, a_missing_rank_changes_every_element)
{
    uint32_t *sum = malloc(COUNT * SHK_TYPE_BYTES);
    unsigned without = 0;
    int type = 0;

    for (type = 0; type < SHK_TYPE_COUNT; type++) {
        for (without = 0; without < 4; without++) {
            struct shk_mismatch bad = {0};

            sum_ranks((enum shk_type)type, sum, 4, 3, false, without);
            cr_expect(!shk_data_verify((enum shk_type)type, sum, COUNT, 4, 3, &bad));
            cr_expect_eq(bad.wrong, COUNT, "%s without rank %u: only %zu differ",
                         shk_type_name((enum shk_type)type), without, bad.wrong);
        }
    }
    free(sum);
}

Test(data, stale_results_are_seen)
{
    uint32_t *sum = malloc(COUNT * SHK_TYPE_BYTES);
    struct shk_mismatch bad = {0};

    sum_ranks(SHK_FLOAT32, sum, 2, 8, false, UINT32_MAX);
    cr_expect(!shk_data_verify(SHK_FLOAT32, sum, COUNT, 2, 9, &bad));
    cr_expect_gt(bad.wrong, COUNT * 99 / 100, "%zu of %u differ", bad.wrong, COUNT);
    free(sum);
}

Test(data, first_wrong_element_is_named)
{
    static const size_t places[] = {0, 1, 1023, 1024, COUNT - 1};
    float *sum = malloc(COUNT * SHK_TYPE_BYTES);
    size_t i = 0;

    for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct shk_mismatch bad = {0};
        float right = 0;

        sum_ranks(SHK_FLOAT32, sum, 3, 1, false, UINT32_MAX);
        right = sum[places[i]];
        sum[places[i]] = right * 2;
        cr_expect(!shk_data_verify(SHK_FLOAT32, sum, COUNT, 3, 1, &bad));
        cr_expect_eq(bad.wrong, 1);
        cr_expect_eq(bad.index, places[i]);
        cr_expect_eq(bad.expected, (double)right);
        cr_expect_eq(bad.got, (double)right * 2);
    }
    free(sum);
}

Test(data, a_right_result_leaves_the_mismatch_alone)
{
    struct shk_mismatch bad = {.wrong = 77};
    float one = 0;

    shk_data_fill(SHK_FLOAT32, &one, 1, 0, 1, 5);
    cr_expect(shk_data_verify(SHK_FLOAT32, &one, 1, 1, 5, &bad));
    cr_expect_eq(bad.wrong, 77);
}

Test(reduce, every_length_and_alignment)
{
    unsigned char a[400];
    unsigned char b[400];
    unsigned char d[400];
    size_t count = 0;
    size_t shift = 0;
    size_t i = 0;

    for (count = 0; count < 70; count++) {
        for (shift = 0; shift < 16; shift += 4) {
            float *fa = (float *)(void *)(a + shift);
            float *fb = (float *)(void *)(b + 4);
            float *fd = (float *)(void *)(d + 8);

            memset(d, 0x5a, sizeof(d));
            for (i = 0; i < count; i++) {
                fa[i] = (float)i;
                fb[i] = (float)(100 * i);
            }
            shk_reduce_sum(SHK_FLOAT32, fd, fa, fb, count);
            for (i = 0; i < count; i++) {
                cr_assert_eq(fd[i], (float)(101 * i), "count %zu shift %zu element %zu", count,
                             shift, i);
            }
            cr_assert_eq(d[8 + 4 * count], 0x5a, "count %zu wrote too far", count);
            cr_assert_eq(d[7], 0x5a);
        }
    }
}

Test(reduce, in_place_and_int32_wraps)
{
    int32_t a[33];
    int32_t b[33];
    size_t i = 0;

    for (i = 0; i < 33; i++) {
        a[i] = INT32_MAX - (int32_t)i;
        b[i] = 100;
    }
    shk_reduce_sum(SHK_INT32, a, a, b, 33);
    for (i = 0; i < 33; i++) {
        cr_expect_eq(a[i], (int32_t)((uint32_t)INT32_MAX - (uint32_t)i + 100U));
    }
    shk_reduce_sum(SHK_INT32, b, a, b, 33);
    cr_expect_eq(b[0], (int32_t)((uint32_t)INT32_MAX + 200U));
}
