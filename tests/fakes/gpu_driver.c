/* Stand-in for libcuda.so.1 and (with HIP) libamdhip64.so: device memory is host memory that other
 * processes can map, launches run at once in the calling thread, and the kernels of
 * collectives/kernels.cu are done in C by their names.
 *
 *   SHK_FAKE_GPUS     devices, 2 by default
 *   SHK_FAKE_DRIVER   version, 13000 by default
 *   SHK_FAKE_FAULT    init, no-device, peer, memory, illegal, image, hang, crash, corrupt, skip,
 *                     overrun, input: what goes wrong */
#include "tests/fakes/gpu_driver.h"
#include "collectives/gpu_api.h"
#include "collectives/gpu_data.h"
#include "collectives/kernels.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef HIP
#define CALL(cuda_, hip_) hip_
#else
#define CALL(cuda_, hip_) cuda_
#endif

enum { SUCCESS = 0, INVALID = 1, NO_MEMORY = 2 };

static const char *setting(const char *name, const char *initial)
{
    const char *value = getenv(name);

    return value != NULL ? value : initial;
}

static int faulty(const char *fault)
{
    return strcmp(setting("SHK_FAKE_FAULT", ""), fault) == 0;
}

static int devices(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
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

static uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* ---- devices ---- */

int CALL(cuInit, hipInit)(unsigned flags)
{
    (void)flags;
    if (faulty("init")) {
        return 803;
    }
    return devices() == 0 || faulty("no-device") ? 100 : SUCCESS;
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

int CALL(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId)(char *address, int len, int device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int bus = device;

    /* The variable lists which GPU each ordinal is. */
    for (; visible != NULL && device > 0; device--) {
        visible = strchr(visible, ',');
        visible = visible != NULL ? visible + 1 : NULL;
    }
    bus = visible != NULL ? atoi(visible) : bus;
    snprintf(address, (size_t)len, "0000:%02X:00.0", bus + 1);
    return SUCCESS;
}

int CALL(cuDeviceGetAttribute, hipDeviceGetAttribute)(int *value, int attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 0;
    return SUCCESS;
}

int CALL(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(int *can, int device, int peer)
{
    (void)device;
    (void)peer;
    *can = !faulty("peer");
    return SUCCESS;
}

int CALL(cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void **context, int device)
{
    static int contexts[64];

    *context = &contexts[device & 63];
    return SUCCESS;
}

int CALL(cuCtxSetCurrent, hipCtxSetCurrent)(void *context)
{
    (void)context;
    return SUCCESS;
}

/* ---- memory ---- */

static struct block {
    gpu_ptr at;
    size_t bytes;
    int fd;
} blocks[64];

int CALL(cuMemGetInfo_v2, hipMemGetInfo)(size_t *available, size_t *total)
{
    *available = (size_t)1 << 33;
    *total = (size_t)1 << 34;
    return SUCCESS;
}

int CALL(cuMemAlloc_v2, hipMalloc)(gpu_ptr *at, size_t bytes)
{
    int fd = -1;
    void *map = MAP_FAILED;
    unsigned i = 0;

    if (faulty("memory") && bytes > 65536) {
        return NO_MEMORY;
    }
    fd = memfd_create("fake-gpu", 0);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    for (i = 0; map != MAP_FAILED && i < 64; i++) {
        if (blocks[i].at == 0) {
            blocks[i] = (struct block){(gpu_ptr)(uintptr_t)map, bytes, fd};
            *at = blocks[i].at;
            return SUCCESS;
        }
    }
    return NO_MEMORY;
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
    if (block_of(to) == NULL) {
        return INVALID;
    }
    memcpy((void *)(uintptr_t)to, from, bytes);
    return SUCCESS;
}

int CALL(cuMemcpyDtoH_v2, hipMemcpyDtoH)(void *to, gpu_ptr from, size_t bytes)
{
    if (block_of(from) == NULL) {
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
};

int CALL(cuIpcGetMemHandle, hipIpcGetMemHandle)(struct gpu_ipc *ipc, gpu_ptr at)
{
    struct block *block = block_of(at);
    struct handle handle;

    if (block == NULL) {
        return INVALID;
    }
    handle = (struct handle){(int)getpid(), block->fd, block->bytes};
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
    if (faulty("peer")) {
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
            blocks[i] = (struct block){(gpu_ptr)(uintptr_t)map, handle.bytes, -1};
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

static int failed; /* sticky, as after an illegal access */

int shk_fake_enqueue(void (*run)(void *arg), const void *arg, size_t bytes)
{
    struct work work = {.run = run};

    if (failed != 0) {
        return failed;
    }
    memcpy(work.arg, arg, bytes);
    if (capturing == NULL) {
        run(work.arg);
        return failed;
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
    return failed;
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

int CALL(cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags)(void **exec, void *graph,
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
    for (i = 0; i < graph->count && failed == 0; i++) {
        graph->work[i].run(graph->work[i].arg);
    }
    return failed;
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
    *(uint64_t *)event = now_ns();
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

static void run_copy(void *arg)
{
    const struct copy *copy = arg;

    memcpy((void *)(uintptr_t)copy->to, (const void *)(uintptr_t)copy->from, copy->bytes);
}

int CALL(cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(gpu_ptr to, gpu_ptr from, size_t bytes,
                                                   void *stream)
{
    struct copy copy = {to, from, bytes};

    (void)stream;
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

/* ---- kernels ---- */

static int fake_headers = 22809;

int CALL(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image)
{
    *module = (void *)(uintptr_t)image;
    return faulty("image") ? 222 : SUCCESS;
}

int CALL(cuModuleGetGlobal_v2, hipModuleGetGlobal)(gpu_ptr *at, size_t *bytes, void *module,
                                                   const char *name)
{
    int rc = 0;

    (void)module;
    if (strcmp(name, "shk_nccl_headers") != 0) {
        return 500;
    }
    rc = CALL(cuMemAlloc_v2, hipMalloc)(at, sizeof(fake_headers));
    *bytes = sizeof(fake_headers);
    return rc == SUCCESS ? CALL(cuMemcpyHtoD_v2, hipMemcpyHtoD)(*at, &fake_headers, *bytes) : rc;
}

/* Arguments of the test kernels, in the order of their parameters. */
struct check_args {
    uint32_t type;
    gpu_ptr at;
    uint64_t count;
    struct shk_gpu_spec spec;
    gpu_ptr result;
};

static struct shk_gpu_control *control_of(const struct shk_gpu_reduce *args, unsigned rank)
{
    return (struct shk_gpu_control *)(uintptr_t)(args->base[rank] + args->control);
}

static int wait_for(const struct shk_gpu_reduce *args, const uint32_t *flag, uint32_t epoch,
                    uint32_t why, unsigned peer)
{
    uint64_t start = now_ns();

    while ((int32_t)(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - epoch) < 0) {
        if (now_ns() - start > args->timeout_ns) {
            control_of(args, args->rank)->error = why;
            control_of(args, args->rank)->error_peer = peer;
            return 0;
        }
        sched_yield();
    }
    return 1;
}

static int barrier(const struct shk_gpu_reduce *args, uint32_t epoch, int end)
{
    struct shk_gpu_control *mine = control_of(args, args->rank);
    unsigned peer = 0;

    for (peer = 0; peer < args->ranks; peer++) {
        struct shk_gpu_control *theirs = control_of(args, peer);

        __atomic_store_n(end ? &theirs->end[0][args->rank] : &theirs->start[0][args->rank], epoch,
                         __ATOMIC_RELEASE);
    }
    for (peer = 0; peer < args->ranks; peer++) {
        if (!wait_for(args, end ? &mine->end[0][peer] : &mine->start[0][peer], epoch,
                      end ? SHK_GPU_LATE_END : SHK_GPU_LATE_START, peer)) {
            return 0;
        }
    }
    return 1;
}

static void sum_element(const struct shk_gpu_reduce *args, uint32_t type, uint64_t i, void *to)
{
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)type);
    double sum = 0;
    float value = 0;
    int32_t whole = 0;
    uint16_t narrow = 0;
    unsigned p = 0;

    for (p = 0; p < args->ranks; p++) {
        sum += shk_gpu_data_number((enum shk_gpu_type)type,
                                   (const void *)(uintptr_t)(args->base[p] + args->in + i * bytes));
    }
    value = (float)sum;
    whole = type == SHK_GPU_I32 ? (int32_t)sum : 0;
    narrow = type == SHK_GPU_F16 ? shk_gpu_half_of(value) : shk_gpu_bfloat_of(value);
    memcpy(to,
           type == SHK_GPU_F32   ? (const void *)&value
           : type == SHK_GPU_I32 ? (const void *)&whole
                                 : (const void *)&narrow,
           bytes);
}

struct reduce_args {
    uint32_t type;
    struct shk_gpu_reduce args;
};

static void reduce_fault(void)
{
    if (faulty("illegal")) {
        failed = 700;
    }
    if (faulty("crash")) {
        raise(SIGSEGV);
    }
    while (faulty("hang")) {
        sleep(1);
    }
}

/* Both algorithms: each rank does its part of the elements, everyone writes all the results. The
 * data is read between the barriers, so one-shot in place needs a copy first. */
static void run_reduce(void *arg)
{
    const struct reduce_args *reduce = arg;
    const struct shk_gpu_reduce *args = &reduce->args;
    struct shk_gpu_control *mine = control_of(args, args->rank);
    size_t bytes = shk_gpu_type_bytes((enum shk_gpu_type)reduce->type);
    uint32_t epoch = mine->epoch + 1;
    uint64_t first = args->count * args->rank / args->ranks;
    uint64_t last = args->count * (args->rank + 1) / args->ranks;
    unsigned char element[8];
    uint64_t i = 0;
    unsigned p = 0;

    reduce_fault();
    if (mine->error != SHK_GPU_OK || failed != 0 || !barrier(args, epoch, 0)) {
        return;
    }
    mine->epoch = epoch;
    for (i = first; i < last; i++) {
        sum_element(args, reduce->type, i, element);
        if (faulty("corrupt") && i == last / 2) {
            element[0] ^= 1;
        }
        for (p = 0; p < args->ranks && !(faulty("skip") && i == first); p++) {
            memcpy((void *)(uintptr_t)(args->base[p] + args->out + i * bytes), element, bytes);
        }
    }
    if (faulty("overrun")) {
        memset((void *)(uintptr_t)(args->base[args->rank] + args->out + args->count * bytes), 7, 4);
    }
    if (faulty("input") && args->in != args->out) {
        *(unsigned char *)(uintptr_t)(args->base[args->rank] + args->in) ^= 1;
    }
    (void)barrier(args, epoch, 1);
}

static void run_fill(void *arg)
{
    const struct check_args *fill = arg;

    shk_gpu_data_fill(&fill->spec, (void *)(uintptr_t)fill->at, fill->count);
}

static void run_check(void *arg)
{
    const struct check_args *check = arg;
    struct shk_gpu_check *result = (struct shk_gpu_check *)(uintptr_t)check->result;

    shk_gpu_data_check(&check->spec, (const void *)(uintptr_t)check->at, check->count, result);
}

static void run_delay(void *arg)
{
    uint64_t ns = *(const uint64_t *)arg;

    usleep((useconds_t)(ns / 1000));
}

struct pointers_args {
    struct shk_fake_window *window;
    int ranks;
    gpu_ptr to;
};

static void run_pointers(void *arg)
{
    const struct pointers_args *args = arg;

    memcpy((void *)(uintptr_t)args->to, args->window->base,
           (size_t)args->ranks * sizeof(args->window->base[0]));
}

static const char *const kernel_names[] = {"shk_oneshot_", "shk_twoshot_", "shk_fill_",
                                           "shk_check_",   "shk_delay",    "shk_lsa_pointers"};
enum { ONESHOT, TWOSHOT, FILL, CHECK, DELAY, POINTERS, KERNELS };

static struct function {
    int kernel;
    uint32_t type;
} functions[64];

int CALL(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name)
{
    static unsigned used;
    uint32_t type = 0;
    int k = 0;

    (void)module;
    for (k = 0; k < KERNELS; k++) {
        size_t len = strlen(kernel_names[k]);

        if (strncmp(name, kernel_names[k], len) != 0 || used == 64) {
            continue;
        }
        for (type = 0; k < DELAY && type + 1 < SHK_GPU_TYPE_COUNT; type++) {
            const char *tag = shk_gpu_type_tag((enum shk_gpu_type)type);

            if (strncmp(name + len, tag, strlen(tag)) == 0) {
                break;
            }
        }
        functions[used] = (struct function){k, type};
        *function = &functions[used++];
        return SUCCESS;
    }
    return 500;
}

int CALL(cuLaunchKernel, hipModuleLaunchKernel)(void *function, unsigned gx, unsigned gy,
                                                unsigned gz, unsigned bx, unsigned by, unsigned bz,
                                                unsigned shared, void *stream, void **params,
                                                void **extra)
{
    const struct function *f = function;
    struct check_args check = {.type = f->type};
    struct reduce_args reduce = {.type = f->type};
    struct pointers_args pointers;

    (void)shared, (void)stream, (void)extra;
    if (gx * gy * gz == 0 || bx * by * bz == 0 || bx * by * bz > 1024) {
        return INVALID;
    }
    switch (f->kernel) {
    case ONESHOT:
    case TWOSHOT:
        memcpy(&reduce.args, params[0], sizeof(reduce.args));
        return shk_fake_enqueue(run_reduce, &reduce, sizeof(reduce));
    case FILL:
    case CHECK:
        memcpy(&check.at, params[0], sizeof(check.at));
        memcpy(&check.count, params[1], sizeof(check.count));
        memcpy(&check.spec, params[2], sizeof(check.spec));
        if (f->kernel == CHECK) {
            memcpy(&check.result, params[3], sizeof(check.result));
        }
        return shk_fake_enqueue(f->kernel == FILL ? run_fill : run_check, &check, sizeof(check));
    case DELAY: return shk_fake_enqueue(run_delay, params[0], sizeof(uint64_t));
    default:
        memcpy(&pointers.window, params[0], sizeof(pointers.window));
        memcpy(&pointers.ranks, params[1], sizeof(pointers.ranks));
        memcpy(&pointers.to, params[2], sizeof(pointers.to));
        return shk_fake_enqueue(run_pointers, &pointers, sizeof(pointers));
    }
}
