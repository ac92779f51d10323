/* The part of NVML's binary interface that the nvml probe calls, as its reference manual has it
 * (docs.nvidia.com/deploy/nvml-api). NVML has no header in free distributions; its interface is
 * stable: a function that changes gets a new suffix. */
#ifndef SHK_PROBES_NVML_ABI_H
#define SHK_PROBES_NVML_ABI_H

#include <stddef.h>

typedef struct nvmlDevice_st *nvmlDevice_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_CORRUPTED_INFOROM = 14,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device;
    unsigned pciDeviceId, pciSubSystemId;
    char busId[32]; /* "00000000:3B:00.0" */
} nvmlPciInfo_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t; /* bytes */

typedef struct {
    unsigned long long bar1Total, bar1Free, bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned version; /* sizeof | 2 << 24 */
    unsigned char clusterUuid[16];
    int status; /* an NVML error, valid when state is completed */
    unsigned cliqueId;
    unsigned char state;
    unsigned healthMask;
} nvmlGpuFabricInfo_v2_t;

enum { NVML_FABRIC_STATES = 4 }; /* not supported, not started, in progress, completed */
enum { NVML_NVLINK_MAX_LINKS = 18 };
enum { NVML_ERRORS_CORRECTED = 0, NVML_ERRORS_UNCORRECTED };
enum { NVML_SINCE_LOAD = 0, NVML_SINCE_EVER }; /* volatile and aggregate ECC counters */
enum { NVML_MEMORY_DRAM = 2, NVML_MEMORY_SRAM = 7 };
enum { NVML_SENSOR_GPU = 0 };
enum { NVML_THRESHOLD_SLOWDOWN = 1 };
enum { NVML_LINK_REPLAY = 0, NVML_LINK_RECOVERY = 1, NVML_LINK_CRC_FLIT = 2 };

typedef struct {
    unsigned version; /* sizeof | 1 << 24 */
    int marginTemperature;
} nvmlMarginTemperature_v1_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory; /* bytes; all bits set: not known */
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

/* Texts: NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE, NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE and, of the
 * one function that is told no length, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE. */
enum { NVML_VBIOS_TEXT = 32, NVML_INFOROM_TEXT = 16, NVML_GSP_TEXT = 64 };

typedef struct {
    unsigned version; /* sizeof | 1 << 24 */
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
    unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
    unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie,
        aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;

typedef struct {
    unsigned version; /* sizeof | 1 << 24 */
    unsigned bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_v1_t;

enum { NVML_VIRTUALIZATION_VGPU = 2 }; /* none, passthrough, vGPU, host vGPU, host vSGA */

enum { NVML_LICENCE_TEXT = 128, NVML_LICENCES = 3 };
enum { NVML_EXPIRY_VALID = 2, NVML_EXPIRY_PERMANENT = 4 };

typedef struct {
    unsigned year;
    unsigned short month, day, hour, min, sec;
    unsigned char status;
} nvmlGridLicenseExpiry_t;

typedef struct {
    int featureCode;
    unsigned featureState; /* licensed now */
    char licenseInfo[NVML_LICENCE_TEXT], productName[NVML_LICENCE_TEXT];
    unsigned featureEnabled;
    nvmlGridLicenseExpiry_t licenseExpiry;
} nvmlGridLicensableFeature_t;

typedef struct {
    int isGridLicenseSupported;
    unsigned licensableFeaturesCount;
    nvmlGridLicensableFeature_t gridLicensableFeatures[NVML_LICENCES];
} nvmlGridLicensableFeatures_v4_t;

typedef struct {
    unsigned environment; /* unavailable, simulation, production */
    unsigned ccFeature, devToolsMode;
} nvmlConfComputeSystemState_t;

typedef struct {
    unsigned version; /* sizeof | 1 << 24 */
    unsigned environment, ccFeature, devToolsMode;
    unsigned multiGpuMode; /* none, protected PCIe, NVLink encryption */
} nvmlSystemConfComputeSettings_v1_t;

typedef union {
    double dVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
    long long sllVal;
    int siVal;
    unsigned short usVal;
} nvmlValue_t;

enum nvml_value_type {
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_UINT,
    NVML_VALUE_ULONG,
    NVML_VALUE_ULONGLONG,
    NVML_VALUE_LONGLONG,
    NVML_VALUE_INT,
    NVML_VALUE_USHORT
};

typedef struct {
    unsigned fieldId, scopeId; /* scope: the link, for what belongs to one */
    long long timestamp, latencyUsec;
    int valueType;  /* enum nvml_value_type */
    int nvmlReturn; /* of this field */
    nvmlValue_t value;
} nvmlFieldValue_t;

enum {
    NVML_FIELD_RETIRED_SINGLE = 29, /* pages retired for single bit errors */
    NVML_FIELD_RETIRED_DOUBLE = 30,
    NVML_FIELD_CAPPED_POWER = 74,          /* ns at lower clocks for the power limit */
    NVML_FIELD_LINK_SPEED = 164,           /* of one link, MB/s */
    NVML_FIELD_LINK_RECOVERED = 213,       /* since NVLink 5 */
    NVML_FIELD_LINK_RECOVERY_FAILED = 214, /* since NVLink 5 */
    NVML_FIELD_RECOVERY_ACTION = 230,      /* drivers from 570 on */
};

/* Nanoseconds at lower clocks for temperature and the power brake, two numbers each: 251 to 253 in
 * the headers of CUDA 12.9 and 13.0, 269 to 271 from 13.1 on, where 251 to 253 are those of power
 * smoothing, as they were in 12.8. Time is told as an unsigned long long, settings are not. */
enum { NVML_FIELDS_SLOWED = 3, NVML_FIELD_SLOWED_FIRST = 251, NVML_FIELD_SLOWED_LATER = 269 };

enum { NVML_P2P_READ = 0, NVML_P2P_WRITE, NVML_P2P_NVLINK, NVML_P2P_ATOMICS, NVML_P2P_COUNT };

/* What everyone who asks NVML calls: the first member `core` of the caller's struct of functions.
 */
struct nvml_core {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, nvmlDevice_t *device);
    int (*pci_info)(nvmlDevice_t device, nvmlPciInfo_t *pci);
};

/* Rows of a table of struct shk_symbol for `ops`, the caller's struct of functions: one that every
 * driver has, one that may be missing, and those of `core`. */
#define NVML_FN(ops, fn, member)                                                                   \
    {                                                                                              \
        .name = fn, .offset = offsetof(ops, member)                                                \
    }
#define NVML_FN_OPT(ops, fn, member)                                                               \
    {                                                                                              \
        .name = fn, .offset = offsetof(ops, member), .optional = true                              \
    }
#define NVML_CORE(ops)                                                                             \
    NVML_FN(ops, "nvmlInit_v2", core.init), NVML_FN(ops, "nvmlShutdown", core.shutdown),           \
        NVML_FN(ops, "nvmlErrorString", core.error_string),                                        \
        NVML_FN(ops, "nvmlDeviceGetCount_v2", core.count),                                         \
        NVML_FN(ops, "nvmlDeviceGetHandleByIndex_v2", core.by_index),                              \
        NVML_FN(ops, "nvmlDeviceGetPciInfo_v3", core.pci_info)

/* The library as a struct shk_library with these symbols. */
#define NVML_LIBRARY(table)                                                                        \
    {                                                                                              \
        .names = (const char *const[]){"libnvidia-ml.so.1", NULL},                                 \
        .env_override = "SHAKEDOWN_NVML", .symbols = table                                         \
    }

#endif
