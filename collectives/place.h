/* Placement: which CPU each local rank runs on. Ranks that poll must not share one while others are
 * idle, and the scheduler is slow to see to that. */
#ifndef SHK_COLLECTIVES_PLACE_H
#define SHK_COLLECTIVES_PLACE_H

#include <stdbool.h>

/* Chooses one CPU per rank from those that this process may use, one hardware thread per core
 * first, spread evenly. False (nothing written) when there are fewer CPUs than ranks or they cannot
 * be told. */
bool shk_place_cpus(unsigned ranks, int *cpus);

/* Binds the calling process to one CPU; best effort. */
void shk_place_bind(int cpu);

#endif
