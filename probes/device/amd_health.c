/* Health of AMD GPUs as the amdgpu driver shows it in sysfs: errors by hardware block (RAS), bad
 * pages of memory, temperatures, power limit, partitions, firmware. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AMD_DRIVER "/sys/bus/pci/drivers/amdgpu"
#define PCI_BUS    "/sys/bus/pci/devices"

static const char health_key[] = "amdgpu.health";

/* "ue: 0\nce: 3\nde: 0": NULL when none of it is there. */
static json_t *amd_counts(const char *text)
{
    static const char *const names[] = {"ue", "ce", "de"};
    json_t *counts = json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        long long count = 0;
        char find[8];
        snprintf(find, sizeof find, "%s: ", names[i]);
        const char *at = strstr(text, find);
        if (at && sscanf(at + strlen(find), "%lld", &count) == 1)
            json_object_set_new(counts, names[i], json_integer(count));
    }
    if (json_object_size(counts))
        return counts;
    json_decref(counts);
    return NULL;
}

/* A block that has no counters answers with an error or with nothing. */
static void amd_block(const struct shk_host *host, json_t *gpu, json_t *ras, const char *dir,
                      const char *file)
{
    const char *suffix = strstr(file, "_err_count");
    char path[160], block[32], *text = NULL;
    struct shk_error err = {""};
    if (!suffix || suffix[strlen("_err_count")])
        return;
    snprintf(block, sizeof block, "%.*s", (int)(suffix - file), file);
    snprintf(path, sizeof path, "%s/%.48s", dir, file);
    int rc = shk_host_read(host, path, &text, NULL, &err);
    json_t *counts = rc || !*text ? NULL : amd_counts(text);
    if (counts)
        json_object_set_new(ras, block, counts);
    else if ((rc && rc != -EOPNOTSUPP && rc != -ENOENT) || (!rc && *text))
        shk_gather_member_problem(gpu, "ras",
                                  rc ? err.text : "counters of another form than known");
    free(text);
}

static void amd_ras(const struct shk_host *host, json_t *gpu, const char *pci)
{
    char dir[96], **names = NULL;
    struct shk_error err = {""};
    json_t *ras = json_object();
    snprintf(dir, sizeof dir, PCI_BUS "/%.16s/ras", pci);
    int rc = shk_host_list(host, &names, NULL, &err, "%s", dir);
    for (char **n = names; n && *n; n++)
        amd_block(host, gpu, ras, dir, *n);
    shk_host_list_free(names);
    if (rc && rc != -ENOENT)
        shk_gather_member_problem(gpu, "ras", err.text);
    json_object_set_new(gpu, "ras", json_object_size(ras) ? json_incref(ras) : json_null());
    json_decref(ras);
}

/* Lines "0x00000001 : 0x00001000 : R": set aside (R), to be set aside (P), or cannot be (F);
 * drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, gpu_vram_bad_pages. */
static void amd_pages(const struct shk_host *host, json_t *gpu, const char *pci)
{
    static const struct {
        const char *member, *flag;
    } kinds[] = {{"reserved", ": R"}, {"pending", ": P"}, {"failed", ": F"}};
    char path[128], *text = NULL;
    struct shk_error err = {""};
    snprintf(path, sizeof path, PCI_BUS "/%.16s/ras/gpu_vram_bad_pages", pci);
    int rc = shk_host_read(host, path, &text, NULL, &err);
    if (rc) {
        shk_gather_member_unread(host, gpu, "bad_pages", path, rc, &err);
        return;
    }
    json_t *pages = json_object();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int count = 0;
        for (const char *at = text; (at = strstr(at, kinds[i].flag)); at++)
            count++;
        json_object_set_new(pages, kinds[i].member, json_integer(count));
    }
    json_object_set_new(gpu, "bad_pages", pages);
    free(text);
}

enum { AMD_SENSORS = 8 };

/* Thousandths of a degree, with the temperature at which the GPU lowers its clocks; Linux:
 * Documentation/gpu/amdgpu/thermal.rst. NULL: there is no such sensor. */
static json_t *amd_sensor(const struct shk_host *host, json_t *gpu, const char *dir, int number)
{
    static const char *const files[] = {"input", "crit"}, *const members[] = {"now", "limit"};
    if (!shk_host_exists(host, "%s/temp%d_input", dir, number))
        return NULL;
    json_t *sensor = json_object();
    shk_gather_member_text(host, sensor, "sensor", "%s/temp%d_label", dir, number);
    for (int i = 0; i < 2; i++) {
        long long value = 0;
        struct shk_error err = {""};
        int rc = shk_host_i64(host, &value, &err, "%s/temp%d_%s", dir, number, files[i]);
        json_object_set_new(sensor, members[i], rc ? json_null() : json_integer(value / 1000));
        if (rc && rc != -ENOENT && rc != -EOPNOTSUPP)
            shk_gather_member_problem(gpu, "temperatures", err.text);
    }
    return sensor;
}

/* Milliwatts. */
static void amd_power(const struct shk_host *host, json_t *gpu, const char *dir, const char *member,
                      const char *file)
{
    shk_gather_member_i64(host, gpu, member, "%s/%s", dir, file);
    json_t *microwatts = json_object_get(gpu, member);
    if (json_is_integer(microwatts))
        json_object_set_new(gpu, member, json_integer(json_integer_value(microwatts) / 1000));
}

static void amd_hwmon(const struct shk_host *host, json_t *gpu, const char *pci)
{
    char **names = NULL, dir[192];
    struct shk_error err = {""};
    json_t *list = json_array();
    int rc = shk_host_list(host, &names, NULL, &err, PCI_BUS "/%s/hwmon", pci);
    const char *name = names ? names[0] : NULL;
    snprintf(dir, sizeof dir, PCI_BUS "/%.16s/hwmon/%.40s", pci, name ? name : "none");
    for (int i = 1; name && i <= AMD_SENSORS; i++) {
        json_t *sensor = amd_sensor(host, gpu, dir, i);
        if (sensor)
            json_array_append_new(list, sensor);
    }
    json_object_set_new(gpu, "temperatures",
                        json_array_size(list) ? json_incref(list) : json_null());
    json_decref(list);
    amd_power(host, gpu, dir, "power_limit", "power1_cap");
    amd_power(host, gpu, dir, "power_default", "power1_cap_default");
    if (rc && rc != -ENOENT)
        for (const char *const *m =
                 (const char *const[]){"temperatures", "power_limit", "power_default", NULL};
             *m; m++)
            shk_gather_member_problem(gpu, *m, err.text);
    shk_host_list_free(names);
}

static json_t *amd_gpu(const struct shk_host *host, const char *pci)
{
    static const char *const texts[][2] = {
        {"vbios", "vbios_version"},
        {"compute_partition", "current_compute_partition"},
        {"memory_partition", "current_memory_partition"},
    };
    json_t *gpu = json_pack("{s:s}", "pci", pci);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        shk_gather_member_text(host, gpu, texts[i][0], PCI_BUS "/%s/%s", pci, texts[i][1]);
    shk_gather_member_i64(host, gpu, "pcie_replays", PCI_BUS "/%s/pcie_replay_count", pci);
    amd_ras(host, gpu, pci);
    amd_pages(host, gpu, pci);
    amd_hwmon(host, gpu, pci);
    return gpu;
}

static int amd_health_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why = {""};
    char **names = NULL;
    int rc = shk_host_list(g.host, &names, NULL, &why, AMD_DRIVER);
    if (rc) {
        shk_gather_unread(&g, health_key, AMD_DRIVER, "/sys/bus/pci", rc, &why);
        return shk_gather_end(&g, err);
    }
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        if (shk_gather_is_pci(*n, strlen(*n)))
            json_array_append_new(list, amd_gpu(g.host, *n));
    shk_host_list_free(names);
    if (json_array_size(list)) {
        shk_gather_present(&g, health_key, list, NULL, PCI_BUS);
    } else {
        json_decref(list);
        shk_gather_absent(&g, health_key, AMD_DRIVER, "the driver is there, but no GPU of its own");
    }
    return shk_gather_end(&g, err);
}

static const char *const amd_health_provides[] = {health_key, NULL};

const struct shk_probe shk_probe_amd_health = {
    .name = "amd_health",
    .phase = SHK_PHASE_HOST,
    .doc = "AMD GPUs: errors by hardware block, bad pages, temperatures, power limit, firmware",
    .provides = amd_health_provides,
    .deadline_ms = 5000,
    .run = amd_health_run,
};
