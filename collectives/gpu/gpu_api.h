/* GPU driver: the few calls that the collectives need, as one table for CUDA's driver API and for
 * HIP, whose functions of the same purpose have the same shape. Declared here rather than taken
 * from vendor headers, so that every build can use every driver. */
#ifndef SHK_COLLECTIVES_GPU_API_H
#define SHK_COLLECTIVES_GPU_API_H

#include "core/run/dynlib.h"
#include "core/text/error.h"
#include <stddef.h>
#include <stdint.h>

typedef uint64_t gpu_ptr; /* address in device memory */

enum gpu_vendor { GPU_CUDA, GPU_HIP };

/* CUDA_ERROR_* and hipError* agree on these. */
enum gpu_status {
    GPU_SUCCESS = 0,
    GPU_INVALID_VALUE = 1,
    GPU_OUT_OF_MEMORY = 2,
    GPU_NOT_INITIALISED = 3,
    GPU_INSUFFICIENT_DRIVER = 35,
    GPU_UNAVAILABLE = 46, /* of CUDA alone, as those above 800 */
    GPU_NO_DEVICE = 100,
    GPU_INVALID_DEVICE = 101,
    GPU_NO_BINARY = 209, /* the image holds nothing for this GPU */
    GPU_ECC = 214,
    GPU_PEER_UNSUPPORTED = 217,
    GPU_UNSUPPORTED_PTX = 222, /* … only PTX that is newer than the driver */
    GPU_UNFINISHED = 600,      /* CUDA_ERROR_NOT_READY, of a stream that is asked */
    GPU_ILLEGAL_ADDRESS = 700,
    GPU_LAUNCH_TIMEOUT = 702,
    GPU_NOT_READY = 802,
    GPU_DRIVER_MISMATCH = 803,
};

/* CUDA 8 and later, HIP likewise. */
#define GPU_IPC_BYTES       64
#define GPU_IPC_LAZY_PEER   1U  /* cuIpcOpenMemHandle: enable access between the GPUs when needed */
#define GPU_STREAM_FREE     1U  /* does not wait for the default stream */
#define GPU_CAPTURE_THREAD  1   /* other threads may do as they like meanwhile */
#define GPU_ATTR_PROCESSORS 16  /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
#define GPU_ATTR_CAPABILITY 75  /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define GPU_ATTR_STREAM_OPS 122 /* CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS, CUDA 11.7 */
#define GPU_EVENT_UNTIMED   2U  /* CU_EVENT_DISABLE_TIMING */
#define GPU_WAIT_REACHED    0U  /* CU_STREAM_WAIT_VALUE_GEQ: (int32_t)(*at - value) >= 0 */
#define GPU_PEER_ATOMICS    3   /* CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED */
#define GPU_ATTR_MULTICAST  132 /* CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED */

/* Writes of other devices to a GPU: CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
 * …_WRITES_ORDERING and their values, and what cuFlushGPUDirectRDMAWrites takes. */
#define GPU_ATTR_FLUSH_WRITES 117
#define GPU_ATTR_WRITES_ORDER 118
#define GPU_FLUSH_BY_HOST     1
#define GPU_ORDER_OWNER       100
#define GPU_FLUSH_CONTEXT     0

struct gpu_ipc {
    unsigned char bytes[GPU_IPC_BYTES];
};

/* CUlaunchAttribute and CUlaunchConfig. OVERLAP is
 * CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: the kernel may be scheduled before the one
 * ahead of it in the stream has ended, and waits for that itself. */
#define GPU_ATTRIBUTE_OVERLAP 6
struct gpu_launch_attribute {
    int id;
    int pad;
    union {
        int on;
        char bytes[64];
    } value;
};
struct gpu_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    struct gpu_launch_attribute *attributes;
    unsigned attribute_count;
};

struct gpu_api {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version); /* 1000 * major + 10 * minor */
    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int len, int device);
    int (*device_pci)(char *address, int len, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*can_access)(int *can, int device, int peer);
    int (*context_retain)(void **context, int device);
    int (*context_set)(void *context);
    int (*memory_info)(size_t *free, size_t *total);
    int (*alloc)(gpu_ptr *at, size_t bytes);
    int (*release)(gpu_ptr at);
    int (*to_device)(gpu_ptr to, const void *from, size_t bytes);
    int (*to_host)(void *to, gpu_ptr from, size_t bytes);
    int (*copy)(gpu_ptr to, gpu_ptr from, size_t bytes, void *stream);
    int (*set_words)(gpu_ptr to, unsigned value, size_t words, void *stream);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_record)(void *event, void *stream);
    int (*event_elapsed)(float *ms, void *from, void *to);
    int (*event_destroy)(void *event);
    int (*module_load)(void **module, const void *image);
    int (*module_function)(void **function, void *module, const char *name);
    int (*module_global)(gpu_ptr *at, size_t *bytes, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **params, void **extra);
    int (*ipc_get)(struct gpu_ipc *handle, gpu_ptr at);
    int (*ipc_open)(gpu_ptr *at, struct gpu_ipc handle, unsigned flags);
    int (*ipc_close)(gpu_ptr at);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*graph_instantiate)(void **exec, void *graph, unsigned long long flags);
    int (*graph_launch)(void *exec, void *stream);
    int (*graph_destroy)(void *graph);
    int (*graph_exec_destroy)(void *exec);
    int (*flush_writes)(int target, int scope); /* may be NULL, as all that follow */
    int (*host_alloc)(void **at, size_t bytes, unsigned flags); /* pinned */
    int (*host_free)(void *at);
    int (*to_device_async)(gpu_ptr to, const void *from, size_t bytes, void *stream);
    int (*to_host_async)(void *to, gpu_ptr from, size_t bytes, void *stream);
    int (*launch_with)(const struct gpu_launch_config *config, void *function, void **params,
                       void **extra);
    int (*peer_attribute)(int *value, int attribute, int device, int peer);
    int (*stream_query)(void *stream);
    int (*stream_after)(void *stream, void *event, unsigned flags);
    int (*stream_write)(void *stream, gpu_ptr at, uint32_t value, unsigned flags);
    int (*stream_until)(void *stream, gpu_ptr at, uint32_t value, unsigned flags);
    int (*error_text)(int status, const char **text);
};

struct gpu_lib {
    struct shk_dynlib dynlib;
    struct gpu_api api;
    enum gpu_vendor vendor;
};

/* names NULL: libcuda.so.1 or libamdhip64.so. Undone at process exit. */
int gpu_lib_open(struct gpu_lib *lib, enum gpu_vendor vendor, const char *const *names,
                 struct shk_error *err) SHK_MUST_CHECK;

/* "cuMemAlloc: out of memory (error 2)" into err; returns a negative errno, 0 when status is 0.
 * The call is a printf-style text. */
int gpu_check(const struct gpu_lib *lib, int status, struct shk_error *err, const char *callf, ...)
    SHK_PRINTF(4, 5);

#endif
