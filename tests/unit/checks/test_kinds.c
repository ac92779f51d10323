/* Healthy kinds of node beside those that have the fault: the IOMMU as distributions ship it
 * matters only where a GPU exchanges data with somebody over PCIe. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define BARE "'host.virt': 'none', "
#define COUNTS(n, a)                                                                               \
    "'pci.count.gpu-nvidia': " #n ", 'pci.count.gpu-amd': " #a ", 'pci.count.neuron': 0, "
#define NO_FABRIC "'pci.count.cxi': 0, 'pci.count.efa': 0, 'pci.count.mlx5': 0, "
#define GPU(addr, kind, model)                                                                     \
    "{'addr': '0000:" addr ":00.0', 'kind': 'gpu-" kind "', 'device': '" model "', 'vf': false}"
#define NIC(addr, kind) "{'addr': '0000:" addr ":00.0', 'kind': '" kind "', 'vf': false}"
#define BUS(devices)    "'pci.devices': [" devices "], "
#define DMA_FQ          "'kernel.iommu.enabled': true, 'kernel.iommu.mode': 'DMA-FQ', "
#define FAILED          "{'state': 'failed', 'reason': 'denied'}"
#define PEERS(class, p2p)                                                                          \
    "'topology.peers': [{'gpu': '0000:01:00.0', 'peer': '0000:02:00.0', 'class': '" class "', "    \
                                                                                          "'p2p':" \
                                                                                          " " p2p  \
                                                                                          "}], "
#define GROUP(addr, type) "{'type': '" type "', 'devices': ['0000:" addr ":00.0']}"
#define TWO_NVIDIA        BUS(GPU("01", "nvidia", "0x2684") ", " GPU("02", "nvidia", "0x2684"))
#define TWO_AMD           BUS(GPU("01", "amd", "0x744c") ", " GPU("02", "amd", "0x744c"))
#define RDMA              "'rdma.devices': [{'name': 'mlx5_0'}], "
#define END               "'kernel.cmdline': 'quiet'"

static const struct kind_case {
    const char *name, *facts;
    enum shk_verdict verdict;
    const char *says;
} cases[] = {
    {"laptop with an NVIDIA GPU",
     BARE COUNTS(1, 0) NO_FABRIC BUS(GPU("01", "nvidia", "0x2684")) DMA_FQ END, SHK_NA,
     "no second GPU"},
    {"desktop with an AMD GPU",
     BARE COUNTS(0, 1) NO_FABRIC BUS(GPU("01", "amd", "0x744c")) DMA_FQ END, SHK_NA,
     "no second GPU"},
    {"desktop with an AMD GPU and graphics in the processor",
     BARE COUNTS(0, 2) NO_FABRIC BUS(GPU("01", "amd", "0x744c") ", " GPU("02", "amd", "0x164e"))
         DMA_FQ END,
     SHK_NA, "no second GPU"},
    {"laptop with GPUs of two makers",
     BARE COUNTS(1, 1) NO_FABRIC BUS(GPU("01", "nvidia", "0x2684") ", " GPU("02", "amd", "0x164e"))
         DMA_FQ END,
     SHK_NA, "no second GPU"},
    {"two AMD GPUs", BARE COUNTS(0, 2) NO_FABRIC TWO_AMD DMA_FQ END, SHK_FAIL, "iommu=pt"},
    {"two AMD GPUs, IOMMU in pass-through",
     BARE COUNTS(0, 2) NO_FABRIC TWO_AMD "'kernel.iommu.mode': 'identity', " END, SHK_PASS,
     "identity"},
    {"one AMD GPU and a NIC",
     BARE COUNTS(0, 1) "'pci.count.cxi': 1, " BUS(GPU("01", "amd", "0x744c") ", " NIC("02", "cxi"))
         DMA_FQ END,
     SHK_FAIL, "iommu=pt"},
    {"GeForce cards without peer access",
     BARE COUNTS(2, 0) NO_FABRIC TWO_NVIDIA PEERS("PHB", "'chipset not supported'") DMA_FQ END,
     SHK_NA, "no peer access"},
    {"two GPUs with NVLink", BARE COUNTS(2, 0) NO_FABRIC TWO_NVIDIA PEERS("NV4", "'ok'") DMA_FQ END,
     SHK_NA, "NVLink"},
    {"two GPUs that meet on PCIe",
     BARE COUNTS(2, 0) NO_FABRIC TWO_NVIDIA PEERS("PHB", "'ok'") DMA_FQ END, SHK_WARN, "DMA-FQ"},
    {"two GPUs, peer access not read",
     BARE COUNTS(2, 0) NO_FABRIC TWO_NVIDIA "'topology.peers': " FAILED ", " DMA_FQ END,
     SHK_UNKNOWN, "peer access was not read"},
    {"one GPU and an Ethernet card without RDMA",
     BARE COUNTS(1, 0) NO_FABRIC BUS(
         GPU("01", "nvidia", "0x2684") ", " NIC("02", "mlx5")) "'rdma.devices': [], " DMA_FQ END,
     SHK_NA, "no NIC"},
    {"one GPU and an adapter with RDMA",
     BARE COUNTS(1, 0) NO_FABRIC BUS(GPU("01", "nvidia", "0x2684") ", " NIC("02", "mlx5"))
         RDMA DMA_FQ END,
     SHK_WARN, "DMA-FQ"},
    {"one GPU and an adapter, RDMA not read",
     BARE COUNTS(1, 0) NO_FABRIC BUS(GPU("01", "nvidia", "0x2684") ", " NIC(
         "02", "mlx5")) "'rdma.devices': " FAILED ", " DMA_FQ END,
     SHK_UNKNOWN, "denied"},
    {"one GPU, bus not read", BARE COUNTS(1, 0) NO_FABRIC "'pci.devices': " FAILED ", " DMA_FQ END,
     SHK_UNKNOWN, "denied"},
    {"one GPU, another maker's not counted",
     BARE COUNTS(1, 0) "'pci.count.gpu-amd': " FAILED ", " BUS(GPU("01", "nvidia", "0x2684"))
         DMA_FQ END,
     SHK_UNKNOWN, "gpu-amd"},
    {"virtual machine", "'host.virt': 'kvm', " COUNTS(8, 0) RDMA DMA_FQ END, SHK_NA, "host"},
    {"virtual machine or not is not known",
     "'host.virt': " FAILED ", " COUNTS(0, 2) NO_FABRIC TWO_AMD DMA_FQ END, SHK_UNKNOWN, "denied"},
    {"one group known of two, mode not read",
     BARE COUNTS(0, 2) TWO_AMD "'kernel.iommu.enabled': true, 'kernel.iommu.mode': " FAILED
                               ", 'kernel.iommu.groups': [" GROUP("01", "identity") "], " END,
     SHK_UNKNOWN, "1 of 2 groups"},
    {"all groups known, mode not read",
     BARE COUNTS(0, 2) TWO_AMD
     "'kernel.iommu.enabled': true, 'kernel.iommu.mode': " FAILED
     ", 'kernel.iommu.groups': [" GROUP("01", "identity") ", " GROUP("02", "identity") "], " END,
     SHK_PASS, "identity"},
    {"a group that translates, mode not read",
     BARE COUNTS(0, 2) TWO_AMD
     "'kernel.iommu.enabled': true, 'kernel.iommu.mode': " FAILED
     ", 'kernel.iommu.groups': [" GROUP("01", "identity") ", " GROUP("02", "DMA") "], " END,
     SHK_FAIL, "0000:02:00.0"},
    {"one function not read, mode not read",
     BARE COUNTS(0, 2) TWO_AMD "'pci.unreadable': " FAILED ", 'kernel.iommu.groups': [" GROUP(
         "01", "identity") ", " GROUP("02", "identity") "], " END,
     SHK_UNKNOWN, "denied"},
    {"no GPU, whatever the IOMMU does", BARE COUNTS(0, 0) DMA_FQ END, SHK_NA, "no GPU"},
    {"IOMMU off, GPUs not counted",
     BARE "'kernel.iommu.enabled': false, 'kernel.iommu.mode': 'none', " END, SHK_UNKNOWN,
     "devices of this node"},
};

Test(kinds, iommu)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kind_case *c = &cases[i];
        struct shk_findings *findings = support_run(support_config(), "single-node", c->facts);
        const struct shk_finding *f = support_find(findings, "kernel.iommu", "amd_iommu, iommu=pt");
        char *text = f ? support_text(f) : NULL;
        cr_expect(f && f->verdict == c->verdict, "%s: %s", c->name, text);
        cr_expect(text && strstr(text, c->says), "%s: lacks \"%s\": %s", c->name, c->says, text);
        free(text);
        shk_findings_destroy(findings);
    }
}
