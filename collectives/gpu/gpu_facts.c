#include "collectives/gpu/gpu_private.h"
#include "collectives/gpu/load/gpu_copies.h"
#include "collectives/ranks/facts_out.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const algorithm_names[GPU_ALGORITHM_COUNT] = {
    [GPU_ONESHOT] = "one-shot",     [GPU_EXCHANGE] = "exchange", [GPU_LL128] = "exchange-ll128",
    [GPU_TWOSHOT] = "two-shot",     [GPU_PUSH] = "push",         [GPU_MULTIMEM] = "multimem",
    [GPU_ENGINES] = "copy-engines", [GPU_LIBRARY] = "library"};

static void facts_begin(struct shk_facts_out *out, const struct gpu_run *run,
                        struct shk_facts *facts)
{
    memset(out, 0, sizeof *out);
    out->facts = facts;
    out->transport = run->path->name;
    snprintf(out->source, sizeof out->source, "%s all-reduce", run->path->name);
}

/* What rank first, or else some rank, got to publish under key, as a new NUL-terminated string;
 * NULL when none did. */
static char *facts_published_by(const struct shk_job *job, int first, const char *key,
                                size_t *len_p)
{
    char *buf = malloc(SHK_JOB_SPACE + 1);
    unsigned size = shk_job_size(job);
    unsigned start = first > 0 && (unsigned)first < size ? (unsigned)first : 0;

    for (unsigned i = 0; i < size && buf != NULL; i++) {
        unsigned rank = (start + i) % size;

        if (shk_job_get(job, rank, key, buf, SHK_JOB_SPACE, len_p, NULL) == 0) {
            buf[*len_p] = '\0';
            return buf;
        }
    }
    free(buf);
    return NULL;
}

static char *facts_published(const struct shk_job *job, const char *key, size_t *len_p)
{
    return facts_published_by(job, 0, key, len_p);
}

static const struct gpu_result *result_of(const struct shk_job *job, unsigned rank)
{
    return shk_job_result(job, rank);
}

static unsigned facts_rows(const struct shk_job *job)
{
    uint32_t rows = __atomic_load_n(&result_of(job, 0)->rows, __ATOMIC_ACQUIRE);

    return rows < GPU_ROWS_MAX ? rows : GPU_ROWS_MAX;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The mean of the ranks' times, as nccl-tests has it, the slowest rank's percentiles, everyone's
 * wrong elements. False when a rank did not get that far. */
static bool facts_join(const struct shk_job *job, unsigned i, struct gpu_row *sum)
{
    bool done = true;

    *sum = result_of(job, 0)->row[i];
    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        const struct gpu_row *row = &result_of(job, rank)->row[i];

        done = done && __atomic_load_n(&row->done, __ATOMIC_ACQUIRE) != 0;
        sum->time_us += rank > 0 ? row->time_us : 0;
        sum->in_place_us += rank > 0 ? row->in_place_us : 0;
        sum->graph_us += rank > 0 ? row->graph_us : 0;
        sum->p50_us = larger(sum->p50_us, row->p50_us);
        sum->p99_us = larger(sum->p99_us, row->p99_us);
        if (rank > 0) {
            sum->wrong += row->wrong;
            sum->in_place_wrong += row->in_place_wrong;
        }
    }
    sum->time_us /= shk_job_size(job);
    sum->in_place_us /= shk_job_size(job);
    sum->graph_us /= shk_job_size(job);
    return done;
}

static void row_time(json_t *row, const char *name, double value)
{
    if (value > 0)
        (void)json_object_set_new(row, name, json_real(value));
}

static json_t *facts_row(const struct shk_job *job, const struct gpu_row *sum)
{
    double ranks = shk_job_size(job);
    double algbw = sum->time_us > 0 ? (double)sum->bytes / (sum->time_us * 1000.0) : 0;
    json_t *row = json_pack(
        "{s:I, s:I, s:s, s:s, s:s, s:i, s:f, s:f, s:f, s:I, s:I}", "bytes", (json_int_t)sum->bytes,
        "count", (json_int_t)sum->count, "type",
        shk_gpu_type_name(sum->type < SHK_GPU_TYPE_COUNT ? sum->type : SHK_GPU_F32), "redop", "sum",
        "algorithm",
        algorithm_names[sum->algorithm < GPU_ALGORITHM_COUNT ? sum->algorithm : GPU_LIBRARY],
        "iterations", (int)sum->iterations, "time_us", sum->time_us, "algbw", algbw, "busbw",
        algbw * 2.0 * (ranks - 1.0) / ranks, "wrong", (json_int_t)sum->wrong, "in_place_wrong",
        (json_int_t)sum->in_place_wrong);

    if (row) {
        row_time(row, "in_place_us", sum->in_place_us);
        row_time(row, "graph_us", sum->graph_us);
        row_time(row, "p50_us", sum->p50_us);
        row_time(row, "p99_us", sum->p99_us);
    }
    return row;
}

static json_t *facts_sizes(const struct shk_job *job)
{
    json_t *sizes = json_array();
    unsigned rows = facts_rows(job);

    for (unsigned i = 0; i < rows && sizes != NULL; i++) {
        struct gpu_row sum;
        bool done = facts_join(job, i, &sum);

        if ((done || sum.wrong + sum.in_place_wrong > 0) &&
            json_array_append_new(sizes, facts_row(job, &sum)) != 0) {
            json_decref(sizes);
            sizes = NULL;
        }
    }
    return sizes;
}

static void facts_status(struct shk_facts_out *out, const char *status, const char *reason,
                         int rank, const char *phase, const char *cause)
{
    shk_out_status(out, status, reason, rank, phase);
    shk_out_text(out, "cause", cause);
}

/* First rank that saw something wrong; -1 none. */
static int facts_wrong(const struct shk_job *job)
{
    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (result_of(job, rank)->bad != 0)
            return (int)rank;
    }
    return -1;
}

/* What was wrong first, how many cases of all were, and in which library. */
static void facts_wrong_text(const struct shk_facts_out *out, const struct shk_job *job,
                             const char *first, unsigned wrong, unsigned all, char *text,
                             size_t size)
{
    size_t len = 0;
    char *library = facts_published(job, GPU_KEY_LIBRARY, &len);
    size_t version = library ? strcspn(library, "\n") : 0;
    int used = snprintf(text, size, "%s; %u of %u combinations of type, count and place are wrong",
                        first, wrong, all);

    if (version > 0 && used > 0 && (size_t)used < size) {
        snprintf(text + used, size - (size_t)used, ", with %s %.*s",
                 strcmp(out->transport, "rccl") == 0 ? "RCCL" : "NCCL",
                 version > 32 ? 32 : (int)version, library);
    }
    free(library);
}

/* 16-bit data at odd places, in a library: {wrong, cases, text} of the rank with most wrong. */
static void facts_unaligned(struct shk_facts_out *out, const struct shk_job *job)
{
    const struct gpu_result *worst = result_of(job, 0);
    char text[640] = "";

    for (unsigned rank = 1; rank < shk_job_size(job); rank++) {
        const struct gpu_result *result = result_of(job, rank);

        worst = result->unaligned_wrong > worst->unaligned_wrong ? result : worst;
    }
    if (worst->unaligned_cases == 0)
        return;
    if (worst->unaligned_wrong > 0) {
        facts_wrong_text(out, job, worst->unaligned_text, worst->unaligned_wrong,
                         worst->unaligned_cases, text, sizeof text);
    }
    shk_out_json(out, "unaligned",
                 json_pack("{s:i, s:i, s:s}", "wrong", (int)worst->unaligned_wrong, "cases",
                           (int)worst->unaligned_cases, "text", text));
}

/* Some ranks found GPUs, others none: that is not a job without GPUs. */
static bool facts_some_have_none(const struct shk_job *job)
{
    char buf[SHK_JOB_SPACE];
    bool some = false;
    bool none = false;
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        bool placed = shk_job_get(job, rank, GPU_KEY_PLACE, buf, sizeof buf, &len, NULL) == 0;

        some = some || placed;
        none = none || !placed;
    }
    return some && none;
}

/* The cause is that of the rank which is blamed: one that lost its peer by that has another. */
static void facts_outcome(struct shk_facts_out *out, const struct shk_job *job,
                          const struct shk_crew_result *result)
{
    int wrong = facts_wrong(job);
    int blamed = result->rank >= 0 ? (int)result->ranks[result->rank].id : -1;
    char text[640];
    size_t len = 0;
    char *cause = facts_published_by(job, result->rank, GPU_KEY_CAUSE, &len);
    bool na = cause && result->outcome == SHK_CREW_FAILED &&
              strcmp(cause, gpu_cause_names[GPU_CAUSE_NA]) == 0;

    if (result->outcome == SHK_CREW_OK && wrong >= 0) {
        const struct gpu_result *bad = result_of(job, (unsigned)wrong);

        facts_wrong_text(out, job, bad->bad_text, bad->wrong_cases, bad->wrong_cases + bad->cases,
                         text, sizeof text);
        facts_status(out, "wrong", text, (int)result->ranks[wrong].id, "verify", "wrong-result");
    } else if (na && facts_some_have_none(job)) {
        facts_status(out, "failed", result->reason.text, blamed, result->phase, "gpu-missing");
    } else if (na) {
        facts_status(out, "na", result->reason.text, -1, NULL, NULL);
    } else {
        /* of a pair neither is to blame */
        blamed = cause && strcmp(cause, gpu_cause_names[GPU_CAUSE_NO_PEER]) == 0 ? -1 : blamed;
        facts_status(out, shk_crew_status(result->outcome), result->reason.text, blamed,
                     result->phase, result->out_of_memory || !cause ? result->cause : cause);
    }
    free(cause);
}

static void facts_library(struct shk_facts_out *out, const struct shk_job *job)
{
    size_t len = 0;
    char *text = facts_published(job, GPU_KEY_LIBRARY, &len);
    char *path = text ? strchr(text, '\n') : NULL;

    if (path) {
        *path++ = '\0';
        shk_out_text(out, "version", text);
        shk_out_text(out, "library", path);
    }
    free(text);
}

static void facts_proof(struct shk_facts_out *out, const struct shk_job *job)
{
    size_t len = 0;
    char *text = facts_published(job, GPU_KEY_PROOF, &len);
    json_t *proof = text ? json_loads(text, 0, NULL) : NULL;

    if (proof)
        shk_out_json(out, "proof", proof);
    free(text);
    text = facts_published(job, GPU_KEY_LOG, &len);
    if (text)
        shk_out_text(out, "log", text);
    free(text);
    text = facts_published(job, GPU_KEY_COPY, &len);
    if (text && len == 2 * sizeof(double)) {
        double rates[2];

        memcpy(rates, text, sizeof rates);
        shk_out_json(out, "copy",
                     json_pack("{s:f, s:f}", "one_way_gbs", rates[0], "both_ways_gbs", rates[1]));
    }
    free(text);
    proof = gpu_copies_json(job);
    if (proof)
        shk_out_json(out, "copies", proof);
    proof = gpu_stress_json(job);
    if (proof)
        shk_out_json(out, "stress", proof);
}

static void facts_evidence(struct shk_facts_out *out, const struct shk_job *job,
                           const struct shk_crew_result *result)
{
    json_t *lines = json_array();
    unsigned long long verified = 0;
    unsigned cases = UINT32_MAX;
    char line[SHK_CREW_OUTPUT + 64];

    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        cases = result_of(job, rank)->cases < cases ? result_of(job, rank)->cases : cases;
        for (unsigned i = 0; i < facts_rows(job); i++)
            verified += result_of(job, rank)->row[i].verified;
    }
    shk_out_int(out, "cases", cases);
    if (verified > 0) {
        snprintf(line, sizeof line,
                 "%llu elements compared bit for bit on %u ranks, after %u combinations of type, "
                 "count, offset and place",
                 verified, shk_job_size(job), cases);
        (void)json_array_append_new(lines, json_string(line));
    }
    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (result->ranks[rank].output[0] != '\0') {
            snprintf(line, sizeof line, "output of rank %u: %s", rank, result->ranks[rank].output);
            (void)json_array_append_new(lines, shk_json_text(line, strlen(line)));
        }
    }
    shk_out_json(out, "evidence", lines);
}

int gpu_facts(const struct gpu_run *run, struct shk_facts *facts, const struct shk_job *job,
              const struct shk_crew_result *result, struct shk_error *err)
{
    struct shk_facts_out out;

    facts_begin(&out, run, facts);
    facts_outcome(&out, job, result);
    shk_out_int(&out, "ranks", shk_job_size(job));
    shk_out_json(&out, "sizes", facts_sizes(job));
    shk_out_json(&out, "devices", gpu_device_json(job));
    facts_library(&out, job);
    facts_unaligned(&out, job);
    facts_proof(&out, job);
    facts_evidence(&out, job, result);
    shk_out_json(&out, "ranks_state", shk_crew_ranks_json(job, result));
    if (json_array_size(result->disagree) > 0)
        shk_out_json(&out, "disagree", json_incref(result->disagree));
    return shk_out_end(&out, err);
}

int gpu_facts_not_run(const struct gpu_run *run, struct shk_facts *facts, const char *status,
                      const char *why, struct shk_error *err)
{
    struct shk_facts_out out;

    facts_begin(&out, run, facts);
    facts_status(&out, status, why, -1, "start", NULL);
    shk_out_int(&out, "ranks", run->options->ranks);
    shk_out_json(&out, "sizes", json_array());
    shk_out_json(&out, "evidence", json_array());
    shk_out_json(&out, "ranks_state", json_array());
    return shk_out_end(&out, err);
}
