/* Services and modules that NVIDIA GPUs need to reach each other. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"
#include "checks/readers/readers_together.h"
#include "core/text/uses.h"

#include <string.h>

/* State of the GPUs in their NVLink fabric, as NVML has it. */
struct fabric {
    struct shk_tally tally; /* of GPUs that belong to one */
    unsigned undone;
    const char *state; /* of the first that is not done */
    bool domain;       /* it spans nodes: a cluster is named */
};

static void judge_gpu(struct fabric *fabric, const json_t *gpu, const json_t *info)
{
    const char *pci = shk_member_name(gpu, "pci"), *state = NULL;
    long long status = 0;
    bool domain = false;
    enum shk_look look = shk_look_member_text(info, "state", &state);
    if (look == SHK_LOOK_PRESENT && strcmp(state, "not supported") == 0)
        return;
    bool ends = shk_look_member_int(info, "status", &status) == SHK_LOOK_PRESENT;
    ends &= shk_look_member_bool(info, "domain", &domain) == SHK_LOOK_PRESENT;
    fabric->domain |= domain;
    if (look == SHK_LOOK_PRESENT && (strcmp(state, "completed") != 0 || status != 0)) {
        shk_tally_bad(&fabric->tally, "%s", pci);
        fabric->undone++;
        fabric->state = fabric->state ? fabric->state : state;
    } else if (look != SHK_LOOK_PRESENT || !ends) {
        shk_tally_unread(&fabric->tally, "%s", pci);
    } else {
        shk_tally_good(&fabric->tally);
    }
}

/* Drivers before 535 tell of no GPU. When some are told, or one could not be read, the others were
 * not read. */
static void read_fabric(struct shk_row *row, struct fabric *fabric)
{
    json_t *gpus = NULL, *gpu, *info;
    size_t i;
    bool told = false;
    (void)shk_read_array(row, "nvml.devices", &gpus);
    json_array_foreach(gpus, i, gpu)
    {
        info = NULL;
        enum shk_look look = shk_look_member_object(gpu, "fabric", &info);
        told |= look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED;
    }
    json_array_foreach(gpus, i, gpu)
    {
        info = NULL;
        if (shk_look_member_object(gpu, "fabric", &info) == SHK_LOOK_PRESENT)
            judge_gpu(fabric, gpu, info);
        else if (told)
            shk_tally_unread(&fabric->tally, "%s", shk_member_name(gpu, "pci"));
    }
    if (fabric->tally.unread)
        shk_row_lacks(row, "nvml.devices", "the fabric state of %u GPUs was not read: %s",
                      fabric->tally.unread, shk_strbuf_text(&fabric->tally.unread_names));
}

static void fabric_down(struct shk_row *row, long long switches)
{
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "fabric-manager-down";
    shk_row_text(&row->why, "NVSwitch is not set up: CUDA ends with error 802, system not yet "
                            "initialized, and GPUs do not reach each other");
    shk_row_fix(row, switches == 0 ? "fabric-manager-rack" : "fabric-manager-start", NULL);
}

/* GPUs that do not tell their state (A100 and before): the service must run, of the driver's own
 * version. */
static void judge_service(struct shk_row *row, long long switches)
{
    bool running = false;
    const char *version = NULL, *driver = NULL;
    json_t *object = NULL;
    enum shk_look look = shk_read_bool(row, "nvidia.fabricmanager.running", &running);
    if (look == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "nvidia.fabricmanager.running", "whether it runs was not read");
    if (look != SHK_LOOK_PRESENT)
        return;
    if (!running && switches > 0) {
        shk_row_text(&row->observed, "not running, %lld NVSwitches", switches);
        fabric_down(row, switches);
        return;
    }
    (void)shk_read_text(row, "nvidia.fabricmanager.version", &version);
    if (version && shk_read_object(row, "gpu.nvidia.driver", &object) == SHK_LOOK_PRESENT)
        (void)shk_read_told_text(row, "gpu.nvidia.driver", object, "version", &driver);
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, "running%s%s", version ? ", version " : "",
                 version ? version : "");
    if (driver && strcmp(version, driver) != 0) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "fabric-manager-version-mismatch";
        shk_row_text(&row->observed, "version %s, driver %s", version, driver);
        shk_row_text(&row->expected, "%s", driver);
        shk_row_text(&row->why, "both must be of the same version, or NVSwitch is not set up");
        shk_row_fix(row, "fabric-manager-version", "version", driver, NULL);
    }
}

/* What the GPUs say of themselves stands above what the service looks like. */
static void judge_fabric(struct shk_findings *findings, struct shk_row *row,
                         const struct fabric *fabric)
{
    unsigned total = fabric->tally.good + fabric->tally.bad + fabric->tally.unread;
    long long switches = shk_read_pci_count(row, "nvswitch");
    if (switches == 0 && !total) {
        shk_row_na(findings, row, "no NVSwitch on this node");
        return;
    }
    if (fabric->undone) {
        shk_row_text(&row->observed, "%s on %u of %u GPUs", fabric->state, fabric->undone, total);
        shk_row_text(&row->expected, "completed");
        fabric_down(row, switches);
    } else if (fabric->tally.good) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "completed on %u GPUs", fabric->tally.good);
    } else {
        judge_service(row, switches);
    }
    shk_row_end(findings, row);
}

static void eval_fabric_manager(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_fabric_manager, "nvidia-fabricmanager");
    struct fabric fabric = {.tally = SHK_TALLY_INIT};
    row.fact = "nvml.devices, nvidia.fabricmanager.*, pci.count.nvswitch";
    row.source = "docs.nvidia.com: Fabric Manager user guide";
    if (shk_read_pci_count(&row, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "no NVSwitch on this node");
        return;
    }
    read_fabric(&row, &fabric);
    judge_fabric(findings, &row, &fabric);
    shk_tally_free(&fabric.tally);
}

const struct shk_check shk_check_fabric_manager = {
    .id = "gpu.fabric_manager",
    .diagnosis = "fabric-manager-down",
    .family = "kernel",
    .title = "NVSwitch is set up by the Fabric Manager",
    .eval = eval_fabric_manager,
    .doc = "Facts: nvml.devices[].fabric, nvidia.fabricmanager.{running, version}, "
           "pci.count.nvswitch, gpu.nvidia.driver.\n"
           "A GPU whose fabric state is not completed is FAIL. Where the GPUs do not tell it (A100 "
           "and before), no process nv-fabricmanager beside NVSwitches, or another version than "
           "the driver's, is FAIL. n/a without NVSwitch.",
};

static const char channel_key[] = "dev.nvidia-caps-imex-channels/channel0";

/* Do the GPUs form an NVLink domain of several nodes, or does the job want one? */
static bool wants_imex(struct shk_row *row)
{
    struct fabric fabric = {.tally = SHK_TALLY_INIT};
    const char *asked = NULL;
    long long nodes = 0;
    read_fabric(row, &fabric);
    (void)shk_read_int(row, "nvidia.imex.nodes", &nodes);
    (void)shk_read_env_used(row, shk_variable("nvlink-between-nodes"), &asked);
    shk_tally_free(&fabric.tally);
    return fabric.domain || nodes > 1 || (asked && strcmp(asked, "1") == 0);
}

static void no_imex(struct shk_row *row, const char *seen, const char *fix)
{
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "imex-channel-missing";
    shk_row_text(&row->observed, "%s", seen);
    shk_row_text(&row->expected, "/dev/nvidia-caps-imex-channels/channel0 and nvidia-imex on "
                                 "each node");
    shk_row_text(&row->why, "memory of GPUs on other nodes cannot be imported: no NVLink "
                            "between nodes");
    shk_row_fix(row, fix, NULL);
}

static void judge_imex(struct shk_row *row)
{
    static const char pass_it[] = "imex-pass";
    json_t *channel = NULL;
    bool usable = false, running = true;
    enum shk_look look = shk_read_object(row, channel_key, &channel);
    bool told = channel && shk_read_told_bool(row, channel_key, channel, "rw", &usable);
    if (shk_read_bool(row, "nvidia.imex.running", &running) == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "nvidia.imex.running", "whether it runs was not read");
    if (look == SHK_LOOK_ABSENT) {
        no_imex(row, "no channel device", pass_it);
    } else if (told && !usable) {
        no_imex(row, "cannot open channel0: permission denied", pass_it);
    } else if (!running) {
        no_imex(row, "service not running", "imex-start");
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "channel0 may be opened");
    }
}

static void eval_imex(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_imex, "nvidia-imex");
    row.fact = "dev.nvidia-caps-imex-channels/channel0, nvidia.imex.*, nvml.devices";
    row.source = "NVIDIA/nccl:src/mnnvl.cc";
    if (shk_read_pci_count(&row, "gpu-nvidia") == 0 || !wants_imex(&row)) {
        shk_row_na(findings, &row, "no NVLink domain of several nodes");
        return;
    }
    /* that it is wanted is sure, whatever else might have said so */
    free(row.unread_why);
    row.unread_why = NULL;
    row.unread = 0;
    judge_imex(&row);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_imex = {
    .id = "gpu.imex",
    .diagnosis = "imex-channel-missing",
    .family = "kernel",
    .title = "Multi-node NVLink has its IMEX service and channel",
    .eval = eval_imex,
    .doc =
        "Facts: dev.nvidia-caps-imex-channels/channel0, nvidia.imex.{running, nodes}, "
        "nvml.devices[].fabric, env.{nvlink-between-nodes}.\n"
        "Judged when the GPUs belong to a named cluster, IMEX is configured for several nodes, "
        "or {nvlink-between-nodes}=1. No channel, no access to it, or a stopped service is FAIL.",
};

/* The variable that asks for it; NULL: none. */
static const char *asks_gdrcopy(struct shk_row *row)
{
    for (const char *const *n = shk_variables("gdrcopy"); *n; n++) {
        const char *value = NULL;
        if (shk_read_env_used(row, *n, &value) == SHK_LOOK_PRESENT &&
            (strcmp(value, "1") == 0 || strcmp(value, "true") == 0))
            return *n;
    }
    return NULL;
}

static void no_gdrcopy(struct shk_row *row, const char *asked, bool there)
{
    shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
    row->diagnosis = "gdrcopy-device-missing";
    shk_row_text(&row->observed, there ? "no access" : "no /dev/gdrdrv");
    shk_row_text(&row->why,
                 there ? "%s has no effect for this user" : "%s has no effect without it", asked);
    shk_row_fix(row,
                there                            ? "gdrcopy-mode"
                : shk_container(row->ctx->facts) ? "gdrcopy-pass"
                                                 : "load-module",
                "module", "gdrdrv", NULL);
}

static void eval_gdrcopy(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "dev.gdrdrv";
    struct shk_row row = shk_row_begin(ctx, &shk_check_gdrcopy, "gdrdrv");
    json_t *node = NULL;
    bool usable = false;
    row.fact = "dev.gdrdrv, kernel.module.gdrdrv";
    row.source = "NVIDIA/nccl:src/include/gdrwrap.h";
    const char *asked = asks_gdrcopy(&row);
    if (!asked || shk_read_pci_count(&row, "gpu-nvidia") == 0) {
        shk_row_na(findings, &row, "nothing needs GDRCopy");
        return;
    }
    enum shk_look look = shk_read_object(&row, key, &node);
    if (look == SHK_LOOK_ABSENT) {
        no_gdrcopy(&row, asked, false);
    } else if (look == SHK_LOOK_PRESENT && shk_read_told_bool(&row, key, node, "rw", &usable)) {
        if (!usable)
            no_gdrcopy(&row, asked, true);
        else
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        if (usable)
            shk_row_text(&row.observed, "may be opened");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_gdrcopy = {
    .id = "gpu.gdrcopy",
    .diagnosis = "gdrcopy-device-missing",
    .family = "kernel",
    .title = "GDRCopy has its device node if it is needed",
    .eval = eval_gdrcopy,
    .doc = "Facts: dev.gdrdrv, the variables that ask for GDRCopy.\n"
           "Asked for and not there, or not for this user, is WARN.",
};
