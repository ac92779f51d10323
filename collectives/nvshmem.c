#include "collectives/nvshmem.h"
#include "core/dynlib.h"
#include "core/isolate.h"
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
    void *(*alloc)(size_t size);
    void (*release)(void *at);
    void *(*pointer)(const void *at, int pe);
    void (*put)(void *dst, const void *src, size_t bytes, int pe);
    void (*quiet)(void);
};

struct driver_api {
    int (*init)(unsigned flags);
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
    {.name = "cuDeviceGet", .offset = AT(device)},
    {.name = "cuDevicePrimaryCtxRetain", .offset = AT(retain)},
    {.name = "cuCtxSetCurrent", .offset = AT(current)},
    {.name = "cuMemcpyHtoD_v2", .offset = AT(to_device)},
    {.name = "cuMemcpyDtoH_v2", .offset = AT(to_host)},
    {.name = NULL},
};
#undef AT

#define PUTS 200
static const size_t put_sizes[] = {8, (size_t)4 << 10, (size_t)1 << 20};
enum { PUT_MAX = 1 << 20 };

struct pe {
    const struct shk_nvshmem_tweaks *tweaks;
    struct nvshmem_api api;
    struct driver_api driver;
    unsigned char *from, *to; /* symmetric memory, of the device */
    unsigned char *host;      /* PUT_MAX bytes */
    json_t *result;
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

static void pe_phase(struct pe *pe, const char *phase)
{
    json_object_set_new(pe->result, "phase", json_string(phase));
}

/* What does not load, or no GPU: na. */
static int pe_libraries(struct pe *pe, struct shk_error *err)
{
    static const char *const names[] = {"libnvshmem_host.so.3", NULL};
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    const struct shk_library nvshmem = {
        .names = pe->tweaks->names != NULL ? pe->tweaks->names : names, .symbols = symbols};
    const struct shk_library driver = {
        .names = pe->tweaks->driver_names != NULL ? pe->tweaks->driver_names : drivers,
        .symbols = driver_symbols};
    struct shk_dynlib lib = {0};
    struct shk_dynlib driver_lib = {0};
    char version[48];
    int v[3] = {0};
    int rc = shk_dynlib_open(&lib, &nvshmem, &pe->api, err);

    if (rc != 0) {
        return rc;
    }
    shk_crumb_call("nvshmemx_vendor_get_version_info");
    pe->api.version(&v[0], &v[1], &v[2]);
    snprintf(version, sizeof(version), "%d.%d.%d", v[0], v[1], v[2]);
    json_object_set_new(pe->result, "library", json_string(lib.path));
    json_object_set_new(pe->result, "version", json_string(version));
    rc = shk_dynlib_open(&driver_lib, &driver, &pe->driver, err);
    if (rc == 0) {
        shk_crumb_call("cuInit");
        rc = pe_cuda(pe->driver.init(0), "cuInit", err);
    }
    return rc;
}

static int pe_context(struct pe *pe, struct shk_error *err)
{
    void *context = NULL;
    int device = 0;
    int rc = 0;

    shk_crumb_call("cuDevicePrimaryCtxRetain");
    rc = pe_cuda(pe->driver.device(&device, 0), "cuDeviceGet", err);
    if (rc == 0) {
        rc = pe_cuda(pe->driver.retain(&context, device), "cuDevicePrimaryCtxRetain", err);
    }
    return rc == 0 ? pe_cuda(pe->driver.current(context), "cuCtxSetCurrent", err) : rc;
}

static int pe_start(struct pe *pe, struct shk_error *err)
{
    struct nvshmem_id id = {.version = VERSIONED(struct nvshmem_id)};
    struct nvshmem_attr attr = {.version = VERSIONED(struct nvshmem_attr)};
    int code = 0;

    attr.args.version = VERSIONED(struct nvshmem_args);
    attr.args.id_args.version = VERSIONED(struct nvshmem_id_args);
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 1);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "64M", 1);
    shk_crumb_call("nvshmemx_get_uniqueid");
    code = pe->api.unique_id(&id);
    if (code == 0) {
        shk_crumb_call("nvshmemx_set_attr_uniqueid_args");
        code = pe->api.set_id(0, 1, &id, &attr);
    }
    if (code == 0) {
        shk_crumb_call("nvshmemx_hostlib_init_attr");
        code = pe->api.init(INIT_WITH_UNIQUEID, &attr);
    }
    return code == 0 ? 0 : shk_error_set(err, EIO, "NVSHMEM does not start: error %d", code);
}

static int pe_memory(struct pe *pe, struct shk_error *err)
{
    shk_crumb_call("nvshmem_malloc");
    pe->from = pe->api.alloc(PUT_MAX);
    pe->to = pe->api.alloc(PUT_MAX);
    if (pe->from == NULL || pe->to == NULL || pe->from == pe->to) {
        return shk_error_set(err, ENOMEM, "nvshmem_malloc gave no symmetric memory");
    }
    shk_crumb_call("nvshmem_ptr");
    if (pe->api.pointer(pe->to, 0) != pe->to) {
        return shk_error_set(err, EIO, "nvshmem_ptr of the PE itself is not its own address");
    }
    return 0;
}

static int pe_put(struct pe *pe, size_t bytes, struct shk_error *err)
{
    json_int_t wrong = 0;
    double us = 0;
    size_t i = 0;
    int rc = 0;

    memset(pe->host, 0xA5, bytes);
    rc = pe_cuda(pe->driver.to_device((uintptr_t)pe->to, pe->host, bytes), "cuMemcpyHtoD", err);
    for (i = 0; i < bytes; i++) {
        pe->host[i] = (unsigned char)(i * 31 + bytes / 8 + 1);
    }
    if (rc == 0) {
        rc = pe_cuda(pe->driver.to_device((uintptr_t)pe->from, pe->host, bytes), "cuMemcpyHtoD",
                     err);
    }
    shk_crumb_call("nvshmem_putmem of %zu B", bytes);
    us = now_us();
    for (i = 0; i < PUTS && rc == 0; i++) {
        pe->api.put(pe->to, pe->from, bytes, 0);
        pe->api.quiet();
    }
    us = (now_us() - us) / PUTS;
    if (rc == 0) {
        rc = pe_cuda(pe->driver.to_host(pe->host, (uintptr_t)pe->to, bytes), "cuMemcpyDtoH", err);
    }
    for (i = 0; i < bytes && rc == 0; i++) {
        wrong += pe->host[i] != (unsigned char)(i * 31 + bytes / 8 + 1);
    }
    if (rc == 0) {
        json_array_append_new(json_object_get(pe->result, "sizes"),
                              json_pack("{s:I, s:s, s:s, s:f, s:I}", "bytes", (json_int_t)bytes,
                                        "type", "uint8", "redop", "put", "time_us", us, "wrong",
                                        wrong));
    }
    return rc;
}

static int pe_work(struct pe *pe, struct shk_error *err)
{
    size_t i = 0;
    int rc = pe_libraries(pe, err);

    if (rc == 0) {
        pe_phase(pe, "open");
        rc = pe_context(pe, err);
    }
    if (rc == 0) {
        rc = pe_start(pe, err);
    }
    if (rc == 0) {
        pe_phase(pe, "register");
        rc = pe_memory(pe, err);
    }
    for (i = 0; i < sizeof(put_sizes) / sizeof(put_sizes[0]) && rc == 0; i++) {
        pe_phase(pe, "put");
        rc = pe_put(pe, put_sizes[i], err);
    }
    if (rc == 0) {
        pe_phase(pe, "teardown");
        shk_crumb_call("nvshmemx_hostlib_finalize");
        pe->api.release(pe->to);
        pe->api.release(pe->from);
        pe->api.finalize();
    }
    return rc;
}

static int pe_main(void *arg, json_t **result_p, struct shk_error *err)
{
    struct pe pe = {.tweaks = arg, .host = malloc(PUT_MAX)};
    int rc = 0;

    pe.result = json_pack("{s:[]}", "sizes");
    if (pe.host == NULL || pe.result == NULL) {
        free(pe.host);
        json_decref(pe.result);
        return shk_error_sys(err, ENOMEM, "nvshmem");
    }
    rc = pe_work(&pe, err);
    free(pe.host);
    *result_p = pe.result;
    return rc;
}

static void out_text(struct shk_facts *facts, const char *member, const char *text, int *rc_p)
{
    char key[64];
    int rc = 0;

    snprintf(key, sizeof(key), "collective.nvshmem.%s", member);
    rc = text != NULL && *text != '\0' ? shk_facts_text(facts, key, text, "nvshmem") : 0;
    *rc_p = *rc_p != 0 ? *rc_p : rc;
}

static json_int_t sizes_wrong(const json_t *sizes)
{
    json_int_t wrong = 0;
    json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(sizes, i, row)
    {
        wrong += json_integer_value(json_object_get(row, "wrong"));
    }
    return wrong;
}

static const char *out_status(const struct shk_isolate_result *r, json_int_t wrong)
{
    switch (r->outcome) {
    case SHK_CHILD_OK: return wrong != 0 ? "wrong" : "ok";
    case SHK_CHILD_FAILED:
        /* Before "open" nothing of NVSHMEM was asked for yet. */
        return json_object_get(r->result, "phase") == NULL ? "na" : "failed";
    case SHK_CHILD_TIMEOUT: return "timeout";
    case SHK_CHILD_SIGNALED: return "crashed";
    default: return "failed";
    }
}

static int out_facts(struct shk_facts *facts, const struct shk_isolate_result *r)
{
    json_t *sizes = json_object_get(r->result, "sizes");
    json_int_t wrong = sizes_wrong(sizes);
    const char *status = out_status(r, wrong);
    size_t len = r->output != NULL ? strlen(r->output) : 0;
    bool ok = strcmp(status, "ok") == 0;
    char text[160] = "";
    int rc = 0;

    if (strcmp(status, "wrong") == 0) {
        snprintf(text, sizeof(text),
                 "%" JSON_INTEGER_FORMAT " bytes of nvshmem_putmem did not arrive", wrong);
    }
    out_text(facts, "status", status, &rc);
    out_text(facts, "reason", text[0] != '\0' ? text : r->error.text, &rc);
    out_text(facts, "phase", ok ? NULL : json_string_value(json_object_get(r->result, "phase")),
             &rc);
    out_text(facts, "library", json_string_value(json_object_get(r->result, "library")), &rc);
    out_text(facts, "version", json_string_value(json_object_get(r->result, "version")), &rc);
    if (ok) {
        snprintf(text, sizeof(text),
                 "one PE: symmetric memory, own pointer, puts of 8 B in %.1f us",
                 json_number_value(json_object_get(json_array_get(sizes, 0), "time_us")));
        out_text(facts, "self", text, &rc);
    } else if (r->output != NULL) {
        out_text(facts, "output", r->output + (len > 2000 ? len - 2000 : 0), &rc);
    }
    if (rc == 0 && strcmp(status, "na") != 0) {
        rc = shk_facts_int(facts, "collective.nvshmem.ranks", 1, NULL, "nvshmem");
    }
    if (rc == 0 && json_array_size(sizes) > 0) {
        rc = shk_facts_present(facts, "collective.nvshmem.sizes", json_incref(sizes), NULL,
                               "nvshmem");
    }
    return rc;
}

int shk_nvshmem_run(const struct shk_collective_options *options,
                    const struct shk_nvshmem_tweaks *tweaks, struct shk_facts *facts,
                    struct shk_error *err)
{
    struct shk_nvshmem_tweaks what = {0};
    struct shk_isolate_job job = {.name = "nvshmem",
                                  .fn = pe_main,
                                  .arg = &what,
                                  .deadline_ms = options->deadline_ms,
                                  .memory_limit = (size_t)16 << 30};
    struct shk_isolate_result result = {0};
    int rc = 0;

    if (tweaks != NULL) {
        what = *tweaks;
    }
    rc = shk_isolate_run(&job, &result, 1, 1, err);
    if (rc == 0) {
        rc = out_facts(facts, &result);
        rc = rc == 0 ? 0 : shk_error_sys(err, -rc, "facts of nvshmem");
    }
    shk_isolate_result_clear(&result);
    return rc;
}

static int run_nvshmem(const struct shk_collective_options *options, struct shk_facts *facts,
                       struct shk_error *err)
{
    return shk_nvshmem_run(options, NULL, facts, err);
}

const struct shk_transport shk_transport_nvshmem = {
    .name = "nvshmem",
    .doc = "NVSHMEM on one GPU: start, symmetric memory, put latency (not an all-reduce)",
    .run = run_nvshmem,
};
