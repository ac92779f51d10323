#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define LOSS   "packet loss (fabric)"
#define ERRORS "network error counters (fabric)"

#define FLOW(from, to, again, needless, unsent)                                                    \
    "{'from': '" from "', 'to': '" to "', 'sent': 10000, 'again': " #again                         \
    ", 'needless': " #needless ", 'unsent': " #unsent                                              \
    ", 'timeouts': 2, 'waited_ms': 400, 'stuck': 0}"
#define SPEED(a, b, ms) "{'a': '" a "', 'b': '" b "', 'mean_ms': " #ms "}"
#define THREE(into, out, other)                                                                    \
    FLOW("a", "b", into, 0, 0)                                                                     \
    ", " FLOW("c", "b", into, 0, 0) ", " FLOW("b", "a", out, 0, 0) ", " FLOW(                      \
        "b", "c", out, 0, 0) ", " FLOW("a", "c", other, 0, 0) ", " FLOW("c", "a", other, 0, 0)
#define NODE(name, read, moved, unread)                                                            \
    "{'node': '" name "', 'read': [" read "], 'moved': [" moved "], 'unread': [" unread "]}"
#define MOVED(counter, kind, by)                                                                   \
    "{'scope': 'mlx5_0/1', 'counter': '" counter "', 'kind': '" kind "', 'by': " #by "}"
#define WENT(iface) "{'scope': '" iface "', 'counter': 'carrier_down', 'kind': 'down', 'by': 2}"
#define RAILS(name)                                                                                \
    ", 'collective.fabric.rails': [{'domain': '" name "', 'pci': '0000:9b:00.0', "                 \
    "'status': 'used'}]"
#define IFACES                                                                                     \
    ", 'net.ifaces': [{'name': 'ens3', 'pci': '0000:9b:00.0'}, {'name': 'eno1', 'pci': "           \
    "'0000:01:00.0'}, {'name': 'hsn1'}, {'name': 'hsn10'}], 'rdma.devices': [{'name': 'mlx5_0'}]"
#define QUIET(name) NODE(name, "'tcp', 'mlx5_0/1'", "", "")
#define RUN(flows, unread, counters)                                                               \
    "{'what': 'pairs', 'flows': [" flows "], 'unread': [" unread "], 'counters': [" counters       \
    "], 'quiet': 0}"
#define FACT(runs)   "'collective.fabric.counters': [" runs "]"
#define FLOWS(flows) FACT(RUN(flows, "", QUIET("a")) ", " RUN(flows, "", QUIET("a")))
#define NODES(nodes) FACT(RUN("", "", nodes) ", " RUN("", "", nodes))
#define ONCE(nodes)  FACT(RUN("", "", nodes) ", " RUN("", "", QUIET("a") ", " QUIET("b")))

struct row_case {
    const char *what, *facts, *setting;
    enum shk_verdict verdict;
    const char *says;
    const char *nodes[4];
};

static const struct row_case row_cases[] = {
    {"next to nothing",
     FLOWS(THREE(1, 0, 1)),
     LOSS,
     SHK_PASS,
     "8 of 120000 TCP segments between nodes lost",
     {NULL}},
    {"into one",
     FLOWS(THREE(320, 1, 1)),
     LOSS,
     SHK_FAIL,
     "b: 3.2 % of what is sent to it is lost, between other nodes 0.01 %; 24 timers ran out, 4.8 s",
     {"b"}},
    {"with what it costs",
     FLOWS(THREE(320, 1, 1)) ", 'collective.fabric.pair_speed': {'rows': [" SPEED(
         "a", "b", 12) ", " SPEED("c", "b", 16) ", " SPEED("a", "c", 1.5) "]}",
     LOSS,
     SHK_FAIL,
     "; 1 MiB takes 14.0 ms with it, 1.5 without",
     {"b"}},
    {"out of one",
     FLOWS(THREE(1, 320, 1)),
     LOSS,
     SHK_FAIL,
     "b: 3.2 % of what it sends is lost",
     {"b"}},
    {"both ways",
     FLOWS(THREE(300, 320, 1)),
     LOSS,
     SHK_FAIL,
     "b: 3 % of what is sent to it and 3.2 % of what it sends is lost",
     {"b"}},
    {"a little: slow, not broken",
     FLOWS(THREE(40, 0, 0)),
     LOSS,
     SHK_WARN,
     "its rate falls with the square root",
     {"b"}},
    {"two nodes, neither blamed",
     FLOWS(FLOW("a", "b", 320, 0, 0) ", " FLOW("b", "a", 0, 0, 0)),
     LOSS,
     SHK_FAIL,
     "a to b 3.2 % lost",
     {NULL}},
    {"two nodes, a little",
     FLOWS(FLOW("a", "b", 32, 0, 0) ", " FLOW("b", "a", 0, 0, 0)),
     LOSS,
     SHK_WARN,
     "both ends or the path between them",
     {"a", "b"}},
    {"all three", FLOWS(THREE(320, 320, 330)), LOSS, SHK_FAIL, "no node is common to them", {NULL}},
    {"two nodes, one drops its own",
     FLOWS(FLOW("a", "b", 0, 0, 320) ", " FLOW("b", "a", 0, 0, 0)),
     LOSS,
     SHK_FAIL,
     "its own kernel drops them before they leave",
     {"a"}},
    {"sent again without need",
     FLOWS(FLOW("a", "b", 320, 320, 0)),
     LOSS,
     SHK_PASS,
     "0 of 20000",
     {NULL}},
    {"lost, but hardly anything was sent",
     FACT(RUN("{'from': 'a', 'to': 'b', 'sent': 40, 'again': 5, 'needless': 0, 'unsent': 0, "
              "'timeouts': 0, 'waited_ms': 0, 'stuck': 0}",
              "", QUIET("a"))),
     LOSS,
     SHK_UNKNOWN,
     "5 of 40 segments from a to b lost: too few",
     {NULL}},
    {"nothing lost, though hardly anything was sent",
     FACT(RUN("{'from': 'a', 'to': 'b', 'sent': 40, 'again': 0, 'needless': 0, 'unsent': 0, "
              "'timeouts': 0, 'waited_ms': 0, 'stuck': 0}",
              "", QUIET("a"))),
     LOSS,
     SHK_PASS,
     "0 of 40",
     {NULL}},
    {"large packets vanish: another cause than loss",
     FACT(RUN("{'from': 'a', 'to': 'b', 'sent': 400, 'again': 14, 'needless': 0, 'unsent': 0, "
              "'timeouts': 6, 'waited_ms': 17551, 'stuck': 1}",
              "", QUIET("a"))),
     LOSS,
     SHK_UNKNOWN,
     "from a to b nothing got through any more",
     {NULL}},
    {"no TCP", NODES(QUIET("a") ", " QUIET("b")), LOSS, SHK_NA, "no TCP connections", {NULL}},
    {"a rank that was not looked at",
     FACT(RUN(THREE(0, 0, 0), "{'rank': 1, 'node': 'b', 'why': 'no inet_diag'}", QUIET("a"))),
     LOSS,
     SHK_UNKNOWN,
     "TCP connections of b were not checked: no inet_diag",
     {NULL}},
    {"seen in spite of one that was not looked at",
     FACT(RUN(THREE(320, 0, 0), "{'rank': 0, 'node': 'a', 'why': 'no inet_diag'}", QUIET("a"))),
     LOSS,
     SHK_FAIL,
     "3.2 %",
     {"b"}},
    {"no list of those that were not looked at",
     FACT("{'flows': [" THREE(0, 0, 0) "]}"),
     LOSS,
     SHK_UNKNOWN,
     "unread",
     {NULL}},
    {"another form", "'collective.fabric.counters': 7", LOSS, SHK_UNKNOWN, "", {NULL}},
    {"not read",
     "'collective.fabric.counters': {'state': 'failed', 'source': 'x', 'reason': 'gone'}",
     LOSS,
     SHK_UNKNOWN,
     "gone",
     {NULL}},

    {"devices are quiet",
     NODES(QUIET("a") ", " QUIET("b")),
     ERRORS,
     SHK_PASS,
     "none moved in 2 measurements",
     {NULL}},
    {"errors of a link",
     NODES(QUIET("a") ", " NODE("b", "'mlx5_0/1'", MOVED("symbol_error", "link", 9), "")),
     ERRORS,
     SHK_WARN,
     "b: mlx5_0/1 symbol_error +9",
     {"b"}},
    {"once only",
     ONCE(QUIET("a") ", " NODE("b", "'mlx5_0/1'", MOVED("symbol_error", "link", 9), "")),
     ERRORS,
     SHK_NOTE,
     "in one of 2 measurements",
     {"b"}},
    {"lost towards one: counted by its peers and by itself",
     NODES(NODE("a", "'mlx5_0/1'", MOVED("packet_seq_err", "resent", 50), "") ", " NODE(
         "b", "'mlx5_0/1'", MOVED("out_of_sequence", "missed", 100),
         "") ", " NODE("c", "'mlx5_0/1'", MOVED("packet_seq_err", "resent", 50), "")),
     ERRORS,
     SHK_WARN,
     "out_of_sequence +100",
     {"b"}},
    {"two: no telling which",
     NODES(NODE("a", "'mlx5_0/1'", MOVED("packet_seq_err", "resent", 50),
                "") ", " NODE("b", "'mlx5_0/1'", MOVED("out_of_sequence", "missed", 100), "")),
     ERRORS,
     SHK_WARN,
     "the sender counts that, whoever lost it",
     {"a", "b"}},
    {"load is no error",
     NODES(NODE("a", "'mlx5_0/1'", MOVED("out_of_buffer", "busy", 50), "")),
     ERRORS,
     SHK_PASS,
     "none moved",
     {NULL}},
    {"TCP's own counters are in the other row",
     NODES(NODE("a", "'eth0'",
                "{'scope': 'tcp', 'counter': 'RetransSegs', 'kind': 'resent', 'by': 9}", "")),
     ERRORS,
     SHK_PASS,
     "none moved",
     {NULL}},
    {"a link that went down, of a rail",
     ONCE(NODE("a", "'mlx5_0/1'", MOVED("link_downed", "down", 1), "")) RAILS("mlx5_0-dgram"),
     ERRORS,
     SHK_FAIL,
     "a: mlx5_0/1 link_downed +1",
     {"a"}},
    {"of the interface of a rail's card",
     ONCE(NODE("a", "'ens3'", WENT("ens3"), "")) RAILS("mlx5_0") IFACES,
     ERRORS,
     SHK_FAIL,
     "a: ens3 carrier_down +2",
     {"a"}},
    {"with what was lost by others because of it",
     ONCE(NODE("a", "'hsn0'", WENT("hsn0"), "") ", " NODE(
         "b", "'mlx5_0/1'", MOVED("packet_seq_err", "resent", 5), "")) RAILS("hsn0"),
     ERRORS,
     SHK_FAIL,
     "went down during the run",
     {"a"}},
    {"of a port that the collective does not use",
     ONCE(NODE("a", "'eno1'", WENT("eno1"), "")) RAILS("mlx5_0") IFACES,
     ERRORS,
     SHK_NOTE,
     "in one of 2 measurements",
     {"a"}},
    {"of one whose name only begins so",
     ONCE(NODE("a", "'hsn1'", WENT("hsn1"), "")) RAILS("hsn10") IFACES,
     ERRORS,
     SHK_NOTE,
     "in one of 2 measurements",
     {"a"}},
    {"what the collective used was not read",
     ONCE(NODE("a", "'hsn0'", WENT("hsn0"), "")) ", 'collective.fabric.rails': {'state': 'failed', "
                                                 "'source': 'x', 'reason': 'gone'}",
     ERRORS,
     SHK_WARN,
     "whether the collective used it is not known",
     {"a"}},
    {"the node that speaks for the job has no device of that name",
     ONCE(NODE("a", "'ens9'", WENT("ens9"), "")) RAILS("mlx5_0") IFACES,
     ERRORS,
     SHK_WARN,
     "whether the collective used it is not known",
     {"a"}},
    {"neither card is known, and the rail is none of this node's devices",
     ONCE(NODE("a", "'hsn1'", WENT("hsn1"), "")) ", 'collective.fabric.rails': [{'domain': 'cxi0', "
                                                 "'pci': null}]" IFACES,
     ERRORS,
     SHK_WARN,
     "whether the collective used it is not known",
     {"a"}},
    {"nodes of which nothing is to be told",
     FACT("{'flows': [], 'unread': [], 'counters': [], 'quiet': 40}"),
     ERRORS,
     SHK_PASS,
     "none moved in 1 measurement",
     {NULL}},
    {"how many were quiet was not read",
     FACT("{'flows': [], 'unread': [], 'counters': []}"),
     ERRORS,
     SHK_UNKNOWN,
     "",
     {NULL}},
    {"a device that was not read",
     NODES(NODE("a", "'mlx5_0/1'", "", "{'scope': 'cxi0', 'why': 'EACCES'}")),
     ERRORS,
     SHK_UNKNOWN,
     "counters of cxi0 on a: EACCES",
     {NULL}},
    {"nobody told", NODES(""), ERRORS, SHK_UNKNOWN, "no node reported", {NULL}},
    {"no device",
     NODES(NODE("a", "'tcp'", "", "")),
     ERRORS,
     SHK_UNKNOWN,
     "no network device",
     {NULL}},
    {"a counter of another form",
     NODES(NODE("a", "'mlx5_0/1'", "{'scope': 'x'}", "")),
     ERRORS,
     SHK_UNKNOWN,
     "",
     {NULL}},
};

Test(loss, rows)
{
    for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++) {
        const struct row_case *c = &row_cases[i];
        struct shk_findings *list = support_run(support_config(), "single-node", c->facts);
        const char *id = strcmp(c->setting, LOSS) == 0 ? "collective.loss" : "collective.counters";
        const struct shk_finding *row = support_find(list, id, c->setting);
        size_t named = 0;
        cr_assert_not_null(row, "%s", c->what);
        char *text = support_text(row);
        cr_assert_eq(row->verdict, c->verdict, "%s: %s", c->what, text);
        cr_assert(strstr(text, c->says) != NULL, "%s: %s", c->what, text);
        cr_assert(strstr(c->facts, "'c'") || !strstr(text, "between other"),
                  "%s: tells of nodes that are not there: %s", c->what, text);
        for (; row->nodes && row->nodes[named]; named++)
            cr_assert(c->nodes[named] && strcmp(row->nodes[named], c->nodes[named]) == 0,
                      "%s: names %s", c->what, row->nodes[named]);
        cr_assert_null(c->nodes[named], "%s: does not name %s", c->what, c->nodes[named]);
        free(text);
        shk_findings_destroy(list);
    }
}

/* Without several nodes nothing is counted, and nothing is claimed. */
Test(loss, one_node)
{
    struct shk_findings *list = support_run(support_config(), "single-node", "'host.name': 'a'");
    cr_assert_null(support_find(list, "collective.loss", LOSS));
    cr_assert_null(support_find(list, "collective.counters", ERRORS));
    shk_findings_destroy(list);
}

#define LAYOUT3                                                                                    \
    "'job.layout': [{'node': 'a', 'ranks': [0]}, {'node': 'b', 'ranks': [1]}, {'node': 'c', "      \
    "'ranks': [2]}]"

/* An all-reduce over several nodes owes these rows; one that was n/a, or within each node, does
 * not.
 */
Test(loss, owed)
{
    static const struct {
        const char *facts;
        bool loss, speed;
    } cases[] = {
        {LAYOUT3 ", 'collective.fabric.status': 'ok'", true, true},
        {LAYOUT3 ", 'collective.fabric.status': 'failed'", true, false},
        {LAYOUT3 ", 'collective.fabric.status': 'na'", false, false},
        {LAYOUT3 ", 'collective.fabric.status': 'ok', 'collective.fabric.by_node': []", false,
         false},
        {"'job.layout': [{'node': 'a', 'ranks': [0, 1]}], 'collective.fabric.status': 'ok'", false,
         false},
        {"'collective.fabric.status': 'ok'", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_findings *list = support_run(support_config(), "single-node", cases[i].facts);
        const struct shk_finding *loss = support_find(list, "collective.loss", LOSS);
        const struct shk_finding *errors = support_find(list, "collective.counters", ERRORS);
        const struct shk_finding *speed =
            support_find(list, "collective.pair_speed", "speed between nodes (fabric)");
        cr_assert_eq(loss != NULL, cases[i].loss, "%s", cases[i].facts);
        cr_assert_eq(errors != NULL, cases[i].loss, "%s", cases[i].facts);
        cr_assert_eq(speed != NULL, cases[i].speed, "%s", cases[i].facts);
        cr_assert(!loss || (loss->verdict == SHK_UNKNOWN && errors->verdict == SHK_UNKNOWN));
        cr_assert(!speed || speed->verdict == SHK_UNKNOWN);
        shk_findings_destroy(list);
    }
}
