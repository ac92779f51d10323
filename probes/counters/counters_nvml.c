/* NVIDIA GPUs, in a child of its own: a GPU that hangs must not stop what measures. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/run/stop.h"
#include "probes/counters/counters_private.h"
#include "probes/device/nvml_value.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVML's first call initializes GPUs that no process uses and that keep no state (no persistence
 * mode), which takes seconds; but a rank that is silent for 5 s counts as lost. */
enum { NVML_DEADLINE_MS = 2500 };

struct counter_ops {
    struct nvml_core core;
    int (*replays)(nvmlDevice_t device, unsigned *value);
    int (*ecc_total)(nvmlDevice_t device, int error, int counter, unsigned long long *count);
    int (*remapped)(nvmlDevice_t device, unsigned *correctable, unsigned *uncorrectable,
                    unsigned *pending, unsigned *failure);
    int (*fields)(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
    int (*link_state)(nvmlDevice_t device, unsigned link, unsigned *active);
    int (*link_errors)(nvmlDevice_t device, unsigned link, int counter, unsigned long long *count);
};

#define MAY(fn, member) NVML_FN_OPT(struct counter_ops, "nvmlDeviceGet" fn, member)

static const struct shk_symbol counter_symbols[] = {
    NVML_CORE(struct counter_ops),
    MAY("PcieReplayCounter", replays),
    MAY("TotalEccErrors", ecc_total),
    MAY("RemappedRows", remapped),
    MAY("FieldValues", fields),
    MAY("NvLinkState", link_state),
    MAY("NvLinkErrorCounter", link_errors),
    {.name = NULL},
};

static const struct shk_library counter_library = NVML_LIBRARY(counter_symbols);

struct nvml_gpu {
    struct counters *c;
    const struct counter_ops *ops;
    nvmlDevice_t device;
    char scope[32];
};

/* What an answer comes to: a counter, one that this GPU does not offer, or one not read. */
static void take(struct nvml_gpu *gpu, int rc, const char *name, const char *kind,
                 unsigned long long value)
{
    char why[80];
    snprintf(why, sizeof why, "NVML error %d for %s", rc, name);
    if (rc == NVML_SUCCESS)
        counters_set(gpu->c, gpu->scope, name, kind, value);
    else if (!shk_nvml_none(rc))
        counters_unread(gpu->c, gpu->scope, why);
}

static unsigned long long field_count(const nvmlFieldValue_t *field)
{
    return field->valueType == NVML_VALUE_UINT ? field->value.uiVal : field->value.ullVal;
}

#define ASK(gpu, fn, ...)                                                                          \
    ((gpu)->ops->fn ? (gpu)->ops->fn((gpu)->device, __VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

static void nvml_memory(struct nvml_gpu *gpu)
{
    unsigned long long count = 0;
    unsigned value = 0, fixed = 0, lost = 0, pending = 0, failure = 0;
    int rc = ASK(gpu, ecc_total, NVML_ERRORS_CORRECTED, NVML_SINCE_LOAD, &count);
    take(gpu, rc, "ECC errors corrected", "corrected", count);
    rc = ASK(gpu, ecc_total, NVML_ERRORS_UNCORRECTED, NVML_SINCE_LOAD, &count);
    take(gpu, rc, "ECC errors uncorrected", "uncorrected", count);
    rc = ASK(gpu, remapped, &fixed, &lost, &pending, &failure);
    take(gpu, rc, "rows remapped after corrected errors", "corrected", fixed);
    take(gpu, rc, "rows remapped after uncorrected errors", "uncorrected", lost);
    rc = ASK(gpu, replays, &value);
    take(gpu, rc, "PCIe replays", "replay", value);
}

static bool is_time(const nvmlFieldValue_t *field)
{
    return field->nvmlReturn == NVML_SUCCESS && field->valueType == NVML_VALUE_ULONGLONG;
}

/* Which of the two numbers a driver has for a reason shows in the kind of its answer. */
static void nvml_slowed(struct nvml_gpu *gpu, const char *name, const nvmlFieldValue_t *first,
                        const nvmlFieldValue_t *later)
{
    if (is_time(first) && is_time(later)) {
        char why[80];
        snprintf(why, sizeof why, "two answers for %s", name);
        counters_unread(gpu->c, gpu->scope, why);
        return;
    }
    const nvmlFieldValue_t *field = is_time(later) ? later : first;
    int rc = is_time(field)                      ? NVML_SUCCESS
             : !shk_nvml_none(later->nvmlReturn) ? later->nvmlReturn
                                                 : first->nvmlReturn;
    /* an answer of another kind is one to another question */
    take(gpu, rc || is_time(field) ? rc : NVML_ERROR_NOT_SUPPORTED, name, "slowed",
         field_count(field));
}

/* Time at lower clocks, in nanoseconds since the driver was loaded. */
static void nvml_fields(struct nvml_gpu *gpu)
{
    static const char *const names[NVML_FIELDS_SLOWED] = {
        "SW thermal slowdown", "HW thermal slowdown", "power brake slowdown"};
    enum { LATER = NVML_FIELDS_SLOWED, CAP = 2 * NVML_FIELDS_SLOWED, ALL };
    nvmlFieldValue_t values[ALL] = {{.fieldId = 0}};
    for (unsigned i = 0; i < NVML_FIELDS_SLOWED; i++) {
        values[i].fieldId = NVML_FIELD_SLOWED_FIRST + i;
        values[LATER + i].fieldId = NVML_FIELD_SLOWED_LATER + i;
    }
    values[CAP].fieldId = NVML_FIELD_CAPPED_POWER;
    int rc = ASK(gpu, fields, ALL, values);
    for (int i = 0; i < ALL; i++)
        values[i].nvmlReturn = rc ? rc : values[i].nvmlReturn;
    for (int i = 0; i < NVML_FIELDS_SLOWED; i++)
        nvml_slowed(gpu, names[i], &values[i], &values[LATER + i]);
    take(gpu, values[CAP].nvmlReturn, "power cap", "capped", field_count(&values[CAP]));
}

static void nvml_link(struct nvml_gpu *gpu, unsigned link)
{
    static const struct {
        int counter;
        const char *name, *kind;
    } rows[] = {
        {NVML_LINK_REPLAY, "replays", "link-replay"},
        {NVML_LINK_RECOVERY, "recoveries", "link-replay"},
        {NVML_LINK_CRC_FLIT, "CRC errors", "link-crc"},
    };
    static const struct {
        unsigned id;
        const char *name;
    } newer[] = {
        {NVML_FIELD_LINK_RECOVERED, "recoveries"},
        {NVML_FIELD_LINK_RECOVERY_FAILED, "failed recoveries"},
    };
    char name[48];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned long long count = 0;
        snprintf(name, sizeof name, "NVLink %u %s", link, rows[i].name);
        int rc = ASK(gpu, link_errors, link, rows[i].counter, &count);
        take(gpu, rc, name, rows[i].kind, count);
    }
    for (size_t i = 0; i < sizeof newer / sizeof *newer; i++) {
        nvmlFieldValue_t value = {.fieldId = newer[i].id, .scopeId = link};
        int rc = ASK(gpu, fields, 1, &value);
        snprintf(name, sizeof name, "NVLink %u %s", link, newer[i].name);
        take(gpu, rc ? rc : value.nvmlReturn, name, "link-replay", field_count(&value));
    }
}

static void nvml_gpu(struct counters *c, const struct counter_ops *ops, unsigned index)
{
    struct nvml_gpu gpu = {.c = c, .ops = ops};
    nvmlPciInfo_t pci = {.domain = 0};
    char why[64];
    shk_crumb_call("nvmlDeviceGetHandleByIndex_v2(%u)", index);
    int rc = ops->core.by_index(index, &gpu.device);
    if (!rc)
        rc = ops->core.pci_info(gpu.device, &pci);
    if (rc) {
        snprintf(gpu.scope, sizeof gpu.scope, "GPU %u", index);
        snprintf(why, sizeof why, "NVML error %d", rc);
        counters_begin(c, gpu.scope, "gpu");
        counters_unread(c, gpu.scope, why);
        return;
    }
    shk_nvml_address(gpu.scope, sizeof gpu.scope, &pci);
    counters_begin(c, gpu.scope, "gpu");
    shk_crumb_call("counters of %s", gpu.scope);
    nvml_memory(&gpu);
    nvml_fields(&gpu);
    for (unsigned i = 0; i < NVML_NVLINK_MAX_LINKS; i++) {
        unsigned active = 0;
        rc = ASK(&gpu, link_state, i, &active);
        if (rc && !shk_nvml_none(rc)) {
            snprintf(why, sizeof why, "NVML error %d for NVLink %u", rc, i);
            counters_unread(c, gpu.scope, why);
        } else if (!rc && active == 1) {
            nvml_link(&gpu, i);
        }
    }
}

/* In the child. */
static int nvml_child(void *arg, json_t **result_p, struct shk_error *err)
{
    struct counters *c = arg;
    struct counter_ops ops = {.core = {.init = NULL}};
    struct shk_dynlib lib = {.handle = NULL};
    unsigned count = 0;
    int rc = shk_dynlib_open(&lib, &counter_library, &ops, err);
    if (rc)
        return rc;
    shk_crumb_call("nvmlInit_v2");
    int answer = ops.core.init();
    if (!answer)
        answer = ops.core.count(&count);
    if (answer)
        return shk_error_set(err, EIO, "NVML: %s (%d)", ops.core.error_string(answer), answer);
    for (unsigned i = 0; i < count; i++)
        nvml_gpu(c, &ops, i);
    *result_p = json_pack("{s:O, s:O, s:O, s:O}", "values", c->values, "kinds", c->kinds, "classes",
                          c->classes, "unread", c->unread);
    return *result_p ? 0 : -ENOMEM;
}

/* What the child found, into the parent's objects. */
static void nvml_take(struct counters *c, const json_t *found)
{
    (void)json_object_update(c->values, json_object_get(found, "values"));
    (void)json_object_update(c->kinds, json_object_get(found, "kinds"));
    (void)json_object_update(c->classes, json_object_get(found, "classes"));
    (void)json_object_update(c->unread, json_object_get(found, "unread"));
}

static void nvml_unread(struct counters *c, const char *why)
{
    counters_begin(c, "NVIDIA GPUs", "gpu");
    counters_unread(c, "NVIDIA GPUs", why);
}

struct counters_gpus *counters_nvml_begin(struct counters *c)
{
    struct shk_isolate_job job = {.name = "counters of NVIDIA GPUs",
                                  .fn = nvml_child,
                                  .arg = c,
                                  .deadline_ms = NVML_DEADLINE_MS};
    struct shk_isolate_pending *pending = NULL;
    struct shk_error err = {""};
    if (!shk_host_is_live(c->host) ||
        (!shk_host_exists(c->host, "/dev/nvidiactl") && !getenv("SHAKEDOWN_NVML")))
        return NULL;
    if (shk_stop_signal())
        shk_error_set(&err, EINTR, "%s: interrupted by %s", job.name, shk_stop_name());
    if (*err.text || shk_isolate_begin(&pending, &job, &err))
        nvml_unread(c, err.text);
    return (struct counters_gpus *)pending;
}

void counters_nvml_end(struct counters *c, struct counters_gpus *gpus)
{
    struct shk_isolate_result result = {.outcome = SHK_CHILD_NOT_RUN};
    if (!gpus)
        return;
    shk_isolate_end((struct shk_isolate_pending *)gpus, &result);
    if (result.outcome == SHK_CHILD_OK)
        nvml_take(c, result.result);
    else
        nvml_unread(c, result.error.text);
    shk_isolate_result_clear(&result);
}
