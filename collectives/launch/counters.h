/* Counters of loss and error that a node keeps: TCP of this network namespace, its interfaces, RDMA
 * ports (InfiniBand, RoCE, EFA) and Slingshot (CXI). Only what moves while something is measured
 * says anything about it: an old total may be from last year. */
#ifndef SHK_COLLECTIVES_COUNTERS_H
#define SHK_COLLECTIVES_COUNTERS_H

#include "core/host/host.h"
#include <jansson.h>

/* What a counter counts:
 *   "resent"  sent again, or waited for in vain: counted by the sender, whoever lost the packet
 *   "missed"  arrived damaged, out of order or not at all: counted by the receiver
 *   "link"    an error of this node's own link: cable, transceiver, port
 *   "busy"    the receiver had no room: a matter of load, not of the network */

/* As it is now: {values: {scope: {counter: number}}, unread: {scope: why}}. Scopes: "tcp", names of
 * interfaces, "mlx5_0/1" (device and port), "cxi0". A counter that this hardware does not have is
 * not in it. NULL: out of memory. */
json_t *shk_counters_read(const struct shk_host *host);

/* What came in between: {read: [scope], moved: [{scope, counter, kind, by}], unread: [{scope,
 * why}]}. A scope that was read only once, or whose counter went back (the device was reset), is
 * unread. NULL: out of memory. */
json_t *shk_counters_moved(const json_t *before, const json_t *after);

#endif
