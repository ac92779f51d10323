#include "core/regex/regex.h"
#include "core/regex/spelling.h"
#include "core/text/errnos.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_errno rows[] = {
    {.name = "EPERM", .number = 1, .texts = (const char *const[]){"Operation not permitted", NULL}},
    {.name = "ENXIO",
     .number = 6,
     .texts = (const char *const[]){"No such device or address", NULL}},
    {.name = "ENOMEM",
     .number = 12,
     .texts = (const char *const[]){"Cannot allocate memory", NULL},
     .words = "memory ran out"},
    {.name = "EACCES",
     .number = 13,
     .texts = (const char *const[]){"Permission denied", NULL},
     .names = (const char *const[]){"PermissionError", NULL}},
    {.name = "ENODEV", .number = 19, .texts = (const char *const[]){"No such device", NULL}},
    {.name = "EHOSTUNREACH",
     .number = 113,
     .texts = (const char *const[]){"No route to host", "Host is unreachable", NULL}},
    {.name = "not-found", .words = "not found"},
};

static void begin(void)
{
    shk_errnos_install(rows, sizeof rows / sizeof *rows);
}

TestSuite(spelling, .init = begin);

static bool takes(const char *pattern, const char *line)
{
    struct shk_regex *regex = NULL;
    struct shk_regex_work *work = shk_regex_work_create();
    struct shk_error err = {""};
    cr_assert_eq(shk_regex_create(&regex, pattern, &err), 0, "%s: %s", pattern, err.text);
    int rc = shk_regex_find(regex, work, line, strlen(line));
    cr_assert_geq(rc, 0);
    shk_regex_destroy(regex);
    shk_regex_work_destroy(work);
    return rc == 1;
}

static void check(const char *pattern, const char *line, bool want)
{
    char *spelled = shk_spell_pattern(pattern);
    cr_assert_not_null(spelled);
    cr_expect_eq(takes(spelled, line), want, "%s: %s (%s)", pattern, line, spelled);
    free(spelled);
}

Test(spelling, a_pattern_without_an_error_stays_as_it_is)
{
    static const char *const patterns[] = {
        "ibv_reg_mr failed: \\d+",
        "Cannot allocate memory?",
        "Cannot allocate memories",
        "xCannot allocate memory",
        "XENOMEM",
        "ENOMEM_X",
        "\\[Errno 13\\]Permission denied",
        "Host is unreachable",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        char *spelled = shk_spell_pattern(patterns[i]);
        cr_expect_str_eq(spelled, patterns[i]);
        free(spelled);
    }
}

Test(spelling, takes_text_name_and_number)
{
    static const char pattern[] = "ibv_reg_mr\\S* failed: [Cc]annot allocate memory";
    static const char *const yes[] = {
        "ibv_reg_mr failed: Cannot allocate memory",
        "ibv_reg_mr failed: cannot allocate memory",
        "ibv_reg_mr() failed: ENOMEM",
        "ibv_reg_mr failed with FI_ENOMEM",
        "ibv_reg_mr failed with errno 12",
        "ibv_reg_mr failed (12)",
        "ibv_reg_mr failed, rc = -12",
        "ibv_reg_mr failed: -12",
        "ibv_reg_mr failed: error code 12",
    };
    static const char *const no[] = {
        "ibv_reg_mr failed: Permission denied", "ibv_reg_mr failed: errno 120",
        "ibv_reg_mr failed 12 times",           "ibv_reg_mr failed, rc = -1",
        "ibv_reg_mr failed: ENOMEMORY",         "ENOMEM: ibv_reg_mr failed",
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        check(pattern, yes[i], true);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        check(pattern, no[i], false);
}

Test(spelling, a_name_takes_the_text_too)
{
    check("open_device.*ENODEV", "open_device: No such device", true);
    check("open_device.*ENODEV", "open_device: errno 19", true);
    check("open_device.*ENODEV", "open_device: errno 6", false);
    check("No such device or address", "x: errno 6", true);
    check("No such device or address", "x: errno 19", false);
    check("PermissionError", "Permission denied", false);
    check("Permission denied", "PermissionError", true);
    check("No route to host", "connect: Host is unreachable", true);
}

Test(spelling, a_number_alone_does_not_do_for_a_pattern_that_is_the_error_alone)
{
    static const char pattern[] = "[Cc]annot allocate memory|ENOMEM\\b";
    check(pattern, "x: errno 12", true);
    check(pattern, "x: error = -12", true);
    check(pattern, "x (12)", false);
    check(pattern, "x: -12", false);
    check(pattern, "x: error 12", false);
    check(pattern, "returned -12", false);
}

Test(spelling, what_another_alternative_says_is_not_of_this_one)
{
    check("registration failed|(Cannot allocate memory)", "x: -12", false);
    check("(registration|Cannot allocate memory)", "x: -12", false);
    check("registration: (refused|Cannot allocate memory)", "registration: -12", false);
    check("registration (refused|Cannot allocate memory)", "registration (12)", true);
}

Test(spelling, one_is_no_number_of_an_error_but_as_errno)
{
    check("set_limit: Operation not permitted", "set_limit: errno 1", true);
    check("set_limit: Operation not permitted", "set_limit: rc = -1", false);
    check("set_limit: Operation not permitted", "set_limit (1)", false);
}

Test(spelling, an_error_by_itself_has_its_words)
{
    char *memory = shk_spell_error(&rows[2]), *found = shk_spell_error(&rows[6]);
    cr_expect(takes(memory, "the memory ran out"));
    cr_expect(takes(memory, "mlock: -12"));
    cr_expect_not(takes(memory, "mlock 12"));
    cr_expect(takes(found, "not found"));
    cr_expect_not(takes(found, "not-found"));
    free(memory);
    free(found);
}

Test(spelling, rows_are_found_by_number_name_and_text)
{
    cr_expect_str_eq(shk_errno_find("12", true, 12)->name, "ENOMEM");
    cr_expect_str_eq(shk_errno_find("enomem", false, 0)->name, "ENOMEM");
    cr_expect_str_eq(shk_errno_find("host is unreachable", false, 0)->name, "EHOSTUNREACH");
    cr_expect_null(shk_errno_find("0", true, 0));
    cr_expect_null(shk_errno_find("none", false, 0));
    unsigned long long all = shk_errnos_digest();
    shk_errnos_install(rows, 2);
    cr_expect_neq(shk_errnos_digest(), all);
}
