#include "collectives/other/nvshmem_private.h"
#include "collectives/ranks/job_private.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct out {
    struct shk_facts *facts;
    int rc; /* first error */
};

static const char *out_key(char *buf, size_t size, const char *member)
{
    snprintf(buf, size, "collective.nvshmem.%s", member);
    return buf;
}

/* NULL or "": no fact. */
static void out_text(struct out *out, const char *member, const char *text)
{
    char key[64];
    int rc = text && *text != '\0'
                 ? shk_facts_text(out->facts, out_key(key, sizeof key, member), text, "nvshmem")
                 : 0;

    out->rc = out->rc != 0 ? out->rc : rc;
}

static void out_int(struct out *out, const char *member, long long value)
{
    char key[64];
    int rc = shk_facts_int(out->facts, out_key(key, sizeof key, member), value, NULL, "nvshmem");

    out->rc = out->rc != 0 ? out->rc : rc;
}

static void out_look(struct out *out, const json_t *look)
{
    out_text(out, "library", json_string_value(json_object_get(look, "library")));
    out_text(out, "version", json_string_value(json_object_get(look, "version")));
}

static void out_tail(struct out *out, const char *output)
{
    size_t len = output ? strlen(output) : 0;

    out_text(out, "output", len > 0 ? output + (len > 2000 ? len - 2000 : 0) : NULL);
}

int nvshmem_facts_not_run(struct shk_facts *facts, const struct shk_isolate_result *look,
                          const char *why, struct shk_error *err)
{
    static const char *const names[] = {[SHK_CHILD_FAILED] = "na",
                                        [SHK_CHILD_TIMEOUT] = "timeout",
                                        [SHK_CHILD_STARVED] = "starved",
                                        [SHK_CHILD_SIGNALED] = "crashed"};
    struct out out = {.facts = facts};
    size_t at = (size_t)look->outcome;
    const char *status = at < sizeof names / sizeof names[0] && names[at] ? names[at] : "failed";

    out_text(&out, "status", status);
    out_text(&out, "reason", why);
    out_look(&out, look->result);
    out_tail(&out, look->output);
    return out.rc == 0 ? 0 : shk_error_sys(err, -out.rc, "facts of nvshmem");
}

/* What every PE measured, the slowest one's time. */
static json_t *facts_rows(const struct shk_job *job, uint64_t *wrong_p)
{
    json_t *rows = json_array();

    for (unsigned i = 0; i < NVSHMEM_ROWS; i++) {
        struct nvshmem_row sum = {.done = 1};

        for (unsigned pe = 0; pe < shk_job_size(job); pe++) {
            const struct nvshmem_result *result = shk_job_result(job, pe);
            const struct nvshmem_row *row = &result->row[i];

            sum.done = sum.done != 0 && __atomic_load_n(&row->done, __ATOMIC_ACQUIRE) != 0;
            sum.bytes = row->bytes;
            sum.wrong += row->wrong;
            sum.time_us = row->time_us > sum.time_us ? row->time_us : sum.time_us;
        }
        if (sum.done != 0) {
            *wrong_p += sum.wrong;
            (void)json_array_append_new(rows, json_pack("{s:I, s:s, s:s, s:f, s:I}", "bytes",
                                                        (json_int_t)sum.bytes, "type", "uint8",
                                                        "redop", "put", "time_us", sum.time_us,
                                                        "wrong", (json_int_t)sum.wrong));
        }
    }
    return rows;
}

static const char *facts_status(const struct shk_crew_result *result, uint64_t wrong)
{
    return result->outcome == SHK_CREW_OK && wrong != 0 ? "wrong"
                                                        : shk_crew_status(result->outcome);
}

static void facts_self(struct out *out, const json_t *rows, unsigned pes)
{
    char text[160];

    snprintf(text, sizeof text,
             "%u %s: symmetric memory, pointers to all, puts of 8 B %s in %.1f us", pes,
             pes == 1 ? "PE" : "PEs", pes == 1 ? "to itself" : "to the next",
             json_number_value(json_object_get(json_array_get(rows, 0), "time_us")));
    out_text(out, "self", text);
}

int nvshmem_facts(struct shk_facts *facts, const json_t *look, const struct shk_job *job,
                  const struct shk_crew_result *result, struct shk_error *err)
{
    struct out out = {.facts = facts};
    uint64_t wrong = 0;
    json_t *rows = facts_rows(job, &wrong);
    const char *status = facts_status(result, wrong);
    bool ok = strcmp(status, "ok") == 0;
    unsigned blamed = result->rank >= 0 ? (unsigned)result->rank : 0;
    char text[96];

    snprintf(text, sizeof text, "%llu bytes of nvshmem_putmem did not arrive",
             (unsigned long long)wrong);
    out_text(&out, "status", status);
    out_text(&out, "reason",
             result->outcome == SHK_CREW_OK && wrong != 0 ? text : result->reason.text);
    out_text(&out, "phase",
             result->outcome == SHK_CREW_OK && wrong != 0 ? "verify" : result->phase);
    out_look(&out, look);
    out_int(&out, "ranks", shk_job_size(job));
    if (result->rank >= 0)
        out_int(&out, "rank", result->rank);
    if (ok)
        facts_self(&out, rows, shk_job_size(job));
    else
        out_tail(&out, result->ranks[blamed].output);
    if (out.rc == 0 && json_array_size(rows) > 0)
        out.rc = shk_facts_present(facts, "collective.nvshmem.sizes", rows, NULL, "nvshmem");
    else
        json_decref(rows);
    return out.rc == 0 ? 0 : shk_error_sys(err, -out.rc, "facts of nvshmem");
}

static int run_pes(const struct shk_collective_options *options, struct shk_nvshmem_tweaks *tweaks,
                   const struct shk_isolate_result *look, struct shk_facts *facts,
                   struct shk_error *err)
{
    unsigned gpus = (unsigned)json_integer_value(json_object_get(look->result, "gpus"));
    unsigned pes = options->ranks < gpus ? options->ranks : gpus;
    unsigned used_ms = (unsigned)look->ms;
    struct shk_crew crew = {
        .name = "nvshmem",
        .work = nvshmem_pe,
        .arg = tweaks,
        .progress = options->progress,
        .progress_arg = options->progress_arg,
    };
    struct shk_crew_result result = {.rank = -1};
    struct shk_isolate_result failed = *look;
    struct shk_error why = {{0}};
    struct shk_job *job = NULL;
    int rc = shk_job_create(&job, pes, sizeof(struct nvshmem_result), &why);

    if (options->deadline_ms != 0)
        crew.deadline_ms = options->deadline_ms > used_ms ? options->deadline_ms - used_ms : 1;
    if (rc == 0)
        rc = shk_crew_run(&crew, job, &result, &why);
    if (rc == 0) {
        rc = nvshmem_facts(facts, look->result, job, &result, err);
    } else {
        failed.outcome = SHK_CHILD_OK; /* the look was: "failed" */
        rc = nvshmem_facts_not_run(facts, &failed, why.text, err);
    }
    shk_crew_result_clear(&result);
    shk_job_destroy(job);
    return rc;
}

int shk_nvshmem_run(const struct shk_collective_options *options,
                    const struct shk_nvshmem_tweaks *tweaks, struct shk_facts *facts,
                    struct shk_error *err)
{
    struct shk_nvshmem_tweaks what = {0};
    struct shk_isolate_job job = {.name = "nvshmem",
                                  .fn = nvshmem_look,
                                  .arg = &what,
                                  .deadline_ms = options->deadline_ms,
                                  .memory_limit = (size_t)16 << 30};
    struct shk_isolate_result look = {0};
    int rc = 0;

    if (tweaks)
        what = *tweaks;
    rc = shk_isolate_run(&job, &look, 1, 1, err);
    if (rc == 0) {
        rc = look.outcome == SHK_CHILD_OK
                 ? run_pes(options, &what, &look, facts, err)
                 : nvshmem_facts_not_run(facts, &look, look.error.text, err);
    }
    shk_isolate_result_clear(&look);
    return rc;
}

static int run_nvshmem(const struct shk_collective_options *options, struct shk_facts *facts,
                       struct shk_error *err)
{
    return shk_nvshmem_run(options, NULL, facts, err);
}

const struct shk_transport shk_transport_nvshmem = {
    .name = "nvshmem",
    .doc = "NVSHMEM on local GPUs: start, symmetric memory, peers, put latency (not an all-reduce)",
    .per_gpu = true,
    .run = run_nvshmem,
};
