#include "collectives/gpu/gpu_private.h"
#include "core/run/isolate.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What our fatbin is compiled with at least; driver 12.0 also is the first with the memory that
 * NCCL's symmetric windows need. */
#define DRIVER_MIN 11040

/* Launches that overlap: GPUs from compute capability 9.0 on; drivers before 12.3 cannot capture
 * them into a graph (CUDA Programming Guide, "Programmatic Dependent Launch"). */
#define OVERLAP_DRIVER_MIN     12030
#define OVERLAP_CAPABILITY_MIN 9

/* Drivers of nodes with many GPUs take seconds to start. */
#define DEVICE_COUNT_MS 20000

/* Rows of cuda.devices, at most (probes/device/cuda.c). */
#define DEVICES_TOLD 64U

const char *const gpu_cause_names[GPU_CAUSE_COUNT] = {
    [GPU_CAUSE_NONE] = "",
    [GPU_CAUSE_NA] = "na",
    [GPU_CAUSE_DRIVER] = "driver",
    [GPU_CAUSE_MISMATCH] = "driver-mismatch",
    [GPU_CAUSE_NOT_READY] = "driver-not-ready",
    [GPU_CAUSE_BUSY] = "gpu-busy",
    [GPU_CAUSE_ECC] = "gpu-memory",
    [GPU_CAUSE_CALL] = "gpu-call",
    [GPU_CAUSE_DRIVER_OLD] = "driver-old",
    [GPU_CAUSE_VISIBLE] = "visible-devices",
    [GPU_CAUSE_SAME_GPU] = "same-gpu",
    [GPU_CAUSE_NO_PEER] = "no-peer-access",
    [GPU_CAUSE_MEMORY] = "out-of-memory",
    [GPU_CAUSE_ILLEGAL] = "illegal-access",
    [GPU_CAUSE_LATE] = "late-peer",
    [GPU_CAUSE_UNEQUAL] = "unequal-buffers",
    [GPU_CAUSE_NCCL] = "nccl-error",
    [GPU_CAUSE_NCCL_VERSIONS] = "nccl-versions",
    [GPU_CAUSE_NO_WINDOW] = "no-symmetric-memory",
    [GPU_CAUSE_NO_MULTICAST] = "no-multicast",
};

/* Published by each rank, compared by all. */
struct device_place {
    char host[64];
    int32_t parent; /* process; the same when one supervisor forked the ranks */
};

struct device_identity {
    char host[64];
    char pci[32];
    char name[96];
    int32_t ordinal;
    int32_t driver;
    int32_t processors;
};

int gpu_fail(struct gpu_rank *g, enum gpu_cause cause, int rc)
{
    const char *name = gpu_cause_names[cause];
    char have[32];
    size_t len = 0;
    int put = 0;

    if (cause != GPU_CAUSE_NONE &&
        shk_job_get(g->job, g->rank, GPU_KEY_CAUSE, have, sizeof have, &len, NULL) != 0) {
        put = shk_job_put(g->job, GPU_KEY_CAUSE, name, strlen(name) + 1, NULL);
    }
    return put < 0 ? put : rc;
}

static enum gpu_cause device_cause(int status)
{
    switch (status) {
    case GPU_OUT_OF_MEMORY: return GPU_CAUSE_MEMORY;
    case GPU_ILLEGAL_ADDRESS: return GPU_CAUSE_ILLEGAL;
    case GPU_INSUFFICIENT_DRIVER:
    case GPU_UNSUPPORTED_PTX:
    case GPU_NO_BINARY: return GPU_CAUSE_DRIVER_OLD;
    case GPU_PEER_UNSUPPORTED: return GPU_CAUSE_NO_PEER;
    case GPU_DRIVER_MISMATCH: return GPU_CAUSE_MISMATCH;
    case GPU_NOT_READY: return GPU_CAUSE_NOT_READY;
    case GPU_UNAVAILABLE: return GPU_CAUSE_BUSY;
    case GPU_ECC: return GPU_CAUSE_ECC;
    case GPU_NOT_INITIALISED:
    case GPU_NO_DEVICE: return GPU_CAUSE_DRIVER;
    default: return GPU_CAUSE_CALL;
    }
}

int gpu_ok(struct gpu_rank *g, int status, struct shk_error *err, const char *callf, ...)
{
    char call[128];
    va_list ap;

    if (status == GPU_SUCCESS)
        return 0;
    va_start(ap, callf);
    vsnprintf(call, sizeof call, callf, ap);
    va_end(ap);
    return gpu_fail(g, device_cause(status), gpu_check(&g->gpu, status, err, "%s", call));
}

static const char *device_filter(const struct gpu_rank *g, const char **name_p)
{
    const char *const *names =
        shk_variables(g->gpu.vendor == GPU_HIP ? "visible-devices.hip" : "visible-devices.cuda");

    for (; *names; names++) {
        if (getenv(*names)) {
            *name_p = *names;
            return getenv(*names);
        }
    }
    return NULL;
}

/* No device: a node without GPUs, a variable that hides them, or a driver that does not work. */
static int device_none(struct gpu_rank *g, int status, struct shk_error *err)
{
    const char *name = NULL;
    const char *filter = device_filter(g, &name);

    if (filter) {
        return gpu_fail(g, GPU_CAUSE_VISIBLE,
                        shk_error_set(err, ENODEV, "%s=%.60s leaves no GPU visible to the driver",
                                      name, filter));
    }
    if (status == GPU_NO_DEVICE || status == GPU_SUCCESS) {
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, ENODEV, "the driver finds no GPU on this node"));
    }
    int rc = gpu_check(&g->gpu, status, err, "start of the driver %s", g->gpu.dynlib.path);
    enum gpu_cause cause = device_cause(status);

    return gpu_fail(g, cause == GPU_CAUSE_CALL ? GPU_CAUSE_DRIVER : cause, rc);
}

/* Rank within the node, and whether one supervisor forked all ranks: they then see the same GPUs.
 */
static int device_place(struct gpu_rank *g, unsigned *local_p, bool *forked_p,
                        struct shk_error *err)
{
    struct device_place mine = {.parent = (int32_t)getppid()};
    struct device_place theirs;
    size_t len = 0;
    int rc = 0;

    (void)gethostname(mine.host, sizeof mine.host - 1);
    rc = shk_job_put(g->job, GPU_KEY_PLACE, &mine, sizeof mine, err);
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    *forked_p = true;
    *local_p = 0;
    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        rc = shk_job_get(g->job, peer, GPU_KEY_PLACE, &theirs, sizeof theirs, &len, err);
        if (rc == 0) {
            bool here = strcmp(theirs.host, mine.host) == 0;

            *local_p += here && peer < g->rank;
            *forked_p = *forked_p && here && theirs.parent == mine.parent;
        }
    }
    return rc;
}

/* The GPU of this rank: by rank within the node among those that it sees. */
static int device_choose(struct gpu_rank *g, struct shk_error *err)
{
    int count = 0;
    int status = g->gpu.api.device_count(&count);
    bool forked = false;
    unsigned local = 0;
    int rc = 0;

    if (status != GPU_SUCCESS || count == 0)
        return device_none(g, status, err);
    rc = device_place(g, &local, &forked, err);
    if (rc == 0 && forked && !g->run->path->shared && g->ranks > (unsigned)count) {
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, ENODEV, "%u ranks, but %d %s visible", g->ranks, count,
                                      count == 1 ? "GPU is" : "GPUs are"));
    }
    g->ordinal = (int)(local % (unsigned)count);
    return rc == 0
               ? gpu_ok(g, g->gpu.api.device_get(&g->device, g->ordinal), err, "GPU %d", g->ordinal)
               : rc;
}

static void device_describe(struct gpu_rank *g, struct device_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    (void)gethostname(identity->host, sizeof identity->host - 1);
    snprintf(identity->pci, sizeof identity->pci, "%.31s", g->pci);
    snprintf(identity->name, sizeof identity->name, "%.95s", g->name);
    identity->ordinal = g->ordinal;
    identity->driver = g->driver;
    identity->processors = g->processors;
}

static int device_compare(struct gpu_rank *g, const struct device_identity *mine,
                          struct shk_error *err)
{
    struct device_identity theirs;
    size_t len = 0;
    int rc = 0;

    for (unsigned peer = 0; peer < g->ranks && rc == 0; peer++) {
        rc = shk_job_get(g->job, peer, GPU_KEY_IDENTITY, &theirs, sizeof theirs, &len, err);
        if (rc == 0 && theirs.processors < g->processors)
            g->processors = theirs.processors;
        if (rc == 0 && peer != g->rank && !g->run->path->shared &&
            strcmp(theirs.host, mine->host) == 0 && strcmp(theirs.pci, mine->pci) == 0) {
            rc = gpu_fail(g, GPU_CAUSE_SAME_GPU,
                          shk_error_set(err, EBUSY, "ranks %u and %u both use GPU %.31s of %.60s",
                                        peer < g->rank ? peer : g->rank,
                                        peer < g->rank ? g->rank : peer, mine->pci, mine->host));
        }
    }
    return rc;
}

static int device_exchange(struct gpu_rank *g, struct shk_error *err)
{
    struct device_identity mine;
    int rc = 0;

    device_describe(g, &mine);
    rc = shk_job_put(g->job, GPU_KEY_IDENTITY, &mine, sizeof mine, err);
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    return rc == 0 ? device_compare(g, &mine, err) : rc;
}

static int device_context(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    void *context = NULL;
    int rc = 0;

    shk_crumb_call("primary context of GPU %d", g->ordinal);
    rc = gpu_ok(g, api->context_retain(&context, g->device), err, "context on GPU %d", g->ordinal);
    if (rc == 0)
        rc = gpu_ok(g, api->context_set(context), err, "context on GPU %d", g->ordinal);
    if (rc == 0)
        rc = gpu_ok(g, api->stream_create(&g->stream, GPU_STREAM_FREE), err, "stream");
    if (rc == 0)
        rc = gpu_ok(g, api->alloc(&g->result, sizeof(struct shk_gpu_check)), err, "memory");
    return rc;
}

static bool device_overlaps(const struct gpu_rank *g)
{
    int capability = 0;

    return g->gpu.api.launch_with && g->driver >= OVERLAP_DRIVER_MIN &&
           g->gpu.api.device_attribute(&capability, GPU_ATTR_CAPABILITY, g->device) ==
               GPU_SUCCESS &&
           capability >= OVERLAP_CAPABILITY_MIN;
}

static int device_start(struct gpu_rank *g, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    int status = 0;
    int rc = 0;

    shk_crumb_library(g->gpu.dynlib.path);
    shk_crumb_call("%s", g->gpu.vendor == GPU_HIP ? "hipInit" : "cuInit");
    (void)api->driver_version(&g->driver);
    status = api->init(0);
    if (status != GPU_SUCCESS)
        return device_none(g, status, err);
    if (g->gpu.vendor == GPU_CUDA && g->driver < DRIVER_MIN) {
        return gpu_fail(g, GPU_CAUSE_DRIVER_OLD,
                        shk_error_set(err, ENOSYS,
                                      "the driver supports CUDA %d.%d; %d.%d or later is needed",
                                      g->driver / 1000, g->driver % 1000 / 10, DRIVER_MIN / 1000,
                                      DRIVER_MIN % 1000 / 10));
    }
    rc = device_choose(g, err);
    if (rc == 0) {
        rc = gpu_ok(g, api->device_name(g->name, (int)sizeof g->name, g->device), err,
                    "name of GPU %d", g->ordinal);
    }
    if (rc == 0) {
        rc = gpu_ok(g, api->device_pci(g->pci, (int)sizeof g->pci, g->device), err,
                    "PCI address of GPU %d", g->ordinal);
    }
    if (rc == 0 && g->gpu.vendor == GPU_CUDA &&
        api->device_attribute(&g->processors, GPU_ATTR_PROCESSORS, g->device) != GPU_SUCCESS) {
        g->processors = 0;
    }
    g->overlap = rc == 0 && device_overlaps(g);
    return rc;
}

int gpu_device_open(struct gpu_rank *g, struct shk_error *err)
{
    int rc = 0;

    if (g->ranks > SHK_GPU_MAX_RANKS && g->run->path->kernels) {
        return gpu_fail(g, GPU_CAUSE_NA,
                        shk_error_set(err, EINVAL, "own kernels are for up to %u ranks, not %u",
                                      SHK_GPU_MAX_RANKS, g->ranks));
    }
    rc = gpu_lib_open(&g->gpu, g->run->path->vendor, g->run->tweaks->driver_names, err);
    if (rc == -ENOENT)
        return gpu_fail(g, GPU_CAUSE_NA, rc);
    if (rc == -ENOSYS)
        return gpu_fail(g, GPU_CAUSE_DRIVER_OLD, rc);
    if (rc < 0)
        return gpu_fail(g, GPU_CAUSE_DRIVER, rc);
    rc = device_start(g, err);
    if (rc == 0)
        rc = device_exchange(g, err);
    if (rc == 0)
        rc = device_context(g, err);
    return rc == 0 ? gpu_kernels_load(g, err) : rc;
}

int gpu_device_again(struct gpu_rank *g, struct shk_error *err)
{
    struct device_place place = {.parent = (int32_t)getppid()};
    struct device_identity mine;
    int rc = 0;

    (void)gethostname(place.host, sizeof place.host - 1);
    device_describe(g, &mine);
    rc = shk_job_put(g->job, GPU_KEY_PLACE, &place, sizeof place, err);
    return rc == 0 ? shk_job_put(g->job, GPU_KEY_IDENTITY, &mine, sizeof mine, err) : rc;
}

bool gpu_device_pci(const struct shk_job *job, unsigned rank, char *buf, size_t size)
{
    struct device_identity id;
    size_t len = 0;

    if (shk_job_get(job, rank, GPU_KEY_IDENTITY, &id, sizeof id, &len, NULL) != 0 ||
        len != sizeof id) {
        return false;
    }
    snprintf(buf, size, "%.*s", (int)strnlen(id.pci, sizeof id.pci), id.pci);
    return true;
}

unsigned gpu_device_hosts(const struct shk_job *job)
{
    json_t *hosts = json_object();
    struct device_identity id;
    unsigned count = 0;
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (shk_job_get(job, rank, GPU_KEY_IDENTITY, &id, sizeof id, &len, NULL) == 0) {
            id.host[sizeof id.host - 1] = '\0';
            (void)json_object_set_new_nocheck(hosts, id.host, json_true());
        }
    }
    count = (unsigned)json_object_size(hosts);
    json_decref(hosts);
    return count;
}

json_t *gpu_device_json(const struct shk_job *job)
{
    json_t *devices = json_array();
    struct device_identity id;
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job) && devices != NULL; rank++) {
        json_t *row = NULL;

        if (shk_job_get(job, rank, GPU_KEY_IDENTITY, &id, sizeof id, &len, NULL) != 0)
            continue;
        row = json_pack("{s:i, s:i, s:o, s:o, s:o, s:i}", "rank", (int)rank, "ordinal",
                        (int)id.ordinal, "name", shk_json_text(id.name, strnlen(id.name, 96)),
                        "pci", shk_json_text(id.pci, strnlen(id.pci, 32)), "host",
                        shk_json_text(id.host, strnlen(id.host, 64)), "driver", (int)id.driver);
        if (json_array_append_new(devices, row) != 0) {
            json_decref(devices);
            devices = NULL;
        }
    }
    return devices;
}

static int device_ask(void *arg, json_t **result_p, struct shk_error *err)
{
    const enum gpu_vendor *vendor = arg;
    struct gpu_lib lib = {0};
    int count = 0;
    int rc = gpu_lib_open(&lib, *vendor, NULL, err);

    if (rc == 0 &&
        (lib.api.init(0) != GPU_SUCCESS || lib.api.device_count(&count) != GPU_SUCCESS)) {
        rc = shk_error_set(err, ENODEV, "%s reports no device", lib.dynlib.path);
    }
    *result_p = json_integer(count);
    return rc;
}

/* As the cuda probe found them, in a child of this process with the same environment; 0 when it did
 * not, or not all: it stops at 64, and tells of one that it left out. */
static unsigned device_told(const struct shk_facts *facts)
{
    struct shk_fact error;
    size_t count = facts ? json_array_size(shk_facts_get_array(facts, "cuda.devices")) : 0;
    bool whole = count > 0 && shk_facts_get(facts, "cuda.error", &error) &&
                 error.state == SHK_FACT_ABSENT && !getenv("SHAKEDOWN_CUDA");

    return whole && count < DEVICES_TOLD ? (unsigned)count : 0;
}

unsigned shk_gpus_visible(const struct shk_facts *facts)
{
    static enum gpu_vendor vendors[] = {GPU_CUDA, GPU_HIP};
    unsigned count = device_told(facts);

    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0] && count == 0; i++) {
        struct shk_isolate_job job = {.name = "GPU driver",
                                      .fn = device_ask,
                                      .arg = &vendors[i],
                                      .deadline_ms = DEVICE_COUNT_MS};
        struct shk_isolate_result result = {0};

        if (shk_isolate_run(&job, &result, 1, 1, NULL) == 0 && result.outcome == SHK_CHILD_OK) {
            json_int_t found = json_integer_value(result.result);

            count = found > 0 && found <= SHK_JOB_MAX_RANKS ? (unsigned)found : 0;
        }
        shk_isolate_result_clear(&result);
    }
    return count;
}
