/* What the GPUs of this host do while its ranks are looked at, by NVML, in a child of its own. No
 * context is made on any GPU. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/device/nvml_value.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* nvmlInit_v2() of GPUs without persistence mode takes seconds; a GPU that is lost may not answer.
 */
enum { GPUS_MS = 10000, GPUS_MAX = 64, GPUS_PROCESSES = 64 };

/* PROC_PID_INIT_INO of include/linux/proc_ns.h: NVML's numbers of processes are of that one. */
static const char gpus_namespace[] = "pid:[4026531836]";

typedef struct {
    unsigned gpu, memory; /* percent of the driver's last period in which a kernel ran */
} nvmlUtilization_t;

struct gpus_ops {
    struct nvml_core core;
    int (*utilization)(nvmlDevice_t device, nvmlUtilization_t *rates);
    int (*processes)(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *list);
};

static const struct shk_symbol gpus_symbols[] = {
    NVML_CORE(struct gpus_ops),
    NVML_FN_OPT(struct gpus_ops, "nvmlDeviceGetUtilizationRates", utilization),
    NVML_FN_OPT(struct gpus_ops, "nvmlDeviceGetComputeRunningProcesses_v3", processes),
    {.name = NULL},
};

static const struct shk_library gpus_library = NVML_LIBRARY(gpus_symbols);

static json_t *gpus_processes(const struct gpus_ops *ops, nvmlDevice_t device)
{
    nvmlProcessInfo_v2_t list[GPUS_PROCESSES];
    unsigned count = GPUS_PROCESSES;
    shk_crumb_call("nvmlDeviceGetComputeRunningProcesses_v3");
    if (!ops->processes || ops->processes(device, &count, list))
        return json_null();
    json_t *pids = json_array();
    for (unsigned i = 0; i < count && i < GPUS_PROCESSES; i++)
        json_array_append_new(pids, json_integer(list[i].pid));
    return pids;
}

static json_t *gpus_one(const struct gpus_ops *ops, unsigned index)
{
    nvmlDevice_t device;
    nvmlPciInfo_t pci = {.domain = 0};
    nvmlUtilization_t rates = {.gpu = 0};
    char address[32] = "";
    json_t *row = json_pack("{s:i}", "index", (int)index);
    shk_crumb_call("nvmlDeviceGetHandleByIndex_v2(%u)", index);
    int rc = ops->core.by_index(index, &device);
    rc = rc ? rc : ops->core.pci_info(device, &pci);
    if (!rc) {
        shk_nvml_address(address, sizeof address, &pci);
        json_object_set_new(row, "pci", json_string(address));
        json_object_set_new(row, "processes", gpus_processes(ops, device));
        shk_crumb_call("nvmlDeviceGetUtilizationRates(%u)", index);
        rc = ops->utilization ? ops->utilization(device, &rates) : NVML_ERROR_FUNCTION_NOT_FOUND;
    }
    if (!rc && rates.gpu <= 100)
        json_object_set_new(row, "busy", json_integer(rates.gpu));
    else
        json_object_set_new(row, "unread",
                            rc ? json_sprintf("NVML error %d", rc)
                               : json_sprintf("%u %% busy, says NVML", rates.gpu));
    return row;
}

static int gpus_run(void *arg, json_t **result_p, struct shk_error *err)
{
    struct gpus_ops ops = {.core = {.init = NULL}};
    struct shk_dynlib lib = {.handle = NULL};
    unsigned count = 0;
    (void)arg;
    int rc = shk_dynlib_open(&lib, &gpus_library, &ops, err);
    if (rc)
        return rc;
    shk_crumb_call("nvmlInit_v2");
    int answer = ops.core.init();
    answer = answer ? answer : ops.core.count(&count);
    if (answer)
        return shk_error_set(err, EIO, "NVML: %s (%d)", ops.core.error_string(answer), answer);
    *result_p = json_array();
    for (unsigned i = 0; i < count && i < GPUS_MAX; i++)
        json_array_append_new(*result_p, gpus_one(&ops, i));
    return 0;
}

static bool gpus_same_numbers(const struct shk_host *host)
{
    char *link = NULL;
    bool same = !shk_host_readlink(host, &link, NULL, "/proc/self/ns/pid") &&
                strcmp(link, gpus_namespace) == 0;
    free(link);
    return same || getenv("SHAKEDOWN_NVML"); /* a stand-in has this host's */
}

json_t *hang_gpus(const struct shk_host *host)
{
    struct shk_isolate_job job = {.name = "NVIDIA GPUs", .fn = gpus_run, .deadline_ms = GPUS_MS};
    struct shk_isolate_result result = {0};
    struct shk_error err = {""};
    json_t *gpus = json_object();
    if (!shk_host_exists(host, "/dev/nvidiactl") && !getenv("SHAKEDOWN_NVML")) {
        json_decref(gpus);
        return NULL;
    }
    if (shk_isolate_run(&job, &result, 1, 1, &err))
        json_object_set_new(gpus, "unread", json_string(err.text));
    else if (result.outcome != SHK_CHILD_OK || !result.result)
        json_object_set_new(gpus, "unread",
                            shk_json_text(result.error.text, strlen(result.error.text)));
    else
        json_object_set(gpus, "list", result.result);
    if (!gpus_same_numbers(host))
        json_object_set_new(gpus, "unread",
                            json_string("their processes have other numbers in this container"));
    shk_isolate_result_clear(&result);
    return gpus;
}
