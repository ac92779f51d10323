/* Counters of errors that devices of a node keep: network, GPUs, PCIe, memory, and what the kernel
 * logged about them. Read before and after a collective: only what moves meanwhile says anything
 * about it, an old total may be from last year. */
#ifndef SHK_PROBES_COUNTERS_H
#define SHK_PROBES_COUNTERS_H

#include "core/host/host.h"
#include <jansson.h>

/* What a counter counts:
 *   "resent"       sent again, or waited for in vain: counted by the sender, whoever lost it
 *   "missed"       arrived damaged, out of order or not at all: counted by the receiver
 *   "link"         an error of this node's own network link: cable, transceiver, port
 *   "down"         the link of this node went away
 *   "busy"         the receiver had no room, or the network slowed the sender: load
 *   "corrected"    an error that the hardware made good (ECC, PCIe)
 *   "replay"       a transfer that PCIe sent again
 *   "link-replay"  NVLink or XGMI sent again, or recovered
 *   "link-crc"     a damaged flit on NVLink
 *   "uncorrected"  data was lost
 *   "slowed"       nanoseconds at lower clocks for heat or the power supply
 *   "slowed-cycles" cycles of the firmware of an AMD GPU at lower clocks for heat, "cycles" all
 *   "capped"       nanoseconds at lower clocks for the power limit: as intended
 *   "event"        lines of the kernel's log
 * Classes of scopes: "network", "gpu", "pci", "memory", "log". */

/* As it is now: {time: s, values: {scope: {counter: number}}, kinds: {counter: kind}, classes:
 * {scope: class}, unread: {scope: why}, log: {last: sequence number, events: [{seq, scope, class,
 * counter, line}]}}. Scopes: "tcp", names of interfaces, "mlx5_0/1" (device and port), "cxi0", PCI
 * addresses of GPUs, "PCIe of 0000:41:00.0" (with the RDMA device or interface it belongs to),
 * "mc0" (memory controller), "kernel log". A counter that this hardware does not have is not in it.
 * In two parts: what files and sockets tell is read by the first, the GPUs are asked meanwhile in a
 * process of its own, with a deadline (initializing NVML takes 0.3 s), and waited for by the
 * second, which frees the reading. Its time is that of the first. NULL: out of memory. */
struct shk_counters_reading;
struct shk_counters_reading *shk_counters_read_begin(const struct shk_host *host);
json_t *shk_counters_read_end(struct shk_counters_reading *reading);

#endif
