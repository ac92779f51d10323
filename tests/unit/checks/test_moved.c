/* What moved while collectives ran: every fault is named with its node, little of it is a note, a
 * quiet node passes, and what was not read is unknown. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define GPUS    "GPU counters during the collectives"
#define PCIE    "PCIe errors during the collectives"
#define MEMORY  "memory errors during the collectives"
#define LOG     "kernel log during the collectives"
#define NETWORK "network counters of this node"

#define BASE                                                                                       \
    "'pci.count.gpu-nvidia': 8, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, 'host.virt': "      \
    "'none', 'probe.env.status': 'ok', "
#define CLASSES                                                                                    \
    "{'0000:41:00.0': 'gpu', 'PCIe of 0000:9b:00.0 (mlx5_3)': 'pci', 'mc0': 'memory', 'kernel "    \
    "log': 'log', 'mlx5_3/1': 'network', 'eth0': 'network'}"
#define ALL                                                                                        \
    "'0000:41:00.0', 'PCIe of 0000:9b:00.0 (mlx5_3)', 'mc0', 'kernel log', 'mlx5_3/1', 'eth0'"
#define NODE(name, seconds, read, moved, unread)                                                   \
    "{'node': '" name "', 'seconds': " seconds ", 'classes': " CLASSES ", 'read': [" read          \
    "], 'moved': [" moved "], 'unread': [" unread "]}"
#define RUN(nodes)                                                                                 \
    BASE "'collective.nccl.moved': [{'what': 'all-reduce', 'nodes': [" nodes                       \
         "], 'quiet': 0, 'devices': {}}]"
#define MOVED(scope, class, counter, kind, by, more)                                               \
    "{'scope': '" scope "', 'class': '" class "', 'counter': '" counter "', 'kind': '" kind        \
                                              "', 'by': " by more "}"
#define QUIET                  NODE("node8", "20.0", ALL, "", "")
#define ON9(moved)             RUN(QUIET ", " NODE("node9", "20.0", ALL, moved, ""))
#define GPU(counter, kind, by) ON9(MOVED("0000:41:00.0", "gpu", counter, kind, by, ""))
#define NIC(counter, kind, by)                                                                     \
    ON9(MOVED("PCIe of 0000:9b:00.0 (mlx5_3)", "pci", counter, kind, by, ""))
#define EVENT(class, counter, line)                                                                \
    ON9(MOVED("0000:41:00.0", class, counter, "event", "1", ", 'line': '" line "'"))
#define FATAL(counter, line)                                                                       \
    ON9(MOVED("0000:41:00.0", "gpu", counter, "fatal-event", "1", ", 'line': '" line "'"))
#define UNREAD(scope)                                                                              \
    RUN(NODE("node9", "20.0", "", "", "{'scope': '" scope "', 'why': 'no permission'}"))

static const struct {
    const char *name, *setting, *facts;
    enum shk_verdict verdict;
    const char *says;
} cases[] = {
    {"quiet", GPUS, RUN(QUIET), SHK_PASS, "nothing moved in 1 collective"},
    {"quiet", PCIE, RUN(QUIET), SHK_PASS, "nothing moved"},
    {"quiet", MEMORY, RUN(QUIET), SHK_PASS, "nothing moved"},
    {"quiet", LOG, RUN(QUIET), SHK_PASS, "nothing moved"},
    {"quiet", NETWORK, RUN(QUIET), SHK_PASS, "nothing moved"},
    {"nodes that had nothing to tell", GPUS,
     BASE "'collective.nccl.moved': [{'what': 'all-reduce', 'nodes': [], 'quiet': 3, 'devices': "
          "{'gpu': 24}}]",
     SHK_PASS, "nothing moved"},

    {"replays of a GPU", GPUS, GPU("PCIe replays", "replay", "12"), SHK_WARN,
     "node9: 0000:41:00.0 PCIe replays +12 during nccl"},
    {"few replays of a GPU", GPUS, GPU("PCIe replays", "replay", "8"), SHK_NOTE, "+8"},
    {"replays over a long run", GPUS,
     RUN(NODE("node9", "600.0", ALL,
              MOVED("0000:41:00.0", "gpu", "PCIe replays", "replay", "70", ""), "")),
     SHK_NOTE, "+70"},
    {"replays of a NIC", PCIE, NIC("BadTLP", "replay", "12"), SHK_WARN,
     "node9: PCIe of 0000:9b:00.0 (mlx5_3) BadTLP +12 during nccl"},
    {"few of a NIC", PCIE, NIC("BadTLP", "replay", "2"), SHK_NOTE, "+2"},
    {"advisory", PCIE, NIC("NonFatalErr", "corrected", "100"), SHK_NOTE, "+100"},
    {"non-fatal", PCIE, NIC("nonfatal CmpltTO", "uncorrected", "1"), SHK_WARN, "nonfatal CmpltTO"},
    {"fatal", PCIE, NIC("fatal DLP", "uncorrected", "1"), SHK_FAIL, "accelerator-hardware-fault"},
    {"NVLink recovers", GPUS, GPU("NVLink 4 recoveries", "link-replay", "1"), SHK_WARN,
     "gpu-nvlink-errors"},
    {"NVLink CRC", GPUS, GPU("NVLink 4 CRC errors", "link-crc", "2001"), SHK_WARN,
     "gpu-nvlink-errors"},
    {"few NVLink CRC", GPUS, GPU("NVLink 4 CRC errors", "link-crc", "1999"), SHK_NOTE, "+1999"},
    {"uncorrected", GPUS, GPU("ECC errors uncorrected", "uncorrected", "1"), SHK_FAIL,
     "gpu-memory-errors"},
    {"corrected", GPUS, GPU("ECC errors corrected", "corrected", "50"), SHK_NOTE, "+50"},
    {"AMD uncorrected", GPUS, GPU("RAS umc ue", "uncorrected", "1"), SHK_FAIL,
     "amd-gpu-uncorrected"},
    {"XGMI corrected", GPUS, GPU("RAS xgmi_wafl ce", "link-replay", "9"), SHK_NOTE, "+9"},
    {"hot", GPUS, GPU("HW thermal slowdown", "slowed", "2500000000"), SHK_WARN,
     "gpu-thermal-slowdown"},
    {"hot for a moment", GPUS, GPU("HW thermal slowdown", "slowed", "100000000"), SHK_NOTE,
     "for 0.1 s"},
    {"power brake", GPUS, GPU("power brake slowdown", "slowed", "2500000000"), SHK_WARN,
     "gpu-power-brake"},
    {"AMD hot", GPUS,
     ON9(MOVED("0000:41:00.0", "gpu", "thermal cycles", "slowed-cycles", "500",
               "") ", " MOVED("0000:41:00.0", "gpu", "cycles", "cycles", "20000", "")),
     SHK_WARN, "thermal cycles +500"},
    {"AMD hot for a moment", GPUS,
     ON9(MOVED("0000:41:00.0", "gpu", "thermal cycles", "slowed-cycles", "5",
               "") ", " MOVED("0000:41:00.0", "gpu", "cycles", "cycles", "20000", "")),
     SHK_NOTE, "thermal cycles +5"},
    {"AMD as usual", GPUS, GPU("cycles", "cycles", "20000"), SHK_PASS, "nothing moved"},
    {"power cap", GPUS, GPU("power cap", "capped", "2500000000"), SHK_PASS, "nothing moved"},
    {"memory lost data", MEMORY, ON9(MOVED("mc0", "memory", "ue_count", "uncorrected", "1", "")),
     SHK_FAIL, "memory-errors"},
    {"memory corrected", MEMORY, ON9(MOVED("mc0", "memory", "ce_count", "corrected", "1", "")),
     SHK_NOTE, "ce_count +1"},

    {"Xid 79", LOG, EVENT("gpu", "Xid 79", "NVRM: Xid"), SHK_FAIL,
     "node9: 0000:41:00.0 Xid 79 logged during nccl"},
    {"Xid 119", LOG, EVENT("gpu", "Xid 119", "NVRM: Xid"), SHK_FAIL, "gpu-reset-required"},
    {"Xid 64", LOG, EVENT("gpu", "Xid 64", "NVRM: Xid"), SHK_FAIL, "gpu-row-remap-failed"},
    {"Xid 63", LOG, EVENT("gpu", "Xid 63", "NVRM: Xid"), SHK_WARN, "gpu-repair-pending"},
    {"Xid that restarts the virtual machine", LOG, EVENT("gpu", "Xid 151", "NVRM: Xid"), SHK_FAIL,
     "accelerator-hardware-fault"},
    {"Xid of a power cable", LOG, EVENT("gpu", "Xid 54", "NVRM: Xid"), SHK_WARN, "Xid 54"},
    {"Xid of a program", LOG, EVENT("gpu", "Xid 31", "NVRM: Xid"), SHK_NOTE, "Xid 31"},
    {"Xid of a program that ended", LOG, EVENT("gpu", "Xid 45", "NVRM: Xid"), SHK_NOTE, "Xid 45"},
    {"Xid 9 is not 79", LOG, EVENT("gpu", "Xid 9", "NVRM: Xid"), SHK_NOTE, "Xid 9"},
    {"NVLink fatal", LOG, FATAL("Xid 145", "145, RLW_REMAP Fatal XC0"), SHK_FAIL,
     "accelerator-hardware-fault"},
    {"NVLink not fatal", LOG, EVENT("gpu", "Xid 145", "145, RLW_REMAP Nonfatal XC0"), SHK_NOTE,
     "Xid 145"},
    {"SXid fatal", LOG, FATAL("SXid 20034", "20034, Fatal, Link 30"), SHK_FAIL,
     "accelerator-hardware-fault"},
    {"SXid not fatal", LOG, EVENT("gpu", "SXid 12028", "12028, Non-fatal, Link 32"), SHK_NOTE,
     "SXid 12028"},
    {"link down", LOG, EVENT("network", "link down", "mlx5_core"), SHK_WARN, "network-link-flaps"},
    {"module", LOG, EVENT("network", "module too hot", "mlx5_core"), SHK_WARN, "network-module"},
    {"amdgpu", LOG, EVENT("gpu", "uncorrectable RAS error", "amdgpu"), SHK_FAIL,
     "amd-gpu-uncorrected"},
    {"an event is no counter of the GPU", GPUS, EVENT("gpu", "Xid 79", "NVRM: Xid"), SHK_PASS,
     "nothing moved"},

    {"a port", NETWORK, ON9(MOVED("mlx5_3/1", "network", "symbol_error", "link", "4", "")),
     SHK_NOTE, "mlx5_3/1 symbol_error +4"},
    {"load of a port", NETWORK, ON9(MOVED("mlx5_3/1", "network", "np_cnp_sent", "busy", "4", "")),
     SHK_PASS, "nothing moved"},
    {"an interface", NETWORK, ON9(MOVED("eth0", "network", "rx_errors", "link", "4", "")), SHK_PASS,
     "nothing moved"},

    {"GPU unread", GPUS, UNREAD("0000:41:00.0"), SHK_UNKNOWN, "no permission"},
    {"PCIe unread", PCIE, UNREAD("PCIe of 0000:9b:00.0 (mlx5_3)"), SHK_UNKNOWN, "no permission"},
    {"memory unread", MEMORY, UNREAD("mc0"), SHK_UNKNOWN, "no permission"},
    {"log unread", LOG, UNREAD("kernel log"), SHK_UNKNOWN, "no permission"},
    {"no GPU told", GPUS, UNREAD("mc0"), SHK_UNKNOWN, "no counter of a GPU was read"},
    {"no controller", MEMORY, UNREAD("0000:41:00.0"), SHK_NA, "no memory controller"},
    {"no fact", GPUS,
     BASE "'collective.nccl.moved': {'state': 'failed', 'source': 'x', 'reason': 'y'}", SHK_UNKNOWN,
     "y"},
    {"another form", GPUS, BASE "'collective.nccl.moved': 7", SHK_UNKNOWN, ""},
    {"bad and unread", GPUS,
     RUN(NODE("node9", "20.0", ALL,
              MOVED("0000:41:00.0", "gpu", "NVLink 1 replays", "link-replay", "3", ""),
              "{'scope': '0000:41:00.0', 'why': 'gone'}")),
     SHK_WARN, "NVLink 1 replays"},
};

Test(moved, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_findings *findings =
            support_run(support_config(), "single-node", cases[i].facts);
        const struct shk_finding *row =
            support_find(findings, "collective.moved", cases[i].setting);
        cr_assert_not_null(row, "%s: no row %s", cases[i].name, cases[i].setting);
        char *text = support_text(row);
        cr_expect_eq(row->verdict, cases[i].verdict, "%s, %s: %s", cases[i].name, cases[i].setting,
                     text);
        cr_expect_not_null(strstr(text, cases[i].says), "%s: %s", cases[i].name, text);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* Without collectives there is nothing to say. */
Test(moved, nothing_ran)
{
    struct shk_findings *findings = support_run(support_config(), "single-node", BASE "'x': 1");
    cr_assert_null(support_find(findings, "collective.moved", GPUS));
    shk_findings_destroy(findings);
}
