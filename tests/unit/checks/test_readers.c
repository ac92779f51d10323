/* What a library here does not read cannot break anything; what may read it must have been asked.
 */
#include "support.h"

#include <criterion/criterion.h>

#define ENV     "'probe.env.status': 'ok', "
#define WIN     ENV "'env.NCCL_WIN_ENABLE': '1', 'env.NCCL_CUMEM_ENABLE': '0', "
#define NO_NCCL "'nccl.version': {'state': 'absent', 'reason': 'x'}, "
#define NO_RCCL "'rccl.version': {'state': 'absent', 'reason': 'x'}, "
#define NO_NET  "'plugin.candidates': {'state': 'absent', 'reason': 'x'}, "
#define RCCL_OLD                                                                                   \
    "'rccl.version': '2.13.4', 'rccl.path': '/r/librccl.so.1', 'rccl.env_names': ['NCCL_DEBUG', "  \
    "'NCCL_DMABUF_ENABLE'], "
#define NCCL_OLD                                                                                   \
    "'nccl.version': '2.18.3', 'nccl.path': '/n/libnccl.so.2', 'nccl.env_names': ['NCCL_DEBUG', "  \
    "'NCCL_CUMEM_ENABLE'], "
#define BOTH "NCCL_WIN_ENABLE + NCCL_CUMEM_ENABLE"
#define NO_CHANNEL                                                                                 \
    "'dev.nvidia-caps-imex-channels/channel0': {'state': 'absent', 'reason': 'x'}, "               \
    "'nvidia.imex.running': false, 'nvidia.imex.nodes': 0, 'nvml.devices': [], "                   \
    "'pci.count.gpu-nvidia': 8, "
#define MNNVL ENV "'env.NCCL_MNNVL_ENABLE': '1', " NO_CHANNEL

static const struct support_case cases[] = {
    {"one library reads both", "single-node", "env.conflict", BOTH,
     WIN NO_RCCL "'nccl.version': '2.28.9', 'nccl.env_names': ['NCCL_WIN_ENABLE', "
                 "'NCCL_CUMEM_ENABLE']",
     SHK_WARN, SHK_DECLARED, "NCCL_CUMEM_ENABLE=0"},
    {"the loaded library reads neither", "single-node", "env.conflict", BOTH,
     WIN NO_NCCL RCCL_OLD NO_NET "'host.arch': 'x86_64'", SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"it reads only one of them", "single-node", "env.conflict", BOTH,
     WIN NCCL_OLD NO_RCCL NO_NET "'host.arch': 'x86_64'", SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"two libraries read one each", "single-node", "env.conflict", BOTH,
     WIN NCCL_OLD "'rccl.version': '2.22.3', 'rccl.env_names': ['NCCL_WIN_ENABLE']",
     SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"no such library is here", "single-node", "env.conflict", BOTH,
     WIN NO_NCCL NO_RCCL NO_NET "'host.arch': 'x86_64'", SHK_VERDICT_COUNT, SHK_NOT_COVERED, NULL},
    {"the library could not be read", "single-node", "env.conflict", BOTH,
     WIN "'nccl.version': {'state': 'failed', 'reason': 'x'}, " NO_RCCL "'host.arch': 'x86_64'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "nccl.version does not say"},
    {"the sum is not known then", "single-node", "env.conflict", "conflicts",
     WIN "'nccl.version': {'state': 'failed', 'reason': 'x'}, " NO_RCCL "'host.arch': 'x86_64'",
     SHK_UNKNOWN, SHK_NOT_COVERED, "windows-without-cumem"},
    {"libraries were not looked for", "single-node", "env.conflict", BOTH,
     WIN "'host.arch': 'x86_64'", SHK_WARN, SHK_DECLARED, "NCCL_CUMEM_ENABLE=0"},
    {"two readers of two settings", "single-node", "env.conflict",
     "FI_CXI_RDZV_PROTO + SLURM_NETWORK",
     ENV "'env.FI_CXI_RDZV_PROTO': 'alt_read', 'job.nodes': 2, 'job.launcher': 'slurm', "
         "'fabric.version': '2.3.1', 'fabric.params': [{'name': 'FI_CXI_RDZV_PROTO'}]",
     SHK_WARN, SHK_EFFECT, "alt_read"},

    {"read by the library that is loaded", "single-node", "env.value", "NCCL_DMABUF_ENABLE",
     ENV NO_NCCL RCCL_OLD "'env.NCCL_DMABUF_ENABLE': '1'", SHK_PASS, SHK_DECLARED,
     "read by RCCL 2.13.4"},
    {"a wrong value that nobody reads", "single-node", "env.value", "NCCL_MNNVL_ENABLE",
     ENV NCCL_OLD NO_RCCL NO_NET "'env.NCCL_MNNVL_ENABLE': 'yes please'", SHK_WARN, SHK_EFFECT,
     "nothing here reads it"},
    {"a version that is missing among others", "single-node", "env.value", "NVSHMEM_DISABLE_NVLS",
     ENV NCCL_OLD "'env.NVSHMEM_DISABLE_NVLS': '1'", SHK_UNKNOWN, SHK_NOT_COVERED,
     "nvshmem.version was not read"},

    {"one that ends the process, and no library that reads it", "single-node", "env.value",
     "NCCL_PROTO", ENV NO_NCCL NO_RCCL NO_NET "'env.NCCL_PROTO': 'nonsense'", SHK_WARN,
     SHK_DECLARED, "brings its own"},
    {"its list and the catalogue contradict each other", "single-node", "env.value",
     "RCCL_ENABLE_CLIQUE", ENV NO_NCCL RCCL_OLD NO_NET "'env.RCCL_ENABLE_CLIQUE': '1'", SHK_UNKNOWN,
     SHK_NOT_COVERED, "does not hold this name"},

    {"multi-node NVLink asked of one that reads it", "single-node", "gpu.imex", "nvidia-imex",
     MNNVL NO_RCCL "'nccl.version': '2.28.9', 'nccl.env_names': ['NCCL_MNNVL_ENABLE']", SHK_FAIL,
     SHK_EFFECT, "no channel device"},
    {"asked of one that does not", "single-node", "gpu.imex", "nvidia-imex",
     MNNVL NO_RCCL NO_NET NCCL_OLD "'host.arch': 'x86_64'", SHK_NA, SHK_NOT_COVERED, NULL},
    {"and no conflict", "single-node", "env.conflict", "NCCL_MNNVL_ENABLE",
     MNNVL NO_RCCL NO_NET NCCL_OLD "'host.arch': 'x86_64'", SHK_VERDICT_COUNT, SHK_NOT_COVERED,
     NULL},
    {"asked, and who reads it is not known", "single-node", "gpu.imex", "nvidia-imex",
     MNNVL NO_RCCL "'nccl.version': {'state': 'failed', 'reason': 'x'}", SHK_UNKNOWN,
     SHK_NOT_COVERED, "nccl.version"},
};

Test(readers, who_reads_it_decides)
{
    support_cases(cases, sizeof cases / sizeof *cases);
}
