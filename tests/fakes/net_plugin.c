/* A network plugin for NCCL that moves data inside one process, and its broken relatives.
 *
 * Built once per interface version (-DVERSION=6 … 12) and once per fault (-DFAULT=FAULT_…). The
 * types are written here again on purpose: a mistake in probes/nccl/ncclnet.c does not repeat
 * itself. Every argument that the interface promises is checked; a call of the wrong version fails.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For the preprocessor, so not an enum. */
#define FAULT_NONE             0
#define FAULT_SEGV_CONSTRUCTOR 1
#define FAULT_SEGV_INIT        2
#define FAULT_HANG_INIT        3
#define FAULT_ABORT_INIT       4
#define FAULT_EXIT_INIT        5
#define FAULT_ERROR_INIT       6
#define FAULT_NO_DEVICES       7
#define FAULT_SEGV_DEVICES     8
#define FAULT_BAD_PROPERTIES   9
#define FAULT_SEGV_PROPERTIES  10
#define FAULT_CORRUPT_DATA     11
#define FAULT_OVERRUN          12
#define FAULT_NEVER_CONNECTS   13
#define FAULT_NULL_SLOTS       14
#define FAULT_UNDEFINED_SYMBOL 15
#define FAULT_MEMORY           16
#define FAULT_LICENSE          17
#define FAULT_NO_INIT          18
/* Not faults: the table is filled in by init, as HPC-X's plugin does it; then with a gap. */
#define FAULT_LATE_TABLE 19
#define FAULT_LATE_GAP   20

#ifndef VERSION
#define VERSION 8
#endif
#ifndef FAULT
#define FAULT FAULT_NONE
#endif

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { LOG_WARN = 2, LOG_INFO = 3 };
enum { DEVICES = 2, MAGIC = 0x66616b65 };

typedef void (*logger_fn)(int level, unsigned long flags, const char *file, int line,
                          const char *fmt, ...);
typedef int (*profiler_fn)(void **event, int type, void *parent, int64_t plugin, void *data);

struct config {
    int traffic_class;
};

#if VERSION >= 9
typedef size_t length;
#else
typedef int length;
#endif
#if VERSION >= 8
typedef size_t mr_length;
#else
typedef int mr_length;
#endif

struct properties {
    char *name;
    char *pci_path;
    uint64_t guid;
    int ptr_support;
#if VERSION >= 8
    int reg_is_global;
#endif
#if VERSION >= 9
    int force_flush;
#endif
    int speed;
    int port;
    float latency;
    int max_comms;
    int max_recvs;
#if VERSION >= 7
    int device_type;
    int device_version;
#endif
#if VERSION >= 9
    struct {
        int count;
        int devices[VERSION >= 12 ? 8 : 4];
    } virtual_properties;
    size_t max_p2p, max_coll;
#endif
#if VERSION >= 11
    int max_multi_request;
#endif
#if VERSION >= 12
    int16_t rail, plane;
#endif
};

struct request {
    int magic;
    int done;
    int size;
    void *data;
    struct request *next;
};

/* The two ends of one connection share it. */
struct link {
    int magic;
    int tries;
    struct request *sends, *recvs;
    int registered;
};

struct handle {
    int magic;
    struct link *link;
};

static logger_fn logger;
static int context_object;

#define LOG(level, ...) logger(level, ~0ul, __func__, __LINE__, __VA_ARGS__)

#if FAULT == FAULT_SEGV_CONSTRUCTOR
__attribute__((constructor)) static void net_constructor(void)
{
    *(volatile int *)8 = 1;
}
#endif

#if FAULT == FAULT_UNDEFINED_SYMBOL
extern int shk_symbol_that_no_library_has(void);
#endif

#ifdef FABRIC
/* Bound at link time to the symbol version of the libfabric that it was linked with. */
extern int fi_getinfo(void);
int (*const volatile shk_fake_fabric)(void) = fi_getinfo;
#endif

#define LATE (FAULT == FAULT_LATE_TABLE || FAULT == FAULT_LATE_GAP)

static void net_fill(void);

static int net_start(logger_fn log)
{
    logger = log;
    net_fill();
    if (!log)
        return INVALID_ARGUMENT;
    LOG(LOG_INFO, "NET/FAKE : version %d", VERSION);
#if FAULT == FAULT_SEGV_INIT
    *(volatile int *)8 = 1;
#elif FAULT == FAULT_HANG_INIT
    for (;;)
        pause();
#elif FAULT == FAULT_ABORT_INIT
    abort();
#elif FAULT == FAULT_EXIT_INIT
    exit(7);
#elif FAULT == FAULT_ERROR_INIT
    LOG(LOG_INFO, "NET/FAKE : No NIC in slot %d", 7);
    LOG(LOG_WARN, "NET/FAKE : no eligible device, error %d", -61);
    return SYSTEM_ERROR;
#elif FAULT == FAULT_LICENSE
    LOG(LOG_INFO, "NET/FAKE : LICENSE CHECK FAILED");
    return INTERNAL_ERROR;
#elif FAULT == FAULT_MEMORY
    for (;;) {
        char *block = malloc(16 << 20);
        if (block)
            memset(block, 1, 16 << 20);
    }
#elif FAULT == FAULT_UNDEFINED_SYMBOL
    return shk_symbol_that_no_library_has();
#endif
    return SUCCESS;
}

#if VERSION >= 11
static int net_init(void **context, uint64_t comm, struct config *config, logger_fn log,
                    profiler_fn profiler)
{
    void *event = NULL;
    if (!context || !comm || !config || config->traffic_class != -1 || !profiler ||
        profiler(&event, 0, NULL, 0, NULL) != SUCCESS)
        return INVALID_ARGUMENT;
    *context = &context_object;
    return net_start(log);
}
#elif VERSION == 10
static int net_init(logger_fn log, profiler_fn profiler)
{
    void *event = NULL;
    if (!profiler || profiler(&event, 0, NULL, 0, NULL) != SUCCESS)
        return INVALID_ARGUMENT;
    return net_start(log);
}
#else
static int net_init(logger_fn log)
{
    return net_start(log);
}
#endif

static int net_devices(int *count)
{
#if FAULT == FAULT_SEGV_DEVICES
    *(volatile int *)8 = 1;
#endif
    *count = FAULT == FAULT_NO_DEVICES ? 0 : DEVICES;
    return SUCCESS;
}

static int net_properties(int device, struct properties *p)
{
    static char name[] = "fake0", path[] = "/sys/devices/pci0000:00/0000:00:01.0";
    if (device < 0 || device >= DEVICES)
        return INVALID_ARGUMENT;
    memset(p, 0, sizeof *p);
    p->name = name;
    p->pci_path = path;
    p->guid = 0x1122334455667788ull;
    p->ptr_support = 1 | 4;
    p->speed = 200000;
    p->port = 1;
    p->latency = 1.5f;
    p->max_comms = 65536;
    p->max_recvs = 1;
#if VERSION >= 8
    p->reg_is_global = 1;
#endif
#if FAULT == FAULT_BAD_PROPERTIES
    p->name = (char *)16;
    p->speed = -5;
    p->max_comms = 0;
#elif FAULT == FAULT_SEGV_PROPERTIES
    *(volatile int *)8 = 1;
#endif
    return SUCCESS;
}

static int net_listen_on(int device, void *opaque, void **listener)
{
    struct handle *handle = opaque;
    struct link *link = calloc(1, sizeof *link);
    if (device < 0 || device >= DEVICES || !link)
        return INVALID_ARGUMENT;
    link->magic = MAGIC;
    handle->magic = MAGIC;
    handle->link = link;
    *listener = link;
    return SUCCESS;
}

/* Pending at first: success without a communicator. */
static int net_pending(struct link *link, void **comm)
{
    int wait = FAULT == FAULT_NEVER_CONNECTS || link->tries++ < 3;
    *comm = wait ? NULL : link;
    return SUCCESS;
}

static int net_connect_to(int device, void *opaque, void **comm)
{
    struct handle *handle = opaque;
    if (device < 0 || device >= DEVICES || handle->magic != MAGIC || handle->link->magic != MAGIC)
        return INTERNAL_ERROR;
    return net_pending(handle->link, comm);
}

#if VERSION >= 11
static int net_listen(void *context, int device, void *handle, void **listener)
{
    return context == &context_object ? net_listen_on(device, handle, listener) : INTERNAL_ERROR;
}
static int net_connect(void *context, int device, void *handle, void **comm, void **offload)
{
    if (context != &context_object || !offload || *offload)
        return INTERNAL_ERROR;
    return net_connect_to(device, handle, comm);
}
#else
static int net_listen(int device, void *handle, void **listener)
{
    return net_listen_on(device, handle, listener);
}
#if VERSION == 10
static int net_connect(int device, struct config *config, void *handle, void **comm, void **offload)
{
    if (!config || config->traffic_class != -1 || !offload || *offload)
        return INTERNAL_ERROR;
    return net_connect_to(device, handle, comm);
}
#elif VERSION >= 7
static int net_connect(int device, void *handle, void **comm, void **offload)
{
    return offload && !*offload ? net_connect_to(device, handle, comm) : INTERNAL_ERROR;
}
#else
static int net_connect(int device, void *handle, void **comm)
{
    return net_connect_to(device, handle, comm);
}
#endif
#endif

#if VERSION >= 7
static int net_accept(void *listener, void **comm, void **offload)
{
    return offload && !*offload ? net_pending(listener, comm) : INTERNAL_ERROR;
}
#else
static int net_accept(void *listener, void **comm)
{
    return net_pending(listener, comm);
}
#endif

static int net_reg_mr(void *comm, void *data, mr_length size, int type, void **mr)
{
    struct link *link = comm;
    if (link->magic != MAGIC || !data || (long long)size <= 0 || type != 1)
        return INVALID_ARGUMENT;
    link->registered++;
    *mr = data;
    return SUCCESS;
}

static int net_reg_dma(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                       void **mr)
{
    (void)comm, (void)data, (void)size, (void)type, (void)offset, (void)fd, (void)mr;
    return INVALID_USAGE;
}

static int net_dereg_mr(void *comm, void *mr)
{
    struct link *link = comm;
    return link->magic == MAGIC && mr && link->registered-- > 0 ? SUCCESS : INVALID_ARGUMENT;
}

static struct request *net_request(struct request **list, void *data, int size)
{
    struct request *r = calloc(1, sizeof *r);
    if (r) {
        *r = (struct request){.magic = MAGIC, .data = data, .size = size, .next = *list};
        *list = r;
    }
    return r;
}

static void net_move(struct link *link)
{
    struct request *s = link->sends, *r = link->recvs;
    if (!s || !r)
        return;
    size_t n = (size_t)(s->size < r->size ? s->size : r->size);
    memcpy(r->data, s->data, n);
#if FAULT == FAULT_CORRUPT_DATA
    if (n > 4096)
        ((unsigned char *)r->data)[n / 2] ^= 0x10;
#elif FAULT == FAULT_OVERRUN
    ((unsigned char *)r->data)[n] = 0;
#endif
    r->size = s->size;
    s->done = r->done = 1;
    link->sends = link->recvs = NULL;
}

static int net_send(void *comm, void *data, long long size, int tag, void *mr, void **request)
{
    struct link *link = comm;
    if (link->magic != MAGIC || tag != 0 || !mr || size <= 0 || *request)
        return INVALID_ARGUMENT;
    *request = net_request(&link->sends, data, (int)size);
    net_move(link);
    return SUCCESS;
}

static int net_receive(void *comm, int n, void **data, long long size, const int *tags, void **mrs,
                       void **request)
{
    struct link *link = comm;
    if (link->magic != MAGIC || n != 1 || tags[0] != 0 || !mrs[0] || size <= 0 || *request)
        return INVALID_ARGUMENT;
    *request = net_request(&link->recvs, data[0], (int)size);
    net_move(link);
    return SUCCESS;
}

#if VERSION >= 10
static int net_isend(void *comm, void *data, length size, int tag, void *mr, void *profiler,
                     void **request)
{
    return profiler ? INVALID_ARGUMENT : net_send(comm, data, (long long)size, tag, mr, request);
}
static int net_irecv(void *comm, int n, void **data, length *sizes, int *tags, void **mrs,
                     void **profilers, void **request)
{
    return !profilers || profilers[0]
               ? INVALID_ARGUMENT
               : net_receive(comm, n, data, (long long)sizes[0], tags, mrs, request);
}
#else
static int net_isend(void *comm, void *data, length size, int tag, void *mr, void **request)
{
    return net_send(comm, data, (long long)size, tag, mr, request);
}
static int net_irecv(void *comm, int n, void **data, length *sizes, int *tags, void **mrs,
                     void **request)
{
    return net_receive(comm, n, data, (long long)sizes[0], tags, mrs, request);
}
#endif

static int net_iflush(void *comm, int n, void **data, int *sizes, void **mrs, void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mrs, (void)request;
    return INVALID_USAGE; /* host memory needs none */
}

static int net_test(void *opaque, int *done, int *sizes)
{
    struct request *r = opaque;
    if (r->magic != MAGIC)
        return INTERNAL_ERROR;
    *done = r->done;
    if (!r->done)
        return SUCCESS;
    sizes[0] = r->size;
    r->magic = 0; /* a finished request must not be asked again */
    free(r);
    return SUCCESS;
}

static int net_close(void *comm)
{
    return ((struct link *)comm)->magic == MAGIC ? SUCCESS : INVALID_ARGUMENT;
}

static int net_close_listen(void *comm)
{
    struct link *link = comm;
    if (link->registered)
        return INVALID_USAGE; /* something is still registered */
    link->magic = 0;
    free(link);
    return SUCCESS;
}

#if VERSION >= 11
static int net_finalize(void *context)
{
    return context == &context_object ? SUCCESS : INTERNAL_ERROR;
}
#endif

#define SYMBOL_OF(v) ncclNetPlugin_v##v
#define SYMBOL(v)    SYMBOL_OF(v)

struct table {
    const char *name;
    int (*init)();
    int (*devices)(int *count);
    int (*properties)(int device, struct properties *p);
    int (*listen)();
    int (*connect)();
    int (*accept)();
    int (*reg_mr)(void *comm, void *data, mr_length size, int type, void **mr);
    int (*reg_dma)(void *comm, void *data, size_t size, int type, uint64_t offset, int fd,
                   void **mr);
    int (*dereg_mr)(void *comm, void *mr);
    int (*isend)();
    int (*irecv)();
    int (*iflush)(void *comm, int n, void **data, int *sizes, void **mrs, void **request);
    int (*test)(void *request, int *done, int *sizes);
    int (*close_send)(void *comm);
    int (*close_recv)(void *comm);
    int (*close_listen)(void *comm);
#if VERSION >= 7
    int (*get_device_mr)(void *comm, void *mr, void **device);
    int (*irecv_consumed)(void *comm, int n, void *request);
#endif
#if VERSION >= 9
    int (*make_device)(int *device, void *properties);
#endif
#if VERSION >= 11
    int (*finalize)(void *context);
    int (*set_attr)(void *context, void *attributes);
#endif
};

extern struct table SYMBOL(VERSION);

static const struct table whole = {
    .name = LATE ? "Fake late" : "Fake",
#if FAULT != FAULT_NO_INIT
    .init = net_init,
#endif
    .devices = net_devices,
    .properties = net_properties,
    .listen = net_listen,
#if FAULT != FAULT_NULL_SLOTS && FAULT != FAULT_LATE_GAP
    .connect = net_connect,
    .accept = net_accept,
#endif
    .reg_mr = net_reg_mr,
    .reg_dma = net_reg_dma,
    .dereg_mr = net_dereg_mr,
    .isend = net_isend,
    .irecv = net_irecv,
    .iflush = net_iflush,
    .test = net_test,
    .close_send = net_close,
    .close_recv = net_close,
    .close_listen = net_close_listen,
#if VERSION >= 11
    .finalize = net_finalize,
#endif
};

#if FAULT == FAULT_LATE_TABLE || FAULT == FAULT_LATE_GAP
struct table SYMBOL(VERSION) = {.name = "Fake before init", .init = net_init};
static void net_fill(void)
{
    SYMBOL(VERSION) = whole;
}
#else
struct table SYMBOL(VERSION);
static void net_fill(void)
{
}
__attribute__((constructor)) static void net_table(void)
{
    SYMBOL(VERSION) = whole;
}
#endif
