/* What the sources of the nvml_health probe share. */
#ifndef SHK_PROBES_NVML_HEALTH_PRIVATE_H
#define SHK_PROBES_NVML_HEALTH_PRIVATE_H

#include "core/host/host.h"
#include "probes/base/gather.h"
#include "probes/device/nvml_value.h"

/* Functions that give one number; a driver may lack any of them. */
enum { NUMBERS = 10, NAMED_NUMBERS = NUMBERS - 1, RETIRED_PENDING = NAMED_NUMBERS };

typedef int nvml_number_fn(nvmlDevice_t device, unsigned *value);

struct health_ops {
    struct nvml_core core;
    nvml_number_fn *number[NUMBERS];
    int (*ecc_mode)(nvmlDevice_t device, unsigned *current, unsigned *pending);
    int (*ecc_total)(nvmlDevice_t device, int error, int counter, unsigned long long *count);
    int (*ecc_place)(nvmlDevice_t device, int error, int counter, int place,
                     unsigned long long *count);
    int (*remapped)(nvmlDevice_t device, unsigned *correctable, unsigned *uncorrectable,
                    unsigned *pending, unsigned *failure);
    int (*reasons)(nvmlDevice_t device, unsigned long long *mask);
    int (*temperature)(nvmlDevice_t device, int sensor, unsigned *celsius);
    int (*threshold)(nvmlDevice_t device, int threshold, unsigned *celsius);
    int (*margin)(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin);
    int (*fields)(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
    int (*processes)(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *list);
    int (*link_state)(nvmlDevice_t device, unsigned link, unsigned *active);
    int (*link_errors)(nvmlDevice_t device, unsigned link, int counter, unsigned long long *count);
    int (*name)(nvmlDevice_t device, char *text, unsigned length);
    int (*vbios)(nvmlDevice_t device, char *text, unsigned length);
    int (*inforom)(nvmlDevice_t device, char *text, unsigned length);
    int (*gsp)(nvmlDevice_t device, char *text); /* NVML_GSP_TEXT bytes */
    int (*validate)(nvmlDevice_t device);
    int (*sram)(nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status);
    int (*repair)(nvmlDevice_t device, nvmlRepairStatus_v1_t *status);
    int (*virtualization)(nvmlDevice_t device, unsigned *mode);
    int (*licences)(nvmlDevice_t device, nvmlGridLicensableFeatures_v4_t *features);
    int (*confidential)(nvmlConfComputeSystemState_t *state);
    int (*confidential_settings)(nvmlSystemConfComputeSettings_v1_t *settings);
    int (*confidential_ready)(unsigned *accepting);
};

/* One GPU that is being asked. */
struct gpu {
    const struct health_ops *ops;
    const struct shk_host *host;
    nvmlDevice_t device;
    unsigned index;
    json_t *row;
    int broken; /* NVML_ERROR_GPU_IS_LOST or _RESET_REQUIRED, as soon as an answer says so */
};

/* What a call answered, once for all; a function that the driver lacks is one that it does not
 * offer. */
int shk_nvml_answered(struct gpu *gpu, int rc);

#define ASK(gpu, fn, ...)                                                                          \
    ((gpu)->ops->fn ? shk_nvml_answered((gpu), (gpu)->ops->fn((gpu)->device, __VA_ARGS__))         \
                    : NVML_ERROR_FUNCTION_NOT_FOUND)

/* Sets a member to a number, or as shk_nvml_member() does. */
void shk_nvml_count(json_t *object, const char *member, int rc, unsigned long long value);

/* One field; drivers that do not know its number say that it is not supported. */
int shk_nvml_field(struct gpu *gpu, unsigned id, unsigned scope, long long *value);

/* Adds name, vbios, inforom, gsp: text, inforom_valid, sram_exceeded, repair_pending: bool,
 * sram_parity, sram_secded, retired_pages: counts, virtualization: text, licence: {needed,
 * licensed: bool, product, expires} of a vGPU, else null. */
void shk_nvml_board(struct gpu *gpu);

/* Confidential computing, which is set for all GPUs of a system: an object with {on, devtools,
 * ready: bool, environment: `production` or `simulation`, multi_gpu: `none`, `protected PCIe`,
 * `NVLink encryption`}; NULL with *rc_p: NVML's error. */
json_t *shk_nvml_confidential(const struct health_ops *ops, int *rc_p);

#endif
