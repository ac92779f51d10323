/* `shakedown hang`: the processes of a running job, looked at from outside, as one JSON document
 * (the nodes of "shakedown.hang/1", reports/schema/hang-1.schema.json).
 *
 * Read-only: of a thread registers and stack are copied while it is stopped, one thread after the
 * other, and unwound afterwards from the copy by a child without rights. Everything that waits (a
 * file system, a thread that cannot be stopped) is in a child with a deadline. */
#ifndef SHK_PROBES_HANG_H
#define SHK_PROBES_HANG_H

#include "core/host/host.h"
#include "core/text/nameset.h"

#include <jansson.h>

struct shk_hang_want {
    const long *pids; /* and what they started; none: the ranks of one job of this host */
    size_t pids_count;
    const char *job; /* only ranks of this job of the batch system, "ID" or "ID.STEP"; NULL: any */
    const char *container;        /* only ranks in the container whose ID begins so; NULL: any */
    double seconds;               /* between the first and the last look */
    const char *const *libraries; /* beginnings of file names whose versions are written down;
                                     NULL-terminated, NULL: none */
    const struct shk_name_set *names; /* of variables that are written down; NULL: none */
    bool no_stacks;                   /* nothing is stopped */
    bool intrusive;                   /* the ranks may be asked for dumps */
};

/* Looks at this host: *node_p becomes {host, seconds, samples, ranks: [...], unread: [...],
 * partial, dumps, flight, ras_first, ras, …}, a new reference. -ESRCH: no such process, or none
 * that a launcher started (text says which); -EMLINK: ranks of several jobs (text lists them);
 * other negative errno: could not look. */
int shk_hang_look(const struct shk_host *host, const struct shk_hang_want *want, json_t **node_p,
                  struct shk_error *err) SHK_MUST_CHECK;

/* "libdw 0.188", NULL when this build reads no stacks. */
const char *shk_hang_unwinder(void);

#endif
