#include "probes/nccl/ncclnet.h"

#include <stdio.h>
#include <string.h>

typedef void (*slot_fn)(void);

static const char *const result_names[SHK_NCCL_RESULT_COUNT] = {
    [SHK_NCCL_SUCCESS] = "ncclSuccess",
    [SHK_NCCL_UNHANDLED_CUDA_ERROR] = "ncclUnhandledCudaError",
    [SHK_NCCL_SYSTEM_ERROR] = "ncclSystemError",
    [SHK_NCCL_INTERNAL_ERROR] = "ncclInternalError",
    [SHK_NCCL_INVALID_ARGUMENT] = "ncclInvalidArgument",
    [SHK_NCCL_INVALID_USAGE] = "ncclInvalidUsage",
    [SHK_NCCL_REMOTE_ERROR] = "ncclRemoteError",
    [SHK_NCCL_IN_PROGRESS] = "ncclInProgress",
};

const char *shk_nccl_result_name(int result)
{
    return result >= 0 && result < SHK_NCCL_RESULT_COUNT ? result_names[result] : "unknown result";
}

static const unsigned char slots_of[SHK_NCCLNET_NEWEST + 1] = {
    [6] = 17, [7] = 19, [8] = 19, [9] = 20, [10] = 20, [11] = 22, [12] = 22,
};

static bool ncclnet_known(int version)
{
    return version >= SHK_NCCLNET_OLDEST && version <= SHK_NCCLNET_NEWEST;
}

size_t shk_ncclnet_size(int version)
{
    return ncclnet_known(version) ? slots_of[version] * sizeof(void *) : 0;
}

static slot_fn ncclnet_slot(const void *table, size_t slot)
{
    slot_fn fn;
    memcpy(&fn, (const char *)table + slot * sizeof(void *), sizeof fn);
    return fn;
}

/* Slots that NCCL uses without asking, from which version of the table on; the rest may be NULL.
 * From src/plugin/net.cc, src/transport/net.cc and src/net.cc of the releases: `name` and `init`
 * come from the table as the file has it, everything else from what init left there. */
static const struct {
    enum shk_ncclnet_slot slot;
    const char *name;
    bool before; /* needed before init */
    int since;
} required[] = {
    {.slot = SHK_NET_NAME, .name = "name", .before = true},
    {.slot = SHK_NET_INIT, .name = "init", .before = true},
    {.slot = SHK_NET_DEVICES, .name = "devices"},
    {.slot = SHK_NET_GET_PROPERTIES, .name = "getProperties"},
    {.slot = SHK_NET_LISTEN, .name = "listen"},
    {.slot = SHK_NET_CONNECT, .name = "connect"},
    {.slot = SHK_NET_ACCEPT, .name = "accept"},
    {.slot = SHK_NET_REG_MR, .name = "regMr"},
    {.slot = SHK_NET_DEREG_MR, .name = "deregMr"},
    {.slot = SHK_NET_ISEND, .name = "isend"},
    {.slot = SHK_NET_IRECV, .name = "irecv"},
    {.slot = SHK_NET_TEST, .name = "test"},
    {.slot = SHK_NET_CLOSE_SEND, .name = "closeSend"},
    {.slot = SHK_NET_CLOSE_RECV, .name = "closeRecv"},
    {.slot = SHK_NET_CLOSE_LISTEN, .name = "closeListen"},
    {.slot = SHK_NET_FINALIZE, .name = "finalize", .since = 11},
};

bool shk_ncclnet_missing_slots(const void *table, int version, bool started, char *buf, size_t size)
{
    size_t len = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        bool due = (started || required[i].before) && version >= required[i].since;
        if (!due || ncclnet_slot(table, required[i].slot))
            continue;
        int n = snprintf(buf + len, size - len, "%s%s", len ? ", " : "", required[i].name);
        len = n > 0 && (size_t)n < size - len ? len + (size_t)n : size - 1;
    }
    return len > 0;
}

/* Per-communicator settings of v10 and later: traffic class, -1 undefined. */
struct net_config {
    int traffic_class;
};

typedef int (*profiler_fn)(void **event, int type, void *parent, int64_t plugin, void *data);

static int ncclnet_profiler(void **event, int type, void *parent, int64_t plugin, void *data)
{
    (void)event, (void)type, (void)parent, (void)plugin, (void)data;
    return SHK_NCCL_SUCCESS;
}

/* Any value does; NCCL takes the communicator's hash. */
static const uint64_t comm_id = 0x5a4b;

#define CALL(net, slot, type, ...) ((type)ncclnet_slot((net)->table, slot))(__VA_ARGS__)

typedef int (*init_v6)(shk_ncclnet_logger logger);
typedef int (*init_v10)(shk_ncclnet_logger logger, profiler_fn profiler);
typedef int (*init_v11)(void **context, uint64_t comm, struct net_config *config,
                        shk_ncclnet_logger logger, profiler_fn profiler);

int shk_ncclnet_init(struct shk_ncclnet *net, shk_ncclnet_logger logger)
{
    struct net_config config = {.traffic_class = -1};
    if (net->version >= 11)
        return CALL(net, SHK_NET_INIT, init_v11, &net->context, comm_id, &config, logger,
                    ncclnet_profiler);
    if (net->version == 10)
        return CALL(net, SHK_NET_INIT, init_v10, logger, ncclnet_profiler);
    return CALL(net, SHK_NET_INIT, init_v6, logger);
}

typedef int (*devices_fn)(int *count);

int shk_ncclnet_devices(struct shk_ncclnet *net, int *count_p)
{
    return CALL(net, SHK_NET_DEVICES, devices_fn, count_p);
}

struct props_v6 {
    const char *name, *pci_path;
    uint64_t guid;
    int ptr_support;
    int speed, port;
    float latency;
    int max_comms, max_recvs;
};

struct props_v7 {
    const char *name, *pci_path;
    uint64_t guid;
    int ptr_support;
    int speed, port;
    float latency;
    int max_comms, max_recvs;
    int device_type, device_version;
};

struct props_v8 {
    const char *name, *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global;
    int speed, port;
    float latency;
    int max_comms, max_recvs;
    int device_type, device_version;
};

/* v9 to v12 agree up to the device fields; what follows is not read here. */
struct props_v9 {
    const char *name, *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global, force_flush;
    int speed, port;
    float latency;
    int max_comms, max_recvs;
    int device_type, device_version;
};

/* Room for what later versions write behind the fields read here (v12 is the longest, 136 B). */
union props {
    struct props_v6 v6;
    struct props_v7 v7;
    struct props_v8 v8;
    struct props_v9 v9;
    char room[1024];
};

#define COMMON_PROPERTIES(p)                                                                       \
    .name = (p).name, .pci_path = (p).pci_path, .guid = (p).guid, .ptr_support = (p).ptr_support,  \
    .speed = (p).speed, .port = (p).port, .latency = (p).latency, .max_comms = (p).max_comms,      \
    .max_recvs = (p).max_recvs

typedef int (*properties_fn)(int device, void *properties);

int shk_ncclnet_get_properties(struct shk_ncclnet *net, int device,
                               struct shk_ncclnet_properties *properties_p)
{
    union props p;
    memset(&p, 0, sizeof p);
    int rc = CALL(net, SHK_NET_GET_PROPERTIES, properties_fn, device, &p);
    if (rc)
        return rc;
    if (net->version == 6)
        *properties_p = (struct shk_ncclnet_properties){COMMON_PROPERTIES(p.v6)};
    else if (net->version == 7)
        *properties_p = (struct shk_ncclnet_properties){COMMON_PROPERTIES(p.v7),
                                                        .device_type = p.v7.device_type};
    else if (net->version == 8)
        *properties_p = (struct shk_ncclnet_properties){COMMON_PROPERTIES(p.v8),
                                                        .reg_is_global = p.v8.reg_is_global,
                                                        .device_type = p.v8.device_type};
    else
        *properties_p = (struct shk_ncclnet_properties){COMMON_PROPERTIES(p.v9),
                                                        .reg_is_global = p.v9.reg_is_global,
                                                        .device_type = p.v9.device_type};
    return 0;
}

typedef int (*listen_v6)(int device, void *handle, void **listener);
typedef int (*listen_v11)(void *context, int device, void *handle, void **listener);

int shk_ncclnet_listen(struct shk_ncclnet *net, int device, void *handle, void **listen_p)
{
    if (net->version >= 11)
        return CALL(net, SHK_NET_LISTEN, listen_v11, net->context, device, handle, listen_p);
    return CALL(net, SHK_NET_LISTEN, listen_v6, device, handle, listen_p);
}

/* The device handle of v7 and later is for offload; NCCL hands in the address of a NULL. */
typedef int (*connect_v6)(int device, void *handle, void **comm);
typedef int (*connect_v7)(int device, void *handle, void **comm, void **device_handle);
typedef int (*connect_v10)(int device, struct net_config *config, void *handle, void **comm,
                           void **device_handle);
typedef int (*connect_v11)(void *context, int device, void *handle, void **comm,
                           void **device_handle);

int shk_ncclnet_connect(struct shk_ncclnet *net, int device, void *handle, void **send_p)
{
    struct net_config config = {.traffic_class = -1};
    void *dev = NULL;
    if (net->version >= 11)
        return CALL(net, SHK_NET_CONNECT, connect_v11, net->context, device, handle, send_p, &dev);
    if (net->version == 10)
        return CALL(net, SHK_NET_CONNECT, connect_v10, device, &config, handle, send_p, &dev);
    if (net->version >= 7)
        return CALL(net, SHK_NET_CONNECT, connect_v7, device, handle, send_p, &dev);
    return CALL(net, SHK_NET_CONNECT, connect_v6, device, handle, send_p);
}

typedef int (*accept_v6)(void *listener, void **comm);
typedef int (*accept_v7)(void *listener, void **comm, void **device_handle);

int shk_ncclnet_accept(struct shk_ncclnet *net, void *listener, void **recv_p)
{
    void *dev = NULL;
    if (net->version >= 7)
        return CALL(net, SHK_NET_ACCEPT, accept_v7, listener, recv_p, &dev);
    return CALL(net, SHK_NET_ACCEPT, accept_v6, listener, recv_p);
}

typedef int (*reg_mr_v6)(void *comm, void *data, int size, int type, void **mr);
typedef int (*reg_mr_v8)(void *comm, void *data, size_t size, int type, void **mr);

int shk_ncclnet_reg_mr(struct shk_ncclnet *net, void *comm, void *data, size_t size, int type,
                       void **mr_p)
{
    if (net->version >= 8)
        return CALL(net, SHK_NET_REG_MR, reg_mr_v8, comm, data, size, type, mr_p);
    return CALL(net, SHK_NET_REG_MR, reg_mr_v6, comm, data, (int)size, type, mr_p);
}

typedef int (*dereg_mr_fn)(void *comm, void *mr);

int shk_ncclnet_dereg_mr(struct shk_ncclnet *net, void *comm, void *mr)
{
    return CALL(net, SHK_NET_DEREG_MR, dereg_mr_fn, comm, mr);
}

enum { MESSAGE_TAG = 0 };

typedef int (*isend_v6)(void *comm, void *data, int size, int tag, void *mr, void **request);
typedef int (*isend_v9)(void *comm, void *data, size_t size, int tag, void *mr, void **request);
typedef int (*isend_v10)(void *comm, void *data, size_t size, int tag, void *mr, void *profiler,
                         void **request);

int shk_ncclnet_isend(struct shk_ncclnet *net, void *comm, void *data, size_t size, void *mr,
                      void **request_p)
{
    if (net->version >= 10)
        return CALL(net, SHK_NET_ISEND, isend_v10, comm, data, size, MESSAGE_TAG, mr, NULL,
                    request_p);
    if (net->version == 9)
        return CALL(net, SHK_NET_ISEND, isend_v9, comm, data, size, MESSAGE_TAG, mr, request_p);
    return CALL(net, SHK_NET_ISEND, isend_v6, comm, data, (int)size, MESSAGE_TAG, mr, request_p);
}

typedef int (*irecv_v6)(void *comm, int n, void **data, int *sizes, int *tags, void **mrs,
                        void **request);
typedef int (*irecv_v9)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mrs,
                        void **request);
typedef int (*irecv_v10)(void *comm, int n, void **data, size_t *sizes, int *tags, void **mrs,
                         void **profilers, void **request);

int shk_ncclnet_irecv(struct shk_ncclnet *net, void *comm, void *data, size_t size, void *mr,
                      void **request_p)
{
    int tags[1] = {MESSAGE_TAG}, small[1] = {(int)size};
    size_t sizes[1] = {size};
    void *datas[1] = {data}, *mrs[1] = {mr}, *profilers[1] = {NULL};
    if (net->version >= 10)
        return CALL(net, SHK_NET_IRECV, irecv_v10, comm, 1, datas, sizes, tags, mrs, profilers,
                    request_p);
    if (net->version == 9)
        return CALL(net, SHK_NET_IRECV, irecv_v9, comm, 1, datas, sizes, tags, mrs, request_p);
    return CALL(net, SHK_NET_IRECV, irecv_v6, comm, 1, datas, small, tags, mrs, request_p);
}

typedef int (*test_fn)(void *request, int *done, int *sizes);

int shk_ncclnet_test(struct shk_ncclnet *net, void *request, int *done_p, int *size_p)
{
    int sizes[8] = {0}; /* one per receive of a group; only the first is ours */
    int rc = CALL(net, SHK_NET_TEST, test_fn, request, done_p, sizes);
    *size_p = sizes[0];
    return rc;
}

typedef int (*close_fn)(void *comm);

int shk_ncclnet_close(struct shk_ncclnet *net, enum shk_ncclnet_slot slot, void *comm)
{
    return CALL(net, slot, close_fn, comm);
}

int shk_ncclnet_finalize(struct shk_ncclnet *net)
{
    if (net->version < 11 || !ncclnet_slot(net->table, SHK_NET_FINALIZE))
        return SHK_NCCL_SUCCESS;
    return CALL(net, SHK_NET_FINALIZE, close_fn, net->context);
}
