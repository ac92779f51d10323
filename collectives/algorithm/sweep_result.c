#include "collectives/algorithm/sweep.h"
#include <errno.h>
#include <math.h>

/* The results are the ranks', who may be broken: JSON has no infinity, and nothing takes less than
 * no time. */
static double result_number(double value)
{
    return isfinite(value) && value > 0 ? value : 0;
}

static const struct shk_sweep_result *result_of(const struct shk_job *job, unsigned rank)
{
    return shk_job_result(job, rank);
}

/* Rows that rank 0 planned; the plan is the same everywhere. The space is the ranks', so bounded.
 */
static unsigned result_rows(const struct shk_job *job)
{
    uint32_t rows = result_of(job, 0)->rows;

    return rows < SHK_SWEEP_MAX ? rows : SHK_SWEEP_MAX;
}

/* One row over all ranks. */
struct result_sum {
    bool done; /* by every rank */
    double time_us;
    uint64_t wrong;
    uint64_t verified;
};

static struct result_sum result_join(const struct shk_job *job, unsigned i)
{
    struct result_sum sum = {.done = true};

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        const struct shk_sweep_row *row = &result_of(job, rank)->row[i];

        sum.done = sum.done && __atomic_load_n(&row->done, __ATOMIC_ACQUIRE) != 0;
        sum.time_us = fmax(result_number(row->time_us), sum.time_us);
        sum.wrong += row->wrong;
        sum.verified += row->verified;
    }
    return sum;
}

static json_t *result_row_json(const struct shk_job *job, unsigned i, const struct result_sum *sum)
{
    const struct shk_sweep_row *row = &result_of(job, 0)->row[i];
    double ranks = shk_job_size(job);
    double algbw = result_number((double)row->bytes / (sum->time_us * 1000.0));
    double busbw = result_number(algbw * 2.0 * (ranks - 1.0) / ranks);
    double roof = result_number(shk_roofline_bandwidth(&result_of(job, 0)->roofline, row->bytes));
    double efficiency = roof > 0 ? result_number(busbw / roof) : 0;
    unsigned n = 0;

    while (n < row->algorithm && shk_algorithms[n + 1]) { /* the space is the ranks' */
        n++;
    }
    return json_pack("{s:I, s:I, s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:I, s:o*}", "bytes",
                     (json_int_t)row->bytes, "count", (json_int_t)(row->bytes / SHK_TYPE_BYTES),
                     "type", shk_type_name(row->type < SHK_TYPE_COUNT ? row->type : SHK_FLOAT32),
                     "redop", "sum", "algorithm", shk_algorithms[n]->name, "iterations",
                     (int)row->iterations, "time_us", sum->time_us, "algbw", algbw, "busbw", busbw,
                     "wrong", (json_int_t)sum->wrong, "efficiency",
                     efficiency > 0 ? json_real(efficiency) : NULL);
}

json_t *shk_sweep_json(const struct shk_job *job)
{
    json_t *sizes = json_array();
    unsigned rows = result_rows(job);

    for (unsigned i = 0; i < rows && sizes != NULL; i++) {
        struct result_sum sum = result_join(job, i);

        if ((sum.done || sum.wrong > 0) &&
            json_array_append_new(sizes, result_row_json(job, i, &sum)) != 0) {
            json_decref(sizes);
            sizes = NULL;
        }
    }
    return sizes;
}

json_t *shk_sweep_roofline_json(const struct shk_job *job)
{
    const struct shk_roofline *roof = &result_of(job, 0)->roofline;
    json_t *sizes = NULL;

    if (result_number(roof->latency_us) <= 0)
        return json_null();
    sizes = json_array();
    for (uint32_t i = 0; i < roof->rows && i < SHK_ROOFLINE_ROWS; i++) {
        (void)json_array_append_new(sizes,
                                    json_pack("{s:I, s:f}", "bytes", (json_int_t)roof->row[i].bytes,
                                              "bandwidth", result_number(roof->row[i].bandwidth)));
    }
    return json_pack("{s:f, s:o}", "latency_us", roof->latency_us, "sizes", sizes);
}

static void result_describe(const struct shk_sweep_row *row, unsigned rank,
                            struct shk_error *reason)
{
    if (row->wrong > 0) {
        (void)shk_error_set(reason, EILSEQ,
                            "rank %u: wrong result of %llu B %s: element %llu is %.9g instead of "
                            "%.9g; %llu wrong of %llu elements verified",
                            rank, (unsigned long long)row->bytes,
                            shk_type_name(row->type < SHK_TYPE_COUNT ? row->type : SHK_FLOAT32),
                            (unsigned long long)row->bad_index, row->bad_got, row->bad_expected,
                            (unsigned long long)row->wrong, (unsigned long long)row->verified);
    } else {
        (void)shk_error_set(reason, EILSEQ, "rank %u: memory corrupted by %llu B: %.255s", rank,
                            (unsigned long long)row->bytes, row->guard);
    }
}

bool shk_sweep_wrong(const struct shk_job *job, int *rank_p, struct shk_error *reason)
{
    unsigned rows = result_rows(job);

    for (unsigned i = 0; i < rows; i++) {
        for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
            const struct shk_sweep_row *row = &result_of(job, rank)->row[i];

            if (row->wrong > 0 || row->bad_guard != 0) {
                result_describe(row, rank, reason);
                *rank_p = (int)rank;
                return true;
            }
        }
    }
    return false;
}

uint64_t shk_sweep_verified(const struct shk_job *job)
{
    unsigned rows = result_rows(job);
    uint64_t right = 0;

    for (unsigned i = 0; i < rows; i++) {
        struct result_sum sum = result_join(job, i);

        right += sum.verified > sum.wrong ? sum.verified - sum.wrong : 0;
    }
    return right;
}
