/* State of a running crew, shared by crew.c (start, watch, end) and crew_blame.c (who is at fault).
 */
#ifndef SHK_COLLECTIVES_CREW_PRIVATE_H
#define SHK_COLLECTIVES_CREW_PRIVATE_H

#include "collectives/crew.h"
#include "collectives/debris.h"
#include "collectives/janitor.h"
#include "collectives/job_private.h"
#include <poll.h>

/* After the first sign of trouble, how long to collect what else went wrong: the rank that died
 * may be seen after the ones whose connections it broke. */
#define SHK_CREW_GRACE_MS 100U

struct crew_watch {
    int fd; /* read end of its output, -1 when closed */
    bool alive;
    bool lost;           /* no word from its supervisor since ended_ns */
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
    unsigned first, last; /* ranks that run as our children: [first, last) */
    struct pollfd *fds;   /* last - first, then CREW_EXTRA */
    struct shk_debris *debris;
    struct shk_janitor janitor;
    int *cpus; /* one per rank; NULL: not bound */
    uint64_t start_ns;
    uint64_t deadline_ns; /* 0: none */
    uint64_t trouble_ns;  /* 0: none yet */
    uint64_t told;        /* phase and size last reported as progress */
    uint64_t moved_ns;    /* when any rank last began a phase or an operation */
    uint64_t moved_sum;
    uint64_t oom_kills; /* of the node, before the ranks began; UINT64_MAX: unknown */
};

/* Descriptors that the caller of shk_crew_turn() may wait for as well. */
#define CREW_EXTRA 2U

/* Starts the ranks [first, last). Also after an error, end with shk_crew_end(). */
int shk_crew_begin(struct crew_run *run, struct shk_error *err) SHK_MUST_CHECK;

/* Waits a tick for output, an end or one of the `extra` descriptors, and notes what happened. */
void shk_crew_turn(struct crew_run *run, struct pollfd *extra, unsigned count);

/* Reports the phase of the rank that is furthest behind, and remembers when anything last moved. */
void shk_crew_follow(struct crew_run *run);

/* True when there is nothing more to wait for. `grace_ns`: see SHK_CREW_GRACE_MS. */
bool shk_crew_over(struct crew_run *run, uint64_t grace_ns, bool *expired_p);

/* Ends what still runs and frees what shk_crew_begin() made; result stays. */
void shk_crew_end(struct crew_run *run);

/* Fills result from what was seen; called when every rank has ended or is about to be ended.
 * `expired`: the deadline has passed. */
void shk_crew_blame(struct crew_run *run, bool expired);

#endif
