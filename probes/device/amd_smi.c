/* What AMD's management library knows of the GPUs and the driver's sysfs files do not: whether ECC
 * is on, the links between GPUs one by one, how many bad pages a GPU may have. Only functions whose
 * arguments are the same in all releases (23 to 27) are called. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/library/ldsearch.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* As in its header (ROCm/amdsmi:include/amd_smi/amdsmi.h). */
enum {
    AMD_SMI_OK = 0,
    AMD_SMI_NOT_SUPPORTED = 2,
    AMD_SMI_NOT_YET_IMPLEMENTED = 3,
    AMD_SMI_INIT_GPUS = 1 << 1,
    AMD_SMI_LINKS = 8,
    AMD_SMI_MOST = 64 /* sockets of a node, GPUs of a socket */
};

typedef void *amd_smi_handle;

struct amd_smi_links {
    uint32_t count, status[AMD_SMI_LINKS]; /* 0: down, 1: up, 2: disabled */
    uint64_t reserved[7];
};

struct amd_smi_ops {
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*sockets)(uint32_t *count, amd_smi_handle *list);
    int (*gpus)(amd_smi_handle socket, uint32_t *count, amd_smi_handle *list);
    int (*bdf)(amd_smi_handle gpu, uint64_t *bdf);
    int (*ecc)(amd_smi_handle gpu, uint64_t *blocks);
    int (*threshold)(amd_smi_handle gpu, uint32_t *pages);
    int (*links)(amd_smi_handle gpu, struct amd_smi_links *links);
    int (*status_text)(int status, const char **text);
};

#define MUST(fn, member)                                                                           \
    {                                                                                              \
        .name = "amdsmi_" fn, .offset = offsetof(struct amd_smi_ops, member)                       \
    }
#define MAY(fn, member)                                                                            \
    {                                                                                              \
        .name = "amdsmi_" fn, .offset = offsetof(struct amd_smi_ops, member), .optional = true     \
    }

static const struct shk_symbol amd_smi_symbols[] = {
    MUST("init", init),
    MUST("shut_down", shut_down),
    MUST("get_socket_handles", sockets),
    MUST("get_processor_handles", gpus),
    MUST("get_gpu_bdf_id", bdf),
    MAY("get_gpu_ecc_enabled", ecc),
    MAY("get_gpu_bad_page_threshold", threshold),
    MAY("get_gpu_xgmi_link_status", links),
    MAY("status_code_to_string", status_text),
    {.name = NULL},
};

static const char *const amd_smi_names[] = {"libamd_smi.so.27",
                                            "libamd_smi.so.26",
                                            "libamd_smi.so.25",
                                            "libamd_smi.so.24",
                                            "libamd_smi.so.23",
                                            "libamd_smi.so.1",
                                            "libamd_smi.so.0",
                                            "/opt/rocm/lib/libamd_smi.so",
                                            NULL};
static const struct shk_library amd_smi_library = {
    .names = amd_smi_names, .env_override = "SHAKEDOWN_AMD_SMI", .symbols = amd_smi_symbols};

static const char health_key[] = "amdsmi.health", path_key[] = "amdsmi.path";

static void set_problem(const struct amd_smi_ops *ops, json_t *gpu, const char *member, int rc)
{
    const char *text = NULL;
    char why[120];
    if (ops->status_text)
        (void)ops->status_text(rc, &text);
    snprintf(why, sizeof why, "amd_smi: %.90s (%d)", text ? text : "error", rc);
    shk_gather_member_problem(gpu, member, why);
}

/* `value` is stolen. A function that the library lacks is one that it does not offer. */
static void set_member(const struct amd_smi_ops *ops, json_t *gpu, const char *member, int rc,
                       json_t *value)
{
    bool none = rc == AMD_SMI_NOT_SUPPORTED || rc == AMD_SMI_NOT_YET_IMPLEMENTED;
    json_object_set_new(gpu, member, rc == AMD_SMI_OK ? json_incref(value) : json_null());
    json_decref(value);
    if (rc != AMD_SMI_OK && !none)
        set_problem(ops, gpu, member, rc);
}

#define ASK(ops, fn, ...) ((ops)->fn ? (ops)->fn(__VA_ARGS__) : AMD_SMI_NOT_SUPPORTED)

static json_t *link_states(const struct amd_smi_links *links)
{
    static const char *const states[] = {"down", "up", "disabled"};
    json_t *list = json_array();
    for (uint32_t i = 0; i < links->count && i < AMD_SMI_LINKS; i++)
        json_array_append_new(list, links->status[i] < 3 ? json_string(states[links->status[i]])
                                                         : json_null());
    return list;
}

/* Bits: 63 to 32 domain, 15 to 8 bus, 7 to 3 device, 2 to 0 function; 31 to 28 partition. */
static json_t *address(uint64_t bdf)
{
    return json_sprintf("%04x:%02x:%02x.%x", (unsigned)(bdf >> 32), (unsigned)(bdf >> 8 & 0xff),
                        (unsigned)(bdf >> 3 & 0x1f), (unsigned)(bdf & 7));
}

static json_t *one_gpu(const struct amd_smi_ops *ops, amd_smi_handle handle)
{
    uint64_t bdf = 0, blocks = 0;
    uint32_t pages = 0;
    struct amd_smi_links links = {.count = 0};
    json_t *gpu = json_object();
    shk_crumb_call("amdsmi_get_gpu_bdf_id");
    int rc = ops->bdf(handle, &bdf);
    set_member(ops, gpu, "pci", rc, address(bdf));
    shk_crumb_call("amdsmi_get_gpu_ecc_enabled");
    rc = ASK(ops, ecc, handle, &blocks);
    set_member(ops, gpu, "ecc", rc, json_boolean(blocks != 0));
    shk_crumb_call("amdsmi_get_gpu_bad_page_threshold");
    rc = ASK(ops, threshold, handle, &pages);
    set_member(ops, gpu, "bad_pages_most", rc, json_integer(pages));
    shk_crumb_call("amdsmi_get_gpu_xgmi_link_status");
    rc = ASK(ops, links, handle, &links);
    set_member(ops, gpu, "links", rc, link_states(&links));
    return gpu;
}

/* Appends the GPUs of one socket; AMD_SMI_OK or the library's error. */
static int one_socket(const struct amd_smi_ops *ops, amd_smi_handle socket, json_t *list)
{
    amd_smi_handle gpus[AMD_SMI_MOST];
    uint32_t count = 0;
    shk_crumb_call("amdsmi_get_processor_handles");
    int rc = ops->gpus(socket, &count, NULL);
    count = count < AMD_SMI_MOST ? count : AMD_SMI_MOST;
    if (rc == AMD_SMI_OK && count)
        rc = ops->gpus(socket, &count, gpus);
    for (uint32_t i = 0; rc == AMD_SMI_OK && i < count && i < AMD_SMI_MOST; i++)
        json_array_append_new(list, one_gpu(ops, gpus[i]));
    return rc;
}

static int all_gpus(const struct amd_smi_ops *ops, json_t *list)
{
    amd_smi_handle sockets[AMD_SMI_MOST];
    uint32_t count = 0;
    shk_crumb_call("amdsmi_init");
    int rc = ops->init(AMD_SMI_INIT_GPUS);
    if (rc != AMD_SMI_OK)
        return rc;
    shk_crumb_call("amdsmi_get_socket_handles");
    rc = ops->sockets(&count, NULL);
    count = count < AMD_SMI_MOST ? count : AMD_SMI_MOST;
    if (rc == AMD_SMI_OK && count)
        rc = ops->sockets(&count, sockets);
    for (uint32_t i = 0; rc == AMD_SMI_OK && i < count && i < AMD_SMI_MOST; i++)
        rc = one_socket(ops, sockets[i], list);
    shk_crumb_call("amdsmi_shut_down");
    (void)ops->shut_down();
    return rc;
}

static void amd_smi_ask(struct shk_gather *g, const struct amd_smi_ops *ops, const char *path)
{
    json_t *list = json_array();
    const char *text = NULL;
    int rc = all_gpus(ops, list);
    if (rc != AMD_SMI_OK && ops->status_text)
        (void)ops->status_text(rc, &text);
    if (rc != AMD_SMI_OK)
        shk_gather_failed(g, health_key, path, "amd_smi: %s (%d)", text ? text : "error", rc);
    else
        shk_gather_present(g, health_key, json_incref(list), NULL, path);
    json_decref(list);
}

static bool amd_smi_none(const struct shk_facts *known)
{
    struct shk_fact fact;
    return known && shk_facts_get(known, "pci.count.gpu-amd", &fact) &&
           fact.state == SHK_FACT_ABSENT;
}

static void amd_smi_absent(struct shk_gather *g, const char *source, const char *why)
{
    shk_gather_absent(g, path_key, source, "%s", why);
    shk_gather_absent(g, health_key, source, "%s", why);
}

static int amd_smi_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct amd_smi_ops ops = {.init = NULL};
    struct shk_dynlib lib = {.handle = NULL};
    struct shk_error why = {""};
    if (amd_smi_none(ctx->known)) {
        amd_smi_absent(&g, "/sys/bus/pci/devices", "no AMD GPU on this node");
        return shk_gather_end(&g, err);
    }
    int rc = shk_dynlib_open(&lib, &amd_smi_library, &ops, &why);
    if (rc == -ENOENT) {
        amd_smi_absent(&g, amd_smi_names[0], "amd_smi is not installed");
    } else if (rc) {
        shk_gather_failed(&g, path_key, amd_smi_names[0], "%s", why.text);
        shk_gather_failed(&g, health_key, amd_smi_names[0], "%s", why.text);
    } else {
        shk_gather_text(&g, path_key, lib.path, "link map");
        amd_smi_ask(&g, &ops, lib.path);
        shk_crumb_clear();
    }
    shk_dynlib_close(&lib, false);
    return shk_gather_end(&g, err);
}

static bool amd_smi_idle(const struct shk_host *host, const struct shk_facts *known)
{
    return amd_smi_none(known) || shk_ldsearch_lacks(host, &amd_smi_library);
}

static const char *const amd_smi_provides[] = {health_key, path_key, NULL};

const struct shk_probe shk_probe_amd_smi = {
    .name = "amd_smi",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "AMD GPUs by amd_smi: ECC, links between GPUs, limit of bad pages",
    .provides = amd_smi_provides,
    .needs_live = true,
    .deadline_ms = 20000,
    .apart = true,
    .idle = amd_smi_idle,
    .run = amd_smi_run,
};
