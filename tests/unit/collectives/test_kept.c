/* A reading of counters that serves two runs: as the end of one and the beginning of the next. */
#include "collectives/counters/counters.h"

#include <criterion/criterion.h>

static json_t *next(void *arg)
{
    int *reads = arg;
    return json_integer(++*reads);
}

static json_t *none(void *arg)
{
    int *reads = arg;
    ++*reads;
    return NULL;
}

static long long value(json_t *counters)
{
    long long n = json_integer_value(counters);
    json_decref(counters);
    return n;
}

Test(kept, the_end_of_one_run_is_the_beginning_of_the_next)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 1);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 2, "no run ended between");
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 4, "the end is always read");
    shk_counters_forget(&kept);
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 5);
}

Test(kept, an_old_reading_does_not_count)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 1);
    kept.read_ns -= 3000000000ULL;
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 2);
    shk_counters_forget(&kept);
}

Test(kept, what_could_not_be_read_is_not_kept)
{
    struct shk_counters_kept kept = {0};
    int reads = 0;
    cr_expect_eq(value(shk_counters_after(&kept, next, &reads)), 1);
    cr_expect_null(shk_counters_after(&kept, none, &reads));
    cr_expect_eq(value(shk_counters_before(&kept, next, &reads)), 3);
    cr_expect_eq(value(shk_counters_before(NULL, next, &reads)), 4, "nobody keeps anything");
    cr_expect_eq(value(shk_counters_after(NULL, next, &reads)), 5);
}
