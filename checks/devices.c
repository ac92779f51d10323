#include "checks/coded.h"

#include <string.h>

static const struct {
    const char *name, *kind, *list, *node;
} makers[] = {
    {"nvidia", "gpu-nvidia", "gpu.nvidia.devices", "dev.nvidia0"},
    {"amd", "gpu-amd", "gpu.amd.devices", "dev.kfd"},
    {"neuron", "neuron", "neuron.devices", "dev.neuron0"},
};
enum { MAKERS = sizeof(makers) / sizeof(makers[0]) };

static const char *count_fact(size_t maker)
{
    static const char *const keys[MAKERS] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd",
                                             "pci.count.neuron"};
    return keys[maker];
}

static void eval_presence(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_gpu_presence, "accelerators");
    const char *want = ctx->profile->gpu ? ctx->profile->gpu : "any";
    struct shk_strbuf have = SHK_STRBUF_INIT;
    long long wanted = 0;
    bool unknown = false;
    row.fact = "pci.count.*";
    for (size_t i = 0; i < MAKERS; i++) {
        long long count = shk_device_count(ctx->facts, makers[i].kind);
        if (count > 0)
            shk_strbuf_printf(&have, "%s%lld %s", have.len ? ", " : "", count, makers[i].name);
        if (strcmp(want, makers[i].name) == 0) {
            wanted = count;
            unknown = count < 0;
            row.fact = count_fact(i);
        }
    }
    shk_row_text(&row.observed, "%s", have.len ? shk_strbuf_text(&have) : "none");
    if (strcmp(want, "any") == 0 || strcmp(want, "none") == 0) {
        if (have.len)
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        else if (shk_gpu_count(ctx->facts) < 0)
            shk_row_text(&row.why, "the devices of this node were not read");
        else
            shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
    } else if (unknown) {
        row.required = 1;
        shk_row_text(&row.why, "the devices of this node were not read");
    } else if (wanted > 0) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    } else {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = shk_container(ctx->facts) ? "gpu-device-not-in-container" : NULL;
        shk_row_text(&row.expected, "%s", want);
        shk_row_text(&row.why, "profile %s is for nodes with %s accelerators", ctx->profile->name,
                     want);
        shk_row_text(&row.fix, "ask for a GPU node, or choose another profile");
    }
    shk_strbuf_free(&have);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_gpu_presence = {
    .id = "gpu.presence",
    .family = "devices",
    .title = "The accelerators of the profile are on the node",
    .eval = eval_presence,
    .doc = "Facts: pci.count.*, gpu.*.devices.\n"
           "The profile names the maker; none of that kind is FAIL. With 'any' a node without "
           "accelerator is n/a.",
};

static bool any_node(const struct shk_facts *facts, const char *node)
{
    return shk_look(facts, node, NULL) == SHK_LOOK_PRESENT;
}

static void eval_driver(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < MAKERS; i++) {
        long long bus = shk_facts_get_int(ctx->facts, count_fact(i), -1);
        if (bus <= 0)
            continue;
        char *setting = shk_strf("%s driver", makers[i].name);
        struct shk_row row = shk_row_start(&shk_check_gpu_driver, setting ? setting : "driver");
        struct shk_fact fact;
        enum shk_look look = shk_look(ctx->facts, makers[i].list, &fact);
        long long seen = look == SHK_LOOK_PRESENT && json_is_array(fact.value)
                             ? (long long)json_array_size(fact.value)
                         : look == SHK_LOOK_ABSENT ? 0
                                                   : -1;
        row.fact = makers[i].list;
        row.required = 1;
        if (seen < 0) {
            shk_row_unread(findings, &row, ctx->facts, makers[i].list);
        } else {
            shk_row_text(&row.observed, "%lld of %lld on the bus", seen, bus);
            shk_row_verdict(&row, seen >= bus ? SHK_PASS : seen ? SHK_WARN : SHK_FAIL, SHK_EFFECT);
            if (seen < bus) {
                bool hidden = shk_container(ctx->facts) && !any_node(ctx->facts, makers[i].node);
                row.diagnosis = hidden ? "gpu-device-not-in-container"
                                : seen ? "gpu-cgroup-isolation"
                                       : "accelerator-driver-missing";
                shk_row_text(&row.expected, "%lld", bus);
                shk_row_text(&row.why, seen ? "some accelerators are hidden from this process"
                                       : hidden
                                           ? "the accelerators were not passed into the container"
                                           : "no driver serves the accelerators");
                shk_row_text(&row.fix,
                             hidden ? "start the container with the GPU option of its "
                                      "engine"
                                    : "%s",
                             "check the driver (dmesg) and the device cgroup of the job");
            }
            shk_row_end(findings, &row);
        }
        free(setting);
    }
}

const struct shk_check shk_check_gpu_driver = {
    .id = "gpu.driver",
    .family = "devices",
    .title = "The driver serves every accelerator on the bus",
    .eval = eval_driver,
    .doc = "Facts: pci.count.*, gpu.nvidia.devices, gpu.amd.devices, neuron.devices.\n"
           "None served is FAIL, fewer than on the bus WARN.",
};

/* Device nodes that a job opens, and for which hardware they matter. */
static const struct {
    const char *prefix, *kind, *diagnosis, *fix;
} nodes[] = {
    {"dev.kfd", "gpu-amd", "gpu-device-permission", "add the user to group render"},
    {"dev.dri/renderD", "gpu-amd", "gpu-device-permission", "add the user to group render"},
    {"dev.nvidia", "gpu-nvidia", "gpu-device-permission", "check the mode of /dev/nvidia*"},
    {"dev.neuron", "neuron", "gpu-device-permission", "check the mode of /dev/neuron*"},
    {"dev.cxi", "cxi", NULL, "check the mode of /dev/cxi*"},
    {"dev.infiniband/uverbs", NULL, "rdma-device-not-in-container",
     "check the mode of /dev/infiniband/uverbs*"},
};

struct access {
    unsigned total;
    struct shk_strbuf refused;
};

static int note_node(const struct shk_fact *fact, void *arg)
{
    struct access *access = arg;
    if (fact->state != SHK_FACT_PRESENT || !json_is_boolean(json_object_get(fact->value, "rw")))
        return 0;
    access->total++;
    if (!shk_member_bool(fact->value, "rw", true) && access->refused.len < 160)
        shk_strbuf_printf(&access->refused, "%s/dev/%s", access->refused.len ? ", " : "",
                          fact->key + strlen("dev."));
    return 0;
}

static void eval_access(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct access access = {.refused = SHK_STRBUF_INIT};
        if (nodes[i].kind && shk_device_count(ctx->facts, nodes[i].kind) == 0)
            continue;
        if (!nodes[i].kind && !shk_profile_is_rdma(ctx->profile))
            continue;
        (void)shk_facts_each(ctx->facts, nodes[i].prefix, note_node, &access);
        if (access.total) {
            char *setting = shk_strf("/dev/%s", nodes[i].prefix + strlen("dev."));
            struct shk_row row = shk_row_start(&shk_check_dev_access, setting ? setting : "/dev");
            row.fact = nodes[i].prefix;
            shk_row_verdict(&row, access.refused.len ? SHK_FAIL : SHK_PASS, SHK_EFFECT);
            shk_row_text(&row.observed, access.refused.len ? "no access: %s" : "%s may be opened",
                         access.refused.len ? shk_strbuf_text(&access.refused)
                         : access.total > 1 ? "all"
                                            : "it");
            if (access.refused.len) {
                row.diagnosis = nodes[i].diagnosis;
                shk_row_text(&row.expected, "read and write access");
                shk_row_text(&row.why, "this user may not open the device");
                shk_row_text(&row.fix, "%s", nodes[i].fix);
            }
            shk_row_end(findings, &row);
            free(setting);
        }
        shk_strbuf_free(&access.refused);
    }
}

const struct shk_check shk_check_dev_access = {
    .id = "devices.access",
    .family = "devices",
    .title = "This user may open the device nodes of accelerators and NICs",
    .eval = eval_access,
    .doc = "Facts: dev.<node>.rw, pci.count.*.\n"
           "A node of hardware that is there and may not be opened for reading and writing is "
           "FAIL.",
};

static void eval_rocm(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_rocm, "ROCm");
    struct shk_fact fact;
    long long amd = shk_device_count(ctx->facts, "gpu-amd");
    enum shk_look look = shk_look(ctx->facts, "rocm.version", &fact);
    row.fact = "rocm.version";
    if (amd == 0) {
        shk_row_na(findings, &row, "no AMD GPU on this node");
    } else if (look == SHK_LOOK_PRESENT && json_is_string(fact.value)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s (%s)", json_string_value(fact.value), fact.source);
        shk_row_end(findings, &row);
    } else if (look == SHK_LOOK_ABSENT && amd > 0) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "not found");
        shk_row_text(&row.why,
                     "AMD GPUs are here, but no ROCm installation where it is looked "
                     "for: %s",
                     fact.reason ? fact.reason : fact.source);
        shk_row_text(&row.fix, "load the ROCm module, or set ROCM_PATH");
        shk_row_end(findings, &row);
    } else {
        shk_row_unread(findings, &row, ctx->facts, "rocm.version");
    }
}

const struct shk_check shk_check_rocm = {
    .id = "rocm.version",
    .family = "devices",
    .title = "ROCm is there, and which version",
    .eval = eval_rocm,
    .doc = "Fact: rocm.version.\nn/a without AMD GPUs; not found with AMD GPUs is WARN.",
};
