/* Logs of NCCL's Inspector (NVIDIA/nccl:plugins/profiler/inspector) next to each other: in which
 * rank a collective took the least time. All ranks leave a collective together, so the one that was
 * inside for the shortest time came last, and the others waited for it. What stands out becomes
 * lines that logs are searched for like any other (config/signatures/flight.yaml):
 *   nccl-inspector[late]   a rank came last in most collectives, and the others waited
 *   nccl-inspector[even]   no rank did */
#ifndef SHK_PROBES_INSPECTOR_H
#define SHK_PROBES_INSPECTOR_H

#include "core/text/strbuf.h"

struct shk_inspector;

/* One collective of one rank. Texts are copied. */
struct shk_inspector_call {
    const char *communicator, *operation, *host;
    long rank, ranks;   /* of so many in the communicator */
    long long sequence; /* of the operation in the communicator */
    long long took_us;
};

struct shk_inspector *shk_inspector_create(void);            /* NULL: out of memory */
void shk_inspector_destroy(struct shk_inspector *inspector); /* NULL is allowed */

/* Numbers that cannot be are left out, and so is what comes after a million calls. -ENOMEM. */
int shk_inspector_add(struct shk_inspector *inspector, const struct shk_inspector_call *call);

/* Adds the lines to `text`; sorts what is kept. */
void shk_inspector_compare(struct shk_inspector *inspector, struct shk_strbuf *text);

#endif
