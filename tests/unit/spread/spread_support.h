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
    unsigned bad_key; /* rank with another key; 0: none */
    struct hub_group *group;
};

/* Starts `ranks` and waits until all have come. */
void spread_start(struct spread *s, unsigned ranks);
/* One exchange of all of them; deadline in ms. */
void spread_begin(struct spread *s, unsigned deadline_ms);
void spread_finish(struct spread *s);
/* The exchange succeeded, and every rank got all values of all ranks. */
void spread_expect_right(struct spread *s);
void spread_end(struct spread *s);

#endif
