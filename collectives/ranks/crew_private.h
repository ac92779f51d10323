/* State of a running crew, shared by crew.c (start, watch, end) and crew_blame.c (who is at fault).
 */
#ifndef SHK_COLLECTIVES_CREW_PRIVATE_H
#define SHK_COLLECTIVES_CREW_PRIVATE_H

#include "collectives/ranks/crew.h"
#include "collectives/ranks/debris.h"
#include "collectives/ranks/janitor.h"
#include "collectives/ranks/job_private.h"
#include "core/run/isolate_share.h"
#include <poll.h>

/* After a cause is known, how long to collect what else went wrong. */
#define SHK_CREW_GRACE_MS 100U

/* Errors that another rank's end would explain tell nothing of which: that rank is waited for,
 * since its end may be seen long after the connections that it broke. Not so long when no rank is
 * left that could still end by itself: all wait for the one that gave up. */
#define SHK_CREW_ECHO_MS    10000U
#define SHK_CREW_SETTLED_MS 1000U

/* Of a rank whose supervisor fell silent. */
enum crew_loss {
    CREW_LOSS_UNKNOWN,
    CREW_LOSS_CLOSED, /* the connection was closed: the supervisor has ended */
    CREW_LOSS_MUTE,   /* its host still acknowledges what is sent to it, and runs others */
    CREW_LOSS_SILENT, /* its host acknowledges, and nothing tells whether it runs anything */
    CREW_LOSS_WAY,    /* nothing is acknowledged any more */
};

/* Of a rank that stands still: see crew_share.c. */
struct crew_share {
    uint64_t steps, moved_ns;         /* where it is, since when */
    uint64_t since_ns, looked_ns;     /* first and last look since then; 0: none yet */
    struct isolate_share before, now; /* at these */
};

struct crew_watch {
    int fd; /* read end of its output, -1 when closed */
    bool alive;
    bool lost;           /* no word from its supervisor since ended_ns */
    enum crew_loss loss; /* what is known of it */
    uint64_t stopped_ns; /* 0: running */
    uint64_t seen_ns;    /* when it was last seen alive */
    uint64_t ended_ns;
    int code;   /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
    int status; /* exit status or signal */
    int stopsig;
    size_t output_len;
    struct crew_share share;
    bool starved; /* it stands still because the node lets it run for less than a quarter of the
                     time, see shk_crew_share_end(), with what it got and waited for: */
    double still_ms, ran_ms, waited_ms;
};

struct crew_run {
    const struct shk_crew *crew;
    struct shk_job *job;                /* of the part that not all ranks have ended yet */
    const struct shk_crew_parts *parts; /* NULL: the job is the only one */
    unsigned part;
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
    uint64_t cause_ns;    /* when trouble with a cause of its own was first seen; 0: none yet */
    uint64_t told;        /* phase and size last reported as progress */
    uint64_t moved_ns;    /* when any rank last began a phase or an operation */
    uint64_t moved_sum;
    uint64_t oom_kills; /* of the node, before the ranks began; UINT64_MAX: unknown */
};

/* Descriptors that the caller of shk_crew_turn() may wait for as well. */
#define CREW_EXTRA 3U

/* Starts the ranks [first, last). Also after an error, end with shk_crew_end(). */
int shk_crew_begin(struct crew_run *run, struct shk_error *err) SHK_MUST_CHECK;

/* Waits a tick for output, an end or one of the `extra` descriptors, and notes what happened. */
void shk_crew_turn(struct crew_run *run, struct pollfd *extra, unsigned count);

/* Looks at the processor time of an own rank when it stands still. */
void shk_crew_share_turn(struct crew_run *run, unsigned rank);
/* Before it is judged: sets `starved` of an own rank that has not ended. */
void shk_crew_share_end(struct crew_run *run, unsigned rank);

/* Reports the phase of the rank that is furthest behind, and remembers when anything last moved. */
void shk_crew_follow(struct crew_run *run);

/* How long to go on after trouble. */
struct crew_grace {
    uint64_t cause_ns; /* with a cause of its own: see SHK_CREW_GRACE_MS */
    uint64_t echo_ns;  /* with echoes alone: see SHK_CREW_ECHO_MS */
};

/* True when there is nothing more to wait for. */
bool shk_crew_over(struct crew_run *run, const struct crew_grace *grace, bool *expired_p);

/* Has any rank met trouble of its own, rather than noticed another's? */
bool shk_crew_has_cause(const struct crew_run *run);

/* Does every rank that is left wait for one that gave up? */
bool shk_crew_settled(const struct crew_run *run);

/* Ends what still runs and frees what shk_crew_begin() made; result stays. */
void shk_crew_end(struct crew_run *run);

/* Fills result from what was seen; called when every rank has ended or is about to be ended.
 * `expired`: the deadline has passed. */
void shk_crew_blame(struct crew_run *run, bool expired);

#endif
