#include "checks/env/makers.h"

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

/* Documentation of the NVIDIA Container Toolkit, of ROCm and Neuron on containers, of apptainer,
 * shifter, charliecloud and pyxis. */
static const struct {
    const char *engine, *maker, *option;
} options[] = {
    {"docker", "nvidia", "docker run --gpus all …"},
    {"docker", "amd", "docker run --device=/dev/kfd --device=/dev/dri …"},
    {"docker", "neuron", "docker run --device=/dev/neuron0 …, one for each device"},
    {"containerd", "nvidia", "nerdctl run --gpus all …"},
    {"containerd", "amd", "nerdctl run --device=/dev/kfd --device=/dev/dri …"},
    {"podman", "nvidia", "podman run --device nvidia.com/gpu=all …"},
    {"podman", "amd", "podman run --device=/dev/kfd --device=/dev/dri …"},
    {"podman", "neuron", "podman run --device=/dev/neuron0 …, one for each device"},
    {"apptainer", "nvidia", "apptainer exec --nv …"},
    {"apptainer", "amd", "apptainer exec --rocm …"},
    {"apptainer", "neuron", "apptainer exec --bind /dev …"},
    {"enroot", "nvidia", "export {visible-devices.container}=all {capabilities.container}=all"},
    {"enroot", "amd", "srun --container-mounts=/dev/kfd,/dev/dri …"},
    {"enroot", "neuron", "srun --container-mounts=/dev/neuron0,… …"},
    {"kubernetes", "nvidia", "resources: {limits: {nvidia.com/gpu: N}}"},
    {"kubernetes", "amd", "resources: {limits: {amd.com/gpu: N}}"},
    {"kubernetes", "neuron", "resources: {limits: {aws.amazon.com/neuron: N}}"},
    {"shifter", "nvidia", "shifter --module=gpu …"},
    {"charliecloud", "nvidia", "ch-fromhost --nvidia IMAGE"},
};

const char *shk_engine_option(const char *container, const char *maker)
{
    static const struct {
        const char *maker, *text;
    } others[] = {{"nvidia", "pass /dev/nvidia*, /dev/nvidiactl and /dev/nvidia-uvm in"},
                  {"amd", "pass /dev/kfd and /dev/dri in"},
                  {"neuron", "pass /dev/neuron* in"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strcmp(options[i].engine, container) == 0 && strcmp(options[i].maker, maker) == 0)
            return options[i].option;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].maker, maker) == 0)
            return others[i].text;
    return "pass its device nodes in";
}
