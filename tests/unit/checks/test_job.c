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
     "c did not report its time",
     {NULL}},
    {"nobody answered",
     "{'node': 'b', 'why': 'x'}, {'node': 'c', 'why': 'x'}",
     SHK_UNKNOWN,
     "did not report its time",
     {NULL}},
    {"an entry that is no node",
     "{'node': 'b', 'offset_us': 1, 'error_us': 1}, 7",
     SHK_UNKNOWN,
     "unexpected form",
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

/* The row of a check on these facts: verdict, text and nodes. */
static void check_case(const struct clock_case *c, const char *members, const char *id,
                       const char *setting)
{
    struct shk_findings *list = support_run(support_config(), "single-node", members);
    const struct shk_finding *row = support_find(list, id, setting);
    cr_assert_not_null(row, "%s", c->what);
    char *text = support_text(row);
    cr_assert_eq(row->verdict, c->verdict, "%s: %s", c->what, text);
    cr_assert(strstr(text, c->says) != NULL, "%s: %s", c->what, text);
    check_nodes(c->what, row, c->nodes);
    free(text);
    shk_findings_destroy(list);
}

Test(job, clocks)
{
    for (size_t i = 0; i < sizeof clock_cases / sizeof *clock_cases; i++) {
        const struct clock_case *c = &clock_cases[i];
        char members[1024];
        snprintf(members, sizeof members, "'job.clocks': [%s]", c->rows);
        check_case(c, members, "job.clocks", "clocks");
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

struct job_case {
    const char *what, *facts, *id, *setting;
    enum shk_verdict verdict;
    const char *diagnosis; /* NULL: none */
    const char *says, *fix;
};

#define ALONE(name, title)                                                                         \
    "'job.alone': {'launcher': '" title "', 'name': '" name "', 'tasks': 4, 'local': 2}"
#define ALONE_OF_OLD(name, title)                                                                  \
    "'job.launcher': '" name "', 'job.alone': {'launcher': '" title "', 'tasks': 4, 'local': 2}"
#define OFFER(version)                                                                             \
    "'job.pmix': {'namespace': 'n', 'rank': '0', 'version': '" version "', 'servers': []}"
#define BROKEN(reason)                                                                             \
    "'job.pmix.problem': '" reason "', 'job.pmix.library': {'state': 'absent', 'source': 'PMIx', " \
    "'reason': 'not joined'}"
#define NOT_BUILT "'job.pmix.built': {'state': 'absent', 'source': 'build', 'reason': 'no pmix.h'}"
#define ALLOCATION(nodes)                                                                          \
    "'job.alone': {'launcher': 'Slurm', 'allocation': true, 'tasks': 16, 'local': 0" nodes "}"
#define TWO_NODES                                                                                  \
    "'probe.env.status': 'ok', 'job.layout': [{'node': 'a', 'ranks': [0, 1]}, {'node': 'b', "      \
    "'ranks': [2, 3]}]"
#define ONE_NAME "'probe.env.status': 'ok', 'job.layout': [{'node': 'a', 'ranks': [0, 1, 2, 3]}]"

#define JOINED(more) "'job.joined': {'by': 'pmi', 'why': 'no-pmix', 'port': 1, " more "}"

static const struct job_case job_cases[] = {
    {"a rank that never came",
     "'job.missing': [{'rank': 5, 'host': 'n3', 'why': 'it never came', 'launch': false}]",
     "job.missing", "ranks", SHK_FAIL, "rank-missing", "rank 5 on n3: it never came", NULL},
    {"a rank of another version",
     "'job.missing': [{'rank': 5, 'host': 'n3', 'why': 'it is shakedown 2', 'launch': true}]",
     "job.missing", "ranks that were not taken", SHK_FAIL, "ranks-not-taken", "shakedown 2", NULL},
    {"a rank whose end the all-reduce saw",
     "'job.missing': [{'rank': 1, 'host': 'n2', 'why': 'it was there and is gone'}], "
     "'collective.fabric.cause': 'node-unreachable', 'collective.fabric.nodes': ['n2']",
     "job.missing", "ranks", SHK_FAIL, "node-unreachable", "it was there and is gone", NULL},
    {"a rank that is gone, and another one to blame",
     "'job.missing': [{'rank': 1, 'host': 'n2', 'why': 'it was there and is gone'}], "
     "'collective.fabric.cause': 'node-unreachable', 'collective.fabric.nodes': ['n3']",
     "job.missing", "ranks", SHK_FAIL, "rank-missing", "it was there and is gone", NULL},
    {"rank 0 and another one lost each other",
     "'job.missing': [{'rank': 1, 'host': 'n2', 'why': 'it was there and is gone', 'either': "
     "true}], "
     "'collective.fabric.cause': 'node-unreachable', 'collective.fabric.nodes': ['n1', 'n2']",
     "job.missing", "ranks", SHK_FAIL, "node-unreachable", "it was there and is gone", NULL},
    {"plain srun", ALONE("slurm", "Slurm"), "job.pmix", "PMIx", SHK_WARN, "pmi-flavour-mismatch",
     "--mpi=none", "srun --mpi=list"},
    {"pmi2", ALONE("slurm", "Slurm") ", 'job.slurm.mpi_type': 'pmi2'", "job.pmix", "PMIx", SHK_WARN,
     "pmi-flavour-mismatch", "PMI-2", "srun --mpi=pmix"},
    {"pmi2 behind a wrapper", ALONE("slurm", "Slurm") ", 'env.PMI_FD': '11'", "job.pmix", "PMIx",
     SHK_WARN, "pmi-flavour-mismatch", "--mpi=pmi2", "srun --mpi=pmix"},
    {"openmpi", ALONE("slurm", "Slurm") ", 'job.slurm.mpi_type': 'openmpi'", "job.pmix", "PMIx",
     SHK_WARN, "pmi-flavour-mismatch", "--mpi=openmpi", "srun --mpi=pmix"},
    {"a flavour of tomorrow", ALONE("slurm", "Slurm") ", 'job.slurm.mpi_type': 'pmi9'", "job.pmix",
     "PMIx", SHK_WARN, "pmi-flavour-mismatch", "--mpi=pmi9", "srun --mpi=pmix"},
    {"variables lost", ALONE("slurm", "Slurm") ", 'job.slurm.mpi_type': 'pmix_v4'", "job.pmix",
     "PMIx", SHK_WARN, "pmix-variables-lost", "PMIX_NAMESPACE", "--cleanenv"},
    {"mpiexec of MPICH", ALONE("pmi", "PMI"), "job.pmix", "PMIx", SHK_WARN, "pmi-flavour-mismatch",
     "MPICH", "prterun"},
    {"mpirun without PMIx", ALONE("ompi", "Open MPI"), "job.pmix", "PMIx", SHK_WARN,
     "pmix-variables-lost", "variables of Open MPI", "PMIX_*"},
    {"mpirun of a document of 0.2.0", ALONE_OF_OLD("ompi", "Open MPI"), "job.pmix", "PMIx",
     SHK_WARN, "pmix-variables-lost", "variables of Open MPI", "PMIX_*"},
    {"a title says nothing", ALONE("torchrun", "Open MPI"), "job.pmix", "PMIx", SHK_WARN,
     "launcher-not-joined", "nothing between the ranks was tested", NULL},
    {"torchrun", ALONE("torchrun", "torchrun"), "job.pmix", "PMIx", SHK_WARN, "launcher-not-joined",
     "nothing between the ranks was tested", "srun --mpi=pmix"},
    {"a launcher of tomorrow", ALONE("futurun", "futurun"), "job.pmix", "PMIx", SHK_WARN,
     "launcher-not-joined", "which futurun does not offer", "mpirun"},
    {"no srun in an allocation", ALLOCATION(", 'nodes': 4"), "job.pmix", "PMIx", SHK_WARN,
     "launcher-not-joined", "nothing on the other nodes", "srun --mpi=pmix shakedown"},
    {"an allocation of who knows how many nodes", ALLOCATION(""), "job.pmix", "PMIx", SHK_WARN,
     "launcher-not-joined", "nothing was tested", NULL},
    {"an allocation of one node", ALLOCATION(", 'nodes': 1"), "job.pmix", "PMIx", SHK_NOTE, NULL,
     "nothing was tested", NULL},
    {"plain srun of a binary without PMIx", ALONE("slurm", "Slurm") "," NOT_BUILT, "job.pmix",
     "PMIx", SHK_WARN, "pmix-not-built", "built without PMIx", "libpmix-dev"},
    {"srun --mpi=pmix of a binary without PMIx", OFFER("4.2.2") "," BROKEN("built") "," NOT_BUILT,
     "job.pmix", "PMIx", SHK_FAIL, "pmix-not-built", "built without PMIx", "libpmix-dev"},
    {"a saved report that could not say",
     "'job.pmix.library': {'state': 'failed', 'source': 'PMIx', 'reason': 'no luck'}", "job.pmix",
     "PMIx", SHK_UNKNOWN, NULL, "no luck", NULL},
    {"no library",
     OFFER("5.0.1") "," BROKEN("libpmix.so.2: nowhere") ", 'job.pmix.cause': 'no-library'",
     "job.pmix", "PMIx", SHK_FAIL, "pmix-library-missing", "offers PMIx 5.0.1", "Install libpmix"},
    {"other generation",
     OFFER("5.0.1") ", 'job.pmix.version': 'OpenPMIx 3.2.3 (x)'," BROKEN("PMIx_Init: no"),
     "job.pmix", "PMIx", SHK_FAIL, "pmix-version-mismatch", "server 5.0.1, library OpenPMIx 3.2.3",
     "pmix_vN"},
    {"same generation",
     OFFER("4.2.2rc2") ", 'job.pmix.version': 'OpenPMIx 4.2.6'," BROKEN("PMIx_Init: no"),
     "job.pmix", "PMIx", SHK_FAIL, "launcher-not-joined", "PMIx_Init: no", "PMIX_SERVER_TMPDIR"},
    {"joined", "'job.pmix.library': '/l', 'job.pmix.version': '4.2'", "job.pmix", "PMIx", SHK_PASS,
     NULL, "4.2", NULL},
    {"joined with a key", JOINED("'keyed': true, 'key': 'PMI', 'loopback': false"), "job.joined",
     "rendezvous", SHK_PASS, NULL, "joined by PMI; the key is that of PMI", NULL},
    {"joined by variables",
     "'job.joined': {'by': 'variables', 'launcher': 'Slurm', 'variable': 'SLURM_STEP_NODELIST', "
     "'why': 'no-pmi', 'port': 1, 'keyed': true, 'key': 'SHAKEDOWN_KEY', 'loopback': false}",
     "job.joined", "rendezvous", SHK_PASS, NULL,
     "joined by the variables of Slurm: SLURM_STEP_NODELIST; the key is that of SHAKEDOWN_KEY",
     NULL},
    {"joined by variables that name one node",
     "'job.joined': {'by': 'variables', 'launcher': 'Open MPI', 'why': 'pmi-late', 'port': 1, "
     "'keyed': false, 'loopback': true}",
     "job.joined", "rendezvous", SHK_PASS, NULL,
     "joined by the variables of Open MPI: all tasks are on this node; no key, on this host only",
     NULL},
    {"joined in a way of tomorrow",
     "'job.joined': {'by': 'Carrier pigeons', 'port': 1, 'keyed': true, 'loopback': false}",
     "job.joined", "rendezvous", SHK_PASS, NULL, "joined by Carrier pigeons", NULL},
    {"joined on one host", JOINED("'keyed': false, 'loopback': true"), "job.joined", "rendezvous",
     SHK_PASS, NULL, "no key, on this host only", NULL},
    {"joined without a key", JOINED("'keyed': false, 'loopback': false"), "job.joined",
     "rendezvous", SHK_NOTE, NULL, "whoever reaches the port of rank 0", "SHAKEDOWN_KEY"},
    {"joined, and nobody knows how", "'job.joined': {'by': 'pmi'}", "job.joined", "rendezvous",
     SHK_UNKNOWN, NULL, "", NULL},
    {"a job, and how it met was not kept", TWO_NODES, "job.joined", "rendezvous", SHK_UNKNOWN, NULL,
     "", NULL},
    {"torchrun that does not say where rank 0 is",
     "'job.alone': {'launcher': 'torchrun', 'tasks': 4, 'local': 2, 'why': 'nobody knows'}",
     "job.pmix", "PMIx", SHK_WARN, "launcher-not-joined", "nobody knows; each node was tested",
     "--rendezvous file:///DIR"},
    {"nodes with one name",
     ONE_NAME ", 'job.launcher': 'slurm', 'job.missing': [], 'env.SLURM_STEP_NUM_NODES': '2'",
     "job.spread", "nodes in use", SHK_FAIL, "hostname-not-unique", "same name", "hostname"},
    {"a rank is missing: that says it all",
     ONE_NAME ", 'job.launcher': 'slurm', 'env.SLURM_STEP_NUM_NODES': '2', 'job.missing': "
              "[{'rank': 4, 'host': 'b', 'why': 'it never came'}]",
     "job.spread", "nodes in use", SHK_PASS, NULL, "1", NULL},
    {"mpirun places as it likes",
     ONE_NAME ", 'job.launcher': 'ompi', 'job.missing': [], 'env.SLURM_STEP_NUM_NODES': '2'",
     "job.spread", "nodes in use", SHK_PASS, NULL, "1", NULL},
    {"fewer nodes than asked for", TWO_NODES ", 'env.SLURM_NNODES': '3'", "job.spread",
     "nodes in use", SHK_WARN, NULL, "2 of the 3 nodes", "srun -N3"},
    {"all nodes", TWO_NODES ", 'env.SLURM_NNODES': '2', 'env.SLURM_STEP_NUM_NODES': '2'",
     "job.spread", "nodes in use", SHK_PASS, NULL, "2", NULL},
    {"more ranks than slots", TWO_NODES ", 'env.SLURM_JOB_CPUS_PER_NODE': '1(x2)'", "job.slots",
     "ranks per node", SHK_WARN, "ranks-share-processors", "2 on 1 processor of the allocation",
     "--overcommit"},
    {"ranks of one processor", "'collective.peer.ranks': 2, 'host.affinity': '5'", "job.slots",
     "ranks per node", SHK_WARN, "ranks-share-processors", "2 on 1 processor that may be used",
     "more ranks than"},
    {"ranks with a processor each", "'collective.nccl.ranks': 2, 'host.affinity': '5,7'",
     "job.slots", "ranks per node", SHK_PASS, NULL, "2 on 2 processors", NULL},
    {"ranks on processors nobody knows",
     "'collective.nccl.ranks': 2, 'host.affinity': {'state': 'failed', 'reason': 'odd'}",
     "job.slots", "ranks per node", SHK_UNKNOWN, NULL, "odd", NULL},
    {"ranks on no list", "'collective.nccl.ranks': 2, 'host.affinity': 'x'", "job.slots",
     "ranks per node", SHK_UNKNOWN, NULL, "no list", NULL},
    {"a number of ranks nobody knows", "'collective.nccl.ranks': 'x', 'host.affinity': '5'",
     "job.slots", "ranks per node", SHK_UNKNOWN, NULL, "collective.nccl.ranks", NULL},
    {"ranks below a pod's quota",
     "'collective.nccl.ranks': 8, 'host.affinity': '0-63', 'cgroup.cpu.max': 4000, "
     "'host.container': 'kubernetes'",
     "job.slots", "ranks per node", SHK_WARN, "ranks-share-processors", "4.0 processors",
     "limits.cpu"},
    {"ranks within a pod's quota",
     "'collective.nccl.ranks': 8, 'host.affinity': '0-63', 'cgroup.cpu.max': 8000", "job.slots",
     "ranks per node", SHK_PASS, NULL, "8 on 64", NULL},
    {"no quota", "'collective.nccl.ranks': 8, 'host.affinity': '0-63', 'cgroup.cpu.max': -1",
     "job.slots", "ranks per node", SHK_PASS, NULL, "8 on 64", NULL},
    {"no control group",
     "'collective.nccl.ranks': 8, 'host.affinity': '0-63', 'cgroup.cpu.max': {'state': 'absent', "
     "'reason': 'none'}",
     "job.slots", "ranks per node", SHK_PASS, NULL, "8 on 64", NULL},
    {"a quota nobody knows",
     "'collective.nccl.ranks': 8, 'host.affinity': '0-63', 'cgroup.cpu.max': {'state': 'failed', "
     "'reason': 'odd'}",
     "job.slots", "ranks per node", SHK_UNKNOWN, NULL, "odd", NULL},
    {"a job below its quota",
     TWO_NODES ", 'env.SLURM_JOB_CPUS_PER_NODE': '8(x2)', "
               "'cgroup.cpu.max': 1500",
     "job.slots", "ranks per node", SHK_WARN, "ranks-share-processors", "1.5 processors",
     "cpu.max"},
    {"slots of the roomiest node", TWO_NODES ", 'env.SLURM_JOB_CPUS_PER_NODE': '1,2'", "job.slots",
     "ranks per node", SHK_PASS, NULL, "2 on 2 processors", NULL},
};

Test(job, launcher)
{
    for (size_t i = 0; i < sizeof job_cases / sizeof *job_cases; i++) {
        const struct job_case *c = &job_cases[i];
        struct shk_findings *list = support_run(support_config(), "single-node", c->facts);
        const struct shk_finding *row = support_find(list, c->id, c->setting);
        cr_assert_not_null(row, "%s", c->what);
        char *text = support_text(row);
        cr_assert_eq(row->verdict, c->verdict, "%s: %s", c->what, text);
        cr_assert(!row->diagnosis == !c->diagnosis &&
                      (!c->diagnosis || strcmp(row->diagnosis, c->diagnosis) == 0),
                  "%s: %s", c->what, text);
        cr_assert(strstr(text, c->says) != NULL, "%s: %s", c->what, text);
        cr_assert(!c->fix || strstr(text, c->fix), "%s: %s", c->what, text);
        free(text);
        shk_findings_destroy(list);
    }
}

/* As documents of 0.2.0 have it. */
#define SPEED(slow)                                                                                \
    "'collective.fabric.pair_speed': {'nodes': 3, 'pairs': 3, 'latency_us': {'median': 2, 'mad': " \
    "0}, 'bandwidth': {'median': 20, 'mad': 1}, 'rows': [], 'slow': [" slow "]}"

#define MEASURED_RUN(latency)                                                                      \
    "{'latency_us': [" latency "], 'ping_wait_us': [0], 'bandwidth': [20], 'mean_us': [60], "      \
    "'put_wait_us': [0]}"
#define MEASURED_PAIR(a, b, first, second)                                                         \
    "{'a': '" a "', 'b': '" b "', 'runs': [" MEASURED_RUN(first) "," MEASURED_RUN(second) "]}"
/* Latencies of the pairs with node c, in each of two runs. */
#define MEASURED(first, second)                                                                    \
    "'collective.fabric.pair_speed': {'nodes': 3, 'pairs': 3, 'runs': 2, 'bytes': 1048576, "       \
    "'rows': [" MEASURED_PAIR("a", "b", "2", "2") "," MEASURED_PAIR(                               \
        "a", "c", first, second) "," MEASURED_PAIR("b", "c", first, second) "]}"

Test(job, speed_between_nodes)
{
    static const struct clock_case cases[] = {
        {"alike", SPEED(""), SHK_PASS, "3 pairs of 3 nodes: median 2.0 us, 20.00 GB/s", {NULL}},
        {"a node",
         SPEED("{'nodes': ['c'], 'what': 'latency_us', 'value': 9.5, 'median': 2}"),
         SHK_WARN,
         "c: latency 9.5 us (median 2.0)",
         {"c"}},
        {"a pair, and a node that is named once",
         SPEED("{'nodes': ['a', 'b'], 'what': 'bandwidth', 'value': 3, 'median': 20}, {'nodes': "
               "['b'], 'what': 'latency_us', 'value': 9, 'median': 2}"),
         SHK_WARN,
         "a with b: 3.00 GB/s (median 20.00)",
         {"a", "b"}},
        {"not measured",
         "'collective.fabric.pair_speed': {'state': 'failed', 'source': 'x', 'reason': 'no time'}",
         SHK_UNKNOWN,
         "no time",
         {NULL}},
        {"measured, alike",
         MEASURED("2", "2"),
         SHK_PASS,
         "3 pairs of 3 nodes: median 2.0 us, 20.00 GB/s",
         {NULL}},
        {"measured, and a node is slow",
         MEASURED("9", "9"),
         SHK_WARN,
         "c: latency 9.0 us (median 2.0)",
         {"c"}},
        {"measured, and it was slow in one of two runs",
         MEASURED("9", "2"),
         SHK_PASS,
         "3 pairs of 3 nodes",
         {NULL}},
        {"measured, and a part is not there",
         MEASURED("9", "null"),
         SHK_UNKNOWN,
         "are incomplete",
         {NULL}},
        {"nonsense", "'collective.fabric.pair_speed': 7", SHK_UNKNOWN, "unexpected form", {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], cases[i].rows, "collective.pair_speed",
                   "speed between nodes (fabric)");
}

#define GPUS(name, status, busbw)                                                                  \
    "{'node': '" name "', 'status': '" status "', 'ranks': 2, 'busbw': " busbw ", 'bytes': "       \
    "8388608}"
#define NODES(rows) "'collective.peer.by_node': [" rows "]"

Test(job, gpus_within_nodes)
{
    static const struct clock_case cases[] = {
        {"alike",
         NODES(GPUS("a", "ok", "350.5") ", " GPUS("b", "ok", "180") ", " GPUS("c", "ok", "340")),
         SHK_PASS,
         "3 nodes, 180.00 to 350.50 GB/s",
         {NULL}},
        {"one of three slow",
         NODES(GPUS("a", "ok", "350") ", " GPUS("b", "ok", "170") ", " GPUS("c", "ok", "345")),
         SHK_WARN,
         "b: 170.00 GB/s (median 345.00)",
         {"b"}},
        {"small messages are not compared",
         NODES(GPUS("a", "ok", "2") ", " GPUS("b", "ok",
                                              "2.5") ", {'node': 'c', 'status': 'ok', "
                                                     "'ranks': 2, 'busbw': 0.1, 'bytes': 65536}"),
         SHK_NA,
         "not compared",
         {NULL}},
        {"one without GPUs",
         NODES(GPUS("a", "ok", "350") ", {'node': 'b', 'status': 'na', 'ranks': 2, 'busbw': 0, "
                                      "'reason': 'the driver finds no GPU'}"),
         SHK_WARN,
         "b: the driver finds no GPU",
         {"b"}},
        {"one fails, which is another row's",
         NODES(GPUS("a", "ok", "350") ", " GPUS("b", "wrong", "1") ", " GPUS("c", "ok", "345")),
         SHK_NA,
         "2 nodes",
         {NULL}},
        {"nonsense", "'collective.peer.by_node': 7", SHK_UNKNOWN, "unexpected form", {NULL}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], cases[i].rows, "collective.by_node", "nodes (peer)");
}

/* Nothing to compare: no row. */
Test(job, gpus_of_one_node_or_of_none)
{
    static const char *const rows[] = {
        NODES(GPUS("a", "ok", "350")),
        NODES(GPUS("a", "na", "0") ", " GPUS("b", "na", "0")),
        NODES(GPUS("a", "failed", "0") ", " GPUS("b", "failed", "0")),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_findings *list = support_run(support_config(), "single-node", rows[i]);
        cr_expect_null(support_find(list, "collective.by_node", "nodes (peer)"), "%s", rows[i]);
        shk_findings_destroy(list);
    }
}
