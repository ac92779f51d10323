#include "collectives/gpu/multicast/gpu_multicast.h"
#include "core/run/isolate.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* cuda.h */
#define MEMORY_PINNED      1 /* CU_MEM_ALLOCATION_TYPE_PINNED */
#define MEMORY_FD          1 /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
#define MEMORY_DEVICE      1 /* CU_MEM_LOCATION_TYPE_DEVICE */
#define MEMORY_READ_WRITE  3 /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
#define MEMORY_RECOMMENDED 1 /* CU_MEM_ALLOC_GRANULARITY_, CU_MULTICAST_GRANULARITY_RECOMMENDED */

_Static_assert(sizeof(struct gpu_memory_prop) == 32, "CUmemAllocationProp");
_Static_assert(sizeof(struct gpu_memory_access) == 12, "CUmemAccessDesc");
_Static_assert(sizeof(struct gpu_multicast_prop) == 32, "CUmulticastObjectProp");

#define AT(member_) offsetof(struct gpu_multicast_api, member_)
static const struct shk_symbol multicast_symbols[] = {
    {.name = "cuMemGetAllocationGranularity", .offset = AT(granularity)},
    {.name = "cuMemCreate", .offset = AT(create)},
    {.name = "cuMemRelease", .offset = AT(release)},
    {.name = "cuMemAddressReserve", .offset = AT(reserve)},
    {.name = "cuMemAddressFree", .offset = AT(unreserve)},
    {.name = "cuMemMap", .offset = AT(map)},
    {.name = "cuMemUnmap", .offset = AT(unmap)},
    {.name = "cuMemSetAccess", .offset = AT(access)},
    {.name = "cuMemExportToShareableHandle", .offset = AT(to_fd)},
    {.name = "cuMemImportFromShareableHandle", .offset = AT(from_fd)},
    {.name = "cuMulticastGetGranularity", .offset = AT(team_granularity), .since = "CUDA 12.1"},
    {.name = "cuMulticastCreate", .offset = AT(team_create), .since = "CUDA 12.1"},
    {.name = "cuMulticastAddDevice", .offset = AT(team_add), .since = "CUDA 12.1"},
    {.name = "cuMulticastBindMem", .offset = AT(team_bind), .since = "CUDA 12.1"},
    {.name = "cuMulticastUnbind", .offset = AT(team_unbind), .since = "CUDA 12.1"},
    {.name = NULL},
};
#undef AT

int gpu_multicast_open(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    struct shk_library library = {
        .names = g->run->tweaks->driver_names ? g->run->tweaks->driver_names : names,
        .symbols = multicast_symbols,
    };
    int rc = shk_dynlib_open(&m->dynlib, &library, &m->api, err);

    return rc < 0 ? gpu_fail(g, rc == -ENOSYS ? GPU_CAUSE_NA : GPU_CAUSE_DRIVER, rc)
                  : gpu_post_open(g, &m->socket, err);
}

/* Calls about the object have a cause of their own: switches and fabric manager. */
static int team_ok(struct gpu_rank *g, int status, struct shk_error *err, const char *call)
{
    if (status == GPU_SUCCESS)
        return 0;
    return gpu_fail(g, GPU_CAUSE_NO_MULTICAST,
                    gpu_check(&g->gpu, status, err, "%s for %u GPUs", call, g->ranks));
}

static struct gpu_memory_prop memory_prop(const struct gpu_rank *g)
{
    return (struct gpu_memory_prop){
        .type = MEMORY_PINNED,
        .handle_types = MEMORY_FD,
        .location = {MEMORY_DEVICE, g->device},
    };
}

static struct gpu_multicast_prop team_prop(const struct gpu_rank *g, const struct gpu_multicast *m)
{
    return (struct gpu_multicast_prop){
        .devices = g->ranks, .bytes = m->bytes, .handle_types = MEMORY_FD};
}

/* Every rank the same, or the ranks' objects would not fit. */
static int multicast_size(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    struct gpu_memory_prop memory = memory_prop(g);
    struct gpu_multicast_prop team = team_prop(g, m);
    size_t unit = 0;
    uint64_t most = 0;
    int rc = gpu_ok(g, m->api.granularity(&unit, &memory, MEMORY_RECOMMENDED), err,
                    "cuMemGetAllocationGranularity");

    team.bytes = g->heap.bytes;
    shk_crumb_call("cuMulticastGetGranularity");
    if (rc == 0) {
        rc = team_ok(g, m->api.team_granularity(&m->granularity, &team, MEMORY_RECOMMENDED), err,
                     "cuMulticastGetGranularity");
    }
    if (rc < 0)
        return rc;
    unit = unit > m->granularity ? unit : m->granularity;
    rc = shk_job_barrier(g->job, unit, &most, NULL, NULL);
    if (rc < 0 || most == 0)
        return shk_error_sys(err, rc < 0 ? -rc : EINVAL, "granularity of GPU memory");
    m->bytes = (g->heap.bytes + most - 1) / most * most;
    return 0;
}

static int multicast_map(struct gpu_rank *g, struct gpu_multicast *m, uint64_t handle,
                         gpu_ptr *at_p, struct shk_error *err, const char *what)
{
    struct gpu_memory_access access = {{MEMORY_DEVICE, g->device}, MEMORY_READ_WRITE};
    gpu_ptr at = 0;
    int rc = gpu_ok(g, m->api.reserve(&at, m->bytes, m->granularity, 0, 0), err,
                    "address space for %s", what);

    if (rc == 0)
        rc = gpu_ok(g, m->api.map(at, m->bytes, 0, handle, 0), err, "cuMemMap of %s", what);
    if (rc == 0) {
        *at_p = at;
        rc = gpu_ok(g, m->api.access(at, m->bytes, &access, 1), err, "cuMemSetAccess of %s", what);
    }
    return rc;
}

/* `peer` has sent a descriptor: of its memory, or of the object. */
static int multicast_import(struct gpu_rank *g, struct gpu_multicast *m, unsigned peer,
                            uint64_t *handle_p, struct shk_error *err)
{
    int fd = -1;
    int status = GPU_SUCCESS;
    int rc = gpu_post_take(g, m->socket, peer, &fd, err);

    if (rc < 0)
        return rc;
    shk_crumb_call("cuMemImportFromShareableHandle of rank %u", peer);
    status = m->api.from_fd(handle_p, (void *)(intptr_t)fd, MEMORY_FD);
    close(fd);
    if (status == GPU_SUCCESS)
        return 0;
    rc = gpu_check(&g->gpu, status, err, "handle of rank %u cannot be imported on GPU %d (%s)",
                   peer, g->ordinal, g->pci);
    return gpu_fail(g, GPU_CAUSE_NO_PEER, rc);
}

/* In turn k each rank sends to the one k further: a socket's queue holds few messages. */
static int multicast_share(struct gpu_rank *g, struct gpu_multicast *m, int fd,
                           struct shk_error *err)
{
    int rc = 0;

    for (unsigned turn = 1; turn < g->ranks && rc == 0; turn++) {
        unsigned from = (g->rank + g->ranks - turn) % g->ranks;

        rc = gpu_post_send(g, m->socket, (g->rank + turn) % g->ranks, fd, err);
        if (rc == 0)
            rc = shk_job_fence(g->job, 0, err);
        if (rc == 0)
            rc = multicast_import(g, m, from, &m->memory[from], err);
        if (rc == 0)
            rc = multicast_map(g, m, m->memory[from], &g->base[from], err, "a peer's memory");
    }
    return rc;
}

static int multicast_exchange(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    int fd = -1;
    int rc = gpu_ok(g, m->api.to_fd(&fd, m->memory[g->rank], MEMORY_FD, 0), err,
                    "cuMemExportToShareableHandle");

    shk_job_set_phase(g->job, SHK_PHASE_EXCHANGE, 0);
    if (rc == 0)
        rc = multicast_share(g, m, fd, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

int gpu_multicast_memory(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    struct gpu_memory_prop prop = memory_prop(g);
    int rc = multicast_size(g, m, err);

    shk_crumb_call("cuMemCreate");
    if (rc == 0) {
        rc = gpu_ok(g, m->api.create(&m->memory[g->rank], m->bytes, &prop, 0), err,
                    "%zu bytes on GPU %d", m->bytes, g->ordinal);
    }
    if (rc == 0)
        rc = multicast_map(g, m, m->memory[g->rank], &g->base[g->rank], err, "own memory");
    if (rc == 0)
        rc = gpu_heap_prepare(g, err);
    return rc == 0 ? multicast_exchange(g, m, err) : rc;
}

/* Rank 0 makes the object, the others get it. */
static int team_join(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    struct gpu_multicast_prop prop = team_prop(g, m);
    int fd = -1;
    int rc = 0;

    if (g->rank == 0) {
        shk_crumb_call("cuMulticastCreate");
        rc = team_ok(g, m->api.team_create(&m->team, &prop), err, "cuMulticastCreate");
        if (rc == 0) {
            rc = team_ok(g, m->api.to_fd(&fd, m->team, MEMORY_FD, 0), err,
                         "cuMemExportToShareableHandle of the multicast object");
        }
    }
    for (unsigned peer = 1; peer < g->ranks && g->rank == 0 && rc == 0; peer++)
        rc = gpu_post_send(g, m->socket, peer, fd, err);
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    if (rc == 0 && g->rank != 0)
        rc = multicast_import(g, m, 0, &m->team, err);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int team_bind(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    int rc = 0;

    shk_crumb_call("cuMulticastAddDevice");
    rc = team_ok(g, m->api.team_add(m->team, g->device), err, "cuMulticastAddDevice");
    /* cuMulticastBindMem would wait for those that are missing. */
    if (rc == 0)
        rc = shk_job_fence(g->job, 0, err);
    shk_crumb_call("cuMulticastBindMem");
    if (rc == 0) {
        rc = team_ok(g, m->api.team_bind(m->team, 0, m->memory[g->rank], 0, m->bytes, 0), err,
                     "cuMulticastBindMem");
        m->bound = rc == 0;
    }
    if (rc == 0)
        rc = multicast_map(g, m, m->team, &m->at, err, "the multicast object");
    /* Nobody goes through it before all memory is bound. */
    return rc == 0 ? shk_job_fence(g->job, 0, err) : rc;
}

int gpu_multicast_team(struct gpu_rank *g, struct gpu_multicast *m, struct shk_error *err)
{
    int rc = team_join(g, m, err);

    if (rc == 0)
        rc = team_bind(g, m, err);
    close(m->socket);
    m->socket = -1;
    return rc;
}

static void multicast_drop(struct gpu_multicast *m, gpu_ptr at)
{
    if (at != 0) {
        (void)m->api.unmap(at, m->bytes);
        (void)m->api.unreserve(at, m->bytes);
    }
}

void gpu_multicast_close(struct gpu_rank *g, struct gpu_multicast *m)
{
    multicast_drop(m, m->at);
    if (m->bound) {
        shk_crumb_call("cuMulticastUnbind");
        (void)m->api.team_unbind(m->team, g->device, 0, m->bytes);
    }
    if (m->team != 0)
        (void)m->api.release(m->team);
    for (unsigned rank = 0; rank < g->ranks; rank++) {
        multicast_drop(m, g->base[rank]);
        if (m->memory[rank] != 0)
            (void)m->api.release(m->memory[rank]);
    }
}
