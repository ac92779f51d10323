#include "collectives/algorithm/sweep.h"
#include "collectives/algorithm/memory.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_WARMUPS   2U
#define SWEEP_MIN_ITERS 5U
#define SWEEP_MAX_ITERS 200U

/* Time for one size: 25 rows of it keep a default run near 2 s. */
#define SWEEP_BUDGET_NS UINT64_C(60000000)

#define SWEEP_INT32_BYTES ((size_t)1 << 20)

/* State of one rank's sweep. */
struct sweep {
    struct shk_wire *wire;
    const struct shk_sweep_options *options;
    struct shk_sweep_row *row;
    const struct shk_algorithm *algorithm;
    struct shk_allreduce_args args;
    uint32_t seed;
};

static size_t sweep_floor(size_t value)
{
    size_t power = SHK_TYPE_BYTES;

    while (power <= value / 2)
        power *= 2;
    return power;
}

static void sweep_add(struct shk_sweep_row *rows, unsigned *count, size_t bytes, enum shk_type type)
{
    if (*count < SHK_SWEEP_MAX) {
        rows[(*count)++] = (struct shk_sweep_row){.bytes = bytes, .type = type};
    }
}

unsigned shk_sweep_plan(size_t min_bytes, size_t max_bytes, bool few, struct shk_sweep_row *rows)
{
    size_t first = sweep_floor(min_bytes);
    size_t last = sweep_floor(max_bytes > min_bytes ? max_bytes : min_bytes);
    size_t second = last < SWEEP_INT32_BYTES ? last : SWEEP_INT32_BYTES;
    unsigned count = 0;

    for (size_t bytes = first; bytes < last && bytes != 0; bytes *= few ? 8 : 2)
        sweep_add(rows, &count, bytes, SHK_FLOAT32);
    sweep_add(rows, &count, last, SHK_FLOAT32);
    sweep_add(rows, &count, first, SHK_INT32);
    if (second > first)
        sweep_add(rows, &count, second, SHK_INT32);
    return count;
}

static int sweep_verify(struct sweep *sweep)
{
    struct shk_wire *wire = sweep->wire;
    struct shk_sweep_row *row = sweep->row;
    struct shk_mismatch bad = {0};

    shk_job_set_phase(wire->job, SHK_PHASE_VERIFY, row->bytes);
    if (shk_wire_load(wire, SHK_AREA_RECV, row->bytes) < 0)
        return wire->status;
    row->verified += sweep->args.count;
    if (shk_data_verify(sweep->args.type, shk_wire_stage(wire, SHK_AREA_RECV), sweep->args.count,
                        wire->size, sweep->seed, &bad)) {
        return 0;
    }
    if (row->wrong == 0) {
        row->bad_index = bad.index;
        row->bad_expected = bad.expected;
        row->bad_got = bad.got;
    }
    row->wrong += bad.wrong;
    return 0;
}

/* One operation on fresh data: every element of every result is compared. */
static int sweep_once(struct sweep *sweep, uint64_t *ns_p)
{
    struct shk_wire *wire = sweep->wire;
    struct shk_sweep_row *row = sweep->row;
    uint64_t start = 0;
    int rc = 0;

    sweep->seed++;
    shk_data_fill(sweep->args.type, shk_wire_stage(wire, SHK_AREA_SEND), sweep->args.count,
                  wire->rank, wire->size, sweep->seed);
    rc = shk_wire_store(wire, SHK_AREA_SEND, row->bytes);
    rc = rc == 0 ? shk_wire_poison(wire, SHK_AREA_RECV, 0, row->bytes) : rc;
    shk_job_set_phase(wire->job, SHK_PHASE_ALLREDUCE, row->bytes);
    rc = rc == 0 ? shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire) : rc;
    if (rc < 0)
        return rc;
    start = shk_job_now_ns();
    rc = shk_allreduce(wire, sweep->algorithm, &sweep->args);
    *ns_p = shk_job_now_ns() - start;
    if (rc < 0)
        return rc;
    /* Peers may still need this rank's progress for what it has put: no peer is done before. */
    rc = shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire);
    if (rc < 0)
        return rc;
    if (sweep->options->tamper)
        sweep->options->tamper(wire, row->bytes, sweep->options->tamper_arg);
    return sweep_verify(sweep);
}

/* Memory around the result: the rest of the buffers, and the guards of the whole heap. */
static int sweep_guards(struct sweep *sweep)
{
    struct shk_heap *heap = sweep->wire->heap;
    struct shk_sweep_row *row = sweep->row;
    struct shk_error err = {{0}};
    int rc = shk_heap_check(heap, &err);

    rc = rc == 0 ? shk_heap_poisoned(heap, SHK_AREA_RECV, row->bytes, &err) : rc;
    if (rc < 0 && rc != -EILSEQ)
        return shk_wire_fail(sweep->wire, -rc, false, "%s", err.text);
    if (rc < 0) {
        row->bad_guard = 1;
        snprintf(row->guard, sizeof row->guard, "%.255s", err.text);
    }
    return 0;
}

/* Timed iterations that all ranks agree on: rank-independent, from the slowest rank's pace. */
static int sweep_iterations(struct sweep *sweep, uint64_t pace_ns, unsigned rows_left,
                            unsigned *iterations_p)
{
    uint64_t budget = SWEEP_BUDGET_NS;
    uint64_t deadline = sweep->options->deadline_ns;
    uint64_t now = shk_job_now_ns();
    uint64_t want = 0;
    uint64_t left = 0;
    int rc = 0;

    if (deadline != 0) {
        /* Later rows are the longer ones: spend at most a quarter of an even share. */
        left = deadline > now ? (deadline - now) / (4 * (rows_left + 1)) : 0;
        budget = left < budget ? left : budget;
    }
    want = budget / (pace_ns + 1);
    if (want < SWEEP_MIN_ITERS)
        want = budget < SWEEP_BUDGET_NS ? 1 : SWEEP_MIN_ITERS;
    want = want > SWEEP_MAX_ITERS ? SWEEP_MAX_ITERS : want;
    /* The barrier's maximum of the complement is the minimum. */
    rc = shk_job_barrier(sweep->wire->job, UINT64_MAX - want, &want, shk_wire_poll, sweep->wire);
    *iterations_p = (unsigned)(UINT64_MAX - want);
    return rc;
}

static int sweep_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void sweep_statistics(struct shk_sweep_row *row, double *times, unsigned n)
{
    qsort(times, n, sizeof *times, sweep_compare);
    row->iterations = n;
    row->min_us = times[0];
    row->max_us = times[n - 1];
    row->time_us = n % 2 != 0 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

/* One operation that is not timed, by another algorithm. */
static int sweep_once_by(struct sweep *sweep, const struct shk_algorithm *algorithm)
{
    const struct shk_algorithm *chosen = sweep->algorithm;
    uint64_t ns = 0;
    int rc = 0;

    sweep->algorithm = algorithm;
    rc = sweep_once(sweep, &ns);
    sweep->algorithm = chosen;
    return rc;
}

static int sweep_row(struct sweep *sweep, unsigned rows_left)
{
    const struct shk_algorithm *usual =
        shk_algorithms[shk_algorithm_default(sweep->wire->size, sweep->args.count)];
    double times[SWEEP_MAX_ITERS];
    unsigned iterations = 0;
    uint64_t start = 0;
    uint64_t ns = 0;
    int rc = 0;

    /* Drops may take a way of their own: what is usual is verified in every size all the same. */
    if (usual != sweep->algorithm && sweep->algorithm->drops)
        rc = sweep_once_by(sweep, usual);
    for (unsigned i = 0; i < SWEEP_WARMUPS && rc == 0; i++) {
        start = shk_job_now_ns();
        rc = sweep_once(sweep, &ns);
    }
    if (rc == 0)
        rc = sweep_iterations(sweep, shk_job_now_ns() - start, rows_left, &iterations);
    for (unsigned i = 0; i < iterations && rc == 0; i++) {
        rc = sweep_once(sweep, &ns);
        times[i] = (double)ns / 1000.0;
    }
    rc = rc == 0 ? sweep_guards(sweep) : rc;
    if (rc < 0)
        return rc;
    sweep_statistics(sweep->row, times, iterations);
    __atomic_store_n(&sweep->row->done, 1U, __ATOMIC_RELEASE);
    return 0;
}

static int sweep_error(struct shk_wire *wire, int rc, struct shk_error *err)
{
    if (rc < 0) {
        shk_job_fail(wire->job, -rc, wire->by_peer, wire->error.text);
        return shk_error_set(err, -rc, "%s", wire->error.text);
    }
    return 0;
}

int shk_sweep_sizes(size_t min_bytes, size_t max_bytes, size_t most, struct shk_error *err)
{
    if (min_bytes >= SHK_TYPE_BYTES && min_bytes <= max_bytes && max_bytes <= most)
        return 0;
    return shk_error_set(err, EINVAL, "sizes %zu:%zu: from %u to %zu bytes are possible", min_bytes,
                         max_bytes, SHK_TYPE_BYTES, most);
}

int shk_sweep_warmup(struct shk_wire *wire, struct shk_error *err)
{
    struct shk_allreduce_args args = {.type = SHK_INT32, .count = 1};
    const struct shk_algorithm *algorithm =
        shk_algorithms[shk_algorithm_default(wire->size, args.count)];
    int rc = 0;

    shk_job_set_phase(wire->job, SHK_PHASE_WARMUP, 0);
    rc = shk_allreduce(wire, algorithm, &args);
    if (rc == 0)
        rc = shk_job_barrier(wire->job, 0, NULL, shk_wire_poll, wire);
    return sweep_error(wire, rc, err);
}

static void sweep_choose(struct sweep *sweep)
{
    struct shk_tune_choice choice =
        shk_tune_choose(sweep->options->tune, sweep->wire->size, sweep->args.count);

    sweep->algorithm = shk_algorithms[choice.algorithm];
    sweep->args.piece_bytes = choice.piece_bytes;
    sweep->row->algorithm = choice.algorithm;
}

int shk_sweep_run(struct shk_wire *wire, const struct shk_sweep_options *options,
                  struct shk_sweep_result *result, struct shk_error *err)
{
    struct sweep sweep = {.wire = wire, .options = options};
    unsigned rows =
        shk_sweep_plan(options->min_bytes, options->max_bytes, options->few, result->row);
    uint64_t bad = 0;
    int rc = 0;

    result->rows = rows;
    for (unsigned i = 0; i < rows && rc == 0 && bad == 0; i++) {
        sweep.row = &result->row[i];
        sweep.args.type = (enum shk_type)sweep.row->type;
        sweep.args.count = sweep.row->bytes / SHK_TYPE_BYTES;
        sweep_choose(&sweep);
        if (i > 0 && sweep.row->bytes < result->row[i - 1].bytes) {
            /* Back to a smaller size: what lies beyond it must be poison again. */
            rc = shk_wire_poison(wire, SHK_AREA_RECV, 0, wire->heap->length[SHK_AREA_RECV]);
        }
        rc = rc == 0 ? sweep_row(&sweep, rows - i - 1) : rc;
        if (rc == 0) {
            rc = shk_job_barrier(wire->job, sweep.row->wrong + sweep.row->bad_guard, &bad,
                                 shk_wire_poll, wire);
        }
    }
    return sweep_error(wire, rc, err);
}
