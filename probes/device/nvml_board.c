/* What NVML says of a GPU's board: firmware, InfoROM, memory that is worn out, repairs that wait,
 * virtualization and its licence; and of the system: confidential computing. */
#include "probes/device/nvml_health_private.h"

#include "core/run/isolate.h"

#include <stdio.h>

/* A text of at most `size` bytes that a library wrote; it may have left out the end. */
static void board_text(struct gpu *gpu, const char *member, int rc, char *text, size_t size)
{
    text[size - 1] = '\0';
    shk_nvml_member(gpu->row, member, rc, *text ? shk_gather_str(text) : json_null());
}

static void ask_firmware(struct gpu *gpu)
{
    char vbios[NVML_VBIOS_TEXT + 1] = "", inforom[NVML_INFOROM_TEXT + 1] = "";
    char gsp[2 * NVML_GSP_TEXT] = "", name[97] = "";
    shk_crumb_call("nvmlDeviceGetName(%u)", gpu->index);
    int rc = ASK(gpu, name, name, 96);
    board_text(gpu, "name", rc, name, sizeof name);
    shk_crumb_call("nvmlDeviceGetVbiosVersion(%u)", gpu->index);
    rc = ASK(gpu, vbios, vbios, NVML_VBIOS_TEXT);
    board_text(gpu, "vbios", rc, vbios, sizeof vbios);
    shk_crumb_call("nvmlDeviceGetInforomImageVersion(%u)", gpu->index);
    rc = ASK(gpu, inforom, inforom, NVML_INFOROM_TEXT);
    board_text(gpu, "inforom", rc, inforom, sizeof inforom);
    shk_crumb_call("nvmlDeviceGetGspFirmwareVersion(%u)", gpu->index);
    rc = ASK(gpu, gsp, gsp);
    board_text(gpu, "gsp", rc, gsp, sizeof gsp);
    shk_crumb_call("nvmlDeviceValidateInforom(%u)", gpu->index);
    rc = gpu->ops->validate ? shk_nvml_answered(gpu, gpu->ops->validate(gpu->device))
                            : NVML_ERROR_FUNCTION_NOT_FOUND;
    bool corrupt = rc == NVML_ERROR_CORRUPTED_INFOROM;
    shk_nvml_member(gpu->row, "inforom_valid", corrupt ? NVML_SUCCESS : rc, json_boolean(!corrupt));
}

/* Errors of SRAM are told to root only. */
static void ask_worn(struct gpu *gpu)
{
    nvmlEccSramErrorStatus_v1_t sram = {.version = (unsigned)sizeof sram | 1u << 24};
    nvmlRepairStatus_v1_t repair = {.version = (unsigned)sizeof repair | 1u << 24};
    long long one = 0, two = 0;
    shk_crumb_call("nvmlDeviceGetSramEccErrorStatus(%u)", gpu->index);
    int rc = ASK(gpu, sram, &sram);
    shk_nvml_member(gpu->row, "sram_exceeded", rc, json_boolean(sram.bThresholdExceeded));
    shk_nvml_count(gpu->row, "sram_parity", rc, sram.aggregateUncParity);
    shk_nvml_count(gpu->row, "sram_secded", rc, sram.aggregateUncSecDed);
    shk_crumb_call("nvmlDeviceGetRepairStatus(%u)", gpu->index);
    rc = ASK(gpu, repair, &repair);
    shk_nvml_member(gpu->row, "repair_pending", rc,
                    json_boolean(repair.bChannelRepairPending || repair.bTpcRepairPending));
    rc = shk_nvml_field(gpu, NVML_FIELD_RETIRED_SINGLE, 0, &one);
    if (!rc)
        rc = shk_nvml_field(gpu, NVML_FIELD_RETIRED_DOUBLE, 0, &two);
    shk_nvml_count(gpu->row, "retired_pages", rc, (unsigned long long)(one + two));
}

static json_t *licence_expiry(const nvmlGridLicenseExpiry_t *expiry)
{
    char text[40];
    if (expiry->status == NVML_EXPIRY_PERMANENT)
        return json_string("permanent");
    if (expiry->status != NVML_EXPIRY_VALID)
        return json_null();
    snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02uZ", expiry->year, expiry->month,
             expiry->day, expiry->hour, expiry->min, expiry->sec);
    return json_string(text);
}

/* The first feature that is licensed, else the first that is enabled. */
static json_t *licence(const nvmlGridLicensableFeatures_v4_t *all)
{
    const nvmlGridLicensableFeature_t *said = NULL;
    bool licensed = false;
    char product[NVML_LICENCE_TEXT + 1];
    for (unsigned i = 0; i < all->licensableFeaturesCount && i < NVML_LICENCES; i++) {
        const nvmlGridLicensableFeature_t *feature = &all->gridLicensableFeatures[i];
        if (!feature->featureEnabled || (said && !feature->featureState))
            continue;
        if (!licensed)
            said = feature;
        licensed |= feature->featureState != 0;
    }
    snprintf(product, sizeof product, "%.*s", NVML_LICENCE_TEXT - 1, said ? said->productName : "");
    return json_pack("{s:b, s:b, s:o, s:o}", "needed", all->isGridLicenseSupported != 0, "licensed",
                     licensed, "product", *product ? shk_gather_str(product) : json_null(),
                     "expires", said ? licence_expiry(&said->licenseExpiry) : json_null());
}

static void ask_virtualization(struct gpu *gpu)
{
    static const char *const modes[] = {"none", "passthrough", "vGPU", "vGPU host", "vSGA host"};
    enum { MODES = sizeof modes / sizeof *modes };
    nvmlGridLicensableFeatures_v4_t features = {.isGridLicenseSupported = 0};
    unsigned mode = 0;
    shk_crumb_call("nvmlDeviceGetVirtualizationMode(%u)", gpu->index);
    int rc = ASK(gpu, virtualization, &mode);
    shk_nvml_member(gpu->row, "virtualization", rc,
                    mode < MODES ? json_string(modes[mode]) : json_null());
    if (!rc && mode >= MODES)
        shk_gather_member_problem(gpu->row, "virtualization",
                                  "NVML tells a mode of an unknown number");
    json_object_set_new(gpu->row, "licence", json_null());
    if (rc || mode != NVML_VIRTUALIZATION_VGPU)
        return;
    shk_crumb_call("nvmlDeviceGetGridLicensableFeatures_v4(%u)", gpu->index);
    rc = ASK(gpu, licences, &features);
    if (rc)
        shk_nvml_member(gpu->row, "licence", rc, json_null());
    else
        json_object_set_new(gpu->row, "licence", licence(&features));
}

void shk_nvml_board(struct gpu *gpu)
{
    ask_firmware(gpu);
    ask_worn(gpu);
    ask_virtualization(gpu);
}

/* The newer function, which alone tells of several GPUs, else the older one. */
static int confidential_settings(const struct health_ops *ops,
                                 nvmlSystemConfComputeSettings_v1_t *settings, bool *several_p)
{
    nvmlConfComputeSystemState_t state = {.environment = 0};
    int rc = NVML_ERROR_FUNCTION_NOT_FOUND;
    shk_crumb_call("nvmlSystemGetConfComputeSettings");
    if (ops->confidential_settings)
        rc = ops->confidential_settings(settings);
    *several_p = rc == NVML_SUCCESS;
    if (!shk_nvml_none(rc) || !ops->confidential)
        return rc;
    shk_crumb_call("nvmlSystemGetConfComputeState");
    rc = ops->confidential(&state);
    settings->environment = state.environment;
    settings->ccFeature = state.ccFeature;
    settings->devToolsMode = state.devToolsMode;
    return rc;
}

json_t *shk_nvml_confidential(const struct health_ops *ops, int *rc_p)
{
    static const char *const places[] = {NULL, "simulation", "production"};
    static const char *const multis[] = {"none", "protected PCIe", "NVLink encryption"};
    nvmlSystemConfComputeSettings_v1_t settings = {.version = (unsigned)sizeof settings | 1u << 24};
    bool several = false;
    unsigned ready = 0;
    *rc_p = confidential_settings(ops, &settings, &several);
    if (*rc_p)
        return NULL;
    bool on = settings.ccFeature != 0 || settings.multiGpuMode != 0;
    json_t *row = json_pack("{s:b, s:b}", "on", on, "devtools", settings.devToolsMode != 0);
    json_object_set_new(row, "environment",
                        settings.environment < 3 && places[settings.environment]
                            ? json_string(places[settings.environment])
                            : json_null());
    json_object_set_new(row, "multi_gpu",
                        several && settings.multiGpuMode < 3
                            ? json_string(multis[settings.multiGpuMode])
                            : json_null());
    json_object_set_new(row, "ready", json_null());
    if (!on)
        return row;
    shk_crumb_call("nvmlSystemGetConfComputeGpusReadyState");
    int rc =
        ops->confidential_ready ? ops->confidential_ready(&ready) : NVML_ERROR_FUNCTION_NOT_FOUND;
    shk_nvml_member(row, "ready", rc, json_boolean(ready != 0));
    return row;
}
