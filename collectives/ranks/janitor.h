/* Janitor: a process that outlives the supervisor only to clean up after it.
 *
 * The ranks of a supervisor that is killed die with it (parent-death signal), but their shared
 * memory files would stay, since nobody is left to remove them. */
#ifndef SHK_COLLECTIVES_JANITOR_H
#define SHK_COLLECTIVES_JANITOR_H

#include "collectives/ranks/debris.h"
#include "collectives/ranks/job.h"
#include <sys/types.h>

struct shk_janitor {
    pid_t pid; /* 0: none */
    int fd;    /* the supervisor's end of a pipe: closed by its death */
};

/* Starts it, before the ranks. Best effort: without one, the crew still runs. */
void shk_janitor_start(struct shk_janitor *janitor, const struct shk_job *job,
                       struct shk_debris *debris);

/* In a rank, after fork: drops the pipe end that it inherited. */
void shk_janitor_forget(const struct shk_janitor *janitor);

/* The supervisor has cleaned up itself: the janitor goes home. */
void shk_janitor_dismiss(struct shk_janitor *janitor);

#endif
