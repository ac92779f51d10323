/* What the CUDA driver says about the GPUs of this process, without making a context. */
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/library/ldsearch.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Driver API as in its reference manual (docs.nvidia.com/cuda/cuda-driver-api): CUresult and
 * CUdevice are ints. */
struct cuda_ops {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*count)(int *count);
    int (*get)(int *device, int ordinal);
    int (*name)(char *name, int size, int device);
    int (*bus_id)(char *text, int size, int device);
    int (*attribute)(int *value, int attribute, int device);
    int (*p2p)(int *value, int attribute, int a, int b);
    int (*error_string)(int code, const char **text);
};

#define CUDA_FN(fn, member)                                                                        \
    {                                                                                              \
        .name = fn, .offset = offsetof(struct cuda_ops, member)                                    \
    }

static const struct shk_symbol cuda_symbols[] = {
    CUDA_FN("cuInit", init),
    CUDA_FN("cuDriverGetVersion", driver_version),
    CUDA_FN("cuDeviceGetCount", count),
    CUDA_FN("cuDeviceGet", get),
    CUDA_FN("cuDeviceGetName", name),
    CUDA_FN("cuDeviceGetPCIBusId", bus_id),
    CUDA_FN("cuDeviceGetAttribute", attribute),
    CUDA_FN("cuDeviceGetP2PAttribute", p2p),
    CUDA_FN("cuGetErrorString", error_string),
    {.name = NULL},
};

static const char *const cuda_names[] = {"libcuda.so.1", NULL};
static const struct shk_library cuda_library = {
    .names = cuda_names, .env_override = "SHAKEDOWN_CUDA", .symbols = cuda_symbols};

/* CUdevice_attribute. */
static const struct {
    const char *member;
    int attribute;
} cuda_attributes[] = {
    {"compute_major", 75}, {"compute_minor", 76}, {"vmm", 102},           {"posix_handle", 103},
    {"gdr", 116},          {"dmabuf", 124},       {"fabric_handle", 128}, {"multicast", 132},
};

/* CUdevice_P2PAttribute. */
enum { CUDA_P2P_RANK = 1, CUDA_P2P_ACCESS = 2, CUDA_P2P_ATOMICS = 3 };

enum { CUDA_MAX_DEVICES = 64 };

struct cuda {
    struct cuda_ops ops;
    struct shk_gather g;
    struct shk_dynlib lib;
    int count;
    int devices[CUDA_MAX_DEVICES];
    char pci[CUDA_MAX_DEVICES][20];
};

static bool cuda_idle(const struct shk_host *host, const struct shk_facts *known)
{
    (void)known;
    return shk_ldsearch_lacks(host, &cuda_library);
}

static const char *const cuda_provides[] = {"cuda.path",    "cuda.driver", "cuda.error",
                                            "cuda.devices", "cuda.p2p",    NULL};

static void cuda_all_absent(struct cuda *c, const char *source, const char *reason)
{
    for (const char *const *key = cuda_provides; *key; key++)
        shk_gather_absent(&c->g, *key, source, "%s", reason);
}

static const char *cuda_error(struct cuda *c, const char *call, int code)
{
    const char *text = NULL;
    if (c->ops.error_string(code, &text) != 0 || !text)
        text = "unknown error";
    shk_gather_present(
        &c->g, "cuda.error",
        json_pack("{s:s,s:i,s:o}", "call", call, "code", code, "text", shk_gather_str(text)), NULL,
        c->lib.path);
    return text;
}

static void cuda_failed(struct cuda *c, const char *call, int code)
{
    const char *text = cuda_error(c, call, code);
    shk_gather_failed(&c->g, "cuda.devices", c->lib.path, "%s: %s (%d)", call, text, code);
    shk_gather_failed(&c->g, "cuda.p2p", c->lib.path, "%s: %s (%d)", call, text, code);
}

static json_t *cuda_device(struct cuda *c, int index)
{
    char name[128] = "";
    json_t *row = json_pack("{s:i,s:s}", "index", index, "pci", c->pci[index]);
    shk_crumb_call("cuDeviceGetName(%d)", index);
    if (c->ops.name(name, sizeof name - 1, c->devices[index]) == 0)
        json_object_set_new(row, "name", shk_gather_str(name));
    for (size_t i = 0; i < sizeof cuda_attributes / sizeof *cuda_attributes; i++) {
        int value = 0;
        shk_crumb_call("cuDeviceGetAttribute(%d)", cuda_attributes[i].attribute);
        int rc = c->ops.attribute(&value, cuda_attributes[i].attribute, c->devices[index]);
        /* a driver that does not know the attribute yet says so */
        json_object_set_new(row, cuda_attributes[i].member, rc ? json_null() : json_integer(value));
    }
    return row;
}

static json_t *cuda_pair(struct cuda *c, int a, int b)
{
    static const struct {
        const char *member;
        int attribute;
        bool flag;
    } rows[] = {{"access", CUDA_P2P_ACCESS, true},
                {"atomics", CUDA_P2P_ATOMICS, true},
                {"rank", CUDA_P2P_RANK, false}};
    json_t *row = json_pack("{s:s,s:s}", "gpu", c->pci[a], "peer", c->pci[b]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = 0;
        shk_crumb_call("cuDeviceGetP2PAttribute(%d, %d)", a, b);
        int rc = c->ops.p2p(&value, rows[i].attribute, c->devices[a], c->devices[b]);
        json_object_set_new(row, rows[i].member,
                            rc             ? json_null()
                            : rows[i].flag ? json_boolean(value != 0)
                                           : json_integer(value));
    }
    return row;
}

/* A GPU that is counted but does not tell where it is has no row: then cuda.error says so. */
static void cuda_find(struct cuda *c, int count)
{
    bool all = true;
    for (int i = 0; i < count && c->count < CUDA_MAX_DEVICES; i++) {
        char *text = c->pci[c->count];
        char call[48];
        snprintf(call, sizeof call, "cuDeviceGetPCIBusId(%d)", i);
        shk_crumb_call("%s", call);
        int rc = c->ops.get(&c->devices[c->count], i);
        if (!rc)
            rc = c->ops.bus_id(text, sizeof c->pci[0], c->devices[c->count]);
        if (rc && all)
            cuda_error(c, call, rc);
        all = all && !rc;
        if (rc)
            continue;
        for (char *p = text; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        c->count++;
    }
    if (all)
        shk_gather_absent(&c->g, "cuda.error", c->lib.path, "it answers");
}

static void cuda_all(struct cuda *c)
{
    int count = 0;
    shk_crumb_call("cuDeviceGetCount");
    int rc = c->ops.count(&count);
    if (rc) {
        cuda_failed(c, "cuDeviceGetCount", rc);
        return;
    }
    cuda_find(c, count);
    json_t *devices = json_array(), *pairs = json_array();
    for (int a = 0; a < c->count; a++) {
        json_array_append_new(devices, cuda_device(c, a));
        for (int b = a + 1; b < c->count; b++)
            shk_gather_both_ways(pairs, cuda_pair(c, a, b), cuda_pair(c, b, a));
    }
    shk_gather_present(&c->g, "cuda.devices", devices, NULL, c->lib.path);
    shk_gather_present(&c->g, "cuda.p2p", pairs, NULL, c->lib.path);
}

static void cuda_version(struct cuda *c)
{
    int version = 0;
    char text[32];
    shk_gather_text(&c->g, "cuda.path", c->lib.path, c->lib.path);
    shk_crumb_call("cuDriverGetVersion");
    if (c->ops.driver_version(&version) != 0 || version <= 0) {
        shk_gather_failed(&c->g, "cuda.driver", c->lib.path, "the library does not know");
        return;
    }
    snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
    shk_gather_text(&c->g, "cuda.driver", text, c->lib.path);
}

static int cuda_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct cuda c = {.g = shk_gather_begin(ctx)};
    struct shk_error why;
    struct shk_fact fact;
    if (shk_facts_get(ctx->known, "pci.count.gpu-nvidia", &fact) && fact.state == SHK_FACT_ABSENT) {
        cuda_all_absent(&c, "/sys/bus/pci/devices", "no NVIDIA GPU on this node");
        return shk_gather_end(&c.g, err);
    }
    int rc = ctx->quick ? shk_error_set(&why, ECANCELED, "not asked in a quick run")
                        : shk_dynlib_open(&c.lib, &cuda_library, &c.ops, &why);
    if (rc) {
        for (const char *const *key = cuda_provides; *key; key++)
            shk_gather_failed(&c.g, *key, cuda_names[0], "%s", why.text);
        return shk_gather_end(&c.g, err);
    }
    cuda_version(&c);
    shk_crumb_call("cuInit");
    rc = c.ops.init(0);
    if (rc)
        cuda_failed(&c, "cuInit", rc);
    else
        cuda_all(&c);
    shk_crumb_clear();
    shk_dynlib_close(&c.lib, false);
    return shk_gather_end(&c.g, err);
}

const struct shk_probe shk_probe_cuda = {
    .name = "cuda",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "CUDA driver: version, GPUs of this process, peer access per pair",
    .provides = cuda_provides,
    .needs_live = true,
    .deadline_ms = 30000, /* cuInit takes seconds on nodes of eight GPUs without persistence */
    .apart = true,
    .idle = cuda_idle,
    .run = cuda_run,
};
