/* GPUs and accelerators as their kernel drivers list them, without any vendor library. */
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/device/kfd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA_PROC  "/proc/driver/nvidia"
#define NEURON_CLASS "/sys/class/neuron_device"

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build …": the first
 * word that is a dotted number. */
static json_t *accelerators_nvidia_version(const char *line)
{
    char *copy = strdup(line), *save;
    json_t *version = NULL;
    for (char *w = copy ? strtok_r(copy, " \t", &save) : NULL; w && !version;
         w = strtok_r(NULL, " \t", &save))
        if (*w >= '0' && *w <= '9' && strchr(w, '.') && w[strspn(w, "0123456789.")] == '\0')
            version = json_string(w);
    free(copy);
    return version;
}

static void accelerators_nvidia_driver(struct shk_gather *g)
{
    static const char path[] = NVIDIA_PROC "/version", key[] = "gpu.nvidia.driver";
    struct shk_error err;
    char *line = NULL;
    int rc = shk_host_line(g->host, &line, &err, path);
    json_t *version = rc ? NULL : accelerators_nvidia_version(line);
    if (rc)
        shk_gather_unread(g, key, path, "/proc/self", rc, &err);
    else if (!version)
        shk_gather_failed(g, key, path, "%s: no version in '%.60s'", path, line);
    else
        shk_gather_present(g, key,
                           json_pack("{s:o,s:b}", "version", version, "open",
                                     strstr(line, "Open Kernel Module") != NULL),
                           NULL, path);
    free(line);
}

/* "Model: \t\t NVIDIA H100 80GB HBM3" lines. */
static json_t *accelerators_nvidia_gpu(const struct shk_host *host, const char *addr)
{
    static const struct {
        const char *label, *member;
        bool number;
    } rows[] = {
        {"Model:", "model", false},
        {"GPU UUID:", "uuid", false},
        {"Device Minor:", "minor", true},
        {"GPU Excluded:", "excluded", false},
    };
    struct shk_error err;
    char *text = NULL, *save, path[160];
    json_t *gpu = json_object();
    json_object_set_new(gpu, "pci", shk_gather_str(addr));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_object_set_new(gpu, rows[i].member, json_null());
    snprintf(path, sizeof path, NVIDIA_PROC "/gpus/%s/information", addr);
    if (shk_host_read(host, path, &text, NULL, &err) != 0) {
        shk_gather_member_problem(gpu, "information", err.text);
        return gpu;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            size_t n = strlen(rows[i].label);
            if (strncmp(line, rows[i].label, n) != 0)
                continue;
            char *value = shk_trim(line + n);
            json_object_set_new(gpu, rows[i].member,
                                rows[i].number ? json_integer(strtol(value, NULL, 10))
                                               : shk_gather_str(value));
        }
    free(text);
    if (json_is_null(json_object_get(gpu, "model")))
        shk_gather_member_problem(gpu, "information", "no model in it");
    return gpu;
}

static void accelerators_nvidia(struct shk_gather *g)
{
    static const char path[] = NVIDIA_PROC "/gpus", key[] = "gpu.nvidia.devices";
    accelerators_nvidia_driver(g);
    char **names = shk_gather_names(g, key, path, "/proc/self");
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        json_array_append_new(list, accelerators_nvidia_gpu(g->host, *n));
    shk_host_list_free(names);
    shk_gather_some(g, key, list, path, "the driver is loaded, but has no GPU");
}

static void accelerators_set_property(json_t *gpu, const char *member, const char *text,
                                      const char *name)
{
    unsigned long long value;
    bool known = shk_kfd_property(text, name, &value);
    json_object_set_new(gpu, member, known ? json_integer((json_int_t)value) : json_null());
}

/* Local memory: the banks of heap type 1 and 2 (frame buffer, public and private). */
static json_t *accelerators_kfd_memory(const struct shk_host *host, const char *node)
{
    char **banks = NULL, path[128];
    unsigned long long total = 0, heap, bytes;
    if (shk_host_list(host, &banks, NULL, NULL, SHK_KFD_NODES "/%s/mem_banks", node) != 0)
        return json_null();
    for (char **b = banks; *b; b++) {
        char *text = NULL;
        snprintf(path, sizeof path, SHK_KFD_NODES "/%s/mem_banks/%.16s/properties", node, *b);
        if (shk_host_read(host, path, &text, NULL, NULL) == 0 &&
            shk_kfd_property(text, "heap_type", &heap) && (heap == 1 || heap == 2) &&
            shk_kfd_property(text, "size_in_bytes", &bytes))
            total += bytes;
        free(text);
    }
    shk_host_list_free(banks);
    return total ? json_integer((json_int_t)total) : json_null();
}

/* 90010 → "gfx90a": major, then minor and stepping as hexadecimal digits. */
static json_t *accelerators_gfx(const char *text)
{
    char gfx[32];
    unsigned long long v;
    if (!shk_kfd_property(text, "gfx_target_version", &v) || v == 0)
        return json_null();
    snprintf(gfx, sizeof gfx, "gfx%llu%llx%llx", v / 10000, v / 100 % 100, v % 100);
    return json_string(gfx);
}

static json_t *accelerators_kfd_gpu(const struct shk_host *host, const char *node, long long gpu_id,
                                    const char *text)
{
    json_t *gpu = json_object();
    json_object_set_new(gpu, "node", json_integer(strtol(node, NULL, 10)));
    json_object_set_new(gpu, "gpu_id", json_integer(gpu_id));
    shk_gather_member_text(host, gpu, "name", SHK_KFD_NODES "/%s/name", node);
    json_object_set_new(gpu, "gfx", accelerators_gfx(text));
    json_object_set_new(gpu, "pci", shk_kfd_pci(text));
    accelerators_set_property(gpu, "render_minor", text, "drm_render_minor");
    accelerators_set_property(gpu, "simd_count", text, "simd_count");
    json_object_set_new(gpu, "memory", accelerators_kfd_memory(host, node));
    return gpu;
}

struct accelerators_kfd {
    json_t *gpus;
    int hidden; /* nodes that this process may not read */
    struct shk_error why;
};

/* CPUs are nodes, too, with gpu_id 0 and always readable. A GPU that the device control group
 * keeps from this process answers EPERM. */
static void accelerators_kfd_node(const struct shk_host *host, const char *node,
                                  struct accelerators_kfd *kfd)
{
    char path[96], *text = NULL;
    long long gpu_id = 0;
    int rc = shk_host_i64(host, &gpu_id, &kfd->why, SHK_KFD_NODES "/%s/gpu_id", node);
    snprintf(path, sizeof path, SHK_KFD_NODES "/%.32s/properties", node);
    if (!rc && gpu_id != 0)
        rc = shk_host_read(host, path, &text, NULL, &kfd->why);
    if (!rc && text && !*text)
        rc = shk_error_set(&kfd->why, ENODATA, "%s is empty", path);
    if (rc)
        kfd->hidden++;
    else if (gpu_id != 0)
        json_array_append_new(kfd->gpus, accelerators_kfd_gpu(host, node, gpu_id, text));
    free(text);
}

static void accelerators_amd(struct shk_gather *g)
{
    static const char key[] = "gpu.amd.devices";
    struct accelerators_kfd kfd = {0};
    char **names = shk_gather_names(g, key, SHK_KFD_NODES, "/sys/class");
    if (!names)
        return;
    kfd.gpus = json_array();
    for (char **n = names; *n; n++)
        accelerators_kfd_node(g->host, *n, &kfd);
    shk_host_list_free(names);
    if (kfd.hidden)
        shk_gather_present(
            g, "gpu.amd.hidden",
            json_pack("{s:i,s:o}", "nodes", kfd.hidden, "reason", shk_gather_str(kfd.why.text)),
            NULL, SHK_KFD_NODES);
    else
        shk_gather_absent(g, "gpu.amd.hidden", SHK_KFD_NODES, "every node could be read");
    if (json_array_size(kfd.gpus) > 0)
        shk_gather_present(g, key, json_incref(kfd.gpus), NULL, SHK_KFD_NODES);
    else if (kfd.hidden)
        shk_gather_failed(g, key, SHK_KFD_NODES, "%s", kfd.why.text);
    else
        shk_gather_absent(g, key, SHK_KFD_NODES, "the driver is loaded, but has no GPU");
    json_decref(kfd.gpus);
}

static void accelerators_rocm(struct shk_gather *g)
{
    const char *root = shk_host_getenv(g->host, shk_variable("rocm-root"));
    char *path = shk_strf("%s/.info/version", root && *root == '/' ? root : "/opt/rocm");
    if (path)
        shk_gather_line(g, "rocm.version", path, "/opt");
    else
        shk_gather_failed(g, "rocm.version", "/opt/rocm", "out of memory");
    free(path);
}

static json_t *accelerators_neuron_device(const struct shk_host *host, const char *name)
{
    json_t *device = json_object();
    json_object_set_new(device, "name", shk_gather_str(name));
    shk_gather_member_i64(host, device, "core_count", NEURON_CLASS "/%s/core_count", name);
    shk_gather_member_text(host, device, "connected", NEURON_CLASS "/%s/connected_devices", name);
    shk_gather_member_text(host, device, "arch", NEURON_CLASS "/%s/info/architecture/arch_type",
                           name);
    shk_gather_member_text(host, device, "model", NEURON_CLASS "/%s/info/architecture/device_name",
                           name);
    shk_gather_member_text(host, device, "instance",
                           NEURON_CLASS "/%s/info/architecture/instance_type", name);
    return device;
}

static void accelerators_neuron(struct shk_gather *g)
{
    static const char key[] = "neuron.devices";
    char **names = shk_gather_names(g, key, NEURON_CLASS, "/sys/class");
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        if (strncmp(*n, "neuron", 6) == 0)
            json_array_append_new(list, accelerators_neuron_device(g->host, *n));
    shk_host_list_free(names);
    shk_gather_some(g, key, list, NEURON_CLASS, "the driver is loaded, but has no device");
}

static int accelerators_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    accelerators_nvidia(&g);
    accelerators_amd(&g);
    accelerators_rocm(&g);
    accelerators_neuron(&g);
    return shk_gather_end(&g, err);
}

static const char *const accelerators_provides[] = {
    "gpu.nvidia.driver",
    "gpu.nvidia.devices",
    "gpu.amd.devices",
    "gpu.amd.hidden",
    "rocm.version",
    "neuron.devices",
    NULL,
};

const struct shk_probe shk_probe_accelerators = {
    .name = "accelerators",
    .phase = SHK_PHASE_HOST,
    .doc = "GPUs and accelerators as the kernel drivers list them, ROCm version",
    .provides = accelerators_provides,
    .deadline_ms = 5000,
    .run = accelerators_run,
};
