#include "probes/nccl/plugin_child.h"

#include "core/facts/facts.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/nccl/ncclnet.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Devices asked for properties; the largest nodes have 32 NICs, each perhaps twice. */
enum { CHILD_MAX_DEVICES = 64, CHILD_LOG_LINE = 400 };

static double child_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static json_t *child_text(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

bool shk_plugin_text_at(const char *address, char *buf, size_t size)
{
    int fds[2];
    size_t len = 0;
    bool whole = false;
    if (!address || !size || pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    /* the kernel answers a bad address with EFAULT where we would die of it */
    while (len < size && write(fds[1], address + len, 1) == 1 && read(fds[0], buf + len, 1) == 1) {
        if (!buf[len]) {
            whole = true;
            break;
        }
        len++;
    }
    close(fds[0]);
    close(fds[1]);
    return whole;
}

/* One write per line, so that lines of several threads do not mix. */
static void child_log(int level, unsigned long flags, const char *file, int line, const char *fmt,
                      ...)
{
    char text[CHILD_LOG_LINE];
    (void)flags, (void)file, (void)line;
    if (level > SHK_NCCL_LOG_TRACE || !fmt)
        return;
    int n = snprintf(text, sizeof text, "%s ",
                     level <= SHK_NCCL_LOG_WARN   ? "WARN"
                     : level == SHK_NCCL_LOG_INFO ? "INFO"
                                                  : "TRACE");
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n - 1, fmt, args);
    va_end(args);
    size_t len = strlen(text);
    while (len && text[len - 1] == '\n')
        len--;
    text[len++] = '\n';
    if (write(STDERR_FILENO, text, len) < 0)
        return; /* nowhere left to say so */
}

struct child {
    const struct shk_plugin_job *job;
    struct shk_ncclnet net;
    json_t *out;
};

static int child_open(struct child *c, struct shk_error *err)
{
    struct link_map *map = NULL;
    const char *base = strrchr(c->job->path, '/');
    char symbol[40];
    shk_crumb_library(base ? base + 1 : c->job->path);
    shk_crumb_call("dlopen");
    void *handle = shk_dynlib_load(c->job->path);
    if (!handle) {
        const char *reason = dlerror();
        json_object_set_new(c->out, "error", child_text(reason ? reason : "no reason given"));
        return shk_error_set(err, ENOEXEC, "%s", reason ? reason : "no reason given");
    }
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name)
        json_object_set_new(c->out, "path", child_text(map->l_name));
    if (!c->job->version)
        return 0;
    snprintf(symbol, sizeof symbol, "ncclNetPlugin_v%d", c->job->version);
    shk_crumb_call("dlsym(%s)", symbol);
    c->net.version = c->job->version;
    c->net.table = dlsym(handle, symbol);
    if (!c->net.table)
        return shk_error_set(err, ENOSYS, "%s: no symbol %s", c->job->path, symbol);
    return 0;
}

static int child_missing(struct child *c, bool started, struct shk_error *err)
{
    char missing[256];
    if (!shk_ncclnet_missing_slots(c->net.table, c->net.version, started, missing, sizeof missing))
        return 0;
    json_object_set_new(c->out, "missing_slots", child_text(missing));
    return shk_error_set(err, EPROTO, "%sncclNetPlugin_v%d has no %s",
                         started ? "init succeeded, but " : "", c->net.version, missing);
}

/* The name that the table has at the moment: constructors and init may change it. */
static void child_name(struct child *c)
{
    char name[128];
    const char *address;
    memcpy(&address, c->net.table, sizeof address);
    if (shk_plugin_text_at(address, name, sizeof name))
        json_object_set_new(c->out, "name", child_text(name));
}

int shk_plugin_child_load(void *arg, json_t **result_p, struct shk_error *err)
{
    struct child c = {.job = arg, .out = json_object()};
    *result_p = c.out;
    int rc = child_open(&c, err);
    if (rc || !c.net.table)
        return rc;
    child_name(&c);
    return child_missing(&c, false, err);
}

static void child_result(json_t *row, int rc)
{
    json_object_set_new(row, "rc", json_integer(rc));
    json_object_set_new(row, "result", json_string(shk_nccl_result_name(rc)));
}

static int child_init(struct child *c, struct shk_error *err)
{
    double start = child_now_ms();
    shk_crumb_call("init");
    int rc = shk_ncclnet_init(&c->net, child_log);
    json_object_set_new(c->out, "version", json_integer(c->net.version));
    json_object_set_new(c->out, "ms", json_real(child_now_ms() - start));
    child_result(c->out, rc);
    child_name(c);
    if (rc)
        return shk_error_set(err, EIO, "init returned %d (%s)", rc, shk_nccl_result_name(rc));
    return child_missing(c, true, err);
}

static json_t *child_pointers(int support)
{
    json_t *list = json_array();
    if (support & SHK_NCCL_PTR_HOST)
        json_array_append_new(list, json_string("host"));
    if (support & SHK_NCCL_PTR_CUDA)
        json_array_append_new(list, json_string("cuda"));
    if (support & SHK_NCCL_PTR_DMABUF)
        json_array_append_new(list, json_string("dmabuf"));
    return list;
}

/* Text of a property, or what is wrong with its pointer. */
static void child_string(json_t *row, json_t *wrong, const char *key, const char *address)
{
    char buf[512];
    if (!address)
        json_object_set_new(row, key, json_null());
    else if (shk_plugin_text_at(address, buf, sizeof buf))
        json_object_set_new(row, key, child_text(buf));
    else
        json_array_append_new(
            wrong, json_sprintf("%s: pointer %p is no readable text", key, (const void *)address));
}

/* Values that no device can have; each makes the collective library misbehave. */
static void child_check_numbers(json_t *wrong, const struct shk_ncclnet_properties *p)
{
    if (!p->name)
        json_array_append_new(wrong, json_string("name: NULL"));
    if (p->speed < 0)
        json_array_append_new(wrong, json_sprintf("speed: %d Mbit/s", p->speed));
    if (p->max_comms <= 0)
        json_array_append_new(wrong, json_sprintf("maxComms: %d", p->max_comms));
    if (p->max_recvs <= 0)
        json_array_append_new(wrong, json_sprintf("maxRecvs: %d", p->max_recvs));
    if (!(p->latency >= 0 && p->latency < 1e9f))
        json_array_append_new(wrong, json_sprintf("latency: %g us", (double)p->latency));
    if (!(p->ptr_support & SHK_NCCL_PTR_HOST) || p->ptr_support & ~7)
        json_array_append_new(wrong, json_sprintf("ptrSupport: 0x%x", (unsigned)p->ptr_support));
}

static json_t *child_device(struct child *c, int device)
{
    struct shk_ncclnet_properties p = {.name = NULL};
    json_t *row = json_object(), *wrong = json_array();
    json_object_set_new(row, "device", json_integer(device));
    shk_crumb_call("getProperties(%d)", device);
    int rc = shk_ncclnet_get_properties(&c->net, device, &p);
    child_result(row, rc);
    if (!rc) {
        child_string(row, wrong, "name", p.name);
        child_string(row, wrong, "pci", p.pci_path);
        json_object_set_new(row, "guid", json_sprintf("0x%016llx", (unsigned long long)p.guid));
        json_object_set_new(row, "pointers", child_pointers(p.ptr_support));
        json_object_set_new(
            row, "gdr", json_boolean(p.ptr_support & (SHK_NCCL_PTR_CUDA | SHK_NCCL_PTR_DMABUF)));
        json_object_set_new(row, "speed", json_integer(p.speed));
        json_object_set_new(row, "port", json_integer(p.port));
        json_object_set_new(row, "max_comms", json_integer(p.max_comms));
        json_object_set_new(row, "max_recvs", json_integer(p.max_recvs));
        json_object_set_new(row, "device_type", json_integer(p.device_type));
        child_check_numbers(wrong, &p);
    }
    json_object_set_new(row, "wrong", wrong);
    return row;
}

static int child_devices(struct child *c, int *count_p, struct shk_error *err)
{
    int count = -1;
    shk_crumb_call("devices");
    int rc = shk_ncclnet_devices(&c->net, &count);
    json_t *devices = json_object(), *rows = json_array();
    child_result(devices, rc);
    json_object_set_new(devices, "count", json_integer(rc ? 0 : count));
    for (int i = 0; !rc && i < count && i < CHILD_MAX_DEVICES; i++)
        json_array_append_new(rows, child_device(c, i));
    json_object_set_new(devices, "rows", rows);
    json_object_set_new(c->out, "devices", devices);
    if (rc)
        return shk_error_set(err, EIO, "devices returned %d (%s)", rc, shk_nccl_result_name(rc));
    *count_p = count;
    return 0;
}

int shk_plugin_child_init(void *arg, json_t **result_p, struct shk_error *err)
{
    struct child c = {.job = arg, .out = json_object()};
    int count = 0;
    *result_p = c.out;
    int rc = child_open(&c, err);
    if (!rc)
        rc = child_init(&c, err);
    return rc ? rc : child_devices(&c, &count, err);
}

/* Two messages: one that any protocol sends at once, one that needs a rendezvous. */
static const size_t loop_sizes[] = {1024, 1 << 20};
enum { LOOP_GUARD = 4096, LOOP_MAX = 1 << 20, LOOP_HANDLE = 256 };

struct loop {
    struct child *c;
    double deadline;
    void *listener, *send, *recv, *send_mr, *recv_mr;
    unsigned char *from, *to; /* LOOP_MAX bytes each; `to` lies between two guards */
    unsigned char *map;
    size_t map_len;
};

static int loop_fail(struct loop *l, const char *step, int rc, struct shk_error *err)
{
    json_object_set_new(l->c->out, "step", json_string(step));
    child_result(l->c->out, rc);
    return shk_error_set(err, EIO, "%s returned %d (%s)", step, rc, shk_nccl_result_name(rc));
}

static int loop_late(struct loop *l, const char *step, const char *what, struct shk_error *err)
{
    json_object_set_new(l->c->out, "step", json_string(step));
    return shk_error_set(err, ETIMEDOUT, "%s: still pending after %u ms (%s)", step,
                         l->c->job->connect_ms, what);
}

/* connect and accept make progress by turns, as NCCL calls them. */
static int loop_connect(struct loop *l, struct shk_error *err)
{
    struct shk_ncclnet *net = &l->c->net;
    static char handle[LOOP_HANDLE] __attribute__((aligned(16)));
    shk_crumb_call("listen");
    int rc = shk_ncclnet_listen(net, l->c->job->device, handle, &l->listener);
    if (rc || !l->listener)
        return loop_fail(l, "listen", rc, err);
    while (!l->send || !l->recv) {
        shk_crumb_call("connect");
        if (!l->send && (rc = shk_ncclnet_connect(net, l->c->job->device, handle, &l->send)))
            return loop_fail(l, "connect", rc, err);
        shk_crumb_call("accept");
        if (!l->recv && (rc = shk_ncclnet_accept(net, l->listener, &l->recv)))
            return loop_fail(l, "accept", rc, err);
        if (child_now_ms() > l->deadline)
            return loop_late(l, l->send ? "accept" : "connect",
                             l->send ? "connected, not accepted" : "not connected", err);
    }
    return 0;
}

static int loop_register(struct loop *l, struct shk_error *err)
{
    struct shk_ncclnet *net = &l->c->net;
    shk_crumb_call("regMr");
    int rc = shk_ncclnet_reg_mr(net, l->send, l->from, LOOP_MAX, SHK_NCCL_PTR_HOST, &l->send_mr);
    if (!rc)
        rc = shk_ncclnet_reg_mr(net, l->recv, l->to, LOOP_MAX, SHK_NCCL_PTR_HOST, &l->recv_mr);
    return rc ? loop_fail(l, "regMr", rc, err) : 0;
}

static unsigned char loop_pattern(size_t i, size_t size)
{
    return (unsigned char)(i * 131 + (i >> 8) * 17 + size * 7 + 1);
}

static void loop_fill(struct loop *l, size_t size)
{
    for (size_t i = 0; i < size; i++)
        l->from[i] = loop_pattern(i, size);
    memset(l->to - LOOP_GUARD, 0xa5, LOOP_MAX + 2 * LOOP_GUARD);
}

/* Bytes that are not what they should be, those around the message included. */
static size_t loop_wrong(const struct loop *l, size_t size)
{
    size_t wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += l->to[i] != loop_pattern(i, size);
    for (size_t i = 0; i < LOOP_GUARD; i++)
        wrong += (l->to[size + i] != 0xa5) + (l->to[-1 - (long)i] != 0xa5);
    return wrong;
}

static int loop_post(struct loop *l, size_t size, void **recv_p, void **send_p,
                     struct shk_error *err)
{
    struct shk_ncclnet *net = &l->c->net;
    int rc;
    while (!*recv_p || !*send_p) {
        shk_crumb_call("irecv(%zu B)", size);
        if (!*recv_p && (rc = shk_ncclnet_irecv(net, l->recv, l->to, size, l->recv_mr, recv_p)))
            return loop_fail(l, "irecv", rc, err);
        shk_crumb_call("isend(%zu B)", size);
        if (!*send_p && (rc = shk_ncclnet_isend(net, l->send, l->from, size, l->send_mr, send_p)))
            return loop_fail(l, "isend", rc, err);
        if (child_now_ms() > l->deadline)
            return loop_late(l, *recv_p ? "isend" : "irecv", "no request", err);
    }
    return 0;
}

static int loop_message(struct loop *l, size_t size, struct shk_error *err)
{
    void *requests[2] = {NULL, NULL}; /* receive, send */
    int got = 0, rc = loop_post(l, size, &requests[0], &requests[1], err);
    if (rc)
        return rc;
    shk_crumb_call("test(%zu B)", size);
    while (requests[0] || requests[1]) {
        for (int k = 0; k < 2; k++) {
            int done = 0, bytes = 0;
            if (!requests[k])
                continue;
            if ((rc = shk_ncclnet_test(&l->c->net, requests[k], &done, &bytes)))
                return loop_fail(l, "test", rc, err);
            if (done) {
                requests[k] = NULL;
                got = k ? got : bytes;
            }
        }
        if (child_now_ms() > l->deadline)
            return loop_late(l, "test", requests[0] ? "receive not done" : "send not done", err);
    }
    size_t wrong = loop_wrong(l, size);
    json_object_set_new(l->c->out, "bytes", json_integer((json_int_t)size));
    json_object_set_new(l->c->out, "wrong", json_integer((json_int_t)wrong));
    if (wrong || (size_t)got != size) {
        json_object_set_new(l->c->out, "step", json_string("verify"));
        return shk_error_set(err, EILSEQ, "%zu of %zu bytes arrived wrong, %d reported", wrong,
                             size, got);
    }
    return 0;
}

static int loop_close(struct loop *l, struct shk_error *err)
{
    struct shk_ncclnet *net = &l->c->net;
    int rc;
    shk_crumb_call("deregMr");
    if ((rc = shk_ncclnet_dereg_mr(net, l->send, l->send_mr)) ||
        (rc = shk_ncclnet_dereg_mr(net, l->recv, l->recv_mr)))
        return loop_fail(l, "deregMr", rc, err);
    shk_crumb_call("closeSend");
    if ((rc = shk_ncclnet_close(net, SHK_NET_CLOSE_SEND, l->send)))
        return loop_fail(l, "closeSend", rc, err);
    shk_crumb_call("closeRecv");
    if ((rc = shk_ncclnet_close(net, SHK_NET_CLOSE_RECV, l->recv)))
        return loop_fail(l, "closeRecv", rc, err);
    shk_crumb_call("closeListen");
    if ((rc = shk_ncclnet_close(net, SHK_NET_CLOSE_LISTEN, l->listener)))
        return loop_fail(l, "closeListen", rc, err);
    shk_crumb_call("finalize");
    rc = shk_ncclnet_finalize(net);
    return rc ? loop_fail(l, "finalize", rc, err) : 0;
}

static int loop_run(struct loop *l, struct shk_error *err)
{
    l->map_len = 2 * (size_t)LOOP_MAX + 2 * LOOP_GUARD;
    l->map = mmap(NULL, l->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (l->map == MAP_FAILED)
        return shk_error_sys(err, errno, "loopback buffers");
    l->from = l->map;
    l->to = l->map + LOOP_MAX + LOOP_GUARD;
    l->deadline = child_now_ms() + l->c->job->connect_ms;
    int rc = loop_connect(l, err);
    if (!rc)
        rc = loop_register(l, err);
    for (size_t i = 0; i < sizeof loop_sizes / sizeof loop_sizes[0] && !rc; i++) {
        loop_fill(l, loop_sizes[i]);
        rc = loop_message(l, loop_sizes[i], err);
    }
    return rc ? rc : loop_close(l, err);
}

int shk_plugin_child_loopback(void *arg, json_t **result_p, struct shk_error *err)
{
    struct child c = {.job = arg, .out = json_object()};
    struct loop l = {.c = &c};
    *result_p = c.out;
    int rc = child_open(&c, err);
    if (!rc)
        rc = child_init(&c, err);
    if (rc) {
        json_object_set_new(c.out, "step", json_string("init"));
        return rc;
    }
    int count = 0;
    shk_crumb_call("devices"); /* some plugins count on being asked */
    if (shk_ncclnet_devices(&c.net, &count) != 0 || count <= c.job->device)
        return shk_error_set(err, ENODEV, "device %d of %d", c.job->device, count);
    json_object_set_new(c.out, "device", json_integer(c.job->device));
    return loop_run(&l, err);
}
