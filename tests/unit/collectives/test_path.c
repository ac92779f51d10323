/* A run that stood still: between which nodes data is stuck, and what that tells. */
#include "collectives/launch/world_private.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 5U

struct stuck {
    unsigned from, to;  /* nodes */
    int stuck, answers; /* answers: -1 was not asked */
};

static const struct row {
    const char *name;
    unsigned nodes;
    struct stuck rows[12];
    unsigned count;
    int rank;               /* to blame; -1 nobody */
    const char *nodes_text; /* undecided; "" none */
    const char *cause;      /* NULL: what it was before */
    const char *common;     /* what the pairs have in common; NULL: the same as `rank` */
} cases[] = {
    {"nothing is stuck", 3, {{0, 1, 0, -1}, {1, 2, 0, -1}}, 2, -1, "", NULL, NULL},
    {"a port with a small MTU",
     3,
     {{0, 1, 1, 1}, {1, 2, 1, 1}, {2, 0, 0, -1}},
     3,
     1,
     "",
     "path-mtu",
     NULL},
    {"seen from one side",
     3,
     {{0, 1, 1, 1}, {2, 1, 2, 1}, {1, 0, 0, -1}},
     3,
     1,
     "",
     "path-mtu",
     NULL},
    {"of the first node", 3, {{1, 0, 1, 1}, {0, 2, 1, 1}}, 2, 0, "", "path-mtu", NULL},
    {"one pair only", 3, {{0, 1, 1, 1}}, 1, -1, "n0 n1", "path-mtu", NULL},
    {"two nodes, both ways", 2, {{0, 1, 1, 1}, {1, 0, 1, 1}}, 2, -1, "n0 n1", "path-mtu", NULL},
    {"everywhere",
     3,
     {{0, 1, 1, 1}, {1, 2, 1, 1}, {2, 0, 1, 1}},
     3,
     -1,
     "n0 n1 n2",
     "path-mtu",
     NULL},
    {"a link that is cut", 3, {{0, 1, 1, 0}, {1, 2, 1, 0}}, 2, 1, "", "node-unreachable", NULL},
    {"two ports of five",
     5,
     {{2, 3, 1, 1}, {1, 4, 1, 1}, {0, 1, 1, 1}, {2, 4, 1, 1}, {0, 2, 1, 1}},
     5,
     -1,
     "n2 n1",
     "path-mtu",
     "n2 and n1"},
    {"two ports of five, and between them",
     5,
     {{1, 2, 1, 1}, {1, 0, 1, 1}, {1, 3, 1, 1}, {2, 3, 1, 1}, {2, 4, 1, 1}},
     5,
     -1,
     "n1 n2",
     "path-mtu",
     "n1 and n2"},
    {"two ports of four: no majority",
     4,
     {{1, 0, 1, 1}, {1, 3, 1, 1}, {2, 0, 1, 1}, {2, 3, 1, 1}},
     4,
     -1,
     "n0 n1 n3 n2",
     "path-mtu",
     ""},
    {"one port, and one pair elsewhere",
     5,
     {{1, 0, 1, 1}, {1, 2, 1, 1}, {3, 4, 1, 1}},
     3,
     -1,
     "n1 n3 n4",
     "path-mtu",
     ""},
    {"not asked", 3, {{0, 1, 1, -1}, {1, 2, 1, -1}}, 2, -1, "", NULL, NULL},
};

static json_t *net_of(const struct row *c, unsigned node)
{
    json_t *rows = json_array();
    char from[32];
    char to[32];
    unsigned i = 0;

    snprintf(from, sizeof(from), "10.0.0.%u", node + 1);
    /* So that every address is known. */
    (void)json_array_append_new(
        rows, json_pack("{s:s, s:s, s:i}", "from", from, "to", "192.0.2.1", "stuck", 0));
    for (i = 0; i < c->count; i++) {
        json_t *row = NULL;

        if (c->rows[i].from != node) {
            continue;
        }
        snprintf(to, sizeof(to), "10.0.0.%u", c->rows[i].to + 1);
        row = json_pack("{s:s, s:s, s:i, s:i}", "from", from, "to", to, "stuck", c->rows[i].stuck,
                        "mss", 8948);
        if (c->rows[i].answers >= 0) {
            (void)json_object_set_new(row, "answers", json_boolean(c->rows[i].answers));
        }
        (void)json_array_append_new(rows, row);
    }
    return json_pack("{s:{s:b, s:o}}", "flows", "read", 1, "rows", rows);
}

static void check_common(const struct row *c, const struct shk_world *world)
{
    json_t *names = NULL;
    char *common = hub_path_common(world, &names);
    char blamed[16] = "";

    if (c->rank >= 0) {
        snprintf(blamed, sizeof(blamed), "n%d", c->rank);
    }
    cr_expect_str_eq(common != NULL ? common : "", c->common != NULL ? c->common : blamed, "%s: %s",
                     c->name, common != NULL ? common : "none");
    free(common);
    json_decref(names);
}

static void check_case(const struct row *c)
{
    struct shk_world world = {0};
    struct hub_member member[NODES_MAX] = {{0}};
    struct hub_member *members[NODES_MAX];
    struct shk_crew_rank ranks[NODES_MAX] = {{0}};
    json_t *net[NODES_MAX];
    struct hub_group group = {.members = members, .size = c->nodes, .net = net};
    char names[64] = "";
    json_t *undecided = NULL;
    size_t k = 0;
    unsigned i = 0;

    for (i = 0; i < c->nodes; i++) {
        snprintf(member[i].host, sizeof(member[i].host), "n%u", i);
        snprintf(ranks[i].host, sizeof(ranks[i].host), "n%u", i);
        members[i] = &member[i];
        net[i] = net_of(c, i);
    }
    world.nodes_count = c->nodes;
    group.result = (struct shk_crew_result){.rank = -1, .ranks = ranks, .cause = "all-hang"};
    undecided = hub_path(&world, &group);
    for (k = 0; k < json_array_size(undecided); k++) {
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", k > 0 ? " " : "",
                 json_string_value(json_array_get(undecided, k)));
    }
    cr_expect_eq(group.result.rank, c->rank, "%s: blames %d: %s", c->name, group.result.rank,
                 group.result.reason.text);
    cr_expect_str_eq(names, c->nodes_text, "%s: %s", c->name, names);
    cr_expect_str_eq(group.result.cause, c->cause != NULL ? c->cause : "all-hang", "%s", c->name);
    if (c->cause != NULL && strcmp(c->cause, "path-mtu") == 0) {
        cr_expect_not_null(strstr(group.result.reason.text, "8988 B"), "%s",
                           group.result.reason.text);
    }
    if (c->cause != NULL) {
        char *text = NULL;

        cr_expect_str_eq(hub_path_cause(&world, "n1", &text), c->cause, "%s", c->name);
        cr_expect_not_null(strstr(text, " to and from n1 "), "%s", text);
        free(text);
    }
    check_common(c, &world);
    json_decref(undecided);
    json_decref(world.stuck);
    for (i = 0; i < c->nodes; i++) {
        json_decref(net[i]);
    }
}

Test(path, the_node_that_the_stuck_pairs_have_in_common)
{
    size_t i = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i]);
    }
}

/* A refusal is an answer; to an address that leads nowhere there is none. */
Test(path, small_packets_are_answered, .timeout = 100)
{
    json_t *rows =
        json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:i}]", "from", "127.0.0.1", "to", "127.0.0.1",
                  "stuck", 1, "from", "127.0.0.1", "to", "127.0.0.1", "stuck", 0);

    agent_path(rows);
    cr_expect(json_is_true(json_object_get(json_array_get(rows, 0), "answers")));
    cr_expect_null(json_object_get(json_array_get(rows, 1), "answers"));
    json_decref(rows);
    rows = json_pack("[{s:s, s:s, s:i}]", "from", "127.0.0.1", "to", "192.0.2.1", "stuck", 1);
    agent_path(rows);
    cr_expect_not(json_is_true(json_object_get(json_array_get(rows, 0), "answers")));
    json_decref(rows);
    agent_path(NULL);
}
