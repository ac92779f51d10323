/* NVSHMEM for one PE, and the few calls of the CUDA driver that go with it, on host memory. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int started;

void nvshmemx_vendor_get_version_info(int *major, int *minor, int *patch)
{
    *major = 3;
    *minor = 4;
    *patch = 5;
}

int nvshmemx_get_uniqueid(int *id)
{
    memset(id + 1, 0x5a, 124);
    return id[0] == (1 << 16) + 128 ? 0 : 2;
}

int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, const int *id, int *attr)
{
    return rank == 0 && ranks == 1 && id[1] == 0x5a5a5a5a && attr[0] == (1 << 16) + 144 ? 0 : 3;
}

int nvshmemx_hostlib_init_attr(unsigned flags, const int *attr)
{
    (void)attr;
#ifdef INIT_EXIT
    fprintf(stderr, "nvshmem setup connections failed\n");
    exit(255);
#endif
#ifdef INIT_HANG
    for (;;)
        pause();
#endif
    started = flags == 8 && getenv("NVSHMEM_DISABLE_NVLS") != NULL;
    return started ? 0 : 7;
}

void nvshmemx_hostlib_finalize(void)
{
    started = 0;
}

void *nvshmem_malloc(size_t size)
{
#ifdef NO_HEAP
    return NULL;
#endif
    return started ? malloc(size) : NULL;
}

void nvshmem_free(void *at)
{
    free(at);
}

void *nvshmem_ptr(void *at, int pe)
{
#ifdef NO_POINTER
    return NULL;
#endif
    return pe == 0 ? at : NULL;
}

void nvshmem_putmem(void *dst, const void *src, size_t bytes, int pe)
{
#ifdef PUT_SEGV
    __builtin_trap();
#endif
    if (pe == 0)
        memcpy(dst, src, bytes);
#ifdef PUT_LOSES
    ((unsigned char *)dst)[bytes - 1] ^= 1;
#endif
}

void nvshmem_quiet(void)
{
}

int cuInit(unsigned flags)
{
    (void)flags;
#ifdef NO_GPU
    return 100;
#endif
    return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &started;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    return context == &started ? 0 : 201;
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
