/* Stand-in for libcuda.so.1 and (with HIP) libamdhip64.so: device memory is host memory that other
 * processes can map, launches run at once in the calling thread, and the kernels of
 * collectives/gpu/kernels/kernels.cu are done in C by their names.
 *
 *   SHK_FAKE_GPUS     devices, 2 by default
 *   SHK_FAKE_DRIVER   version, 13000 by default
 *   SHK_FAKE_REFUSED … pairs that are not like the others: gpu_peers.c
 *   SHK_FAKE_MULTICAST 1: has it, see gpu_multicast.c for its faults
 *   SHK_FAKE_NVLINK   1: GPUs do atomic operations in each other's memory
 *   SHK_FAKE_CAPABILITY compute capability, major
 *   SHK_FAKE_FLUSH    1: writes of other devices need a flush, and the driver has one
 *   SHK_FAKE_FAULT    init, flush, no-device, peer, memory, illegal, image, hang, crash, corrupt,
 * skip, overrun, input, tired (an operation that is launched three times in a row), moved (illegal
 * access two lengths behind the first operation), slow-to-device, slow-to-host, slow-memory (of
 * device 1), no-pinned, flip (a bit on its way to the host): what goes wrong */
#include "tests/fakes/gpu_driver.h"
#include "collectives/gpu/gpu_api.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *setting(const char *name, const char *initial)
{
    const char *value = getenv(name);

    return value != NULL ? value : initial;
}

int shk_fake_faulty(const char *fault)
{
    return strcmp(setting("SHK_FAKE_FAULT", ""), fault) == 0;
}

static const char *visible_devices(void)
{
    const char *visible = getenv(CALL("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"));

    return visible != NULL ? visible : getenv("CUDA_VISIBLE_DEVICES");
}

static int devices(void)
{
    const char *visible = visible_devices();
    int count = atoi(setting("SHK_FAKE_GPUS", "2"));
    int seen = 1;

    if (visible == NULL) {
        return count;
    }
    if (*visible == '\0' || *visible == '-') {
        return 0;
    }
    for (; *visible != '\0'; visible++) {
        seen += *visible == ',';
    }
    return seen < count ? seen : count;
}

uint64_t shk_fake_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* ---- devices ---- */

int CALL(cuInit, hipInit)(unsigned flags)
{
    (void)flags;
    if (shk_fake_faulty("init")) {
        return 803;
    }
    return devices() == 0 || shk_fake_faulty("no-device") ? 100 : SUCCESS;
}

int CALL(cuDriverGetVersion, hipDriverGetVersion)(int *version)
{
    *version = atoi(setting("SHK_FAKE_DRIVER", "13000"));
    return SUCCESS;
}

int CALL(cuDeviceGetCount, hipGetDeviceCount)(int *count)
{
    *count = devices();
    return SUCCESS;
}

int CALL(cuDeviceGet, hipDeviceGet)(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal < devices() ? SUCCESS : 101;
}

int CALL(cuDeviceGetName, hipDeviceGetName)(char *name, int len, int device)
{
    snprintf(name, (size_t)len, "Fake GPU %d", device);
    return SUCCESS;
}

static int bus_of(int device)
{
    const char *visible = visible_devices();
    int bus = device;

    /* The variable lists which GPU each ordinal is. */
    for (; visible != NULL && device > 0; device--) {
        visible = strchr(visible, ',');
        visible = visible != NULL ? visible + 1 : NULL;
    }
    return visible != NULL ? atoi(visible) : bus;
}

int CALL(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *address, int len, int device)
{
    snprintf(address, (size_t)len, "0000:%02X:00.0", bus_of(device) + 1);
    return SUCCESS;
}

int CALL(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == GPU_ATTR_MULTICAST      ? atoi(setting("SHK_FAKE_MULTICAST", "0"))
             : attribute == GPU_ATTR_CAPABILITY   ? atoi(setting("SHK_FAKE_CAPABILITY", "0"))
             : attribute == GPU_ATTR_STREAM_OPS   ? atoi(setting("SHK_FAKE_STREAM_OPS", "1"))
             : attribute == GPU_ATTR_FLUSH_WRITES ? atoi(setting("SHK_FAKE_FLUSH", "0"))
                                                  : 0;
    return SUCCESS;
}

#ifndef HIP
int cuDeviceGetP2PAttribute(int *value, int attribute, int device, int peer)
{
    *value =
        attribute == GPU_PEER_ATOMICS && device != peer && atoi(setting("SHK_FAKE_NVLINK", "0"));
    return shk_fake_faulty("attribute") ? INVALID : SUCCESS;
}

int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
    return target != GPU_FLUSH_CONTEXT || scope != GPU_ORDER_OWNER ? INVALID
           : shk_fake_faulty("flush")                              ? 700
                                                                   : SUCCESS;
}
#endif

int CALL(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int *can, int device, int peer)
{
    *can = !shk_fake_faulty("peer") &&
           !shk_fake_pair("SHK_FAKE_REFUSED", bus_of(device), bus_of(peer));
    return SUCCESS;
}

int CALL(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void **context, int device)
{
    static int contexts[64];

    contexts[device & 63] = device;
    *context = &contexts[device & 63];
    return SUCCESS;
}

static int current;

int CALL(cuCtxSetCurrent, hipCtxSetCurrent)(void *context)
{
    current = *(int *)context;
    return SUCCESS;
}

int shk_fake_bus(void)
{
    return bus_of(current);
}

/* ---- memory ---- */

static struct block {
    gpu_ptr at;
    size_t bytes;
    int fd;
    int bus; /* of the GPU that has it */
} blocks[64];

int CALL(cuMemGetInfo_v2, hipMemGetInfo)(size_t *available, size_t *total)
{
    const char *have = getenv("SHK_FAKE_FREE"); /* bytes */

    *available = have != NULL ? (size_t)atoll(have) : (size_t)1 << 29;
    *total = (size_t)1 << 34;
    return SUCCESS;
}

int CALL(cuMemAlloc_v2, hipMalloc)(gpu_ptr *at, size_t bytes)
{
    int fd = -1;
    void *map = MAP_FAILED;
    unsigned i = 0;

    if (shk_fake_faulty("memory") && bytes > 65536) {
        return NO_MEMORY;
    }
    fd = memfd_create("fake-gpu", 0);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    for (i = 0; map != MAP_FAILED && i < 64; i++) {
        if (blocks[i].at == 0) {
            blocks[i] = (struct block){(gpu_ptr)(uintptr_t)map, bytes, fd, shk_fake_bus()};
            *at = blocks[i].at;
            return SUCCESS;
        }
    }
    return NO_MEMORY;
}

int shk_fake_block(gpu_ptr at, size_t bytes)
{
    unsigned i = 0;

    for (i = 0; i < 64; i++) {
        if (blocks[i].at == 0) {
            blocks[i] = (struct block){at, bytes, -1, shk_fake_bus()};
            return SUCCESS;
        }
    }
    return NO_MEMORY;
}

void shk_fake_unblock(gpu_ptr at)
{
    unsigned i = 0;

    for (i = 0; i < 64; i++) {
        if (blocks[i].at == at) {
            memset(&blocks[i], 0, sizeof(blocks[i]));
        }
    }
}

static struct block *block_of(gpu_ptr at)
{
    unsigned i = 0;

    for (i = 0; i < 64; i++) {
        if (blocks[i].at != 0 && at >= blocks[i].at && at < blocks[i].at + blocks[i].bytes) {
            return &blocks[i];
        }
    }
    return NULL;
}

/* As a driver does: no byte behind an allocation is copied. */
static bool holds(gpu_ptr at, size_t bytes)
{
    const struct block *block = block_of(at);

    return block != NULL && bytes <= block->at + block->bytes - at;
}

int CALL(cuMemFree_v2, hipFree)(gpu_ptr at)
{
    struct block *block = block_of(at);

    if (block == NULL || block->at != at) {
        return INVALID;
    }
    munmap((void *)(uintptr_t)at, block->bytes);
    if (block->fd >= 0) {
        close(block->fd);
    }
    memset(block, 0, sizeof(*block));
    return SUCCESS;
}

int CALL(cuMemcpyHtoD_v2, hipMemcpyHtoD)(gpu_ptr to, const void *from, size_t bytes)
{
    if (!holds(to, bytes)) {
        return INVALID;
    }
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

int CALL(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void *to, gpu_ptr from, size_t bytes)
{
    if (!holds(from, bytes)) {
        return INVALID;
    }
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return SUCCESS;
}

/* Handles name a descriptor of the process that owns the memory. */
struct handle {
    int pid;
    int fd;
    size_t bytes;
    int bus;
};

int CALL(cuIpcGetMemHandle, hipIpcGetMemHandle)(struct gpu_ipc *ipc, gpu_ptr at)
{
    struct block *block = block_of(at);
    struct handle handle;

    if (block == NULL) {
        return INVALID;
    }
    handle = (struct handle){(int)getpid(), block->fd, block->bytes, block->bus};
    memset(ipc, 0, sizeof(*ipc));
    memcpy(ipc->bytes, &handle, sizeof(handle));
    return SUCCESS;
}

int CALL(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(gpu_ptr *at, struct gpu_ipc ipc,
                                                     unsigned flags)
{
    struct handle handle;
    char path[64];
    void *map = MAP_FAILED;
    int fd = -1;
    unsigned i = 0;

    (void)flags;
    memcpy(&handle, ipc.bytes, sizeof(handle));
    if (shk_fake_faulty("peer") || shk_fake_pair("SHK_FAKE_REFUSED", shk_fake_bus(), handle.bus) ||
        shk_fake_pair("SHK_FAKE_UNMAPPED", shk_fake_bus(), handle.bus)) {
        return 217;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
    fd = open(path, O_RDWR);
    if (fd >= 0) {
        map = mmap(NULL, handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    for (i = 0; map != MAP_FAILED && i < 64; i++) {
        if (blocks[i].at == 0) {
            blocks[i] = (struct block){(gpu_ptr)(uintptr_t)map, handle.bytes, -1, handle.bus};
            *at = blocks[i].at;
            return SUCCESS;
        }
    }
    return INVALID;
}

int CALL(cuIpcCloseMemHandle, hipIpcCloseMemHandle)(gpu_ptr at)
{
    return CALL(cuMemFree_v2, hipFree)(at);
}

/* ---- streams and graphs: a capture collects what would have been done ---- */

struct work {
    void (*run)(void *arg);
    unsigned char arg[1024];
};

static struct graph {
    unsigned count;
    struct work work[64];
} * capturing;

int shk_fake_failed;
int shk_fake_stuck;

int shk_fake_enqueue(void (*run)(void *arg), const void *arg, size_t bytes)
{
    struct work work = {.run = run};

    if (shk_fake_failed != 0 || shk_fake_stuck) {
        return shk_fake_failed;
    }
    memcpy(work.arg, arg, bytes);
    if (capturing == NULL) {
        run(work.arg);
        return shk_fake_failed;
    }
    if (capturing->count == 64) {
        return INVALID;
    }
    capturing->work[capturing->count++] = work;
    return SUCCESS;
}

int CALL(cuStreamCreate, hipStreamCreateWithFlags)(void **stream, unsigned flags)
{
    static int streams;

    (void)flags;
    *stream = &streams;
    return SUCCESS;
}

int CALL(cuStreamSynchronize, hipStreamSynchronize)(void *stream)
{
    (void)stream;
    return shk_fake_failed;
}

int CALL(cuStreamDestroy_v2, hipStreamDestroy)(void *stream)
{
    (void)stream;
    return SUCCESS;
}

int CALL(cuStreamBeginCapture_v2, hipStreamBeginCapture)(void *stream, int mode)
{
    (void)stream;
    (void)mode;
    capturing = calloc(1, sizeof(*capturing));
    return capturing != NULL ? SUCCESS : NO_MEMORY;
}

int CALL(cuStreamEndCapture, hipStreamEndCapture)(void *stream, void **graph)
{
    (void)stream;
    *graph = capturing;
    capturing = NULL;
    return SUCCESS;
}

/* Drivers before CUDA 11.4 and ROCm 5.2 do not have it. */
#if defined(OLD) && defined(HIP)
static
    __attribute__((unused))
#endif
    int
    CALL(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void **exec, void *graph,
                                                                    unsigned long long flags)
{
    (void)flags;
    *exec = graph;
    return SUCCESS;
}

int CALL(cuGraphLaunch, hipGraphLaunch)(void *exec, void *stream)
{
    struct graph *graph = exec;
    unsigned i = 0;

    (void)stream;
    for (i = 0; i < graph->count && shk_fake_failed == 0; i++) {
        graph->work[i].run(graph->work[i].arg);
    }
    return shk_fake_failed;
}

int CALL(cuGraphDestroy, hipGraphDestroy)(void *graph)
{
    free(graph);
    return SUCCESS;
}

int CALL(cuGraphExecDestroy, hipGraphExecDestroy)(void *exec)
{
    (void)exec;
    return SUCCESS;
}

int CALL(cuEventCreate, hipEventCreateWithFlags)(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(uint64_t));
    return *event != NULL ? SUCCESS : NO_MEMORY;
}

int CALL(cuEventRecord, hipEventRecord)(void *event, void *stream)
{
    (void)stream;
    *(uint64_t *)event = shk_fake_now_ns();
    return SUCCESS;
}

int CALL(cuEventElapsedTime, hipEventElapsedTime)(float *ms, void *from, void *to)
{
    *ms = (float)(*(uint64_t *)to - *(uint64_t *)from) / 1e6F;
    return SUCCESS;
}

int CALL(cuEventDestroy_v2, hipEventDestroy)(void *event)
{
    free(event);
    return SUCCESS;
}

struct copy {
    gpu_ptr to, from;
    size_t bytes;
};

/* Copies by the engines of device 1, that is GPU 0000:02:00.0, take five times as long. */
static void engine(const char *fault, void *to, const void *from, size_t bytes)
{
    int times = current == 1 && shk_fake_faulty(fault) ? 5 : 1;

    for (; times > 0; times--) {
        memcpy(to, from, bytes);
        __asm__ volatile("" ::: "memory");
    }
}

static void run_copy(void *arg)
{
    const struct copy *copy = arg;

    const struct block *to = block_of(copy->to);
    int slow = to != NULL && shk_fake_pair("SHK_FAKE_SLOW_PAIRS", shk_fake_bus(), to->bus) ? 20 : 1;

    for (; slow > 0; slow--) {
        engine("slow-memory", (void *)(uintptr_t)copy->to, (const void *)(uintptr_t)copy->from,
               copy->bytes);
    }
}

int CALL(cuMemHostAlloc, hipHostMalloc)(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = shk_fake_faulty("no-pinned") ? NULL : malloc(bytes);
    return *at != NULL ? SUCCESS : NO_MEMORY;
}

int CALL(cuMemFreeHost, hipHostFree)(void *at)
{
    free(at);
    return SUCCESS;
}

int CALL(cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(gpu_ptr to, const void *from, size_t bytes,
                                                   void *stream)
{
    (void)stream;
    engine("slow-to-device", (void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

int CALL(cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void *to, gpu_ptr from, size_t bytes,
                                                   void *stream)
{
    (void)stream;
    engine("slow-to-host", to, (const void *)(uintptr_t)from, bytes);
    if (current == 1 && shk_fake_faulty("flip")) {
        ((unsigned char *)to)[bytes / 2] = 0xa5;
    }
    return SUCCESS;
}

int CALL(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(gpu_ptr to, gpu_ptr from, size_t bytes,
                                                   void *stream)
{
    struct copy copy = {to, from, bytes};
    const struct block *block = block_of(to);

    (void)stream;
    if (block != NULL && shk_fake_pair("SHK_FAKE_NO_COPY", shk_fake_bus(), block->bus)) {
        return INVALID;
    }
    return shk_fake_enqueue(run_copy, &copy, sizeof(copy));
}

struct words {
    gpu_ptr to;
    unsigned value;
    size_t count;
};

static void run_words(void *arg)
{
    const struct words *words = arg;
    uint32_t *to = (uint32_t *)(uintptr_t)words->to;
    size_t i = 0;

    for (i = 0; i < words->count; i++) {
        to[i] = words->value;
    }
}

int CALL(cuMemsetD32Async, hipMemsetD32Async)(gpu_ptr to, unsigned value, size_t count,
                                              void *stream)
{
    struct words words = {to, value, count};

    (void)stream;
    return shk_fake_enqueue(run_words, &words, sizeof(words));
}

int CALL(cuGetErrorString, hipDrvGetErrorString)(int status, const char **text)
{
    *text = status == NO_MEMORY ? "out of memory"
            : status == 700     ? "an illegal memory access was encountered"
                                : "fake error";
    return SUCCESS;
}
