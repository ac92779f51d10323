#include "collectives/gpu/gpu_api.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define AT(member_) offsetof(struct gpu_api, member_)

/* The suffixes are the driver's own: the plain names are older functions with 32-bit sizes. */
static const struct shk_symbol cuda_symbols[] = {
    {.name = "cuInit", .offset = AT(init)},
    {.name = "cuDriverGetVersion", .offset = AT(driver_version)},
    {.name = "cuDeviceGetCount", .offset = AT(device_count)},
    {.name = "cuDeviceGet", .offset = AT(device_get)},
    {.name = "cuDeviceGetName", .offset = AT(device_name)},
    {.name = "cuDeviceGetPCIBusId", .offset = AT(device_pci)},
    {.name = "cuDeviceGetAttribute", .offset = AT(device_attribute)},
    {.name = "cuDeviceCanAccessPeer", .offset = AT(can_access)},
    {.name = "cuDevicePrimaryCtxRetain", .offset = AT(context_retain)},
    {.name = "cuCtxSetCurrent", .offset = AT(context_set)},
    {.name = "cuMemGetInfo_v2", .offset = AT(memory_info)},
    {.name = "cuMemAlloc_v2", .offset = AT(alloc)},
    {.name = "cuMemFree_v2", .offset = AT(release)},
    {.name = "cuMemcpyHtoD_v2", .offset = AT(to_device)},
    {.name = "cuMemcpyDtoH_v2", .offset = AT(to_host)},
    {.name = "cuMemcpyDtoDAsync_v2", .offset = AT(copy)},
    {.name = "cuMemsetD32Async", .offset = AT(set_words)},
    {.name = "cuStreamCreate", .offset = AT(stream_create)},
    {.name = "cuStreamSynchronize", .offset = AT(stream_wait)},
    {.name = "cuStreamDestroy_v2", .offset = AT(stream_destroy)},
    {.name = "cuEventCreate", .offset = AT(event_create)},
    {.name = "cuEventRecord", .offset = AT(event_record)},
    {.name = "cuEventElapsedTime", .offset = AT(event_elapsed)},
    {.name = "cuEventDestroy_v2", .offset = AT(event_destroy)},
    {.name = "cuModuleLoadData", .offset = AT(module_load)},
    {.name = "cuModuleGetFunction", .offset = AT(module_function)},
    {.name = "cuModuleGetGlobal_v2", .offset = AT(module_global)},
    {.name = "cuLaunchKernel", .offset = AT(launch)},
    {.name = "cuIpcGetMemHandle", .offset = AT(ipc_get)},
    {.name = "cuIpcOpenMemHandle_v2", .offset = AT(ipc_open), .since = "CUDA 11.0"},
    {.name = "cuIpcCloseMemHandle", .offset = AT(ipc_close)},
    {.name = "cuStreamBeginCapture_v2", .offset = AT(capture_begin), .since = "CUDA 10.1"},
    {.name = "cuStreamEndCapture", .offset = AT(capture_end)},
    {.name = "cuGraphInstantiateWithFlags", .offset = AT(graph_instantiate), .since = "CUDA 11.4"},
    {.name = "cuGraphLaunch", .offset = AT(graph_launch)},
    {.name = "cuGraphDestroy", .offset = AT(graph_destroy)},
    {.name = "cuGraphExecDestroy", .offset = AT(graph_exec_destroy)},
    {.name = "cuFlushGPUDirectRDMAWrites", .offset = AT(flush_writes), .optional = true},
    {.name = "cuMemHostAlloc", .offset = AT(host_alloc), .optional = true},
    {.name = "cuMemFreeHost", .offset = AT(host_free), .optional = true},
    {.name = "cuMemcpyHtoDAsync_v2", .offset = AT(to_device_async), .optional = true},
    {.name = "cuMemcpyDtoHAsync_v2", .offset = AT(to_host_async), .optional = true},
    {.name = "cuLaunchKernelEx", .offset = AT(launch_with), .optional = true},
    {.name = "cuDeviceGetP2PAttribute", .offset = AT(peer_attribute), .optional = true},
    {.name = "cuStreamQuery", .offset = AT(stream_query), .optional = true},
    {.name = "cuStreamWaitEvent", .offset = AT(stream_after), .optional = true},
    {.name = "cuStreamWriteValue32_v2", .offset = AT(stream_write), .optional = true},
    {.name = "cuStreamWaitValue32_v2", .offset = AT(stream_until), .optional = true},
    {.name = "cuGetErrorString", .offset = AT(error_text), .optional = true},
    {.name = NULL},
};

static const struct shk_symbol hip_symbols[] = {
    {.name = "hipInit", .offset = AT(init)},
    {.name = "hipDriverGetVersion", .offset = AT(driver_version)},
    {.name = "hipGetDeviceCount", .offset = AT(device_count)},
    {.name = "hipDeviceGet", .offset = AT(device_get)},
    {.name = "hipDeviceGetName", .offset = AT(device_name)},
    {.name = "hipDeviceGetPCIBusId", .offset = AT(device_pci)},
    {.name = "hipDeviceGetAttribute", .offset = AT(device_attribute)},
    {.name = "hipDeviceCanAccessPeer", .offset = AT(can_access)},
    {.name = "hipDevicePrimaryCtxRetain", .offset = AT(context_retain)},
    {.name = "hipCtxSetCurrent", .offset = AT(context_set)},
    {.name = "hipMemGetInfo", .offset = AT(memory_info)},
    {.name = "hipMalloc", .offset = AT(alloc)},
    {.name = "hipFree", .offset = AT(release)},
    {.name = "hipMemcpyHtoD", .offset = AT(to_device)},
    {.name = "hipMemcpyDtoH", .offset = AT(to_host)},
    {.name = "hipMemcpyDtoDAsync", .offset = AT(copy)},
    {.name = "hipMemsetD32Async", .offset = AT(set_words)},
    {.name = "hipStreamCreateWithFlags", .offset = AT(stream_create)},
    {.name = "hipStreamSynchronize", .offset = AT(stream_wait)},
    {.name = "hipStreamDestroy", .offset = AT(stream_destroy)},
    {.name = "hipEventCreateWithFlags", .offset = AT(event_create)},
    {.name = "hipEventRecord", .offset = AT(event_record)},
    {.name = "hipEventElapsedTime", .offset = AT(event_elapsed)},
    {.name = "hipEventDestroy", .offset = AT(event_destroy)},
    {.name = "hipModuleLoadData", .offset = AT(module_load)},
    {.name = "hipModuleGetFunction", .offset = AT(module_function)},
    {.name = "hipModuleGetGlobal", .offset = AT(module_global)},
    {.name = "hipModuleLaunchKernel", .offset = AT(launch)},
    {.name = "hipIpcGetMemHandle", .offset = AT(ipc_get)},
    {.name = "hipIpcOpenMemHandle", .offset = AT(ipc_open)},
    {.name = "hipIpcCloseMemHandle", .offset = AT(ipc_close)},
    {.name = "hipStreamBeginCapture", .offset = AT(capture_begin)},
    {.name = "hipStreamEndCapture", .offset = AT(capture_end)},
    {.name = "hipGraphInstantiateWithFlags", .offset = AT(graph_instantiate), .since = "ROCm 5.2"},
    {.name = "hipGraphLaunch", .offset = AT(graph_launch)},
    {.name = "hipGraphDestroy", .offset = AT(graph_destroy)},
    {.name = "hipGraphExecDestroy", .offset = AT(graph_exec_destroy)},
    {.name = "hipHostMalloc", .offset = AT(host_alloc), .optional = true},
    {.name = "hipHostFree", .offset = AT(host_free), .optional = true},
    {.name = "hipMemcpyHtoDAsync", .offset = AT(to_device_async), .optional = true},
    {.name = "hipMemcpyDtoHAsync", .offset = AT(to_host_async), .optional = true},
    {.name = "hipDrvGetErrorString", .offset = AT(error_text), .optional = true},
    {.name = NULL},
};

int gpu_lib_open(struct gpu_lib *lib, enum gpu_vendor vendor, const char *const *names,
                 struct shk_error *err)
{
    static const char *const cuda_names[] = {"libcuda.so.1", NULL};
    static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                            "libamdhip64.so.5", "libamdhip64.so", NULL};
    struct shk_library desc = {
        .names = names               ? names
                 : vendor == GPU_HIP ? hip_names
                                     : cuda_names,
        .symbols = vendor == GPU_HIP ? hip_symbols : cuda_symbols,
    };

    lib->vendor = vendor;
    return shk_dynlib_open(&lib->dynlib, &desc, &lib->api, err);
}

static int gpu_errno(int status)
{
    switch (status) {
    case GPU_OUT_OF_MEMORY: return ENOMEM;
    case GPU_NO_DEVICE:
    case GPU_INVALID_DEVICE: return ENODEV;
    case GPU_ILLEGAL_ADDRESS: return EFAULT;
    default: return EIO;
    }
}

int gpu_check(const struct gpu_lib *lib, int status, struct shk_error *err, const char *callf, ...)
{
    const char *text = NULL;
    char call[128];
    va_list ap;

    if (status == GPU_SUCCESS)
        return 0;
    va_start(ap, callf);
    vsnprintf(call, sizeof call, callf, ap);
    va_end(ap);
    if (!lib->api.error_text || lib->api.error_text(status, &text) != GPU_SUCCESS)
        text = NULL;
    return shk_error_set(err, gpu_errno(status), "%s: %s (error %d)", call, text ? text : "failed",
                         status);
}
