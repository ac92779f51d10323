#include "collectives/gpu/gpu_private.h"
#include "collectives/ranks/job_private.h"
#include "core/text/order.h"
#include <stdlib.h>

#define TIME_BUDGET_NS UINT64_C(40000000) /* for each of the ways that a size is timed */
#define TIME_WARMUPS   5U
#define TIME_BRIEF_NS  UINT64_C(6000000) /* … of a brief run */
#define TIME_BATCH     20U /* operations between waits, as nccl-tests has it by default */
#define TIME_BATCHES   64U
#define TIME_EVENTS    128U /* operations timed one by one */
#define TIME_GRAPH_OPS 10U
#define TIME_GRAPH_MAX ((size_t)16 << 20) /* launch cost does not matter beyond */

/* How often, the same on every rank. */
struct time_plan {
    unsigned batches; /* each ends with a wait */
    unsigned batch;   /* operations */
};

/* The i-th operation of a batch, further on in the areas than the one before, as nccl-tests has it:
 * otherwise all but the first would find their data in the GPU's cache. */
static int time_one(struct gpu_rank *g, const struct gpu_op *op, unsigned i, struct shk_error *err)
{
    size_t bytes = op->count * shk_gpu_type_bytes(op->type);
    size_t places = bytes > 0 ? g->max_bytes / bytes : 1;
    struct gpu_op moved = *op;

    moved.in += bytes * (i % (places > 0 ? places : 1));
    moved.out += bytes * (i % (places > 0 ? places : 1));
    return g->run->path->reduce(g, &moved, err);
}

static int time_ops(struct gpu_rank *g, const struct gpu_op *op, unsigned n, struct shk_error *err)
{
    int rc = 0;

    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = time_one(g, op, i, err);
    return rc;
}

/* A common start. Ranks that a launcher started leave the barrier up to milliseconds apart, since
 * it goes over sockets and their supervisors share a core with them: an operation that does not
 * count then ends on all GPUs at once. */
static int time_start(struct gpu_rank *g, const struct gpu_op *op, uint64_t *start_p,
                      struct shk_error *err)
{
    int rc = gpu_barrier(g, err);

    if (rc == 0)
        rc = time_one(g, op, 0, err);
    if (rc == 0)
        rc = gpu_settle(g, err);
    *start_p = shk_job_now_ns();
    return rc;
}

/* From a common start to the end of the last operation. */
static int time_batch(struct gpu_rank *g, const struct gpu_op *op, unsigned n, uint64_t *ns_p,
                      struct shk_error *err)
{
    uint64_t start = 0;
    int rc = time_start(g, op, &start, err);

    if (rc == 0)
        rc = time_ops(g, op, n, err);
    if (rc == 0)
        rc = gpu_settle(g, err);
    *ns_p = shk_job_now_ns() - start;
    return rc;
}

/* What an operation takes, and what it takes to start together. */
struct time_pace {
    uint64_t op_ns;
    uint64_t start_ns;
};

static int time_pace(struct gpu_rank *g, const struct gpu_op *op, unsigned n,
                     struct time_pace *pace, struct shk_error *err)
{
    uint64_t begin = shk_job_now_ns();
    uint64_t ns = 0;
    int rc = time_batch(g, op, n, &ns, err);

    pace->op_ns = ns / n;
    pace->start_ns = shk_job_now_ns() - begin - ns;
    return rc;
}

static int time_agree(struct gpu_rank *g, struct time_pace pace, unsigned rows_left,
                      struct time_plan *plan, struct shk_error *err)
{
    uint64_t budget = g->run->options->brief ? TIME_BRIEF_NS : TIME_BUDGET_NS;
    uint64_t now = shk_job_now_ns();
    uint64_t deadline = g->run->deadline_ns;
    uint64_t longest = g->run->options->brief ? budget : 5 * budget; /* of one batch */
    uint64_t want = 0;
    int rc = 0;

    if (deadline != 0) {
        uint64_t left = deadline > now ? (deadline - now) / (8 * (rows_left + 1)) : 0;

        budget = left < budget ? left : budget;
        longest = left / 3 < longest ? left / 3 : longest;
    }
    /* The slowest rank's pace, and the smallest budget, as the maximum of its complement. */
    rc = shk_job_barrier(g->job, pace.op_ns, &pace.op_ns, NULL, NULL);
    if (rc == 0)
        rc = shk_job_barrier(g->job, pace.start_ns, &pace.start_ns, NULL, NULL);
    if (rc == 0) {
        rc = shk_job_barrier(g->job, UINT64_MAX - budget, &budget, NULL, NULL);
        budget = UINT64_MAX - budget;
    }
    if (rc == 0) {
        rc = shk_job_barrier(g->job, UINT64_MAX - longest, &longest, NULL, NULL);
        longest = UINT64_MAX - longest;
    }
    if (rc < 0)
        return shk_error_sys(err, -rc, "barrier");
    want = longest / (pace.op_ns + 1);
    plan->batch = want < 1 ? 1 : want > TIME_BATCH ? TIME_BATCH : (unsigned)want;
    want = budget / ((pace.op_ns + 1) * plan->batch + pace.start_ns);
    plan->batches = want < 3 ? 3 : want > TIME_BATCHES ? TIME_BATCHES : (unsigned)want;
    return 0;
}

static double time_rank(double *values, unsigned n, double share)
{
    unsigned at = (unsigned)(share * (n - 1) + 0.5);

    qsort(values, n, sizeof *values, shk_order_double);
    return values[at];
}

static int time_stream(struct gpu_rank *g, const struct gpu_op *op, const struct time_plan *plan,
                       double *us_p, struct shk_error *err)
{
    double us[TIME_BATCHES] = {0};
    uint64_t ns = 0;
    int rc = 0;

    for (unsigned i = 0; i < plan->batches && rc == 0; i++) {
        rc = time_batch(g, op, plan->batch, &ns, err);
        us[i] = (double)ns / 1000.0 / plan->batch;
    }
    if (rc == 0)
        *us_p = time_rank(us, plan->batches, 0.5);
    return rc;
}

/* Each operation between two events. */
static int time_events(struct gpu_rank *g, const struct gpu_op *op, unsigned n, void **events,
                       double *us, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    int rc = gpu_barrier(g, err);

    for (unsigned i = 0; i <= n && rc == 0; i++) {
        rc = gpu_ok(g, api->event_record(events[i], g->stream), err, "event");
        if (rc == 0 && i < n)
            rc = time_one(g, op, i, err);
    }
    if (rc == 0)
        rc = gpu_settle(g, err);
    for (unsigned i = 0; i < n && rc == 0; i++) {
        float ms = 0;

        rc = gpu_ok(g, api->event_elapsed(&ms, events[i], events[i + 1]), err, "event");
        us[i] = (double)ms * 1000.0;
    }
    return rc;
}

static int time_single(struct gpu_rank *g, const struct gpu_op *op, struct gpu_row *row,
                       unsigned want, struct shk_error *err)
{
    void *events[TIME_EVENTS + 1] = {NULL};
    double us[TIME_EVENTS];
    unsigned n = want > TIME_EVENTS ? TIME_EVENTS : want;
    unsigned made = 0;
    int rc = 0;

    for (made = 0; made <= n && rc == 0; made += rc == 0)
        rc = gpu_ok(g, g->gpu.api.event_create(&events[made], 0), err, "event");
    if (rc == 0)
        rc = time_events(g, op, n, events, us, err);
    if (rc == 0) {
        row->p50_us = time_rank(us, n, 0.5);
        row->p99_us = time_rank(us, n, 0.99);
    }
    while (made > 0)
        (void)g->gpu.api.event_destroy(events[--made]);
    return rc;
}

static int time_replays(struct gpu_rank *g, const struct gpu_op *op, void *exec,
                        const struct time_plan *plan, double *us_p, struct shk_error *err)
{
    double us[TIME_BATCHES];
    unsigned replays = plan->batch / TIME_GRAPH_OPS < 1 ? 1 : plan->batch / TIME_GRAPH_OPS;
    uint64_t start = 0;
    int rc = 0;

    for (unsigned i = 0; i < plan->batches && rc == 0; i++) {
        rc = time_start(g, op, &start, err);
        for (unsigned k = 0; k < replays && rc == 0; k++)
            rc = gpu_ok(g, g->gpu.api.graph_launch(exec, g->stream), err, "replay of a graph");
        if (rc == 0)
            rc = gpu_ok(g, g->gpu.api.stream_wait(g->stream), err, "replay of a graph");
        us[i] = (double)(shk_job_now_ns() - start) / 1000.0 / replays / TIME_GRAPH_OPS;
    }
    if (rc == 0)
        *us_p = time_rank(us + (plan->batches > 1), plan->batches - (plan->batches > 1), 0.5);
    return rc;
}

static int time_graph(struct gpu_rank *g, const struct gpu_op *op, const struct time_plan *plan,
                      double *us_p, struct shk_error *err)
{
    const struct gpu_api *api = &g->gpu.api;
    void *graph = NULL;
    void *exec = NULL;
    int rc = gpu_ok(g, api->capture_begin(g->stream, GPU_CAPTURE_THREAD), err, "capture");

    if (rc == 0)
        rc = time_ops(g, op, TIME_GRAPH_OPS, err);
    if (rc == 0)
        rc = gpu_ok(g, api->capture_end(g->stream, &graph), err, "capture");
    if (rc == 0)
        rc = gpu_ok(g, api->graph_instantiate(&exec, graph, 0), err, "graph");
    if (rc == 0)
        rc = time_replays(g, op, exec, plan, us_p, err);
    if (exec)
        (void)api->graph_exec_destroy(exec);
    if (graph)
        (void)api->graph_destroy(graph);
    return rc;
}

static void time_op(const struct gpu_rank *g, const struct gpu_row *row, bool in_place,
                    struct gpu_op *op)
{
    *op = (struct gpu_op){
        .type = (enum shk_gpu_type)row->type,
        .count = row->count,
        .in = in_place ? g->heap.recv : g->heap.send,
        .out = g->heap.recv,
    };
}

/* Copy engines have their operations counted by the host, which a replay does not. */
static bool time_replayable(const struct gpu_rank *g, const struct gpu_row *row,
                            const struct gpu_op *op)
{
    return row->bytes <= TIME_GRAPH_MAX && g->run->path->algorithm(g, op) != GPU_ENGINES;
}

int gpu_time_row(struct gpu_rank *g, struct gpu_row *row, unsigned rows_left, struct shk_error *err)
{
    struct time_plan plan = {0};
    struct time_pace pace = {0};
    struct gpu_op op;
    int rc = 0;

    time_op(g, row, false, &op);
    shk_job_set_phase(g->job, SHK_PHASE_ALLREDUCE, row->bytes);
    rc = time_pace(g, &op, TIME_WARMUPS, &pace, err);
    if (rc == 0)
        rc = time_agree(g, pace, rows_left, &plan, err);
    if (rc == 0) {
        row->iterations = plan.batches * plan.batch;
        rc = time_stream(g, &op, &plan, &row->time_us, err);
    }
    if (rc == 0)
        rc = time_single(g, &op, row, row->iterations, err);
    if (rc == 0 && time_replayable(g, row, &op))
        rc = time_graph(g, &op, &plan, &row->graph_us, err);
    return rc == 0 ? gpu_wait(g, err) : rc;
}

int gpu_time_in_place(struct gpu_rank *g, struct gpu_row *row, unsigned rows_left,
                      struct shk_error *err)
{
    struct time_plan plan = {0};
    struct time_pace pace = {0};
    struct gpu_op op;
    int rc = 0;

    time_op(g, row, true, &op);
    rc = time_pace(g, &op, 1, &pace, err);
    if (rc == 0)
        rc = time_agree(g, pace, rows_left, &plan, err);
    if (rc == 0)
        rc = time_stream(g, &op, &plan, &row->in_place_us, err);
    return rc == 0 ? gpu_wait(g, err) : rc;
}

int gpu_time_burst(struct gpu_rank *g, const struct gpu_op *op, unsigned n, struct shk_error *err)
{
    int rc = gpu_prepare(g, op, err);

    n = n < TIME_BATCH ? n : TIME_BATCH;
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = g->run->path->reduce(g, op, err);
    return rc == 0 ? gpu_wait(g, err) : rc;
}
