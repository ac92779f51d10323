#include "probes/host/envnames.h"

#include "core/text/strbuf.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* First words of a library's settings. A misspelt prefix of four letters is believed only when a
 * word of the library follows: "NCLL_DEBUG" is one, "NCAR_ROOT" is not. */
static const char *const words_nccl[] = {
    "ALGO",      "BUFFSIZE", "COLLNET", "COMM",     "CROSS",  "CUMEM", "DEBUG",
    "DMABUF",    "GDRCOPY",  "GRAPH",   "IB",       "LAUNCH", "MAX",   "MIN",
    "NCHANNELS", "NET",      "NSOCKS",  "NTHREADS", "NVLS",   "P2P",   "PLUGIN",
    "PROTO",     "PXN",      "SHM",     "SOCKET",   "TOPO",   "TUNER", NULL,
};
static const char *const words_devices[] = {"DEVICE", "LAUNCH", "CACHE", "VISIBLE", NULL};
static const char *const words_socket[] = {"SOCKET", NULL};
static const char *const words_any[] = {"", NULL};

static const struct env_prefix {
    const char *prefix; /* with the underscore */
    const char *family;
    const char *const *near; /* NULL: only the exact prefix counts */
} env_prefixes[] = {
    {"NCCL_", "nccl", words_nccl},
    {"RCCL_", "rccl", words_nccl},
    {"OFI_NCCL_", "ofi-plugin", NULL},
    {"OFI_", "ofi-plugin", NULL},
    {"FI_", "libfabric", NULL},
    {"LIBFABRIC_", "libfabric", words_any},
    {"CXI_", "libcxi", NULL},
    {"CXIP_", "cxi", NULL},
    {"EFA_", "efa", NULL},
    {"SLINGSHOT_", "slurm", words_any},
    {"HSA_", "hsa", NULL},
    {"HIP_", "hip", NULL},
    {"ROCR_", "hsa", words_devices},
    {"ROCM_", "hip", NULL},
    {"ROC_", "hip", NULL},
    {"HSAKMT_", "hsa", NULL},
    {"NPKIT_", "rccl", NULL},
    {"AMD_", "hip", NULL},
    {"GPU_", "hip", NULL},
    {"MIOPEN_", "miopen", words_any},
    {"NVSHMEM_", "nvshmem", words_any},
    {"NEURON_", "neuron", words_any},
    {"NRT_", "neuron", NULL},
    {"CUDA_", "cuda", words_devices},
    {"NVIDIA_", "cuda", words_any},
    {"UCX_", "ucx", NULL},
    {"UCC_", "ucx", NULL},
    {"OMPI_", "mpi", NULL},
    {"OPAL_", "mpi", NULL},
    {"PMIX_", "mpi", NULL},
    {"PRTE_", "mpi", NULL},
    {"PMI_", "mpi", NULL},
    {"PMI2_", "mpi", NULL},
    {"MPICH_", "mpi", words_any},
    {"MPIR_", "mpi", NULL},
    {"I_MPI_", "mpi", NULL},
    {"HYDRA_", "mpi", NULL},
    {"SLURM_", "slurm", words_any},
    {"SLURMD_", "slurm", NULL},
    {"SRUN_", "slurm", NULL},
    {"SBATCH_", "slurm", NULL},
    {"SALLOC_", "slurm", NULL},
    {"PALS_", "launcher", NULL},
    {"FLUX_", "launcher", NULL},
    {"PBS_", "launcher", NULL},
    {"LSB_", "launcher", NULL},
    {"GLOO_", "torch", words_socket},
    {"TORCH_", "torch", words_any},
    {"TORCHELASTIC_", "torch", words_any},
    {"PYTORCH_", "torch", words_any},
    {"HOROVOD_", "torch", words_any},
    {"RDMAV_", "verbs", words_any},
    {"IBV_", "verbs", NULL},
    {"VERBS_LOG_", "verbs", NULL},
    {"MLX4_", "verbs", NULL},
    {"MLX5_", "verbs", NULL},
    {"GDRCOPY_", "cuda", NULL},
    {"CCL_", "ccl", NULL},
    {"ZE_", "ccl", NULL},
    {"OMP_", "openmp", NULL},
    {"KMP_", "openmp", NULL},
    {"GOMP_", "openmp", NULL},
    {"VLLM_USE_NCCL_", "framework", NULL},
    {"VLLM_NCCL_", "framework", NULL},
    {"VLLM_ALL2ALL_", "framework", NULL},
    {"RAY_EXPERIMENTAL_NOSET_", "framework", NULL},
    {"JULIA_CUDA_", "framework", NULL},
    {"SHIMNET_", "nccl", NULL},
    {"ENROOT_", "container", NULL},
    {"PYXIS_", "container", NULL},
    {"APPTAINER_", "container", NULL},
    {"SINGULARITY_", "container", NULL},
};

static const struct env_name {
    const char *name;
    const char *family;
    bool near; /* a typing error in it is recognised */
} env_names[] = {
    {"LD_LIBRARY_PATH", "loader", true},
    {"LD_PRELOAD", "loader", true},
    {"LD_AUDIT", "loader", false},
    {"LD_BIND_NOW", "loader", false},
    {"LD_DEBUG", "loader", false},
    {"TMPDIR", "shell", false},
    {"MELLANOX_VISIBLE_DEVICES", "container", false},
    {"APPTAINERENV_PREPEND_PATH", "container", false},
    {"SINGULARITYENV_PREPEND_PATH", "container", false},
    {"LIBRARY_PATH", "build", false},
    {"CPATH", "build", false},
    {"PLUGIN_DIR", "folklore", false},
    {"MASTER_ADDR", "torch", true},
    {"MASTER_PORT", "torch", true},
    {"WORLD_SIZE", "torch", false},
    {"RANK", "torch", false},
    {"LOCAL_RANK", "torch", false},
    {"LOCAL_WORLD_SIZE", "torch", false},
    {"GROUP_RANK", "torch", false},
    {"ROLE_RANK", "torch", false},
    {"ROLE_WORLD_SIZE", "torch", false},
    {"NODE_RANK", "torch", false},
    {"TP_SOCKET_IFNAME", "torch", true},
    {"EP_DISABLE_GIN", "framework", false},
    {"EP_NIC_NAME", "framework", false},
    {"TRITON_HOME", "framework", false},
    {"CLUSTER_NAME", "site", false},
    {"NERSC_HOST", "site", false},
    {"LMOD_SYSTEM_NAME", "site", false},
    {"CRAYPE_VERSION", "site", false},
    {"CRAY_LD_LIBRARY_PATH", "loader", false},
    /* their prefixes are too short to guess at, so the names that matter are listed */
    {"FI_PROVIDER", "libfabric", true},
    {"FI_PROVIDER_PATH", "libfabric", true},
    {"FI_LOG_LEVEL", "libfabric", true},
    {"FI_MR_CACHE_MONITOR", "libfabric", true},
    {"HSA_FORCE_FINE_GRAIN_PCIE", "hsa", true},
    {"HSA_NO_SCRATCH_RECLAIM", "hsa", true},
    {"HIP_VISIBLE_DEVICES", "hip", true},
    {"CXI_FORK_SAFE", "libcxi", true},
    {"CXI_FORK_SAFE_HP", "libcxi", true},
    {"UCX_NET_DEVICES", "ucx", true},
};

const char *shk_env_how_name(enum shk_env_how how)
{
    static const char *const names[] = {
        [SHK_ENV_PREFIX] = "prefix",
        [SHK_ENV_NAME] = "name",
        [SHK_ENV_NEAR] = "near",
    };
    return names[how];
}

bool shk_env_name_ok(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static bool env_begins_with_word(const char *text, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (strncasecmp(text, *words, n) == 0 && (!n || !isalnum((unsigned char)text[n])))
            return true;
    }
    return false;
}

/* One error in the prefix, or its underscore left out or typed as something else. */
static bool env_prefix_near(const char *name, const struct env_prefix *p)
{
    char token[32];
    size_t stem = strlen(p->prefix) - 1, len = strcspn(name, "_-. ");
    if (strncasecmp(name, p->prefix, stem) == 0) {
        const char *rest = name + stem;
        if (*rest == '-' || *rest == '.' || *rest == ' ')
            rest++;
        return *rest && p->near == words_nccl && env_begins_with_word(rest, p->near);
    }
    if (!name[len] || len < 3 || len >= sizeof token || len + 1 < stem || len > stem + 1)
        return false;
    memcpy(token, name, len);
    token[len] = '\0';
    char expected[32];
    memcpy(expected, p->prefix, stem);
    expected[stem] = '\0';
    return shk_edit_distance(token, expected) == 1 && env_begins_with_word(name + len + 1, p->near);
}

static bool env_classify_exact(const char *name, struct shk_env_match *match_p)
{
    for (size_t i = 0; i < sizeof env_names / sizeof *env_names; i++)
        if (strcmp(name, env_names[i].name) == 0) {
            *match_p = (struct shk_env_match){env_names[i].family, SHK_ENV_NAME, env_names[i].name};
            return true;
        }
    for (size_t i = 0; i < sizeof env_prefixes / sizeof *env_prefixes; i++) {
        const struct env_prefix *p = &env_prefixes[i];
        if (strncasecmp(name, p->prefix, strlen(p->prefix)) == 0) {
            bool same = strncmp(name, p->prefix, strlen(p->prefix)) == 0;
            *match_p =
                (struct shk_env_match){p->family, same ? SHK_ENV_PREFIX : SHK_ENV_NEAR, p->prefix};
            return true;
        }
    }
    return false;
}

static bool env_classify_near(const char *name, struct shk_env_match *match_p)
{
    for (size_t i = 0; i < sizeof env_names / sizeof *env_names; i++)
        if (env_names[i].near && shk_edit_distance(name, env_names[i].name) <= 1) {
            *match_p = (struct shk_env_match){env_names[i].family, SHK_ENV_NEAR, env_names[i].name};
            return true;
        }
    for (size_t i = 0; i < sizeof env_prefixes / sizeof *env_prefixes; i++)
        if (env_prefixes[i].near && env_prefix_near(name, &env_prefixes[i])) {
            *match_p = (struct shk_env_match){env_prefixes[i].family, SHK_ENV_NEAR,
                                              env_prefixes[i].prefix};
            return true;
        }
    return false;
}

bool shk_env_classify(const char *name, struct shk_env_match *match_p)
{
    /* Apptainer hands these on without the prefix: they count as what they become. */
    static const char *const wrappers[] = {"SINGULARITYENV_", "APPTAINERENV_"};
    bool wrapped = false;
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        wrapped |= strncmp(name, wrappers[i], strlen(wrappers[i])) == 0;
    if (wrapped && !strstr(name, "ENV_PREPEND_PATH"))
        return shk_env_classify(strchr(name, '_') + 1, match_p);
    return env_classify_exact(name, match_p) || env_classify_near(name, match_p);
}
