#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct clock_case {
    const char *what, *rows;
    enum shk_verdict verdict;
    const char *says;
    const char *nodes[5]; /* named */
};

#define NODE(name, offset, error)                                                                  \
    "{'node': '" name "', 'offset_us': " #offset ", 'error_us': " #error "}"

static const struct clock_case clock_cases[] = {
    {"alike",
     NODE("a", 0, 10) "," NODE("b", 2000, 100) "," NODE("c", -900, 100),
     SHK_PASS,
     "3 nodes within",
     {NULL}},
    {"one is ahead",
     NODE("a", 0, 10) "," NODE("b", 200000, 100) "," NODE("c", 900, 100),
     SHK_WARN,
     "b +200.0 ms",
     {"b"}},
    {"rank 0's own is the odd one",
     NODE("a", 0, 10) "," NODE("b", 310000000, 100) "," NODE("c", 310000900, 100),
     SHK_FAIL,
     "a -310.0 s",
     {"a"}},
    {"two nodes: no majority",
     NODE("a", 0, 10) "," NODE("b", 400000000, 100),
     SHK_FAIL,
     "no majority",
     {"a", "b"}},
    {"two against two",
     NODE("a", 0, 10) "," NODE("b", 0, 10) "," NODE("c", 900000, 10) "," NODE("d", 900000, 10),
     SHK_WARN,
     "no majority",
     {"a", "b", "c", "d"}},
    {"the round trip is longer than the offset",
     NODE("a", 0, 10) "," NODE("b", 400000, 500000) "," NODE("c", 900, 100),
     SHK_UNKNOWN,
     "round trip to b",
     {NULL}},
    {"a long round trip, a longer offset",
     NODE("a", 0, 10) "," NODE("b", 700000, 500000) "," NODE("c", 900, 100),
     SHK_WARN,
     "b +700.0 ms",
     {"b"}},
    {"small offsets and errors below the threshold",
     NODE("a", 0, 10) "," NODE("b", 60000, 30000) "," NODE("c", -20000, 10000),
     SHK_PASS,
     "3 nodes within",
     {NULL}},
    {"one did not answer",
     NODE("a", 0, 10) "," NODE("b", 0, 10) ", {'node': 'c', 'why': 'it did not tell its time'}",
     SHK_UNKNOWN,
     "c did not tell its time",
     {NULL}},
    {"nobody answered",
     "{'node': 'b', 'why': 'x'}, {'node': 'c', 'why': 'x'}",
     SHK_UNKNOWN,
     "did not tell its time",
     {NULL}},
    {"nonsense",
     "{'node': 'b', 'offset_us': 'x', 'error_us': 1}, 7",
     SHK_UNKNOWN,
     "did not tell its time",
     {NULL}},
};

static void check_nodes(const char *what, const struct shk_finding *row, const char *const *nodes)
{
    size_t i = 0;
    for (; nodes[i]; i++) {
        cr_assert(row->nodes && row->nodes[i], "%s: %s is not named", what, nodes[i]);
        cr_assert_str_eq(row->nodes[i], nodes[i], "%s", what);
    }
    cr_assert(!row->nodes || !row->nodes[i], "%s: also names %s", what, row->nodes[i]);
}

Test(job, clocks)
{
    for (size_t i = 0; i < sizeof clock_cases / sizeof *clock_cases; i++) {
        const struct clock_case *c = &clock_cases[i];
        char members[1024];
        snprintf(members, sizeof members, "'job.clocks': [%s]", c->rows);
        struct shk_findings *list = support_run(support_config(), "single-node", members);
        const struct shk_finding *row = support_find(list, "job.clocks", "clocks");
        cr_assert_not_null(row, "%s", c->what);
        char *text = support_text(row);
        cr_assert_eq(row->verdict, c->verdict, "%s: %s", c->what, text);
        cr_assert(strstr(text, c->says) != NULL, "%s: %s", c->what, text);
        check_nodes(c->what, row, c->nodes);
        free(text);
        shk_findings_destroy(list);
    }
}

/* A node that credentials do not survive, and one that NTP does not steer: a row each. */
Test(job, clocks_of_two_kinds)
{
    struct shk_findings *list =
        support_run(support_config(), "single-node",
                    "'job.clocks': [" NODE("a", 0, 10) "," NODE("b", 5, 10) "," NODE(
                        "c", 5, 10) "," NODE("d", 999000000, 10) "," NODE("e", 500000, 10) "]");
    unsigned fails = 0, warns = 0;
    for (size_t i = 0; i < shk_findings_count(list); i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        if (strcmp(row->id, "job.clocks") != 0)
            continue;
        fails += row->verdict == SHK_FAIL && strcmp(row->nodes[0], "d") == 0;
        warns += row->verdict == SHK_WARN && strcmp(row->nodes[0], "e") == 0;
    }
    cr_assert_eq(fails, 1);
    cr_assert_eq(warns, 1);
    shk_findings_destroy(list);
}
