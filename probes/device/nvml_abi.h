/* The part of NVML's binary interface that the nvml probe calls, as its reference manual has it
 * (docs.nvidia.com/deploy/nvml-api). NVML has no header in free distributions; its interface is
 * stable: a function that changes gets a new suffix. */
#ifndef SHK_PROBES_NVML_ABI_H
#define SHK_PROBES_NVML_ABI_H

typedef struct nvmlDevice_st *nvmlDevice_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
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
enum { NVML_P2P_READ = 0, NVML_P2P_WRITE, NVML_P2P_NVLINK, NVML_P2P_ATOMICS, NVML_P2P_COUNT };

#endif
