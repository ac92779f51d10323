/* Memory by handles and multicast objects of the stand-in libcuda. A handle is a descriptor that
 * other processes can be sent; an object is shared memory that tells whose memory is bound, and
 * what goes through its address is done to the memory of all that are.
 *
 *   SHK_FAKE_FAULT    mc-create, mc-bind (refused), mc-hang (bind never returns), mc-sum (a rank is
 *                     not added), mc-store (a rank is not written), mc-abort (any call here) */
#include "tests/fakes/gpu_driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIT ((size_t)2 << 20)

enum { NOT_READY = 802, REFUSED = 801, KINDS = 64 };

struct team {
    uint32_t devices, added, bound;
    size_t bytes;
    struct {
        int pid, fd;
        size_t bytes;
    } memory[SHK_GPU_MAX_RANKS];
};

static struct object {
    int fd; /* 0: free */
    size_t bytes;
    struct team *team; /* NULL: memory */
} objects[KINDS];

/* Where an object is mapped, and the memory of all ranks behind it. */
static struct range {
    gpu_ptr at;
    size_t bytes;
    struct object *object;
    int open; /* access was given */
    unsigned char *member[SHK_GPU_MAX_RANKS];
} ranges[KINDS];

static void enter(void)
{
    if (shk_fake_faulty("mc-abort")) {
        abort();
    }
}

static struct object *object_of(uint64_t handle)
{
    return handle > 0 && handle <= KINDS && objects[handle - 1].fd > 0 ? &objects[handle - 1]
                                                                       : NULL;
}

static uint64_t object_new(int fd, size_t bytes, struct team *team)
{
    unsigned i = 0;

    for (i = 0; i < KINDS && fd > 0; i++) {
        if (objects[i].fd == 0) {
            objects[i] = (struct object){fd, bytes, team};
            return i + 1;
        }
    }
    return 0;
}

static struct range *range_of(gpu_ptr at)
{
    unsigned i = 0;

    for (i = 0; i < KINDS; i++) {
        if (ranges[i].bytes != 0 && at >= ranges[i].at && at < ranges[i].at + ranges[i].bytes) {
            return &ranges[i];
        }
    }
    return NULL;
}

static int shared(const char *name, size_t bytes)
{
    int fd = memfd_create(name, 0);

    return fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 ? fd : -1;
}

int cuMemGetAllocationGranularity(size_t *bytes, const void *prop, int option)
{
    (void)prop, (void)option;
    enter();
    *bytes = UNIT;
    return SUCCESS;
}

int cuMemCreate(uint64_t *handle, size_t bytes, const int *prop, unsigned long long flags)
{
    enter();
    if (bytes == 0 || bytes % UNIT != 0 || prop[0] != 1 || prop[1] != 1 || flags != 0) {
        return INVALID;
    }
    *handle = shk_fake_faulty("memory") ? 0 : object_new(shared("fake-memory", bytes), bytes, NULL);
    return *handle != 0 ? SUCCESS : NO_MEMORY;
}

int cuMemRelease(uint64_t handle)
{
    struct object *object = object_of(handle);

    enter();
    if (object == NULL) {
        return INVALID;
    }
    close(object->fd);
    memset(object, 0, sizeof(*object));
    return SUCCESS;
}

int cuMemAddressReserve(gpu_ptr *at, size_t bytes, size_t alignment, gpu_ptr wish,
                        unsigned long long flags)
{
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned i = 0;

    (void)alignment, (void)wish, (void)flags;
    enter();
    for (i = 0; map != MAP_FAILED && i < KINDS; i++) {
        if (ranges[i].bytes == 0) {
            ranges[i] = (struct range){.at = (gpu_ptr)(uintptr_t)map, .bytes = bytes};
            *at = ranges[i].at;
            return SUCCESS;
        }
    }
    return NO_MEMORY;
}

int cuMemAddressFree(gpu_ptr at, size_t bytes)
{
    struct range *range = range_of(at);

    enter();
    if (range == NULL || range->object != NULL || range->bytes != bytes) {
        return INVALID;
    }
    munmap((void *)(uintptr_t)at, bytes);
    memset(range, 0, sizeof(*range));
    return SUCCESS;
}

int cuMemMap(gpu_ptr at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
    struct object *object = object_of(handle);
    struct range *range = range_of(at);

    (void)flags;
    enter();
    if (object == NULL || range == NULL || range->object != NULL || offset != 0 ||
        bytes > object->bytes || bytes != range->bytes) {
        return INVALID;
    }
    if (object->team == NULL && mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
                                     MAP_SHARED | MAP_FIXED, object->fd, 0) == MAP_FAILED) {
        return INVALID;
    }
    range->object = object;
    return object->team != NULL ? SUCCESS : shk_fake_block(at, bytes);
}

int cuMemUnmap(gpu_ptr at, size_t bytes)
{
    struct range *range = range_of(at);
    unsigned i = 0;

    enter();
    if (range == NULL || range->object == NULL || range->bytes != bytes) {
        return INVALID;
    }
    for (i = 0; i < SHK_GPU_MAX_RANKS; i++) {
        if (range->member[i] != NULL) {
            munmap(range->member[i], bytes);
            range->member[i] = NULL;
        }
    }
    shk_fake_unblock(at);
    range->object = NULL;
    return SUCCESS;
}

int cuMemSetAccess(gpu_ptr at, size_t bytes, const int *access, size_t count)
{
    struct range *range = range_of(at);

    enter();
    if (range == NULL || range->object == NULL || count != 1 || access[0] != 1 || access[2] != 3) {
        return INVALID;
    }
    range->open = 1;
    return range->object->team != NULL ||
                   mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE) == 0
               ? SUCCESS
               : INVALID;
}

int cuMemExportToShareableHandle(int *fd, uint64_t handle, int type, unsigned long long flags)
{
    struct object *object = object_of(handle);

    enter();
    *fd = object != NULL && type == 1 && flags == 0 ? dup(object->fd) : -1;
    return *fd >= 0 ? SUCCESS : INVALID;
}

int cuMemImportFromShareableHandle(uint64_t *handle, void *os, int type)
{
    int fd = dup((int)(intptr_t)os);
    char path[64];
    char name[64] = "";
    struct stat st;
    void *team = NULL;

    enter();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (fd < 0 || type != 1 || fstat(fd, &st) != 0 || readlink(path, name, sizeof(name) - 1) < 0) {
        return INVALID;
    }
    if (strstr(name, "fake-team") != NULL) {
        team = mmap(NULL, sizeof(struct team), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (team == MAP_FAILED) {
            return INVALID;
        }
    }
    *handle =
        object_new(fd, team != NULL ? ((struct team *)team)->bytes : (size_t)st.st_size, team);
    return *handle != 0 ? SUCCESS : INVALID;
}

/* A driver before CUDA 12.1 has none of these. */
#ifdef OLD
#define SINCE_12_1 static __attribute__((unused))
#else
#define SINCE_12_1
#endif

struct team_prop {
    unsigned devices;
    size_t bytes;
    unsigned long long handle_types, flags;
};

SINCE_12_1 int cuMulticastGetGranularity(size_t *bytes, const struct team_prop *prop, int option)
{
    (void)prop, (void)option;
    enter();
    *bytes = 2 * UNIT;
    return SUCCESS;
}

SINCE_12_1 int cuMulticastCreate(uint64_t *handle, const struct team_prop *prop)
{
    struct team *team = NULL;
    int fd = -1;

    enter();
    if (shk_fake_faulty("mc-create")) {
        return REFUSED;
    }
    if (prop->devices < 2 || prop->bytes % (2 * UNIT) != 0 || prop->handle_types != 1) {
        return INVALID;
    }
    fd = shared("fake-team", sizeof(*team));
    team = mmap(NULL, sizeof(*team), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (team == MAP_FAILED) {
        return NO_MEMORY;
    }
    team->devices = prop->devices;
    team->bytes = prop->bytes;
    *handle = object_new(fd, team->bytes, team);
    return SUCCESS;
}

SINCE_12_1 int cuMulticastAddDevice(uint64_t handle, int device)
{
    struct object *object = object_of(handle);

    (void)device;
    enter();
    if (object == NULL || object->team == NULL) {
        return INVALID;
    }
    return __atomic_add_fetch(&object->team->added, 1, __ATOMIC_ACQ_REL) <= object->team->devices
               ? SUCCESS
               : INVALID;
}

/* The real one waits for devices that are missing; here that is a fault of the caller. */
SINCE_12_1 int cuMulticastBindMem(uint64_t handle, size_t at, uint64_t memory, size_t memory_at,
                                  size_t bytes, unsigned long long flags)
{
    struct object *object = object_of(handle);
    struct object *mine = object_of(memory);
    struct team *team = object != NULL ? object->team : NULL;
    unsigned i = 0;

    enter();
    while (shk_fake_faulty("mc-hang")) {
        sleep(1);
    }
    if (shk_fake_faulty("mc-bind")) {
        return NOT_READY;
    }
    if (team == NULL || mine == NULL || at != 0 || memory_at != 0 || flags != 0 ||
        bytes % (2 * UNIT) != 0 || bytes > mine->bytes || bytes > team->bytes ||
        __atomic_load_n(&team->added, __ATOMIC_ACQUIRE) != team->devices) {
        return INVALID;
    }
    for (i = 0; i < team->devices; i++) {
        int none = 0;

        if (__atomic_compare_exchange_n(&team->memory[i].pid, &none, (int)getpid(), 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            team->memory[i].fd = mine->fd;
            team->memory[i].bytes = bytes;
            __atomic_add_fetch(&team->bound, 1, __ATOMIC_ACQ_REL);
            return SUCCESS;
        }
    }
    return INVALID;
}

SINCE_12_1 int cuMulticastUnbind(uint64_t handle, int device, size_t at, size_t bytes)
{
    struct object *object = object_of(handle);

    (void)device, (void)at, (void)bytes;
    enter();
    return object != NULL && object->team != NULL ? SUCCESS : INVALID;
}

/* ---- what goes through the address ---- */

static unsigned char *member_map(const struct team *team, unsigned i)
{
    char path[64];
    void *map = MAP_FAILED;
    int fd = -1;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", team->memory[i].pid, team->memory[i].fd);
    fd = open(path, O_RDWR);
    if (fd >= 0) {
        map = mmap(NULL, team->memory[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    return map != MAP_FAILED ? map : NULL;
}

unsigned shk_fake_multicast(gpu_ptr at, unsigned char **member)
{
    struct range *range = range_of(at);
    struct team *team =
        range != NULL && range->object != NULL && range->open ? range->object->team : NULL;
    unsigned i = 0;

    if (team == NULL || __atomic_load_n(&team->bound, __ATOMIC_ACQUIRE) != team->devices) {
        return 0;
    }
    for (i = 0; i < team->devices; i++) {
        if (range->member[i] == NULL) {
            range->member[i] = member_map(team, i);
        }
        if (range->member[i] == NULL) {
            return 0;
        }
        member[i] = range->member[i] + (at - range->at);
    }
    return team->devices;
}
