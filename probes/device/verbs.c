/* libibverbs: which of the kernel's RDMA devices it has a driver for, whether fork() is safe, and
 * what EFA devices can do. In containers the kernel's device is there and the driver that belongs
 * to it in user space often is not. */
#include "probes/base/registry.h"

#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Opaque to us; the library's own header is not needed for them. */
struct ibv_device;
struct ibv_context;

struct verbs_ops {
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_port)(struct ibv_context *context, uint8_t port, void *attr);
    int (*is_fork_initialized)(void);
};

static const struct shk_symbol verbs_symbols[] = {
    {.name = "ibv_get_device_list", .offset = offsetof(struct verbs_ops, get_device_list)},
    {.name = "ibv_free_device_list", .offset = offsetof(struct verbs_ops, free_device_list)},
    {.name = "ibv_get_device_name", .offset = offsetof(struct verbs_ops, get_device_name)},
    {.name = "ibv_open_device", .offset = offsetof(struct verbs_ops, open_device)},
    {.name = "ibv_close_device", .offset = offsetof(struct verbs_ops, close_device)},
    {.name = "ibv_query_port", .offset = offsetof(struct verbs_ops, query_port), .optional = true},
    {.name = "ibv_is_fork_initialized",
     .offset = offsetof(struct verbs_ops, is_fork_initialized),
     .optional = true},
    {.name = NULL},
};
static const char *const verbs_names[] = {"libibverbs.so.1", NULL};
static const struct shk_library verbs_library = {.names = verbs_names, .symbols = verbs_symbols};

/* The first members of struct ibv_port_attr, and room for what follows in any release. MTUs are
 * powers: 1 is 256 B, 5 is 4096 B. */
struct verbs_port {
    int state, max_mtu, active_mtu;
    char others[244];
};

/* Layout and bits of rdma-core's providers/efa/efadv.h; the caller's size is part of the call, so
 * older and newer libraries agree on it. */
struct efa_attr {
    uint64_t comp_mask;
    uint32_t max_sq_wr, max_rq_wr;
    uint16_t max_sq_sge, max_rq_sge, inline_buf_size;
    uint8_t reserved[2];
    uint32_t device_caps, max_rdma_size;
};
enum { EFA_RDMA_READ = 1 << 0, EFA_RDMA_WRITE = 1 << 3 };

struct efa_ops {
    int (*query_device)(struct ibv_context *context, struct efa_attr *attr, uint32_t size);
};

static const struct shk_symbol efa_symbols[] = {
    {.name = "efadv_query_device", .offset = offsetof(struct efa_ops, query_device)},
    {.name = NULL},
};
static const char *const efa_names[] = {"libefa.so.1", NULL};
static const struct shk_library efa_library = {.names = efa_names, .symbols = efa_symbols};

struct verbs {
    struct shk_probe_context *ctx;
    struct verbs_ops ops;
    struct efa_ops efa;
    struct shk_dynlib lib, efa_lib;
    struct shk_error efa_error; /* why libefa is not at hand */
    bool efa_tried;
};

/* What the kernel says of a device, NULL when nothing. */
static json_t *verbs_known(const struct verbs *v, const char *name)
{
    size_t i;
    json_t *row;
    json_t *devices = shk_facts_get_array(v->ctx->known, "rdma.devices");
    json_array_foreach(devices, i, row)
    {
        const char *have = json_string_value(json_object_get(row, "name"));
        if (have && strcmp(have, name) == 0)
            return row;
    }
    return NULL;
}

/* The kernel's driver of a device, "" when not known. */
static const char *verbs_driver(const struct verbs *v, const char *name)
{
    const char *driver = json_string_value(json_object_get(verbs_known(v, name), "driver"));
    return driver ? driver : "";
}

/* libibverbs looks for a node that it cannot open in other places, and its errno is of the last
 * of them; that of the node itself counts. */
static int verbs_refusal(const struct verbs *v, const char *name, int told)
{
    const char *node = json_string_value(json_object_get(verbs_known(v, name), "uverbs"));
    char *path = node ? shk_strf("/dev/infiniband/%s", node) : NULL;
    int rc = path ? shk_host_access_rw(v->ctx->host, path) : 0;
    free(path);
    return rc == -EACCES || rc == -EPERM || rc == -ENOENT ? -rc : told;
}

static void verbs_problem(json_t *row, const char *text)
{
    json_object_set_new(row, "problem", shk_json_text(text, strlen(text)));
}

/* NULL: it does not open; the row says why. */
static struct ibv_context *verbs_open(struct verbs *v, struct ibv_device *device, const char *name,
                                      json_t *row)
{
    shk_crumb_call("ibv_open_device");
    errno = 0;
    struct ibv_context *context = v->ops.open_device(device);
    int why = errno ? errno : ENODEV;
    if (!context)
        why = verbs_refusal(v, name, why);
    json_object_set_new(row, "opens", json_boolean(context));
    if (!context) {
        json_object_set_new(row, "error", json_string(strerror(why)));
        json_object_set_new(row, "errno", json_integer(why));
    }
    return context;
}

static json_t *verbs_bytes(int mtu)
{
    return mtu >= 1 && mtu <= 5 ? json_integer(128 << mtu) : json_null();
}

/* The ports that the kernel lists: what goes into one packet, now and at most. */
static void verbs_ports(struct verbs *v, struct ibv_context *context, const char *name, json_t *row)
{
    json_t *list = json_array(), *known = verbs_known(v, name), *one;
    size_t i;
    json_array_foreach(json_object_get(known, "ports"), i, one)
    {
        struct verbs_port attr = {.state = 0};
        json_int_t number = json_integer_value(json_object_get(one, "port"));
        json_t *port = json_pack("{s:I}", "port", number);
        shk_crumb_call("ibv_query_port(%s, %d)", name, (int)number);
        int rc = number > 0 && number < 256 ? v->ops.query_port(context, (uint8_t)number, &attr)
                                            : EINVAL;
        json_object_set_new(port, "mtu", rc ? json_null() : verbs_bytes(attr.active_mtu));
        json_object_set_new(port, "mtu_max", rc ? json_null() : verbs_bytes(attr.max_mtu));
        if (rc) {
            const char *why = strerror(rc < 0 ? -rc : rc);
            json_object_set_new(port, "problems",
                                json_pack("{s:s, s:s}", "mtu", why, "mtu_max", why));
        }
        json_array_append_new(list, port);
    }
    if (json_array_size(list))
        json_object_set(row, "ports", list);
    json_decref(list);
}

static void verbs_efa(struct verbs *v, struct ibv_context *context, json_t *row)
{
    struct efa_attr attr = {.comp_mask = 0};
    if (!v->efa_tried) {
        v->efa_tried = true;
        if (shk_dynlib_open(&v->efa_lib, &efa_library, &v->efa, &v->efa_error) == 0)
            v->efa_error.text[0] = '\0';
    }
    if (!v->efa.query_device) {
        verbs_problem(row, v->efa_error.text);
        return;
    }
    if (!context) {
        char why[160];
        snprintf(why, sizeof why, "ibv_open_device: %.120s",
                 json_string_value(json_object_get(row, "error")));
        verbs_problem(row, why);
        return;
    }
    shk_crumb_call("efadv_query_device");
    int rc = v->efa.query_device(context, &attr, sizeof attr);
    if (rc) {
        struct shk_error err;
        shk_error_sys(&err, rc < 0 ? -rc : rc, "efadv_query_device");
        verbs_problem(row, err.text);
    } else {
        json_object_set_new(row, "rdma_read", json_boolean(attr.device_caps & EFA_RDMA_READ));
        json_object_set_new(row, "rdma_write", json_boolean(attr.device_caps & EFA_RDMA_WRITE));
        json_object_set_new(row, "max_rdma_size", json_integer(attr.max_rdma_size));
    }
}

static void verbs_device(struct verbs *v, struct ibv_device *device, const char *name, json_t *row)
{
    struct ibv_context *context = verbs_open(v, device, name, row);
    if (strcmp(verbs_driver(v, name), "efa") == 0)
        verbs_efa(v, context, row);
    if (context && v->ops.query_port)
        verbs_ports(v, context, name, row);
    if (context) {
        shk_crumb_call("ibv_close_device");
        v->ops.close_device(context);
    }
}

static int verbs_devices(struct verbs *v)
{
    int count = 0;
    json_t *rows = json_array();
    shk_crumb_call("ibv_get_device_list");
    errno = 0;
    struct ibv_device **list = v->ops.get_device_list(&count);
    if (!list) {
        json_decref(rows);
        return shk_facts_failed(v->ctx->facts, "verbs.devices", v->lib.path,
                                "ibv_get_device_list: %s", strerror(errno ? errno : EIO));
    }
    for (int i = 0; i < count; i++) {
        const char *name = v->ops.get_device_name(list[i]);
        if (!name)
            continue;
        json_t *row = json_pack("{s:o}", "name", shk_json_text(name, strlen(name)));
        verbs_device(v, list[i], name, row);
        json_array_append_new(rows, row);
    }
    v->ops.free_device_list(list);
    return shk_facts_present(v->ctx->facts, "verbs.devices", rows, NULL, v->lib.path);
}

/* ibv_is_fork_initialized() asks the kernel whether it copies pinned pages at fork(). */
static int verbs_fork(struct verbs *v)
{
    static const char *const states[] = {"disabled", "enabled", "unneeded"};
    if (!v->ops.is_fork_initialized)
        return shk_facts_absent(v->ctx->facts, "verbs.fork", v->lib.path,
                                "libibverbs is older than ibv_is_fork_initialized (1.12)");
    shk_crumb_call("ibv_is_fork_initialized");
    int state = v->ops.is_fork_initialized();
    if (state < 0 || state > 2)
        return shk_facts_failed(v->ctx->facts, "verbs.fork", v->lib.path, "unknown answer %d",
                                state);
    return shk_facts_text(v->ctx->facts, "verbs.fork", states[state], v->lib.path);
}

static int verbs_unavailable(struct shk_facts *facts, int rc, const struct shk_error *why)
{
    const char *name = verbs_names[0];
    int written = rc == -ENOENT ? shk_facts_absent(facts, "verbs.path", name, "%s", why->text)
                                : shk_facts_failed(facts, "verbs.path", name, "%s", why->text);
    if (!written)
        written = shk_facts_failed(facts, "verbs.devices", name, "%s", why->text);
    return written ? written : shk_facts_failed(facts, "verbs.fork", name, "%s", why->text);
}

/* It then does not ask the library. */
static bool verbs_idle(const struct shk_host *host, const struct shk_facts *known)
{
    struct shk_fact fact;
    (void)host;
    return shk_facts_get(known, "rdma.devices", &fact) && fact.state == SHK_FACT_ABSENT;
}

static int verbs_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    static const char none[] = "the kernel has no RDMA device";
    struct verbs v = {.ctx = ctx};
    struct shk_error why = {""};
    int rc = 0;
    if (ctx->known && verbs_idle(ctx->host, ctx->known)) {
        static const char *const keys[] = {"verbs.path", "verbs.devices", "verbs.fork"};
        for (size_t i = 0; i < 3 && !rc; i++)
            rc = shk_facts_absent(ctx->facts, keys[i], "rdma.devices", none);
        return rc ? shk_error_sys(err, -rc, "facts of libibverbs") : 0;
    }
    if (ctx->executes)
        rc = shk_dynlib_open(&v.lib, &verbs_library, &v.ops, &why);
    else
        rc = shk_error_set(&why, ENODATA, "a captured library is not executed");
    if (rc) {
        rc = verbs_unavailable(ctx->facts, rc, &why);
    } else {
        rc = shk_facts_text(ctx->facts, "verbs.path", v.lib.path, "link map");
        if (!rc)
            rc = verbs_devices(&v);
        if (!rc)
            rc = verbs_fork(&v);
    }
    return rc ? shk_error_sys(err, -rc, "facts of libibverbs") : 0;
}

static const char *const verbs_provides[] = {"verbs.path", "verbs.devices", "verbs.fork", NULL};

const struct shk_probe shk_probe_verbs = {
    .name = "verbs",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "what libibverbs lists and whether it needs fork support; EFA capabilities",
    .provides = verbs_provides,
    .deadline_ms = 5000,
    .apart = true,
    .idle = verbs_idle,
    .run = verbs_run,
};
