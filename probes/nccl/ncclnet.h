/* The network plugin interface of NCCL and RCCL, versions 6 to 12, and one way to call all of them.
 *
 * A plugin exports data objects ncclNetPlugin_v<n>: a name, then function pointers. The order of
 * the slots never changed from version 6 on; argument lists did, so a call goes through a type that
 * fits the version (a wrong one would not crash at once, but read the wrong registers).
 * Facts from NCCL's src/include/plugin/net/net_v6.h … net_v12.h. */
#ifndef SHK_PROBES_NCCLNET_H
#define SHK_PROBES_NCCLNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHK_NCCLNET_OLDEST = 6, SHK_NCCLNET_NEWEST = 12 };

/* Result codes of every function. */
enum shk_nccl_result {
    SHK_NCCL_SUCCESS,
    SHK_NCCL_UNHANDLED_CUDA_ERROR,
    SHK_NCCL_SYSTEM_ERROR,
    SHK_NCCL_INTERNAL_ERROR,
    SHK_NCCL_INVALID_ARGUMENT,
    SHK_NCCL_INVALID_USAGE,
    SHK_NCCL_REMOTE_ERROR,
    SHK_NCCL_IN_PROGRESS,
    SHK_NCCL_RESULT_COUNT
};
const char *shk_nccl_result_name(int result); /* "ncclSystemError", "unknown result" */

/* Slots of the table; slot k lies at offset 8 * k, the name is slot 0. */
enum shk_ncclnet_slot {
    SHK_NET_NAME,
    SHK_NET_INIT,
    SHK_NET_DEVICES,
    SHK_NET_GET_PROPERTIES,
    SHK_NET_LISTEN,
    SHK_NET_CONNECT,
    SHK_NET_ACCEPT,
    SHK_NET_REG_MR,
    SHK_NET_REG_MR_DMA_BUF,
    SHK_NET_DEREG_MR,
    SHK_NET_ISEND,
    SHK_NET_IRECV,
    SHK_NET_IFLUSH,
    SHK_NET_TEST,
    SHK_NET_CLOSE_SEND,
    SHK_NET_CLOSE_RECV,
    SHK_NET_CLOSE_LISTEN,
    /* v6 ends here; v7 adds getDeviceMr and irecvConsumed, v9 makeVDevice, v11 these: */
    SHK_NET_FINALIZE = 20,
    SHK_NET_SET_NET_ATTR,
};

/* Bytes of the exported object; 0 for a version outside OLDEST … NEWEST. */
size_t shk_ncclnet_size(int version);

/* True when slots that NCCL calls without asking are NULL; buf then lists them. Before init those
 * are name and init alone: plugins may fill in the rest when they are started. */
bool shk_ncclnet_missing_slots(const void *table, int version, bool started, char *buf,
                               size_t size);

/* Logger handed to the plugin; called from its threads too. */
typedef void (*shk_ncclnet_logger)(int level, unsigned long flags, const char *file, int line,
                                   const char *fmt, ...);
enum { SHK_NCCL_LOG_WARN = 2, SHK_NCCL_LOG_INFO = 3, SHK_NCCL_LOG_TRACE = 5 };

/* Pointer support bits of the properties. */
enum { SHK_NCCL_PTR_HOST = 1, SHK_NCCL_PTR_CUDA = 2, SHK_NCCL_PTR_DMABUF = 4 };

/* The properties that all versions have, and the newer ones with NCCL's own default where a version
 * lacks them. Strings belong to the plugin and are not checked: they may point anywhere. */
struct shk_ncclnet_properties {
    const char *name, *pci_path;
    uint64_t guid;
    int ptr_support;
    int reg_is_global; /* v8 */
    int speed;         /* Mbit/s */
    int port;
    float latency; /* µs */
    int max_comms, max_recvs;
    int device_type; /* v7: 0 host */
};

/* A plugin's table in use. */
struct shk_ncclnet {
    const void *table;
    int version;
    void *context; /* v11: from init */
};

/* Each returns the plugin's result code. Pending connections and requests come back as NULL with
 * success, as the interface has it. `handle` is 128 bytes, zeroed by the caller, and must stay as
 * the plugin leaves it until the connection stands. */
int shk_ncclnet_init(struct shk_ncclnet *net, shk_ncclnet_logger logger);
int shk_ncclnet_devices(struct shk_ncclnet *net, int *count_p);
int shk_ncclnet_get_properties(struct shk_ncclnet *net, int device,
                               struct shk_ncclnet_properties *properties_p);
int shk_ncclnet_listen(struct shk_ncclnet *net, int device, void *handle, void **listen_p);
int shk_ncclnet_connect(struct shk_ncclnet *net, int device, void *handle, void **send_p);
int shk_ncclnet_accept(struct shk_ncclnet *net, void *listener, void **recv_p);
int shk_ncclnet_reg_mr(struct shk_ncclnet *net, void *comm, void *data, size_t size, int type,
                       void **mr_p);
int shk_ncclnet_dereg_mr(struct shk_ncclnet *net, void *comm, void *mr);
int shk_ncclnet_isend(struct shk_ncclnet *net, void *comm, void *data, size_t size, void *mr,
                      void **request_p);
int shk_ncclnet_irecv(struct shk_ncclnet *net, void *comm, void *data, size_t size, void *mr,
                      void **request_p);
int shk_ncclnet_test(struct shk_ncclnet *net, void *request, int *done_p, int *size_p);
/* slot: SHK_NET_CLOSE_SEND, _RECV or _LISTEN */
int shk_ncclnet_close(struct shk_ncclnet *net, enum shk_ncclnet_slot slot, void *comm);
int shk_ncclnet_finalize(struct shk_ncclnet *net); /* nothing before v11 */

#endif
