/* GPUs among each other: the libraries of the driver, NVLinks, peer access. */
#include "checks/coded.h"

#include <string.h>

/* Errors by which the CUDA driver tells its cause (CUresult). */
static const struct {
    long long code;
    const char *diagnosis, *why, *fix;
} cuda_errors[] = {
    {802, "fabric-manager-down", "the NVLink fabric is not set up",
     "systemctl enable --now nvidia-fabricmanager"},
    {803, "driver-runtime-version-mismatch",
     "libcuda and the loaded kernel module are of different versions",
     "reboot, or reload the modules, after the update of the driver"},
    {804, "cuda-compat-driver-loaded",
     "a libcuda of the compatibility package is loaded that this GPU or driver does not support",
     "take the directory cuda/compat out of LD_LIBRARY_PATH"},
};

enum { NVML_VERSION_MISMATCH = 18 };

static void library_error(struct shk_row *row, const char *library, const json_t *error)
{
    long long code = shk_member_int(error, "code", 0);
    const char *text = shk_member_text(error, "text"), *call = shk_member_text(error, "call");
    bool nvml = strcmp(library, "NVML") == 0;
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row->observed, "%s: %s (%lld)", call ? call : library, text ? text : "error",
                 code);
    shk_row_text(&row->why, "%s does not work for this process", library);
    shk_row_text(&row->fix, "look at nvidia-smi and dmesg, and drain the node if they fail, too");
    if (nvml && code == NVML_VERSION_MISMATCH)
        code = 803;
    for (size_t i = 0; i < sizeof cuda_errors / sizeof *cuda_errors; i++) {
        if (cuda_errors[i].code != code || (nvml && code != 803))
            continue;
        row->diagnosis = cuda_errors[i].diagnosis;
        shk_row_text(&row->why, "%s", cuda_errors[i].why);
        shk_row_text(&row->fix, "%s", cuda_errors[i].fix);
    }
}

static void library_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const char *library, const char *key, const char *version_key)
{
    struct shk_row row = shk_row_start(&shk_check_gpu_library, library);
    const json_t *error = shk_facts_get_object(ctx->facts, key);
    const char *version = shk_facts_get_text(ctx->facts, version_key);
    row.fact = key;
    if (error) {
        library_error(&row, library, error);
    } else if (shk_look(ctx->facts, key, NULL) == SHK_LOOK_ABSENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version ? version : "it answers");
    } else {
        shk_row_unread(findings, &row, ctx->facts, key);
        return;
    }
    shk_row_end(findings, &row);
}

static void lost_row(struct shk_findings *findings, long long lost)
{
    struct shk_row row = shk_row_start(&shk_check_gpu_library, "lost GPUs");
    row.fact = "nvml.lost";
    shk_row_verdict(&row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row.observed, "%lld do not answer", lost);
    shk_row_text(&row.why, "the driver lists them, but they are lost or need a reset");
    shk_row_text(&row.fix, "drain the node, look for Xid lines in dmesg, reset the GPUs");
    shk_row_end(findings, &row);
}

static void eval_library(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    long long lost = shk_facts_get_int(ctx->facts, "nvml.lost", 0);
    if (shk_device_count(ctx->facts, "gpu-nvidia") == 0) {
        struct shk_row row = shk_row_start(&shk_check_gpu_library, "NVML");
        shk_row_na(findings, &row, "no NVIDIA GPU on this node");
        return;
    }
    library_row(ctx, findings, "NVML", "nvml.error", "nvml.driver");
    library_row(ctx, findings, "CUDA", "cuda.error", "cuda.driver");
    if (lost > 0)
        lost_row(findings, lost);
}

const struct shk_check shk_check_gpu_library = {
    .id = "gpu.library",
    .family = "devices",
    .title = "The NVIDIA driver libraries work and see every GPU",
    .eval = eval_library,
    .doc = "Facts: nvml.error, nvml.lost, cuda.error.\n"
           "An error of nvmlInit or cuInit is FAIL, with its cause where the code tells it; so is "
           "a GPU that the driver lists but that does not answer.",
};

struct nvlinks {
    unsigned gpus, most; /* GPUs with links; most active links of one */
    unsigned down, short_gpus;
    struct shk_strbuf names;
};

static unsigned active_links(const json_t *gpu, unsigned *all_p)
{
    size_t i;
    json_t *link;
    unsigned active = 0;
    *all_p = 0;
    json_array_foreach(json_object_get(gpu, "links"), i, link)
    {
        ++*all_p;
        active += shk_member_bool(link, "active", false);
    }
    return active;
}

static void count_links(const struct shk_facts *facts, struct nvlinks *links)
{
    json_t *gpus = shk_facts_get_array(facts, "nvml.devices"), *gpu;
    size_t i;
    unsigned all;
    json_array_foreach(gpus, i, gpu)
    {
        unsigned active = active_links(gpu, &all);
        links->gpus += all > 0 && !shk_member_bool(gpu, "mig", false);
        if (active > links->most)
            links->most = active;
    }
    json_array_foreach(gpus, i, gpu)
    {
        unsigned active = active_links(gpu, &all);
        if (!all || shk_member_bool(gpu, "mig", false) || active >= links->most)
            continue;
        links->short_gpus++;
        links->down += links->most - active;
        if (links->names.len < 160)
            shk_strbuf_printf(&links->names, "%s%s: %u", links->names.len ? ", " : "",
                              shk_member_text(gpu, "pci"), active);
    }
}

static void eval_nvlink(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_nvlink, "nvlink-state");
    struct nvlinks links = {.names = SHK_STRBUF_INIT};
    long long switches = shk_device_count(ctx->facts, "nvswitch");
    row.fact = "nvml.devices";
    count_links(ctx->facts, &links);
    if (shk_device_count(ctx->facts, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "no NVIDIA GPU on this node");
    } else if (!shk_facts_get_array(ctx->facts, "nvml.devices")) {
        shk_row_unread(findings, &row, ctx->facts, "nvml.devices");
    } else if (!links.gpus || (!links.most && switches <= 0)) {
        shk_row_na(findings, &row, "these GPUs have no NVLink in use");
    } else if (!links.most) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "fabric-manager-down";
        shk_row_text(&row.observed, "no link is up, %lld NVSwitches", switches);
        shk_row_text(&row.why, "GPUs beside NVSwitches reach each other over NVLink only");
        shk_row_text(&row.fix, "systemctl enable --now nvidia-fabricmanager");
        shk_row_end(findings, &row);
    } else if (links.short_gpus) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "%u links down (%s)", links.down,
                     shk_strbuf_text(&links.names));
        shk_row_text(&row.expected, "%u up, as on the others", links.most);
        shk_row_text(&row.why, "the ring is as fast as its narrowest GPU");
        shk_row_text(&row.fix, "look at nvidia-smi nvlink -s, reset the GPU or have it replaced");
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%u up on each of %u GPUs", links.most, links.gpus);
        shk_row_end(findings, &row);
    }
    shk_strbuf_free(&links.names);
}

const struct shk_check shk_check_nvlink = {
    .id = "gpu.nvlink",
    .family = "devices",
    .title = "All NVLinks are up",
    .eval = eval_nvlink,
    .doc = "Facts: nvml.devices[].links, pci.count.nvswitch.\n"
           "A GPU with fewer active links than another is WARN; none at all beside NVSwitches is "
           "FAIL. GPUs in MIG mode are not judged.",
};

struct access {
    unsigned pairs, good, refused, linked, near, unknown;
    const json_t *first; /* the refused pair that weighs most */
};

static bool is_link(const char *class)
{
    return class && (strncmp(class, "NV", 2) == 0 || strcmp(class, "XGMI") == 0);
}

/* The model has no peer access at all, as consumer cards. */
static bool is_model(const char *why)
{
    return strcmp(why, "GPU not supported") == 0 || strcmp(why, "not supported") == 0;
}

static void note_pair(struct access *access, const json_t *pair)
{
    const char *class = shk_member_text(pair, "class"), *p2p = shk_member_text(pair, "p2p");
    access->pairs++;
    access->unknown += !p2p;
    access->good += p2p && strcmp(p2p, "ok") == 0;
    if (!p2p || strcmp(p2p, "ok") == 0)
        return;
    bool linked = is_link(class);
    bool near = class && !is_model(p2p) && (strcmp(class, "PIX") == 0 || strcmp(class, "PXB") == 0);
    if (!access->first || (linked && !access->linked) || (near && !access->near && !access->linked))
        access->first = pair;
    access->refused++;
    access->linked += linked;
    access->near += near;
}

static void refused(struct shk_row *row, const struct access *access)
{
    const char *p2p = shk_member_text(access->first, "p2p");
    shk_row_verdict(row, access->linked ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->observed, "refused between %u of %u pairs: %s", access->refused,
                 access->pairs, p2p);
    shk_row_text(&row->expected, "allowed between GPUs joined by %s",
                 access->linked ? "a link" : "a PCIe switch");
    shk_row_text(&row->why, "%s and %s (%s) exchange data through host memory",
                 shk_member_text(access->first, "gpu"), shk_member_text(access->first, "peer"),
                 shk_member_text(access->first, "class"));
    shk_row_text(&row->fix, access->linked
                                ? "look at nvidia-smi topo -p2p r, the Fabric Manager and dmesg"
                                : "switch ACS and the IOMMU's translation off, and look at "
                                  "nvidia-smi topo -p2p r");
}

static void eval_access(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_peer_access, "GPU peer access");
    json_t *pairs = shk_facts_get_array(ctx->facts, "topology.peers"), *pair;
    struct access access = {0};
    size_t i;
    row.fact = "topology.peers, nvml.p2p, cuda.p2p, gpu.amd.links";
    row.source = "NVIDIA/nccl:src/graph/paths.cc";
    json_array_foreach(pairs, i, pair) note_pair(&access, pair);
    long long neuron = shk_device_count(ctx->facts, "neuron");
    if (shk_gpu_count(ctx->facts) == 0 || (pairs && !access.pairs)) {
        shk_row_na(findings, &row, "fewer than two GPUs");
    } else if (!pairs) {
        shk_row_unread(findings, &row, ctx->facts, "topology.peers");
    } else if (neuron > 0) {
        shk_row_na(findings, &row, "Neuron devices have links of their own");
    } else if (access.linked || access.near) {
        refused(&row, &access);
        shk_row_end(findings, &row);
    } else if (access.refused) {
        shk_row_na(findings, &row,
                   "the driver offers none between %u of %u pairs (%s): NCCL uses "
                   "host memory",
                   access.refused, access.pairs, shk_member_text(access.first, "p2p"));
    } else if (access.unknown) {
        shk_row_text(&row.why, "no library told about %u of %u pairs", access.unknown,
                     access.pairs);
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "between all %u pairs", access.good);
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_peer_access = {
    .id = "gpu.peer_access",
    .family = "devices",
    .title = "GPUs may access each other's memory",
    .eval = eval_access,
    .doc = "Facts: topology.peers, from nvml.p2p, cuda.p2p and gpu.amd.links.\n"
           "Refused between GPUs joined by NVLink or XGMI is FAIL, between GPUs below one PCIe "
           "switch WARN, unless the model has no peer access. Refused only between GPUs that are "
           "farther apart is n/a: most such machines have none.",
};
