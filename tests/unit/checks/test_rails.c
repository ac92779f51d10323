#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define USED(name, speed)                                                                          \
    "{'domain': '" name "', 'fabric': 'ib', 'status': 'used', 'rank': 3, 'host': 'n2', "           \
    "'bandwidth': " speed "}"
#define RAILS(rows) "'collective.fabric.rails': [" rows "]"

static const struct rails_case {
    const char *what, *facts, *setting;
    enum shk_verdict verdict;
    const char *says, *diagnosis, *node;
} cases[] = {
    {"alike", RAILS(USED("a", "20") ", " USED("b", "19.5")), "network devices (fabric)", SHK_PASS,
     "side by side: a 20.00 GB/s, b 19.50 GB/s", NULL, NULL},
    {"not measured",
     "'collective.fabric.status': 'ok', " RAILS(
         "{'domain': 'a', 'status': 'used'}, {'domain': 'b', 'status': 'used'}"),
     "network devices (fabric)", SHK_UNKNOWN, "no time was left to measure 2 of them", NULL, NULL},
    {"not come to it",
     "'collective.fabric.status': 'failed', " RAILS(
         "{'domain': 'a', 'status': 'used'}, {'domain': 'b', 'status': 'used'}"),
     "network devices (fabric)", SHK_UNKNOWN, "the all-reduce ended before 2 of them", NULL, NULL},
    {"one", RAILS(USED("a", "20")), "network devices (fabric)", SHK_NA, "nothing to compare", NULL,
     NULL},
    {"left out", RAILS(USED("a", "20") ", {'domain': 'b', 'status': 'left out', 'reason': 'x'}"),
     "network devices (fabric)", SHK_NA, "nothing to compare", NULL, NULL},
    {"slow", RAILS(USED("a", "20") ", " USED("b", "13.9") ", " USED("c", "21")),
     "network device b (fabric)", SHK_WARN,
     "13.90 GB/s alone, the others 20.50; least at rank 3 on n2", "fabric-rail-slow", "n2"},
    {"slow of two", RAILS(USED("a", "2") ", " USED("b", "20")), "network device a (fabric)",
     SHK_WARN, "2.00 GB/s alone, the others 20.00", "fabric-rail-slow", "n2"},
    {"at the limit", RAILS(USED("a", "20") ", " USED("b", "14")), "network devices (fabric)",
     SHK_PASS, "side by side", NULL, NULL},
    {"dead",
     RAILS(USED("a", "20") ", {'domain': 'b', 'status': 'dead', 'reason': 'nothing came', 'rank': "
                           "1, 'host': 'n1', 'hosts': ['n4']}"),
     "network device b (fabric)", SHK_WARN, "carries no data: seen by rank 1 on n1: nothing came",
     "fabric-rail-dead", "n4"},
    {"dead, by what speaks against each host",
     RAILS(USED("a", "20") ", {'domain': 'b', 'status': 'dead', 'reason': 'nothing came', 'rank': "
                           "1, 'host': 'n1', 'blame': [{'host': 'n1', 'tokens': 1}, {'host': 'n4', "
                           "'tokens': 2}, {'host': 'n2', 'tokens': 1}]}"),
     "network device b (fabric)", SHK_WARN, "carries no data", "fabric-rail-dead", "n4"},
    {"missing",
     RAILS(USED("a", "20") ", {'domain': 'b', 'status': 'missing', 'reason': 'rank 9 has no device "
                           "for it', 'rank': 1, 'host': 'n1', 'hosts': ['n4']}"),
     "network device b (fabric)", SHK_WARN, "not on every rank: seen by rank 1 on n1: rank 9",
     "fabric-rail-dead", "n4"},
    {"unread", "'collective.fabric.rails': {'state': 'failed', 'source': 'x', 'reason': 'torn'}",
     "network devices (fabric)", SHK_UNKNOWN, "torn", NULL, NULL},
    {"nonsense", "'collective.fabric.rails': 7", "network devices (fabric)", SHK_UNKNOWN,
     "no rank reported", NULL, NULL},
};

Test(rails, verdicts)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rails_case *c = &cases[i];
        struct shk_findings *list = support_run(support_config(), "single-node", c->facts);
        const struct shk_finding *row = support_find(list, "collective.rails", c->setting);
        cr_assert_not_null(row, "%s", c->what);
        char *text = support_text(row);
        cr_assert_eq(row->verdict, c->verdict, "%s: %s", c->what, text);
        cr_assert(strstr(text, c->says) != NULL, "%s: %s", c->what, text);
        cr_assert(!row->diagnosis == !c->diagnosis &&
                      (!c->diagnosis || strcmp(row->diagnosis, c->diagnosis) == 0),
                  "%s: %s", c->what, text);
        cr_assert(!c->node || (row->nodes && row->nodes[0] && !row->nodes[1] &&
                               strcmp(row->nodes[0], c->node) == 0),
                  "%s: %s is not the one that is named", c->what, c->node);
        free(text);
        shk_findings_destroy(list);
    }
}

Test(rails, no_row_where_nothing_was_run)
{
    struct shk_findings *list = support_run(support_config(), "single-node", "'host.name': 'a'");
    cr_expect_null(support_find(list, "collective.rails", "network devices (fabric)"));
    shk_findings_destroy(list);
}
