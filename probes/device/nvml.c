/* NVIDIA GPUs as the driver's management library knows them: NVLinks and their state, peer access
 * per pair, the NVLink fabric. No context is made on any GPU. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/device/nvml_value.h"
#include "probes/library/ldsearch.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct nvml_ops {
    struct nvml_core core;
    int (*driver_version)(char *text, unsigned length);
    int (*nvml_version)(char *text, unsigned length);
    int (*name)(nvmlDevice_t device, char *text, unsigned length);
    int (*memory)(nvmlDevice_t device, nvmlMemory_t *memory);
    int (*bar1)(nvmlDevice_t device, nvmlBAR1Memory_t *memory);
    int (*mig)(nvmlDevice_t device, unsigned *current, unsigned *pending);
    int (*persistence)(nvmlDevice_t device, unsigned *mode);
    int (*link_state)(nvmlDevice_t device, unsigned link, unsigned *active);
    int (*link_remote)(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci);
    int (*link_type)(nvmlDevice_t device, unsigned link, unsigned *type);
    int (*p2p)(nvmlDevice_t a, nvmlDevice_t b, unsigned index, unsigned *status);
    int (*fabric)(nvmlDevice_t device, nvmlGpuFabricInfo_v2_t *info);
};

static const struct shk_symbol nvml_symbols[] = {
    NVML_CORE(struct nvml_ops),
    NVML_FN(struct nvml_ops, "nvmlSystemGetDriverVersion", driver_version),
    NVML_FN(struct nvml_ops, "nvmlSystemGetNVMLVersion", nvml_version),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetName", name),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetMemoryInfo", memory),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetBAR1MemoryInfo", bar1),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetMigMode", mig),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetPersistenceMode", persistence),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetNvLinkState", link_state),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetNvLinkRemotePciInfo_v2", link_remote),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetNvLinkRemoteDeviceType", link_type),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetP2PStatus", p2p),
    NVML_FN_OPT(struct nvml_ops, "nvmlDeviceGetGpuFabricInfoV", fabric),
    {.name = NULL},
};

static const struct shk_library nvml_library = NVML_LIBRARY(nvml_symbols);

enum { NVML_MAX_DEVICES = 64 };

struct nvml {
    struct nvml_ops ops;
    struct shk_gather g;
    struct shk_dynlib lib;
    unsigned count;
    nvmlDevice_t devices[NVML_MAX_DEVICES];
    char pci[NVML_MAX_DEVICES][16];
};

static json_t *nvml_text(const char *text)
{
    return text && *text ? shk_gather_str(text) : json_null();
}

static const char *nvml_link_type(unsigned type)
{
    static const char *const names[] = {"gpu", "npu", "switch"};
    return type < sizeof names / sizeof *names ? names[type] : "unknown";
}

/* One NVLink; NULL when the GPU has no link of that number. */
static json_t *nvml_link(const struct nvml *n, nvmlDevice_t device, unsigned link)
{
    unsigned active = 0, type = ~0u;
    nvmlPciInfo_t remote = {.domain = 0};
    char address[32];
    shk_crumb_call("nvmlDeviceGetNvLinkState(link %u)", link);
    int rc =
        n->ops.link_state ? n->ops.link_state(device, link, &active) : NVML_ERROR_NOT_SUPPORTED;
    if (shk_nvml_none(rc))
        return NULL;
    json_t *row = json_pack("{s:i,s:b}", "link", (int)link, "active", active == 1);
    if (rc != NVML_SUCCESS)
        shk_nvml_unread(row, "active", rc);
    if (n->ops.link_type && n->ops.link_type(device, link, &type) == NVML_SUCCESS)
        json_object_set_new(row, "remote", json_string(nvml_link_type(type)));
    else
        json_object_set_new(row, "remote", json_null());
    /* in virtual machines the far end has no address: all bits set */
    if (n->ops.link_remote && n->ops.link_remote(device, link, &remote) == NVML_SUCCESS &&
        remote.domain <= 0xffff) {
        shk_nvml_address(address, sizeof address, &remote);
        json_object_set_new(row, "pci", json_string(address));
    } else {
        json_object_set_new(row, "pci", json_null());
    }
    return row;
}

static json_t *nvml_links(const struct nvml *n, nvmlDevice_t device)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < NVML_NVLINK_MAX_LINKS; i++) {
        json_t *row = nvml_link(n, device, i);
        if (row)
            json_array_append_new(list, row);
    }
    return list;
}

/* What is wrong by the health mask (NVML_GPU_FABRIC_HEALTH_MASK_*): two bits each, 1 true, 2 false,
 * 0 not told; four bits of configuration, 1 right; of a partition 2 is none. NULL: nothing is told.
 */
static json_t *nvml_fabric_health(unsigned mask)
{
    static const struct {
        const char *name;
        unsigned shift, width, bad;
    } rows[] = {
        {"degraded bandwidth", 0, 3, 1}, {"route recovery", 2, 3, 1},
        {"route unhealthy", 4, 3, 1},    {"access timeout recovery", 6, 3, 1},
        {"no partition", 12, 3, 2},
    };
    static const char *const wrong[] = {NULL,
                                        NULL,
                                        "wrong system GUID",
                                        "wrong chassis serial number",
                                        "no partition",
                                        "too few NVLinks",
                                        "incompatible GPU firmware",
                                        "invalid location",
                                        "invalid GPU state"};
    const unsigned setup = mask >> 8 & 15;
    json_t *list = json_array();
    bool told = setup != 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned value = mask >> rows[i].shift & rows[i].width;
        told |= value != 0;
        if (value == rows[i].bad)
            json_array_append_new(list, json_string(rows[i].name));
    }
    if (setup > 1)
        json_array_append_new(list, json_string(setup < sizeof wrong / sizeof *wrong
                                                    ? wrong[setup]
                                                    : "wrong configuration"));
    if (told)
        return list;
    json_decref(list);
    return json_null();
}

/* Sets the member "fabric": null when the driver knows of none. */
static void nvml_fabric(const struct nvml *n, nvmlDevice_t device, json_t *row)
{
    static const char *const states[NVML_FABRIC_STATES] = {"not supported", "not started",
                                                           "in progress", "completed"};
    static const unsigned char none[16];
    nvmlGpuFabricInfo_v2_t info = {.version = (unsigned)sizeof info | 2u << 24};
    shk_crumb_call("nvmlDeviceGetGpuFabricInfoV");
    int rc = n->ops.fabric ? n->ops.fabric(device, &info) : NVML_ERROR_NOT_SUPPORTED;
    json_object_set_new(row, "fabric", json_null());
    if (rc == NVML_SUCCESS && info.state < NVML_FABRIC_STATES)
        json_object_set_new(row, "fabric",
                            json_pack("{s:s,s:i,s:I,s:b,s:o}", "state", states[info.state],
                                      "status", info.status, "clique", (json_int_t)info.cliqueId,
                                      "domain", memcmp(info.clusterUuid, none, sizeof none) != 0,
                                      "health", nvml_fabric_health(info.healthMask)));
    else if (rc == NVML_SUCCESS)
        shk_gather_member_problem(row, "fabric", "NVML tells a state of an unknown number");
    else if (!shk_nvml_none(rc))
        shk_nvml_unread(row, "fabric", rc);
}

static json_t *nvml_device(const struct nvml *n, unsigned index)
{
    nvmlDevice_t device = n->devices[index];
    char text[96] = "";
    nvmlMemory_t memory = {0};
    nvmlBAR1Memory_t bar1 = {0};
    unsigned mode = 0, pending = 0;
    json_t *row = json_pack("{s:i,s:s}", "index", (int)index, "pci", n->pci[index]);
    shk_crumb_call("nvmlDeviceGetName(%u)", index);
    bool named = n->ops.name && n->ops.name(device, text, sizeof text) == NVML_SUCCESS;
    text[sizeof text - 1] = '\0';
    json_object_set_new(row, "name", nvml_text(named ? text : NULL));
    bool known = n->ops.memory && n->ops.memory(device, &memory) == NVML_SUCCESS;
    json_object_set_new(row, "memory",
                        known ? json_integer((json_int_t)memory.total) : json_null());
    known = n->ops.bar1 && n->ops.bar1(device, &bar1) == NVML_SUCCESS;
    json_object_set_new(row, "bar1",
                        known ? json_integer((json_int_t)bar1.bar1Total) : json_null());
    known = n->ops.mig && n->ops.mig(device, &mode, &pending) == NVML_SUCCESS;
    json_object_set_new(row, "mig", known ? json_boolean(mode == 1) : json_null());
    known = n->ops.persistence && n->ops.persistence(device, &mode) == NVML_SUCCESS;
    json_object_set_new(row, "persistence", known ? json_boolean(mode == 1) : json_null());
    nvml_fabric(n, device, row);
    json_object_set_new(row, "links", nvml_links(n, device));
    return row;
}

static json_t *nvml_status(unsigned status)
{
    static const char *const names[] = {
        "ok",
        "chipset not supported",
        "GPU not supported",
        "topology not supported",
        "disabled by registry key",
        "not supported",
    };
    return status < sizeof names / sizeof *names ? json_string(names[status]) : NULL;
}

static json_t *nvml_pair(const struct nvml *n, unsigned a, unsigned b)
{
    static const char *const members[NVML_P2P_COUNT] = {"read", "write", "nvlink", "atomics"};
    json_t *row = json_pack("{s:s,s:s}", "gpu", n->pci[a], "peer", n->pci[b]);
    for (unsigned i = 0; i < NVML_P2P_COUNT; i++) {
        unsigned status = ~0u;
        shk_crumb_call("nvmlDeviceGetP2PStatus(%u, %u)", a, b);
        int rc = n->ops.p2p(n->devices[a], n->devices[b], i, &status);
        json_t *told = rc == NVML_SUCCESS ? nvml_status(status) : NULL;
        json_object_set_new(row, members[i], told ? told : json_null());
        if (rc == NVML_SUCCESS && !told)
            shk_gather_member_problem(row, members[i], "NVML does not know whether it is so");
    }
    return row;
}

static void nvml_pairs(struct nvml *n)
{
    json_t *list = json_array();
    if (!n->ops.p2p) {
        json_decref(list);
        shk_gather_failed(&n->g, "nvml.p2p", n->lib.path, "this version cannot tell");
        return;
    }
    for (unsigned a = 0; a < n->count; a++)
        for (unsigned b = a + 1; b < n->count; b++)
            shk_gather_both_ways(list, nvml_pair(n, a, b), nvml_pair(n, b, a));
    shk_gather_present(&n->g, "nvml.p2p", list, NULL, n->lib.path);
}

/* Says why everything below is not known; `code` is NVML's. */
static void nvml_failed(struct nvml *n, const char *call, int code)
{
    static const char *const keys[] = {"nvml.devices", "nvml.p2p"};
    const char *text = n->ops.core.error_string(code);
    shk_gather_present(
        &n->g, "nvml.error",
        json_pack("{s:s,s:i,s:o}", "call", call, "code", code, "text", nvml_text(text)), NULL,
        n->lib.path);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        shk_gather_failed(&n->g, keys[i], n->lib.path, "%s: %s (%d)", call, text ? text : "error",
                          code);
}

static void nvml_all(struct nvml *n)
{
    json_t *list = json_array();
    unsigned count = 0;
    shk_crumb_call("nvmlDeviceGetCount_v2");
    int rc = n->ops.core.count(&count);
    for (unsigned i = 0; !rc && i < count && n->count < NVML_MAX_DEVICES; i++) {
        nvmlPciInfo_t pci = {.domain = 0};
        nvmlDevice_t device;
        shk_crumb_call("nvmlDeviceGetHandleByIndex_v2(%u)", i);
        /* a GPU that fell off the bus has no handle: the others still count */
        if (n->ops.core.by_index(i, &device) != NVML_SUCCESS ||
            n->ops.core.pci_info(device, &pci) != NVML_SUCCESS)
            continue;
        n->devices[n->count] = device;
        shk_nvml_address(n->pci[n->count], sizeof n->pci[0], &pci);
        n->count++;
    }
    if (rc) {
        json_decref(list);
        nvml_failed(n, "nvmlDeviceGetCount_v2", rc);
        return;
    }
    for (unsigned i = 0; i < n->count; i++)
        json_array_append_new(list, nvml_device(n, i));
    shk_gather_present(&n->g, "nvml.devices", list, NULL, n->lib.path);
    if (n->count < count)
        shk_gather_int(&n->g, "nvml.lost", count - n->count, NULL, n->lib.path);
    else
        shk_gather_absent(&n->g, "nvml.lost", n->lib.path, "every GPU answers");
    nvml_pairs(n);
}

static bool nvml_idle(const struct shk_host *host, const struct shk_facts *known)
{
    (void)known;
    return shk_ldsearch_lacks(host, &nvml_library);
}

static const char *const nvml_provides[] = {
    "nvml.path",    "nvml.version", "nvml.driver", "nvml.error",
    "nvml.devices", "nvml.p2p",     "nvml.lost",   NULL};

static void nvml_versions(struct nvml *n)
{
    char text[96] = "";
    shk_gather_text(&n->g, "nvml.path", n->lib.path, n->lib.path);
    shk_crumb_call("nvmlSystemGetDriverVersion");
    if (n->ops.driver_version(text, sizeof text) == NVML_SUCCESS)
        shk_gather_present(&n->g, "nvml.driver", nvml_text(text), NULL, n->lib.path);
    else
        shk_gather_failed(&n->g, "nvml.driver", n->lib.path, "the library does not know");
    if (n->ops.nvml_version(text, sizeof text) == NVML_SUCCESS)
        shk_gather_present(&n->g, "nvml.version", nvml_text(text), NULL, n->lib.path);
    else
        shk_gather_failed(&n->g, "nvml.version", n->lib.path, "the library does not know");
}

static int nvml_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct nvml n = {.g = shk_gather_begin(ctx)};
    struct shk_error why;
    struct shk_fact fact;
    if (shk_facts_get(ctx->known, "pci.count.gpu-nvidia", &fact) && fact.state == SHK_FACT_ABSENT) {
        for (const char *const *key = nvml_provides; *key; key++)
            shk_gather_absent(&n.g, *key, "/sys/bus/pci/devices", "no NVIDIA GPU on this node");
        return shk_gather_end(&n.g, err);
    }
    int rc = shk_dynlib_open(&n.lib, &nvml_library, &n.ops, &why);
    if (rc) {
        for (const char *const *key = nvml_provides; *key; key++)
            shk_gather_failed(&n.g, *key, nvml_library.names[0], "%s", why.text);
        return shk_gather_end(&n.g, err);
    }
    shk_crumb_call("nvmlInit_v2");
    rc = n.ops.core.init();
    nvml_versions(&n);
    if (rc) {
        nvml_failed(&n, "nvmlInit_v2", rc);
    } else {
        shk_gather_absent(&n.g, "nvml.error", n.lib.path, "it answers");
        nvml_all(&n);
        shk_crumb_call("nvmlShutdown");
        n.ops.core.shutdown();
    }
    shk_crumb_clear();
    shk_dynlib_close(&n.lib, false);
    return shk_gather_end(&n.g, err);
}

const struct shk_probe shk_probe_nvml = {
    .name = "nvml",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "NVIDIA GPUs by NVML: NVLinks, peer access per pair, NVLink fabric",
    .provides = nvml_provides,
    .needs_live = true,
    .deadline_ms = 20000,
    .apart = true,
    .idle = nvml_idle,
    .run = nvml_run,
};
