/* Slow nodes and slow pairs of nodes, from what pairs measured: collective.<t>.pair_speed. The
 * search for what holds up an all-reduce asks while the job runs, the check asks of the report. */
#ifndef SHK_CORE_PAIRSPEED_H
#define SHK_CORE_PAIRSPEED_H

#include "core/text/error.h"
#include <jansson.h>

struct shk_pairspeed {
    json_t *slow;      /* [{nodes: [name] or [name, name], what: latency_us, bandwidth or mean_ms,
                          value, median}] */
    json_t *nodes;     /* names of those that are slow with whomever they talk to */
    json_t *ends;      /* and, too, of both ends of slow pairs */
    double latency_us; /* medians of all pairs in the last run */
    double bandwidth;  /* GB/s */
};

/* `measured`: {pairs, runs, bytes, rows: [{a, b, runs: [null or {latency_us, ping_wait_us,
 * bandwidth, mean_us, put_wait_us}, each an array of the parts of that run]}]}. -EINVAL: not of
 * that form, or not as many rows and runs as it says; -ENOMEM. Free with shk_pairspeed_clear(). */
int shk_pairspeed_of(const json_t *measured, struct shk_pairspeed *speed) SHK_MUST_CHECK;
void shk_pairspeed_clear(struct shk_pairspeed *speed);

#endif
