/* Between find.c and plain.c: the processes of the host. */
#ifndef SHK_PROBES_HANG_FIND_H
#define SHK_PROBES_HANG_FIND_H

#include "probes/hang/hang_private.h"

struct find_table {
    const struct shk_host *host;
    const struct shk_hang_want *want;
    struct hang_process *all;
    size_t count;
};

/* NULL: there is none. */
struct hang_process *find_by_pid(const struct find_table *table, long pid);
/* Is it `ancestor`, or below it? */
bool find_below(const struct find_table *table, const struct hang_process *process, long ancestor);
/* We, what we started, or what started us. */
bool find_ours(const struct find_table *table, const struct hang_process *process);
/* In the container that is asked for. */
bool find_in_container(const struct find_table *table, const struct hang_process *process);
/* Has it mapped one of want->libraries? */
bool find_has_library(const struct find_table *table, struct hang_process *process);

/* A rank that has set the variables of its launcher itself shows them in those that it started, as
 * loaders of data, and not in /proc: gives them to it, where it has TCP connections. */
void find_setters(struct find_table *table);

/* The ranks at and below a process, NULL: in the container that is asked for, of which no variable
 * and no title tells: those with a library for communication and TCP connections of their own.
 * Where no process has such a library, those that the process has forked. Fewer than two are none.
 * Returns how many. */
size_t find_plain(struct find_table *table, const struct hang_process *top,
                  struct hang_process **found, size_t most);

#endif
