/* Where GPUs, NICs and the ranks that use them sit. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"
#include "checks/value/grammar.h"
#include "checks/value/makers.h"
#include "core/text/cpulist.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

static const json_t *row_of(const json_t *list, const char *pci)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)list, i, row)
    {
        if (pci && strcasecmp(shk_member_name(row, "pci"), pci) == 0)
            return row;
    }
    return NULL;
}

struct rails {
    struct shk_row *row;
    json_t *gpus, *nics;
    unsigned fabric, shared, far;
    struct shk_tally tally; /* of GPUs */
    struct shk_strbuf map;
    const char *first_far;
};

/* A function whose NUMA node could not be read seems to be beside no processor. */
static bool is_placed(const struct rails *rails, const char *pci)
{
    const json_t *device = shk_pci_find(rails->row->ctx->facts, pci);
    long long numa = 0;
    return !device || shk_look_member_int(device, "numa", &numa) != SHK_LOOK_FAILED;
}

static void map_gpu(struct rails *rails, const json_t *gpu)
{
    const char *class = NULL, *name = NULL, *nic = NULL, *to = NULL;
    bool told = shk_look_member_text(gpu, "class", &class) == SHK_LOOK_PRESENT;
    told &= shk_look_member_text(gpu, "name", &name) == SHK_LOOK_PRESENT;
    told &= shk_look_member_text(gpu, "nic", &nic) == SHK_LOOK_PRESENT;
    told &= shk_look_member_text(row_of(rails->nics, nic), "name", &to) == SHK_LOOK_PRESENT;
    bool far = told && strcmp(class, "SYS") == 0;
    if (!told ||
        (far && !(is_placed(rails, shk_member_name(gpu, "pci")) && is_placed(rails, nic)))) {
        shk_tally_unread(&rails->tally, "%s", shk_member_name(gpu, "pci"));
        return;
    }
    shk_tally_good(&rails->tally);
    if (far && rails->far++ == 0)
        rails->first_far = name;
    shk_strbuf_printf(&rails->map, "%s%s %s %s", rails->map.len ? ", " : "", name, class, to);
}

static void read_nics(struct rails *rails)
{
    json_t *nic;
    size_t i;
    json_array_foreach(rails->nics, i, nic)
    {
        bool fabric = false;
        json_t *gpus = NULL;
        (void)shk_read_told_bool(rails->row, "topology.nics", nic, "fabric", &fabric);
        (void)shk_look_member_array(nic, "gpus", &gpus);
        rails->fabric += fabric;
        rails->shared += json_array_size(gpus) > 1;
    }
}

static void too_far(struct shk_row *row, const struct rails *rails)
{
    bool guest = false;
    (void)shk_read_guest(row, &guest);
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = guest ? "vm-topology-missing" : "nic-numa-unknown";
    shk_row_text(&row->expected, "a NIC on the same NUMA node for each of %zu GPUs",
                 json_array_size(rails->gpus));
    shk_row_text(&row->why,
                 "there are %u fabric NICs, but %u GPUs, %s first, have none on their NUMA "
                 "node: either the cards are in the wrong slots, or the topology shown is not "
                 "the real one",
                 rails->fabric, rails->far, rails->first_far ? rails->first_far : "one");
    shk_row_fix(row, guest ? "topology-guest" : "topology-compare", NULL);
}

static void judge_rails(struct shk_findings *findings, struct shk_row *row, struct rails *rails)
{
    json_t *gpu;
    size_t i;
    json_array_foreach(rails->gpus, i, gpu) map_gpu(rails, gpu);
    (void)shk_tally_judge(&rails->tally, row, SHK_WARN, SHK_EFFECT, "topology.gpus", "GPUs");
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&rails->map));
    if (rails->far && rails->fabric >= json_array_size(rails->gpus))
        too_far(row, rails);
    else if (rails->shared)
        shk_row_text(&row->why, "%u of %u NICs serve several GPUs", rails->shared, rails->fabric);
    shk_row_end(findings, row);
}

static void eval_nearest(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nearest_nic, "nearest NICs");
    struct rails rails = {.row = &row, .map = SHK_STRBUF_INIT, .tally = SHK_TALLY_INIT};
    row.fact = "topology.gpus, topology.nics";
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    if (shk_read_array(&row, "topology.gpus", &rails.gpus) == SHK_LOOK_PRESENT &&
        !json_array_size(rails.gpus)) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    (void)shk_read_array(&row, "topology.nics", &rails.nics);
    read_nics(&rails);
    if (!rails.fabric)
        shk_row_na(findings, &row, "no fabric NIC on this node");
    else
        judge_rails(findings, &row, &rails);
    shk_strbuf_free(&rails.map);
    shk_tally_free(&rails.tally);
}

const struct shk_check shk_check_nearest_nic = {
    .id = "topology.nic",
    .family = "devices",
    .title = "Each GPU has a NIC near it",
    .eval = eval_nearest,
    .doc = "Facts: topology.gpus, topology.nics (from hwloc), pci.devices[].numa.\n"
           "With at least as many fabric NICs as GPUs, a GPU whose nearest NIC is on another NUMA "
           "node (SYS) is WARN, unless the NUMA node of one of them could not be read. The "
           "observation is the rail map: GPU, distance, NIC.",
};

/* Kind of a function that the file names: -1 neither GPU nor NIC. */
static bool is_endpoint(const json_t *function)
{
    const char *class = NULL;
    bool told = shk_look_member_text(function, "class", &class) == SHK_LOOK_PRESENT;
    unsigned long base = told ? strtoul(class, NULL, 16) >> 16 : 0;
    return !told || base == 0x02 || base == 0x03 || base == 0x12 || base == 0x08;
}

struct named {
    unsigned total, missing, gpus_left_out;
    struct shk_strbuf names;
};

static void compare_file(struct shk_row *row, const json_t *functions, struct named *named)
{
    json_t *function, *device;
    size_t i;
    json_array_foreach((json_t *)functions, i, function)
    {
        const char *pci = NULL;
        if (!shk_read_told_text(row, "topology.nccl_file", function, "pci", &pci) ||
            !is_endpoint(function))
            continue;
        named->total++;
        if (shk_pci_find(row->ctx->facts, pci))
            continue;
        named->missing++;
        if (named->names.len < 80)
            shk_strbuf_printf(&named->names, "%s%s", named->names.len ? ", " : "", pci);
    }
    json_t *all = shk_read_pci_devices(row);
    json_array_foreach(all, i, device)
    {
        if (shk_read_pci_role(row, device) == SHK_PCI_GPU &&
            !row_of(functions, shk_member_name(device, "addr")))
            named->gpus_left_out++;
    }
}

static void wrong_file(struct shk_row *row, const char *observed, const char *why)
{
    row->diagnosis = "topo-file-mismatch";
    shk_row_text(&row->observed, "%s", observed);
    shk_row_text(&row->why, "%s", why);
    shk_row_fix(row, "topology-file", NULL);
}

static void other_machine(struct shk_row *row, const struct named *named, const char *path)
{
    char *seen = shk_strf("%u of %u functions are not on this node%s%s, %u GPUs not in it",
                          named->missing, named->total, named->missing ? ": " : "",
                          shk_strbuf_text(&named->names), named->gpus_left_out);
    char *why =
        shk_strf("%s describes another machine, so NCCL takes near devices for far ones", path);
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->expected, "the GPUs and NICs of this node");
    wrong_file(row, seen ? seen : "", why ? why : "");
    free(seen);
    free(why);
}

static void judge_file(struct shk_row *row, const json_t *file)
{
    static const char key[] = "topology.nccl_file";
    struct named named = {.names = SHK_STRBUF_INIT};
    json_t *functions = NULL, *devices = NULL;
    const char *path = "the file";
    (void)shk_read_told_text(row, key, file, "path", &path);
    (void)shk_read_told_array(row, key, file, "functions", &functions);
    compare_file(row, functions, &named);
    bool both =
        functions && shk_look_array(row->ctx->facts, "pci.devices", &devices) == SHK_LOOK_PRESENT;
    if (both && (named.missing || named.gpus_left_out) && !shk_row_lacking(row)) {
        other_machine(row, &named, path);
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "all %u functions of %s are here", named.total, path);
    }
    shk_strbuf_free(&named.names);
}

static void eval_file(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "topology.nccl_file";
    char name[160];
    snprintf(name, sizeof name, "%s and the bus", shk_variable("topology-file"));
    struct shk_row row = shk_row_begin(ctx, &shk_check_topo_file, name);
    const char *problem = NULL, *asked = NULL;
    json_t *file = NULL;
    struct shk_fact fact = {.reason = NULL};
    row.fact = "topology.nccl_file, pci.devices";
    row.source = "NVIDIA/nccl:src/graph/topo.cc";
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no topology file is read");
        return;
    }
    enum shk_look look = shk_read_object(&row, key, &file);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no topology file is read");
        return;
    }
    bool unusable =
        shk_look(ctx->facts, key, &fact) == SHK_LOOK_FAILED &&
        shk_look_env(ctx->facts, shk_variable("topology-file"), &asked) == SHK_LOOK_PRESENT;
    if (unusable &&
        shk_read_text(&row, "topology.nccl_file.problem", &problem) == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        wrong_file(&row, strcmp(problem, "missing") == 0 ? "no such file" : "not usable",
                   fact.reason ? fact.reason : "NCCL cannot read it");
    } else if (look == SHK_LOOK_PRESENT) {
        judge_file(&row, file);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_topo_file = {
    .id = "topology.file",
    .diagnosis = "topo-file-mismatch",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "NCCL's topology file describes this node",
    .eval = eval_file,
    .doc =
        "Facts: topology.nccl_file, topology.nccl_file.problem, pci.devices, env.{topology-file}.\n"
        "A file that was asked for and is missing or no XML is FAIL; one that names GPUs or "
        "NICs that are not on the bus, or leaves out a GPU, WARN.",
};

/* The GPUs in the order that numbers in a mask mean; NULL: none was read. */
static const json_t *gpus_in_order(const struct shk_facts *facts)
{
    static const char *const lists[] = {"nvml.devices", "gpu.amd.devices", "topology.gpus"};
    json_t *gpus = NULL;
    for (size_t i = 0; i < 3 && !json_array_size(gpus); i++)
        (void)shk_look_array(facts, lists[i], &gpus);
    return gpus;
}

/* The mask that applies; what was not read of the environment is remembered. */
static const char *read_mask(struct shk_row *row)
{
    static const enum shk_mask order[] = {SHK_MASK_NVIDIA, SHK_MASK_AMD, SHK_MASK_AMD_FIRST,
                                          SHK_MASK_NONE};
    const struct shk_masks masks = shk_masks(row->ctx->config, order);
    const char *mask = NULL;
    for (const char *const *name = masks.names; *name && !mask; name++)
        if (shk_look_env(row->ctx->facts, *name, &mask) == SHK_LOOK_FAILED)
            (void)shk_read_env(row, *name, &mask);
    return mask;
}

/* Number of the GPU that local rank `rank` takes under `mask`; -1: that cannot be told. */
static long long masked_index(const char *mask, long long rank)
{
    const char *rest = mask, *start;
    long long n = 0;
    size_t len;
    while (shk_grammar_item(&rest, ',', &start, &len))
        n++;
    if (n > 1 && rank >= n)
        return -1;
    rest = mask;
    for (long long i = 0; shk_grammar_item(&rest, ',', &start, &len); i++) {
        char *end;
        if (i != (n == 1 ? 0 : rank))
            continue;
        long long index = strtol(start, &end, 10);
        return end == start + len ? index : -1;
    }
    return rank;
}

/* Address of the GPU that this rank takes; NULL when that cannot be told. */
static const char *gpu_of_rank(struct shk_row *row, long long rank)
{
    const char *mask = read_mask(row), *pci = NULL;
    long long index = mask && *mask ? masked_index(mask, rank) : rank;
    if (index >= 0)
        (void)shk_look_member_text(json_array_get(gpus_in_order(row->ctx->facts), (size_t)index),
                                   "pci", &pci);
    return pci;
}

/* Do these processors touch the neighbourhood of every GPU? Then nobody bound the rank. */
static bool is_unbound(struct shk_row *row, const json_t *gpus, const char *cpus)
{
    size_t i;
    json_t *gpu;
    bool all = true;
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        const char *near = NULL;
        if (!shk_read_told_text(row, "topology.gpus", gpu, "cpus", &near))
            continue;
        if (!shk_cpulist_valid(near))
            shk_row_lacks(row, "topology.gpus", "\"%s\" names no processors beside %s", near,
                          shk_member_name(gpu, "pci"));
        else
            all &= shk_cpulist_meet(cpus, near);
    }
    return all;
}

static void judge_binding(struct shk_row *row, const json_t *gpus, long long rank, const char *cpus)
{
    const json_t *gpu = row_of(gpus, gpu_of_rank(row, rank));
    const char *near = NULL;
    if (shk_look_member_text(gpu, "cpus", &near) != SHK_LOOK_PRESENT || !shk_cpulist_valid(near)) {
        shk_row_lacks(row, "topology.gpus", "which GPU local rank %lld uses is unknown", rank);
        return;
    }
    bool meet = shk_cpulist_meet(cpus, near);
    if (!meet && shk_row_lacking(row))
        return;
    shk_row_verdict(row, meet ? SHK_PASS : SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->observed, "local rank %lld on %s, GPU at %s beside %s", rank, cpus,
                 shk_member_name(gpu, "pci"), near);
    if (!meet) {
        shk_row_text(&row->expected, "processors of %s", near);
        shk_row_text(&row->why, "the rank runs on the other side of the machine than its GPU "
                                "and NIC: every launch and message crosses it");
        shk_row_fix(row, "gpu-binding", NULL);
    }
}

/* Facts of a node by itself need not say that there is no rank. */
static bool outside_of_jobs(const struct shk_facts *facts)
{
    const char *launcher = NULL;
    return shk_look(facts, "job.local_rank", NULL) == SHK_LOOK_MISSING &&
           shk_look_text(facts, "job.launcher", &launcher) == SHK_LOOK_PRESENT &&
           strcmp(launcher, "local") == 0;
}

static void eval_binding(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_binding, "CPU binding");
    const char *cpus = NULL;
    json_t *gpus = NULL;
    long long rank = -1;
    row.fact = "host.affinity, topology.gpus, job.local_rank";
    bool outside = outside_of_jobs(ctx->facts);
    if (outside)
        shk_row_was_read(&row);
    if (outside || shk_read_int(&row, "job.local_rank", &rank) == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "not a rank of a job");
        return;
    }
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    if (shk_read_text(&row, "host.affinity", &cpus) == SHK_LOOK_PRESENT &&
        !shk_cpulist_valid(cpus)) {
        shk_row_lacks(&row, "host.affinity", "\"%s\" names no processors", cpus);
        cpus = NULL;
    }
    (void)shk_read_array(&row, "topology.gpus", &gpus);
    if (gpus && !json_array_size(gpus)) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (rank < 0 || !cpus || !gpus) {
        shk_row_lacks(&row, "job.local_rank", "job.local_rank has an unexpected form");
        shk_row_end(findings, &row);
    } else if (is_unbound(&row, gpus, cpus)) {
        shk_row_na(findings, &row, "the rank is not bound to processors of one GPU");
    } else {
        judge_binding(&row, gpus, rank, cpus);
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_binding = {
    .id = "topology.binding",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "The rank runs on CPUs close to its GPU",
    .eval = eval_binding,
    .doc = "Facts: host.affinity, topology.gpus[].cpus, job.local_rank, env.*_VISIBLE_DEVICES.\n"
           "Judged for the rank that gathers facts: bound to processors none of which is beside "
           "the GPU of its local rank is WARN.",
};
