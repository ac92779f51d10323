/* Loss: who loses packets, from what the sockets of the ranks say of the traffic between nodes.
 *
 * The sender counts what it sends again, whoever lost it: so not the node whose counter moved is
 * named but the one that all pairs that lose have in common. Only what a host dropped of its own is
 * that host's in any case. */
#ifndef SHK_CORE_LOSS_H
#define SHK_CORE_LOSS_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A share of segments lost above which two nodes lose: more than a public network may lose from end
 * to end (ITU-T Y.1541, table 1, classes 0 to 4: IPLR 10^-3). */
#define SHK_LOSS_MUCH 1e-3

/* And one at which TCP crawls: 1.22 / sqrt(0.005), 17 segments or 25 kB are on their way at a time
 * (Mathis, Semke, Mahdavi, Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
 * Algorithm", 1997): less than the 64 kB that a host passes on in one piece, so that a loss is
 * often at the end of a burst, which takes a timer of 200 ms or more (TCP_RTO_MIN in Linux). */
#define SHK_LOSS_CRIPPLING 5e-3
#define SHK_LOSS_MATHIS    1.22

/* Fewer segments than this give no share. */
#define SHK_LOSS_SEGMENTS 300

/* What passes by (a host that had no time) shows once: between nodes that took part in one
 * measurement only, more segments than this must be lost, which is more than two of the largest
 * packets that go through a host in one piece (64 KiB, 45 segments). */
#define SHK_LOSS_ONCE 100

/* Nodes without loss must lose less than this part of what the named node loses. */
#define SHK_LOSS_CLEAN 0.25

/* Two nodes, in one direction, over all measurements. */
struct shk_loss_link {
    const char *from, *to; /* borrowed */
    double sent, lost;     /* segments; lost: sent again in need, or dropped before they left */
    double unsent;         /* of lost: dropped by `from` itself */
    double timeouts;       /* expired timers; -1 not known */
    double waited_ms;      /* in them; -1 not known */
    double stuck;          /* connections on which nothing goes through any more */
    unsigned runs;         /* measurements that it took part in */
    unsigned lossy;        /* of them, in which it lost */
    bool known, loses;
};

struct shk_loss {
    struct shk_loss_link *links;
    size_t count;
    unsigned measurements;
    json_t *nodes; /* names of those that lose, with whomever they talk to */
    json_t *rest;  /* names of the ends of pairs that lose, and of which no node is to be named */
    json_t *self;  /* of `nodes`: those that drop their own packets */
    double share;  /* lost: at the nodes, else of the worst pair */
    double others; /* lost by the worst pair without them; -1: there is no such pair */
};

/* `runs`: the value of collective.<t>.counters, which must outlive the result. -EINVAL: not of that
 * form; -ENOMEM. Free with shk_loss_clear(). */
int shk_loss_of(const json_t *runs, struct shk_loss *loss) SHK_MUST_CHECK;
void shk_loss_clear(struct shk_loss *loss);

/* Share of the segments that were lost in one direction; 0 when too few were sent. */
double shk_loss_share(const struct shk_loss_link *link);

/* Does this name stand in an array of names? */
bool shk_loss_names(const json_t *names, const char *name);

#endif
