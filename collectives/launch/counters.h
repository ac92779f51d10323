/* A transport with ranks of this host, and the counters of the host around it. */
#ifndef SHK_COLLECTIVES_COUNTERS_H
#define SHK_COLLECTIVES_COUNTERS_H

#include "collectives/collective.h"

/* Runs it; options->counters (NULL: nobody wants to know) is asked before and after:
 * collective.<name>.moved has what came in between (core/job/moved.h). */
int shk_counters_run(const struct shk_transport *transport,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err) SHK_MUST_CHECK;

#endif
