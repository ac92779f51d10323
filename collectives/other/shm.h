/* Transport "shm": the all-reduce between processes of this node through shared memory of our own.
 * libfabric is not used, nor loaded.
 *
 * The ranks inherit one anonymous mapping from the process that starts them: it has no name, so
 * /dev/shm is not needed and nothing of it can be left behind.
 *
 * Facts: the members of collective.fabric.* that do not speak of libfabric. */
#ifndef SHK_COLLECTIVES_SHM_H
#define SHK_COLLECTIVES_SHM_H

#include "collectives/algorithm/wire.h"
#include "collectives/collective.h"

/* What tests may change; zeroed for the real thing. */
struct shk_shm_tweaks {
    void (*tamper)(struct shk_wire *wire, size_t bytes, void *arg); /* see shk_sweep_options */
    void *tamper_arg;
    /* Called by each rank at the start of a phase; may kill, stop, hang. */
    void (*at_phase)(struct shk_job *job, enum shk_phase phase, void *arg);
    void *at_phase_arg;
};

/* shk_transport_shm.run with tweaks (may be NULL). */
int shk_shm_run(const struct shk_collective_options *options, const struct shk_shm_tweaks *tweaks,
                struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

extern const struct shk_transport shk_transport_shm;

#endif
