/* Sweep: message sizes from min to max, each measured and verified. Runs in every rank. */
#ifndef SHK_COLLECTIVES_SWEEP_H
#define SHK_COLLECTIVES_SWEEP_H

#include "collectives/algorithm/allreduce.h"
#include "collectives/algorithm/roofline.h"
#include "collectives/algorithm/tune.h"
#include "collectives/algorithm/wire.h"
#include "collectives/ranks/data.h"
#include "core/facts/facts.h"

/* 4 B to 2^47 B in powers of two, and a few more rows for a second type. */
#define SHK_SWEEP_MAX 48U

/* One rank's measurement of one size; in the job's shared result space. */
struct shk_sweep_row {
    uint64_t bytes;
    uint32_t type;       /* enum shk_type */
    uint32_t algorithm;  /* index in shk_algorithms */
    uint32_t iterations; /* timed; each was verified */
    uint32_t done;       /* 1 when the members are complete */
    double time_us;      /* median over the iterations */
    double min_us;
    double max_us;
    uint64_t wrong;     /* elements, over all iterations, warm-up included */
    uint64_t verified;  /* elements compared */
    uint64_t bad_index; /* first wrong element */
    double bad_expected;
    double bad_got;
    uint32_t bad_guard; /* 1: memory outside the result was written to */
    char guard[256];    /* how */
};

struct shk_sweep_result {
    struct shk_roofline roofline; /* the same on every rank */
    uint32_t rows;
    struct shk_sweep_row row[SHK_SWEEP_MAX];
};

struct shk_sweep_options {
    size_t min_bytes; /* at least 4; rounded down to a power of two */
    size_t max_bytes;
    uint64_t deadline_ns;        /* CLOCK_MONOTONIC; 0: none. Iterations are cut to keep it. */
    const struct shk_tune *tune; /* NULL: default algorithms */
    bool few;                    /* every third size only */
    /* Tests only: called after each operation, before it is verified. */
    void (*tamper)(struct shk_wire *wire, size_t bytes, void *arg);
    void *tamper_arg;
};

/* Rows of a sweep in order; returns their number. Every size with float32 (few: every third, and
 * the largest), then int32 at the smallest size and at the largest that is not above 1 MiB. */
unsigned shk_sweep_plan(size_t min_bytes, size_t max_bytes, bool few, struct shk_sweep_row *rows);

/* -EINVAL with the text when a sweep over these sizes is not possible; `most`: of the transport. */
int shk_sweep_sizes(size_t min_bytes, size_t max_bytes, size_t most,
                    struct shk_error *err) SHK_MUST_CHECK;

/* Warm-up: one small operation between all, which sets up the connections. */
int shk_sweep_warmup(struct shk_wire *wire, struct shk_error *err) SHK_MUST_CHECK;

/* Measures every row. Wrong results are recorded, and end the sweep after their row on every rank;
 * an error is returned only when the wire fails. */
int shk_sweep_run(struct shk_wire *wire, const struct shk_sweep_options *options,
                  struct shk_sweep_result *result, struct shk_error *err) SHK_MUST_CHECK;

/* Joins what the ranks measured: time is the largest of the ranks' medians, wrong their sum. Rows
 * that not every rank completed are left out, unless one was found wrong. New JSON array of
 * collective.<t>.sizes; NULL when out of memory. */
json_t *shk_sweep_json(const struct shk_job *job);

/* {latency_us, sizes: [{bytes, bandwidth}]}; JSON null when none was measured. */
json_t *shk_sweep_roofline_json(const struct shk_job *job);

/* First wrong row, as one line naming rank, size and element; false when all is right. *rank_p is
 * the rank that saw it. */
bool shk_sweep_wrong(const struct shk_job *job, int *rank_p, struct shk_error *reason);

/* Elements compared and found right, over all ranks and sizes. */
uint64_t shk_sweep_verified(const struct shk_job *job);

#endif
