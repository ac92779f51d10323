/* Services and modules that NVIDIA GPUs need to reach each other. */
#include "checks/coded.h"

#include <string.h>

/* State of the GPUs in their NVLink fabric, as NVML has it. */
struct fabric {
    unsigned done, undone, total;
    const char *state; /* of the first that is not done */
    bool domain;       /* it spans nodes: a cluster is named */
};

static struct fabric fabric_of(const struct shk_facts *facts)
{
    struct fabric fabric = {0};
    size_t i;
    json_t *gpu;
    json_array_foreach(shk_facts_get_array(facts, "nvml.devices"), i, gpu)
    {
        const json_t *info = json_object_get(gpu, "fabric");
        const char *state = shk_member_text(info, "state");
        if (!state || strcmp(state, "not supported") == 0)
            continue;
        fabric.total++;
        fabric.domain |= shk_member_bool(info, "domain", false);
        bool done = strcmp(state, "completed") == 0 && shk_member_int(info, "status", 0) == 0;
        fabric.done += done;
        fabric.undone += !done;
        if (!done && !fabric.state)
            fabric.state = state;
    }
    return fabric;
}

static void fabric_down(struct shk_row *row)
{
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "fabric-manager-down";
    shk_row_text(&row->why, "NVSwitch is not set up: CUDA ends with error 802, system not yet "
                            "initialized, and GPUs do not reach each other");
    shk_row_text(&row->fix, "systemctl enable --now nvidia-fabricmanager");
}

static void eval_fabric_manager(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char running_key[] = "nvidia.fabricmanager.running";
    struct shk_row row = shk_row_start(&shk_check_fabric_manager, "nvidia-fabricmanager");
    long long switches = shk_device_count(ctx->facts, "nvswitch");
    struct fabric fabric = fabric_of(ctx->facts);
    const char *version = shk_facts_get_text(ctx->facts, "nvidia.fabricmanager.version");
    const char *driver =
        shk_member_text(shk_facts_get_object(ctx->facts, "gpu.nvidia.driver"), "version");
    row.fact = "nvml.devices, nvidia.fabricmanager.*, pci.count.nvswitch";
    row.source = "docs.nvidia.com: Fabric Manager user guide";
    if (shk_device_count(ctx->facts, "gpu-nvidia") == 0 || (switches == 0 && !fabric.total)) {
        shk_row_na(findings, &row, "no NVSwitch on this node");
        return;
    }
    bool known = shk_look(ctx->facts, running_key, NULL) == SHK_LOOK_PRESENT;
    bool running = shk_facts_get_bool(ctx->facts, running_key, false);
    if (fabric.undone) {
        shk_row_text(&row.observed, "%s on %u of %u GPUs", fabric.state, fabric.undone,
                     fabric.total);
        shk_row_text(&row.expected, "completed");
        fabric_down(&row);
    } else if (switches > 0 && known && !running) {
        shk_row_text(&row.observed, "not running, %lld NVSwitches", switches);
        fabric_down(&row);
    } else if (version && driver && running && strcmp(version, driver) != 0) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "fabric-manager-version-mismatch";
        shk_row_text(&row.observed, "version %s, driver %s", version, driver);
        shk_row_text(&row.expected, "%s", driver);
        shk_row_text(&row.why, "both must be of the same version, or NVSwitch is not set up");
        shk_row_text(&row.fix, "install nvidia-fabricmanager %s and restart it", driver);
    } else if (fabric.done) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "completed on %u GPUs", fabric.done);
    } else if (running) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "running%s%s", version ? ", version " : "",
                     version ? version : "");
    } else {
        shk_row_unread(findings, &row, ctx->facts, running_key);
        return;
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_fabric_manager = {
    .id = "gpu.fabric_manager",
    .family = "kernel",
    .title = "NVSwitch is set up by the Fabric Manager",
    .eval = eval_fabric_manager,
    .doc = "Facts: nvml.devices[].fabric, nvidia.fabricmanager.{running, version}, "
           "pci.count.nvswitch, gpu.nvidia.driver.\n"
           "A GPU whose fabric state is not completed, no process nv-fabricmanager beside "
           "NVSwitches, or another version than the driver's are FAIL. n/a without NVSwitch.",
};

static void eval_imex(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char channel_key[] = "dev.nvidia-caps-imex-channels/channel0";
    struct shk_row row = shk_row_start(&shk_check_imex, "nvidia-imex");
    const char *asked = shk_env_get(ctx->facts, "NCCL_MNNVL_ENABLE");
    long long nodes = shk_facts_get_int(ctx->facts, "nvidia.imex.nodes", 0);
    bool wanted = fabric_of(ctx->facts).domain || nodes > 1 || (asked && strcmp(asked, "1") == 0);
    struct shk_fact channel;
    enum shk_look look = shk_look(ctx->facts, channel_key, &channel);
    row.fact = "dev.nvidia-caps-imex-channels/channel0, nvidia.imex.*, nvml.devices";
    row.source = "NVIDIA/nccl:src/mnnvl.cc";
    if (!wanted) {
        shk_row_na(findings, &row, "no NVLink domain of several nodes");
        return;
    }
    bool usable = look == SHK_LOOK_PRESENT && shk_member_bool(channel.value, "rw", false);
    bool stopped = shk_look(ctx->facts, "nvidia.imex.running", NULL) == SHK_LOOK_PRESENT &&
                   !shk_facts_get_bool(ctx->facts, "nvidia.imex.running", true);
    if (look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && !usable) || stopped) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "imex-channel-missing";
        shk_row_text(&row.observed, look == SHK_LOOK_ABSENT ? "no channel device"
                                    : !usable               ? "channel0 may not be opened"
                                                            : "service not running");
        shk_row_text(&row.expected, "/dev/nvidia-caps-imex-channels/channel0 and nvidia-imex on "
                                    "each node");
        shk_row_text(&row.why, "memory of GPUs on other nodes cannot be imported: no NVLink "
                               "between nodes");
        shk_row_text(&row.fix, stopped ? "systemctl start nvidia-imex on every node of the domain"
                                       : "pass /dev/nvidia-caps-imex-channels/channel0 into the "
                                         "job or container");
    } else if (usable) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "channel0 may be opened");
    } else {
        shk_row_unread(findings, &row, ctx->facts, channel_key);
        return;
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_imex = {
    .id = "gpu.imex",
    .family = "kernel",
    .title = "Multi-node NVLink has its service and channel",
    .eval = eval_imex,
    .doc = "Facts: dev.nvidia-caps-imex-channels/channel0, nvidia.imex.{running, nodes}, "
           "nvml.devices[].fabric, env.NCCL_MNNVL_ENABLE.\n"
           "Judged when the GPUs belong to a named cluster, IMEX is configured for several nodes, "
           "or NCCL_MNNVL_ENABLE=1. No channel, no access to it, or a stopped service is FAIL.",
};

static void eval_gdrcopy(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char *const names[] = {"NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY", NULL};
    struct shk_row row = shk_row_start(&shk_check_gdrcopy, "gdrdrv");
    const char *asked = NULL;
    row.fact = "dev.gdrdrv, kernel.module.gdrdrv";
    row.source = "NVIDIA/nccl:src/include/gdrwrap.h";
    for (const char *const *n = names; *n && !asked; n++) {
        const char *value = shk_env_get(ctx->facts, *n);
        if (value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0))
            asked = *n;
    }
    struct shk_fact node;
    enum shk_look look = shk_look(ctx->facts, "dev.gdrdrv", &node);
    if (!asked || shk_device_count(ctx->facts, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "nothing asks for GDRCopy");
    } else if (look == SHK_LOOK_PRESENT) {
        bool usable = shk_member_bool(node.value, "rw", false);
        shk_row_verdict(&row, usable ? SHK_PASS : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, usable ? "may be opened" : "no access");
        if (!usable) {
            row.diagnosis = "gdrcopy-device-missing";
            shk_row_text(&row.why, "%s has no effect for this user", asked);
            shk_row_text(&row.fix, "chmod 666 /dev/gdrdrv");
        }
        shk_row_end(findings, &row);
    } else if (look == SHK_LOOK_ABSENT) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = "gdrcopy-device-missing";
        shk_row_text(&row.observed, "no /dev/gdrdrv");
        shk_row_text(&row.why, "%s has no effect without it", asked);
        shk_row_text(&row.fix, shk_container(ctx->facts) ? "pass /dev/gdrdrv into the container"
                                                         : "modprobe gdrdrv");
        shk_row_end(findings, &row);
    } else {
        shk_row_unread(findings, &row, ctx->facts, "dev.gdrdrv");
    }
}

const struct shk_check shk_check_gdrcopy = {
    .id = "gpu.gdrcopy",
    .family = "kernel",
    .title = "GDRCopy has its device when it is asked for",
    .eval = eval_gdrcopy,
    .doc = "Facts: dev.gdrdrv, env.NCCL_GDRCOPY_ENABLE, env.FI_HMEM_CUDA_USE_GDRCOPY.\n"
           "Asked for and not there, or not for this user, is WARN.",
};
