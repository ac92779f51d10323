/* Pairs: latency and bandwidth between two ranks at a time, all pairs of a round at once, within
 * one run of the library. What tells a slow link or node from a slow network. */
#ifndef SHK_COLLECTIVES_PAIRS_H
#define SHK_COLLECTIVES_PAIRS_H

#include "collectives/algorithm/wire.h"

/* Each rank meets as many others at most: its best partner is then rarely a bad one. */
#define SHK_PAIRS_ROUNDS 3U

/* Message whose time gives the bandwidth. */
#define SHK_PAIRS_BYTES ((size_t)1 << 20)

/* Longest that it takes, apart from one pass over the rounds for each part. */
#define SHK_PAIRS_BUDGET_NS UINT64_C(1000000000)

/* Independent measurements, interleaved: what is slow by chance is not so in all of them. */
#define SHK_PAIRS_PARTS 3U

/* What one rank measured, in the job's shared result space. */
struct shk_pairs_result {
    uint32_t done;
    struct {
        double latency_us; /* one way of a put of 4 bytes: half of the fastest ping-pong; 0: none */
        double bandwidth;  /* GB/s (10^9) while both send: median */
        double mean_us;    /* of SHK_PAIRS_BYTES while both send: with the stalls */
        /* For a CPU this rank waited so long, on average: each time that it came to its turn during
         * the ping-pongs; during one SHK_PAIRS_BYTES. 0 also when the kernel does not tell. */
        double ping_wait_us, put_wait_us;
    } round[SHK_PAIRS_PARTS][SHK_PAIRS_ROUNDS];
};

/* Rounds in which `count` ranks meet without meeting twice (a round-robin tournament), at most
 * SHK_PAIRS_ROUNDS, and whom `rank` meets in one: itself when their number is odd and it has a
 * break. */
unsigned shk_pairs_rounds(unsigned count);
unsigned shk_pairs_partner(unsigned count, unsigned round, unsigned rank);

/* Runs in every rank. The rounds are gone through several times, so that what passes by hits all
 * pairs alike. An error only when the wire fails. */
int shk_pairs_run(struct shk_wire *wire, uint64_t budget_ns,
                  struct shk_pairs_result *result) SHK_MUST_CHECK;

#endif
