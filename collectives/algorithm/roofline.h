/* Roofline: what plain puts reach between the same ranks, in the same run; where ranks map each
 * other's memory, which no algorithm puts to, plain copies of what an all-reduce reads to where it
 * writes. The all-reduce is judged against it, so that a slow network and a slow algorithm are told
 * apart. */
#ifndef SHK_COLLECTIVES_ROOFLINE_H
#define SHK_COLLECTIVES_ROOFLINE_H

#include "collectives/algorithm/wire.h"

#define SHK_ROOFLINE_ROWS 8U

/* Smallest message with a bandwidth: below it latency counts. */
#define SHK_ROOFLINE_MIN_BYTES ((size_t)65536)

/* Longest that it takes, apart from one round. */
#define SHK_ROOFLINE_BUDGET_NS UINT64_C(300000000)

struct shk_roofline {
    double latency_us; /* one way of a put of 4 bytes, notification included; 0: not measured */
    uint32_t rows;
    struct {
        uint64_t bytes;
        /* GB/s (10^9) that every rank sends to the next while it receives from the one before,
         * which is the traffic of an all-reduce: its busbw cannot be higher. In mapped memory the
         * busbw of an all-reduce that only copies. Median; in mapped memory the best round. */
        double bandwidth;
    } row[SHK_ROOFLINE_ROWS];
};

/* Measures sizes of SHK_ROOFLINE_MIN_BYTES, times 4, up to max_bytes. Every rank gets the figures
 * of the slowest. An error only when the wire fails. */
int shk_roofline_run(struct shk_wire *wire, size_t max_bytes, uint64_t budget_ns,
                     struct shk_roofline *roof) SHK_MUST_CHECK;

/* GB/s of this rank at best, with puts of one size to the next rank while the one before puts to
 * it: for comparing ways with each other. */
int shk_roofline_own(struct shk_wire *wire, size_t bytes, uint64_t budget_ns,
                     double *bandwidth_p) SHK_MUST_CHECK;

/* Bandwidth for a message of this size; between two sizes the higher of both, as a roof has it, and
 * above the last its own. 0: none, below the first. */
double shk_roofline_bandwidth(const struct shk_roofline *roof, uint64_t bytes);

#endif
