#include "checks/selftest/selftest.h"
#include "support.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    char checks[128][64];
    size_t count, wrong;
    char problem[256];
};

static void see(const struct shk_selftest_row *row, void *arg)
{
    struct seen *seen = arg;
    snprintf(seen->checks[seen->count++ % 128], 64, "%s", row->check);
    seen->wrong += !row->ok;
    if (!row->ok)
        snprintf(seen->problem, sizeof seen->problem, "%s, %s: %s", row->check, row->what,
                 row->problem);
}

Test(selftest, every_check_can_fail)
{
    struct seen seen = {.count = 0};
    struct shk_error err = {""};
    size_t count;
    const struct shk_check *const *checks = shk_checks(&count);
    for (size_t i = 0; shk_selftest_cases[i]; i++) {
        const char *json = shk_selftest_cases[i];
        cr_assert_eq(shk_selftest_checks(support_config(), json, see, &seen, &err), 0, "%s",
                     err.text);
    }
    cr_expect_eq(seen.wrong, 0, "%s", seen.problem);
    for (size_t i = 0; i < count; i++) {
        bool there = false;
        for (size_t j = 0; j < seen.count; j++)
            there |= strcmp(seen.checks[j], checks[i]->id) == 0;
        cr_expect(there, "checks/selftest/ has no case for %s", checks[i]->id);
    }
}

/* A selftest that always succeeds proves nothing. */
Test(selftest, tells_a_check_that_cannot_fail)
{
    static const struct {
        const char *json, *says;
    } cases[] = {
        {"[{\"check\": \"limits.memlock\", \"what\": \"w\", \"profile\": \"lumi-g\", \"verdict\": "
         "\"fail\", \"setting\": \"RLIMIT_MEMLOCK\", \"healthy\": {\"limits.memlock\": {\"soft\": "
         "-1, \"hard\": -1}}, \"broken\": {}}]",
         "not found: no fail for RLIMIT_MEMLOCK"},
        {"[{\"check\": \"limits.memlock\", \"what\": \"w\", \"profile\": \"lumi-g\", \"verdict\": "
         "\"fail\", \"setting\": \"RLIMIT_MEMLOCK\", \"healthy\": {\"limits.memlock\": {\"soft\": "
         "0, \"hard\": 0}}, \"broken\": {}}]",
         "a healthy node gives fail"},
        {"[{\"check\": \"limits.memlock\", \"what\": \"w\", \"profile\": \"lumi-g\", \"verdict\": "
         "\"pass\", \"setting\": \"RLIMIT_MEMLOCK\", \"healthy\": {\"limits.memlock\": {\"soft\": "
         "-1, \"hard\": -1}}, \"broken\": {}}]",
         "passes although nothing could be read"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen seen = {.count = 0};
        struct shk_error err = {""};
        cr_assert_eq(shk_selftest_checks(support_config(), cases[i].json, see, &seen, &err), 0,
                     "%s", err.text);
        cr_expect_eq(seen.wrong, 1);
        cr_expect_not_null(strstr(seen.problem, cases[i].says), "%s", seen.problem);
    }
}

Test(selftest, bad_cases_are_refused_in_one_line)
{
    static const char *const bad[] = {"", "{", "{}", "[1]", "[{\"check\": \"no.such\"}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct seen seen = {.count = 0};
        struct shk_error err = {""};
        cr_expect_eq(shk_selftest_checks(support_config(), bad[i], see, &seen, &err), -EINVAL);
        cr_expect(*err.text && !strchr(err.text, '\n'), "%s", bad[i]);
    }
}
