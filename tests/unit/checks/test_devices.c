/* Accelerators and NICs: how many are there, who may use them, at what rate. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define TWO  "[{'pci': '0000:01:00.0'}, {'pci': '0000:02:00.0'}]"
#define AMD8 "'pci.count.gpu-amd': 8, 'dev.kfd': {'rw': true}, "
#define NV8  "'pci.count.gpu-nvidia': 8, 'probe.env.status': 'ok', "
#define NO_NVIDIA                                                                                  \
    "'dev.nvidia0': {'state': 'absent'}, 'dev.nvidiactl': {'state': 'absent'}, "                   \
    "'dev.nvidia-uvm': {'state': 'absent'}"
#define PORT(name, rate)                                                                           \
    "{'name': '" name "', 'driver': 'mlx5_core', 'ports': [{'port': 1, 'state': 'ACTIVE', "        \
    "'link_layer': 'InfiniBand', 'rate': " rate "}]}"
#define DOWN(name, state)                                                                          \
    "{'name': '" name "', 'driver': 'mlx5_core', 'ports': [{'port': 1, 'state': '" state           \
    "', 'link_layer': 'InfiniBand', 'rate': 10}]}"

static const struct {
    const char *name, *profile, *id, *setting, *facts;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
    const char *says;
} cases[] = {
    {"driver serves some", "single-node", "gpu.driver", "amd driver",
     AMD8 "'gpu.amd.devices': " TWO ", 'gpu.amd.hidden': {'state': 'absent'}", SHK_FAIL, SHK_EFFECT,
     "Xid|NVRM|amdgpu"},
    {"driver hides some", "single-node", "gpu.driver", "amd driver",
     AMD8 "'gpu.amd.devices': " TWO ", 'gpu.amd.hidden': {'nodes': 6}", SHK_NOTE, SHK_EFFECT,
     "6 not tested"},
    {"whether the driver hides some is not known", "single-node", "gpu.driver", "amd driver",
     AMD8 "'gpu.amd.devices': " TWO "", SHK_UNKNOWN, SHK_NOT_COVERED, "gpu.amd.hidden"},
    {"driver lost one", "single-node", "gpu.driver", "nvidia driver",
     NV8 "'gpu.nvidia.devices': " TWO ", 'host.container': 'none'", SHK_FAIL, SHK_EFFECT,
     "gpu-lost-by-driver"},
    {"a device that says nothing", "single-node", "gpu.driver", "nvidia driver",
     "'pci.count.gpu-nvidia': 2, 'gpu.nvidia.devices': [{'pci': '0000:01:00.0'}, {}]", SHK_UNKNOWN,
     SHK_NOT_COVERED, "unexpected form"},
    {"container with two", "single-node", "gpu.driver", "nvidia driver",
     NV8 "'gpu.nvidia.devices': " TWO ", 'host.container': 'docker'", SHK_NOTE, SHK_EFFECT,
     "2 of 8"},
    {"container that was to have all", "single-node", "gpu.driver", "nvidia driver",
     NV8 "'gpu.nvidia.devices': " TWO ", 'host.container': 'docker', "
         "'env.NVIDIA_VISIBLE_DEVICES': 'all'",
     SHK_FAIL, SHK_EFFECT, "gpu-lost-by-driver"},
    {"fewer than were given", "single-node", "gpu.driver", "nvidia driver",
     NV8 "'gpu.nvidia.devices': " TWO ", 'host.container': 'enroot', "
         "'env.SLURM_GPUS_ON_NODE': '4'",
     SHK_FAIL, SHK_EFFECT, "gpu-lost-by-driver"},
    {"all GPUs on the bus", "aws-p5", "gpu.presence", "accelerators", NV8 "'host.name': 'x'",
     SHK_PASS, SHK_EFFECT, "8 nvidia"},
    {"one GPU off the bus", "aws-p5", "gpu.presence", "accelerators",
     "'host.vendor': 'Amazon EC2', 'host.product': 'p5.48xlarge', 'pci.count.gpu-nvidia': 7",
     SHK_FAIL, SHK_EFFECT, "gpu-count-low"},
    {"the smallest instance of a family", "aws-p5", "gpu.presence", "accelerators",
     "'host.vendor': 'Amazon EC2', 'host.product': 'p5.4xlarge', 'pci.count.gpu-nvidia': 1",
     SHK_PASS, SHK_EFFECT, "1 nvidia"},
    {"an instance of which no size was read", "aws-p5", "gpu.presence", "accelerators",
     "'host.vendor': 'Amazon EC2', 'pci.count.gpu-nvidia': 1", SHK_UNKNOWN, SHK_NOT_COVERED,
     "no probe collected host.product"},
    {"an instance without EFA by its size", "aws-trn1", "nic.count", "NICs",
     "'host.vendor': 'Amazon EC2', 'host.product': 'trn1.2xlarge', 'pci.count.efa': {'state': "
     "'absent'}",
     SHK_NA, SHK_NOT_COVERED, "for other hardware"},
    {"an instance that should have EFA", "aws-trn1", "nic.count", "NICs",
     "'host.vendor': 'Amazon EC2', 'host.product': 'trn1.32xlarge', 'pci.count.efa': {'state': "
     "'absent'}",
     SHK_FAIL, SHK_EFFECT, "efa-provider-absent"},
    {"GPUs on the bus not counted", "aws-p5", "gpu.presence", "accelerators",
     "'pci.count.gpu-nvidia': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "denied"},
    {"GPUs not in the container", "single-node", "devices.access", "/dev/nvidia",
     NV8 "'host.container': 'podman', " NO_NVIDIA, SHK_FAIL, SHK_EFFECT, "nvidia.com/gpu=all"},
    {"kfd not in the pod", "single-node", "devices.access", "/dev/kfd",
     AMD8 "'host.container': 'kubernetes', 'dev.kfd': {'state': 'absent'}", SHK_FAIL, SHK_EFFECT,
     "amd.com/gpu"},
    {"device nodes that come later", "single-node", "devices.access", "/dev/nvidia",
     NV8 "'host.container': 'none', " NO_NVIDIA, SHK_WARN, SHK_EFFECT, "nvidia-modprobe"},
    {"device nodes not read", "single-node", "devices.access", "/dev/nvidia",
     NV8 "'dev.nvidia0': {'rw': true}, 'dev.nvidia1': {'state': 'failed', 'reason': 'denied'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "1 of 2 device nodes"},
    {"all GPUs for this job", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.SLURM_GPUS_ON_NODE': '8'", SHK_PASS, SHK_EFFECT, "8 of 8"},
    {"two GPUs for this job", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.SLURM_GPUS_ON_NODE': '2'", SHK_NOTE, SHK_EFFECT, "2 of 8 allocated"},
    {"a list of GPUs", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.SLURM_JOB_GPUS': '0-2,5'", SHK_NOTE, SHK_EFFECT, "4 of 8 allocated"},
    {"a mask", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.CUDA_VISIBLE_DEVICES': '3,4'", SHK_NOTE, SHK_EFFECT, "2 of 8 allocated"},
    {"a mask of each rank", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.CUDA_VISIBLE_DEVICES': '3', 'job.local_ranks': 8", SHK_PASS, SHK_EFFECT, "8 of 8"},
    {"a mask that leaves none", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.CUDA_VISIBLE_DEVICES': 'NoDevFiles'", SHK_WARN, SHK_DECLARED, "NoDevFiles"},
    {"a mask that was not read", "single-node", "gpu.allocation", "accelerators of this job",
     NV8 "'env.CUDA_VISIBLE_DEVICES': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "CUDA_VISIBLE_DEVICES"},
    {"one port slower than its siblings", "generic-ib", "nic.rate", "NIC link rates",
     "'rdma.devices': [" PORT("a", "400") "," PORT("b", "400") "," PORT("c", "400") "," PORT(
         "d", "100") "]",
     SHK_WARN, SHK_EFFECT, "d 100 Gb/s"},
    {"two networks", "generic-ib", "nic.rate", "NIC link rates",
     "'rdma.devices': [" PORT("a", "400") "," PORT("b", "400") "," PORT("c", "400") "," PORT(
         "d", "100") "," PORT("e", "100") "]",
     SHK_PASS, SHK_EFFECT, "3 at 400 Gb/s, 2 at 100 Gb/s"},
    {"a rate that was not read", "generic-ib", "nic.rate", "NIC link rates",
     "'rdma.devices': [" PORT("a", "400") "," PORT("b", "null") "]", SHK_UNKNOWN, SHK_NOT_COVERED,
     "1 of 2 rates"},
    {"an EFA interface without a driver", "aws-p5", "nic.link", "NIC links",
     "'host.container': 'none', 'pci.count.efa': 2, 'rdma.devices': [{'name': 'rdmap1s0', "
     "'driver': "
     "'efa', 'ports': [{'port': 1, 'state': 'ACTIVE', 'link_layer': 'Unspecified'}]}]",
     SHK_UNKNOWN, SHK_NOT_COVERED, "1 of 2 on the bus have a device"},
    {"an EFA interface that the container does not show", "aws-p5", "nic.link", "NIC links",
     "'host.container': 'kubernetes', 'pci.count.efa': 2, 'rdma.devices': [{'name': 'rdmap1s0', "
     "'driver': 'efa', 'ports': [{'port': 1, 'state': 'ACTIVE', 'link_layer': 'Unspecified'}]}]",
     SHK_NOTE, SHK_EFFECT, "1 of 2 on the bus are shown"},
    {"a Slingshot NIC without a driver", "lumi-g", "nic.link", "NIC links",
     "'host.container': 'none', 'pci.count.cxi': 4, 'cxi.devices': [{'name': 'cxi0', 'link_state': "
     "'up'}, {'name': 'cxi1', 'link_state': 'up'}, {'name': 'cxi2', 'link_state': 'up'}]",
     SHK_UNKNOWN, SHK_NOT_COVERED, "3 of 4 on the bus have a device"},
    {"an unused port", "generic-ib", "nic.link", "NIC links",
     "'probe.env.status': 'ok', 'rdma.devices': [" PORT("a", "400") "," DOWN("b", "DOWN") "]",
     SHK_NOTE, SHK_EFFECT, "not needed: b"},
    {"a port that is named", "generic-ib", "nic.link", "NIC links",
     "'probe.env.status': 'ok', 'env.NCCL_IB_HCA': 'a,b', 'rdma.devices': [" PORT(
         "a", "400") "," DOWN("b", "DOWN") "]",
     SHK_WARN, SHK_EFFECT, "NCCL_IB_HCA names it"},
    {"a port that is left out", "generic-ib", "nic.link", "NIC links",
     "'probe.env.status': 'ok', 'env.NCCL_IB_HCA': '^b', 'rdma.devices': [" PORT(
         "a", "400") "," DOWN("b", "DOWN") "]",
     SHK_NOTE, SHK_EFFECT, "not needed"},
    {"fewer ports than the profile has", "azure-nd-h100", "nic.link", "NIC links",
     "'host.vendor': 'Microsoft Corporation', 'probe.env.status': 'ok', 'rdma.devices': [" PORT(
         "a", "400") "," DOWN("b", "DOWN") "]",
     SHK_WARN, SHK_EFFECT, "the profile counts on it"},
    {"no port is left", "generic-ib", "nic.link", "NIC links",
     "'probe.env.status': 'ok', 'rdma.devices': [" DOWN("a", "DOWN") "," DOWN("b", "DOWN") "]",
     SHK_FAIL, SHK_EFFECT, "nic-port-down"},
    {"no subnet manager", "generic-ib", "nic.link", "NIC links",
     "'probe.env.status': 'ok', 'rdma.devices': [" DOWN("a", "INIT") "," DOWN("b", "INIT") "]",
     SHK_FAIL, SHK_EFFECT, "ib-no-subnet-manager"},
    {"no NIC of the named profile", "generic-ib", "nic.count", "NICs",
     "'pci.count.mlx5': {'state': 'absent'}, 'rdma.devices': {'state': 'absent'}", SHK_FAIL,
     SHK_EFFECT, "nic-none"},
    {"RDMA NICs of another maker", "generic-roce", "nic.count", "NICs",
     "'pci.count.mlx5': {'state': 'absent'}, 'rdma.devices': [{'name': 'b', 'driver': 'bnxt_re'}]",
     SHK_PASS, SHK_EFFECT, "1 RDMA NICs"},
    {"a probe that a busy node left no processor", "single-node", "probe.health", "probe numa",
     "'probe.numa.status': 'starved', 'probe.numa.reason': 'numa: the node was too busy: it got "
     "0.1 s', 'probe.numa.library': 'libnuma.so.1'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "the node was too busy"},
    {"a library that hangs when asked", "single-node", "probe.health", "probe libfabric",
     "'probe.libfabric.status': 'ok', 'fabric.problem': {'outcome': 'timeout', 'text': 'no "
     "answer', "
     "'library': 'libfabric.so.1', 'call': 'dlopen'}",
     SHK_FAIL, SHK_TESTED, "libfabric.so.1: dlopen"},
};

Test(devices, cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_findings *findings =
            support_run(support_config(), cases[i].profile, cases[i].facts);
        const struct shk_finding *f = support_find(findings, cases[i].id, cases[i].setting);
        cr_assert_not_null(f, "%s: no row", cases[i].name);
        char *text = support_text(f);
        cr_expect(f->verdict == cases[i].verdict && f->evidence == cases[i].evidence, "%s: %s",
                  cases[i].name, text);
        cr_expect(strstr(text, cases[i].says), "%s: lacks \"%s\": %s", cases[i].name, cases[i].says,
                  text);
        free(text);
        shk_findings_destroy(findings);
    }
}
