/* NVSHMEM for several PEs, and the few calls of the CUDA driver that go with it: the heaps of all
 * PEs are one piece of memory of PE 0, which the unique id names. SHK_FAKE_GPUS: devices, 2 by
 * default. A definition is what goes wrong. */
#include "tests/fakes/rest.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PES = 16, HEAP = 8 << 20 };

static struct world {
    unsigned arrived[PES];
    char pad[4096 - PES * sizeof(unsigned)];
    unsigned char heap[PES][HEAP];
} * world;

static int my_pe, all_pes, device = -1;
static unsigned barriers;
static size_t used;

struct id {
    int version, pid, fd;
};

struct id_args {
    int version;
    struct id *id;
    int rank, ranks;
};

struct attr {
    int version;
    void *comm;
    struct {
        int version;
        struct id_args id_args;
    } args;
};

static void barrier(void)
{
    unsigned turns = 0;
    int i = 0;

    barriers++;
    __atomic_store_n(&world->arrived[my_pe], barriers, __ATOMIC_RELEASE);
    for (i = 0; i < all_pes; i++) {
        while (__atomic_load_n(&world->arrived[i], __ATOMIC_ACQUIRE) < barriers)
            rest(&turns);
    }
}

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = 3;
    *minor = 4;
    *patch = 5;
}

int nvshmemx_get_uniqueid(struct id *id)
{
    if (id->version != (1 << 16) + 128)
        return 2;
    id->pid = (int)getpid();
    id->fd = memfd_create("fake-nvshmem", 0);
    return id->fd >= 0 && ftruncate(id->fd, sizeof(struct world)) == 0 ? 0 : 7;
}

int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, struct id *id, struct attr *attr)
{
    if (ranks < 1 || ranks > PES || rank < 0 || rank >= ranks || attr->version != (1 << 16) + 144)
        return 3;
    attr->args.id_args.id = id;
    attr->args.id_args.rank = rank;
    attr->args.id_args.ranks = ranks;
    return 0;
}

int nvshmemx_hostlib_init_attr(unsigned flags, struct attr *attr)
{
    const struct id_args *with = &attr->args.id_args;
    char path[64];
    void *map = MAP_FAILED;
    int fd = -1;

#ifdef INIT_EXIT
    if (with->rank == 1) {
        fprintf(stderr, "nvshmem setup connections failed\n");
        exit(255);
    }
#endif
#ifdef INIT_HANG
    while (with->rank == 1)
        pause();
#endif
    if (flags != 8 || getenv("NVSHMEM_DISABLE_NVLS") == NULL ||
        (device >= 0 && device != with->rank))
        return 7;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", with->id->pid, with->id->fd);
    fd = open(path, O_RDWR);
    if (fd >= 0)
        map = mmap(NULL, sizeof(struct world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 7;
    close(fd);
    world = map;
    my_pe = with->rank;
    all_pes = with->ranks;
    barrier();
    return 0;
}

void nvshmemx_hostlib_finalize(void)
{
    barrier();
    munmap(world, sizeof(*world));
    world = NULL;
}

int nvshmem_my_pe(void)
{
#ifdef ALONE
    return 0;
#endif
    return my_pe;
}

int nvshmem_n_pes(void)
{
#ifdef ALONE
    return 1;
#endif
    return all_pes;
}

void *nvshmem_malloc(size_t size)
{
    void *at = NULL;

#ifdef NO_HEAP
    return NULL;
#endif
#ifdef ASYMMETRIC
    used += my_pe == 1 && used > 0 ? 512 : 0;
#endif
    if (world != NULL && used + size <= HEAP) {
        at = world->heap[my_pe] + used;
        used += size;
    }
    barrier();
    return at;
}

void nvshmem_free(void *at)
{
    (void)at;
    barrier();
}

static unsigned char *place(const void *at, int pe)
{
    return world->heap[pe] + ((const unsigned char *)at - world->heap[my_pe]);
}

void *nvshmem_ptr(void *at, int pe)
{
#ifdef NO_POINTER
    return NULL;
#endif
#ifdef NO_PEER
    return pe == my_pe ? at : NULL;
#endif
#ifdef ELSEWHERE
    return at;
#endif
    return pe >= 0 && pe < all_pes ? place(at, pe) : NULL;
}

void nvshmem_putmem(void *dst, const void *src, size_t bytes, int pe)
{
#ifdef PUT_SEGV
    if (my_pe == 1)
        __builtin_trap();
#endif
#ifdef PUT_SELF
    pe = my_pe;
#endif
    memcpy(place(dst, pe), src, bytes);
#ifdef PUT_LOSES
    place(dst, pe)[bytes - 1] = (unsigned char)~((const unsigned char *)src)[bytes - 1];
#endif
}

void nvshmem_quiet(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int cuInit(unsigned flags)
{
    (void)flags;
#ifdef NO_GPU
    return 100;
#endif
    return 0;
}

int cuDeviceGetCount(int *count)
{
    const char *gpus = getenv("SHK_FAKE_GPUS");

    *count = gpus != NULL ? atoi(gpus) : 2;
    return 0;
}

int cuDeviceGet(int *d, int ordinal)
{
    *d = ordinal;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int d)
{
    static int contexts[PES];

    *context = &contexts[d];
    device = d;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    return context != NULL && device >= 0 ? 0 : 201;
}

int cuMemcpyHtoD_v2(uint64_t dst, const void *src, size_t bytes)
{
    memcpy((void *)(uintptr_t)dst, src, bytes);
    return 0;
}

int cuMemcpyDtoH_v2(void *dst, uint64_t src, size_t bytes)
{
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return 0;
}
