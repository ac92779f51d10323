/* The shared segment, for job.c and the supervisor. */
#ifndef SHK_COLLECTIVES_JOB_PRIVATE_H
#define SHK_COLLECTIVES_JOB_PRIVATE_H

#include "collectives/counters/flows.h"
#include "collectives/ranks/job.h"
#include <stdatomic.h>
#include <sys/types.h>

#define SHK_JOB_LINE 64 /* bytes of a cache line: what one rank polls must not share one */

/* One rank's part; written by that rank only (pid also by the supervisor). */
struct shk_job_slot {
    _Alignas(SHK_JOB_LINE) _Atomic uint64_t epoch; /* barriers that the rank has entered */
    uint64_t value[2];                             /* of the barrier, by parity of the epoch */

    _Alignas(SHK_JOB_LINE) _Atomic int phase;
    _Atomic uint64_t bytes;
    _Atomic uint64_t op;
    _Atomic int waiting; /* peer, -1 none */

    _Atomic int go; /* of a later part of a crew: the supervisor lets its ranks begin */
    _Atomic int pid;
    _Atomic int failed; /* written last: the members below are then complete */
    int fail_errnum;
    bool fail_by_peer;
    bool fail_disagrees; /* what ranks published differs: agree.h */
    uint64_t fail_ns;
    struct shk_error fail;

    char library[128]; /* breadcrumbs, see core/run/isolate.h */
    char call[128];

    _Atomic uint32_t used; /* bytes of space */
    char space[SHK_JOB_SPACE];
};

struct shk_job {
    unsigned ranks;
    unsigned rank; /* UINT_MAX in the supervisor */
    bool crowded;
    int wake_fd;    /* eventfd that tells the supervisor of a new epoch; -1: all ranks are local */
    int go_fd;      /* eventfd that tells the worker of the others' arrival; -1 as well */
    uint64_t epoch; /* of this process */
    size_t result_bytes;
    size_t map_bytes;
    struct shk_job_slot *slots; /* shared */
    unsigned char *results;     /* shared */
    struct shk_flows *flows;    /* shared, of the only rank here; NULL: nobody wants to know */
};

uint64_t shk_job_now_ns(void); /* CLOCK_MONOTONIC */

/* Supervisor of one rank of a job whose other ranks are elsewhere: entering a barrier makes wake_fd
 * readable, and the others' arrival is written into their slots with shk_job_release(). `local`:
 * ranks of the job on this host. */
int shk_job_make_remote(struct shk_job *job, unsigned local, struct shk_error *err) SHK_MUST_CHECK;

/* All ranks have entered barrier `epoch`; `max` is the largest value. Not the slot of `self`, which
 * its worker writes. */
void shk_job_release(struct shk_job *job, unsigned self, uint64_t epoch, uint64_t max);

#endif
