/* Where GPUs, NICs and the ranks that use them sit. */
#include "checks/grammar.h"
#include "checks/pci.h"

#include <string.h>
#include <strings.h>

static const json_t *row_of(const json_t *list, const char *pci)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)list, i, row)
    {
        const char *text = shk_member_text(row, "pci");
        if (text && pci && strcasecmp(text, pci) == 0)
            return row;
    }
    return NULL;
}

struct rails {
    unsigned gpus, fabric, shared, far, blind;
    struct shk_strbuf map;
    const char *first_far;
};

static void map_gpu(struct rails *rails, const json_t *nics, const json_t *gpu)
{
    const char *class = shk_member_text(gpu, "class"), *name = shk_member_text(gpu, "name");
    const json_t *nic = row_of(nics, shk_member_text(gpu, "nic"));
    const char *to = shk_member_text(nic, "name");
    rails->gpus++;
    if (!class || !to) {
        rails->blind++;
        return;
    }
    if (strcmp(class, "SYS") == 0 && rails->far++ == 0)
        rails->first_far = name;
    shk_strbuf_printf(&rails->map, "%s%s %s %s", rails->map.len ? ", " : "", name ? name : "GPU",
                      class, to);
}

static void map_all(const struct shk_facts *facts, struct rails *rails)
{
    json_t *gpus = shk_facts_get_array(facts, "topology.gpus"), *row;
    json_t *nics = shk_facts_get_array(facts, "topology.nics");
    size_t i;
    json_array_foreach(nics, i, row)
    {
        rails->fabric += shk_member_bool(row, "fabric", false);
        rails->shared += json_array_size(json_object_get(row, "gpus")) > 1;
    }
    json_array_foreach(gpus, i, row) map_gpu(rails, nics, row);
}

static void eval_nearest(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_nearest_nic, "nearest NICs");
    struct rails rails = {.map = SHK_STRBUF_INIT};
    row.fact = "topology.gpus, topology.nics";
    map_all(ctx->facts, &rails);
    if (shk_gpu_count(ctx->facts) == 0 ||
        (shk_facts_get_array(ctx->facts, "topology.gpus") && !rails.gpus)) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (!shk_facts_get_array(ctx->facts, "topology.gpus")) {
        shk_row_unread(findings, &row, ctx->facts, "topology.gpus");
    } else if (!rails.fabric) {
        shk_row_na(findings, &row, "no fabric NIC on this node");
    } else if (rails.far && rails.fabric >= rails.gpus) {
        bool guest = shk_is_guest(ctx->facts);
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = guest ? "vm-topology-missing" : "nic-numa-unknown";
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&rails.map));
        shk_row_text(&row.expected, "a NIC on the same NUMA node for each of %u GPUs", rails.gpus);
        shk_row_text(&row.why,
                     "there are %u fabric NICs, but %u GPUs, %s first, have none on their side of "
                     "the machine: either they are plugged in wrong, or the topology shown is not "
                     "the real one",
                     rails.fabric, rails.far, rails.first_far ? rails.first_far : "one");
        shk_row_text(&row.fix, guest ? "set NCCL_TOPO_FILE to the file that the provider gives"
                                     : "compare lstopo with the manual of the machine");
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&rails.map));
        if (rails.shared)
            shk_row_text(&row.why, "%u of %u NICs serve several GPUs", rails.shared, rails.fabric);
        shk_row_end(findings, &row);
    }
    shk_strbuf_free(&rails.map);
}

const struct shk_check shk_check_nearest_nic = {
    .id = "topology.nic",
    .family = "devices",
    .title = "Each GPU has a NIC near it",
    .eval = eval_nearest,
    .doc = "Facts: topology.gpus, topology.nics (from hwloc).\n"
           "With at least as many fabric NICs as GPUs, a GPU whose nearest NIC is on another NUMA "
           "node (SYS) is WARN. The observation is the rail map: GPU, distance, NIC.",
};

/* Kind of a function that the file names: -1 neither GPU nor NIC. */
static bool is_endpoint(const json_t *function)
{
    const char *class = shk_member_text(function, "class");
    unsigned long base = class ? strtoul(class, NULL, 16) >> 16 : 0;
    return !class || base == 0x02 || base == 0x03 || base == 0x12 || base == 0x08;
}

struct named {
    unsigned total, missing, gpus_left_out;
    struct shk_strbuf names;
};

static void compare_file(const struct shk_facts *facts, const json_t *functions,
                         struct named *named)
{
    json_t *function, *device;
    size_t i;
    json_array_foreach((json_t *)functions, i, function)
    {
        const char *pci = shk_member_text(function, "pci");
        if (!pci || !is_endpoint(function))
            continue;
        named->total++;
        if (shk_pci_find(facts, pci))
            continue;
        named->missing++;
        if (named->names.len < 80)
            shk_strbuf_printf(&named->names, "%s%s", named->names.len ? ", " : "", pci);
    }
    json_array_foreach(shk_facts_get_array(facts, "pci.devices"), i, device)
    {
        if (shk_pci_is_gpu(device) && !row_of(functions, shk_member_text(device, "addr")))
            named->gpus_left_out++;
    }
}

static void eval_file(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "topology.nccl_file";
    struct shk_row row = shk_row_start(&shk_check_topo_file, "NCCL_TOPO_FILE and the bus");
    struct named named = {.names = SHK_STRBUF_INIT};
    const json_t *file = shk_facts_get_object(ctx->facts, key);
    const json_t *functions = json_object_get(file, "functions");
    struct shk_fact fact;
    enum shk_look look = shk_look(ctx->facts, key, &fact);
    row.fact = "topology.nccl_file, pci.devices";
    row.source = "NVIDIA/nccl:src/graph/topo.cc";
    compare_file(ctx->facts, functions, &named);
    if (look == SHK_LOOK_ABSENT || shk_gpu_count(ctx->facts) == 0) {
        shk_row_na(findings, &row, "no topology file is read");
    } else if (look == SHK_LOOK_FAILED && shk_env_get(ctx->facts, "NCCL_TOPO_FILE")) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "topo-file-mismatch";
        shk_row_text(&row.observed, "not usable");
        shk_row_text(&row.why, "%s", fact.reason ? fact.reason : "it cannot be read");
        shk_row_text(&row.fix, "name the file that belongs to this type of node, or unset "
                               "NCCL_TOPO_FILE");
        shk_row_end(findings, &row);
    } else if (!file || !shk_facts_get_array(ctx->facts, "pci.devices")) {
        shk_row_unread(findings, &row, ctx->facts, file ? "pci.devices" : key);
    } else if (named.missing || named.gpus_left_out) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = "topo-file-mismatch";
        shk_row_text(&row.observed,
                     "%u of %u functions are not on this node%s%s, %u GPUs not in it",
                     named.missing, named.total, named.missing ? ": " : "",
                     shk_strbuf_text(&named.names), named.gpus_left_out);
        shk_row_text(&row.expected, "the GPUs and NICs of this node");
        shk_row_text(&row.why,
                     "%s describes another machine, so NCCL takes near devices for far "
                     "ones",
                     shk_member_text(file, "path"));
        shk_row_text(&row.fix, "name the file that belongs to this type of node, or unset "
                               "NCCL_TOPO_FILE");
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "all %u functions of %s are here", named.total,
                     shk_member_text(file, "path"));
        shk_row_end(findings, &row);
    }
    shk_strbuf_free(&named.names);
}

const struct shk_check shk_check_topo_file = {
    .id = "topology.file",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "NCCL's topology file describes this node",
    .eval = eval_file,
    .doc = "Facts: topology.nccl_file, pci.devices, env.NCCL_TOPO_FILE.\n"
           "A file that was asked for and is missing or no XML is FAIL; one that names GPUs or "
           "NICs that are not on the bus, or leaves out a GPU, WARN.",
};

/* Do two lists of processors ("0-3,8") have one in common? */
static bool lists_meet(const char *a, const char *b)
{
    const char *start;
    size_t len;
    while (shk_grammar_item(&a, ',', &start, &len)) {
        char *end;
        long first = strtol(start, &end, 10),
             last = *end == '-' ? strtol(end + 1, NULL, 10) : first;
        const char *rest = b, *other;
        size_t n;
        while (shk_grammar_item(&rest, ',', &other, &n)) {
            long low = strtol(other, &end, 10),
                 high = *end == '-' ? strtol(end + 1, NULL, 10) : low;
            if (first <= high && low <= last)
                return true;
        }
    }
    return false;
}

/* Address of the GPU that this rank takes; NULL when that cannot be told. */
static const char *gpu_of_rank(const struct shk_facts *facts, long long rank)
{
    static const char *const masks[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES"};
    static const char *const lists[] = {"nvml.devices", "gpu.amd.devices", "topology.gpus"};
    const char *mask = NULL, *start;
    const json_t *gpus = NULL;
    size_t len, n = 0;
    long long index = rank;
    for (size_t i = 0; i < 3 && !mask; i++)
        mask = shk_env_get(facts, masks[i]);
    for (size_t i = 0; i < 3 && !json_array_size(gpus); i++)
        gpus = shk_facts_get_array(facts, lists[i]);
    if (mask && *mask) {
        const char *rest = mask;
        while (shk_grammar_item(&rest, ',', &start, &len))
            n++;
        rest = mask;
        for (long long i = 0; shk_grammar_item(&rest, ',', &start, &len); i++)
            if (i == (n == 1 ? 0 : rank)) {
                char *end;
                index = strtol(start, &end, 10);
                if (end != start + len)
                    return NULL;
            }
        if (n > 1 && rank >= (long long)n)
            return NULL;
    }
    return index >= 0 ? shk_member_text(json_array_get(gpus, (size_t)index), "pci") : NULL;
}

/* Do these processors touch the neighbourhood of every GPU? Then nobody bound the rank. */
static bool is_unbound(const json_t *gpus, const char *cpus)
{
    size_t i;
    json_t *gpu;
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        const char *near = shk_member_text(gpu, "cpus");
        if (near && !lists_meet(cpus, near))
            return false;
    }
    return true;
}

static void eval_binding(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_binding, "CPU binding");
    const char *cpus = shk_facts_get_text(ctx->facts, "host.affinity");
    const json_t *gpus = shk_facts_get_array(ctx->facts, "topology.gpus");
    long long rank = shk_facts_get_int(ctx->facts, "job.local_rank", -1);
    const char *pci = rank >= 0 ? gpu_of_rank(ctx->facts, rank) : NULL;
    const json_t *gpu = row_of(gpus, pci);
    const char *near = shk_member_text(gpu, "cpus"), *name = shk_member_text(gpu, "name");
    row.fact = "host.affinity, topology.gpus, job.local_rank";
    if (shk_gpu_count(ctx->facts) == 0 || (gpus && json_array_size(gpus) == 0)) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (rank < 0) {
        shk_row_na(findings, &row, "not a rank of a job");
    } else if (!cpus) {
        shk_row_unread(findings, &row, ctx->facts, "host.affinity");
    } else if (!gpus) {
        shk_row_unread(findings, &row, ctx->facts, "topology.gpus");
    } else if (is_unbound(gpus, cpus)) {
        shk_row_na(findings, &row, "the rank is not bound to processors of one GPU");
    } else if (!gpu || !near) {
        shk_row_text(&row.why, "which GPU local rank %lld takes cannot be told", rank);
        shk_row_end(findings, &row);
    } else {
        bool meet = lists_meet(cpus, near);
        shk_row_verdict(&row, meet ? SHK_PASS : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "local rank %lld on %s, %s beside %s", rank, cpus, name, near);
        if (!meet) {
            shk_row_text(&row.expected, "processors of %s", near);
            shk_row_text(&row.why, "the rank runs on the other side of the machine than its GPU "
                                   "and NIC: every launch and message crosses it");
            shk_row_text(&row.fix, "--gpu-bind=closest, or a --cpu-bind map in the order of the "
                                   "GPUs");
        }
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_binding = {
    .id = "topology.binding",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "devices",
    .title = "The rank runs on processors beside its GPU",
    .eval = eval_binding,
    .doc = "Facts: host.affinity, topology.gpus[].cpus, job.local_rank, env.*_VISIBLE_DEVICES.\n"
           "Judged for the rank that gathers facts: bound to processors none of which is beside "
           "the GPU of its local rank is WARN.",
};
