#include "core/job/outlier.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* `above`: how many of the values are outliers. */
struct values {
    const char *what;
    double value[8];
    unsigned count, above;
};

static const struct values sets[] = {
    {"one slow of three, the others alike to the digit: MAD is 0", {5, 5, 25}, 3, 1},
    {"all alike to the digit", {5, 5, 5, 5}, 4, 0},
    {"alike but for the last digits", {5.00, 5.01, 5.00, 5.02, 5.3}, 5, 0},
    {"half as slow again", {5, 5.1, 4.9, 5, 7.5}, 5, 0},
    {"a loaded machine: everything scatters", {5, 9, 14, 6, 22, 11, 17, 8}, 8, 0},
    {"scatter and a slow one", {5, 6, 7, 6, 5, 8, 7, 90}, 8, 1},
    {"two slow of eight", {5, 6, 7, 6, 5, 8, 70, 90}, 8, 2},
    {"two values have no majority", {5, 500}, 2, 0},
    {"what was not measured does not count", {0, 5, 500, 0}, 4, 0},
    {"nothing measured", {0, 0, 0}, 3, 0},
    {"none", {0}, 0, 0},
};

Test(outlier, sets)
{
    for (unsigned i = 0; i < sizeof sets / sizeof *sets; i++) {
        struct shk_outlier o;
        unsigned above = 0;

        cr_assert(shk_outlier_of(sets[i].value, sets[i].count, &o));
        for (unsigned k = 0; k < sets[i].count; k++)
            above += o.limit > 0 && sets[i].value[k] > o.limit;
        cr_assert_eq(above, sets[i].above, "%s: %u above %g", sets[i].what, above, o.limit);
    }
}

Test(outlier, median_and_mad)
{
    static const double odd[] = {9, 1, 2, 4, 100}, even[] = {1, 3, 5, 11};
    struct shk_outlier o;

    cr_assert(shk_outlier_of(odd, 5, &o));
    cr_assert_eq(o.median, 4);
    cr_assert_eq(o.mad, 3);
    cr_assert_float_eq(o.limit, 4 + 3 * 3.5 / 0.6745, 1e-9);
    cr_assert(shk_outlier_of(even, 4, &o));
    cr_assert_eq(o.median, 4);
    cr_assert_eq(o.mad, 2);
}
