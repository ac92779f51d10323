/* Launchers: the variables by which each tells its processes how many they are and where. */
#ifndef SHK_CORE_LAUNCH_H
#define SHK_CORE_LAUNCH_H

#include <stdbool.h>

enum { SHK_LAUNCH_NAMES = 3 };

/* Lists of variables end with NULL; of several the first that is set counts. */
struct shk_launch {
    const char *name;  /* as in job.launcher */
    const char *title; /* as its users call it */
    bool allocation;   /* not a launcher: the job around a process that none started */
    bool inherits;     /* its processes have the PMIX_* of the one task that started them all */
    const char *needs[SHK_LAUNCH_NAMES]; /* all of them are set */
    const char *nodes[SHK_LAUNCH_NAMES], *ranks[SHK_LAUNCH_NAMES], *rank[SHK_LAUNCH_NAMES];
    const char *local_rank[SHK_LAUNCH_NAMES], *local_ranks[SHK_LAUNCH_NAMES];
};

/* Value of a variable, NULL when it is not set. */
typedef const char *shk_launch_get(const char *variable, void *arg);

/* The innermost launcher whose variables are set (empty ones are not); NULL: none. */
const struct shk_launch *shk_launch_find(shk_launch_get *get, void *arg);

#endif
