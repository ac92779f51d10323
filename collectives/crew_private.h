/* State of a running crew, shared by crew.c (start, watch, end) and crew_blame.c (who is at fault).
 */
#ifndef SHK_COLLECTIVES_CREW_PRIVATE_H
#define SHK_COLLECTIVES_CREW_PRIVATE_H

#include "collectives/crew.h"
#include "collectives/debris.h"
#include "collectives/janitor.h"
#include "collectives/job_private.h"

/* After the first sign of trouble, how long to collect what else went wrong: the rank that died
 * may be seen after the ones whose connections it broke. */
#define SHK_CREW_GRACE_MS 100U

struct crew_watch {
    int fd; /* read end of its output, -1 when closed */
    bool alive;
    uint64_t stopped_ns; /* 0: running */
    uint64_t ended_ns;
    int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
    int status; /* exit status or signal */
    int stopsig;
    size_t output_len;
};

struct crew_run {
    const struct shk_crew *crew;
    struct shk_job *job;
    struct shk_crew_result *result;
    struct crew_watch *watch;
    struct shk_debris *debris;
    struct shk_janitor janitor;
    int *cpus; /* one per rank; NULL: not bound */
    uint64_t start_ns;
    uint64_t deadline_ns; /* 0: none */
    uint64_t trouble_ns;  /* 0: none yet */
    uint64_t told;        /* phase and size last reported as progress */
    uint64_t moved_ns;    /* when any rank last began a phase or an operation */
    uint64_t moved_sum;
};

/* Fills result from what was seen; called when every rank has ended or is about to be ended.
 * `expired`: the deadline has passed. */
void shk_crew_blame(struct crew_run *run, bool expired);

#endif
