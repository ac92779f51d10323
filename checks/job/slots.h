/* Ranks of a run without a launcher, and the processors that they share. */
#ifndef SHK_CHECKS_SLOTS_H
#define SHK_CHECKS_SLOTS_H

#include "core/facts/facts.h"

#include <stdbool.h>

/* Ranks that were started here, one for each GPU, and processors that they may run on; false: there
 * is a job, there were no such ranks, or one of both is not known. */
bool shk_local_slots(const struct shk_facts *facts, long long *ranks_p, long long *cpus_p);

#endif
