/* AMD GPUs: errors that the driver counts by hardware block (RAS), and PCIe replays. Not
 * xgmi_error: reading it clears it (drivers/gpu/drm/amd/amdgpu/amdgpu_xgmi.c);
 * ras/xgmi_wafl_err_count has the errors of the links. */
#include "probes/counters/counters_private.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_BUS "/sys/bus/pci/devices"

/* "umc_err_count" has lines "ue: 0", "ce: 3", on newer GPUs "de: 0" (deferred: poisoned, and not
 * used yet); drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c, amdgpu_ras_sysfs_read(). */
static bool ras_block(struct counters *c, const char *gpu, const char *block, char *text)
{
    static const struct counters_name lines[] = {
        {"ue", "uncorrected"}, {"ce", "corrected"}, {"de", "corrected"}, {NULL, NULL}};
    bool xgmi = strncmp(block, "xgmi", 4) == 0, found = false;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        for (const struct counters_name *l = lines; l->name; l++) {
            unsigned long long count = 0;
            char name[48];
            if (strncmp(line, l->name, 2) != 0 || sscanf(line + 2, ": %llu", &count) != 1)
                continue;
            snprintf(name, sizeof name, "RAS %.24s %s", block, l->name);
            counters_set(c, gpu, name, xgmi && strcmp(l->name, "ce") == 0 ? "link-replay" : l->kind,
                         count);
            found = true;
        }
    return found;
}

static void amd_ras(struct counters *c, const char *gpu)
{
    char dir[96];
    snprintf(dir, sizeof dir, PCI_BUS "/%.16s/ras", gpu);
    char **names = counters_list(c, dir, gpu, "gpu");
    for (size_t i = 0; names && names[i]; i++) {
        char path[160], block[32], *text = NULL, *suffix = strstr(names[i], "_err_count");
        struct shk_error err = {""};
        if (!suffix || suffix[strlen("_err_count")])
            continue;
        snprintf(block, sizeof block, "%.*s", (int)(suffix - names[i]), names[i]);
        snprintf(path, sizeof path, "%s/%.48s", dir, names[i]);
        int rc = shk_host_read(c->host, path, &text, NULL, &err);
        /* a block without error counters: the driver answers "not supported" or with nothing */
        if (rc && rc != -EOPNOTSUPP && rc != -ENOENT)
            counters_unread(c, gpu, err.text);
        else if (!rc && *text && !ras_block(c, gpu, block, text))
            counters_unread(c, gpu, "RAS counters of another form than known");
        free(text);
    }
    shk_host_list_free(names);
}

/* gpu_metrics, drivers/gpu/drm/amd/include/kgd_pp_interface.h: since revision 1.6 (MI300) the
 * firmware counts the cycles that it spent limiting clocks, by reason, and all its cycles. Where
 * the first of these 32-bit numbers is, by content revision. */
static void amd_metrics(struct counters *c, const char *gpu)
{
    static const struct counters_name names[] = {
        {"cycles", "cycles"},
        {"PROCHOT cycles", "slowed-cycles"},
        {"power cap cycles", "capped"},
        {"thermal cycles", "slowed-cycles"},
        {"VR thermal cycles", "slowed-cycles"},
        {"HBM thermal cycles", "slowed-cycles"},
        {NULL, NULL},
    };
    char path[96], *data = NULL;
    size_t len = 0, at = 0;
    struct shk_error err = {""};
    snprintf(path, sizeof path, PCI_BUS "/%.16s/gpu_metrics", gpu);
    int rc = shk_host_read(c->host, path, &data, &len, &err);
    if (rc == 0 && len >= 4 && data[2] == 1)
        at = data[3] == 6 ? 32 : data[3] == 7 || data[3] == 8 ? 40 : 0;
    for (size_t i = 0; at && names[i].name && at + 4 * (i + 1) <= len; i++) {
        uint32_t value = 0;
        memcpy(&value, data + at + 4 * i, sizeof value);
        if (value != UINT32_MAX) /* not offered */
            counters_set(c, gpu, names[i].name, names[i].kind, value);
    }
    if (rc && rc != -ENOENT && rc != -EOPNOTSUPP)
        counters_unread(c, gpu, err.text);
    free(data);
}

void counters_amd(struct counters *c)
{
    static const struct counters_name replay[] = {{"pcie_replay_count", "replay"}, {NULL, NULL}};
    char **gpus = counters_list(c, "/sys/bus/pci/drivers/amdgpu", "AMD GPUs", "gpu");
    for (size_t i = 0; gpus && gpus[i]; i++) {
        char dir[96];
        if (!strchr(gpus[i], ':')) /* bind, new_id … */
            continue;
        snprintf(dir, sizeof dir, PCI_BUS "/%.16s", gpus[i]);
        counters_begin(c, gpus[i], "gpu");
        counters_files(c, gpus[i], dir, replay);
        amd_ras(c, gpus[i]);
        amd_metrics(c, gpus[i]);
    }
    shk_host_list_free(gpus);
}
