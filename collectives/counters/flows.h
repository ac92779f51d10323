/* Flows: what TCP sent to each peer of one process, and what of it had to be sent again.
 *
 * The kernel keeps this for every socket (struct tcp_info) and tells it for all of them at once
 * through NETLINK_SOCK_DIAG, without privileges (sock_diag(7)); a socket belongs to the process
 * that has its inode among its open files. Retransmissions are counted by the sender, whoever lost
 * the packet: what tells is which two ends a flow has. */
#ifndef SHK_COLLECTIVES_FLOWS_H
#define SHK_COLLECTIVES_FLOWS_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Peers of one process that are told apart; of more, those that lost most are kept. */
#define SHK_FLOWS_MAX 64U

#define SHK_FLOW_ADDRESS 46U /* INET6_ADDRSTRLEN */

/* All sockets of the process between two addresses. Counts are since the sockets were opened. */
struct shk_flow {
    char from[SHK_FLOW_ADDRESS], to[SHK_FLOW_ADDRESS]; /* ours, the peer's */
    uint32_t sockets;
    uint32_t stuck;    /* sockets whose data waits and does not get there */
    uint32_t mss;      /* bytes of a segment, the largest */
    uint32_t rtt_us;   /* shortest round trip; 0 not known */
    uint64_t sent;     /* segments with data, those sent again included */
    uint64_t again;    /* of them sent again */
    uint64_t needless; /* of those, which the peer had already (DSACK, RFC 2883) */
    uint64_t unsent;   /* that this host dropped itself: a packet filter, a full queue */
    int64_t timeouts;  /* expired retransmission timers; -1: the kernel does not tell (6.7 does) */
    int64_t waited_ms; /* in them; -1 too */
};

enum shk_flows_state { SHK_FLOWS_NONE, SHK_FLOWS_READ, SHK_FLOWS_FAILED };

/* May lie in shared memory: plain data. */
struct shk_flows {
    uint32_t state; /* enum shk_flows_state; written last */
    uint32_t count;
    uint32_t left_out; /* peers for which there was no room */
    uint64_t sent, again;
    char why[160]; /* not read */
    struct shk_flow row[SHK_FLOWS_MAX];
};

/* Reads the flows of process `pid` (0: this one) as they are now; those within the host are left
 * out. When it fails state and why say so; of a process that is gone nothing is known. */
void shk_flows_read(struct shk_flows *flows, pid_t pid);

/* Keeps in `flows` whichever saw more: sockets that were closed take their counts along. */
void shk_flows_keep(struct shk_flows *flows, const struct shk_flows *other);

/* {read, why?, left_out, rows: [{from, to, sockets, stuck, mss, rtt_us, sent, again, needless,
 * unsent, timeouts, waited_ms}]}; NULL: out of memory. */
json_t *shk_flows_json(const struct shk_flows *flows);

#endif
