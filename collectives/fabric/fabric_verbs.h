/* RDMA devices under libfabric's verbs provider: queues that fit them, the port and address (GID)
 * that an endpoint uses, and what keeps a device from being used. */
#ifndef SHK_COLLECTIVES_FABRIC_VERBS_H
#define SHK_COLLECTIVES_FABRIC_VERBS_H

#include "core/host/host.h"
#include "core/text/error.h"
#include <jansson.h>
#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>

/* ofi_rxm asks for one completion queue that has room for all connections at once:
 * FI_UNIVERSE_SIZE * (FI_OFI_RXM_MSG_TX_SIZE + FI_OFI_RXM_MSG_RX_SIZE) entries (libfabric:
 * prov/rxm/src/rxm_ep.c). These are its defaults since 1.11: src/common.c (ofi_universe_size) and
 * prov/rxm/src/rxm.h. */
#define FABRIC_UNIVERSE  1024U
#define FABRIC_MSG_QUEUE 128U

/* Fewer than this per connection are of no use: rxm stops working (found by trying). */
#define FABRIC_MSG_QUEUE_MIN 8U

/* Queues for a job of this size on a device of this size. */
struct fabric_queues {
    size_t usual;      /* completion entries that libfabric asks for when nothing is set */
    size_t most;       /* that the device takes */
    unsigned universe; /* FI_UNIVERSE_SIZE to be set; 0: the usual size fits */
    unsigned msg;      /* FI_OFI_RXM_MSG_TX_SIZE and -RX_SIZE to be set; 0: they may stay */
    char device[64];   /* the one with the smallest queues */
};

/* Fills universe and msg from `ranks` and queues->most. */
void fabric_queues_plan(struct fabric_queues *queues, unsigned ranks);

/* Asks libibverbs (in a process of its own, names NULL: libibverbs.so.1) for the devices' limits
 * and sets what has to be smaller for them in this process's environment, which libfabric reads
 * when it is loaded. Does nothing where `provider` or FI_PROVIDER excludes verbs, where there is no
 * RDMA device, and where one of these variables is set already. True when something was set. */
bool fabric_queues_fit(const struct shk_host *host, const char *const *names, const char *provider,
                       unsigned ranks, struct fabric_queues *queues);

/* "libfabric's usual queues need 262144 completion entries, rxe0 has 32767: …" */
void fabric_queues_text(const struct fabric_queues *queues, char *buf, size_t size);

/* For ofi_rxd: datagrams are sent from the GID at index FI_VERBS_GID_IDX, 0 by default, which on
 * Ethernet is link-local and with some cards of RoCE version 1. Sets the index of the first RoCE v2
 * address made of an IPv4 address, when it is the same on all devices and the variable is unset. */
void fabric_gid_choose(const struct shk_host *host, const char *provider);

/* Where an endpoint is, from its device (a libfabric domain, "rxe0" or "rxe0-dgram") and its own
 * address (fi_getname): {device, port, link_layer, gid, index, type, mtu}; type and mtu are left
 * out when they are not known. An address that is in no GID table is `address` instead of gid and
 * index. NULL: not an RDMA device, or no memory. */
json_t *fabric_port(const struct shk_host *host, const struct fi_info *info, const void *addr,
                    size_t len);

/* Lines of evidence from rows of fabric_port() with a rank: of the first ranks only. */
void fabric_ports_evidence(const json_t *rows, void (*line)(json_t *lines, const char *text),
                           json_t *lines);

/* Has the network interface behind an RDMA device (or libfabric domain) an IP address in this
 * network namespace? True as well when that cannot be told. "eth0 of rxe0" in buf when it is known.
 */
bool fabric_port_has_ip(const struct shk_host *host, const char *domain, char *buf, size_t size);

/* What keeps every RDMA device from being used, from the kernel's tables: a cause of
 * collective.<t>.cause, with a text; NULL: nothing. */
const char *fabric_verbs_blocked(const struct shk_host *host, char *buf, size_t size);

/* Does this choice of providers, or without one FI_PROVIDER, take verbs? unset: the answer when
 * there is neither. */
bool fabric_wants_verbs(const char *provider, bool unset);

#endif
