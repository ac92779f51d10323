/* Ranks as processes of this host, with the code of a real job from the greeting to the worker's
 * end; their workers only exchange values. Rank 0 is the test. */
#ifndef SHK_TESTS_SPREAD_SUPPORT_H
#define SHK_TESTS_SPREAD_SUPPORT_H

#include "collectives/launch/world_private.h"

enum { SPREAD_MOST = 40, SPREAD_FENCES = 3 };

/* What a worker found. */
struct spread_result {
    unsigned right, wrong; /* values of others */
};

struct spread {
    struct shk_world world;
    struct shk_world_options options;
    pid_t pids[SPREAD_MOST];
    unsigned per_node;          /* ranks; 0: one */
    unsigned bad_key;           /* rank with another key for the others; 0: none */
    unsigned pause_ms;          /* of every worker before each fence, */
    bool pause_last;            /* or only of the last rank's */
    uint64_t sent[SPREAD_MOST]; /* by rank 0 to each, before the run */
    struct hub_group *group;
};

/* Exchanges values. */
extern const struct shk_transport spread_exchange;

/* Starts `ranks` and waits until all have come. */
void spread_start(struct spread *s, unsigned ranks);
/* One exchange of all of them. */
void spread_begin(struct spread *s);
void spread_finish(struct spread *s);
/* Lets rank 0 work until so many ranks take frames from others, or for this long. */
void spread_wait_joined(struct spread *s, unsigned ranks);
void spread_wait_ms(struct spread *s, unsigned ms);
void spread_wait_lost(struct spread *s, unsigned rank);
/* Did rank 0 itself send this run's frames to the rank? */
bool spread_direct(const struct spread *s, unsigned rank);
/* The exchange succeeded, and every rank got all values of all ranks. */
void spread_expect_right(struct spread *s);
void spread_end(struct spread *s);

#endif
