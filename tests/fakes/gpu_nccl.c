/* Stand-in for libnccl.so.2 (linked to the stand-in libcuda) and librccl.so.1: ranks meet in memory
 * of rank 0 and move their data through it.
 *
 *   SHK_FAKE_NCCL_VERSION  22809 by default
 *   SHK_FAKE_NCCL_DIR      a folder where ranks meet that do not see each other's processes
 *   SHK_FAKE_NCCL_TEAM     ranks that reach each other by load and store, all by default
 *   SHK_FAKE_NCCL_FAULT    init, hang, crash, corrupt, no-window, net, unaligned (16-bit data at
 *                          odd places in windows), narrow (16-bit data anywhere): what goes wrong;
 *                          used-error, used-crash, used-hang, used-corrupt: only in a communicator
 *                          that had a window which it has no more */
#include "collectives/gpu/gpu_data.h"
#include "collectives/gpu/nccl/nccl_api.h"
#include "tests/fakes/gpu_driver.h"
#include "tests/fakes/rest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS      64
#define ROOM_BYTES ((size_t)16 << 20) /* of one rank; longer vectors take several turns */

struct meeting {
    uint32_t arrived[RANKS]; /* barriers entered */
    struct gpu_ipc heap[RANKS];
    unsigned char room[RANKS][ROOM_BYTES];
};

static struct comm {
    struct meeting *meeting;
    int rank, ranks;
    uint32_t barriers;
    int windows;
    int left;                /* windows that are no more */
    int reserved, connected; /* told of */
    FILE *log;
} the_comm;

struct id {
    char path[120]; /* of the meeting's memory, as every rank opens it */
};

static int faulty(const char *fault)
{
    const char *value = getenv("SHK_FAKE_NCCL_FAULT");

    return value != NULL && strcmp(value, fault) == 0;
}

/* … in a communicator that was used with windows before. */
static int used_faulty(const char *fault)
{
    return the_comm.left > 0 && the_comm.windows == 0 && faulty(fault);
}

static void tell(const char *fmt, ...)
{
    va_list ap;

    if (the_comm.log == NULL) {
        return;
    }
    va_start(ap, fmt);
    vfprintf(the_comm.log, fmt, ap);
    va_end(ap);
    fflush(the_comm.log);
}

int ncclGetVersion(int *version)
{
    const char *value = getenv("SHK_FAKE_NCCL_VERSION");

    *version = value != NULL ? atoi(value) : 22809;
    return 0;
}

int ncclGetUniqueId(struct nccl_id *id)
{
    const char *dir = getenv("SHK_FAKE_NCCL_DIR");
    struct id mine;
    int fd = -1;

    if (dir != NULL) {
        snprintf(mine.path, sizeof(mine.path), "%s/nccl-XXXXXX", dir);
        fd = mkstemp(mine.path);
    } else {
        fd = memfd_create("fake-nccl", 0);
        snprintf(mine.path, sizeof(mine.path), "/proc/%d/fd/%d", (int)getpid(), fd);
    }
    if (fd < 0 || ftruncate(fd, sizeof(struct meeting)) != 0) {
        return 2;
    }
    memcpy(id->bytes, &mine, sizeof(mine));
    return 0;
}

static void barrier(void)
{
    unsigned turns = 0;
    int i = 0;

    the_comm.barriers++;
    __atomic_store_n(&the_comm.meeting->arrived[the_comm.rank], the_comm.barriers,
                     __ATOMIC_RELEASE);
    for (i = 0; i < the_comm.ranks; i++) {
        while (__atomic_load_n(&the_comm.meeting->arrived[i], __ATOMIC_ACQUIRE) <
               the_comm.barriers) {
            rest(&turns);
        }
    }
}

int ncclCommInitRank(void **comm, int ranks, struct nccl_id id, int rank)
{
    const char *log = getenv("NCCL_DEBUG_FILE");
    struct id where;
    void *map = MAP_FAILED;
    int fd = -1;

    memcpy(&where, id.bytes, sizeof(where));
    fd = open(where.path, O_RDWR);
    if (fd >= 0) {
        map = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    the_comm.log = log != NULL ? fopen(log, "w") : NULL;
    if (map == MAP_FAILED || ranks > RANKS || faulty("init")) {
        tell("host:1:1 [0] bootstrap.cc:1 NCCL WARN Bootstrap : no socket interface found\n");
        return 3;
    }
    while (faulty("hang")) {
        sleep(1);
    }
    the_comm.meeting = map;
    the_comm.rank = rank;
    the_comm.ranks = ranks;
    tell("host:1:1 [0] NCCL INFO NCCL_DEBUG set by environment to INFO.\n");
    tell("host:1:1 [0] NCCL INFO Check P2P Type isAllDirectP2p 1 directMode 0 isAllCudaP2p 1\n");
    barrier();
    *comm = &the_comm;
    return 0;
}

int ncclCommDestroy(void *comm)
{
    (void)comm;
    munmap(the_comm.meeting, sizeof(struct meeting));
    if (the_comm.log != NULL) {
        fclose(the_comm.log);
        the_comm.log = NULL;
    }
    return 0;
}

const char *ncclGetErrorString(int status)
{
    return status == 3 ? "internal error" : status == 5 ? "invalid usage" : "unhandled error";
}

const char *ncclGetLastError(void *comm)
{
    (void)comm;
    return "";
}

int ncclCommGetAsyncError(void *comm, int *status)
{
    (void)comm;
    *status = 0;
    return 0;
}

int ncclMemAlloc(void **at, size_t bytes)
{
    gpu_ptr ptr = 0;
    int rc = CALL(cuMemAlloc_v2, hipMalloc)(&ptr, bytes);

    *at = (void *)(uintptr_t)ptr;
    return rc == 0 ? 0 : 1;
}

int ncclMemFree(void *at)
{
    return CALL(cuMemFree_v2, hipFree)((gpu_ptr)(uintptr_t)at) == 0 ? 0 : 1;
}

static int team(void)
{
    const char *value = getenv("SHK_FAKE_NCCL_TEAM");

    return value != NULL ? atoi(value) : the_comm.ranks;
}

int ncclCommWindowRegister(void *comm, void *at, size_t bytes, void **window, int flags)
{
    struct shk_fake_window *made = NULL;
    gpu_ptr ptr = 0;
    int i = 0;

    const char *cumem = getenv("NCCL_CUMEM_ENABLE");

    (void)comm, (void)bytes, (void)flags;
    if (faulty("no-window") || (cumem != NULL && strcmp(cumem, "0") == 0)) {
        tell("host:1:1 [0] NCCL INFO Symmetric memory is not supported. cuMemEnable 0\n");
        return 0;
    }
    if (CALL(cuIpcGetMemHandle, hipIpcGetMemHandle)(&the_comm.meeting->heap[the_comm.rank],
                                                    (gpu_ptr)(uintptr_t)at) != 0 ||
        CALL(cuMemAlloc_v2, hipMalloc)(&ptr, sizeof(*made)) != 0) {
        return 1;
    }
    made = (struct shk_fake_window *)(uintptr_t)ptr;
    barrier();
    for (i = 0; i < the_comm.ranks; i++) {
        if (i / team() != the_comm.rank / team()) {
            made->base[i] = 0;
            continue;
        }
        if (CALL(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(&made->base[i],
                                                             the_comm.meeting->heap[i], 1) != 0) {
            return 1;
        }
    }
    if (!the_comm.reserved++) {
        tell("host:1:1 [0] NCCL INFO Symmetric VA size=144GB\n");
    }
    tell("host:1:1 [0] NCCL INFO register comm 0x1 window %p\n", at);
    the_comm.windows++;
    *window = made;
    return 0;
}

int ncclCommWindowDeregister(void *comm, void *window)
{
    (void)comm;
    the_comm.windows--;
    the_comm.left++;
    return CALL(cuMemFree_v2, hipFree)((gpu_ptr)(uintptr_t)window) == 0 ? 0 : 1;
}

struct nccl_team ncclTeamLsa(void *comm)
{
    (void)comm;
    return (struct nccl_team){team(), the_comm.rank % team(), 1};
}

struct reduce {
    const unsigned char *send;
    unsigned char *recv;
    size_t count;
    enum shk_gpu_type type;
};

/* One rank's part of a turn of so many elements, into its own room, where nobody else reads it
 * before all are done. */
static void sum_part(const struct reduce *r, size_t from, size_t to)
{
    size_t bytes = shk_gpu_type_bytes(r->type);
    size_t i = 0;
    int p = 0;

    for (i = from; i < to; i++) {
        double sum = 0;
        float value = 0;
        int32_t whole = 0;
        uint16_t narrow = 0;
        const void *sum_at = &value;

        for (p = 0; p < the_comm.ranks; p++) {
            sum += shk_gpu_data_number(r->type, the_comm.meeting->room[p] + i * bytes);
        }
        value = (float)sum;
        if (r->type == SHK_GPU_I32) {
            whole = (int32_t)sum;
            sum_at = &whole;
        } else if (r->type != SHK_GPU_F32) {
            narrow = r->type == SHK_GPU_F16 ? shk_gpu_half_of(value) : shk_gpu_bfloat_of(value);
            sum_at = &narrow;
        }
        memcpy(the_comm.meeting->room[the_comm.rank] + i * bytes, sum_at, bytes);
    }
}

static size_t part_of(size_t count, int rank)
{
    return count * (size_t)rank / (size_t)the_comm.ranks;
}

static void take_turn(const struct reduce *r, size_t first, size_t count)
{
    size_t bytes = shk_gpu_type_bytes(r->type);
    int p = 0;

    for (p = 0; p < the_comm.ranks; p++) {
        size_t from = part_of(count, p);

        memcpy(r->recv + (first + from) * bytes, the_comm.meeting->room[p] + from * bytes,
               (part_of(count, p + 1) - from) * bytes);
    }
    if (count > 1 && bytes == 2 &&
        (faulty("narrow") || (faulty("unaligned") && the_comm.windows > 0 &&
                              (((uintptr_t)r->send | (uintptr_t)r->recv) & 2U) != 0))) {
        memset(r->recv + (first + 1) * bytes, 0, bytes);
    }
    if ((faulty("corrupt") || used_faulty("used-corrupt")) && the_comm.rank == 1 && count > 2) {
        r->recv[(first + count / 2) * bytes] ^= 1;
    }
}

static void run_reduce(void *arg)
{
    const struct reduce *r = arg;
    size_t bytes = shk_gpu_type_bytes(r->type);
    size_t turn = ROOM_BYTES / bytes;
    size_t first = 0;

    if ((faulty("crash") || used_faulty("used-crash")) && the_comm.rank == 1) {
        raise(SIGSEGV);
    }
    while (used_faulty("used-hang") && the_comm.rank == 1) {
        sleep(1);
    }
    for (first = 0; first < r->count; first += turn) {
        size_t count = r->count - first < turn ? r->count - first : turn;

        memcpy(the_comm.meeting->room[the_comm.rank], r->send + first * bytes, count * bytes);
        barrier();
        sum_part(r, part_of(count, the_comm.rank), part_of(count, the_comm.rank + 1));
        barrier();
        take_turn(r, first, count);
        barrier();
    }
}

#ifdef OLD
static
    __attribute__((unused))
#endif
    int
    ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
                  void *stream)
{
    static const enum shk_gpu_type types[] = {
        [2] = SHK_GPU_I32, [6] = SHK_GPU_F16, [7] = SHK_GPU_F32, [9] = SHK_GPU_BF16};
    const char *subsys = getenv("NCCL_DEBUG_SUBSYS");
    struct reduce reduce = {send, recv, count, types[type]};

    (void)op, (void)comm, (void)stream;
    if (used_faulty("used-error")) {
        tell("host:1:1 [0] enqueue.cc:1 NCCL WARN used before\n");
        return 5;
    }
    if (!the_comm.connected++) { /* when it is needed, and once */
        tell("host:1:1 [0] NCCL INFO Channel 00/0 : %d[0] -> %d[1] via %s\n", the_comm.rank,
             (the_comm.rank + 1) % the_comm.ranks, faulty("net") ? "NET/Socket/0" : "P2P/CUMEM");
    }
    if (the_comm.rank == 0 && subsys != NULL && strstr(subsys, "TUNING") != NULL) {
        size_t bytes = count * shk_gpu_type_bytes(reduce.type);

        if (the_comm.windows > 0 && reduce.type != SHK_GPU_I32) {
            tell("host:1:1 [0] NCCL INFO AllReduce [Symmetric]: %zu Bytes -> Kernel "
                 "AllReduce_AGxLL_R nchannels 1 nthreads 512 nWorks 1\n",
                 bytes);
        } else {
            tell("host:1:1 [0] NCCL INFO AllReduce: %zu Bytes -> Algo RING proto LL "
                 "channel{Lo..Hi}={0..1}\n",
                 bytes);
        }
    }
    return shk_fake_enqueue(run_reduce, &reduce, sizeof(reduce)) == 0 ? 0 : 1;
}
