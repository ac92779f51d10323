/* GPUs among each other, their NICs, and the ranks that use them. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA                                                                                     \
    "'host.virt': 'none', 'probe.env.status': 'ok', 'pci.count.nvswitch': 0, "                     \
    "'pci.count.gpu-nvidia': "                                                                     \
    "2, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define NO_GPU "'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define GOOD                                                                                       \
    "'nvml.error': {'state': 'absent', 'reason': 'it answers'}, 'nvml.driver': '550.54.15', "      \
    "'cuda.driver': '12.4', "
#define LINKS(a, b)                                                                                \
    "'nvml.devices': [{'pci': '0000:03:00.0', 'mig': false, 'links': [{'active': true}, "          \
    "{'active': " a "}]}, {'pci': '0000:04:00.0', 'mig': false, 'links': [{'active': " b           \
    "}, {'active': " b "}]}]"
#define PEERS(class, p2p)                                                                          \
    "'topology.peers': [{'gpu': '0000:03:00.0', 'peer': '0000:04:00.0', 'class': '" class "', "    \
                                                                                          "'p2p':" \
                                                                                          " " p2p  \
                                                                                          "}]"
#define TO(i, n)       "{'link': " i ", 'active': true, 'remote': 'gpu', 'pci': '0000:0" n ":00.0'}"
#define SWITCH         "{'link': 0, 'active': true, 'remote': 'switch', 'pci': null}"
#define DARK(i)        "{'link': " i ", 'active': false, 'remote': null, 'pci': null}"
#define THREE(a, b, c) a ", " b ", " c
#define LIT(n, of)     "{'pci': '0000:0" n ":00.0', 'mig': false, 'links': [" of "]}"
#define WAY(a, b, class, p2p)                                                                      \
    "{'gpu': '0000:0" a ":00.0', 'peer': '0000:0" b ":00.0', 'class': '" class "', 'p2p': '" p2p   \
                                                                               "'}"
#define OK_WAY(a, b) WAY(a, b, "NV4", "ok")
#define NO_WAY(a, b) WAY(a, b, "NV4", "GPU not supported")
#define FOUR         "'pci.count.gpu-nvidia': 4, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define MODEL(name)  "'nvml.devices': [{'pci': '0000:03:00.0', 'name': '" name "'}], "
#define GPU(n, class, nic, cpus)                                                                   \
    "{'name': 'GPU" n "', 'pci': '0000:0" n ":00.0', 'class': '" class "', 'nic': '" nic           \
                                                                       "', 'cpus': '" cpus "'}"
#define GPUS(class0, class1)                                                                       \
    "'topology.gpus': [" GPU("0", class0, "0000:e0:00.0",                                          \
                             "0-3,8-11") ", " GPU("1", class1, "0000:e1:00.0", "4-7,12-15") "], "
#define NICS                                                                                       \
    "'topology.nics': [{'pci': '0000:e0:00.0', 'name': 'ib0', 'fabric': true, 'gpus': "            \
    "['0000:00:00.0']}, {'pci': '0000:e1:00.0', 'name': 'ib1', 'fabric': true, 'gpus': "           \
    "['0000:01:00.0']}]"
#define ONE_NIC                                                                                    \
    "'topology.nics': [{'pci': '0000:e0:00.0', 'name': 'ib0', 'fabric': true, 'gpus': "            \
    "['0000:00:00.0', '0000:01:00.0']}]"
#define FILE_OF(pci)                                                                               \
    "'topology.nccl_file': {'path': '/t.xml', 'asked': true, 'functions': [{'pci': "               \
    "'ffff:ff:01.0', 'class': '0x060400'}, {'pci': '0000:03:00.0', 'class': '0x030200'}, {'pci': " \
    "'" pci "', 'class': '0x020000'}]}, "
#define BUS                                                                                        \
    "'pci.count.gpu-nvidia': 1, 'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia'}, "  \
    "{'addr': '0000:05:00.0', 'kind': 'mlx5'}]"
#define RANK(n, cpus) ", 'job.local_rank': " n ", 'host.affinity': '" cpus "'"

static const struct peers_case {
    const char *name, *id, *setting, *facts;
    enum shk_verdict verdict; /* SHK_VERDICT_COUNT: no row at all */
    const char *says;
} cases[] = {
    {"NVML works", "gpu.library", "NVML", NVIDIA GOOD "'nvml.driver': '550.54.15'", SHK_PASS,
     "550.54.15"},
    {"CUDA works", "gpu.library", "CUDA",
     NVIDIA "'cuda.error': {'state': 'absent'}, 'cuda.driver': '12.4'", SHK_PASS, "12.4"},
    {"CUDA not asked", "gpu.library", "CUDA", NVIDIA GOOD "'cuda.driver': '12.4'", SHK_UNKNOWN,
     "no probe collected"},
    {"NVML of another version", "gpu.library", "NVML",
     NVIDIA "'nvml.error': {'call': 'nvmlInit_v2', 'code': 18, 'text': 'Driver/library version "
            "mismatch'}",
     SHK_FAIL, "driver-runtime-version-mismatch"},
    {"CUDA waits for the fabric", "gpu.library", "CUDA",
     NVIDIA GOOD "'cuda.error': {'call': 'cuInit', 'code': 802, 'text': 'system not yet "
                 "initialized'}",
     SHK_FAIL, "fabric-manager-down"},
    {"compatibility package", "gpu.library", "CUDA",
     NVIDIA GOOD "'cuda.error': {'call': 'cuInit', 'code': 804, 'text': 'forward'}", SHK_FAIL,
     "cuda-compat-driver-loaded"},
    {"any other error", "gpu.library", "CUDA",
     NVIDIA GOOD "'cuda.error': {'call': 'cuInit', 'code': 999, 'text': 'unknown error'}", SHK_FAIL,
     "cuInit: unknown error (999)"},
    {"GPU lost", "gpu.library", "lost GPUs", NVIDIA GOOD "'nvml.lost': 1", SHK_FAIL, "Xid"},
    {"NVML not asked", "gpu.library", "NVML",
     NVIDIA "'nvml.error': {'state': 'failed', 'reason': 'timed out'}", SHK_UNKNOWN, "timed out"},
    {"no NVIDIA", "gpu.library", "NVML", NO_GPU GOOD "'nvml.lost': 0", SHK_NA, NULL},

    {"NVLinks up", "gpu.nvlink", "nvlink-state", NVIDIA LINKS("true", "true"), SHK_PASS,
     "2 up on each of 2"},
    {"NVLink down", "gpu.nvlink", "nvlink-state", NVIDIA LINKS("false", "true"), SHK_WARN,
     "1 links down (0000:03:00.0: 1)"},
    {"one NVLink not read", "gpu.nvlink", "nvlink-state", NVIDIA LINKS("null", "true"), SHK_UNKNOWN,
     "1 of 2 GPUs could not be read: 0000:03:00.0"},
    {"NVLinks of one GPU not read", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [{'pci': '0000:03:00.0', 'links': [{'active': true}]}, {'pci': "
            "'0000:04:00.0', 'links': null, 'problems': {'links': 'denied'}}]",
     SHK_UNKNOWN, "0000:04:00.0"},
    {"a GPU without a bridge", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT("3", TO("0", "4")) ", " LIT("4", TO("0", "3")) ", " LIT(
         "5", DARK("0")) "]",
     SHK_PASS, "1 up on each of 2 GPUs; 1 without a bridge"},
    {"a GPU without links where a bridge or more is not known", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT(
         "3", "{'link': 0, 'active': true, 'remote': null, 'pci': null}") ", " LIT("5",
                                                                                   DARK("0")) "]",
     SHK_UNKNOWN, "1 of 2 GPUs could not be read: 0000:05:00.0"},
    {"a GPU that has left its mesh", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT("3", THREE(TO("0", "4"), TO("1", "5"), DARK("2"))) ", " LIT(
         "4", THREE(TO("0", "3"), TO("1", "5"),
                    DARK("2"))) ", " LIT("5", THREE(TO("0", "3"), TO("1", "4"),
                                                    DARK("2"))) ", " LIT("6",
                                                                         THREE(DARK("0"), DARK("1"),
                                                                               DARK("2"))) "]",
     SHK_WARN, "2 links down (0000:06:00.0: 0)"},
    {"an uneven mesh", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT("3", THREE(TO("0", "4"), TO("1", "4"), TO("2", "5"))) ", " LIT(
         "4", THREE(TO("0", "3"), TO("1", "3"),
                    TO("2", "5"))) ", " LIT("5",
                                            THREE(TO("0", "3"), TO("1", "4"), TO("2", "6"))) "]",
     SHK_PASS, "3 up on each of 3"},
    {"a GPU whose siblings reach a switch that this machine does not see", "gpu.nvlink",
     "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT("3", SWITCH) ", " LIT("4", SWITCH) ", " LIT("5", DARK("0")) "]",
     SHK_WARN, "1 links down (0000:05:00.0: 0)"},
    {"a GPU in MIG mode beside them", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [" LIT("3", SWITCH) ", {'pci': '0000:04:00.0', 'mig': true, 'links': "
                                                 "[" DARK("0") "]}]",
     SHK_PASS, "1 up on each of 1"},
    {"GPUs of two models", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [{'pci': '0000:03:00.0', 'name': 'A', 'links': [{'active': true}]}, "
            "{'pci': '0000:04:00.0', 'name': 'B', 'links': [{'active': true}, {'active': true}]}]",
     SHK_PASS, NULL},
    {"all NVLinks down", "gpu.nvlink", "nvlink-state",
     NVIDIA "'pci.count.nvswitch': 4, 'nvml.devices': [{'pci': '0000:03:00.0', 'links': "
            "[{'active': false}]}]",
     SHK_FAIL, "fabric-manager-down"},
    {"no NVLink", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': [{'pci': '0000:03:00.0', 'links': []}]", SHK_NA, NULL},
    {"NVLinks not read", "gpu.nvlink", "nvlink-state",
     NVIDIA "'nvml.devices': {'state': 'failed', 'reason': 'a capture'}", SHK_UNKNOWN, "a capture"},

    {"peers over NVLink", "gpu.peer_access", "GPU peer access", NVIDIA PEERS("NV18", "'ok'"),
     SHK_PASS, "all 1 pairs"},
    {"NVLink refused", "gpu.peer_access", "GPU peer access",
     NVIDIA PEERS("NV18", "'topology not supported'"), SHK_FAIL, "NV18"},
    {"switch refused", "gpu.peer_access", "GPU peer access",
     NVIDIA MODEL("NVIDIA A100") PEERS("PIX", "'chipset not supported'"), SHK_WARN, "host memory"},
    {"GeForce cards on a switch", "gpu.peer_access", "GPU peer access",
     NVIDIA MODEL("NVIDIA GeForce RTX 4090") PEERS("PIX", "'chipset not supported'"), SHK_NA,
     "NCCL uses host memory"},
    {"cards of an unknown model on a switch", "gpu.peer_access", "GPU peer access",
     NVIDIA "'nvml.devices': {'state': 'failed', 'reason': 'denied'}, " PEERS(
         "PIX", "'chipset not supported'"),
     SHK_UNKNOWN, "denied"},
    {"consumer cards on a switch", "gpu.peer_access", "GPU peer access",
     NVIDIA PEERS("PIX", "'not supported'"), SHK_NA, "not supported"},
    {"one of four reaches nobody", "gpu.peer_access", "GPU peer access",
     FOUR "'topology.peers': [" OK_WAY("3", "4") ", " OK_WAY("3", "5") ", " NO_WAY(
         "3", "6") ", " OK_WAY("4", "5") ", " NO_WAY("4", "6") ", " NO_WAY("5", "6") "]",
     SHK_FAIL, "3 of 6 pairs: GPU not supported (0000:06:00.0 with all 3 others)"},
    {"two pairs of four", "gpu.peer_access", "GPU peer access",
     FOUR "'topology.peers': [" OK_WAY("3", "4") ", " NO_WAY("3", "5") ", " OK_WAY(
         "3", "6") ", " OK_WAY("4", "5") ", " NO_WAY("4", "6") ", " OK_WAY("5", "6") "]",
     SHK_FAIL, "(0000:03:00.0 with 0000:05:00.0, 0000:04:00.0 with 0000:06:00.0)"},
    {"one way", "gpu.peer_access", "GPU peer access",
     NVIDIA "'topology.peers': [{'gpu': '0000:03:00.0', 'peer': '0000:04:00.0', 'class': 'NV18', "
            "'p2p': 'CUDA offers no access', 'one_way': '0000:04:00.0 to 0000:03:00.0'}]",
     SHK_FAIL, "(0000:04:00.0 to 0000:03:00.0)"},
    {"two islands on PCIe", "gpu.peer_access", "GPU peer access",
     FOUR MODEL("NVIDIA A40") "'topology.peers': [" WAY("3", "4", "PIX", "ok") ", " WAY("5", "6", "PIX", "ok") ", " WAY(
         "3", "5", "SYS",
         "chipset not supported") ", " WAY("3", "6", "SYS",
                                           "chipset not supported") ", " WAY("4", "5", "SYS",
                                                                             "chipset not "
                                                                             "supported") ", " WAY("4",
                                                                                                   "6",
                                                                                                   "SYS",
                                                                                                   "chipset not supported") "]",
     SHK_NA, "none between 4 of 6 pairs"},
    {"far apart", "gpu.peer_access", "GPU peer access",
     NVIDIA PEERS("SYS", "'chipset not supported'"), SHK_NA, "NCCL uses host memory"},
    {"nobody told", "gpu.peer_access", "GPU peer access", NVIDIA PEERS("PIX", "null"), SHK_UNKNOWN,
     "1 of 1 pairs could not be read"},
    {"one GPU", "gpu.peer_access", "GPU peer access",
     "'pci.count.gpu-nvidia': 1, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, 'topology.peers': "
     "[]",
     SHK_NA, "fewer than two"},
    {"GPUs that hwloc does not show", "gpu.peer_access", "GPU peer access",
     NVIDIA "'topology.peers': []", SHK_UNKNOWN, "no pair of the 2 GPUs"},
    {"peers not read", "gpu.peer_access", "GPU peer access",
     NVIDIA "'topology.peers': {'state': 'failed', 'reason': 'hwloc hung'}", SHK_UNKNOWN,
     "hwloc hung"},

    {"near NICs", "topology.nic", "nearest NICs", NVIDIA GPUS("PIX", "PHB") NICS, SHK_PASS,
     "GPU0 PIX ib0, GPU1 PHB ib1"},
    {"a far NIC", "topology.nic", "nearest NICs", NVIDIA GPUS("PIX", "SYS") NICS, SHK_WARN, "GPU1"},
    {"a far NIC whose NUMA node was not read", "topology.nic", "nearest NICs",
     NVIDIA "'pci.devices': [{'addr': '0000:e1:00.0', 'kind': 'mlx5', 'numa': null, 'problems': "
            "{'numa': 'denied'}}], " GPUS("PIX", "SYS") NICS,
     SHK_UNKNOWN, "1 of 2 GPUs could not be read"},
    {"a NIC of the same switch whose NUMA node was not read", "topology.nic", "nearest NICs",
     NVIDIA "'pci.devices': [{'addr': '0000:e1:00.0', 'kind': 'mlx5', 'numa': null, 'problems': "
            "{'numa': 'denied'}}], " GPUS("PIX", "PHB") NICS,
     SHK_PASS, "GPU1 PHB ib1"},
    {"one NIC for all", "topology.nic", "nearest NICs",
     NVIDIA "'topology.gpus': [" GPU("0", "PIX", "0000:e0:00.0",
                                     "0") ", " GPU("1", "SYS", "0000:e0:00.0", "1") "], " ONE_NIC,
     SHK_PASS, "1 of 1 NICs serve several"},
    {"no fabric NIC", "topology.nic", "nearest NICs",
     NVIDIA GPUS("PIX", "PIX") "'topology.nics': []", SHK_NA, "no fabric NIC"},
    {"NICs not read", "topology.nic", "nearest NICs",
     NVIDIA GPUS("PIX", "PIX") "'topology.nics': {'state': 'failed', 'reason': 'hwloc hung'}",
     SHK_UNKNOWN, "hwloc hung"},
    {"the way of one GPU not read", "topology.nic", "nearest NICs",
     NVIDIA "'topology.gpus': [" GPU("0", "PIX", "0000:e0:00.0", "0") ", {'name': 'GPU1', 'pci': "
                                                                      "'0000:01:00.0', 'class': "
                                                                      "null}], " NICS,
     SHK_UNKNOWN, "1 of 2 GPUs could not be read: 0000:01:00.0"},
    {"topology not read", "topology.nic", "nearest NICs",
     NVIDIA "'topology.gpus': {'state': 'failed', 'reason': 'hwloc hung'}", SHK_UNKNOWN,
     "hwloc hung"},

    {"file of this node", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA FILE_OF("0000:05:00.0") BUS, SHK_PASS, "all 2 functions"},
    {"file of another node", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA FILE_OF("0000:99:00.0") BUS, SHK_WARN, "0000:99:00.0"},
    {"file that leaves out a GPU", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'topology.nccl_file': {'path': '/t.xml', 'functions': [{'pci': '0000:05:00.0', "
            "'class': '0x020000'}]}, " BUS,
     SHK_WARN, "1 GPUs not in it"},
    {"file that is none", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'env.NCCL_TOPO_FILE': '/t.xml', 'topology.nccl_file': {'state': 'failed', 'reason': "
            "'/t.xml: line 1: syntax error'}, 'topology.nccl_file.problem': 'unusable'",
     SHK_FAIL, "line 1: syntax error"},
    {"file that is not there", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'env.NCCL_TOPO_FILE': '/t.xml', 'topology.nccl_file': {'state': 'failed', 'reason': "
            "'gone'}, 'topology.nccl_file.problem': 'missing'",
     SHK_FAIL, "no such file"},
    {"file that a document of 0.2.0 tells of", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'env.NCCL_TOPO_FILE': '/t.xml', 'topology.nccl_file': {'state': 'failed', 'reason': "
            "'/t.xml: line 1: syntax error'}",
     SHK_UNKNOWN, "line 1: syntax error"},
    {"file that nobody looked into", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'env.NCCL_TOPO_FILE': '/t.xml', 'topology.nccl_file': {'state': 'failed', 'reason': "
            "'timed out'}",
     SHK_UNKNOWN, "timed out"},
    {"no file", "topology.file", "NCCL_TOPO_FILE and the bus",
     NVIDIA "'topology.nccl_file': {'state': 'absent'}", SHK_NA, NULL},

    {"GDR level not set", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA GPUS("PHB", "PHB") NICS, SHK_VERDICT_COUNT, NULL},
    {"GDR level withheld", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA GPUS("PHB", "PHB") NICS ", 'env.NCCL_NET_GDR_LEVEL': {'state': 'failed', 'reason': "
                                    "'withheld'}",
     SHK_UNKNOWN, "NCCL_NET_GDR_LEVEL is not known"},
    {"GDR level, a distance not read", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA
     "'topology.gpus': [" GPU("0", "PHB", "0000:e0:00.0", "0") ", {'name': 'GPU1', 'pci': "
                                                               "'0000:01:00.0'}], " NICS
                                                               ", 'env.NCCL_NET_GDR_LEVEL': 'PIX'",
     SHK_UNKNOWN, "1 of 2 distances"},
    {"GDR level that applies", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA GPUS("PIX", "NODE") NICS ", 'env.NCCL_NET_GDR_LEVEL': '3'", SHK_PASS,
     "PHB holds for 2 of 2"},
    {"GDR level too low for one", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA GPUS("PIX", "NODE") NICS ", 'env.NCCL_NET_GDR_LEVEL': 'PXB'", SHK_PASS,
     "PXB holds for 1 of 2"},
    {"GDR level that never applies", "topology.level", "NCCL_NET_GDR_LEVEL on this machine",
     NVIDIA GPUS("PHB", "NODE") NICS ", 'env.NCCL_NET_GDR_LEVEL': 'PIX'", SHK_WARN,
     "export NCCL_NET_GDR_LEVEL=PHB"},
    {"P2P level that never applies", "topology.level", "NCCL_P2P_LEVEL on this machine",
     NVIDIA PEERS("PHB", "'ok'") ", 'env.NCCL_P2P_LEVEL': 'NVL'", SHK_WARN, "shared memory"},
    {"P2P level of NVLink", "topology.level", "NCCL_P2P_LEVEL on this machine",
     NVIDIA PEERS("NV12", "'ok'") ", 'env.NCCL_P2P_LEVEL': 'NVL'", SHK_PASS, "NVL holds"},
    {"peer access that NVML does not know", "gpu.peer_access", "GPU peer access",
     NVIDIA PEERS("NV12", "'unknown'") "", SHK_UNKNOWN, "could not be read"},
    {"no level", "topology.level", "NCCL_P2P_LEVEL on this machine",
     NVIDIA PEERS("NV12", "'ok'") ", 'env.NCCL_P2P_LEVEL': 'near'", SHK_NA, "no level"},

    {"bound beside its GPU", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "12-13"), SHK_PASS, "local rank 1 on 12-13"},
    {"bound on the other side", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-3"), SHK_WARN, "other side"},
    {"mask turns the order", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-3") ", 'env.CUDA_VISIBLE_DEVICES': '1,0'",
     SHK_PASS, "GPU at 0000:00:00.0"},
    {"mask of one GPU", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-3") ", 'env.CUDA_VISIBLE_DEVICES': '0'", SHK_PASS,
     "GPU at 0000:00:00.0"},
    {"mask by name", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-3") ", 'env.CUDA_VISIBLE_DEVICES': 'GPU-1a'",
     SHK_UNKNOWN, "uses is unknown"},
    {"not bound", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-15"), SHK_NA, "not bound"},
    {"bound to nobody knows what", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "zzz"), SHK_UNKNOWN, "names no processors"},
    {"no processor beside a GPU", "topology.binding", "CPU binding",
     NVIDIA "'topology.gpus': [" GPU("0", "PIX", "0000:e0:00.0", "") ", " GPU(
         "1", "PIX", "0000:e1:00.0", "4-7") "], " NICS RANK("1", "4-5"),
     SHK_UNKNOWN, "names no processors"},
    {"no rank", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS ", 'host.affinity': '0', 'job.local_rank': {'state': 'absent'}",
     SHK_NA, "not a rank"},
    {"rank not read", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS ", 'host.affinity': '0', 'job.local_rank': {'state': 'failed', "
                                    "'reason': 'denied'}",
     SHK_UNKNOWN, "denied"},
    {"mask withheld", "topology.binding", "CPU binding",
     NVIDIA GPUS("PIX", "PIX") NICS RANK("1", "0-3") ", 'env.CUDA_VISIBLE_DEVICES': {'state': "
                                                     "'failed', 'reason': 'withheld'}",
     SHK_UNKNOWN, "CUDA_VISIBLE_DEVICES"},
};

Test(peers, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct peers_case *c = &cases[i];
        struct shk_findings *findings = support_run(support_config(), "single-node", c->facts);
        const struct shk_finding *f = support_find(findings, c->id, c->setting);
        char *text = f ? support_text(f) : NULL;
        if (c->verdict == SHK_VERDICT_COUNT) {
            cr_expect_null(f, "%s: %s", c->name, text);
        } else {
            cr_expect_not_null(f, "%s: no row", c->name);
            cr_expect(f && f->verdict == c->verdict, "%s: %s", c->name, text);
            cr_expect(!c->says || (text && strstr(text, c->says)), "%s: lacks \"%s\": %s", c->name,
                      c->says, text);
            cr_expect(!f || f->verdict > SHK_FAIL || f->verdict == SHK_PASS ||
                          (f->why && (f->fix || f->advice)),
                      "%s: neither why nor fix", c->name);
        }
        free(text);
        shk_findings_destroy(findings);
    }
}
