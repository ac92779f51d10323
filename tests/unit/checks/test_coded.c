#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define AMD       "'pci.count.gpu-amd': 8, 'pci.count.gpu-nvidia': 0, 'pci.count.neuron': 0, "
#define NVIDIA    "'pci.count.gpu-nvidia': 8, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define NO_GPU    "'pci.count.gpu-nvidia': 0, 'pci.count.gpu-amd': 0, 'pci.count.neuron': 0, "
#define NODES(n)  "'job.nodes': " #n ", 'job.launcher': 'slurm', 'job.ranks': 16, "
#define ENV       "'probe.env.status': 'ok', "
#define CONTAINER "'host.container': 'docker', "
#define FABRIC    "'fabric.version': '1.17.0', 'fabric.path': '/usr/lib/libfabric.so.1', "
#define SWEEP(w)                                                                                   \
    "'collective.fabric.sizes': [{'bytes': 4, 'busbw': 0.1, 'wrong': 0}, {'bytes': "               \
    "1048576, 'busbw': 5.5, 'wrong': " w "}], "
#define SHM_SWEEP(w)                                                                               \
    "'collective.shm.sizes': [{'bytes': 4, 'busbw': 0.1, 'wrong': 0}, {'bytes': 1048576, "         \
    "'busbw': 5.5, 'wrong': " w "}], "
#define PLUGIN(more)                                                                               \
    "'plugin.candidates': [{'name': 'libnccl-net.so', 'kind': 'net', 'considered': true, "         \
    "'owner': 'nccl', 'found': true, 'path': "                                                     \
    "'/opt/p/libnccl-net.so', 'abi': {'net': [5, 6, 7, 8]}" more "}], "

#define NO_PROBLEMS                                                                                \
    "'env.problems': {'state': 'absent'}, 'env.file_problems': {'state': 'absent'}, "

#define FABRIC_COPIES                                                                              \
    "'fabric.path': '/a/libfabric.so.1', 'fabric.copies': [{'path': '/a/libfabric.so.1', "         \
    "'version': '1.17.0', 'links': ['efa']}, {'path': '/b/libfabric.so.1', 'version': '2.1.0', "   \
    "'links': ['cxi']}], "

#define ONE_COPY                                                                                   \
    "'fabric.path': '/a/libfabric.so.1', 'fabric.copies': [{'path': '/a/libfabric.so.1', "         \
    "'version': '1.17.0'}], "
#define OWN(via, path)                                                                             \
    "'plugin.candidates': [{'name': 'x', 'path': '/p.so', 'kind': 'net', 'considered': true, "     \
    "'found': true, 'needed': [{'name': 'libfabric.so.1', 'via': '" via "', 'path': '" path        \
    "'}]}]"

#define REFUSED(cause_)                                                                            \
    "'collective.fabric.status': 'failed', 'collective.fabric.rank': 1, "                          \
    "'collective.fabric.phase': 'open', 'collective.fabric.cause': '" cause_ "'"

static const struct support_case cases[] = {
    {"probes fine", "single-node", "probe.health", "probes",
     "'probe.pci.status': 'ok', 'probe.net.status': 'ok'", SHK_PASS, SHK_TESTED, "2 of 2"},
    {"no probe answered", "single-node", "probe.health", "probes", "'probe.pci.status': 'failed'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "0 of 1"},
    {"probe crashed", "single-node", "probe.health", "probe nvml",
     "'probe.nvml.status': 'crashed', 'probe.nvml.library': 'libnvidia-ml.so.1', "
     "'probe.nvml.call': "
     "'nvmlInit_v2', 'probe.nvml.reason': 'died of SIGSEGV'",
     SHK_FAIL, SHK_TESTED, "SIGSEGV; it was in libnvidia-ml.so.1: nvmlInit_v2"},
    {"probe hung", "single-node", "probe.health", "probe libfabric",
     "'probe.libfabric.status': 'timeout', 'probe.libfabric.library': 'libfabric.so.1', "
     "'probe.libfabric.call': 'fi_getinfo'",
     SHK_FAIL, SHK_TESTED, "fi_getinfo"},
    {"probe failed", "single-node", "probe.health", "probe pci",
     "'probe.pci.status': 'failed', 'probe.pci.reason': 'no /sys'", SHK_UNKNOWN, SHK_NOT_COVERED,
     "no /sys"},
    {"probe skipped", "single-node", "probe.health", "probe x",
     "'probe.x.status': 'skipped', 'probe.x.reason': 'a capture'", SHK_NA, SHK_NOT_COVERED,
     "a capture"},

    {"all-reduce right", "single-node", "collective.allreduce", "all-reduce (fabric)",
     SWEEP("0") "'collective.fabric.status': 'ok', 'collective.fabric.ranks': 2, "
                "'collective.fabric.provider': 'shm'",
     SHK_PASS, SHK_TESTED, "2 ranks over shm, 2 sizes verified; best 5.50 GB/s busbw at 1 MiB"},
    {"all-reduce wrong data", "single-node", "collective.allreduce", "all-reduce (fabric)",
     SWEEP("3") "'collective.fabric.status': 'ok', 'collective.fabric.ranks': 2", SHK_FAIL,
     SHK_TESTED, "wrong elements at 1 of 2"},
    {"all-reduce without sizes", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.sizes': [], 'collective.fabric.status': 'ok', 'collective.fabric.ranks': "
     "2",
     SHK_UNKNOWN, SHK_NOT_COVERED, "no verified size"},
    {"all-reduce not verified", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.sizes': [{'bytes': 4}], 'collective.fabric.status': 'ok', "
     "'collective.fabric.ranks': 2",
     SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"all-reduce of one", "single-node", "collective.allreduce", "all-reduce (fabric)",
     SWEEP("0") "'collective.fabric.status': 'ok', 'collective.fabric.ranks': 1", SHK_NA,
     SHK_NOT_COVERED, "at least two ranks"},
    {"one rank by itself", "single-node", "collective.allreduce", "all-reduce (nvshmem)",
     "'collective.nvshmem.sizes': [{'bytes': 8, 'wrong': 0}], 'collective.nvshmem.status': 'ok', "
     "'collective.nvshmem.ranks': 1, 'collective.nvshmem.self': 'puts of 8 B in 3 us'",
     SHK_PASS, SHK_TESTED, "puts of 8 B in 3 us"},
    {"one rank by itself, wrong", "single-node", "collective.allreduce", "all-reduce (nvshmem)",
     "'collective.nvshmem.sizes': [{'bytes': 8, 'wrong': 1}], 'collective.nvshmem.status': 'ok', "
     "'collective.nvshmem.ranks': 1, 'collective.nvshmem.self': 'puts of 8 B in 3 us'",
     SHK_FAIL, SHK_TESTED, "wrong elements at 1 of 1"},
    {"all-reduce in shared memory of our own", "single-node", "collective.allreduce",
     "all-reduce (shm)", SHM_SWEEP("0") "'collective.shm.status': 'ok', 'collective.shm.ranks': 2",
     SHK_PASS, SHK_TESTED, "2 ranks over own shared memory, without libfabric, 2 sizes verified"},
    {"all-reduce in shared memory, wrong", "single-node", "collective.allreduce",
     "all-reduce (shm)", SHM_SWEEP("3") "'collective.shm.status': 'ok', 'collective.shm.ranks': 2",
     SHK_FAIL, SHK_TESTED, "wrong elements at 1 of 2"},
    {"all-reduce in shared memory, rank killed", "single-node", "collective.allreduce",
     "all-reduce (shm)",
     "'collective.shm.status': 'crashed', 'collective.shm.rank': 1, 'collective.shm.ranks': 2, "
     "'collective.shm.phase': 'allreduce 64 B', 'collective.shm.reason': 'rank 1 died of SIGKILL'",
     SHK_FAIL, SHK_TESTED, "rank 1 in phase allreduce 64 B"},
    {"all-reduce in shared memory, status unread", "single-node", "collective.allreduce",
     "all-reduce (shm)",
     SHM_SWEEP("0") "'collective.shm.status': {'state': 'failed', 'reason': "
                    "'cannot be read'}, 'collective.shm.ranks': 2",
     SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"rank killed", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.status': 'crashed', 'collective.fabric.rank': 1, "
     "'collective.fabric.phase': 'allreduce 65536 B', 'collective.fabric.reason': 'rank 1 died of "
     "SIGKILL', 'collective.fabric.ranks': 2",
     SHK_FAIL, SHK_TESTED, "rank 1 in phase allreduce 65536 B"},
    {"rank stopped", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.status': 'timeout', 'collective.fabric.rank': 0, "
     "'collective.fabric.phase': 'exchange', 'collective.fabric.cause': 'rank-stopped'",
     SHK_FAIL, SHK_TESTED, "diagnosis rank-stopped"},
    {"rank stopped, in facts without a cause", "single-node", "collective.allreduce",
     "all-reduce (fabric)",
     "'collective.fabric.status': 'timeout', 'collective.fabric.rank': 1, "
     "'collective.fabric.phase': 'exchange', 'collective.fabric.ranks_state': [{'rank': 0, "
     "'status': 'aborted'}, {'rank': 1, 'status': 'stopped'}]",
     SHK_FAIL, SHK_TESTED, "diagnosis rank-stopped"},
    {"rank killed, in facts without a cause", "single-node", "collective.allreduce",
     "all-reduce (fabric)",
     "'collective.fabric.status': 'crashed', 'collective.fabric.rank': 1, "
     "'collective.fabric.ranks_state': [{'rank': 1, 'status': 'crashed'}]",
     SHK_FAIL, SHK_TESTED, "diagnosis rank-ended"},
    {"node cut off", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.status': 'timeout', 'collective.fabric.rank': 1, "
     "'collective.fabric.cause': 'node-unreachable'",
     SHK_FAIL, SHK_TESTED, "diagnosis node-unreachable"},
    {"refused: verbs-cq", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-cq"), SHK_FAIL, SHK_TESTED, "diagnosis verbs-queues-too-large"},
    {"refused: verbs-qp", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-qp"), SHK_FAIL, SHK_TESTED, "diagnosis verbs-queue-pair-refused"},
    {"refused: verbs-mr", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-mr"), SHK_FAIL, SHK_TESTED, "diagnosis mr-registration-failed"},
    {"refused: verbs-memlock", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-memlock"), SHK_FAIL, SHK_TESTED, "diagnosis memlock-too-low"},
    {"refused: verbs-no-node", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-no-node"), SHK_FAIL, SHK_TESTED, "diagnosis rdma-device-not-in-container"},
    {"refused: verbs-permission", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-permission"), SHK_FAIL, SHK_TESTED, "diagnosis rdma-device-no-permission"},
    {"refused: verbs-no-gid", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-no-gid"), SHK_FAIL, SHK_TESTED, "diagnosis rdma-port-no-address"},
    {"refused: verbs-address", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-address"), SHK_FAIL, SHK_TESTED, "diagnosis rdma-port-no-address"},
    {"refused: verbs-port-down", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-port-down"), SHK_FAIL, SHK_TESTED, "diagnosis nic-port-down"},
    {"refused: verbs-no-device", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-no-device"), SHK_FAIL, SHK_TESTED, "diagnosis verbs-provider-absent"},
    {"refused: verbs-no-cm", "single-node", "collective.allreduce", "all-reduce (fabric)",
     REFUSED("verbs-no-cm"), SHK_FAIL, SHK_TESTED, "diagnosis rdma-ucm-missing"},
    {"providers differ by a setting", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.status': 'failed', 'collective.fabric.rank': 1, "
     "'collective.fabric.disagree': [{'what': 'libfabric provider', 'must': true, 'majority': "
     "'tcp', 'odd': ['n2'], 'odd_rank': 1}, {'what': 'FI_PROVIDER', 'must': false, 'majority': "
     "'not set', 'odd': ['n2'], 'odd_rank': 1}]",
     SHK_FAIL, SHK_TESTED, "expected tcp, as most nodes have it"},
    {"providers differ by a library", "single-node", "collective.allreduce", "all-reduce (fabric)",
     "'collective.fabric.status': 'failed', 'collective.fabric.disagree': [{'what': 'libfabric "
     "provider', 'must': true, 'majority': null, 'odd': ['n1', 'n2'], 'odd_rank': -1}, {'what': "
     "'libfabric version', 'must': false, 'majority': null, 'odd': ['n1', 'n2'], 'odd_rank': "
     "-1}]",
     SHK_FAIL, SHK_TESTED, "diagnosis libfabric-version-differs-across-nodes"},
    {"transport not here", "single-node", "collective.allreduce", "all-reduce (nccl)",
     "'collective.nccl.status': 'na', 'collective.nccl.reason': 'no GPU'", SHK_NA, SHK_NOT_COVERED,
     "no GPU"},
    {"unknown status", "single-node", "collective.allreduce", "all-reduce (nccl)",
     "'collective.nccl.status': 'splendid'", SHK_UNKNOWN, SHK_NOT_COVERED, "splendid"},
    {"nothing run", "single-node", "collective.allreduce", "all-reduce", "'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "no collective"},

    {"libfabric there", "single-node", "fabric.library", "libfabric", FABRIC "'host.name': 'x'",
     SHK_PASS, SHK_TESTED, "1.17.0; expected ; why /usr/lib/libfabric.so.1"},
    {"libfabric missing, not needed", "single-node", "fabric.library", "libfabric",
     "'fabric.version': {'state': 'absent', 'reason': 'no file'}", SHK_NA, SHK_NOT_COVERED,
     "no file"},
    {"libfabric missing", "test-fabric", "fabric.library", "libfabric",
     "'fabric.version': {'state': 'absent', 'reason': 'no libfabric.so.1 in /lib'}", SHK_FAIL,
     SHK_EFFECT, "no libfabric.so.1 in /lib"},
    {"libfabric failed", "test-fabric", "fabric.library", "libfabric",
     "'fabric.version': {'state': 'failed', 'reason': 'timed out'}", SHK_UNKNOWN, SHK_NOT_COVERED,
     "timed out"},
    {"libfabric not looked at", "single-node", "fabric.library", "libfabric", "'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "no probe collected"},
    {"provider offered", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC "'fabric.providers': ['cxi', 'tcp']", SHK_PASS, SHK_EFFECT, "offered"},
    {"provider layered", "test-verbs", "fabric.provider", "provider verbs",
     FABRIC "'fabric.providers': ['verbs;ofi_rxm']", SHK_PASS, SHK_EFFECT, "offered"},
    {"provider not compiled", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC "'fabric.providers': ['tcp'], 'fabric.core_providers': ['tcp', 'shm', 'efa']", SHK_FAIL,
     SHK_EFFECT, "provider-not-compiled"},
    {"provider without device", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC NODES(2) "'fabric.providers': ['tcp'], 'fabric.core_providers': ['tcp', 'cxi'], "
                     "'pci.count.cxi': 0",
     SHK_FAIL, SHK_EFFECT, "no cxi device"},
    {"provider hidden by the container", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC CONTAINER
     "'fabric.providers': [], 'fabric.core_providers': ['cxi'], 'pci.count.cxi': 4",
     SHK_FAIL, SHK_EFFECT, "rdma-device-not-in-container"},
    {"provider without service, one node", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC NODES(1) "'fabric.providers': ['tcp'], 'fabric.core_providers': ['tcp', 'cxi'], "
                     "'pci.count.cxi': 4",
     SHK_WARN, SHK_EFFECT, "VNI"},
    {"a list of providers with a hole", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC NODES(2) "'fabric.providers': ['tcp', null], 'fabric.core_providers': ['tcp', 'cxi'], "
                     "'pci.count.cxi': 4",
     SHK_UNKNOWN, SHK_NOT_COVERED, "unexpected form"},
    {"a list of providers that holds none", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC NODES(2) "'fabric.providers': [7], 'fabric.core_providers': ['tcp', 'cxi'], "
                     "'pci.count.cxi': 4",
     SHK_UNKNOWN, SHK_NOT_COVERED, "unexpected form"},
    {"a GPU that the library does not show, nothing hides it", "single-node", "gpu.allocation",
     "accelerators of this job",
     "'pci.count.gpu-nvidia': 2, 'nvml.devices': [{'pci': '0000:01:00.0'}], 'job.scheduler': "
     "{'state': 'absent'}, 'host.container': {'state': 'absent'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "1 of 2 shown"},
    {"fewer than the scheduler gave", "single-node", "gpu.allocation", "accelerators of this job",
     "'pci.count.gpu-nvidia': 4, 'nvml.devices': [{'pci': '0000:01:00.0'}], 'job.scheduler': "
     "'slurm', 'env.SLURM_GPUS_ON_NODE': '2', 'host.container': {'state': 'absent'}",
     SHK_UNKNOWN, SHK_NOT_COVERED, "2, as SLURM_GPUS_ON_NODE says"},
    {"a device control group of a job", "single-node", "gpu.allocation", "accelerators of this job",
     "'pci.count.gpu-nvidia': 2, 'nvml.devices': [{'pci': '0000:01:00.0'}], 'job.scheduler': "
     "'slurm', 'host.container': {'state': 'absent'}, 'probe.env.status': 'ok'",
     SHK_NOTE, SHK_EFFECT, "1 of 2 allocated"},
    {"no NUMA node at all", "single-node", "pci.numa", "NUMA nodes of devices", "'host.numa': []",
     SHK_UNKNOWN, SHK_NOT_COVERED, "names no NUMA node"},
    {"providers not read", "test-fabric", "fabric.provider", "provider cxi",
     FABRIC "'fabric.providers': {'state': 'failed', 'reason': 'fi_getinfo hung'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "fi_getinfo hung"},
    {"one copy", "single-node", "library.copies", "libnccl copies",
     "'nccl.copies': [{'path': '/a/libnccl.so.2', 'version': '2.26.5'}]", SHK_NA, SHK_NOT_COVERED,
     "one copy"},
    {"one copy that lacks a library", "single-node", "library.copies", "librccl copies",
     "'rccl.copies': [{'path': '/a/librccl.so.1', 'version': '2.13.4', 'loader': true, 'lacks': "
     "'libamdhip64.so.5 is nowhere'}]",
     SHK_WARN, SHK_EFFECT, "libamdhip64.so.5"},
    {"equal copies", "single-node", "library.copies", "libnccl copies",
     "'nccl.copies': [{'path': '/a/libnccl.so.2', 'version': '2.26.5'}, {'path': "
     "'/b/libnccl.so.2', "
     "'version': '2.26.5'}]",
     SHK_PASS, SHK_EFFECT, "/b/libnccl.so.2"},
    {"different copies", "single-node", "library.copies", "libnccl copies",
     "'nccl.path': '/a/libnccl.so.2', 'nccl.copies': [{'path': '/a/libnccl.so.2', 'version': "
     "'2.26.5'}, {'path': '/b/libnccl.so.2', 'version': '2.18.1'}]",
     SHK_NOTE, SHK_EFFECT, "the loader takes /a/libnccl.so.2"},
    {"a copy of which the version was not read", "single-node", "library.copies", "libnccl copies",
     "'nccl.copies': [{'path': '/a/libnccl.so.2', 'version': '2.26.5'}, {'path': "
     "'/b/libnccl.so.2'}]",
     SHK_UNKNOWN, SHK_NOT_COVERED, "does not say version"},
    {"a copy that is no library", "single-node", "library.copies", "libnccl copies",
     "'nccl.copies': [{'path': '/a/libnccl.so.2', 'version': '2.26.5'}, {'path': "
     "'/b/libnccl.so.2', 'error': 'empty file'}]",
     SHK_PASS, SHK_EFFECT, "/b/libnccl.so.2 (unusable)"},
    {"copies that were not looked for", "single-node", "library.copies", "libnccl copies",
     "'host.name': 'x'", SHK_UNKNOWN, SHK_NOT_COVERED, "no probe collected nccl.copies"},
    {"the copy with the provider is not taken", "test-fabric", "library.copies", "libfabric copies",
     FABRIC_COPIES "'probe.pci.status': 'ok', 'fabric.core_providers': ['tcp']", SHK_WARN,
     SHK_EFFECT, "export LD_LIBRARY_PATH=/b:$LD_LIBRARY_PATH"},
    {"what is broken before the library is no matter of copies", "test-fabric", "library.copies",
     "libfabric copies",
     FABRIC_COPIES "'probe.pci.status': 'ok', 'fabric.core_providers': ['tcp'], "
                   "'pci.count.cxi': {'state': 'absent'}",
     SHK_NOTE, SHK_EFFECT, "nothing shows that another one was meant"},
    {"the copy that a plugin needs is not taken", "single-node", "library.copies",
     "libfabric copies",
     FABRIC_COPIES "'plugin.candidates': [{'name': 'x', 'kind': 'net', 'considered': true, "
                   "'found': true, 'problems': [{'kind': 'version', 'version': 'FABRIC_1.10', "
                   "'path': '/a/libfabric.so.1'}]}]",
     SHK_WARN, SHK_EFFECT, "lacks FABRIC_1.10"},

    {"a plugin that brings its own libfabric", "single-node", "library.copies", "libfabric copies",
     ONE_COPY OWN("RUNPATH", "/b/libfabric.so.1"), SHK_NOTE, SHK_EFFECT,
     "/p.so takes /b/libfabric.so.1, which its RUNPATH names"},
    {"the same beside two copies", "single-node", "library.copies", "libfabric copies",
     FABRIC_COPIES OWN("RPATH", "/b/libfabric.so.1"), SHK_NOTE, SHK_EFFECT, "its RPATH names"},
    {"a plugin that takes the loader's", "single-node", "library.copies", "libfabric copies",
     ONE_COPY OWN("ld.so.cache", "/b/libfabric.so.1"), SHK_NA, SHK_NOT_COVERED, "one copy"},
    {"a plugin whose path leads to the same file", "single-node", "library.copies",
     "libfabric copies", ONE_COPY OWN("RUNPATH", "/usr/a/libfabric.so.1"), SHK_NA, SHK_NOT_COVERED,
     "one copy"},

    {"plugin not needed", "single-node", "plugin.file", "net plugin file",
     "'probe.env.status': 'ok', 'plugin.candidates': []", SHK_NA, SHK_NOT_COVERED,
     "needs no net plugin"},
    {"plugin missing", "test-fabric", "plugin.file", "net plugin file",
     NODES(2) "'plugin.candidates': [{'name': 'libnccl-net.so', 'kind': 'net', 'considered': true, "
              "'found': false}]",
     SHK_FAIL, SHK_EFFECT, "net-plugin-missing"},
    {"plugin missing, one node", "test-fabric", "plugin.file", "net plugin file",
     NODES(1) "'plugin.candidates': [{'name': 'libnccl-net.so', 'kind': 'net', 'considered': true, "
              "'found': false}]",
     SHK_WARN, SHK_EFFECT, "TCP sockets"},
    {"plugin name wrong", "single-node", "plugin.file", "net plugin file",
     "'env.NCCL_NET_PLUGIN': 'ofi', 'plugin.candidates': [{'name': 'ofi', 'kind': 'net', "
     "'considered': true, 'found': false}, {'name': 'libnccl-net-ofi.so', 'kind': 'net', "
     "'considered': true, 'found': false}]",
     SHK_FAIL, SHK_EFFECT,
     "NCCL_NET_PLUGIN=ofi: the loader finds no ofi, libnccl-net-ofi.so; NCCL continues without it"},
    {"plugin none asked", "single-node", "plugin.file", "net plugin file",
     "'env.NCCL_NET_PLUGIN': 'none', 'plugin.candidates': []", SHK_NA, SHK_NOT_COVERED, NULL},
    {"plugin not looked for", "test-fabric", "plugin.file", "net plugin file", "'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "no probe collected"},
    {"plugin found", "test-fabric", "plugin.file", "net plugin file", PLUGIN("") "'host.name': 'x'",
     SHK_PASS, SHK_EFFECT, "/opt/p/libnccl-net.so"},
    {"plugin of another kind", "test-fabric", "plugin.file", "net plugin file",
     NODES(2) "'plugin.candidates': [{'name': 'libnccl-tuner.so', 'kind': 'tuner', 'found': true, "
              "'considered': true}, {'name': 'libnccl-net.so', 'kind': 'net', 'found': true, "
              "'considered': false}]",
     SHK_FAIL, SHK_EFFECT, "net-plugin-missing"},
    {"plugin loads", "test-fabric", "plugin.load", "net plugin load",
     PLUGIN(", 'load': {'ok': true}") "'host.name': 'x'", SHK_PASS, SHK_TESTED, "loads"},
    {"plugin not tried", "test-fabric", "plugin.load", "net plugin load",
     PLUGIN("") "'host.name': 'x'", SHK_UNKNOWN, SHK_NOT_COVERED, "not tried"},
    {"plugin lacks a library", "test-fabric", "plugin.load", "net plugin load",
     PLUGIN(
         ", 'load': {'ok': false, 'error': 'libcudart.so: cannot open shared object file'}") "'host"
                                                                                             ".name"
                                                                                             "': "
                                                                                             "'x'",
     SHK_FAIL, SHK_TESTED, "libcudart.so: cannot open"},
    {"plugin wants a newer libfabric", "test-fabric", "plugin.load", "net plugin load",
     PLUGIN(
         ", 'load': {'ok': false, 'error': 'version `FABRIC_1.7` not found'}") "'host.name': 'x'",
     SHK_FAIL, SHK_TESTED, "plugin-libfabric-version-mismatch"},
    {"plugin fits", "test-fabric", "plugin.abi", "net plugin ABI",
     PLUGIN("") "'nccl.net_abi': [6, 7, 8, 9, 10]", SHK_PASS, SHK_EFFECT, "v8 will be used"},
    {"plugin too old", "test-fabric", "plugin.abi", "net plugin ABI",
     PLUGIN("") "'nccl.net_abi': [9, 10, 11]", SHK_FAIL, SHK_EFFECT, "plugin-abi-mismatch"},
    {"plugin against RCCL", "test-fabric", "plugin.abi", "net plugin ABI",
     "'plugin.candidates': [{'name': 'librccl-net.so', 'kind': 'net', 'considered': true, "
     "'owner': 'rccl', 'found': true, 'abi': {'net': [5]}}], "
     "'rccl.net_abi': [6, 7]",
     SHK_FAIL, SHK_EFFECT, "RCCL"},
    {"plugin without NCCL", "test-fabric", "plugin.abi", "net plugin ABI",
     PLUGIN("") "'host.name': 'x'", SHK_UNKNOWN, SHK_NOT_COVERED,
     "no probe collected nccl.net_abi"},

    {"no accelerator, none asked", "single-node", "gpu.presence", "accelerators",
     NO_GPU "'host.name': 'x'", SHK_NA, SHK_NOT_COVERED, NULL},
    {"accelerators not read", "single-node", "gpu.presence", "accelerators", "'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "not read"},
    {"right accelerators", "test-fabric", "gpu.presence", "accelerators", AMD "'host.name': 'x'",
     SHK_PASS, SHK_EFFECT, "8 amd"},
    {"other accelerators", "test-fabric", "gpu.presence", "accelerators", NVIDIA "'host.name': 'x'",
     SHK_FAIL, SHK_EFFECT, "8 nvidia"},
    {"driver serves all", "single-node", "gpu.driver", "nvidia driver",
     "'pci.count.gpu-nvidia': 2, 'gpu.nvidia.devices': [{'pci': '0000:01:00.0'}, {'pci': "
     "'0000:02:00.0'}]",
     SHK_PASS, SHK_EFFECT, "2 of 2"},
    {"driver serves none", "single-node", "gpu.driver", "nvidia driver",
     "'pci.count.gpu-nvidia': 2, 'gpu.nvidia.devices': {'state': 'absent'}", SHK_FAIL, SHK_EFFECT,
     "accelerator-driver-missing"},
    {"driver not in the container", "single-node", "gpu.driver", "nvidia driver",
     CONTAINER "'pci.count.gpu-nvidia': 2, 'gpu.nvidia.devices': []", SHK_FAIL, SHK_EFFECT,
     "gpu-device-not-in-container"},
    {"driver not asked", "single-node", "gpu.driver", "amd driver", "'pci.count.gpu-amd': 8",
     SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"device refused", "single-node", "devices.access", "/dev/kfd",
     AMD "'dev.kfd': {'mode': '0660', 'rw': false}", SHK_FAIL, SHK_EFFECT, "group render"},
    {"device open", "single-node", "devices.access", "/dev/kfd", AMD "'dev.kfd': {'rw': true}",
     SHK_PASS, SHK_EFFECT, NULL},
    {"device without its hardware", "single-node", "devices.access", "/dev/dri/renderD",
     NO_GPU "'dev.dri/renderD128': {'rw': false}", SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"ROCm there", "single-node", "rocm.version", "ROCm", AMD "'rocm.version': '6.2.4'", SHK_PASS,
     SHK_EFFECT, "6.2.4"},
    {"ROCm missing", "single-node", "rocm.version", "ROCm",
     AMD "'rocm.version': {'state': 'absent', 'reason': 'no /opt/rocm'}", SHK_WARN, SHK_EFFECT,
     "no /opt/rocm"},
    {"ROCm not needed", "single-node", "rocm.version", "ROCm", NVIDIA "'host.name': 'x'", SHK_NA,
     SHK_NOT_COVERED, NULL},

    {"all NICs", "test-fabric", "nic.count", "NICs", "'pci.count.cxi': 4", SHK_PASS, SHK_EFFECT,
     "4 of 4 Slingshot NICs"},
    {"NIC missing", "test-fabric", "nic.count", "NICs", "'pci.count.cxi': 3", SHK_FAIL, SHK_EFFECT,
     "3 of 4 Slingshot NICs"},
    {"NICs not read", "test-fabric", "nic.count", "NICs", "'host.name': 'x'", SHK_UNKNOWN,
     SHK_NOT_COVERED, NULL},
    {"links up", "test-fabric", "nic.link", "NIC links",
     "'cxi.devices': [{'name': 'cxi0', 'link_state': 'up'}]", SHK_PASS, SHK_EFFECT, "1 up"},
    {"link down", "test-fabric", "nic.link", "NIC links",
     "'cxi.devices': [{'name': 'cxi0', 'link_state': 'up'}, {'name': 'cxi1', 'link_state': "
     "'down'}]",
     SHK_FAIL, SHK_EFFECT, "cxi1 (down)"},
    {"links not read", "test-fabric", "nic.link", "NIC links", "'host.name': 'x'", SHK_UNKNOWN,
     SHK_NOT_COVERED, NULL},
    {"links not needed", "single-node", "nic.link", "NIC links",
     "'rdma.devices': [{'name': 'mlx5_0', 'ports': [{'port': 1, 'state': '1: DOWN'}]}]", SHK_NA,
     SHK_NOT_COVERED, NULL},

    {"InfiniBand link up", "generic-ib", "nic.link", "NIC links",
     "'rdma.devices': [{'name': 'mlx5_0', 'driver': 'mlx5_core', 'ports': [{'port': 1, 'state': "
     "'4: ACTIVE'}]}]",
     SHK_PASS, SHK_EFFECT, "1 up"},
#define CARRIER(layer, up, running)                                                                \
    "'rdma.devices': [{'name': 'mlx5_0', 'pci': '0000:03:00.0', 'ports': [{'port': 1, 'state': "   \
    "'ACTIVE', 'link_layer': '" layer "'}]}], 'net.ifaces': [{'name': 'eth0', 'pci': "             \
    "'0000:03:00.0', 'up': " up ", 'running': " running "}]"
    {"RoCE port whose interface has no carrier", "generic-ib", "nic.link", "NIC links",
     CARRIER("Ethernet", "true", "false"), SHK_FAIL, SHK_EFFECT, "has no carrier"},
    {"RoCE port whose interface has one", "generic-ib", "nic.link", "NIC links",
     CARRIER("Ethernet", "true", "true"), SHK_PASS, SHK_EFFECT, "1 up"},
    {"RoCE port, the carrier not read", "generic-ib", "nic.link", "NIC links",
     CARRIER("Ethernet", "true", "null"), SHK_PASS, SHK_EFFECT, "1 up"},
    {"InfiniBand port, IPoIB without carrier", "generic-ib", "nic.link", "NIC links",
     CARRIER("InfiniBand", "true", "false"), SHK_PASS, SHK_EFFECT, "1 up"},
    {"InfiniBand link down", "generic-ib", "nic.link", "NIC links",
     "'rdma.devices': [{'name': 'mlx5_0', 'ports': [{'port': 1, 'state': '1: DOWN'}]}]", SHK_FAIL,
     SHK_EFFECT, "mlx5_0 port 1 (1: DOWN)"},

    {"host name resolves", "single-node", "net.hostname", "host name",
     "'net.hostname_resolves_to': ['10.0.0.4']", SHK_PASS, SHK_EFFECT, "10.0.0.4"},
    {"host name is loopback, several nodes", "single-node", "net.hostname", "host name",
     NODES(2) "'net.hostname_resolves_to': ['127.0.1.1']", SHK_FAIL, SHK_EFFECT,
     "hostname-resolves-to-loopback"},
    {"host name is loopback, one node", "single-node", "net.hostname", "host name",
     NODES(1) "'net.hostname_resolves_to': ['127.0.1.1']", SHK_NA, SHK_NOT_COVERED, NULL},
    {"host name is loopback, nodes not known", "test-fabric", "net.hostname", "host name",
     "'net.hostname_resolves_to': ['127.0.1.1']", SHK_UNKNOWN, SHK_NOT_COVERED, "how many nodes"},
    {"host name unknown, several nodes", "single-node", "net.hostname", "host name",
     NODES(2) "'net.hostname_resolves_to': {'addrs': [], 'error': 'not found'}", SHK_WARN,
     SHK_EFFECT, "does not resolve"},
    {"bootstrap interface", "test-fabric", "net.bootstrap", "bootstrap interface",
     NODES(2) ENV "'net.ifaces': [{'name': 'lo', 'up': true, 'loopback': true, 'addrs': [{'addr': "
                  "'127.0.0.1'}]}, {'name': 'eth0', 'up': true, 'addrs': [{'addr': '10.0.0.1'}]}]",
     SHK_PASS, SHK_EFFECT, "eth0"},
    {"bootstrap interface is a bridge", "test-fabric", "net.bootstrap", "bootstrap interface",
     NODES(2) ENV "'net.ifaces': [{'name': 'veth12', 'up': true, 'addrs': [{'addr': '10.0.0.1'}]}]",
     SHK_WARN, SHK_EFFECT, "socket-ifname-picks-virtual"},
    {"bootstrap interface, state not read", "test-fabric", "net.bootstrap", "bootstrap interface",
     NODES(2) ENV "'net.ifaces': [{'name': 'eth0', 'up': null, 'problems': {'up': 'denied'}, "
                  "'addrs': [{'addr': '10.0.0.1'}]}]",
     SHK_UNKNOWN, SHK_NOT_COVERED, "denied"},
    {"bootstrap interface set", "test-fabric", "net.bootstrap", "bootstrap interface",
     NODES(2) "'env.NCCL_SOCKET_IFNAME': 'eth0', 'net.ifaces': []", SHK_NA, SHK_NOT_COVERED, NULL},

    {"configuration files", "single-node", "env.file", "configuration files",
     NO_PROBLEMS
     "'env.files': [{'path': '/etc/nccl.conf', 'state': 'read'}, {'path': '/root/.nccl.conf', "
     "'state': 'absent'}]",
     SHK_PASS, SHK_EFFECT, "observed /etc/nccl.conf;"},
    {"no configuration files", "single-node", "env.file", "configuration files",
     NO_PROBLEMS "'env.files': [{'path': '/etc/nccl.conf', 'state': 'absent'}]", SHK_NA,
     SHK_NOT_COVERED, NULL},
    {"a configuration file that may not be read", "single-node", "env.file", "/root/.nvshmem.conf",
     "'env.problems': {'state': 'absent'}, 'env.files': [{'path': '/root/.nvshmem.conf', 'state': "
     "'failed'}], 'env.file_problems': [{'path': '/root/.nvshmem.conf', 'line': null, 'problem': "
     "'/root/.nvshmem.conf: Permission denied'}]",
     SHK_UNKNOWN, SHK_NOT_COVERED, "Permission denied"},
    {"configuration file with a bad line", "single-node", "env.file", "/etc/nccl.conf:3",
     "'env.files': [], 'env.file_problems': [{'path': '/etc/nccl.conf', 'line': 3, 'problem': 'no "
     "= "
     "in the line'}]",
     SHK_WARN, SHK_EFFECT, "no = in the line"},
    {"impossible name", "single-node", "env.file", "NCCL-DEBUG",
     "'env.files': [], 'env.problems': [{'name': 'NCCL-DEBUG', 'problem': 'no library looks for "
     "it'}]",
     SHK_WARN, SHK_EFFECT, "no library looks for it"},

    {"no container", "single-node", "container.kind", "container", "'host.container': 'none'",
     SHK_NA, SHK_NOT_COVERED, "not in"},
    {"container", "single-node", "container.kind", "container", CONTAINER "'host.name': 'x'",
     SHK_PASS, SHK_EFFECT, "docker"},
    {"container not known", "single-node", "container.kind", "container", "'host.name': 'x'",
     SHK_UNKNOWN, SHK_NOT_COVERED, NULL},
    {"even job", "single-node", "job.launcher", "launcher",
     NODES(2) "'env.SLURM_TASKS_PER_NODE': '8(x2)'", SHK_PASS, SHK_EFFECT, "slurm, 2 nodes"},
    {"uneven job", "single-node", "job.launcher", "launcher",
     NODES(3) "'env.SLURM_TASKS_PER_NODE': '8(x2),4'", SHK_WARN, SHK_EFFECT, "8(x2),4"},
    {"fewer ranks than nodes", "single-node", "job.launcher", "launcher",
     "'job.launcher': 'slurm', 'job.nodes': 4, 'job.ranks': 2", SHK_FAIL, SHK_EFFECT, "idle"},
    {"no job", "single-node", "job.launcher", "launcher", "'job.launcher': 'local'", SHK_NA,
     SHK_NOT_COVERED, NULL},
    {"VNI there", "test-fabric", "job.vni", "SLINGSHOT_VNIS",
     NODES(2) "'env.SLINGSHOT_VNIS': '1024,1025'", SHK_PASS, SHK_DECLARED, "1024"},
    {"VNI missing", "test-fabric", "job.vni", "SLINGSHOT_VNIS", NODES(2) "'probe.env.status': 'ok'",
     SHK_WARN, SHK_DECLARED, "cxi-vni-missing"},
    {"VNI on one node", "test-fabric", "job.vni", "SLINGSHOT_VNIS", NODES(1) "'env.HOME': '/'",
     SHK_NA, SHK_NOT_COVERED, NULL},
};

Test(coded, cases)
{
    support_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

/* FI_PROVIDER is judged with the environment, but by what libfabric has. */
static const struct {
    const char *value;
    enum shk_verdict verdict;
    const char *says;
} provider_values[] = {
    {"cxi", SHK_FAIL,
     "the loaded libfabric /usr/lib/libfabric.so.1 (1.17.0) has no provider \"cxi\"; it has: tcp, "
     "shm, efa"},
    {"tpc", SHK_FAIL, "did you mean tcp?"},
    {"efa", SHK_FAIL, "offers nothing on this node"},
    {"tcp", SHK_PASS, NULL},
    {"shm,tcp", SHK_PASS, NULL},
    {"tcp,cxi", SHK_WARN, "no provider \"cxi\""},
    {"^tcp", SHK_PASS, NULL},
    {"'tcp'", SHK_FAIL, "quotation marks"},
};

Test(coded, fi_provider)
{
    for (size_t i = 0; i < sizeof(provider_values) / sizeof(provider_values[0]); i++) {
        char *members = NULL;
        const char *value = provider_values[i].value;
        bool quoted = value[0] == '\'';
        cr_assert_geq(asprintf(&members,
                               "%s'fabric.providers': ['tcp', 'shm'], 'fabric.core_providers': "
                               "['tcp', 'shm', 'efa'], 'env.FI_PROVIDER': '%s%.*s%s'",
                               FABRIC, quoted ? "\\u0027" : "",
                               (int)(strlen(value) - (quoted ? 2 : 0)), value + quoted,
                               quoted ? "\\u0027" : ""),
                      0);
        struct shk_findings *findings = support_run(support_config(), "single-node", members);
        const struct shk_finding *f = support_find(findings, NULL, "FI_PROVIDER");
        cr_assert_not_null(f, "%s", value);
        char *text = support_text(f);
        cr_expect_eq(f->verdict, provider_values[i].verdict, "%s: %s", value, text);
        cr_expect(!provider_values[i].says || strstr(text, provider_values[i].says), "%s: %s",
                  value, text);
        free(text);
        free(members);
        shk_findings_destroy(findings);
    }
}

Test(coded, every_check_is_documented)
{
    size_t count;
    const struct shk_check *const *checks = shk_checks(&count);
    for (size_t i = 0; i < count; i++) {
        cr_expect(checks[i]->id && *checks[i]->id);
        cr_expect(checks[i]->family && *checks[i]->family, "%s", checks[i]->id);
        cr_expect(checks[i]->title && *checks[i]->title, "%s", checks[i]->id);
        cr_expect(checks[i]->doc && strstr(checks[i]->doc, "Fact"), "%s", checks[i]->id);
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(checks[i]->id, checks[j]->id);
    }
}

/* Facts that are all failed must not give a single pass. */
Test(coded, nothing_read_is_never_pass)
{
    static const char *const keys[] = {"host.container",
                                       "kernel.cmdline",
                                       "kernel.iommu.mode",
                                       "limits.memlock",
                                       "limits.nofile",
                                       "limits.stack",
                                       "shm.size",
                                       "net.ifaces",
                                       "net.hostname_resolves_to",
                                       "rdma.devices",
                                       "cxi.devices",
                                       "pci.devices",
                                       "pci.count.gpu-nvidia",
                                       "pci.count.gpu-amd",
                                       "pci.count.neuron",
                                       "pci.count.cxi",
                                       "pci.count.efa",
                                       "pci.count.mlx5",
                                       "gpu.nvidia.devices",
                                       "gpu.amd.devices",
                                       "neuron.devices",
                                       "fabric.version",
                                       "fabric.providers",
                                       "fabric.core_providers",
                                       "fabric.params",
                                       "nccl.version",
                                       "rccl.version",
                                       "plugin.candidates",
                                       "job.launcher",
                                       "job.nodes",
                                       "rocm.version",
                                       "collective.fabric.status",
                                       "sysctl.kernel.numa_balancing"};
    char members[8192] = "";
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        strcat(members, i ? ", '" : "'");
        strcat(members, keys[i]);
        strcat(members, "': {'state': 'failed', 'reason': 'cannot be read'}");
    }
    static const char *const profiles[] = {"single-node", "test-fabric", "generic-ib", NULL};
    for (const char *const *p = profiles; *p; p++) {
        struct shk_findings *findings = support_run(support_test_config(), *p, members);
        for (size_t i = 0; i < shk_findings_count(findings); i++) {
            const struct shk_finding *f = shk_findings_at(findings, i);
            cr_expect(f->verdict == SHK_UNKNOWN || f->verdict == SHK_NA, "%s: %s is %s", *p,
                      f->setting, shk_verdict_name(f->verdict));
        }
        shk_findings_destroy(findings);
    }
}
