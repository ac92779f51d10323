/* Crew: one process per local rank, watched by the caller, which never enters vendor code itself.
 *
 * A rank that dies, stops, exits, reports an error or hangs ends the whole crew, and the result
 * names the rank that was first and the phase it was in, not the ranks that noticed. Every process
 * is gone on return, with its children and what it left in /dev/shm. */
#ifndef SHK_COLLECTIVES_CREW_H
#define SHK_COLLECTIVES_CREW_H

#include "collectives/collective.h"
#include "collectives/ranks/job.h"
#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

/* A stopped rank is given this long to continue (a debugger, a batch system that suspends) before
 * the crew gives up; the deadline ends it earlier. */
#define SHK_CREW_STOPPED_MS 4000U

/* Bytes kept of the end of what a rank wrote to its standard output and error. */
#define SHK_CREW_OUTPUT 2048U

struct shk_crew {
    const char *name;     /* prefix of progress texts */
    unsigned deadline_ms; /* from the start of the run; 0: none */
    /* Runs in the child. Returns 0, or a negative errno with text in err (or recorded with
     * shk_job_fail()). */
    int (*work)(struct shk_job *job, void *arg, struct shk_error *err);
    void *arg;
    void (*progress)(const char *text, void *arg); /* may be NULL */
    void *progress_arg;
};

/* One with the deadline and the progress of the options. */
struct shk_crew shk_crew_of(const struct shk_collective_options *options, const char *name,
                            int (*work)(struct shk_job *job, void *arg, struct shk_error *err),
                            void *arg);

enum shk_crew_outcome {
    SHK_CREW_OK,
    SHK_CREW_FAILED,
    SHK_CREW_CRASHED,
    SHK_CREW_TIMEOUT,
    SHK_CREW_STARVED, /* its time ran out while a node left a rank no processor: not known */
};

/* As a collective's status. */
const char *shk_crew_status(enum shk_crew_outcome outcome);

enum shk_rank_status {
    SHK_RANK_NOT_STARTED,
    SHK_RANK_RUNNING,
    SHK_RANK_OK,
    SHK_RANK_FAILED,  /* reported an error */
    SHK_RANK_CRASHED, /* killed by a signal that we did not send, or exited on its own */
    SHK_RANK_STOPPED,
    SHK_RANK_HUNG,    /* the others waited for it at the deadline */
    SHK_RANK_ABORTED, /* ended by us because of another rank or the deadline */
    SHK_RANK_LOST,    /* its supervisor fell silent or is gone: the node, its network, a kill */
};

const char *shk_rank_status_name(enum shk_rank_status status);

struct shk_crew_rank {
    pid_t pid;
    unsigned id; /* rank in the whole job: differs from the index when only some ranks take part */
    char host[64]; /* "": this one */
    enum shk_rank_status status;
    char phase[64];
    char output[SHK_CREW_OUTPUT]; /* "" when it wrote nothing */
};

struct shk_crew_result {
    enum shk_crew_outcome outcome;
    int rank;           /* to blame; -1 when none can be named */
    bool moving;        /* timed out, but was getting on: slow rather than hung */
    bool out_of_memory; /* crashed: the kernel killed it for want of memory */
    char phase[64];     /* where it stopped; "" when OK */
    const char *cause;  /* "rank-ended", "rank-stopped", "rank-silent", "rank-hung", "all-hang",
                           "node-unreachable", "node-memory"; NULL: another one */
    json_t *disagree;   /* see shk_agree_judge(); NULL when OK */
    struct shk_error reason;     /* one line naming rank and phase; "" when OK */
    struct shk_crew_rank *ranks; /* one per rank of the job */
};

/* Runs the job's ranks to their end. Fails only when no rank could be started (-ENOMEM, -EAGAIN …).
 * Free with shk_crew_result_clear(). */
int shk_crew_run(const struct shk_crew *crew, struct shk_job *job, struct shk_crew_result *result,
                 struct shk_error *err) SHK_MUST_CHECK;
void shk_crew_result_clear(struct shk_crew_result *result);

/* Several jobs, one after the other, in the same processes: work() is called for each of them, with
 * a deadline of its own, and what a rank does not publish or leave in the job is its own affair. */
struct shk_crew_parts {
    struct shk_job *const *jobs; /* alike */
    const char *const *names;    /* prefixes of progress texts, instead of the crew's */
    unsigned count;
    /* Every rank has ended part `part`, and none with an error: what is in its job is complete. The
     * ranks wait for the return. False: no further part is wanted. */
    bool (*ended)(unsigned part, const struct shk_crew_result *result, void *arg);
    void *arg;
};

/* Runs the parts until one does not end well, or ended() says so. *done_p: how many ended well;
 * when that is not all of them and ended() did not say so, result is of the next one. */
int shk_crew_run_parts(const struct shk_crew *crew, const struct shk_crew_parts *parts,
                       struct shk_crew_result *result, unsigned *done_p,
                       struct shk_error *err) SHK_MUST_CHECK;

/* collective.<t>.ranks_state: [{rank, pid, host, phase, status}]. NULL: out of memory. */
json_t *shk_crew_ranks_json(const struct shk_job *job, const struct shk_crew_result *result);

#endif
