#include "collectives/gpu/gpu_private.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Types other than float32 are swept at these sizes only. */
static const size_t plan_other[] = {(size_t)8, (size_t)64 << 10, (size_t)8 << 20};

/* Counts around the units of the kernels: 8 and 16 bytes, warps, blocks, uneven parts. */
static const size_t conform_counts[] = {1,    2,    3,    7,     8,      31,     255,
                                        1000, 4097, 8191, 65537, 262147, 1000003};

/* First element, counted from an address that is a multiple of 16: also ones that are not. */
static const size_t conform_offsets[] = {0, 1, 3};

static void plan_add(struct gpu_row *rows, unsigned *count, size_t bytes, enum shk_gpu_type type)
{
    if (*count < GPU_ROWS_MAX) {
        rows[(*count)++] = (struct gpu_row){
            .bytes = bytes, .count = bytes / shk_gpu_type_bytes(type), .type = type};
    }
}

unsigned gpu_plan(size_t min_bytes, size_t max_bytes, bool brief, struct gpu_row *rows)
{
    size_t bytes = 4;
    size_t last = 0;
    unsigned count = 0;

    while (bytes < min_bytes)
        bytes *= 2;
    for (; bytes <= max_bytes && bytes != 0; bytes *= brief ? 8 : 2) {
        plan_add(rows, &count, bytes, SHK_GPU_F32);
        last = bytes;
    }
    if (last != 0 && last < max_bytes && brief)
        plan_add(rows, &count, max_bytes / 4 * 4, SHK_GPU_F32);
    for (unsigned type = SHK_GPU_F16; type < SHK_GPU_TYPE_COUNT; type++) {
        for (size_t i = 0; i < sizeof plan_other / sizeof plan_other[0]; i++) {
            if (plan_other[i] >= min_bytes && plan_other[i] <= max_bytes)
                plan_add(rows, &count, plan_other[i], (enum shk_gpu_type)type);
        }
    }
    return count;
}

int gpu_barrier(struct gpu_rank *g, struct shk_error *err)
{
    int rc = shk_job_barrier(g->job, 0, NULL, NULL, NULL);

    return rc == 0 ? 0 : shk_error_sys(err, -rc, "barrier");
}

/* The late rank of a test. */
static int once_arrive(struct gpu_rank *g, struct shk_error *err)
{
    const struct shk_gpu_tweaks *tweaks = g->run->tweaks;
    struct timespec nap = {.tv_sec = tweaks->late_ms / 1000,
                           .tv_nsec = tweaks->late_ms % 1000 * 1000000L};

    if (tweaks->arrival == SHK_ARRIVE_TOGETHER || g->rank != tweaks->late_rank)
        return 0;
    if (tweaks->arrival == SHK_ARRIVE_BLOCKED && g->module)
        return gpu_kernel_delay(g, tweaks->late_ms, err);
    (void)nanosleep(&nap, NULL);
    return 0;
}

static int once_tamper(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err)
{
    const struct shk_gpu_tweaks *tweaks = g->run->tweaks;
    size_t bytes = op->count * shk_gpu_type_bytes(op->type);
    unsigned char part[4096];
    int rc = 0;

    if (!tweaks->tamper || bytes == 0)
        return 0;
    bytes = bytes > sizeof part ? sizeof part : bytes;
    rc = gpu_ok(g, g->gpu.api.to_host(part, g->base[g->rank] + op->out, bytes), err, "tamper");
    tweaks->tamper(g->job, part, bytes, tweaks->arg);
    return rc == 0 ? gpu_put(g, g->base[g->rank] + op->out, part, bytes, err) : rc;
}

int gpu_once(struct gpu_rank *g, const struct gpu_op *op, struct gpu_wrong *wrong,
             struct shk_error *err)
{
    size_t bytes = op->count * shk_gpu_type_bytes(op->type);
    int rc = 0;

    g->seed++;
    rc = gpu_prepare(g, op, err);
    shk_job_set_phase(g->job, SHK_PHASE_ALLREDUCE, bytes);
    if (rc == 0)
        rc = once_arrive(g, err);
    if (rc == 0)
        rc = g->run->path->reduce(g, op, err);
    if (rc == 0)
        rc = gpu_wait(g, err);
    if (rc == 0)
        rc = once_tamper(g, op, err);
    if (rc == 0) {
        shk_job_set_phase(g->job, SHK_PHASE_VERIFY, bytes);
        rc = gpu_verify(g, op, wrong, err);
    }
    return rc;
}

static void wrong_text(const struct gpu_rank *g, const struct gpu_op *op,
                       const struct gpu_wrong *wrong, char *text, size_t size)
{
    snprintf(text, size,
             "rank %u: wrong result of %zu B %s %s: element %llu is %.9g instead of %.9g; %llu of "
             "%zu elements are wrong",
             g->rank, op->count * shk_gpu_type_bytes(op->type), shk_gpu_type_name(op->type),
             op->in == op->out ? "in place" : "out of place", (unsigned long long)wrong->index,
             wrong->got, wrong->expected, (unsigned long long)wrong->wrong, op->count);
}

static void note_wrong(struct gpu_rank *g, struct gpu_result *result, const struct gpu_op *op,
                       const struct gpu_wrong *wrong)
{
    const char *place = op->in == op->out ? "in place" : "out of place";

    result->damaged |= wrong->damage[0] != '\0';
    if (result->bad != 0 || (wrong->wrong == 0 && wrong->damage[0] == '\0'))
        return;
    result->bad = 1;
    if (wrong->wrong > 0) {
        wrong_text(g, op, wrong, result->bad_text, sizeof result->bad_text);
    } else {
        snprintf(result->bad_text, sizeof result->bad_text, "rank %u: %zu B %s %s: %s", g->rank,
                 op->count * shk_gpu_type_bytes(op->type), shk_gpu_type_name(op->type), place,
                 wrong->damage);
    }
}

/* NCCL 2.28's symmetric kernels are wrong there; frameworks never do it. One element is a case like
 * any other: there is no pair that could straddle. */
static bool is_unaligned(const struct gpu_rank *g, const struct gpu_op *op)
{
    size_t at = (size_t)g->base[g->rank];

    return !g->run->path->kernels && op->count >= 2 && shk_gpu_type_bytes(op->type) == 2 &&
           (((at + op->in) | (at + op->out)) % 4) != 0;
}

/* Is it a wrong result that counts apart? Memory that was damaged never does. */
static bool note_unaligned(const struct gpu_rank *g, struct gpu_result *result,
                           const struct gpu_op *op, const struct gpu_wrong *wrong)
{
    if (!is_unaligned(g, op))
        return false;
    result->unaligned_cases++;
    if (wrong->wrong == 0 || wrong->damage[0] != '\0')
        return false;
    if (result->unaligned_wrong++ == 0)
        wrong_text(g, op, wrong, result->unaligned_text, sizeof result->unaligned_text);
    return true;
}

/* Every rank learns whether any saw memory damaged: nothing can be trusted after that. Wrong
 * elements alone do not end the sweep, so that it shows at which sizes they are. */
static int agree_bad(struct gpu_rank *g, const struct gpu_result *result, bool *bad_p,
                     struct shk_error *err)
{
    uint64_t bad = 0;
    int rc = shk_job_barrier(g->job, result->damaged, &bad, NULL, NULL);

    *bad_p = bad != 0;
    return rc == 0 ? 0 : shk_error_sys(err, -rc, "barrier");
}

static int conform_case(struct gpu_rank *g, struct gpu_result *result, const struct gpu_op *op,
                        struct shk_error *err)
{
    struct gpu_wrong wrong = {0};
    int rc = gpu_once(g, op, &wrong, err);

    if (rc != 0 || note_unaligned(g, result, op, &wrong))
        return rc;
    note_wrong(g, result, op, &wrong);
    result->cases += wrong.wrong == 0 && wrong.damage[0] == '\0';
    result->wrong_cases += wrong.wrong > 0;
    return 0;
}

static int conform_type(struct gpu_rank *g, struct gpu_result *result, enum shk_gpu_type type,
                        size_t count, struct shk_error *err)
{
    size_t size = shk_gpu_type_bytes(type);
    int rc = 0;

    for (size_t i = 0; i < sizeof conform_offsets / sizeof conform_offsets[0] && rc == 0; i++) {
        size_t off = conform_offsets[i] * size;
        struct gpu_op op = {.type = type, .count = count, .out = g->heap.recv + off};

        op.in = g->heap.send + (i == 2 ? 0 : off); /* also different alignments */
        rc = conform_case(g, result, &op, err);
        if (rc == 0) {
            op.in = op.out;
            rc = conform_case(g, result, &op, err);
        }
    }
    return rc;
}

int gpu_conform(struct gpu_rank *g, struct gpu_result *result, struct shk_error *err)
{
    size_t max = g->max_bytes;
    bool bad = false;
    int rc = gpu_verify_selftest(g, err);

    for (size_t i = 0; i < sizeof conform_counts / sizeof conform_counts[0] && rc == 0 && !bad;
         i++) {
        for (unsigned type = 0; type < SHK_GPU_TYPE_COUNT && rc == 0; type++) {
            if (conform_counts[i] * shk_gpu_type_bytes((enum shk_gpu_type)type) <= max &&
                (!g->run->options->brief || i % 2 == 1)) {
                rc = conform_type(g, result, (enum shk_gpu_type)type, conform_counts[i], err);
            }
        }
        if (rc == 0)
            rc = agree_bad(g, result, &bad, err);
    }
    if (rc == 0 && !bad) {
        struct gpu_op none = {.type = SHK_GPU_F32, .in = g->heap.send, .out = g->heap.recv};

        rc = conform_case(g, result, &none, err);
    }
    return rc;
}

static int sweep_verified(struct gpu_rank *g, struct gpu_result *result, struct gpu_row *row,
                          bool in_place, struct shk_error *err)
{
    struct gpu_op op = {
        .type = (enum shk_gpu_type)row->type,
        .count = row->count,
        .in = in_place ? g->heap.recv : g->heap.send,
        .out = g->heap.recv,
    };
    struct gpu_wrong wrong = {0};
    int rc = gpu_once(g, &op, &wrong, err);

    row->verified += row->count;
    row->algorithm = g->run->path->algorithm(g, &op);
    *(in_place ? &row->in_place_wrong : &row->wrong) += wrong.wrong;
    note_wrong(g, result, &op, &wrong);
    return rc;
}

/* Many operations without a wait, as they are timed: the result must be that of one. */
static int sweep_again(struct gpu_rank *g, struct gpu_result *result, struct gpu_row *row,
                       struct shk_error *err)
{
    struct gpu_op op = {
        .type = (enum shk_gpu_type)row->type,
        .count = row->count,
        .in = g->heap.send,
        .out = g->heap.recv,
    };
    struct gpu_wrong wrong = {0};
    int rc = gpu_time_burst(g, &op, row->iterations, err);

    if (rc == 0)
        rc = gpu_verify(g, &op, &wrong, err);
    row->verified += row->count;
    row->wrong += wrong.wrong;
    note_wrong(g, result, &op, &wrong);
    return rc;
}

static int sweep_row(struct gpu_rank *g, struct gpu_result *result, struct gpu_row *row,
                     unsigned left, struct shk_error *err)
{
    struct shk_error guard = {{0}};
    int rc = sweep_verified(g, result, row, true, err);

    if (rc == 0)
        rc = sweep_verified(g, result, row, false, err);
    if (rc == 0 && !g->run->options->proof) {
        rc = gpu_time_row(g, row, left, err);
        if (rc == 0)
            rc = sweep_again(g, result, row, err);
        if (rc == 0)
            rc = gpu_time_in_place(g, row, left, err);
    }
    if (rc == 0) {
        rc = gpu_heap_guards(g, &guard);
        if (rc == -EILSEQ && result->bad == 0) {
            result->bad = 1;
            result->damaged = 1;
            snprintf(result->bad_text, sizeof result->bad_text, "rank %u: %llu B: %.255s", g->rank,
                     (unsigned long long)row->bytes, guard.text);
            rc = 0;
        } else if (rc < 0) {
            *err = guard;
        }
    }
    return rc;
}

int gpu_sweep(struct gpu_rank *g, struct gpu_result *result, struct shk_error *err)
{
    const struct shk_collective_options *options = g->run->options;
    unsigned rows = gpu_plan(options->min_bytes, g->max_bytes, options->brief, result->row);
    bool bad = false;
    int rc = 0;

    __atomic_store_n(&result->rows, rows, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < rows && rc == 0 && !bad; i++) {
        rc = sweep_row(g, result, &result->row[i], rows - i - 1, err);
        if (rc == 0) {
            __atomic_store_n(&result->row[i].done, 1U, __ATOMIC_RELEASE);
            rc = agree_bad(g, result, &bad, err);
        }
    }
    return rc;
}
