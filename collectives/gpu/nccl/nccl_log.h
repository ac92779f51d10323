/* What NCCL's own log (NCCL_DEBUG=INFO) proves about the path that was taken. */
#ifndef SHK_COLLECTIVES_NCCL_LOG_H
#define SHK_COLLECTIVES_NCCL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_LOG_CHOICES 48U

/* Bytes of lines that are kept for the signatures: what a rank may publish, less the rest. */
#define NCCL_LOG_KEPT 3000U

/* One line of the TUNING subsystem: how an operation of that size was done. */
struct nccl_log_choice {
    uint64_t bytes;
    bool symmetric;
    char how[64]; /* kernel of a symmetric operation, else "algo RING proto LL" */
};

struct nccl_log {
    unsigned p2p, shm, net;   /* channel lines by kind */
    unsigned gdr;             /* … of the network with GPU direct */
    char via[48];             /* of a P2P channel: "P2P/CUMEM", "P2P/IPC" … */
    char net_name[32];        /* of a network channel: "NET/Socket/0" … */
    bool symmetric_va;        /* address space for symmetric windows was reserved */
    bool symmetric_no;        /* … is not supported, says NCCL */
    bool all_p2p;             /* every pair of GPUs can access each other */
    bool nvls;                /* multicast is available */
    unsigned registered;      /* lines that tell of registered buffers */
    char warning[200];        /* first WARN line; "" none */
    char kept[NCCL_LOG_KEPT]; /* first lines about settings, network, plugin and warnings */
    size_t kept_len;
    unsigned choices;
    struct nccl_log_choice choice[NCCL_LOG_CHOICES];
};

/* Reads a part of a log of any length, bad bytes included, and adds it to what other parts said;
 * lines that say nothing of the above are skipped. */
enum nccl_log_part {
    NCCL_LOG_ALL,
    NCCL_LOG_CONNECTION, /* only over what the ranks were connected: said once, whoever needed it */
    NCCL_LOG_WINDOWS,    /* … and that there is address space for windows */
};
void nccl_log_add(struct nccl_log *log, const char *text, size_t len, enum nccl_log_part part);

/* How an operation of `bytes` was done; NULL when the log does not say. */
const struct nccl_log_choice *nccl_log_find(const struct nccl_log *log, uint64_t bytes);

#endif
