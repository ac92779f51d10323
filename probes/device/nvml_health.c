/* Health of NVIDIA GPUs as the driver's management library tells it: memory errors, row remapping,
 * reasons for lower clocks, limits, modes, links. In a child of its own, so that a GPU that hangs
 * here does not cost what the nvml probe finds. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/device/nvml_health_private.h"
#include "probes/device/nvml_processes.h"
#include "probes/library/ldsearch.h"

#include <stddef.h>
#include <stdio.h>
#include <time.h>

static const char *const number_members[NAMED_NUMBERS] = {
    "power_limit", "power_default",  "power_enforced", "pcie_gen",     "pcie_gen_max",
    "pcie_width",  "pcie_width_max", "pcie_replays",   "compute_mode",
};

#define MAY(fn, member) NVML_FN_OPT(struct health_ops, "nvmlDeviceGet" fn, member)

static const struct shk_symbol health_symbols[] = {
    NVML_CORE(struct health_ops),
    MAY("PowerManagementLimit", number[0]),
    MAY("PowerManagementDefaultLimit", number[1]),
    MAY("EnforcedPowerLimit", number[2]),
    MAY("CurrPcieLinkGeneration", number[3]),
    MAY("MaxPcieLinkGeneration", number[4]),
    MAY("CurrPcieLinkWidth", number[5]),
    MAY("MaxPcieLinkWidth", number[6]),
    MAY("PcieReplayCounter", number[7]),
    MAY("ComputeMode", number[8]),
    MAY("RetiredPagesPendingStatus", number[RETIRED_PENDING]),
    MAY("EccMode", ecc_mode),
    MAY("TotalEccErrors", ecc_total),
    MAY("MemoryErrorCounter", ecc_place),
    MAY("RemappedRows", remapped),
    MAY("CurrentClocksThrottleReasons", reasons),
    MAY("Temperature", temperature),
    MAY("TemperatureThreshold", threshold),
    MAY("MarginTemperature", margin),
    MAY("FieldValues", fields),
    MAY("ComputeRunningProcesses_v3", processes),
    MAY("NvLinkState", link_state),
    MAY("NvLinkErrorCounter", link_errors),
    MAY("Name", name),
    MAY("VbiosVersion", vbios),
    MAY("InforomImageVersion", inforom),
    MAY("GspFirmwareVersion", gsp),
    NVML_FN_OPT(struct health_ops, "nvmlDeviceValidateInforom", validate),
    MAY("SramEccErrorStatus", sram),
    MAY("RepairStatus", repair),
    MAY("VirtualizationMode", virtualization),
    MAY("GridLicensableFeatures_v4", licences),
    NVML_FN_OPT(struct health_ops, "nvmlSystemGetConfComputeState", confidential),
    NVML_FN_OPT(struct health_ops, "nvmlSystemGetConfComputeSettings", confidential_settings),
    NVML_FN_OPT(struct health_ops, "nvmlSystemGetConfComputeGpusReadyState", confidential_ready),
    {.name = NULL},
};

static const struct shk_library health_library = NVML_LIBRARY(health_symbols);

int shk_nvml_answered(struct gpu *gpu, int rc)
{
    if (rc == NVML_ERROR_GPU_IS_LOST || (rc == NVML_ERROR_RESET_REQUIRED && !gpu->broken))
        gpu->broken = rc;
    return rc;
}

void shk_nvml_count(json_t *object, const char *member, int rc, unsigned long long value)
{
    shk_nvml_member(object, member, rc, json_integer((json_int_t)value));
}

static void ask_numbers(struct gpu *gpu)
{
    static const char *const modes[] = {"default", "exclusive thread", "prohibited",
                                        "exclusive process"};
    unsigned value = 0;
    int rc;
    for (unsigned i = 0; i < NAMED_NUMBERS; i++) {
        shk_crumb_call("%s(%u)", health_symbols[6 + i].name, gpu->index);
        rc = ASK(gpu, number[i], &value);
        if (i != NAMED_NUMBERS - 1)
            shk_nvml_count(gpu->row, number_members[i], rc, value);
        else
            shk_nvml_member(gpu->row, number_members[i], rc,
                            json_string(value < 4 ? modes[value] : "unknown"));
    }
    rc = ASK(gpu, number[RETIRED_PENDING], &value);
    shk_nvml_member(gpu->row, "retired_pending", rc, json_boolean(value == 1));
}

static void ask_ecc(struct gpu *gpu)
{
    static const char *const errors[] = {"corrected", "uncorrected"};
    static const char *const counters[] = {"volatile", "aggregate"};
    unsigned current = 0, pending = 0;
    unsigned long long count = 0;
    char member[48];
    shk_crumb_call("nvmlDeviceGetEccMode(%u)", gpu->index);
    int rc = ASK(gpu, ecc_mode, &current, &pending);
    shk_nvml_member(gpu->row, "ecc", rc, json_boolean(current == 1));
    shk_nvml_member(gpu->row, "ecc_pending", rc, json_boolean(pending == 1));
    for (int counter = NVML_SINCE_LOAD; counter <= NVML_SINCE_EVER; counter++)
        for (int error = NVML_ERRORS_CORRECTED; error <= NVML_ERRORS_UNCORRECTED; error++) {
            shk_crumb_call("nvmlDeviceGetTotalEccErrors(%u, %d, %d)", gpu->index, error, counter);
            snprintf(member, sizeof member, "ecc_%s_%s", counters[counter], errors[error]);
            rc = ASK(gpu, ecc_total, error, counter, &count);
            shk_nvml_count(gpu->row, member, rc, count);
            snprintf(member, sizeof member, "ecc_%s_%s_dram", counters[counter], errors[error]);
            rc = ASK(gpu, ecc_place, error, counter, NVML_MEMORY_DRAM, &count);
            shk_nvml_count(gpu->row, member, rc, count);
            snprintf(member, sizeof member, "ecc_%s_%s_sram", counters[counter], errors[error]);
            rc = ASK(gpu, ecc_place, error, counter, NVML_MEMORY_SRAM, &count);
            shk_nvml_count(gpu->row, member, rc, count);
        }
}

static void ask_remapped(struct gpu *gpu)
{
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;
    shk_crumb_call("nvmlDeviceGetRemappedRows(%u)", gpu->index);
    int rc = ASK(gpu, remapped, &correctable, &uncorrectable, &pending, &failure);
    shk_nvml_count(gpu->row, "remapped_correctable", rc, correctable);
    shk_nvml_count(gpu->row, "remapped_uncorrectable", rc, uncorrectable);
    shk_nvml_member(gpu->row, "remap_pending", rc, json_boolean(pending));
    shk_nvml_member(gpu->row, "remap_failure", rc, json_boolean(failure));
}

/* Bits 3, 5, 6 and 7: slowdown by hardware, by temperature, by the power brake. */
enum { SLOWDOWN_BITS = 0xe8 };

static json_t *reason_names(unsigned long long mask)
{
    static const char *const names[] = {
        "idle",           "application clocks", "power cap",   "hardware slowdown",
        "sync boost",     "SW thermal",         "HW thermal",  "power brake",
        "display clocks", "board limit",        "reliability",
    };
    json_t *list = json_array();
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (mask >> i & 1)
            json_array_append_new(list, json_string(names[i]));
    if (mask >> (sizeof names / sizeof *names))
        json_array_append_new(list, json_string("other"));
    return list;
}

/* NVML shows a hardware slowdown also while clocks change, so a slowdown counts only when it is
 * still there a moment later. */
static void ask_reasons(struct gpu *gpu)
{
    static const struct timespec moment = {.tv_nsec = 100000000};
    unsigned long long mask = 0, again = 0;
    shk_crumb_call("nvmlDeviceGetCurrentClocksThrottleReasons(%u)", gpu->index);
    int rc = ASK(gpu, reasons, &mask);
    if (!rc && mask & SLOWDOWN_BITS) {
        nanosleep(&moment, NULL);
        rc = ASK(gpu, reasons, &again);
        mask &= again | ~(unsigned long long)SLOWDOWN_BITS;
    }
    shk_nvml_member(gpu->row, "clock_reasons", rc, reason_names(mask));
}

static void ask_temperature(struct gpu *gpu)
{
    nvmlMarginTemperature_v1_t margin = {.version = (unsigned)sizeof margin | 1u << 24};
    unsigned celsius = 0;
    shk_crumb_call("nvmlDeviceGetTemperature(%u)", gpu->index);
    int rc = ASK(gpu, temperature, NVML_SENSOR_GPU, &celsius);
    shk_nvml_count(gpu->row, "temperature", rc, celsius);
    rc = ASK(gpu, threshold, NVML_THRESHOLD_SLOWDOWN, &celsius);
    shk_nvml_count(gpu->row, "temperature_slowdown", rc, celsius);
    rc = ASK(gpu, margin, &margin);
    shk_nvml_member(gpu->row, "temperature_margin", rc, json_integer(margin.marginTemperature));
}

static long long field_number(const nvmlFieldValue_t *field)
{
    switch (field->valueType) {
    case NVML_VALUE_DOUBLE: return (long long)field->value.dVal;
    case NVML_VALUE_UINT: return field->value.uiVal;
    case NVML_VALUE_INT: return field->value.siVal;
    case NVML_VALUE_USHORT: return field->value.usVal;
    default: return field->value.sllVal;
    }
}

int shk_nvml_field(struct gpu *gpu, unsigned id, unsigned scope, long long *value)
{
    nvmlFieldValue_t field = {.fieldId = id, .scopeId = scope};
    shk_crumb_call("nvmlDeviceGetFieldValues(%u, field %u, scope %u)", gpu->index, id, scope);
    int rc = ASK(gpu, fields, 1, &field);
    if (!rc)
        rc = shk_nvml_answered(gpu, field.nvmlReturn);
    *value = rc ? 0 : field_number(&field);
    return rc;
}

static void ask_recovery(struct gpu *gpu)
{
    static const char *const actions[] = {"none",      "GPU reset",       "node reboot",
                                          "drain P2P", "drain and reset", "IMEX domain",
                                          "bus reset", "system reboot"};
    long long action = 0;
    int rc = shk_nvml_field(gpu, NVML_FIELD_RECOVERY_ACTION, 0, &action);
    bool known = action >= 0 && (size_t)action < sizeof actions / sizeof *actions;
    shk_nvml_member(gpu->row, "recovery_action", rc,
                    json_string(known ? actions[action] : "unknown"));
    if (!rc && !known) {
        json_object_set_new(gpu->row, "recovery_action", json_null());
        shk_gather_member_problem(gpu->row, "recovery_action",
                                  "NVML tells an action of an unknown number");
    }
}

/* NULL when the GPU has no link of that number. */
static json_t *ask_link(struct gpu *gpu, unsigned link)
{
    static const char *const errors[] = {"replays", "recoveries", "crc"};
    unsigned active = 0;
    unsigned long long count = 0;
    long long value = 0;
    shk_crumb_call("nvmlDeviceGetNvLinkState(%u, link %u)", gpu->index, link);
    int rc = ASK(gpu, link_state, link, &active);
    if (shk_nvml_none(rc))
        return NULL;
    json_t *row = json_pack("{s:i}", "link", (int)link);
    shk_nvml_member(row, "active", rc, json_boolean(active == 1));
    if (rc || active != 1)
        return row;
    rc = shk_nvml_field(gpu, NVML_FIELD_LINK_SPEED, link, &value);
    shk_nvml_member(row, "speed", rc, json_integer(value));
    rc = shk_nvml_field(gpu, NVML_FIELD_LINK_RECOVERY_FAILED, link, &value);
    shk_nvml_member(row, "recoveries_failed", rc, json_integer(value));
    for (int counter = NVML_LINK_REPLAY; counter <= NVML_LINK_CRC_FLIT; counter++) {
        shk_crumb_call("nvmlDeviceGetNvLinkErrorCounter(%u, link %u)", gpu->index, link);
        rc = ASK(gpu, link_errors, link, counter, &count);
        shk_nvml_count(row, errors[counter], rc, count);
    }
    return row;
}

static void ask_links(struct gpu *gpu)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < NVML_NVLINK_MAX_LINKS; i++) {
        json_t *link = ask_link(gpu, i);
        if (link)
            json_array_append_new(list, link);
    }
    json_object_set_new(gpu->row, "links", list);
}

enum { PROCESSES = 64 }; /* of one GPU; more run only where it is shared out on purpose */

static void ask_processes(struct gpu *gpu)
{
    nvmlProcessInfo_v2_t list[PROCESSES];
    unsigned count = PROCESSES;
    json_t *rows = json_array();
    shk_crumb_call("nvmlDeviceGetComputeRunningProcesses_v3(%u)", gpu->index);
    int rc = ASK(gpu, processes, &count, list);
    for (unsigned i = 0; !rc && i < count && i < PROCESSES; i++)
        json_array_append_new(rows,
                              shk_nvml_process(gpu->host, list[i].pid, list[i].usedGpuMemory));
    shk_nvml_member(gpu->row, "processes", rc, rows);
}

/* A GPU that gives no handle has no address either. */
static json_t *one_gpu(const struct shk_host *host, const struct health_ops *ops, unsigned index)
{
    struct gpu gpu = {
        .ops = ops, .host = host, .index = index, .row = json_pack("{s:i}", "index", (int)index)};
    nvmlPciInfo_t pci = {.domain = 0};
    char address[32];
    shk_crumb_call("nvmlDeviceGetHandleByIndex_v2(%u)", index);
    int rc = shk_nvml_answered(&gpu, ops->core.by_index(index, &gpu.device));
    bool handle = rc == NVML_SUCCESS;
    rc = handle ? ASK(&gpu, core.pci_info, &pci) : rc;
    shk_nvml_address(address, sizeof address, &pci);
    shk_nvml_member(gpu.row, "pci", rc, json_string(address));
    if (handle) {
        ask_numbers(&gpu);
        ask_ecc(&gpu);
        ask_remapped(&gpu);
        ask_reasons(&gpu);
        ask_temperature(&gpu);
        ask_recovery(&gpu);
        ask_links(&gpu);
        ask_processes(&gpu);
        shk_nvml_board(&gpu);
    }
    const char *state = gpu.broken == NVML_ERROR_GPU_IS_LOST      ? "lost"
                        : gpu.broken == NVML_ERROR_RESET_REQUIRED ? "reset required"
                        : handle                                  ? "answers"
                                                                  : NULL;
    if (state)
        json_object_set_new(gpu.row, "state", json_string(state));
    else
        shk_nvml_unread(gpu.row, "state", rc);
    return gpu.row;
}

static const char health_key[] = "nvml.health", confidential_key[] = "nvml.confidential";
static const char *const health_provides[] = {health_key, confidential_key, NULL};

static void ask_confidential(struct shk_gather *g, const struct shk_dynlib *lib,
                             const struct health_ops *ops)
{
    int rc = 0;
    json_t *row = shk_nvml_confidential(ops, &rc);
    if (row)
        shk_gather_present(g, confidential_key, row, NULL, lib->path);
    else if (shk_nvml_none(rc))
        shk_gather_absent(g, confidential_key, lib->path,
                          "these GPUs, or this driver, do not offer it");
    else
        shk_gather_failed(g, confidential_key, lib->path, "NVML error %d", rc);
}

static void ask_all(struct shk_gather *g, const struct shk_dynlib *lib,
                    const struct health_ops *ops)
{
    unsigned count = 0;
    const char *call = "nvmlInit_v2";
    shk_crumb_call("%s", call);
    int rc = ops->core.init();
    if (!rc) {
        call = "nvmlDeviceGetCount_v2";
        shk_crumb_call("%s", call);
        rc = ops->core.count(&count);
    }
    if (rc) {
        const char *text = ops->core.error_string(rc);
        for (const char *const *key = health_provides; *key; key++)
            shk_gather_failed(g, *key, lib->path, "%s: %s (%d)", call, text ? text : "error", rc);
        return;
    }
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, one_gpu(g->host, ops, i));
    shk_gather_present(g, health_key, list, NULL, lib->path);
    ask_confidential(g, lib, ops);
    shk_crumb_call("nvmlShutdown");
    ops->core.shutdown();
}

static int nvml_health_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct health_ops ops = {.core = {.init = NULL}};
    struct shk_dynlib lib = {.handle = NULL};
    struct shk_error why;
    struct shk_fact fact;
    if (shk_facts_get(ctx->known, "pci.count.gpu-nvidia", &fact) && fact.state == SHK_FACT_ABSENT) {
        for (const char *const *key = health_provides; *key; key++)
            shk_gather_absent(&g, *key, "/sys/bus/pci/devices", "no NVIDIA GPU on this node");
        return shk_gather_end(&g, err);
    }
    if (shk_dynlib_open(&lib, &health_library, &ops, &why)) {
        for (const char *const *key = health_provides; *key; key++)
            shk_gather_failed(&g, *key, health_library.names[0], "%s", why.text);
        return shk_gather_end(&g, err);
    }
    ask_all(&g, &lib, &ops);
    shk_crumb_clear();
    shk_dynlib_close(&lib, false);
    return shk_gather_end(&g, err);
}

static bool health_idle(const struct shk_host *host, const struct shk_facts *known)
{
    (void)known;
    return shk_ldsearch_lacks(host, &health_library);
}

const struct shk_probe shk_probe_nvml_health = {
    .name = "nvml_health",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "NVIDIA GPUs by NVML: memory errors, row remapping, slowdowns, limits, modes, links, "
           "firmware, InfoROM, confidential computing, vGPU licence",
    .provides = health_provides,
    .needs_live = true,
    .deadline_ms = 20000,
    .apart = true,
    .idle = health_idle,
    .run = nvml_health_run,
};
