/* Limits, /dev/shm and what the kernel brings: each check with a healthy, a broken and an unread
 * input. */
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define AMD       "'pci.count.gpu-amd': 8, 'pci.count.gpu-nvidia': 0, 'pci.count.neuron': 0, "
#define NVIDIA    "'pci.count.gpu-nvidia': 8, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define NO_GPU    "'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define NODES(n)  "'job.nodes': " #n ", 'job.launcher': 'slurm', 'job.ranks': 16, "
#define BARE      "'host.virt': 'none', "
#define CONTAINER "'host.container': 'docker', "
#define GPU_ADDR                                                                                   \
    "'pci.devices': [{'addr': '0000:c1:00.0', 'class': '0x038000', 'driver': 'amdgpu'}], "
#define GROUP(t)                                                                                   \
    "'kernel.iommu.groups': [{'group': 1, 'type': '" t "', 'devices': ['0000:c1:00.0']}], "
#define NO_PEERMEM                                                                                 \
    "'pci.count.mlx5': 8, 'kernel.module.nvidia_peermem': {'state': 'absent'}, "                   \
    "'kernel.module.nv_peer_mem': {'state': 'absent'}, "
#define SMALL_SHM "'shm.size': 67108864, 'shm.free': 67108864"

static const struct kernel_case {
    const char *name, *profile, *id, *setting, *facts;
    enum shk_verdict verdict; /* SHK_VERDICT_COUNT: no row at all */
    enum shk_evidence evidence;
    const char *says;
} cases[] = {
    {"memlock unlimited", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': -1, 'hard': -1}", SHK_PASS, SHK_EFFECT, "unlimited"},
    {"memlock default", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 8388608, 'hard': 8388608}", SHK_FAIL, SHK_EFFECT, "LimitMEMLOCK"},
    {"memlock soft only", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 65536, 'hard': -1}", SHK_FAIL, SHK_EFFECT, "ulimit -l unlimited"},
    {"memlock large", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 8589934592, 'hard': 8589934592}", SHK_WARN, SHK_EFFECT, "8 GiB"},
    {"memlock without RDMA", "single-node", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 8388608, 'hard': 8388608}", SHK_NA, SHK_NOT_COVERED, "registers"},
    {"memlock zero is not unknown", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 0, 'hard': 0}", SHK_FAIL, SHK_EFFECT, "0 B"},
    {"memlock that no kernel gives", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': -7, 'hard': -7}", SHK_UNKNOWN, SHK_NOT_COVERED, "unexpected form"},
    {"memlock beyond all memory", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 9223372036854775807, 'hard': 9223372036854775807}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "unexpected form"},
    {"memlock soft above hard", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': -1, 'hard': 65536}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "unexpected form"},
    {"memlock as text", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': '-1', 'hard': -1}", SHK_UNKNOWN, SHK_NOT_COVERED, "soft"},
    {"memlock of a shell", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'soft': 65536, 'hard': 65536}", SHK_FAIL, SHK_EFFECT, "limits.d"},
    {"memlock of a Slurm step", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     NODES(2) "'limits.memlock': {'soft': 65536, 'hard': 65536}", SHK_FAIL, SHK_EFFECT,
     "PropagateResourceLimitsExcept=MEMLOCK"},
    {"memlock of a container", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     CONTAINER "'limits.memlock': {'soft': 65536, 'hard': 65536}", SHK_FAIL, SHK_EFFECT,
     "docker run --ulimit memlock=-1"},
    {"memlock not read", "test-fabric", "limits.memlock", "RLIMIT_MEMLOCK",
     "'limits.memlock': {'state': 'failed', 'reason': 'no answer'}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "no answer"},
    {"nofile small at scale", "test-fabric", "limits.nofile", "RLIMIT_NOFILE",
     NODES(4) "'limits.nofile': {'soft': 1024, 'hard': 1048576}", SHK_NOTE, SHK_EFFECT,
     "ulimit -n 65536"},
    {"nofile small at scale, and no more to have", "test-fabric", "limits.nofile", "RLIMIT_NOFILE",
     NODES(4) "'limits.nofile': {'soft': 1024, 'hard': 4096}", SHK_WARN, SHK_EFFECT,
     "[Service] LimitNOFILE=65536"},
    {"nofile of a TCP job", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     NODES(4) "'limits.nofile': {'soft': 1024, 'hard': 1024}", SHK_WARN, SHK_EFFECT, "65536"},
    {"nofile on one node", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     NODES(1) "'limits.nofile': {'soft': 1024, 'hard': 1048576}", SHK_PASS, SHK_EFFECT, "1024"},
    {"nofile, nodes not known", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     "'limits.nofile': {'soft': 1024, 'hard': 1048576}", SHK_UNKNOWN, SHK_NOT_COVERED, "how many"},
    {"nofile enough wherever it runs", "test-fabric", "limits.nofile", "RLIMIT_NOFILE",
     "'limits.nofile': {'soft': 65536, 'hard': 65536}", SHK_PASS, SHK_EFFECT, NULL},
    {"nofile tiny", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     NODES(1) "'limits.nofile': {'soft': 256, 'hard': 256}", SHK_WARN, SHK_EFFECT,
     "LimitNOFILE=1024"},
    {"nofile tiny in a pod", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     NODES(1) "'host.container': 'kubernetes', 'limits.nofile': {'soft': 256, 'hard': 256}",
     SHK_WARN, SHK_EFFECT, "systemctl edit containerd"},
    {"nofile that no kernel gives", "single-node", "limits.nofile", "RLIMIT_NOFILE",
     NODES(1) "'limits.nofile': {'soft': -7, 'hard': -7}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "unexpected form"},
    {"stack usual", "single-node", "limits.stack", "RLIMIT_STACK",
     "'limits.stack': {'soft': 8388608, 'hard': -1}", SHK_PASS, SHK_EFFECT, "8 MiB"},
    {"stack unlimited, old NCCL", "single-node", "limits.stack", "RLIMIT_STACK",
     "'nccl.version': '2.21.5', 'limits.stack': {'soft': -1, 'hard': -1}", SHK_WARN, SHK_EFFECT,
     "NCCL 2.21.5"},
    {"stack unlimited, new NCCL", "single-node", "limits.stack", "RLIMIT_STACK",
     "'nccl.version': '2.28.3', 'limits.stack': {'soft': -1, 'hard': -1}", SHK_PASS, SHK_EFFECT,
     NULL},
    {"shm of a container", "single-node", "shm.size", "/dev/shm", NVIDIA CONTAINER SMALL_SHM,
     SHK_FAIL, SHK_EFFECT, "--shm-size"},
    {"shm of a container, one GPU", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'pci.count.gpu-nvidia': 1, " CONTAINER SMALL_SHM, SHK_WARN, SHK_EFFECT,
     "docker run --shm-size"},
    {"shm of a container, no GPU", "single-node", "shm.size", "/dev/shm",
     NO_GPU CONTAINER SMALL_SHM, SHK_NOTE, SHK_EFFECT, "docker run --shm-size"},
    {"shm of podman", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'host.container': 'podman', " SMALL_SHM, SHK_FAIL, SHK_EFFECT,
     "podman run --shm-size"},
    {"shm of apptainer", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'host.container': 'apptainer', " SMALL_SHM, SHK_FAIL, SHK_EFFECT, "--bind /dev/shm"},
    {"shm of a pod", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'host.container': 'kubernetes', " SMALL_SHM, SHK_FAIL, SHK_EFFECT,
     "emptyDir: {medium: Memory"},
    {"shm small on the host", "single-node", "shm.size", "/dev/shm", NVIDIA SMALL_SHM, SHK_FAIL,
     SHK_EFFECT, "mount -o remount"},
    {"shm small, GPUs not known", "single-node", "shm.size", "/dev/shm", SMALL_SHM, SHK_UNKNOWN,
     SHK_NOT_COVERED, "devices of this node"},
    {"shm large", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 270000000000, 'shm.free': 260000000000", SHK_PASS, SHK_EFFECT, NULL},
    {"shm large, whatever the bus says", "single-node", "shm.size", "/dev/shm",
     "'shm.size': 270000000000, 'shm.free': 260000000000", SHK_PASS, SHK_EFFECT, NULL},
    {"shm full", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 270000000000, 'shm.free': 4096", SHK_FAIL, SHK_EFFECT, "shm-too-small"},
    {"shm full, no GPU", "single-node", "shm.size", "/dev/shm",
     NO_GPU "'shm.size': 270000000000, 'shm.free': 0", SHK_FAIL, SHK_EFFECT, "fuser -v"},
    {"shm nearly full", "single-node", "shm.size", "/dev/shm",
     NO_GPU "'shm.size': 270000000000, 'shm.free': 20971520", SHK_WARN, SHK_EFFECT, "20 MiB"},
    {"shm full of a container, no GPU", "single-node", "shm.size", "/dev/shm",
     NO_GPU CONTAINER "'shm.size': 67108864, 'shm.free': 4096", SHK_FAIL, SHK_EFFECT, "--shm-size"},
    {"shm free not read", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 270000000000, 'shm.free': {'state': 'failed', 'reason': 'denied'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "denied"},
    {"shm of impossible size", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 9223372036854775807, 'shm.free': 260000000000", SHK_UNKNOWN,
     SHK_NOT_COVERED, "unexpected form"},
    {"shm with more free than there is", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 4096, 'shm.free': 8192", SHK_UNKNOWN, SHK_NOT_COVERED, "unexpected form"},
    {"shm without limit", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': 0, 'shm.free': 0", SHK_PASS, SHK_EFFECT, "without a limit"},
    {"shm not there", "single-node", "shm.size", "/dev/shm",
     NVIDIA "'shm.size': {'state': 'absent'}, 'shm.free': {'state': 'absent'}", SHK_FAIL,
     SHK_EFFECT, "mount -t tmpfs"},

    {"iommu without GPU", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     NO_GPU "'kernel.iommu.mode': 'DMA'", SHK_NA, SHK_NOT_COVERED, "no GPU"},
    {"iommu off", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD "'kernel.iommu.enabled': false", SHK_PASS, SHK_EFFECT, "off"},
    {"iommu identity", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD "'kernel.iommu.enabled': true, 'kernel.iommu.mode': 'identity'", SHK_PASS, SHK_EFFECT,
     "identity"},
    {"iommu translating", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD BARE GPU_ADDR GROUP("DMA-FQ") "'kernel.iommu.mode': 'DMA-FQ', 'kernel.cmdline': 'quiet'",
     SHK_FAIL, SHK_EFFECT, "0000:c1:00.0"},
    {"iommu translating against the command line", "single-node", "kernel.iommu",
     "amd_iommu, iommu=pt",
     AMD BARE GPU_ADDR GROUP(
         "DMA") "'kernel.iommu.mode': 'mixed', 'kernel.cmdline': 'quiet iommu=pt'",
     SHK_FAIL, SHK_EFFECT, "asks for pass-through, but"},
    {"iommu mixed, GPUs identity", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD GPU_ADDR GROUP("identity") "'kernel.iommu.mode': 'mixed'", SHK_PASS, SHK_EFFECT,
     "identity"},
    {"iommu translating with NVIDIA", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     NVIDIA BARE "'pci.devices': [{'addr': '0000:03:00.0', 'kind': 'mlx5'}], 'rdma.devices': "
                 "[{'name': 'mlx5_0'}], 'kernel.iommu.mode': 'DMA'",
     SHK_WARN, SHK_EFFECT, "iommu-not-passthrough"},
    {"iommu in a guest", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     NVIDIA "'kernel.iommu.mode': 'DMA', 'host.virt': 'kvm'", SHK_NA, SHK_NOT_COVERED, "host"},
    {"iommu by command line only", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD "'kernel.cmdline': 'ro iommu=pt quiet'", SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"iommu=pt is not iommu=ptx", "single-node", "kernel.iommu", "amd_iommu, iommu=pt",
     AMD "'kernel.cmdline': 'ro xiommu=pt iommu=ptx'", SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"module there", "single-node", "kernel.module", "module amdgpu",
     AMD "'kernel.module.amdgpu': {'version': '6.8'}", SHK_PASS, SHK_EFFECT, "loaded"},
    {"module built in", "single-node", "kernel.module", "module amdgpu",
     AMD GPU_ADDR "'kernel.module.amdgpu': {'state': 'absent'}", SHK_PASS, SHK_EFFECT, NULL},
    {"module missing", "single-node", "kernel.module", "module amdgpu",
     AMD "'pci.devices': [], 'kernel.module.amdgpu': {'state': 'absent'}", SHK_FAIL, SHK_EFFECT,
     "accelerator-driver-missing"},
    {"module missing, or built in", "single-node", "kernel.module", "module amdgpu",
     AMD "'pci.devices': {'state': 'failed', 'reason': 'denied'}, 'kernel.module.amdgpu': "
         "{'state': 'absent'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "denied"},
    {"module, count not read", "single-node", "kernel.module", "module amdgpu",
     "'pci.count.gpu-amd': {'state': 'failed', 'reason': 'denied'}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "how many gpu-amd"},
    {"module, count not read, but the list", "single-node", "kernel.module", "module amdgpu",
     "'pci.count.gpu-amd': {'state': 'failed'}, 'pci.devices': [{'addr': '0000:c1:00.0', 'kind': "
     "'gpu-amd', 'driver': 'amdgpu', 'vf': false}]",
     SHK_PASS, SHK_EFFECT, "loaded"},
    {"module not looked for", "single-node", "kernel.module", "module amdgpu",
     AMD "'host.name': 'x'", SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"module not needed", "single-node", "kernel.module", "module amdgpu",
     NO_GPU "'host.name': 'x'", SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"peermem missing", "test-verbs", "kernel.peermem", "nvidia_peermem",
     NVIDIA NO_PEERMEM "'host.kernel': '4.18.0'", SHK_FAIL, SHK_EFFECT, "peermem-missing"},
    {"peermem missing, nothing needs RDMA", "single-node", "kernel.peermem", "nvidia_peermem",
     NVIDIA NO_PEERMEM "'host.kernel': '4.18.0'", SHK_NOTE, SHK_EFFECT, "modprobe"},
    {"peermem by dma-buf", "test-verbs", "kernel.peermem", "nvidia_peermem",
     NVIDIA NO_PEERMEM "'host.kernel': '6.8.0', 'gpu.nvidia.driver': {'open': true}", SHK_PASS,
     SHK_EFFECT, "dma-buf"},
    {"peermem, kernel not read", "test-verbs", "kernel.peermem", "nvidia_peermem",
     NVIDIA NO_PEERMEM "'host.kernel': {'state': 'failed', 'reason': 'denied'}, "
                       "'gpu.nvidia.driver': {'open': true}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "denied"},
    {"peermem, driver not read", "test-verbs", "kernel.peermem", "nvidia_peermem",
     NVIDIA NO_PEERMEM "'host.kernel': '6.8.0'", SHK_UNKNOWN, SHK_NOT_COVERED, "gpu.nvidia.driver"},
    {"peermem, one module not read", "test-verbs", "kernel.peermem", "nvidia_peermem",
     NVIDIA "'pci.count.mlx5': 8, 'kernel.module.nvidia_peermem': {'state': 'failed'}, "
            "'kernel.module.nv_peer_mem': {'state': 'absent'}, 'host.kernel': '4.18.0'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "nvidia_peermem is loaded"},
    {"peermem loaded", "single-node", "kernel.peermem", "nvidia_peermem",
     NVIDIA "'pci.count.mlx5': 8, 'kernel.memory_peers': {'state': 'absent'}, "
            "'kernel.module.nvidia_peermem': {'refcount': 0}",
     SHK_PASS, SHK_EFFECT, "loaded"},
    {"peermem loaded, clients not read", "single-node", "kernel.peermem", "nvidia_peermem",
     NVIDIA "'pci.count.mlx5': 8, 'kernel.memory_peers': {'state': 'failed', 'reason': 'denied'}, "
            "'kernel.module.nvidia_peermem': {'refcount': 0}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "denied"},
    {"numa balancing", "single-node", "kernel.numa_balancing", "kernel.numa_balancing",
     AMD "'sysctl.kernel.numa_balancing': 1", SHK_WARN, SHK_EFFECT, "sysctl -w"},
    {"numa balancing on Grace", "single-node", "kernel.numa_balancing", "kernel.numa_balancing",
     NVIDIA "'sysctl.kernel.numa_balancing': 1, 'host.arch': 'aarch64', 'host.cpu': 'ARM "
            "Neoverse-V2'",
     SHK_WARN, SHK_EFFECT, "Grace"},
    {"numa balancing, the kernel's default", "single-node", "kernel.numa_balancing",
     "kernel.numa_balancing",
     NVIDIA "'sysctl.kernel.numa_balancing': 1, 'host.arch': 'x86_64', 'host.cpu': 'Intel'",
     SHK_NOTE, SHK_EFFECT, "default"},
    {"numa balancing, makers not read", "single-node", "kernel.numa_balancing",
     "kernel.numa_balancing",
     NVIDIA "'sysctl.kernel.numa_balancing': 1, 'host.arch': 'x86_64', 'pci.count.gpu-amd': "
            "{'state': 'failed'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "gpu-amd"},
    {"numa balancing off", "single-node", "kernel.numa_balancing", "kernel.numa_balancing",
     AMD "'sysctl.kernel.numa_balancing': 0", SHK_PASS, SHK_EFFECT, NULL},
    {"numa balancing as text", "single-node", "kernel.numa_balancing", "kernel.numa_balancing",
     AMD "'sysctl.kernel.numa_balancing': '0'", SHK_UNKNOWN, SHK_NOT_COVERED, "unexpected form"},
};

Test(kernel, cases)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct kernel_case *c = &cases[i];
        struct shk_findings *findings = support_run(support_test_config(), c->profile, c->facts);
        const struct shk_finding *f = support_find(findings, c->id, c->setting);
        if (c->verdict == SHK_VERDICT_COUNT) {
            cr_expect_null(f, "%s: no row was expected", c->name);
        } else {
            char *text = f ? support_text(f) : NULL;
            cr_expect_not_null(f, "%s: no row", c->name);
            cr_expect(f && f->verdict == c->verdict && f->evidence == c->evidence, "%s: %s",
                      c->name, text);
            cr_expect(!c->says || (text && strstr(text, c->says)), "%s: lacks \"%s\": %s", c->name,
                      c->says, text);
            free(text);
        }
        shk_findings_destroy(findings);
    }
}
