/* Transceivers, RDMA devices that do not open, AMD GPUs by driver and amd_smi, results of other
 * tools: each fault is named, what is healthy or not offered gives nothing, what was not read is
 * unknown. */
#include "support.h"

#include <criterion/criterion.h>

#define ROW(id_, name, setting, facts, verdict, evidence, says)                                    \
    {                                                                                              \
        name, "single-node", id_, setting, facts, verdict, evidence, says                          \
    }
#define ABSENT "{'state': 'absent', 'source': 'x', 'reason': 'y'}"
#define FAILED "{'state': 'failed', 'source': 'x', 'reason': 'gone'}"

#define PORT(running, module)                                                                      \
    "'net.transceivers': [{'name': 'eth1', 'running': " running ", 'module': " module "}]"
#define MODULE(copper, fault, now, limit, light, dark)                                             \
    "{'form': 'QSFP', 'vendor': 'A', 'part': 'B', 'copper': " copper ", 'fault': " fault           \
    ", 'temperature': " now ", 'temperature_alarm': " limit ", 'light': " light                    \
    ", 'light_alarm': " dark "}"
#define CAGE(name, facts, verdict, evidence, says)                                                 \
    ROW("nic.transceivers", name, "transceivers", facts, verdict, evidence, says)

static const struct support_case modules[] = {
    CAGE("healthy", PORT("true", MODULE("false", "false", "43.5", "75", "[600, 601]", "40")),
         SHK_PASS, SHK_TESTED, "1 within their limits"),
    CAGE("dark", PORT("true", MODULE("false", "false", "43.5", "75", "[600, 12.5]", "40")),
         SHK_WARN, SHK_TESTED, "eth1: lane 2: 12.5 uW of light, limit 40.0 uW"),
    CAGE("dark and down", PORT("false", MODULE("false", "false", "43.5", "75", "[0, 0]", "40")),
         SHK_PASS, SHK_TESTED, "1 within"),
    CAGE("hot", PORT("true", MODULE("false", "false", "75", "75", "[600]", "40")), SHK_WARN,
         SHK_TESTED, "eth1: 75 °C, limit 75 °C"),
    CAGE("fault", PORT("false", MODULE("false", "true", "40", "75", "[0]", "40")), SHK_WARN,
         SHK_TESTED, "eth1: the module reports a fault"),
    CAGE("copper", PORT("true", MODULE("true", "false", "null", "null", "null", "null")), SHK_PASS,
         SHK_TESTED, "1 within"),
    CAGE("optics without limits",
         PORT("true", MODULE("false", "false", "43.5", "null", "[600]", "null")), SHK_NA,
         SHK_NOT_COVERED, "no port in use"),
    CAGE("without limits, and copper or not is unread",
         PORT("true", MODULE("null, 'problems': {'copper': 'x'}", "false", "43.5", "null", "[600]",
                             "null")),
         SHK_UNKNOWN, SHK_NOT_COVERED, "eth1"),
    CAGE("not offered", PORT("true", "null"), SHK_NA, SHK_NOT_COVERED, "no port in use"),
    CAGE("not permitted", PORT("true", "null, 'problems': {'module': 'only root may read it'}"),
         SHK_UNKNOWN, SHK_NOT_COVERED, "eth1: only root may read it"),
    CAGE("empty cage of a port that is down",
         PORT("false", "null, 'problems': {'module': 'Input/output error'}"), SHK_NA,
         SHK_NOT_COVERED, "no port in use"),
    CAGE("limits unread",
         PORT("true", MODULE("false", "false", "43", "null, 'problems': {'temperature_alarm': 'x'}",
                             "[600]", "40")),
         SHK_UNKNOWN, SHK_NOT_COVERED, "eth1"),
    CAGE("state of the link unread",
         PORT("null, 'problems': {'running': 'x'}",
              MODULE("false", "false", "43", "75", "[600]", "40")),
         SHK_UNKNOWN, SHK_NOT_COVERED, "eth1"),
    CAGE("no card", "'net.transceivers': " ABSENT, SHK_NA, SHK_NOT_COVERED, "no network card"),
    CAGE("unread", "'net.transceivers': " FAILED, SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
};

#define OPENS(list) "'verbs.devices': " list
#define VERBS(name, facts, verdict, evidence, says)                                                \
    ROW("nic.opens", name, "opening RDMA devices", facts, verdict, evidence, says)

static const struct support_case opens[] = {
    VERBS("all open", OPENS("[{'name': 'mlx5_0', 'opens': true}]"), SHK_PASS, SHK_TESTED, "1 open"),
    VERBS("one does not",
          OPENS("[{'name': 'mlx5_0', 'opens': true}, {'name': 'mlx5_1', 'opens': false, 'error': "
                "'Permission denied', 'errno': 13}]"),
          SHK_WARN, SHK_TESTED, "mlx5_1: Permission denied"),
    VERBS("not tried", OPENS("[{'name': 'mlx5_0'}]"), SHK_UNKNOWN, SHK_NOT_COVERED, "mlx5_0"),
    VERBS("no device", OPENS("[]"), SHK_NA, SHK_NOT_COVERED, "lists no device"),
    VERBS("no libibverbs", OPENS(ABSENT), SHK_NA, SHK_NOT_COVERED, "lists no device"),
    VERBS("unread", OPENS(FAILED), SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
};

#define GPUS(driver, library)                                                                      \
    "'pci.count.gpu-amd': 2, 'amdgpu.health': [" driver "], 'amdsmi.health': [" library "]"
#define DRIVER(n, heat, limit, more)                                                               \
    "{'pci': '0000:0" n ":00.0', 'temperatures': " heat ", 'power_limit': " limit                  \
    ", 'power_default': 750000, 'bad_pages': {'reserved': 3, 'pending': 0, 'failed': 0}" more "}"
#define HEAT(now) "[{'sensor': 'junction', 'now': " now ", 'limit': 100}]"
#define COOL(n)   DRIVER(n, HEAT("50"), "750000", "")
#define LIBRARY(n, ecc, most, links, more)                                                         \
    "{'pci': '0000:0" n ":00.0', 'ecc': " ecc ", 'bad_pages_most': " most ", 'links': " links more \
    "}"
#define UP                    "['up', 'up', 'disabled']"
#define WELL(n)               LIBRARY(n, "true", "256", UP, "")
#define WITH(driver, library) GPUS(COOL("1") ", " driver, WELL("1") ", " library)
#define AMD(name, setting, facts, verdict, evidence, says)                                         \
    ROW("gpu.amd_state", name, setting, facts, verdict, evidence, says)

static const struct support_case amd[] = {
    AMD("cool", "AMD GPU temperature", WITH(COOL("2"), WELL("2")), SHK_PASS, SHK_TESTED,
        "below their limits, 2 GPUs"),
    AMD("hot", "AMD GPU temperature", WITH(DRIVER("2", HEAT("100"), "750000", ""), WELL("2")),
        SHK_WARN, SHK_TESTED, "0000:02:00.0: junction 100 °C, limit 100 °C"),
    AMD("no sensor", "AMD GPU temperature", GPUS(DRIVER("1", "null", "750000", ""), WELL("1")),
        SHK_NA, SHK_NOT_COVERED, "not offered"),
    AMD("a limit that was not filled in", "AMD GPU temperature",
        GPUS(DRIVER("1", "[{'sensor': 'junction', 'now': 50, 'limit': 0}]", "750000", ""),
             WELL("1")),
        SHK_NA, SHK_NOT_COVERED, "not offered"),
    AMD("sensor unread", "AMD GPU temperature",
        WITH(DRIVER("2", "null", "750000", ", 'problems': {'temperatures': 'x'}"), WELL("2")),
        SHK_UNKNOWN, SHK_NOT_COVERED, "0000:02:00.0"),
    AMD("full power", "AMD GPU power limit", WITH(COOL("2"), WELL("2")), SHK_PASS, SHK_TESTED,
        "at their default"),
    AMD("one has less", "AMD GPU power limit",
        WITH(DRIVER("2", HEAT("50"), "550000", ""), WELL("2")), SHK_WARN, SHK_TESTED,
        "0000:02:00.0: 550 W of 750 W"),
    AMD("all have less", "AMD GPU power limit",
        GPUS(DRIVER("1", HEAT("50"), "550000", ""), WELL("1")), SHK_NOTE, SHK_TESTED,
        "550 W of 750 W"),
    AMD("limit unread", "AMD GPU power limit",
        WITH(DRIVER("2", HEAT("50"), "null", ", 'problems': {'power_limit': 'x'}"), WELL("2")),
        SHK_UNKNOWN, SHK_NOT_COVERED, "0000:02:00.0"),
    AMD("on", "AMD GPU ECC", WITH(COOL("2"), WELL("2")), SHK_PASS, SHK_TESTED, "on, 2 GPUs"),
    AMD("off", "AMD GPU ECC", WITH(COOL("2"), LIBRARY("2", "false", "256", UP, "")), SHK_WARN,
        SHK_TESTED, "0000:02:00.0: ECC off"),
    AMD("off on all", "AMD GPU ECC", GPUS(COOL("1"), LIBRARY("1", "false", "256", UP, "")),
        SHK_NOTE, SHK_TESTED, "ECC off"),
    AMD("too many bad pages", "AMD GPU ECC", WITH(COOL("2"), LIBRARY("2", "true", "3", UP, "")),
        SHK_WARN, SHK_TESTED, "0000:02:00.0: 3 bad pages, the driver allows 3"),
    AMD("a list without GPUs", "AMD GPU ECC",
        "'amdgpu.health': [], 'amdsmi.health': [], 'pci.count.gpu-amd': 2", SHK_UNKNOWN,
        SHK_NOT_COVERED, "none of the AMD GPUs"),
    AMD("pages unread", "AMD GPU ECC",
        WITH("{'pci': '0000:02:00.0', 'bad_pages': null, 'problems': {'bad_pages': 'x'}}",
             WELL("2")),
        SHK_UNKNOWN, SHK_NOT_COVERED, "0000:02:00.0"),
    AMD("all links", "XGMI links", WITH(COOL("2"), WELL("2")), SHK_PASS, SHK_TESTED,
        "as many links up on all"),
    AMD("a link is down", "XGMI links",
        WITH(COOL("2"), LIBRARY("2", "true", "256", "['down', 'up', 'disabled']", "")), SHK_WARN,
        SHK_TESTED, "0000:02:00.0: 1 of 2 links up"),
    AMD("links unread", "XGMI links",
        WITH(COOL("2"), LIBRARY("2", "true", "256", "null", ", 'problems': {'links': 'x'}")),
        SHK_UNKNOWN, SHK_NOT_COVERED, "0000:02:00.0"),
    AMD("not installed", "XGMI links",
        "'pci.count.gpu-amd': 1, 'amdgpu.health': [" COOL("1") "], 'amdsmi.health': " ABSENT,
        SHK_NA, SHK_NOT_COVERED, "amd_smi is not installed"),
    AMD("no AMD GPU", "XGMI links", "'pci.count.gpu-amd': " ABSENT, SHK_NA, SHK_NOT_COVERED,
        "no AMD GPU"),
    AMD("does not answer", "XGMI links", "'pci.count.gpu-amd': 1, 'amdsmi.health': " FAILED,
        SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
};

#define RESULT(result, more)                                                                       \
    "'tools.results': [{'id': 'a', 'tool': 'dcgmi diag', 'test': 'memory', 'where': 'GPU 1', "     \
    "'result': " result more "}]"
#define TOOL(name, facts, verdict, evidence, says)                                                 \
    ROW("node.tools", name, "results of other tools", facts, verdict, evidence, says)

static const struct support_case tools[] = {
    TOOL("passed", RESULT("'pass'", ", 'age_h': 1"), SHK_PASS, SHK_LOG, "1 passed"),
    TOOL("failed", RESULT("'fail'", ", 'age_h': 1, 'text': 'row 3'"), SHK_WARN, SHK_LOG,
         "dcgmi diag memory of GPU 1: fail, row 3"),
    TOOL("failed long ago", RESULT("'fail'", ", 'age_h': 99, 'modified': '2026-01-01'"), SHK_NOTE,
         SHK_LOG, "fail (2026-01-01)"),
    TOOL("warned", RESULT("'warn'", ", 'age_h': 1"), SHK_NOTE, SHK_LOG, "warn"),
    TOOL("skipped", RESULT("'skip'", ""), SHK_NA, SHK_NOT_COVERED, "skipped"),
    TOOL("a file unread", RESULT("null", ", 'problems': {'result': 'x'}"), SHK_UNKNOWN,
         SHK_NOT_COVERED, "a"),
    TOOL("nothing", "'tools.results': " ABSENT, SHK_NA, SHK_NOT_COVERED, "no tool left"),
    TOOL("unread", "'tools.results': " FAILED, SHK_UNKNOWN, SHK_NOT_COVERED, "gone"),
};

#define CASES(list) support_cases(list, sizeof list / sizeof *list)

Test(states, transceivers)
{
    CASES(modules);
}

Test(states, verbs_open)
{
    CASES(opens);
}

Test(states, amd)
{
    CASES(amd);
}

Test(states, tools)
{
    CASES(tools);
}
