/* Checks of the machine: PCI, kernel policies, services. Each with a healthy and a broken input. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BARE      "'host.virt': 'none', 'probe.env.status': 'ok', "
#define NVIDIA    BARE "'pci.count.gpu-nvidia': 2, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define AMD       BARE "'pci.count.gpu-amd': 2, 'pci.count.gpu-nvidia': 0, 'pci.count.neuron': 0, "
#define NO_GPU    "'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define TWO_NODES "'host.numa': [{'node': 0}, {'node': 1}], "
#define ONE_NODE  "'host.numa': [{'node': 0}], "

/* A GPU and a NIC at two downstream ports of one switch below a root port. */
#define PORT(addr, up, acs)                                                                        \
    "{'addr': '" addr "', 'kind': 'bridge', 'aer': null, 'parents': [" up "], 'link_width': 16, "  \
    "'max_link_width': 16, 'link_speed': 32.0, 'max_link_speed': 32.0" acs "}, "
#define SWITCH(acs)                                                                                \
    PORT("0000:00:01.0", "", ", 'acs': false")                                                     \
    PORT("0000:01:00.0", "'0000:00:01.0'", ", 'acs': false")                                       \
    PORT("0000:02:00.0", "'0000:01:00.0', '0000:00:01.0'", acs)                                    \
    PORT("0000:02:01.0", "'0000:01:00.0', '0000:00:01.0'", ", 'acs': {'control': 0}")
#define END(addr, kind, port, more)                                                                \
    "{'addr': '" addr "', 'kind': '" kind "', 'aer': null, 'vf': false, 'parents': ['" port        \
    "', '0000:01:00.0', '0000:00:01.0']" more "}"
#define LINK(w, s)                                                                                 \
    ", 'link_width': " w ", 'link_speed': " s ", 'max_link_width': 16, 'max_link_speed': 32.0, "   \
    "'numa': 0"
#define ONE_GPU "'pci.count.gpu-nvidia': 1, "
#define DEVICES(acs, gpu, nic)                                                                     \
    ONE_GPU "'pci.devices': [" SWITCH(acs)                                                         \
        END("0000:03:00.0", "gpu-nvidia", "0000:02:00.0", gpu) ", " END("0000:04:00.0", "mlx5",    \
                                                                        "0000:02:01.0", nic) "]"
#define GPU_PAIR                                                                                   \
    END("0000:03:00.0", "gpu-nvidia", "0000:02:00.0", LINK("16", "32.0"))                          \
    ", " END("0000:04:00.0", "gpu-nvidia", "0000:02:01.0", LINK("16", "32.0"))
#define PAIR(class, p2p)                                                                           \
    "'topology.peers': [{'gpu': '0000:03:00.0', 'peer': '0000:04:00.0', 'class': '" class "', "    \
                                                                                          "'p2p':" \
                                                                                          " " p2p  \
                                                                                          "}], "
#define FULL LINK("16", "32.0")
#define GPU_AT(numa)                                                                               \
    ONE_GPU "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'numa': " numa "}]"
#define GPUS_AT(numa)                                                                              \
    "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'numa': " numa                 \
    "}, {'addr': '0000:04:00.0', 'kind': 'gpu-nvidia', 'numa': 0}]"
#define GPU_BAR(kind, bar)                                                                         \
    "'pci.count." kind "': 1, 'pci.devices': [{'addr': '0000:03:00.0', 'kind': '" kind             \
    "', 'bars': [0, " bar ", 0, 0, 0, 0]}], "
#define NO_PEERMEM                                                                                 \
    "'pci.count.mlx5': 8, 'kernel.module.nvidia_peermem': {'state': 'absent'}, "                   \
    "'kernel.module.nv_peer_mem': {'state': 'absent'}, "
#define NO_PEERS "'pci.count.mlx5': 1, 'kernel.memory_peers': {'state': 'absent'}, "
#define A100S                                                                                      \
    "'nvml.devices': [{'pci': '0000:03:00.0', 'fabric': {'state': 'not supported'}}, {'pci': "     \
    "'0000:04:00.0', 'fabric': {'state': 'not supported'}}], "
#define SWITCHES "'pci.count.nvswitch': 4, "
#define DRIVER   "'gpu.nvidia.driver': {'version': '550.54.15', 'open': true}, "
#define CLOSED   "'gpu.nvidia.driver': {'version': '550.54.15', 'open': false}, "
#define FM(run)  "'nvidia.fabricmanager.running': " run
#define FABRIC(state)                                                                              \
    "'nvml.devices': [{'pci': '0000:03:00.0', 'fabric': {'state': 'completed', 'status': 0, "      \
    "'domain': true}}, {'pci': '0000:04:00.0', 'fabric': {'state': '" state                        \
    "', 'status': 0, 'domain': true}}]"
#define CHANNEL(rw) ", 'dev.nvidia-caps-imex-channels/channel0': {'type': 'char', 'rw': " rw "}"
#define NO_CHANNEL  ", 'dev.nvidia-caps-imex-channels/channel0': {'state': 'absent'}"
/* hsn0 with one value, hsn1 with more members */
#define IFACES(rp, more)                                                                           \
    "'net.ifaces': [{'name': 'hsn0', 'up': true, 'pci': '0000:03:00.0', 'rp_filter': " rp          \
    ", 'arp_ignore': 1, 'addrs': [{'family': 'inet', 'addr': '10.1.0.1', 'prefix': 16}]}, "        \
    "{'name': 'hsn1', 'up': true, 'pci': '0000:04:00.0', 'addrs': [{'family': 'inet', 'addr': "    \
    "'10.1.7.2', 'prefix': 16}]" more "}], "
#define TWO_IFACES IFACES("0", ", 'rp_filter': 0, 'arp_ignore': 1")
#define ROCE                                                                                       \
    "'rdma.devices': [{'name': 'mlx5_0', 'pci': "                                                  \
    "'0000:03:00.0', 'ports': [{'port': 1, 'link_layer': 'Ethernet'}]}, {'name': 'mlx5_1', "       \
    "'pci': '0000:04:00.0', 'ports': [{'port': 1, 'link_layer': 'Ethernet'}]}], "
#define APART                                                                                      \
    "'net.ifaces': [{'name': 'hsn0', 'up': true, 'addrs': [{'family': 'inet', 'addr': "            \
    "'10.1.0.1', 'prefix': 16}]}, {'name': 'hsn1', 'up': true, 'addrs': [{'family': 'inet', "      \
    "'addr': '10.2.7.2', 'prefix': 16}]}], "
#define SYSCTLS(rp, som, over, maps, zone) ANSWERING("1", rp, som, over, maps, zone)
#define ANSWERING(arp, rp, som, over, maps, zone)                                                  \
    "'sysctl.net.ipv4.conf.all.rp_filter': " rp ", 'sysctl.net.ipv4.conf.all.arp_ignore': " arp    \
    ", 'sysctl.net.core.somaxconn': " som ", 'sysctl.vm.overcommit_memory': " over                 \
    ", 'sysctl.vm.max_map_count': " maps ", 'sysctl.vm.zone_reclaim_mode': " zone
#define GOVERNOR(name, driver)                                                                     \
    "'host.cpufreq.governors': {'performance': 60, '" name                                         \
    "': 4}, 'host.cpufreq.drivers': {'" driver "': 64}"

static const struct machine_case {
    const char *name, *id, *setting, *facts;
    enum shk_verdict verdict; /* SHK_VERDICT_COUNT: no row at all */
    const char *says;
} cases[] = {
    {"ACS on", "pci.acs", "pcie-acs", NVIDIA DEVICES(", 'acs': {'control': 29}", FULL, FULL),
     SHK_FAIL, "for port in 0000:02:00.0; do setpci"},
    {"ACS names the bits", "pci.acs", "pcie-acs",
     NVIDIA DEVICES(", 'acs': {'control': 29}", FULL, FULL), SHK_FAIL, "(ReqRedir CmpltRedir)"},
    {"ACS without redirection", "pci.acs", "pcie-acs",
     NVIDIA DEVICES(", 'acs': {'control': 1}", FULL, FULL), SHK_PASS, "between 1 pairs"},
    {"ACS not there", "pci.acs", "pcie-acs", NVIDIA DEVICES(", 'acs': false", FULL, FULL), SHK_PASS,
     NULL},
    {"ACS not readable", "pci.acs", "pcie-acs",
     NVIDIA DEVICES(", 'acs': null, 'problems': {'acs': 'root only'}", FULL, FULL), SHK_UNKNOWN,
     "root only; run once as root"},
    {"ACS, guest or not is not known", "pci.acs", "pcie-acs",
     NVIDIA "'host.virt': {'state': 'failed', 'reason': 'denied'}, " DEVICES(
         ", 'acs': {'control': 29}", FULL, FULL),
     SHK_UNKNOWN, "denied"},
    {"ACS between GPUs with NVLink", "pci.acs", "pcie-acs",
     NVIDIA PAIR("NV18", "'ok'") "'pci.devices': [" SWITCH(", 'acs': {'control': 29}") GPU_PAIR "]",
     SHK_NA, "reaches over PCIe"},
    {"ACS between GPUs without peer access", "pci.acs", "pcie-acs",
     NVIDIA PAIR("PIX", "'GPU not supported'") "'pci.devices': [" SWITCH(", 'acs': {'control': 29}")
         GPU_PAIR "]",
     SHK_NA, "reaches over PCIe"},
    {"ACS between GPUs that meet on PCIe", "pci.acs", "pcie-acs",
     NVIDIA PAIR("PIX", "'ok'") "'pci.devices': [" SWITCH(", 'acs': {'control': 29}") GPU_PAIR "]",
     SHK_FAIL, "setpci"},
    {"ACS between GPUs, peer access not read", "pci.acs", "pcie-acs",
     NVIDIA PAIR("PIX", "null") "'pci.devices': [" SWITCH(", 'acs': {'control': 29}") GPU_PAIR "]",
     SHK_UNKNOWN, "peer access was not read"},
    {"ACS in a guest", "pci.acs", "pcie-acs",
     NVIDIA "'host.virt': 'kvm', " DEVICES(", 'acs': {'control': 29}", FULL, FULL), SHK_NA,
     "virtual machine"},
    {"ACS without a common switch", "pci.acs", "pcie-acs",
     NVIDIA ONE_GPU "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'parents': "
                    "['0000:00:01.0']}, {'addr': '0000:04:00.0', 'kind': 'mlx5', 'parents': "
                    "['0000:00:02.0']}]",
     SHK_NA, "no GPU shares"},
    {"ACS, nothing read", "pci.acs", "pcie-acs",
     NVIDIA "'pci.devices': {'state': 'failed', 'reason': 'no sysfs'}", SHK_UNKNOWN, "no sysfs"},
    {"ACS without GPU", "pci.acs", "pcie-acs", NO_GPU "'pci.devices': []", SHK_NA, "no GPU"},

    {"links full", "pci.link", "PCIe links", NVIDIA DEVICES("", FULL, FULL), SHK_PASS,
     "3 at full width and speed"},
    {"GPU at x8", "pci.link", "PCIe link of 0000:03:00.0",
     NVIDIA DEVICES("", LINK("8", "32.0"), FULL), SHK_WARN, "expected x16"},
    {"a link that is bad leaves no pass", "pci.link", "PCIe links",
     NVIDIA DEVICES("", LINK("8", "32.0"), FULL), SHK_VERDICT_COUNT, NULL},
    {"NIC at a lower speed", "pci.link", "PCIe link of 0000:04:00.0",
     NVIDIA DEVICES("", FULL, LINK("16", "16.0")), SHK_WARN, "x16 at 32 GT/s"},
    {"idle GPU", "pci.link", "PCIe links", NVIDIA DEVICES("", LINK("16", "2.5"), FULL), SHK_PASS,
     "idle GPUs not judged"},
    {"slot of eight lanes", "pci.link", "PCIe links",
     NVIDIA ONE_GPU
     "'pci.devices': [{'addr': '0000:00:01.0', 'kind': 'bridge', 'parents': [], "
     "'link_width': 8, 'max_link_width': 8, 'max_link_speed': 16.0}, {'addr': "
     "'0000:03:00.0', 'kind': 'gpu-nvidia', 'vf': false, 'parents': ['0000:00:01.0'], "
     "'link_width': 8, 'max_link_width': 16, 'link_speed': 16.0, 'max_link_speed': 16.0}]",
     SHK_PASS, "1 at full"},
    {"links of a guest", "pci.link", "PCIe links",
     NVIDIA "'host.virt': 'kvm', " DEVICES("", LINK("1", "2.5"), FULL), SHK_NA, "made-up"},
    {"links not shown", "pci.link", "PCIe links",
     NVIDIA DEVICES("", ", 'link_width': null", ", 'link_width': null"), SHK_UNKNOWN,
     "2 of 3 links could not be read"},
    {"speed not shown", "pci.link", "PCIe links", NVIDIA DEVICES("", FULL, LINK("16", "null")),
     SHK_UNKNOWN, "1 of 3 links could not be read: 0000:04:00.0"},
    {"no links at all", "pci.link", "PCIe links",
     NVIDIA ONE_GPU
     "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'parents': []}]",
     SHK_NA, "hang on no PCIe link"},
    {"links, a kind not read", "pci.link", "PCIe links",
     NVIDIA "'pci.count.gpu-nvidia': {'state': 'failed'}, 'pci.devices': [{'addr': '0000:03:00.0', "
            "'kind': null, 'problems': {'kind': 'x'}}]",
     SHK_UNKNOWN, "what the device at 0000:03:00.0 is"},
    {"links, a function not read", "pci.link", "PCIe links",
     NVIDIA "'pci.unreadable': {'state': 'failed', 'reason': 'denied'}, " DEVICES("", FULL, FULL),
     SHK_UNKNOWN, "denied"},
    {"GPU narrow beside the port's number unread", "pci.link", "PCIe links",
     NVIDIA ONE_GPU
     "'pci.devices': [{'addr': '0000:00:01.0', 'kind': 'bridge', 'parents': []}, {'addr': "
     "'0000:03:00.0', 'kind': 'gpu-nvidia', 'vf': false, 'parents': ['0000:00:01.0']" LINK(
         "8", "32.0") "}]",
     SHK_UNKNOWN, "1 of 1 links"},
    {"GPUs that share the lanes of a board", "pci.link", "PCIe links",
     NVIDIA ONE_GPU
     "'pci.devices': [{'addr': '0000:00:01.0', 'kind': 'bridge', 'parents': [], "
     "'max_link_width': 16, 'max_link_speed': 32.0}, {'addr': '0000:03:00.0', 'kind': "
     "'gpu-nvidia', 'vf': false, 'parents': ['0000:00:01.0']" LINK("8", "32.0") "}]",
     SHK_NOTE, "x8 of x16 at 0000:03:00.0"},
    {"idle switch of an AMD card", "pci.link", "PCIe links",
     AMD "'pci.count.gpu-amd': 1, 'pci.devices': [{'addr': '0000:00:01.0', 'kind': 'bridge', "
         "'vendor': '0x1022', "
         "'parents': [], 'max_link_width': 16, 'max_link_speed': 16.0}, {'addr': '0000:01:00.0', "
         "'kind': 'bridge', 'vendor': '0x1002', 'parents': ['0000:00:01.0'], 'link_width': 16, "
         "'max_link_width': 16, 'link_speed': 2.5, 'max_link_speed': 16.0}, {'addr': "
         "'0000:02:00.0', 'kind': 'bridge', 'vendor': '0x1002', 'parents': ['0000:01:00.0', "
         "'0000:00:01.0'], 'max_link_width': 16, 'max_link_speed': 16.0}, {'addr': "
         "'0000:03:00.0', 'kind': 'gpu-amd', 'vf': false, 'parents': ['0000:02:00.0', "
         "'0000:01:00.0', '0000:00:01.0'], 'link_width': 16, 'max_link_width': 16, 'link_speed': "
         "16.0, 'max_link_speed': 16.0}]",
     SHK_PASS, "idle GPUs not judged"},

    {"no errors", "pci.errors", "PCIe errors",
     NVIDIA DEVICES("",
                    ", 'aer': {'correctable': {'BadTLP': 9}, 'nonfatal': {'UnsupReq': 2}, "
                    "'fatal': {}}",
                    ""),
     SHK_PASS, "none at 1"},
    {"lost transfers", "pci.errors", "PCIe errors of 0000:03:00.0",
     NVIDIA DEVICES("",
                    ", 'aer': {'correctable': {}, 'nonfatal': {'CmpltTO': 3}, 'fatal': "
                    "{'DLP': 1}}",
                    ""),
     SHK_WARN, "1 fatal DLP, 3 non-fatal CmpltTO"},
    {"errors not read", "pci.errors", "PCIe errors",
     NVIDIA DEVICES("", ", 'aer': null, 'problems': {'aer': 'denied'}", ""), SHK_UNKNOWN,
     "1 of 1 functions could not be read: 0000:03:00.0"},
    {"errors of one severity not read", "pci.errors", "PCIe errors",
     NVIDIA DEVICES("", ", 'aer': {'correctable': {}, 'nonfatal': {}}", ""), SHK_UNKNOWN,
     "0000:03:00.0"},
    {"errors of a plain NIC", "pci.errors", "PCIe errors",
     NVIDIA ONE_GPU
     "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'aer': null, 'parents': []}, "
     "{'addr': '0000:05:00.0', 'kind': 'nic', 'aer': {'fatal': {'DLP': 1}, 'nonfatal': "
     "{}}}]",
     SHK_NA, "counts no errors"},
    {"errors not counted", "pci.errors", "PCIe errors", NVIDIA DEVICES("", FULL, FULL), SHK_NA,
     "counts no errors"},

    {"NUMA known", "pci.numa", "NUMA nodes of devices", NVIDIA TWO_NODES GPU_AT("1"), SHK_PASS,
     "known for 1"},
    {"NUMA -1", "pci.numa", "NUMA nodes of devices", NVIDIA TWO_NODES GPUS_AT("-1"), SHK_WARN,
     "nic-numa-unknown"},
    {"NUMA -1 of the only device", "pci.numa", "NUMA nodes of devices",
     NVIDIA TWO_NODES GPU_AT("-1"), SHK_NOTE, "no other device"},
    {"NUMA -1 in a guest", "pci.numa", "NUMA nodes of devices",
     NVIDIA TWO_NODES "'host.virt': 'kvm', " GPUS_AT("-1"), SHK_WARN, "vm-topology-missing"},
    {"NUMA -1, one node", "pci.numa", "NUMA nodes of devices", NVIDIA ONE_NODE GPU_AT("-1"), SHK_NA,
     "one NUMA node"},
    {"NUMA not read", "pci.numa", "NUMA nodes of devices", NVIDIA TWO_NODES GPU_AT("null"),
     SHK_UNKNOWN, "1 of 1 devices could not be read"},
    {"NUMA nodes not read", "pci.numa", "NUMA nodes of devices",
     NVIDIA "'host.numa': {'state': 'failed', 'reason': 'denied'}, " GPUS_AT("-1"), SHK_UNKNOWN,
     "denied"},

    {"whole window", "gpu.bar", "gpu-bar1-size",
     AMD GPU_BAR("gpu-amd", "137438953472") "'gpu.amd.devices': [{'pci': '0000:03:00.0', "
                                            "'memory': 68702699520}]",
     SHK_PASS, "1 GPUs"},
    {"small window", "gpu.bar", "gpu-bar1-size",
     AMD GPU_BAR("gpu-amd", "268435456") "'pci.count.mlx5': 1, 'pci.devices': [{'addr': "
                                         "'0000:03:00.0', 'kind': 'gpu-amd', 'bars': [268435456]}, "
                                         "{'addr': '0000:04:00.0', 'kind': 'mlx5'}], "
                                         "'rdma.devices': [{'name': 'mlx5_0'}], "
                                         "'gpu.amd.devices': [{'pci': '0000:03:00.0', 'memory': "
                                         "68702699520}]",
     SHK_WARN, "Above 4G"},
    {"small window, nobody to look through it", "gpu.bar", "gpu-bar1-size",
     AMD GPU_BAR("gpu-amd",
                 "268435456") "'gpu.amd.devices': [{'pci': '0000:03:00.0', 'memory': 68702699520}]",
     SHK_NOTE, "no other GPU"},
    {"window of one GPU not known", "gpu.bar", "gpu-bar1-size",
     AMD "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-amd', 'bars': [137438953472]}, "
         "{'addr': '0000:04:00.0', 'kind': 'gpu-amd', 'bars': null}], 'gpu.amd.devices': [{'pci': "
         "'0000:03:00.0', 'memory': 68702699520}, {'pci': '0000:04:00.0', 'memory': 68702699520}]",
     SHK_UNKNOWN, "1 of 2 GPUs could not be read: 0000:04:00.0"},
    {"small window of NVIDIA", "gpu.bar", "gpu-bar1-size",
     NVIDIA GPU_BAR("gpu-nvidia", "268435456") "'nvml.devices': [{'pci': '0000:03:00.0', "
                                               "'memory': 16106127360}]",
     SHK_NA, "15 GiB"},
    {"window not known", "gpu.bar", "gpu-bar1-size",
     NVIDIA "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'gpu-nvidia', 'bars': null}]",
     SHK_UNKNOWN, NULL},

    {"peermem open driver", "kernel.peermem", "nvidia_peermem",
     NVIDIA DRIVER NO_PEERMEM "'host.kernel': '6.8.0'", SHK_PASS, "dma-buf"},
    {"peermem not registered", "kernel.peermem", "nvidia_peermem",
     NVIDIA "'pci.count.mlx5': 8, 'kernel.module.nvidia_peermem': {'refcount': 0}, "
            "'kernel.memory_peers': ['amdkfd']",
     SHK_WARN, "peermem-not-registered"},
    {"peermem, adapters not read", "kernel.peermem", "nvidia_peermem",
     NVIDIA "'pci.count.mlx5': {'state': 'failed'}, 'pci.count.efa': 0", SHK_UNKNOWN, "mlx5"},
    {"dma-buf of AMD", "kernel.dmabuf", "CONFIG_PCI_P2PDMA",
     AMD NO_PEERS "'kernel.config': {'PCI_P2PDMA': 'y', 'DMABUF_MOVE_NOTIFY': 'y'}", SHK_PASS,
     NULL},
    {"no dma-buf of AMD, nothing needs RDMA", "kernel.dmabuf", "CONFIG_PCI_P2PDMA",
     AMD NO_PEERS "'kernel.config': {'PCI_P2PDMA': 'n', 'DMABUF_MOVE_NOTIFY': 'y'}", SHK_NOTE,
     "amdgpu-dkms"},
    {"peer memory of AMD", "kernel.dmabuf", "CONFIG_PCI_P2PDMA",
     AMD "'pci.count.mlx5': 1, 'kernel.memory_peers': ['amdkfd']", SHK_PASS, "amdkfd"},
    {"dma-buf of AMD not read", "kernel.dmabuf", "CONFIG_PCI_P2PDMA", AMD "'pci.count.mlx5': 1",
     SHK_UNKNOWN, NULL},

    {"fabric set up", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES FABRIC("completed"), SHK_PASS, "completed on 2"},
    {"fabric in progress", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES FABRIC("in progress"), SHK_FAIL, "in progress on 1 of 2"},
    {"fabric manager down", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES FM("false"), SHK_FAIL, "fabric-manager-down"},
    {"fabric state of one GPU not read", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES FM("true") ", 'nvml.devices': [{'pci': '0000:03:00.0', 'fabric': {'state': "
                                "'completed', 'status': 0, 'domain': false}}, {'pci': "
                                "'0000:04:00.0', 'fabric': null}]",
     SHK_UNKNOWN, "1 GPUs was not read: 0000:04:00.0"},
    {"fabric complete, whatever the service looks like", "gpu.fabric_manager",
     "nvidia-fabricmanager", NVIDIA SWITCHES FM("false") ", " FABRIC("completed"), SHK_PASS,
     "completed on 2"},
    {"fabric not complete beside no switches", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA "'pci.count.nvswitch': 0, " FABRIC("not started"), SHK_FAIL, "its own manager"},
    {"fabric manager up", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES A100S "'nvidia.fabricmanager.version': {'state': 'absent'}, " FM("true"),
     SHK_PASS, "running"},
    {"fabric manager, null", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES A100S FM("null"), SHK_UNKNOWN, NULL},
    {"fabric manager, of another type", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES A100S FM("'no'"), SHK_UNKNOWN, "unexpected form"},
    {"fabric manager, version not read", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES A100S DRIVER "'nvidia.fabricmanager.version': {'state': 'failed', 'reason': "
                                  "'denied'}, " FM("true"),
     SHK_UNKNOWN, "denied"},
    {"fabric manager of another version", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES DRIVER "'nvidia.fabricmanager.version': '535.54.03', " FM("true"), SHK_FAIL,
     "fabric-manager-version-mismatch"},
    {"fabric manager out of sight", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA SWITCHES A100S FM("{'state': 'failed', 'reason': 'container'}"), SHK_UNKNOWN,
     "container"},
    {"no NVSwitch", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA "'pci.count.nvswitch': {'state': 'absent'}, 'nvml.devices': [], " FM("false"), SHK_NA,
     "no NVSwitch"},
    {"NVSwitches not counted", "gpu.fabric_manager", "nvidia-fabricmanager",
     NVIDIA "'pci.count.nvswitch': {'state': 'failed'}, 'nvml.devices': [], " FM("false"),
     SHK_UNKNOWN, "nvswitch"},

    {"IMEX channel", "gpu.imex", "nvidia-imex",
     NVIDIA "'nvidia.imex.running': true, " FABRIC("completed") CHANNEL("true"), SHK_PASS, NULL},
    {"IMEX channel, access not read", "gpu.imex", "nvidia-imex",
     NVIDIA "'nvidia.imex.running': true, " FABRIC("completed") CHANNEL("null"), SHK_UNKNOWN, NULL},
    {"no IMEX channel", "gpu.imex", "nvidia-imex", NVIDIA FABRIC("completed") NO_CHANNEL, SHK_FAIL,
     "imex-channel-missing"},
    {"IMEX channel of others", "gpu.imex", "nvidia-imex",
     NVIDIA FABRIC("completed") CHANNEL("false"), SHK_FAIL,
     "cannot open channel0: permission denied"},
    {"IMEX stopped", "gpu.imex", "nvidia-imex",
     NVIDIA "'nvidia.imex.nodes': 18, 'nvidia.imex.running': false" CHANNEL("true"), SHK_FAIL,
     "systemctl start nvidia-imex"},
    {"IMEX not needed", "gpu.imex", "nvidia-imex",
     NVIDIA "'nvml.devices': [], 'nvidia.imex.nodes': 0" NO_CHANNEL, SHK_NA, NULL},
    {"IMEX, domain not read", "gpu.imex", "nvidia-imex",
     NVIDIA "'nvml.devices': [{'pci': '0000:03:00.0', 'fabric': {'state': 'completed', 'status': "
            "0, 'domain': null}}], 'nvidia.imex.nodes': 0" NO_CHANNEL,
     SHK_UNKNOWN, "0000:03:00.0"},
    {"IMEX not read", "gpu.imex", "nvidia-imex", NVIDIA FABRIC("completed"), SHK_UNKNOWN, NULL},

    {"GDRCopy there", "gpu.gdrcopy", "gdrdrv",
     NVIDIA "'env.NCCL_GDRCOPY_ENABLE': '1', 'dev.gdrdrv': {'rw': true}", SHK_PASS, NULL},
    {"GDRCopy missing", "gpu.gdrcopy", "gdrdrv",
     NVIDIA "'env.NCCL_GDRCOPY_ENABLE': '1', 'dev.gdrdrv': {'state': 'absent'}", SHK_WARN,
     "modprobe gdrdrv"},
    {"GDRCopy not asked for", "gpu.gdrcopy", "gdrdrv",
     NVIDIA "'env.NCCL_GDRCOPY_ENABLE': '0', 'dev.gdrdrv': {'state': 'absent'}", SHK_NA, NULL},

    {"governor", "kernel.governor", "cpu-governor", GOVERNOR("schedutil", "acpi-cpufreq"), SHK_PASS,
     "schedutil (4)"},
    {"powersave", "kernel.governor", "cpu-governor", GOVERNOR("powersave", "acpi-cpufreq"),
     SHK_WARN, "cpupower"},
    {"powersave of intel_pstate", "kernel.governor", "cpu-governor",
     GOVERNOR("powersave", "intel_pstate"), SHK_PASS, "processor itself"},
    {"powersave of an unknown driver", "kernel.governor", "cpu-governor",
     "'host.cpufreq.governors': {'powersave': 4}, 'host.cpufreq.drivers': {'state': 'failed', "
     "'reason': 'denied'}",
     SHK_UNKNOWN, "denied"},
    {"powersave of amd-pstate-epp", "kernel.governor", "cpu-governor",
     GOVERNOR("powersave", "amd-pstate-epp"), SHK_PASS, "processor itself"},
    {"full speed, whatever the driver", "kernel.governor", "cpu-governor",
     "'host.cpufreq.governors': {'performance': 4}", SHK_PASS, NULL},
    {"no governor", "kernel.governor", "cpu-governor",
     "'host.cpufreq.governors': {'state': 'absent'}", SHK_NA, NULL},
    {"governor not read", "kernel.governor", "cpu-governor",
     "'host.cpufreq.governors': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN, "denied"},
    {"huge pages by madvise", "kernel.thp", "transparent_hugepage",
     "'kernel.thp': 'always', 'kernel.thp_defrag': 'madvise'", SHK_PASS, "defrag madvise"},
    {"huge pages that stall", "kernel.thp", "transparent_hugepage",
     "'kernel.thp': 'always', 'kernel.thp_defrag': 'always'", SHK_WARN, "compact"},
    {"huge pages of everybody, defrag not read", "kernel.thp", "transparent_hugepage",
     "'kernel.thp': 'always', 'kernel.thp_defrag': {'state': 'failed', 'reason': 'denied'}",
     SHK_UNKNOWN, "denied"},
    {"huge pages of those that ask, defrag not read", "kernel.thp", "transparent_hugepage",
     "'kernel.thp': 'madvise', 'kernel.thp_defrag': {'state': 'failed', 'reason': 'denied'}",
     SHK_PASS, NULL},
    {"huge pages unknown", "kernel.thp", "transparent_hugepage",
     "'kernel.thp': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN, "denied"},
    {"huge pages free", "kernel.hugepages", "vm.nr_hugepages",
     "'env.FI_EFA_USE_HUGE_PAGE': '1', 'hugepages.2048': {'total': 100, 'free': 40}", SHK_PASS,
     "40 of 100"},
    {"huge pages used up", "kernel.hugepages", "vm.nr_hugepages",
     "'env.FI_EFA_USE_HUGE_PAGE': '1', 'hugepages.2048': {'total': 100, 'free': 0}", SHK_WARN,
     "0 of 100"},
    {"huge pages not asked for", "kernel.hugepages", "vm.nr_hugepages",
     BARE "'hugepages.2048': {'total': 0, 'free': 0}", SHK_NA, NULL},
    {"huge pages, pool not read", "kernel.hugepages", "vm.nr_hugepages",
     "'env.FI_EFA_USE_HUGE_PAGE': '1', 'hugepages.2048': {'total': 100, 'free': null, 'problems': "
     "{'free': 'denied'}}",
     SHK_UNKNOWN, "denied"},

    {"container with its NICs", "container.kind", "container",
     "'host.container': 'docker', 'pci.count.mlx5': 8, 'dev.infiniband/uverbs0': {'rw': true}",
     SHK_PASS, "docker"},
    {"container that hides its NICs", "container.kind", "container",
     "'host.container': 'docker', 'pci.count.mlx5': 8, 'dev.infiniband/uverbs0': {'state': "
     "'absent'}",
     SHK_WARN, "docker, without /dev/infiniband"},
    {"container that hides its GPUs, which is judged elsewhere", "container.kind", "container",
     "'host.container': 'docker', 'pci.count.gpu-amd': 8, 'dev.kfd': {'state': 'absent'}", SHK_PASS,
     "docker, without /dev/kfd"},
    {"container whose devices were not looked at", "container.kind", "container",
     "'host.container': 'docker', 'pci.count.mlx5': 8, 'dev.infiniband/uverbs0': {'state': "
     "'failed', 'reason': 'denied'}",
     SHK_UNKNOWN, "denied"},
    {"sysctls", "kernel.sysctl", "sysctls",
     NVIDIA TWO_IFACES "'job.ranks': 64, " SYSCTLS("2", "4096", "0", "65530", "0"), SHK_PASS,
     "6 checked"},
    {"strict filter, interfaces apart", "kernel.sysctl", "sysctls",
     NVIDIA APART SYSCTLS("1", "4096", "0", "65530", "0"), SHK_PASS, NULL},
    {"strict filter", "kernel.sysctl", "net.ipv4.conf.all.rp_filter",
     NVIDIA TWO_IFACES SYSCTLS("1", "4096", "0", "65530", "0"), SHK_WARN, "hsn0 and hsn1"},
    {"strict filter at one interface", "kernel.sysctl", "net.ipv4.conf.all.rp_filter",
     NVIDIA IFACES("0", ", 'rp_filter': 1, 'arp_ignore': 1")
         SYSCTLS("0", "4096", "0", "65530", "0"),
     SHK_WARN, "hsn0 and hsn1"},
    {"strict filter for all, loose at each interface", "kernel.sysctl", "sysctls",
     NVIDIA IFACES("2", ", 'rp_filter': 2, 'arp_ignore': 1")
         SYSCTLS("1", "4096", "0", "65530", "0"),
     SHK_PASS, NULL},
    {"filter of an interface not read", "kernel.sysctl", "sysctls",
     NVIDIA IFACES("0", ", 'rp_filter': null, 'arp_ignore': 1, 'problems': {'rp_filter': 'denied'}")
         SYSCTLS("0", "4096", "0", "65530", "0"),
     SHK_UNKNOWN, "denied"},
    {"filters of interfaces not looked at, loose for all", "kernel.sysctl", "sysctls",
     NVIDIA IFACES("0", "") SYSCTLS("2", "4096", "0", "65530", "0"), SHK_PASS, NULL},
    {"RoCE ports that answer for each other", "kernel.sysctl", "net.ipv4.conf.all.arp_ignore",
     NVIDIA ROCE IFACES("0", ", 'rp_filter': 0, 'arp_ignore': 0")
         ANSWERING("0", "2", "4096", "0", "65530", "0"),
     SHK_WARN, "RoCE ports in one network"},
    {"RoCE ports that answer for themselves", "kernel.sysctl", "sysctls",
     NVIDIA ROCE TWO_IFACES ANSWERING("0", "2", "4096", "0", "65530", "0"), SHK_PASS, "6 checked"},
    {"RoCE ports, what they answer not read", "kernel.sysctl", "sysctls",
     NVIDIA ROCE IFACES("0", ", 'arp_ignore': null, 'problems': {'arp_ignore': 'denied'}")
         ANSWERING("0", "2", "4096", "0", "65530", "0"),
     SHK_UNKNOWN, "denied"},
    {"ports of InfiniBand are not asked", "kernel.sysctl", "sysctls",
     NVIDIA "'rdma.devices': [], " IFACES("0", ", 'rp_filter': 0, 'arp_ignore': 0")
         ANSWERING("0", "2", "4096", "0", "65530", "0"),
     SHK_PASS, NULL},
    {"no memory errors", "memory.errors", "memory errors",
     "'memory.corrupted': 0, 'memory.machine_checks': 0, 'memory.controllers': {'state': 'absent'}",
     SHK_PASS, "none since boot"},
    {"corrected memory errors", "memory.errors", "memory errors",
     "'memory.corrupted': 0, 'memory.machine_checks': 0, 'memory.controllers': [{'name': 'mc0', "
     "'corrected': 7, 'uncorrected': 0}]",
     SHK_PASS, "7 corrected"},
    {"a failed page", "memory.errors", "memory errors",
     "'memory.corrupted': 4096, 'memory.machine_checks': 0, 'memory.controllers': {'state': "
     "'absent'}",
     SHK_WARN, "4 KiB taken out of use"},
    {"machine checks", "memory.errors", "memory errors",
     "'memory.corrupted': 0, 'memory.machine_checks': 2, 'memory.controllers': {'state': 'failed', "
     "'reason': 'denied'}",
     SHK_WARN, "2 machine check exceptions"},
    {"uncorrected errors", "memory.errors", "memory errors",
     "'memory.corrupted': 0, 'memory.machine_checks': 0, 'memory.controllers': [{'name': 'mc0', "
     "'corrected': 7, 'uncorrected': 1}]",
     SHK_WARN, "1 uncorrected"},
    {"a memory controller not read", "memory.errors", "memory errors",
     "'memory.corrupted': 0, 'memory.machine_checks': 0, 'memory.controllers': [{'name': 'mc0', "
     "'uncorrected': null, 'problems': {'uncorrected': 'denied'}}]",
     SHK_UNKNOWN, "denied"},
    {"failed pages not read", "memory.errors", "memory errors",
     "'memory.corrupted': {'state': 'failed', 'reason': 'denied'}, 'memory.machine_checks': 0, "
     "'memory.controllers': {'state': 'absent'}",
     SHK_UNKNOWN, "denied"},
    {"nothing counts memory errors", "memory.errors", "memory errors",
     "'memory.corrupted': {'state': 'absent'}, 'memory.machine_checks': {'state': 'absent'}, "
     "'memory.controllers': {'state': 'absent'}",
     SHK_NA, "counts no memory errors"},
    {"nobody killed for memory", "memory.kills", "memory of the control group",
     "'cgroup.memory.oom_kills': 0", SHK_PASS, "none killed"},
    {"killed for memory", "memory.kills", "memory of the control group",
     "'cgroup.memory.oom_kills': 2", SHK_WARN, "memory limit was reached"},
    {"no control group", "memory.kills", "memory of the control group",
     "'cgroup.memory.oom_kills': {'state': 'absent'}", SHK_NA, "control group"},
    {"kills not read", "memory.kills", "memory of the control group",
     "'cgroup.memory.oom_kills': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN, "denied"},
    {"short queue", "kernel.sysctl", "net.core.somaxconn",
     NVIDIA "'job.ranks': 1024, " SYSCTLS("2", "128", "0", "65530", "0"), SHK_WARN, "1024"},
    {"no overcommit", "kernel.sysctl", "vm.overcommit_memory",
     NVIDIA SYSCTLS("2", "4096", "2", "65530", "0"), SHK_WARN, "0 or 1"},
    {"no overcommit without GPU", "kernel.sysctl", "sysctls",
     NO_GPU SYSCTLS("2", "4096", "2", "65530", "0"), SHK_PASS, NULL},
    {"strict filter, interfaces not read", "kernel.sysctl", "sysctls",
     NVIDIA "'net.ifaces': {'state': 'failed', 'reason': 'denied'}, " SYSCTLS("1", "4096", "0",
                                                                              "65530", "0"),
     SHK_UNKNOWN, "denied"},
    {"no overcommit, GPUs not read", "kernel.sysctl", "sysctls",
     SYSCTLS("2", "4096", "2", "65530", "0"), SHK_UNKNOWN, "devices of this node"},
    {"short queue, ranks not read", "kernel.sysctl", "sysctls",
     NVIDIA "'job.ranks': {'state': 'failed', 'reason': 'denied'}, " SYSCTLS("2", "4096", "0",
                                                                             "65530", "0"),
     SHK_UNKNOWN, "denied"},
    {"one bad setting beside one that was not read", "kernel.sysctl", "sysctls",
     NVIDIA "'sysctl.vm.max_map_count': 10, 'sysctl.vm.zone_reclaim_mode': {'state': 'failed', "
            "'reason': 'denied'}",
     SHK_UNKNOWN, "no probe collected"},
    {"few mappings", "kernel.sysctl", "vm.max_map_count",
     NVIDIA SYSCTLS("2", "4096", "0", "1024", "0"), SHK_WARN, "65530"},
    {"local reclaim", "kernel.sysctl", "vm.zone_reclaim_mode",
     NVIDIA SYSCTLS("2", "4096", "0", "65530", "1"), SHK_WARN, "stall"},
    {"sysctls not read", "kernel.sysctl", "sysctls",
     "'sysctl.vm.max_map_count': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN, NULL},
};

/* Where the profile decides. */
static const struct site_case {
    const char *profile;
    struct machine_case of;
} of_sites[] = {
    {"generic-ib",
     {"peermem closed driver", "kernel.peermem", "nvidia_peermem",
      NVIDIA CLOSED NO_PEERMEM "'host.kernel': '6.8.0'", SHK_FAIL, "closed kernel modules"}},
    {"aws-efa",
     {"peermem of EFA", "kernel.peermem", "efa_nv_peermem",
      NVIDIA "'pci.count.efa': 4, 'host.kernel': '5.4.0', 'kernel.module.efa_nv_peermem': "
             "{'state': 'absent'}",
      SHK_FAIL, "modprobe efa_nv_peermem"}},
    {"generic-roce",
     {"no dma-buf of AMD", "kernel.dmabuf", "CONFIG_PCI_P2PDMA",
      AMD NO_PEERS "'kernel.config': {'PCI_P2PDMA': 'n', 'DMABUF_MOVE_NOTIFY': 'y'}", SHK_WARN,
      "PCI_P2PDMA=n, DMABUF_MOVE_NOTIFY=y"}},
    {"generic-roce",
     {"dma-buf of AMD not mentioned", "kernel.dmabuf", "CONFIG_PCI_P2PDMA",
      AMD NO_PEERS "'kernel.config': {'PCI_P2PDMA': null, 'DMABUF_MOVE_NOTIFY': 'y'}", SHK_UNKNOWN,
      "does not mention PCI_P2PDMA"}},
};

static void judge_case(const char *profile, const struct machine_case *c)
{
    struct shk_findings *findings = support_run(support_config(), profile, c->facts);
    const struct shk_finding *f = support_find(findings, c->id, c->setting);
    char *text = f ? support_text(f) : NULL;
    bool quiet = c->verdict != SHK_WARN && c->verdict != SHK_FAIL;
    if (c->verdict == SHK_VERDICT_COUNT) {
        cr_expect_null(f, "%s: %s", c->name, text);
    } else {
        cr_expect_not_null(f, "%s: no row", c->name);
        cr_expect(f && f->verdict == c->verdict, "%s: %s", c->name, text);
        cr_expect(!c->says || (text && strstr(text, c->says)), "%s: lacks \"%s\": %s", c->name,
                  c->says, text);
        cr_expect(!f || quiet || (f->why && (f->fix || f->advice)), "%s: neither why nor fix",
                  c->name);
    }
    free(text);
    shk_findings_destroy(findings);
}

Test(machine, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        judge_case("single-node", &cases[i]);
}

Test(machine, of_sites)
{
    for (size_t i = 0; i < sizeof of_sites / sizeof *of_sites; i++)
        judge_case(of_sites[i].profile, &of_sites[i].of);
}
