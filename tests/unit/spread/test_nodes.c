/* An all-reduce within each node, on all nodes at once. */
#include "spread_support.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(nodes, .timeout = 120);

static struct spread s;

static json_t *row_of(const struct shk_facts *facts, unsigned node)
{
    json_t *row, *rows = shk_facts_get_array(facts, "collective.exchange.by_node");
    char name[8];
    size_t i;
    snprintf(name, sizeof name, "n%u", node);
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "node")), name) == 0)
            return row;
    }
    return NULL;
}

static void expect_rows(const struct shk_facts *facts, const unsigned *ranks, unsigned nodes)
{
    cr_expect_eq(json_array_size(shk_facts_get_array(facts, "collective.exchange.by_node")), nodes);
    for (unsigned i = 0; i < nodes; i++) {
        json_t *row = row_of(facts, i);
        cr_expect_eq(json_integer_value(json_object_get(row, "ranks")), ranks[i], "n%u", i);
        cr_expect_str_eq(json_string_value(json_object_get(row, "status")), "ok", "n%u", i);
    }
}

/* Every rank works with those of its node, whatever the order in which they came; a lost one is
 * left out, and a node without ranks has no row. */
Test(nodes, each_by_itself)
{
    static const unsigned all[] = {3, 3, 3, 2}, fewer[] = {3, 2, 3};
    struct shk_collective_options how = {.ranks = 11, .deadline_ms = 60000};
    struct shk_facts *facts = shk_facts_create();
    struct shk_error err = {""};
    s.per_node = 3;
    spread_start(&s, 11);
    cr_expect_eq(shk_world_most_local(&s.world), 3);
    cr_assert_eq(hub_nodes_measure(&s.world, &spread_exchange, &how, facts, &err), 0, "%s",
                 err.text);
    expect_rows(facts, all, 4);
    shk_facts_destroy(facts);
    (void)kill(s.pids[4], SIGKILL);
    (void)kill(s.pids[9], SIGKILL);
    (void)kill(s.pids[10], SIGKILL);
    spread_wait_lost(&s, 4);
    spread_wait_lost(&s, 9);
    spread_wait_lost(&s, 10);
    facts = shk_facts_create();
    cr_assert_eq(hub_nodes_measure(&s.world, &spread_exchange, &how, facts, &err), 0, "%s",
                 err.text);
    expect_rows(facts, fewer, 3);
    shk_facts_destroy(facts);
    spread_end(&s);
}
