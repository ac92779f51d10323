#include "config/defects.h"

#include "config/load/load.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#include <string.h>

static const struct shk_defect_library defect_libraries[] = {
    {"nccl", "NCCL", {"nccl"}},
    {"rccl", "RCCL", {"rccl"}},
    {"libfabric", "libfabric", {"libfabric"}},
    {"aws-ofi-nccl", "aws-ofi-nccl", {NULL}},
    {"ucx", "UCX", {NULL}},
    {"ucc", "UCC", {NULL}},
    {"openmpi", "Open MPI", {NULL}},
    {"mpich", "MPICH", {NULL}},
    {"impi", "Intel MPI", {NULL}},
    {"pmix", "PMIx", {"job.pmix.version"}},
    {"prrte", "PRRTE", {NULL}},
    {"slurm", "Slurm", {NULL}},
    {"pyxis", "pyxis", {NULL}},
    {"enroot", "enroot", {NULL}},
    {"nvshmem", "NVSHMEM", {"nvshmem"}},
    {"deepep", "DeepEP", {NULL}},
    {"nvidia-driver", "the NVIDIA driver", {"nvml.driver", "gpu.nvidia.driver.version"}},
    {"fabric-manager", "Fabric Manager", {"nvidia.fabricmanager.version"}},
    {"cuda", "CUDA", {NULL}},
    {"rocm", "ROCm", {"rocm.version"}},
    {"amdgpu", "the amdgpu driver", {"kernel.module.amdgpu.version"}},
    {"torch", "PyTorch", {NULL}},
    {"vllm", "vLLM", {NULL}},
    {"ray", "Ray", {NULL}},
    {"deepspeed", "DeepSpeed", {NULL}},
    {"jax", "JAX", {NULL}},
    {"nvidia-container-toolkit", "the NVIDIA Container Toolkit", {NULL}},
    {"libnvidia-container", "libnvidia-container", {NULL}},
    {"k8s-device-plugin", "the NVIDIA device plugin", {NULL}},
    {"gpu-operator", "the GPU operator", {NULL}},
    {"dcgm", "DCGM", {NULL}},
    {"apptainer", "Apptainer", {NULL}},
    {"docker", "Docker", {NULL}},
    {"containerd", "containerd", {NULL}},
    {"runc", "runc", {NULL}},
    {"kubernetes", "Kubernetes", {NULL}},
    {"rdma-core", "rdma-core", {NULL}},
    {"mlnx-ofed", "MLNX_OFED", {NULL}},
    {"efa-driver", "the EFA driver", {"kernel.module.efa.version"}},
    {"gdrcopy", "GDRCopy", {"kernel.module.gdrdrv.version"}},
    {"shs", "the Slingshot host software", {NULL}},
    {"oneccl", "oneCCL", {NULL}},
    {"neuron", "the Neuron driver", {"kernel.module.neuron.version"}},
    {"hwloc", "hwloc", {NULL}},
    {"munge", "MUNGE", {NULL}},
    {"lustre", "Lustre", {"kernel.module.lustre.version"}},
    {"systemd", "systemd", {NULL}},
    {"glibc", "glibc", {NULL}},
    {"kernel", "Linux", {"kernel"}},
};

const struct shk_defect_library *shk_defect_library(const char *name)
{
    for (size_t i = 0; name && i < SHK_COUNT(defect_libraries); i++)
        if (strcmp(defect_libraries[i].name, name) == 0)
            return &defect_libraries[i];
    return NULL;
}

bool shk_valid_library(const char *text, struct shk_why *why)
{
    const char *names[SHK_COUNT(defect_libraries)];
    char hint[SHK_HINT];
    if (shk_defect_library(text))
        return true;
    for (size_t i = 0; i < SHK_COUNT(names); i++)
        names[i] = defect_libraries[i].name;
    snprintf(why->text, sizeof why->text, "not a library whose releases are known%s",
             shk_hint(hint, text, names, SHK_COUNT(names)));
    return false;
}

const struct shk_defect_range *shk_defect_range_of(const struct shk_defect *defect,
                                                   const char *version)
{
    for (size_t i = 0; i < defect->releases_count; i++) {
        const struct shk_defect_range *range = &defect->releases[i];
        if (range->from && shk_version_cmp(version, range->from) < 0)
            continue;
        if (!range->fixed_in || shk_version_cmp(version, range->fixed_in) < 0)
            return range;
    }
    return NULL;
}

static const struct shk_field range_fields[] = {
    {.key = "from",
     SHK_AT(struct shk_defect_range, from),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_version,
     .doc = "first release that has it; absent: as far back as known"},
    {.key = "fixed-in",
     SHK_AT(struct shk_defect_range, fixed_in),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_version,
     .doc = "first release of this branch without it; absent: none yet"},
};

static int range_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                       const void *row)
{
    const struct shk_defect_range *range = row;
    if (!range->from && !range->fixed_in)
        return shk_fill_error(fill, node, "from", "or fixed-in is needed");
    if (range->from && range->fixed_in && shk_version_cmp(range->from, range->fixed_in) >= 0)
        return shk_fill_error(fill, node, "fixed-in", "is not after from");
    return 0;
}

static const struct shk_record defect_range = {
    .what = "range of releases",
    .type = "struct shk_defect_range",
    .size = sizeof(struct shk_defect_range),
    SHK_FIELDS(range_fields),
    .check = range_check,
};

static const struct shk_field defect_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_defect, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "for `explain`"},
    {.key = "library",
     SHK_AT(struct shk_defect, library),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_library,
     .doc = "whose releases have it, as `version-of` of a signature"},
    {.key = "title",
     SHK_AT(struct shk_defect, title),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what happens, as it follows `NCCL 2.18.1: `"},
    {.key = "meaning",
     SHK_AT(struct shk_defect, meaning),
     .kind = SHK_FIELD_LINES,
     .required = true,
     .doc = "the mechanism, a sentence or two"},
    {.key = "releases",
     SHK_AT(struct shk_defect, releases),
     SHK_EXTRA(struct shk_defect, releases_count),
     .kind = SHK_FIELD_RECORDS,
     .required = true,
     .record = &defect_range,
     .doc = "which releases have it, a range for each branch that was mended"},
    {.key = "pattern",
     SHK_AT(struct shk_defect, pattern),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_log_pattern,
     .doc = "the sign: regular expression for part of a line of a log, as of a signature"},
    {.key = "signs",
     SHK_AT(struct shk_defect, signs),
     .kind = SHK_FIELD_TEXTS,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "the sign: signatures of which one is seen (or the pattern)"},
    {.key = "when",
     SHK_AT(struct shk_defect, when),
     SHK_EXTRA(struct shk_defect, when_count),
     .kind = SHK_FIELD_RECORDS,
     .record = &shk_record_term,
     .doc = "terms, see [above](#when-something-holds), that hold besides on one node; what is not "
            "known does not"},
    {.key = "specific",
     SHK_AT(struct shk_defect, specific),
     .kind = SHK_FIELD_BOOL,
     .doc = "nothing else shows so: `likely` with a release that has it, `possible` where the "
            "release is not known; otherwise `possible`, and nothing where it is not known"},
    {.key = "diagnosis",
     SHK_AT(struct shk_defect, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause, where it has one of its own; default `release-defect`"},
    {.key = "fix",
     SHK_AT(struct shk_defect, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "the way around it without another release: one shell line, ready to run"},
    {.key = "advice",
     SHK_AT(struct shk_defect, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "the same in words; which release to go to is said in any case; required where no "
            "release is fixed and there is no fix"},
    {.key = "source",
     SHK_AT(struct shk_defect, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "release note or issue that names the defect and the release without it"},
};

static int defect_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                        const void *row)
{
    const struct shk_defect *defect = row;
    bool fixed = defect->fix || defect->advice;
    if (!defect->pattern && !defect->signs && !defect->when_count)
        return shk_fill_error(fill, node, "pattern", "or signs or when is needed: how it shows");
    if (!defect->releases_count)
        return shk_fill_error(fill, node, "releases", "is empty: no release would have it");
    if (defect->specific && !defect->pattern && !defect->signs)
        return shk_fill_error(fill, node, "specific", "needs a line: pattern or signs");
    for (size_t i = 0; i < defect->releases_count; i++)
        fixed |= defect->releases[i].fixed_in != NULL;
    for (size_t i = 0; i < defect->when_count; i++)
        if (defect->when[i].differs)
            return shk_fill_error(fill, node, "when", "differs is for rules");
    return fixed ? 0
                 : shk_fill_error(fill, node, "advice",
                                  "or fix is needed, where no release is without it");
}

const struct shk_record shk_record_defect = {
    .what = "defect",
    .type = "struct shk_defect",
    .size = sizeof(struct shk_defect),
    SHK_FIELDS(defect_fields),
    .check = defect_check,
    .name_offset = offsetof(struct shk_defect, name),
    .place_offset = offsetof(struct shk_defect, place),
};
