/* A transport with ranks of this host, and the counters of the host around it. */
#ifndef SHK_COLLECTIVES_COUNTERS_H
#define SHK_COLLECTIVES_COUNTERS_H

#include "collectives/collective.h"

#include <stdint.h>

/* The last reading: what follows at once begins with it, instead of reading once more (NVML alone
 * takes 0.2 s). Starts zeroed; shk_counters_forget() at the end. */
struct shk_counters_kept {
    json_t *after;
    uint64_t read_ns;
};

/* Counters before a run: those after the last one where that was just now, else read. NULL: read()
 * has none. The caller's. */
json_t *shk_counters_before(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg);
/* Counters after a run: always read. The caller's. */
json_t *shk_counters_after(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg);
void shk_counters_forget(struct shk_counters_kept *kept);

/* Runs it; options->counters (NULL: nobody wants to know) is asked before and after:
 * collective.<name>.moved has what came in between (core/job/moved.h). */
int shk_counters_run(const struct shk_transport *transport,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err) SHK_MUST_CHECK;

#endif
