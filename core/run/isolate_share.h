/* How much processor time a child and its descendants had, seen from outside: a child that misses
 * its deadline because nobody let it run says nothing about the library that it was in. */
#ifndef SHK_CORE_ISOLATE_SHARE_H
#define SHK_CORE_ISOLATE_SHARE_H

#include <stdbool.h>
#include <sys/types.h>

/* What was seen of one child so far; all zero at its start. Times in ms, monotonic. */
struct isolate_share {
    double seen;     /* when it was looked at last; 0: never */
    double ran;      /* processor time of the child and its descendants, ended ones included */
    double waited;   /* the longest wait for a processor of any of their threads, by the kernel's
                      * own account (which leaves out a wait that has not ended) */
    double runnable; /* time in which a thread of them was running or wanted to */
    double tail_ran; /* ran and runnable as they were when the last stretch began */
    double tail_runnable, tail_began;
    bool nested; /* it had children itself */
};

/* Looks at /proc for the processes below `pid`. `now` and `began` (of the child): ms, monotonic.
 * tail_ms: the last stretch before the deadline that is also judged by itself. Costs one small
 * file per thread (at most 256), so call it some times a second, and once before the kill. */
void shk_isolate_share_look(struct isolate_share *share, pid_t pid, double now, double began,
                            double deadline_ms, double tail_ms);

/* Was it the machine? True when for half of the time a thread wanted a processor and had none, and
 * all of them together ran for less than a quarter of the time: one that sleeps wants none, and one
 * that spins beside three others on the same processor still gets its quarter. The same when a
 * child that waits for children of its own had no processor in the last stretch, in which it should
 * have told of them. False where /proc tells nothing. */
bool shk_isolate_share_starved(const struct isolate_share *share, double ms);

/* The wait that goes with it, ms: at most what was not spent running. */
double shk_isolate_share_waited(const struct isolate_share *share, double ms);

#endif
