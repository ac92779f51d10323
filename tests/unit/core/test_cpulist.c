/* Lists of processors. */
#include "core/text/cpulist.h"

#include <criterion/criterion.h>

Test(cpulist, counts_and_members)
{
    cr_expect_eq(shk_cpulist_count("0-3,8"), 5);
    cr_expect_eq(shk_cpulist_count("7"), 1);
    cr_expect_eq(shk_cpulist_count(""), 0);
    cr_expect_eq(shk_cpulist_count(NULL), 0);
    cr_expect_eq(shk_cpulist_count("8-3"), 0);
    cr_expect_eq(shk_cpulist_last("0-3,8"), 8);
    cr_expect_eq(shk_cpulist_last("none"), -1);
    cr_expect(shk_cpulist_has("0-3,8", 2));
    cr_expect(shk_cpulist_has("0-3,8", 8));
    cr_expect_not(shk_cpulist_has("0-3,8", 5));
}

Test(cpulist, what_is_none)
{
    static const char *const bad[] = {"", "a", "0-", "0-3,", "0 3", "0-3,x", "-1"};
    cr_expect(shk_cpulist_valid("0-3,8"));
    cr_expect(shk_cpulist_valid("12"));
    cr_expect_not(shk_cpulist_valid(NULL));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not(shk_cpulist_valid(bad[i]), "%s", bad[i]);
}

Test(cpulist, in_common)
{
    cr_expect(shk_cpulist_meet("0-3,8", "2"));
    cr_expect(shk_cpulist_meet("0-3,8", "20,8-9"));
    cr_expect_not(shk_cpulist_meet("0-3,8", "4-7,9"));
    cr_expect_not(shk_cpulist_meet("", "4-7"));
    cr_expect_not(shk_cpulist_meet("0-3", NULL));
}
