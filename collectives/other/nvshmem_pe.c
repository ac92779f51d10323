#include "collectives/other/nvshmem_private.h"
#include "core/run/dynlib.h"
#include "core/text/uses.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first version of these structures, as device_host/nvshmem_types.h and
 * bootstrap_device_host/nvshmem_uniqueid.h of NVSHMEM 3.8 still have it: version is 1 << 16 plus
 * the size. The second version names a part of `content` and keeps the sizes. */
#define VERSIONED(type)    ((1 << 16) + (int)sizeof(type))
#define INIT_WITH_UNIQUEID (1U << 3)

struct nvshmem_id {
    int version;
    char internal[124];
};

struct nvshmem_id_args {
    int version;
    struct nvshmem_id *id;
    int rank;
    int ranks;
};

struct nvshmem_args {
    int version;
    struct nvshmem_id_args id_args;
    char content[96];
};

struct nvshmem_attr {
    int version;
    void *mpi_comm;
    struct nvshmem_args args;
};

_Static_assert(sizeof(struct nvshmem_id) == 128, "unique id");
_Static_assert(sizeof(struct nvshmem_id_args) == 24, "arguments of the unique id");
_Static_assert(sizeof(struct nvshmem_args) == 128, "arguments");
_Static_assert(sizeof(struct nvshmem_attr) == 144, "attributes");

struct nvshmem_api {
    void (*version)(int *major, int *minor, int *patch);
    int (*unique_id)(struct nvshmem_id *id);
    int (*set_id)(int rank, int ranks, const struct nvshmem_id *id, struct nvshmem_attr *attr);
    int (*init)(unsigned flags, struct nvshmem_attr *attr);
    void (*finalize)(void);
    int (*my_pe)(void);
    int (*pes)(void);
    void *(*alloc)(size_t size);
    void (*release)(void *at);
    void *(*pointer)(const void *at, int pe);
    void (*put)(void *dst, const void *src, size_t bytes, int pe);
    void (*quiet)(void);
};

struct driver_api {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*current)(void *context);
    int (*to_device)(uint64_t dst, const void *src, size_t bytes);
    int (*to_host)(void *dst, uint64_t src, size_t bytes);
};

#define AT(member_) offsetof(struct nvshmem_api, member_)
static const struct shk_symbol symbols[] = {
    {.name = "nvshmemx_vendor_get_version_info", .offset = AT(version)},
    {.name = "nvshmemx_get_uniqueid", .offset = AT(unique_id)},
    {.name = "nvshmemx_set_attr_uniqueid_args", .offset = AT(set_id)},
    {.name = "nvshmemx_hostlib_init_attr", .offset = AT(init)},
    {.name = "nvshmemx_hostlib_finalize", .offset = AT(finalize)},
    {.name = "nvshmem_my_pe", .offset = AT(my_pe)},
    {.name = "nvshmem_n_pes", .offset = AT(pes)},
    {.name = "nvshmem_malloc", .offset = AT(alloc)},
    {.name = "nvshmem_free", .offset = AT(release)},
    {.name = "nvshmem_ptr", .offset = AT(pointer)},
    {.name = "nvshmem_putmem", .offset = AT(put)},
    {.name = "nvshmem_quiet", .offset = AT(quiet)},
    {.name = NULL},
};
#undef AT

#define AT(member_) offsetof(struct driver_api, member_)
static const struct shk_symbol driver_symbols[] = {
    {.name = "cuInit", .offset = AT(init)},
    {.name = "cuDeviceGetCount", .offset = AT(count)},
    {.name = "cuDeviceGet", .offset = AT(device)},
    {.name = "cuDevicePrimaryCtxRetain", .offset = AT(retain)},
    {.name = "cuCtxSetCurrent", .offset = AT(current)},
    {.name = "cuMemcpyHtoD_v2", .offset = AT(to_device)},
    {.name = "cuMemcpyDtoH_v2", .offset = AT(to_host)},
    {.name = NULL},
};
#undef AT

static const struct {
    size_t bytes;
    unsigned times;
} put_plan[NVSHMEM_ROWS] = {{8, 200}, {(size_t)4 << 10, 200}, {(size_t)1 << 20, 20}};
enum { PUT_MAX = 1 << 20 };

#define PE_KEY_ID    "nvshmem.id"
#define PE_KEY_APART "nvshmem.apart"
#define PE_MARK(pe_) (UINT32_C(0x5e000000) + (pe_))

struct pe {
    const struct shk_nvshmem_tweaks *tweaks;
    struct shk_job *job;
    unsigned pe, pes;
    struct nvshmem_api api;
    struct driver_api driver;
    struct shk_dynlib library;
    unsigned char *from, *to; /* symmetric memory, of the device */
    unsigned char *host;      /* PUT_MAX bytes */
};

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int pe_cuda(int code, const char *call, struct shk_error *err)
{
    return code == 0 ? 0 : shk_error_set(err, EIO, "%s: error %d", call, code);
}

static int pe_libraries(struct pe *pe, struct shk_error *err)
{
    static const char *const names[] = {"libnvshmem_host.so.3", NULL};
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    const struct shk_library nvshmem = {.names = pe->tweaks->names ? pe->tweaks->names : names,
                                        .symbols = symbols};
    const struct shk_library driver = {.names = pe->tweaks->driver_names ? pe->tweaks->driver_names
                                                                         : drivers,
                                       .symbols = driver_symbols};
    struct shk_dynlib driver_lib = {0};
    int rc = shk_dynlib_open(&pe->library, &nvshmem, &pe->api, err);

    if (rc == 0)
        rc = shk_dynlib_open(&driver_lib, &driver, &pe->driver, err);
    if (rc == 0) {
        shk_crumb_call("cuInit");
        rc = pe_cuda(pe->driver.init(0), "cuInit", err);
    }
    return rc;
}

int nvshmem_look(void *arg, json_t **result_p, struct shk_error *err)
{
    struct pe pe = {.tweaks = arg};
    char version[48];
    int v[3] = {0};
    int gpus = 0;
    int rc = pe_libraries(&pe, err);

    if (rc == 0)
        rc = pe_cuda(pe.driver.count(&gpus), "cuDeviceGetCount", err);
    if (rc == 0 && gpus < 1)
        rc = shk_error_set(err, ENODEV, "the driver finds no GPU on this node");
    if (rc == 0) {
        shk_crumb_call("nvshmemx_vendor_get_version_info");
        pe.api.version(&v[0], &v[1], &v[2]);
        snprintf(version, sizeof version, "%d.%d.%d", v[0], v[1], v[2]);
        *result_p = json_pack("{s:o, s:s, s:i}", "library",
                              shk_json_text(pe.library.path, strlen(pe.library.path)), "version",
                              version, "gpus", gpus);
        rc = *result_p ? 0 : shk_error_set(err, ENOMEM, "out of memory");
    }
    return rc;
}

static int pe_context(struct pe *pe, struct shk_error *err)
{
    void *context = NULL;
    int device = 0;
    int rc = 0;

    shk_crumb_call("cuDevicePrimaryCtxRetain");
    rc = pe_cuda(pe->driver.device(&device, (int)pe->pe), "cuDeviceGet", err);
    if (rc == 0)
        rc = pe_cuda(pe->driver.retain(&context, device), "cuDevicePrimaryCtxRetain", err);
    return rc == 0 ? pe_cuda(pe->driver.current(context), "cuCtxSetCurrent", err) : rc;
}

/* PE 0 makes the id that all start with. */
static int pe_id(struct pe *pe, struct nvshmem_id *id, struct shk_error *err)
{
    size_t len = 0;
    int rc = 0;

    if (pe->pe == 0) {
        shk_crumb_call("nvshmemx_get_uniqueid");
        rc = pe->api.unique_id(id);
        rc = rc == 0 ? shk_job_put(pe->job, PE_KEY_ID, id, sizeof *id, err)
                     : shk_error_set(err, EIO, "nvshmemx_get_uniqueid: error %d", rc);
    }
    if (rc == 0)
        rc = shk_job_fence(pe->job, 0, err);
    return rc == 0 ? shk_job_get(pe->job, 0, PE_KEY_ID, id, sizeof *id, &len, err) : rc;
}

static int pe_start(struct pe *pe, struct shk_error *err)
{
    struct nvshmem_id id = {.version = VERSIONED(struct nvshmem_id)};
    struct nvshmem_attr attr = {.version = VERSIONED(struct nvshmem_attr)};
    int code = 0;
    int rc = 0;

    attr.args.version = VERSIONED(struct nvshmem_args);
    attr.args.id_args.version = VERSIONED(struct nvshmem_id_args);
    setenv(shk_variable("nvshmem-multicast-off"), "1", 1);
    setenv(shk_variable("nvshmem-transport"), "none", 1);
    setenv(shk_variable("nvshmem-heap"), "64M", 1);
    rc = pe_id(pe, &id, err);
    if (rc < 0)
        return rc;
    shk_crumb_library(pe->library.path);
    shk_crumb_call("nvshmemx_set_attr_uniqueid_args");
    code = pe->api.set_id((int)pe->pe, (int)pe->pes, &id, &attr);
    if (code == 0) {
        shk_crumb_call("nvshmemx_hostlib_init_attr");
        code = pe->api.init(INIT_WITH_UNIQUEID, &attr);
    }
    if (code != 0)
        return shk_error_set(err, EIO, "NVSHMEM does not start: error %d", code);
    if (pe->api.my_pe() != (int)pe->pe || pe->api.pes() != (int)pe->pes) {
        return shk_error_set(err, EIO, "started as PE %u of %u, but NVSHMEM says PE %d of %d",
                             pe->pe, pe->pes, pe->api.my_pe(), pe->api.pes());
    }
    return 0;
}

/* Symmetric: what is so far apart on one PE is so on all. */
static int pe_symmetric(struct pe *pe, struct shk_error *err)
{
    int64_t mine = pe->to - pe->from;
    int64_t theirs = 0;
    size_t len = 0;
    int rc = shk_job_put(pe->job, PE_KEY_APART, &mine, sizeof mine, err);

    if (rc == 0)
        rc = shk_job_fence(pe->job, 0, err);
    for (unsigned peer = 0; peer < pe->pes && rc == 0; peer++) {
        rc = shk_job_get(pe->job, peer, PE_KEY_APART, &theirs, sizeof theirs, &len, err);
        if (rc == 0 && theirs != mine) {
            rc = shk_error_set(err, EIO,
                               "the heap is not symmetric: two allocations are %lld bytes apart "
                               "here, %lld on PE %u",
                               (long long)mine, (long long)theirs, peer);
        }
    }
    return rc;
}

static int pe_memory(struct pe *pe, struct shk_error *err)
{
    shk_crumb_call("nvshmem_malloc");
    pe->from = pe->api.alloc(PUT_MAX);
    pe->to = pe->api.alloc(PUT_MAX);
    if (!pe->from || !pe->to || pe->from == pe->to)
        return shk_error_set(err, ENOMEM, "nvshmem_malloc gave no symmetric memory");
    shk_crumb_call("nvshmem_ptr");
    if (pe->api.pointer(pe->to, (int)pe->pe) != pe->to)
        return shk_error_set(err, EIO, "nvshmem_ptr of the PE itself is not its own address");
    return pe_symmetric(pe, err);
}

/* The pointer to each PE leads to the memory of that one. */
static int pe_pointers(struct pe *pe, struct shk_error *err)
{
    uint32_t mark = PE_MARK(pe->pe);
    int rc =
        pe_cuda(pe->driver.to_device((uintptr_t)pe->to, &mark, sizeof mark), "cuMemcpyHtoD", err);

    if (rc == 0)
        rc = shk_job_fence(pe->job, 0, err);
    for (unsigned peer = 0; peer < pe->pes && rc == 0; peer++) {
        const void *at = NULL;

        shk_crumb_call("nvshmem_ptr of PE %u", peer);
        at = pe->api.pointer(pe->to, (int)peer);
        if (!at) {
            return shk_error_set(err, EIO,
                                 "nvshmem_ptr of PE %u is NULL: its GPU cannot be reached by load "
                                 "and store",
                                 peer);
        }
        mark = 0;
        rc = pe_cuda(pe->driver.to_host(&mark, (uintptr_t)at, sizeof mark),
                     "read through nvshmem_ptr", err);
        if (rc == 0 && mark != PE_MARK(peer))
            rc = shk_error_set(err, EILSEQ, "nvshmem_ptr of PE %u leads elsewhere", peer);
    }
    return rc == 0 ? shk_job_fence(pe->job, 0, err) : rc;
}

static unsigned char put_byte(unsigned pe, size_t bytes, size_t i)
{
    return (unsigned char)(i * 31 + bytes / 8 + 1 + pe * 17);
}

/* Own data into `from`, something else into `to`. */
static int put_prepare(struct pe *pe, size_t bytes, struct shk_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < bytes; i++)
        pe->host[i] = (unsigned char)~put_byte((pe->pe + pe->pes - 1) % pe->pes, bytes, i);
    rc = pe_cuda(pe->driver.to_device((uintptr_t)pe->to, pe->host, bytes), "cuMemcpyHtoD", err);
    for (size_t i = 0; i < bytes; i++)
        pe->host[i] = put_byte(pe->pe, bytes, i);
    if (rc == 0) {
        rc = pe_cuda(pe->driver.to_device((uintptr_t)pe->from, pe->host, bytes), "cuMemcpyHtoD",
                     err);
    }
    return rc == 0 ? shk_job_fence(pe->job, 0, err) : rc;
}

static int pe_put(struct pe *pe, struct nvshmem_row *row, size_t bytes, unsigned times,
                  struct shk_error *err)
{
    int next = (int)((pe->pe + 1) % pe->pes);
    double us = 0;
    int rc = put_prepare(pe, bytes, err);

    shk_crumb_call("nvshmem_putmem of %zu B", bytes);
    us = now_us();
    for (size_t i = 0; i < times && rc == 0; i++) {
        pe->api.put(pe->to, pe->from, bytes, next);
        pe->api.quiet();
    }
    us = (now_us() - us) / times;
    if (rc == 0)
        rc = shk_job_fence(pe->job, 0, err);
    if (rc == 0)
        rc = pe_cuda(pe->driver.to_host(pe->host, (uintptr_t)pe->to, bytes), "cuMemcpyDtoH", err);
    for (size_t i = 0; i < bytes && rc == 0; i++)
        row->wrong += pe->host[i] != put_byte((pe->pe + pe->pes - 1) % pe->pes, bytes, i);
    row->bytes = bytes;
    row->time_us = us;
    if (rc == 0)
        __atomic_store_n(&row->done, 1U, __ATOMIC_RELEASE);
    return rc;
}

static int pe_work(struct pe *pe, struct shk_error *err)
{
    struct nvshmem_result *result = shk_job_result(pe->job, pe->pe);
    int rc = pe_libraries(pe, err);

    if (rc == 0)
        rc = pe_context(pe, err);
    if (rc == 0)
        rc = pe_start(pe, err);
    if (rc == 0) {
        shk_job_set_phase(pe->job, SHK_PHASE_REGISTER, 0);
        rc = pe_memory(pe, err);
    }
    if (rc == 0) {
        shk_job_set_phase(pe->job, SHK_PHASE_EXCHANGE, 0);
        rc = pe_pointers(pe, err);
    }
    for (size_t i = 0; i < NVSHMEM_ROWS && rc == 0; i++) {
        shk_job_set_phase(pe->job, SHK_PHASE_VERIFY, put_plan[i].bytes);
        rc = pe_put(pe, &result->row[i], put_plan[i].bytes, put_plan[i].times, err);
    }
    if (rc == 0) {
        shk_job_set_phase(pe->job, SHK_PHASE_TEARDOWN, 0);
        shk_crumb_call("nvshmemx_hostlib_finalize");
        pe->api.release(pe->to);
        pe->api.release(pe->from);
        pe->api.finalize();
    }
    return rc;
}

int nvshmem_pe(struct shk_job *job, void *arg, struct shk_error *err)
{
    struct pe pe = {.tweaks = arg,
                    .job = job,
                    .pe = shk_job_rank(job),
                    .pes = shk_job_size(job),
                    .host = malloc(PUT_MAX)};
    int rc = 0;

    if (!pe.host)
        return shk_error_sys(err, ENOMEM, "nvshmem");
    shk_job_set_phase(job, SHK_PHASE_OPEN, 0);
    rc = pe_work(&pe, err);
    free(pe.host);
    return rc;
}
