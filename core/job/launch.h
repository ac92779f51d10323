/* Launchers: the variables by which each tells its processes how many they are and where. The
 * catalogue has them (config/launchers); the main program installs them with the uses. */
#ifndef SHK_CORE_LAUNCH_H
#define SHK_CORE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>

/* Lists of variables end with NULL and are NULL when empty; of several the first that is set
 * counts. */
struct shk_launch {
    const char *key;          /* of the row */
    const char *name;         /* as in job.launcher */
    const char *title;        /* as its users call it */
    bool allocation;          /* not a launcher: the job around a process that none started */
    bool inherits;            /* its processes have the PMIX_* of the one task that started them */
    const char *const *needs; /* all of them are set; NULL: processes tells */
    const char *const *processes; /* titles of the processes of its ranks, `*` for any characters */
    const char *const *nodes, *const *ranks, *const *rank;
    const char *const *local_rank, *const *local_ranks;
    /* Without local_ranks: "4(x2),1" for the nodes of the step, and the place of this node. */
    const char *const *tasks_per_node, *const *node_rank;
    /* Where rank 0 is: its host and a port that the job uses there, or the nodes of the step, the
     * first of which has it. */
    const char *const *address, *const *port, *const *nodelist;
    const char *const *job; /* what other jobs do not have, as many as are set; none is a secret */
    const char *place;      /* FILE:LINE of the row */
};

/* Borrows the rows until the next call; the outermost launcher comes first. Not to be called while
 * another thread runs. */
void shk_launch_install(const struct shk_launch *rows, size_t count);

/* Value of a variable, NULL when it is not set. */
typedef const char *shk_launch_get(const char *variable, void *arg);

/* The innermost launcher whose variables are set (empty ones are not): mpirun inside of a Slurm
 * step sets both kinds, and the ranks are mpirun's. NULL: none. */
const struct shk_launch *shk_launch_find(shk_launch_get *get, void *arg);

/* All of them, the innermost first: start with *at = 0. NULL: no more. */
const struct shk_launch *shk_launch_next(size_t *at);

/* The one whose ranks have such a title, as ps shows it. NULL: none. */
const struct shk_launch *shk_launch_titled(const char *title);

/* How far inside a launcher of this name may be: a larger number than that of one which starts it.
 * -1: there is none. */
int shk_launch_depth(const char *name);

/* Of "4(x2),1": how many tasks the node of this index has; 0: the text does not tell. */
unsigned shk_launch_tasks_of(const char *list, unsigned node);

#endif
