/* Health of NVIDIA GPUs: every fault is named, a healthy GPU and one that does not offer a thing
 * give nothing, and what was not read is unknown. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NODE                                                                                       \
    "'host.virt': 'none', 'probe.env.status': 'ok', 'pci.count.gpu-amd': 0, 'pci.count.neuron': "  \
    "0, 'pci.count.gpu-nvidia': 2, "
/* The last of two members of a name counts. */
#define GPU(n, more)                                                                               \
    "{'index': " n ", 'pci': '0000:0" n ":00.0', 'state': 'answers', 'ecc': true, 'ecc_pending': " \
    "true, 'ecc_volatile_uncorrected': 0, 'remap_pending': false, 'remap_failure': false, "        \
    "'retired_pending': null, 'repair_pending': false, 'retired_pages': null, "                    \
    "'remapped_uncorrectable': 1, 'name': 'H100', 'vbios': '96.00.99.00.01', 'inforom': "          \
    "'G520.0200.00.05', 'inforom_valid': true, 'sram_exceeded': false, 'virtualization': 'none', " \
    "'licence': null, 'recovery_action': 'none', 'clock_reasons': ['idle'], "                      \
    "'temperature': 34, 'temperature_slowdown': 87, 'power_limit': 700000, 'power_default': "      \
    "700000, 'compute_mode': 'default', 'pcie_replays': 900, 'links': [{'link': 0, 'active': "     \
    "true, 'speed': 26562}, {'link': 1, 'active': true, 'speed': 26562}]" more "}"
#define ONE(more) NODE "'nvml.health': [" GPU("3", more) ", " GPU("4", "") "]"
#define EIGHT(fifth, sixth)                                                                        \
    NODE "'nvml.health': [" GPU("0", "") ", " GPU("1", "") ", " GPU("2", "") ", " GPU(             \
        "3", "") ", " GPU("4", "") ", " GPU("5", fifth) ", " GPU("6", sixth) ", " GPU("7", "") "]"
#define BOTH(more) NODE "'nvml.health': [" GPU("3", more) ", " GPU("4", more) "]"
#define NONE(name) ", '" name "': null"
#define LOST(name) ", '" name "': null, 'problems': {'" name "': 'NVML error 999'}"
#define RANKS(n)   "'job.local_ranks': " n ", "

#define ACTION           "GPU recovery action"
#define MEMORY           "GPU memory"
#define CLOCKS           "GPU clocks"
#define POWER            "GPU power limit"
#define MODE             "GPU compute mode"
#define LINKS            "NVLink speed"
#define HELD             "GPU processes"
#define BOARD            "GPU firmware"
#define SRAM             "GPU SRAM"
#define VGPU             "vGPU licence"
#define FABRIC           "NVLink fabric health"
#define CLOSED           "confidential computing"
#define LICENCE(members) ", 'virtualization': 'vGPU', 'licence': {" members "}"
#define JOINED(state, more)                                                                        \
    NODE "'nvml.devices': [{'index': 3, 'pci': '0000:03:00.0', 'fabric': {'state': '" state        \
         "', 'status': 0, 'health': " more "}}, {'index': 4, 'pci': '0000:04:00.0', 'fabric': "    \
         "{'state': '" state "', 'status': 0, 'health': []}}]"
#define NO_FABRIC(more)                                                                            \
    NODE "'nvml.devices': [{'index': 3, 'pci': '0000:03:00.0', 'fabric': null" more "}]"
#define CLOSING(members) NODE "'nvml.confidential': {" members "}"
#define HOLDS(state)                                                                               \
    ", 'processes': [{'pid': 4711, 'memory': 5, 'state': " state                                   \
    ", 'name': 'python', 'uid': 1000, 'started_s': 3600, 'job': '77'}]"
#define FREE ", 'processes': []"

static const struct {
    const char *name, *setting, *facts;
    enum shk_verdict verdict;
    const char *says;
} cases[] = {
    {"healthy", ACTION, ONE(""), SHK_PASS, "none wanted, 2 GPUs"},
    {"reset wanted", ACTION, ONE(", 'recovery_action': 'GPU reset'"), SHK_FAIL,
     "gpu-reset-required"},
    {"reset wanted, by name", ACTION, ONE(", 'recovery_action': 'GPU reset'"), SHK_FAIL,
     "0000:03:00.0: GPU reset"},
    {"drain and reset", ACTION, ONE(", 'recovery_action': 'drain and reset'"), SHK_FAIL,
     "gpu-reset-required"},
    {"reboot wanted", ACTION, ONE(", 'recovery_action': 'node reboot'"), SHK_FAIL,
     "gpu-reboot-required"},
    {"peers to drain", ACTION, ONE(", 'recovery_action': 'drain P2P'"), SHK_FAIL, "gpu-peer-drain"},
    {"reset required", ACTION, ONE(", 'state': 'reset required', 'recovery_action': null"),
     SHK_FAIL, "gpu-reset-required"},
    {"lost", ACTION, ONE(", 'state': 'lost', 'recovery_action': null"), SHK_FAIL,
     "gpu-lost-by-driver"},
    {"an action of another release", ACTION, ONE(", 'recovery_action': 'dance'"), SHK_UNKNOWN,
     "1 of 2"},
    {"driver without actions", ACTION, BOTH(NONE("recovery_action")), SHK_NA, "none of 2 GPUs"},
    {"one bad among eight", ACTION, EIGHT(", 'recovery_action': 'GPU reset'", ""), SHK_FAIL,
     "GPU 5 at 0000:05:00.0: GPU reset"},
    {"one unread among eight", ACTION, EIGHT(LOST("recovery_action"), ""), SHK_UNKNOWN,
     "1 of 8 GPUs could not be read: 0000:05:00.0"},
    {"one bad, one unread among eight", ACTION,
     EIGHT(", 'recovery_action': 'GPU reset'", LOST("recovery_action")), SHK_FAIL,
     "GPU 5 at 0000:05:00.0: GPU reset"},
    {"eight fine ones", ACTION, EIGHT("", ""), SHK_PASS, "8 GPUs"},
    {"action unread", ACTION, ONE(LOST("recovery_action")), SHK_UNKNOWN, "0000:03:00.0"},
    {"state unread", ACTION, ONE(LOST("state")), SHK_UNKNOWN, "0000:03:00.0"},

    {"nobody holds it", HELD, BOTH(FREE), SHK_PASS, "no process holds a GPU"},
    {"a zombie holds it", HELD,
     NODE "'nvml.health': [" GPU("3", HOLDS("'zombie'")) ", " GPU("4", FREE) "]", SHK_WARN,
     "0000:03:00.0: 4711 python of user 1000, job 77, since 3600 s after boot (zombie)"},
    {"nobody is left who holds it", HELD,
     NODE "'nvml.health': [" GPU("3", HOLDS("'gone'")) ", " GPU("4", FREE) "]", SHK_WARN,
     "gpu-held-by-dead-process"},
    {"another one uses it", HELD,
     NODE "'nvml.health': [" GPU("3", HOLDS("'running'")) ", " GPU("4", FREE) "]", SHK_NOTE,
     "4711 python"},
    {"in another namespace", HELD,
     NODE "'nvml.health': [" GPU("3", HOLDS("null")) ", " GPU("4", FREE) "]", SHK_NOTE, "4711"},
    {"processes unread", HELD,
     NODE "'nvml.health': [" GPU("3", LOST("processes")) ", " GPU("4", FREE) "]", SHK_UNKNOWN,
     "0000:03:00.0"},
    {"processes missing on one", HELD, NODE "'nvml.health': [" GPU("3", "") ", " GPU("4", FREE) "]",
     SHK_UNKNOWN, "0000:03:00.0"},
    {"driver without processes", HELD, BOTH(NONE("processes")), SHK_NA, "none of 2 GPUs"},

    {"healthy", MEMORY, ONE(""), SHK_PASS, "no uncorrected error, no repair pending or failed"},
    {"remapping failed", MEMORY, ONE(", 'remap_failure': true"), SHK_FAIL, "gpu-row-remap-failed"},
    {"remapping failed and pending", MEMORY, ONE(", 'remap_failure': true, 'remap_pending': true"),
     SHK_FAIL, "gpu-row-remap-failed"},
    {"remapping pending", MEMORY, ONE(", 'remap_pending': true"), SHK_WARN, "gpu-repair-pending"},
    {"pages to retire", MEMORY, ONE(", 'retired_pending': true" NONE("remap_pending")), SHK_WARN,
     "page retirement"},
    {"errors, recovered", MEMORY, ONE(", 'ecc_volatile_uncorrected': 3"), SHK_WARN,
     "0000:03:00.0: 3 uncorrected"},
    {"errors, no action offered", MEMORY,
     ONE(", 'ecc_volatile_uncorrected': 3, 'recovery_action': null"), SHK_FAIL,
     "gpu-memory-errors"},
    {"errors, action unread", MEMORY,
     ONE(", 'ecc_volatile_uncorrected': 3" LOST("recovery_action")), SHK_WARN, "gpu-memory-errors"},
    {"errors, reset wanted", MEMORY,
     ONE(", 'ecc_volatile_uncorrected': 3, 'recovery_action': 'GPU reset'"), SHK_FAIL, "Drain"},
    {"ECC off on one", MEMORY, ONE(", 'ecc': false, 'ecc_pending': false"), SHK_WARN, "ECC off"},
    {"ECC off on all", MEMORY, BOTH(", 'ecc': false, 'ecc_pending': false"), SHK_NOTE, "ECC off"},
    {"ECC off next", MEMORY, ONE(", 'ecc_pending': false"), SHK_NOTE, "after a reset"},
    {"ECC off on one, the other unread", MEMORY,
     NODE "'nvml.health': [" GPU("3", ", 'ecc': false, 'ecc_pending': false") ", " GPU(
         "4", LOST("ecc")) "]",
     SHK_UNKNOWN, "0000:04:00.0"},
    {"no ECC, no remapping", MEMORY,
     BOTH(", 'ecc': null, 'ecc_pending': null, 'ecc_volatile_uncorrected': null, 'remap_pending': "
          "null, 'remap_failure': null, 'repair_pending': null, 'remapped_uncorrectable': null"),
     SHK_NA, "none of 2 GPUs"},
    {"remapping only is not offered", MEMORY,
     BOTH(NONE("remap_pending") NONE("remap_failure") NONE("repair_pending")
              NONE("remapped_uncorrectable")),
     SHK_PASS, "no uncorrected error, 2 GPUs"},
    {"remapping unread", MEMORY, ONE(LOST("remap_failure")), SHK_UNKNOWN, "0000:03:00.0"},
    {"errors unread", MEMORY, ONE(LOST("ecc_volatile_uncorrected")), SHK_UNKNOWN, "0000:03:00.0"},
    {"pending beside unread", MEMORY, ONE(", 'remap_pending': true" LOST("remap_failure")),
     SHK_WARN, "gpu-repair-pending"},

    {"repair pending", MEMORY, ONE(", 'repair_pending': true"), SHK_WARN, "waits for a reset"},
    {"repair unread", MEMORY, ONE(LOST("repair_pending")), SHK_UNKNOWN, "0000:03:00.0"},
    {"driver without repairs", MEMORY, BOTH(NONE("repair_pending")), SHK_PASS, NULL},
    {"511 rows", MEMORY, ONE(", 'remapped_uncorrectable': 511"), SHK_PASS, NULL},
    {"512 rows", MEMORY, ONE(", 'remapped_uncorrectable': 512"), SHK_FAIL, "gpu-memory-worn"},
    {"62 pages", MEMORY, BOTH(", 'retired_pages': 62"), SHK_PASS, NULL},
    {"63 pages", MEMORY, ONE(", 'retired_pages': 63"), SHK_FAIL, "63 pages retired"},
    {"failed comes first", MEMORY, ONE(", 'remap_failure': true, 'remapped_uncorrectable': 512"),
     SHK_FAIL, "gpu-row-remap-failed"},
    {"pages unread", MEMORY, ONE(LOST("retired_pages")), SHK_UNKNOWN, "0000:03:00.0"},

    {"healthy", BOARD, ONE(""), SHK_PASS, "InfoROM intact"},
    {"corrupt", BOARD, ONE(", 'inforom_valid': false"), SHK_WARN, "gpu-inforom-corrupt"},
    {"corrupt, by name", BOARD, ONE(", 'inforom_valid': false"), SHK_WARN,
     "0000:03:00.0: InfoROM corrupt"},
    {"one against one", BOARD, ONE(", 'vbios': '96.00.30.00.01'"), SHK_PASS, NULL},
    {"one of three is older", BOARD,
     NODE "'nvml.health': [" GPU("3", ", 'vbios': '96.00.30.00.01'") ", " GPU("4", "") ", " GPU(
         "5", "") "]",
     SHK_NOTE, "0000:03:00.0: VBIOS 96.00.30.00.01"},
    {"one of three has another InfoROM", BOARD,
     NODE "'nvml.health': [" GPU("3", ", 'inforom': 'G520.0200.00.03'") ", " GPU("4", "") ", " GPU(
         "5", "") "]",
     SHK_NOTE, "InfoROM G520.0200.00.03"},
    {"another model has another VBIOS", BOARD,
     NODE "'nvml.health': [" GPU("3", ", 'vbios': '86.00', 'name': 'T4'") ", " GPU(
         "4", "") ", " GPU("5", "") "]",
     SHK_PASS, NULL},
    {"no InfoROM", BOARD, BOTH(NONE("inforom_valid") NONE("inforom")), SHK_PASS, NULL},
    {"nothing of it offered", BOARD, BOTH(NONE("inforom_valid") NONE("inforom") NONE("vbios")),
     SHK_NA, "none of 2 GPUs"},
    {"checksums unread", BOARD, ONE(LOST("inforom_valid")), SHK_UNKNOWN, "0000:03:00.0"},
    {"version unread", BOARD, ONE(LOST("vbios")), SHK_UNKNOWN, "0000:03:00.0"},
    {"model unread", BOARD, ONE(LOST("name")), SHK_UNKNOWN, "0000:03:00.0"},
    {"corrupt beside unread", BOARD, ONE(", 'inforom_valid': false" LOST("vbios")), SHK_WARN,
     "gpu-inforom-corrupt"},

    {"healthy", SRAM, ONE(""), SHK_PASS, "below the threshold"},
    {"above", SRAM, ONE(", 'sram_exceeded': true"), SHK_FAIL, "gpu-memory-worn"},
    {"not root", SRAM, BOTH(LOST("sram_exceeded")), SHK_UNKNOWN, "2 of 2"},
    {"not offered", SRAM, BOTH(NONE("sram_exceeded")), SHK_NA, "none of 2 GPUs"},

    {"no vGPU", VGPU, ONE(""), SHK_NA, "no GPU of this node is a vGPU"},
    {"licensed", VGPU, BOTH(LICENCE("'needed': true, 'licensed': true")), SHK_PASS, "licensed, 2"},
    {"unlicensed", VGPU, BOTH(LICENCE("'needed': true, 'licensed': false")), SHK_WARN,
     "vgpu-unlicensed"},
    {"needs none", VGPU, BOTH(LICENCE("'needed': false, 'licensed': false")), SHK_NA,
     "needs a licence"},
    {"licence unread", VGPU, ONE(", 'virtualization': 'vGPU'" LOST("licence")), SHK_UNKNOWN,
     "0000:03:00.0"},
    {"whether licensed unread", VGPU,
     ONE(LICENCE("'needed': true, 'licensed': null, 'problems': {'licensed': 'x'}")), SHK_UNKNOWN,
     "0000:03:00.0"},
    {"a vGPU that says nothing", VGPU, ONE(", 'virtualization': 'vGPU'"), SHK_UNKNOWN,
     "0000:03:00.0"},
    {"mode unread", VGPU, ONE(LOST("virtualization")), SHK_UNKNOWN, "0000:03:00.0"},
    {"mode not offered", VGPU, BOTH(NONE("virtualization")), SHK_NA, "none of 2 GPUs"},

    {"healthy", FABRIC, JOINED("completed", "[]"), SHK_PASS, "no fault reported, 2 GPUs"},
    {"route", FABRIC, JOINED("completed", "['route unhealthy']"), SHK_FAIL,
     "nvlink-fabric-unhealthy"},
    {"set up wrongly", FABRIC, JOINED("completed", "['too few NVLinks']"), SHK_FAIL,
     "0000:03:00.0: too few NVLinks"},
    {"slower", FABRIC, JOINED("completed", "['degraded bandwidth']"), SHK_WARN, "degraded"},
    {"recovers", FABRIC, JOINED("completed", "['route recovery']"), SHK_WARN, "route recovery"},
    {"the worse of two", FABRIC, JOINED("completed", "['route recovery', 'no partition']"),
     SHK_FAIL, "no partition"},
    {"a word of another release", FABRIC, JOINED("completed", "['dance']"), SHK_UNKNOWN, "1 of 2"},
    {"not told", FABRIC, JOINED("completed", "null"), SHK_PASS, "1 GPUs"},
    {"not joined", FABRIC, JOINED("not started", "['route unhealthy']"), SHK_NA, "has joined"},
    {"no fabric", FABRIC, NO_FABRIC(""), SHK_NA, "none of 1 GPUs"},
    {"fabric unread", FABRIC, NO_FABRIC(", 'problems': {'fabric': 'NVML error 999'}"), SHK_UNKNOWN,
     "0000:03:00.0"},
    {"of an older document", FABRIC,
     NODE "'nvml.devices': [{'index': 3, 'pci': '0000:03:00.0', 'fabric': {'state': 'completed', "
          "'status': 0}}]",
     SHK_UNKNOWN, "0000:03:00.0"},

    {"off", CLOSED, CLOSING("'on': false, 'devtools': false, 'ready': null"), SHK_PASS, "off"},
    {"on", CLOSED, CLOSING("'on': true, 'devtools': false, 'ready': true, 'multi_gpu': 'none'"),
     SHK_NOTE, "on"},
    {"on, several GPUs", CLOSED,
     CLOSING("'on': true, 'devtools': false, 'ready': true, 'multi_gpu': 'protected PCIe'"),
     SHK_NOTE, "on, protected PCIe"},
    {"on, open to tools", CLOSED, CLOSING("'on': true, 'devtools': true, 'ready': true"), SHK_NOTE,
     "is not protected"},
    {"on, not ready", CLOSED, CLOSING("'on': true, 'devtools': false, 'ready': false"), SHK_FAIL,
     "nvidia-smi conf-compute -srs 1"},
    {"on, ready unread", CLOSED,
     CLOSING("'on': true, 'devtools': false, 'ready': null, 'problems': {'ready': 'NVML error "
             "999'}"),
     SHK_UNKNOWN, "NVML error 999"},
    {"whether on unread", CLOSED, CLOSING("'devtools': false, 'ready': true"), SHK_UNKNOWN, NULL},
    {"not offered", CLOSED,
     NODE "'nvml.confidential': {'state': 'absent', 'reason': 'not offered'}", SHK_NA, NULL},
    {"unread", CLOSED, NODE "'nvml.confidential': {'state': 'failed', 'reason': 'timed out'}",
     SHK_UNKNOWN, "timed out"},
    {"no GPU", CLOSED, "'pci.count.gpu-nvidia': 0", SHK_NA, "no NVIDIA GPU"},

    {"healthy", CLOCKS, ONE(""), SHK_PASS, "no slowdown, 2 GPUs"},
    {"at its power cap", CLOCKS, ONE(", 'clock_reasons': ['power cap']"), SHK_PASS, NULL},
    {"no reason", CLOCKS, ONE(", 'clock_reasons': []"), SHK_PASS, NULL},
    {"too hot", CLOCKS, ONE(", 'clock_reasons': ['hardware slowdown', 'HW thermal']"), SHK_WARN,
     "gpu-thermal-slowdown"},
    {"too hot for the driver", CLOCKS, ONE(", 'clock_reasons': ['SW thermal']"), SHK_WARN,
     "gpu-thermal-slowdown"},
    {"power brake", CLOCKS, ONE(", 'clock_reasons': ['hardware slowdown', 'power brake']"),
     SHK_WARN, "gpu-power-brake"},
    {"slowdown", CLOCKS, ONE(", 'clock_reasons': ['hardware slowdown']"), SHK_WARN,
     "gpu-hardware-slowdown"},
    {"at the threshold", CLOCKS, ONE(", 'temperature': 87"), SHK_WARN, "slowdown at 87"},
    {"no threshold", CLOCKS, BOTH(NONE("temperature_slowdown")), SHK_PASS, NULL},
    {"no reasons offered", CLOCKS, BOTH(NONE("clock_reasons")), SHK_NA, "none of 2 GPUs"},
    {"reasons unread", CLOCKS, ONE(LOST("clock_reasons")), SHK_UNKNOWN, "0000:03:00.0"},
    {"temperature unread", CLOCKS, ONE(LOST("temperature")), SHK_UNKNOWN, "0000:03:00.0"},

    {"healthy", POWER, ONE(""), SHK_PASS, "at its default"},
    {"one GPU capped", POWER, ONE(", 'power_limit': 400000"), SHK_WARN, "400 W of 700 W"},
    {"all capped", POWER, BOTH(", 'power_limit': 400000"), SHK_NOTE, "400 W of 700 W"},
    {"above the default", POWER, ONE(", 'power_limit': 720000"), SHK_PASS, NULL},
    {"no limits", POWER, BOTH(NONE("power_limit")), SHK_NA, "none of 2 GPUs"},
    {"no default", POWER, BOTH(NONE("power_default")), SHK_NA, "none of 2 GPUs"},
    {"limit unread", POWER, ONE(LOST("power_limit")), SHK_UNKNOWN, "0000:03:00.0"},

    {"healthy", MODE, ONE(""), SHK_PASS, "default, 2 GPUs"},
    {"prohibited", MODE, ONE(", 'compute_mode': 'prohibited'"), SHK_FAIL, "gpu-compute-prohibited"},
    {"exclusive, one rank each", MODE, RANKS("2") BOTH(", 'compute_mode': 'exclusive process'"),
     SHK_PASS, "exclusive"},
    {"exclusive, no job", MODE,
     "'job.local_ranks': {'state': 'absent'}, " BOTH(", 'compute_mode': 'exclusive process'"),
     SHK_PASS, "exclusive"},
    {"exclusive and shared", MODE, RANKS("8") BOTH(", 'compute_mode': 'exclusive process'"),
     SHK_NOTE, "MPS"},
    {"exclusive, ranks unread", MODE,
     "'job.local_ranks': {'state': 'failed', 'reason': 'denied'}, " BOTH(
         ", 'compute_mode': 'exclusive process'"),
     SHK_UNKNOWN, "denied"},
    {"a mode of another release", MODE, ONE(", 'compute_mode': 'unknown'"), SHK_UNKNOWN, "1 of 2"},
    {"mode not offered", MODE, BOTH(NONE("compute_mode")), SHK_NA, "none of 2 GPUs"},
    {"mode unread", MODE, ONE(LOST("compute_mode")), SHK_UNKNOWN, "0000:03:00.0"},

    {"healthy", LINKS, ONE(""), SHK_PASS, "the same on all links"},
    {"a slow link", LINKS,
     ONE(", 'links': [{'link': 0, 'active': true, 'speed': 26562}, {'link': 1, 'active': true, "
         "'speed': 12500}]"),
     SHK_WARN, "link 1 at 12500 of 26562"},
    {"a link that is down is another row's", LINKS,
     ONE(", 'links': [{'link': 0, 'active': true, 'speed': 26562}, {'link': 1, 'active': false}]"),
     SHK_PASS, NULL},
    {"no links", LINKS, BOTH(", 'links': []"), SHK_NA, "none of 2 GPUs"},
    {"no speeds", LINKS, BOTH(", 'links': [{'link': 0, 'active': true, 'speed': null}]"), SHK_NA,
     "none of 2 GPUs"},
    {"speed unread", LINKS,
     ONE(", 'links': [{'link': 0, 'active': true, 'speed': null, 'problems': {'speed': 'NVML "
         "error 999'}}]"),
     SHK_UNKNOWN, "0000:03:00.0"},
    {"link unread", LINKS,
     ONE(", 'links': [{'link': 0, 'active': null, 'problems': {'active': 'NVML error 999'}}]"),
     SHK_UNKNOWN, "0000:03:00.0"},
};

Test(gpu_health, table)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_findings *findings =
            support_run(support_config(), "single-node", cases[i].facts);
        const struct shk_finding *row = support_find(findings, "gpu.health", cases[i].setting);
        cr_assert_not_null(row, "%s: no row %s", cases[i].name, cases[i].setting);
        char *text = support_text(row);
        cr_expect_eq(row->verdict, cases[i].verdict, "%s (%s): %s: %s", cases[i].name,
                     cases[i].setting, shk_verdict_name(row->verdict), text);
        cr_expect(!cases[i].says || strstr(text, cases[i].says), "%s (%s): %s", cases[i].name,
                  cases[i].setting, text);
        free(text);
        shk_findings_destroy(findings);
    }
}

/* All rows are there, whatever was read, and none is green or red for nothing. */
Test(gpu_health, whole)
{
    static const char *const settings[] = {ACTION, MEMORY, CLOCKS, POWER, MODE,
                                           LINKS,  BOARD,  SRAM,   VGPU};
    static const struct {
        const char *facts;
        enum shk_verdict verdict;
    } wholes[] = {
        {NODE "'nvml.health': {'state': 'failed', 'reason': 'timed out'}", SHK_UNKNOWN},
        {NODE "'nvml.health': []", SHK_UNKNOWN},
        {NODE "'nvml.lost': 0", SHK_UNKNOWN},
        {"'pci.count.gpu-nvidia': 0", SHK_NA},
    };
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        struct shk_findings *findings =
            support_run(support_config(), "single-node", wholes[i].facts);
        for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
            const struct shk_finding *row = support_find(findings, "gpu.health", settings[k]);
            cr_assert_not_null(row, "%s", settings[k]);
            cr_expect_eq(row->verdict, wholes[i].verdict, "%zu, %s: %s", i, settings[k],
                         shk_verdict_name(row->verdict));
        }
        shk_findings_destroy(findings);
    }
}
