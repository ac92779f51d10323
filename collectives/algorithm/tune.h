/* Tuning: which all-reduce algorithm is fastest for which size between these ranks, measured at
 * start-up. Every rank comes to the same choice. */
#ifndef SHK_COLLECTIVES_TUNE_H
#define SHK_COLLECTIVES_TUNE_H

#include "collectives/algorithm/allreduce.h"

/* Longest that tuning takes, apart from what one operation of each algorithm takes. */
#define SHK_TUNE_BUDGET_NS UINT64_C(300000000)

/* So long, but no more than a tenth of what is left until the deadline (0: none). */
uint64_t shk_tune_share(uint64_t deadline_ns, uint64_t want_ns);

/* Larger messages use what was best here: all that matters is bandwidth by then. */
#define SHK_TUNE_MAX_BYTES ((size_t)4 << 20)

struct shk_tune_choice {
    bool measured;      /* or preset: shk_tune_mapped() */
    uint32_t algorithm; /* index in shk_algorithms */
    size_t piece_bytes;
};

/* By the logarithm of the message size in bytes, rounded down. Zeroed: nothing measured. */
struct shk_tune {
    size_t max_drop;  /* of all ranks' wires */
    size_t free_drop; /* the same */
    struct shk_tune_choice choice[64];
};

/* Tries the algorithms with messages of min_bytes to max_bytes. Stops early when budget_ns are
 * spent. An error only when the wire fails. */
int shk_tune_run(struct shk_wire *wire, size_t min_bytes, size_t max_bytes, uint64_t budget_ns,
                 struct shk_tune *tune) SHK_MUST_CHECK;

/* Choices for ranks that map each other's heaps, as if measured: what is measured replaces them. */
void shk_tune_mapped(struct shk_tune *tune, unsigned ranks);

/* What to use: the choice of the nearest measured size at or below, where it fits; otherwise the
 * default. */
struct shk_tune_choice shk_tune_choose(const struct shk_tune *tune, unsigned ranks, size_t count);

#endif
