#include "core/text/errnos.h"
#include "probes/log/logparts.h"
#include "probes/log/logscan.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_errno rows[] = {
    {.name = "EACCES", .number = 13, .texts = (const char *const[]){"Permission denied", NULL}},
    {.name = "EIO", .number = 5, .texts = (const char *const[]){"Input/output error", NULL}},
};

static const char *const denied[] = {"EACCES", NULL}, *const both[] = {"EIO", "EACCES", NULL};

static const struct shk_log_pattern patterns[] = {
    {.id = "errors", .pattern = "\\b(failed|denied|EIO|EACCES|error)\\b", .error_words = true},
    {.id = "sure", .pattern = "for sure", .decides = true, .explains = true},
    {.id = "any", .pattern = "out of luck", .decides = true, .yields = true, .explains = true},
    {.id = "guess", .pattern = "who knows", .guess = true},
    {.id = "node-denied", .object = "/dev/acme\\d", .errors = denied, .guess = true},
    {.id = "gate", .object = "\\bgate\\b", .errors = both, .guess = true, .general = true},
};
enum { COUNT = sizeof patterns / sizeof *patterns };

static struct shk_logscan *scan;

static void begin(void)
{
    struct shk_error err = {""};
    shk_errnos_install(rows, sizeof rows / sizeof *rows);
    cr_assert_eq(shk_logscan_create(&scan, patterns, COUNT, NULL, &err), 0, "%s", err.text);
}

static void end(void)
{
    shk_logscan_destroy(scan);
}

TestSuite(logparts, .init = begin, .fini = end);

/* Which patterns the line has, by their ids. */
static const char *found(const char *line)
{
    static char text[256];
    struct shk_error err = {""};
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_logscan_text(scan, "log", line, strlen(line), &err), 0, "%s", err.text);
    cr_assert_eq(shk_logscan_facts(scan, facts), 0);
    *text = '\0';
    for (size_t i = 1; i < COUNT; i++) {
        char key[64];
        struct shk_fact fact;
        snprintf(key, sizeof key, "log.sig.%s", patterns[i].id);
        if (shk_facts_get(facts, key, &fact))
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", patterns[i].id);
    }
    shk_facts_destroy(facts);
    return text;
}

Test(logparts, in_any_order_and_spelling)
{
    cr_expect_str_eq(found("open /dev/acme0: EACCES\n"), "node-denied ");
}

Test(logparts, the_error_first)
{
    cr_expect_str_eq(found("permission denied by the gate at /dev/acme3\n"), "node-denied gate ");
}

Test(logparts, by_number)
{
    cr_expect_str_eq(found("/dev/acme0 failed (13)\n"), "node-denied ");
}

Test(logparts, one_of_several_errors)
{
    cr_expect_str_eq(found("gate: EIO, /dev/acme0\n"), "gate ");
}

Test(logparts, no_object_or_no_error)
{
    cr_expect_str_eq(found("door: EACCES\n/dev/acme0: failed\n/dev/acme0 opened (13)\n"), "");
}

Test(logparts, not_where_a_signature_decides)
{
    cr_expect_str_eq(found("for sure /dev/acme0: EACCES\n"), "sure ");
}

Test(logparts, not_in_a_line_that_informs)
{
    cr_expect_str_eq(found("x INFO /dev/acme0: EACCES\n"), "");
}

Test(logparts, general_words_yield_to_an_object)
{
    cr_expect_str_eq(found("out of luck, /dev/acme0: EACCES\n"), "node-denied ");
}

Test(logparts, general_words_stay_with_a_general_object)
{
    cr_expect_str_eq(found("out of luck, gate: EACCES\n"), "any gate ");
}

Test(logparts, general_words_stay_without_an_object)
{
    cr_expect_str_eq(found("out of luck, EACCES\n"), "any ");
}

Test(logparts, a_guess_stands_beside_it)
{
    cr_expect_str_eq(found("who knows, /dev/acme0: EACCES\n"), "guess node-denied ");
}

static void on_part(void *arg, size_t pattern)
{
    size_t *last = arg;
    *last = pattern;
}

Test(logparts, patterns_without_an_object_are_none)
{
    struct shk_log_parts *parts = NULL;
    size_t last = SIZE_MAX;
    cr_assert_eq(shk_log_parts_create(&parts, patterns, 4, NULL), 0);
    cr_expect_eq(shk_log_parts_find(parts, "gate EIO", 8, on_part, &last), 0);
    cr_expect_eq(last, SIZE_MAX);
    shk_log_parts_destroy(parts);
}

Test(logparts, an_object_that_is_no_pattern)
{
    static const struct shk_log_pattern bad = {.id = "bad", .object = "(", .errors = denied};
    struct shk_log_parts *parts = NULL;
    struct shk_error err = {""};
    cr_expect_eq(shk_log_parts_create(&parts, &bad, 1, &err), -EINVAL);
    cr_expect_null(parts);
}
