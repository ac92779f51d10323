/* Copies of GPUs: a slow GPU, direction, link or pair is named, like ones give nothing. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define HOST   "copies between host and GPU"
#define MEMORY "GPU memory bandwidth"
#define PAIRS  "copies between GPUs"

#define LINK(speed, width, gbs, most)                                                              \
    "{'at': '0000:17:00.0', 'speed': " speed ", 'width': " width ", 'gbs': " gbs ", 'most': " most \
    "}"
#define GEN5 LINK("32.0", "16", "63.0", "32.0")
#define GPU(n, to, back, memory, link)                                                             \
    "{'rank': " n ", 'pci': '0000:0" n ":00.0', 'to_device': " to ", 'to_host': " back             \
    ", 'memory': " memory ", 'memory_peak': 4917.0, 'numa': 0, 'near': true, 'link': " link "}"
#define FINE(n)                 GPU(n, "55.1", "54.0", "4100.0", GEN5)
#define PAIR(a, b, gbs)         "{'from': '0000:0" a ":00.0', 'to': '0000:0" b ":00.0', 'gbs': " gbs "}"
#define NODE(name, gpus, pairs) "{'node': '" name "', 'gpus': [" gpus "], 'pairs': [" pairs "]}"
#define FACT(nodes)             "'collective.peer.copies': [" nodes "]"
#define GPUS(gpus)              FACT(NODE("node9", gpus, ""))
#define PAIRED(pairs)           FACT(NODE("node9", FINE("1") ", " FINE("2") ", " FINE("3"), pairs))
#define SWITCHED                                                                                   \
    "'nvml.devices': [" DEVICE("1") ", " DEVICE("2") ", " DEVICE(                                  \
        "3") "], 'nvml.health': [" HEALTH("1") ", " HEALTH("2") ", " HEALTH("3") "], "
#define DEVICE(n)                                                                                  \
    "{'pci': '0000:0" n                                                                            \
    ":00.0', 'links': [{'link': 0, 'active': true, 'remote': 'switch', 'pci': "                    \
    "null}, {'link': 1, 'active': true, 'remote': 'switch', 'pci': null}]}"
#define HEALTH(n) "{'pci': '0000:0" n ":00.0', 'links': [{'link': 0, 'speed': 26562}]}"
/* Two links between 1 and 2, one between 1 and 3, none between 2 and 3. */
#define TO(n) "{'link': 0, 'active': true, 'remote': 'gpu', 'pci': '0000:0" n ":00.0'}"
#define UNEVEN                                                                                                                  \
    "'nvml.devices': [{'pci': '0000:01:00.0', 'links': [" TO("2") ", " TO("2") ", " TO(                                         \
        "3") "]}, {'pci': '0000:02:00.0', 'links': [" TO("1") ", " TO("1") "]}, {'pci': "                                       \
                                                                           "'0000:03:00.0', "                                   \
                                                                           "'links': [" TO("1") "]}], 'nvml.health': [" HEALTH( \
                                                                               "1") ", " HEALTH("2") ", " HEALTH("3") "], "
/* GPU 2 of this node is held by a process in that state. */
#define HELD(host, state)                                                                          \
    "'host.name': '" host "', 'nvml.health': [{'pci': '0000:01:00.0', 'processes': []}, {'pci': "  \
    "'0000:02:00.0', 'processes': [{'pid': 4711, 'name': 'python3', 'uid': 0, 'state': '" state    \
    "'}]}], "
#define SIX(ab, ba, ac, ca, bc, cb)                                                                \
    PAIR("1", "2", ab)                                                                             \
    ", " PAIR("2", "1", ba) ", " PAIR("1", "3", ac) ", " PAIR("3", "1", ca) ", " PAIR(             \
        "2", "3", bc) ", " PAIR("3", "2", cb)

static const struct {
    const char *name, *setting, *facts;
    enum shk_verdict verdict;
    const char *says;
} cases[] = {
    {"two fine ones", HOST, GPUS(FINE("1") ", " FINE("2")), SHK_PASS,
     "x16 at 32 GT/s carry 63.0 GB/s, less packet headers 57.6 GB/s"},
    {"two fine ones", MEMORY, GPUS(FINE("1") ", " FINE("2")), SHK_PASS, "4100.0 to 4100.0 GB/s"},
    {"one fine one", HOST, GPUS(FINE("1")), SHK_PASS, "54.0 to 55.1 GB/s"},
    {"one direction is busy", HOST, GPUS(FINE("1") ", " GPU("2", "55.0", "27.0", "4100.0", GEN5)),
     SHK_WARN, "node9: to host from 0000:02:00.0 27.0 GB/s (others 54.0)"},
    {"the other one", HOST, GPUS(FINE("1") ", " GPU("2", "27.0", "54.0", "4100.0", GEN5)), SHK_WARN,
     "node9: host to 0000:02:00.0 27.0 GB/s"},
    {"both are slow", HOST,
     GPUS(GPU("1", "20.0", "20.0", "4100.0", GEN5) ", " GPU("2", "20.0", "20.0", "4100.0", GEN5)),
     SHK_WARN, "gpu-copy-slow"},
    {"a single one is slow", HOST, GPUS(GPU("1", "20.0", "54.0", "4100.0", GEN5)), SHK_WARN,
     "0000:01:00.0"},
    {"links of two kinds", HOST,
     GPUS(FINE("1") ", " GPU("2", "27.0", "27.0", "4100.0", LINK("32.0", "8", "31.5", "32.0"))),
     SHK_PASS, "27.0 to 55.1"},
    {"a link that trained low", HOST,
     GPUS(FINE("1") ", " GPU("2", "27.0", "27.0", "4100.0", LINK("16.0", "16", "31.5", "32.0"))),
     SHK_WARN, "PCIe link of 0000:17:00.0 at 16 GT/s under load, both ends can do 32"},
    {"nobody knows the link, like each other", HOST,
     GPUS(GPU("1", "20.0", "20.0", "4100.0", "null") ", " GPU("2", "20.0", "20.0", "4100.0",
                                                              "null")),
     SHK_PASS, "20.0"},
    {"nobody knows the link, one is slow", HOST,
     GPUS(GPU("1", "20.0", "20.0", "4100.0", "null") ", " GPU("2", "12.0", "20.0", "4100.0",
                                                              "null")),
     SHK_WARN, "host to 0000:02:00.0 12.0"},
    {"another node is slow", HOST,
     FACT(NODE("node8", FINE("1") ", " FINE("2"),
               "") ", " NODE("node9", FINE("1") ", " GPU("2", "27.0", "54.0", "4100.0", GEN5), "")),
     SHK_WARN, "node9"},
    {"a busy GPU", MEMORY, GPUS(FINE("1") ", " GPU("2", "55.1", "54.0", "2500.0", GEN5)), SHK_WARN,
     "node9: within 0000:02:00.0 2500.0 GB/s (others 4100.0)"},
    {"a single busy GPU", MEMORY, GPUS(GPU("2", "55.1", "54.0", "2500.0", GEN5)), SHK_WARN,
     "gpu-memory-slow"},
    {"a GPU that another program uses", MEMORY,
     HELD("node9", "running") GPUS(FINE("1") ", " GPU("2", "55.1", "54.0", "2500.0", GEN5)),
     SHK_WARN, "process 4711 python3 of user 0"},
    {"a pair that another program uses", PAIRS,
     HELD("node9", "running") PAIRED(SIX("40.0", "20.0", "40.0", "40.0", "40.0", "40.0")), SHK_WARN,
     "gpu-shared"},
    {"a link that another program uses", HOST,
     HELD("node9", "running") GPUS(FINE("1") ", " GPU("2", "27.0", "54.0", "4100.0", GEN5)),
     SHK_WARN, "ps -o pid,user,lstart,cmd -p 4711"},
    {"the other GPU is slow", MEMORY,
     HELD("node9", "running") GPUS(GPU("1", "55.1", "54.0", "2500.0", GEN5) ", " FINE("2")),
     SHK_WARN, "gpu-memory-slow"},
    {"both are slow, one is used", MEMORY,
     HELD("node9", "running") GPUS(
         GPU("1", "55.1", "54.0", "2000.0", GEN5) ", " GPU("2", "55.1", "54.0", "2500.0", GEN5)),
     SHK_WARN, "gpu-memory-slow"},
    {"the process has ended", MEMORY,
     HELD("node9", "zombie") GPUS(FINE("1") ", " GPU("2", "55.1", "54.0", "2500.0", GEN5)),
     SHK_WARN, "gpu-memory-slow"},
    {"processes of another node", MEMORY,
     HELD("node1", "running") GPUS(FINE("1") ", " GPU("2", "55.1", "54.0", "2500.0", GEN5)),
     SHK_WARN, "gpu-memory-slow"},
    {"memory not measured", MEMORY, GPUS(GPU("1", "55.1", "54.0", "null", GEN5)), SHK_NA,
     "not measured"},
    {"host not measured", HOST, GPUS(GPU("1", "null", "null", "4100.0", GEN5)), SHK_NA,
     "not measured"},
    {"no pair", PAIRS, GPUS(FINE("1")), SHK_NA, "one GPU"},
    {"all pairs alike", PAIRS, PAIRED(SIX("40.0", "40.0", "41.0", "40.0", "42.0", "40.0")),
     SHK_PASS, "40.0 to 42.0"},
    {"PCIe paths of two kinds", PAIRS, PAIRED(SIX("40.0", "40.0", "20.0", "20.0", "20.0", "20.0")),
     SHK_PASS, "20.0 to 40.0"},
    {"slower one way", PAIRS, PAIRED(SIX("40.0", "20.0", "40.0", "40.0", "40.0", "40.0")), SHK_WARN,
     "node9: 0000:02:00.0 to 0000:01:00.0 20.0 GB/s (others 40.0)"},
    {"NVLinks of another number between each pair", PAIRS,
     UNEVEN PAIRED(SIX("45.0", "45.0", "23.0", "23.0", "11.0", "11.0")), SHK_PASS, "11.0 to 45.0"},
    {"the wide one of them is as slow as the narrow one", PAIRS,
     UNEVEN PAIRED(SIX("45.0", "23.0", "23.0", "23.0", "11.0", "11.0")), SHK_WARN,
     "node9: 0000:02:00.0 to 0000:01:00.0 23.0 GB/s (others 45.0)"},
    {"one GPU is slow with both others, one way", PAIRS,
     SWITCHED PAIRED(SIX("43.0", "43.0", "20.0", "43.0", "21.0", "43.0")), SHK_WARN,
     "node9: 0000:03:00.0 with each of 2 others, one way, 20.0 to 21.0 GB/s (others 43.0)"},
    {"a pair of six was not measured", PAIRS,
     PAIRED(SIX("43.0", "43.0", "43.0", "null", "43.0", "43.0")), SHK_UNKNOWN,
     "1 not measured: node9: 0000:03:00.0 to 0000:01:00.0"},
    {"a pair of six is slow, one was not measured", PAIRS,
     PAIRED(SIX("20.0", "43.0", "43.0", "null", "43.0", "43.0")), SHK_WARN,
     "0000:01:00.0 to 0000:02:00.0 20.0"},
    {"no pair was measured", PAIRS, PAIRED(SIX("null", "null", "null", "null", "null", "null")),
     SHK_NA, "not measured"},
    {"pairs are left out", PAIRS, PAIRED(PAIR("1", "2", "43.0") ", " PAIR("2", "1", "43.0")),
     SHK_UNKNOWN, "4 of 6 pairs of node9 were not measured"},
    {"one GPU of two not measured", HOST,
     GPUS(FINE("1") ", " GPU("2", "null", "54.0", "4100.0", GEN5)), SHK_UNKNOWN,
     "to_device 0000:02:00.0"},
    {"NVLinks carry it", PAIRS,
     SWITCHED PAIRED(SIX("43.0", "43.0", "43.0", "43.0", "43.0", "43.0")), SHK_PASS,
     "the active NVLinks carry 53 GB/s each way"},
    {"a pair is slower than the others of the switch", PAIRS,
     SWITCHED PAIRED(SIX("43.0", "43.0", "30.0", "30.0", "43.0", "43.0")), SHK_WARN,
     "0000:01:00.0 to 0000:03:00.0 30.0"},
    {"all pairs are slower than NVLink", PAIRS,
     SWITCHED PAIRED(SIX("20.0", "20.0", "20.0", "20.0", "20.0", "20.0")), SHK_WARN,
     "gpu-pair-slow"},
    {"fact unread", HOST,
     "'collective.peer.copies': {'state': 'failed', 'source': 'x', 'reason': 'y'}", SHK_UNKNOWN,
     "y"},
    {"another form", HOST, "'collective.peer.copies': 7", SHK_UNKNOWN, ""},
    {"GPUs unread", HOST, "'collective.peer.copies': [{'node': 'a', 'pairs': []}]", SHK_UNKNOWN,
     ""},
    {"rate of another form", HOST, GPUS(GPU("1", "'fast'", "54.0", "4100.0", GEN5)), SHK_UNKNOWN,
     "to_device"},
};

Test(copies, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_findings *findings =
            support_run(support_config(), "single-node", cases[i].facts);
        const struct shk_finding *row = support_find(findings, "gpu.copies", cases[i].setting);
        cr_assert_not_null(row, "%s: no row %s", cases[i].name, cases[i].setting);
        char *text = support_text(row);
        cr_expect_eq(row->verdict, cases[i].verdict, "%s, %s: %d %s", cases[i].name,
                     cases[i].setting, row->verdict, text);
        cr_expect_not_null(strstr(text, cases[i].says), "%s: %s", cases[i].name, text);
        free(text);
        shk_findings_destroy(findings);
    }
}

Test(copies, nothing_copied)
{
    struct shk_findings *findings = support_run(support_config(), "single-node", "'x': 1");
    cr_assert_null(support_find(findings, "gpu.copies", HOST));
    shk_findings_destroy(findings);
}

#define LOAD "GPUs under load"
#define LOADED(bad, first, least)                                                                  \
    "'collective.peer.stress': [{'node': 'node9', 'gpus': [{'rank': 0, 'pci': '0000:01:00.0', "    \
    "'seconds': 9.0, 'rounds': 80, 'bad': 0, 'first': 4000.0, 'last': 3990.0, 'least': 3900.0}, "  \
    "{'rank': 1, 'pci': '0000:02:00.0', 'seconds': 9.0, 'rounds': 80, 'bad': " bad                 \
    ", 'first': " first ", 'last': 4000.0, 'least': " least "}]}]"

static const struct support_case loads[] = {
    {"fine", "single-node", "gpu.stress", LOAD, LOADED("0", "4000.0", "3950.0"), SHK_PASS,
     SHK_TESTED, "2 GPUs for 9 s, no wrong word"},
    {"wrong", "single-node", "gpu.stress", LOAD, LOADED("3", "4000.0", "3950.0"), SHK_FAIL,
     SHK_TESTED, "node9: 3 wrong words at 0000:02:00.0"},
    {"slows down", "single-node", "gpu.stress", LOAD, LOADED("0", "4000.0", "2000.0"), SHK_WARN,
     SHK_TESTED, "0000:02:00.0 from 4000 down to 2000 GB/s"},
    {"unread", "single-node", "gpu.stress", LOAD, LOADED("null", "4000.0", "3950.0"), SHK_UNKNOWN,
     SHK_NOT_COVERED, ""},
    {"failed", "single-node", "gpu.stress", LOAD,
     "'collective.peer.stress': {'state': 'failed', 'source': 'x', 'reason': 'gone'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "gone"},
};

Test(copies, loads)
{
    support_cases(loads, sizeof loads / sizeof *loads);
}
