/* Bisection: the nodes that an all-reduce fails with, found by running it over parts of them.
 *
 * Halves that fail are halved again, all at once, until single nodes are left. When a set fails and
 * neither of its halves does, the fault needs both: each half is then made as small as the failure
 * allows while the other stays, and each member of what is left is replaced by a node from outside,
 * which tells the node that matters from its company. What is found is tried once more. Nothing
 * here runs anything. */
#ifndef SHK_COLLECTIVES_BISECT_H
#define SHK_COLLECTIVES_BISECT_H

#include <stdbool.h>
#include <stddef.h>

/* One all-reduce over some nodes. */
struct shk_bisect_trial {
    const unsigned *nodes; /* indices */
    unsigned count;
    bool failed; /* set by try() */
};

/* Runs trials that have no node in common at once. Returns 0; negative to end the search (no time
 * left, out of memory). */
typedef int (*shk_bisect_try)(void *arg, struct shk_bisect_trial *trials, unsigned count);

enum shk_bisect_kind {
    SHK_BISECT_PASSED, /* all together passed this time */
    SHK_BISECT_ALONE,  /* `nodes`: each fails with its own ranks alone; others do not */
    SHK_BISECT_NODE,   /* nodes[0]: a group fails with it and passes with another in its place */
    SHK_BISECT_PAIR,   /* two nodes: only together */
    SHK_BISECT_GROUP,  /* `nodes`: more than two, only together */
    SHK_BISECT_NUMBER, /* any `count` nodes fail, whichever */
    SHK_BISECT_ALL,    /* every node fails alone */
    SHK_BISECT_CHANCE, /* what was found passed when tried once more: it fails now and then */
    SHK_BISECT_ENDED,  /* the search was ended; `nodes`: the smallest set known to fail */
};

struct shk_bisect_result {
    enum shk_bisect_kind kind;
    unsigned *nodes; /* free() */
    unsigned count;
};

/* Searches nodes 0 to count - 1 (at least 2). -ENOMEM. */
int shk_bisect(unsigned count, shk_bisect_try run, void *arg, struct shk_bisect_result *result);

#endif
