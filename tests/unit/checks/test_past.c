/* A node against its past: what is said, and what is not. */
#include "checks/past/past.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { DAYS = 60 };

/* Noise of a fixed seed, about normal: the sum of twelve. */
static double noise(unsigned *seed)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        sum += (double)(*seed >> 8) / (1 << 24);
    }
    return sum - 6;
}

static struct shk_past judge(double (*factor)(int day), unsigned seed, size_t n, int better)
{
    struct shk_past_point points[DAYS];
    struct shk_past past;
    for (size_t i = 0; i < n; i++)
        points[i] =
            (struct shk_past_point){.t = (double)i,
                                    .value = 380 * factor((int)i) * (1 + 0.008 * noise(&seed)),
                                    .common = NAN};
    cr_assert_eq(shk_past_judge(points, n, better, 0.03, &past), 0);
    return past;
}

static double steady(int day)
{
    (void)day;
    return 1;
}

static double decline(int day)
{
    return 1 - 0.05 * day / (DAYS - 1);
}

static double step(int day)
{
    return day < 30 ? 1 : 0.94;
}

static double season(int day)
{
    return 1 + 0.015 * sin(day / 7.0 * 2 * M_PI);
}

static double one_bad(int day)
{
    return day == DAYS - 1 || day == DAYS - 2 ? 0.5 : 1;
}

Test(past, steady_seasons_and_bad_runs_are_quiet)
{
    double (*const quiet[])(int) = {steady, season, one_bad};
    for (size_t k = 0; k < 3; k++)
        for (unsigned seed = 1; seed <= 300; seed++)
            cr_assert_eq(judge(quiet[k], seed, DAYS, 1).change, SHK_PAST_SAME, "%zu %u", k, seed);
}

Test(past, drifts_and_steps_are_found)
{
    unsigned drifts = 0;
    for (unsigned seed = 1; seed <= 100; seed++) {
        struct shk_past past = judge(decline, seed, DAYS, 1);
        drifts += past.change == SHK_PAST_DRIFT || past.change == SHK_PAST_STEP;
        past = judge(step, seed, DAYS, 1);
        cr_assert_eq(past.change, SHK_PAST_STEP, "%u", seed);
        cr_assert(past.from >= 28 && past.from <= 32, "%u: %zu", seed, past.from);
        cr_assert_float_eq(past.now / past.before, 0.94, 0.02);
        cr_assert_eq(judge(step, seed, DAYS, -1).change, SHK_PAST_SAME, "less is better");
    }
    /* 4 % between the first and the last runs, by then, with a noise of 0.8 %: not each of them; a
     * week later, or beside siblings, they are */
    cr_assert_geq(drifts, 60, "%u", drifts);
}

Test(past, nothing_of_few_runs)
{
    for (size_t n = 0; n < SHK_PAST_FIRST + SHK_PAST_RECENT; n++)
        cr_assert_eq(judge(decline, 1, n, 1).change, SHK_PAST_FEW);
}

Test(past, values_that_are_none)
{
    struct shk_past_point points[DAYS];
    struct shk_past past;
    const double odd[] = {0, -1, INFINITY, NAN, 1e308};
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        for (size_t i = 0; i < DAYS; i++)
            points[i] = (struct shk_past_point){.t = 0, .value = odd[k], .common = odd[k]};
        cr_assert_eq(shk_past_judge(points, DAYS, 1, 0.03, &past), 0);
        cr_assert_eq(past.change, SHK_PAST_SAME);
        shk_past_count(points, DAYS, 0, &past);
        cr_assert_eq(past.change, SHK_PAST_SAME);
    }
}

Test(past, what_siblings_share_is_taken_out)
{
    struct shk_past_point points[DAYS];
    struct shk_past past;
    for (size_t i = 0; i < DAYS; i++)
        points[i] = (struct shk_past_point){
            .t = (double)i, .value = 380 * step((int)i), .common = 380 * step((int)i)};
    cr_assert_eq(shk_past_judge(points, DAYS, 1, 0.03, &past), 0);
    cr_assert_eq(past.change, SHK_PAST_SAME);
}

Test(past, counters_that_come_and_go)
{
    struct shk_past_point points[20];
    struct shk_past past;
    double values[20] = {0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 5, 5, 0, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < 20; i++)
        points[i] = (struct shk_past_point){.t = (double)i, .value = values[i]};
    shk_past_count(points, 20, 19, &past);
    cr_assert_eq(past.change, SHK_PAST_RISES_OFTEN);
    cr_assert_eq(past.rises, 3);
    cr_assert_float_eq(past.by, 5, 0.001);
    cr_assert_eq(past.from, 8);
    shk_past_count(points, 20, 25, &past);
    cr_assert_eq(past.change, SHK_PAST_SAME);
}

Test(past, outside_of_the_siblings)
{
    double median, spread, siblings[10];
    for (size_t i = 0; i < 10; i++)
        siblings[i] = 380 + (double)i;
    cr_assert(shk_past_outside(300, siblings, 10, 1, 0.03, &median, &spread));
    cr_assert_float_eq(median, 384.5, 0.01);
    for (size_t i = 0; i < 10; i++)
        siblings[i] = 380 + (double)i;
    cr_assert_not(shk_past_outside(378, siblings, 10, 1, 0.03, &median, &spread));
    cr_assert_not(shk_past_outside(500, siblings, 10, 1, 0.03, &median, &spread));
    cr_assert_not(shk_past_outside(1, siblings, 7, 1, 0.03, &median, &spread));
}
