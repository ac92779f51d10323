#include "checks/value/makers.h"
#include "checks/base/remedy.h"

#include <string.h>

static const char *const nvidia_nodes[] = {"dev.nvidia0", "dev.nvidiactl", "dev.nvidia-uvm", NULL};
static const char *const amd_nodes[] = {"dev.kfd", "dev.dri/renderD128", NULL};
static const char *const neuron_nodes[] = {"dev.neuron0", NULL};

const struct shk_maker shk_makers[SHK_MAKERS] = {
    {"nvidia", "gpu-nvidia", "pci.count.gpu-nvidia", "gpu.nvidia.devices", nvidia_nodes},
    {"amd", "gpu-amd", "pci.count.gpu-amd", "gpu.amd.devices", amd_nodes},
    {"neuron", "neuron", "pci.count.neuron", "neuron.devices", neuron_nodes},
};

struct shk_masks shk_masks(const struct shk_config *config, const enum shk_mask *order)
{
    struct shk_masks masks = {0};
    size_t settings_count, count = 0;
    const struct shk_setting *settings = shk_config_settings(config, &settings_count);
    for (; *order != SHK_MASK_NONE; order++)
        for (size_t i = 0; i < settings_count && count < SHK_MASKS; i++)
            if (settings[i].mask == *order)
                masks.names[count++] = settings[i].name;
    return masks;
}

long long shk_read_bus_count(struct shk_row *row, const struct shk_maker *maker)
{
    long long count = -1;
    return shk_read_int(row, maker->count, &count) == SHK_LOOK_ABSENT ? 0 : count;
}

void shk_row_pass_in(struct shk_row *row, const char *container, const char *maker)
{
    char key[64];
    snprintf(key, sizeof key, "pass-%s-%s", container, maker);
    if (!shk_config_fix(row->ctx->config, key))
        snprintf(key, sizeof key, "pass-%s", maker);
    shk_row_fix(row, key, NULL);
}
