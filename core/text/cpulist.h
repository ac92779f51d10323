/* Lists of processors as the kernel writes them: "0-3,8". */
#ifndef SHK_CORE_CPULIST_H
#define SHK_CORE_CPULIST_H

#include <stdbool.h>

/* The next range, both ends included; *list_p moves on. false: no more, or what follows is none.
 * NULL is an empty list. */
bool shk_cpulist_next(const char **list_p, long *first_p, long *last_p);

/* Is it such a list, whole, with at least one processor? */
bool shk_cpulist_valid(const char *list);

/* How many processors; 0: none, or no list. */
long long shk_cpulist_count(const char *list);

/* The highest one; -1: none. */
long shk_cpulist_last(const char *list);

bool shk_cpulist_has(const char *list, long cpu);

/* Have two lists one in common? */
bool shk_cpulist_meet(const char *a, const char *b);

#endif
