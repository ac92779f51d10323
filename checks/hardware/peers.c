/* GPUs among each other: the libraries of the driver, NVLinks, peer access. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"

#include <string.h>

/* Errors by which the CUDA driver tells its cause (CUresult). */
static const struct {
    long long code;
    const char *diagnosis, *why, *fix;
} cuda_errors[] = {
    {802, "fabric-manager-down", "the NVLink fabric is not set up", "fabric-manager-start"},
    {803, "driver-runtime-version-mismatch",
     "libcuda and the loaded kernel module are of different versions", "driver-reload"},
    {804, "cuda-compat-driver-loaded",
     "a libcuda of the compatibility package is loaded that this GPU or driver does not support",
     "compat-remove"},
    {34, "cuda-stub-loaded", "the toolkit's libcuda without code is loaded", "stub-remove"},
    {35, "cuda-driver-too-old", "the driver is older than this CUDA runtime needs",
     "driver-update"},
    {222, "cuda-driver-too-old", "the driver does not know the PTX of this CUDA release",
     "driver-update"},
    {46, "device-in-use", "another process holds the GPU, or its mode allows none", "gpu-busy"},
    {2, "gpu-memory-exhausted", "no memory of the GPU is left to start with", "gpu-busy"},
    {805, "mps-unusable", "CUDA is to go through MPS, and its daemon does not answer", "mps-start"},
    {806, "mps-unusable", "the MPS server failed", "mps-start"},
    {807, "mps-unusable", "the MPS server takes no new clients", "mps-start"},
    {808, "mps-unusable", "the MPS server has no room for another client", "mps-start"},
    {809, "mps-unusable", "the MPS server has no room for another connection", "mps-start"},
};

/* Errors of NVML (nvmlReturn_t) that mean the same as one of CUDA. */
enum { NVML_VERSION_MISMATCH = 18 };

static void library_error(struct shk_row *row, const char *library, const json_t *error)
{
    long long code = 0;
    const char *text = NULL, *call = NULL;
    bool nvml = strcmp(library, "NVML") == 0;
    (void)shk_look_member_int(error, "code", &code);
    (void)shk_look_member_text(error, "text", &text);
    (void)shk_look_member_text(error, "call", &call);
    shk_row_verdict(row, SHK_FAIL, SHK_TESTED);
    shk_row_text(&row->observed, "%s: %s (%lld)", call ? call : library, text ? text : "error",
                 code);
    shk_row_text(&row->why, "%s does not work for this process", library);
    shk_row_fix(row, "driver-fails", NULL);
    if (nvml && code == NVML_VERSION_MISMATCH)
        code = 803;
    for (size_t i = 0; i < sizeof cuda_errors / sizeof *cuda_errors; i++) {
        if (cuda_errors[i].code != code || (nvml && code != 803))
            continue;
        row->diagnosis = cuda_errors[i].diagnosis;
        shk_row_text(&row->why, "%s", cuda_errors[i].why);
        shk_row_fix(row, cuda_errors[i].fix, NULL);
    }
}

static void library_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const char *library, const char *key, const char *version_key)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_library, library);
    json_t *error = NULL;
    const char *version = NULL;
    row.fact = key;
    enum shk_look look = shk_read_object(&row, key, &error);
    if (look == SHK_LOOK_PRESENT) {
        library_error(&row, library, error);
    } else if (look == SHK_LOOK_ABSENT &&
               shk_read_text(&row, version_key, &version) == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        shk_row_text(&row.observed, "%s", version);
    } else if (look == SHK_LOOK_ABSENT) {
        shk_row_lacks(&row, key, "nothing asked %s", library);
    }
    shk_row_end(findings, &row);
}

/* A row only when there are lost ones, or nobody could tell. */
static void lost_row(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_library, "lost GPUs");
    long long lost = 0;
    row.fact = "nvml.lost";
    enum shk_look look = shk_look_int(ctx->facts, "nvml.lost", &lost);
    bool answers = shk_look(ctx->facts, "nvml.error", NULL) == SHK_LOOK_ABSENT;
    if (lost > 0) {
        shk_row_was_read(&row);
        shk_row_verdict(&row, SHK_FAIL, SHK_TESTED);
        shk_row_text(&row.observed, "%lld do not respond", lost);
        shk_row_text(&row.why, "the driver lists them, but they are lost or need a reset");
        row.diagnosis = "gpu-lost-by-driver";
        shk_row_fix(&row, "gpus-lost", NULL);
        shk_row_end(findings, &row);
    } else if (look == SHK_LOOK_FAILED && answers) {
        (void)shk_read_int(&row, "nvml.lost", &lost);
        shk_row_end(findings, &row);
    }
}

static void eval_library(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row none = shk_row_begin(ctx, &shk_check_gpu_library, "NVML");
    if (shk_read_pci_count(&none, "gpu-nvidia") == 0) {
        shk_row_na(findings, &none, "no NVIDIA GPU on this node");
        return;
    }
    free(none.unread_why);
    library_row(ctx, findings, "NVML", "nvml.error", "nvml.driver");
    library_row(ctx, findings, "CUDA", "cuda.error", "cuda.driver");
    lost_row(ctx, findings);
}

const struct shk_check shk_check_gpu_library = {
    .id = "gpu.library",
    .diagnosis = "driver-library-fails",
    .family = "devices",
    .title = "The NVIDIA driver libraries work and see every GPU",
    .eval = eval_library,
    .doc = "Facts: nvml.error, nvml.lost, cuda.error.\n"
           "An error of nvmlInit or cuInit is FAIL, with its cause where the code tells it; so is "
           "a GPU that the driver lists but that does not answer.",
};

/* Links of one GPU; of the active ones: those to a switch, those of which it is not told where they
 * lead, and how many other GPUs the rest leads to. */
struct gpu_links {
    unsigned all, active, unread;
    unsigned switched, untold, peers;
    bool mig;
};

static void note_end(struct gpu_links *links, const json_t *link, json_t *peers)
{
    const char *remote = shk_member_words(link, "remote"), *pci = shk_member_words(link, "pci");
    bool gpu = remote && pci && strcmp(remote, "gpu") == 0;
    bool onward = remote && strcmp(remote, "switch") == 0;
    links->switched += onward;
    links->untold += !gpu && !onward && !(remote && strcmp(remote, "npu") == 0);
    if (gpu && !json_object_get(peers, pci)) {
        (void)json_object_set_new(peers, pci, json_true());
        links->peers++;
    }
}

static struct gpu_links links_of(const json_t *gpu)
{
    struct gpu_links links = {.all = 0};
    json_t *list = NULL, *link, *peers = json_object();
    size_t i;
    enum shk_look look = shk_look_member_array(gpu, "links", &list);
    links.unread += look != SHK_LOOK_PRESENT;
    links.unread += shk_look_member_bool(gpu, "mig", &links.mig) == SHK_LOOK_FAILED;
    json_array_foreach(list, i, link)
    {
        bool active = false;
        links.all++;
        links.unread += shk_look_member_bool(link, "active", &active) != SHK_LOOK_PRESENT;
        links.active += active;
        if (active)
            note_end(&links, link, peers);
    }
    json_decref(peers);
    return links;
}

struct nvlinks {
    struct shk_tally tally; /* of GPUs with links */
    unsigned most, down;    /* most active links of one; links missing from that */
    unsigned bare;          /* GPUs without a bridge */
};

/* Models may have fewer links than others, so only GPUs of one model are compared. */
static unsigned most_of_model(const json_t *gpus, const char *model)
{
    unsigned most = 0;
    size_t i;
    json_t *gpu;
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        struct gpu_links links = links_of(gpu);
        if (links.active > most && strcmp(shk_member_name(gpu, "name"), model) == 0)
            most = links.active;
    }
    return most;
}

enum bare { BARE_DESIGN, BARE_FAULT, BARE_UNKNOWN };

/* A GPU without any link up, where no NVSwitch is seen. A bridge joins a GPU with one other, so
 * that one may be left over; it is no bridge where the links of a sibling lead to a switch (of
 * which a virtual machine sees nothing), or to several GPUs while some of them are down. */
static enum bare bare_of(const json_t *gpus, const char *model)
{
    enum bare bare = BARE_DESIGN;
    size_t i;
    json_t *gpu;
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        struct gpu_links links = links_of(gpu);
        if (!links.active || strcmp(shk_member_name(gpu, "name"), model) != 0)
            continue;
        if (links.switched || (links.peers > 1 && links.active < links.all))
            return BARE_FAULT;
        bare = links.untold ? BARE_UNKNOWN : bare;
    }
    return bare;
}

static void judge_links(struct nvlinks *all, const json_t *gpus, const json_t *gpu,
                        long long switches)
{
    const char *pci = shk_member_name(gpu, "pci"), *model = shk_member_name(gpu, "name");
    struct gpu_links links = links_of(gpu);
    unsigned most = most_of_model(gpus, model);
    bool dark = !links.active && (links.all || most);
    enum bare bare = dark && switches == 0 && !links.mig ? bare_of(gpus, model) : BARE_FAULT;
    if (links.unread || (dark && switches < 0) || bare == BARE_UNKNOWN) {
        shk_tally_unread(&all->tally, "%s", pci);
    } else if (links.mig || (!links.all && !most) || bare == BARE_DESIGN) {
        all->bare += bare == BARE_DESIGN;
        return;
    } else if (links.active < most) {
        shk_tally_bad(&all->tally, "%s: %u", pci, links.active);
        all->down += most - links.active;
    } else {
        shk_tally_good(&all->tally);
    }
    all->most = most > all->most ? most : all->most;
}

static void links_down(struct shk_row *row, const struct nvlinks *links, long long switches)
{
    if (!links->most) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "fabric-manager-down";
        shk_row_text(&row->observed, "no link is up, %lld NVSwitches", switches);
        shk_row_text(&row->why, "GPUs beside NVSwitches reach each other over NVLink only");
        shk_row_fix(row, "fabric-manager-start", NULL);
        return;
    }
    shk_row_text(&row->observed, "%u links down (%s)", links->down,
                 shk_strbuf_text(&links->tally.bad_names));
    shk_row_text(&row->expected, "%u up, as on the others", links->most);
    shk_row_text(&row->why, "the ring is as fast as its narrowest GPU");
    shk_row_fix(row, "nvlink-down", NULL);
}

static void judge_nvlinks(struct shk_findings *findings, struct shk_row *row, struct nvlinks *links,
                          long long switches)
{
    unsigned gpus = links->tally.good + links->tally.bad;
    bool any = shk_tally_judge(&links->tally, row, SHK_WARN, SHK_EFFECT, "nvml.devices", "GPUs");
    bool dark = any && !links->most && !links->tally.unread && switches > 0;
    if (!any || (!links->most && !dark && !links->tally.unread)) {
        json_t *list = NULL;
        if (shk_look_array(row->ctx->facts, "nvml.devices", &list) == SHK_LOOK_PRESENT &&
            !json_array_size(list))
            shk_row_lacks(row, "nvml.devices", "NVML shows this process no GPU");
        shk_row_na(findings, row, "these GPUs have no NVLink in use");
        return;
    }
    if (dark || links->tally.bad)
        links_down(row, links, switches);
    else if (links->bare)
        shk_row_text(&row->observed, "%u up on each of %u GPUs; %u without a bridge", links->most,
                     gpus, links->bare);
    else
        shk_row_text(&row->observed, "%u up on each of %u GPUs", links->most, gpus);
    shk_row_end(findings, row);
}

static void eval_nvlink(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nvlink, "nvlink-state");
    struct nvlinks links = {.tally = SHK_TALLY_INIT};
    json_t *gpus = NULL, *gpu;
    size_t i;
    row.fact = "nvml.devices";
    if (shk_read_pci_count(&row, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "no NVIDIA GPU on this node");
        return;
    }
    (void)shk_read_array(&row, "nvml.devices", &gpus);
    long long switches = shk_read_pci_count(&row, "nvswitch");
    json_array_foreach(gpus, i, gpu) judge_links(&links, gpus, gpu, switches);
    judge_nvlinks(findings, &row, &links, switches);
    shk_tally_free(&links.tally);
}

const struct shk_check shk_check_nvlink = {
    .id = "gpu.nvlink",
    .diagnosis = "gpu-nvlink-errors",
    .family = "devices",
    .title = "All NVLinks are up",
    .eval = eval_nvlink,
    .doc =
        "Facts: nvml.devices[].links, pci.count.nvswitch.\n"
        "A GPU with fewer active links than another of its model is WARN; none at all beside "
        "NVSwitches is FAIL. GPUs in MIG mode are not judged; nor is a GPU without any active link "
        "(no bridge), but where the links of another of its model lead to a switch, or to "
        "several GPUs while some of them are down.",
};

struct access {
    struct shk_row *row;
    unsigned pairs, good, refused, linked, near;
    json_t *seen; /* "gpu peer" in the order of names */
    json_t *of;   /* refused pairs that weigh, by each GPU of them */
    struct shk_strbuf names;
    struct shk_tally tally;
    const json_t *first; /* the refused pair that weighs most */
};

static bool is_link(const char *class)
{
    return strncmp(class, "NV", 2) == 0 || strcmp(class, "XGMI") == 0;
}

/* GeForce cards have had no peer access over PCIe since the RTX 30: the driver calls the chipset
 * unsupported. True also when the name was not read, which is remembered. */
static bool may_be_geforce(struct access *access, const char *pci)
{
    json_t *gpus = NULL, *gpu;
    const char *name = NULL;
    size_t i;
    (void)shk_read_array(access->row, "nvml.devices", &gpus);
    json_array_foreach(gpus, i, gpu)
    {
        if (strcmp(shk_member_name(gpu, "pci"), pci) != 0)
            continue;
        enum shk_look look = shk_read_member_text(access->row, "nvml.devices", gpu, "name", &name);
        if (look == SHK_LOOK_ABSENT)
            break;
        return !name || strstr(name, "GeForce");
    }
    if (gpus)
        shk_row_lacks(access->row, "nvml.devices", "the model of the GPU at %s was not read", pci);
    return true;
}

/* The model has no peer access at all. */
static bool is_model(struct access *access, const json_t *pair, const char *why)
{
    return strcmp(why, "GPU not supported") == 0 || strcmp(why, "not supported") == 0 ||
           (strcmp(why, "chipset not supported") == 0 &&
            may_be_geforce(access, shk_member_name(pair, "gpu")));
}

enum { PAIRS_NAMED = 4 };

static void name_pair(struct access *access, const json_t *pair)
{
    const char *one_way = shk_member_words(pair, "one_way");
    unsigned count = access->linked + access->near;
    for (int i = 0; i < 2; i++) {
        const char *pci = shk_member_name(pair, i ? "peer" : "gpu");
        json_int_t have = json_integer_value(json_object_get(access->of, pci));
        (void)json_object_set_new(access->of, pci, json_integer(have + 1));
    }
    if (count > PAIRS_NAMED)
        return;
    if (one_way)
        shk_strbuf_printf(&access->names, "%s%s", count > 1 ? ", " : "", one_way);
    else
        shk_strbuf_printf(&access->names, "%s%s with %s", count > 1 ? ", " : "",
                          shk_member_name(pair, "gpu"), shk_member_name(pair, "peer"));
}

static void note_pair(struct access *access, const json_t *pair)
{
    const char *class = NULL, *p2p = NULL;
    const char *gpu = shk_member_name(pair, "gpu"), *peer = shk_member_name(pair, "peer");
    bool swap = strcmp(gpu, peer) > 0;
    char *key = shk_strf("%s %s", swap ? peer : gpu, swap ? gpu : peer);
    bool again = !key || json_object_get(access->seen, key);
    if (!again)
        (void)json_object_set_new(access->seen, key, json_true());
    free(key);
    if (again)
        return;
    access->pairs++;
    if (shk_look_member_text(pair, "p2p", &p2p) != SHK_LOOK_PRESENT) {
        shk_tally_unread(&access->tally, "%s and %s", shk_member_name(pair, "gpu"),
                         shk_member_name(pair, "peer"));
        return;
    }
    if (strcmp(p2p, "ok") == 0) {
        access->good++;
        shk_tally_good(&access->tally);
        return;
    }
    bool told = shk_read_told_text(access->row, "topology.peers", pair, "class", &class);
    bool linked = told && is_link(class);
    bool near = told && (strcmp(class, "PIX") == 0 || strcmp(class, "PXB") == 0) &&
                !is_model(access, pair, p2p);
    if (!access->first || (linked && !access->linked) || (near && !access->near && !access->linked))
        access->first = pair;
    access->refused++;
    access->linked += linked;
    access->near += near && !linked;
    if (linked || near)
        name_pair(access, pair);
}

/* A GPU that is part of all these pairs, of several and of all that it has; else the pairs. */
static char *names_of(const struct access *access)
{
    unsigned count = access->linked + access->near;
    const char *pci;
    json_t *n;
    json_object_foreach(access->of, pci, n)
    {
        json_int_t own = json_integer_value(n);
        if (own == count && own > 1 && own * (own + 1) / 2 == access->pairs)
            return shk_strf("%s with all %u others", pci, count);
    }
    return count > PAIRS_NAMED
               ? shk_strf("%s, and %u more", shk_strbuf_text(&access->names), count - PAIRS_NAMED)
               : shk_strf("%s", shk_strbuf_text(&access->names));
}

static void refused(struct shk_row *row, const struct access *access)
{
    char *names = names_of(access);
    shk_row_verdict(row, access->linked ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->observed, "refused between %u of %u pairs: %s (%s)", access->refused,
                 access->pairs, shk_member_name(access->first, "p2p"), names ? names : "");
    shk_row_text(&row->expected, "allowed between GPUs joined by %s",
                 access->linked ? "a link" : "a PCIe switch");
    shk_row_text(&row->why, "%s and %s (%s) exchange data through host memory",
                 shk_member_name(access->first, "gpu"), shk_member_name(access->first, "peer"),
                 shk_member_name(access->first, "class"));
    shk_row_fix(row, access->linked ? "peer-linked" : "peer-pcie", NULL);
    free(names);
}

/* Of pairs that the list leaves out nothing is known. */
static void note_missing(struct access *access, long long on_bus)
{
    json_t *gpus = NULL;
    (void)shk_look_array(access->row->ctx->facts, "topology.gpus", &gpus);
    size_t shown = json_array_size(gpus);
    size_t count = on_bus > 0 && (size_t)on_bus > shown ? (size_t)on_bus : shown;
    size_t all = count * (count - 1) / 2;
    if (count && access->pairs < all)
        shk_row_lacks(access->row, "topology.peers", "%u of %zu pairs of GPUs are known",
                      access->pairs, all);
}

static void judge_access(struct shk_findings *findings, struct shk_row *row, struct access *access)
{
    if (access->tally.unread)
        (void)shk_tally_judge(&access->tally, row, SHK_WARN, SHK_EFFECT, "topology.peers", "pairs");
    if (access->linked || access->near) {
        refused(row, access);
    } else if (access->refused) {
        shk_row_na(findings, row,
                   "the driver offers none between %u of %u pairs (%s): NCCL uses "
                   "host memory",
                   access->refused, access->pairs, shk_member_name(access->first, "p2p"));
        return;
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        if (!access->tally.unread)
            shk_row_text(&row->observed, "between all %u pairs", access->good);
    }
    shk_row_end(findings, row);
}

static void eval_access(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_peer_access, "GPU peer access");
    json_t *pairs = NULL, *pair;
    struct access access = {.row = &row, .names = SHK_STRBUF_INIT, .tally = SHK_TALLY_INIT};
    size_t i;
    row.fact = "topology.peers, nvml.p2p, cuda.p2p, gpu.amd.links";
    row.source = "NVIDIA/nccl:src/graph/paths.cc";
    long long gpus = shk_read_gpu_count(&row);
    if (gpus == 0) {
        shk_row_na(findings, &row, "fewer than two GPUs");
        return;
    }
    if (shk_read_pci_count(&row, "neuron") > 0) {
        shk_row_na(findings, &row, "Neuron devices have their own links");
        return;
    }
    if (shk_read_array(&row, "topology.peers", &pairs) == SHK_LOOK_PRESENT && gpus > 1 &&
        json_array_size(pairs) == 0)
        shk_row_lacks(&row, "topology.peers", "no pair of the %lld GPUs is known", gpus);
    access.seen = json_object();
    access.of = json_object();
    json_array_foreach(pairs, i, pair) note_pair(&access, pair);
    if (access.pairs)
        note_missing(&access, gpus);
    if (!access.pairs)
        shk_row_na(findings, &row, "fewer than two GPUs");
    else
        judge_access(findings, &row, &access);
    shk_tally_free(&access.tally);
    shk_strbuf_free(&access.names);
    json_decref(access.seen);
    json_decref(access.of);
}

const struct shk_check shk_check_peer_access = {
    .id = "gpu.peer_access",
    .diagnosis = "nvlink-p2p-disabled",
    .family = "devices",
    .title = "GPUs can access each other's memory",
    .eval = eval_access,
    .doc = "Facts: topology.peers, from nvml.p2p, cuda.p2p and gpu.amd.links.\n"
           "Refused between GPUs joined by NVLink or XGMI is FAIL, between GPUs below one PCIe "
           "switch WARN, unless the model has no peer access. Refused only between GPUs that are "
           "farther apart is n/a: most such machines have none.",
};
