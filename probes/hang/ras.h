/* NCCL's RAS service of a running job: which rank has launched fewer collectives than the others
 * (NVIDIA/nccl:src/ras/client_support.cc; on by default from 2.24 on). */
#ifndef SHK_PROBES_RAS_H
#define SHK_PROBES_RAS_H

#include "core/text/error.h"

#include <jansson.h>
#include <stddef.h>

/* Of an answer; with thousands of ranks it has some 100 KiB. */
#define SHK_RAS_MAX ((size_t)4 << 20)

/* What an answer (hostile; cut at SHK_RAS_MAX) says, a new reference:
 *   {version, counts: [{communicator, operation, groups: [{count, ranks, known: [{rank, pid,
 * node}]}]}], dead: [{pid, node}]} `ranks` is how many have that count, `known` those of them that
 * it names. NULL: out of memory. */
json_t *shk_ras_parse(const char *text, size_t length);

/* In a child of core/run/isolate.h, which gives up its rights: asks the service on this host's
 * loopback at `port`. -ECONNREFUSED …, -ETIMEDOUT with text. */
int shk_ras_ask(unsigned port, json_t **answer_p, struct shk_error *err) SHK_MUST_CHECK;

/* The port of an address as NCCL takes it ("localhost:28028"), where it is one of this host's
 * loopback; 0: it is not. NULL is NCCL's default. */
unsigned shk_ras_port(const char *address);

#endif
