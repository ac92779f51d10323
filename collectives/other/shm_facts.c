#include "collectives/algorithm/sweep.h"
#include "collectives/other/shm_private.h"
#include "collectives/ranks/facts_out.h"
#include <stdio.h>
#include <string.h>

#define FACTS_SOURCE "all-reduce in shared memory"

static void facts_outcome(struct shk_facts_out *out, const struct shk_job *job,
                          const struct shk_crew_result *result)
{
    struct shk_error wrong = {{0}};
    int rank = -1;

    if (result->outcome == SHK_CREW_OK && shk_sweep_wrong(job, &rank, &wrong)) {
        shk_out_status(out, "wrong", wrong.text, rank, "verify");
        return;
    }
    shk_out_status(out, shk_crew_status(result->outcome), result->reason.text, result->rank,
                   result->phase);
    if (result->cause)
        shk_out_text(out, "cause", result->cause);
}

static void facts_line(json_t *lines, const char *text)
{
    (void)json_array_append_new(lines, shk_json_text(text, strlen(text)));
}

static void facts_evidence(struct shk_facts_out *out, const struct shk_job *job,
                           const struct shk_crew_result *result, const json_t *roofline)
{
    json_t *lines = json_array();
    uint64_t verified = shk_sweep_verified(job);
    char line[SHK_CREW_OUTPUT + 64];

    facts_line(lines, "own shared memory: one anonymous mapping that all ranks inherited; "
                      "libfabric was not loaded");
    if (verified > 0) {
        snprintf(line, sizeof line, "%llu elements verified on %u ranks",
                 (unsigned long long)verified, shk_job_size(job));
        facts_line(lines, line);
    }
    if (json_is_object(roofline)) {
        snprintf(line, sizeof line, "plain puts between the same ranks: %.2f us one way",
                 json_number_value(json_object_get(roofline, "latency_us")));
        facts_line(lines, line);
    }
    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (result->ranks[rank].output[0] != '\0') {
            snprintf(line, sizeof line, "output of rank %u: %s", rank, result->ranks[rank].output);
            facts_line(lines, line);
        }
    }
    shk_out_json(out, "evidence", lines);
}

int shm_facts(struct shk_facts *facts, const struct shk_job *job,
              const struct shk_crew_result *result, struct shk_error *err)
{
    struct shk_facts_out out = {.facts = facts, .transport = "shm", .source = FACTS_SOURCE};
    json_t *roofline = shk_sweep_roofline_json(job);

    facts_outcome(&out, job, result);
    shk_out_int(&out, "ranks", shk_job_size(job));
    shk_out_json(&out, "sizes", shk_sweep_json(job));
    facts_evidence(&out, job, result, roofline);
    if (json_is_null(roofline)) {
        shk_out_note(&out, shk_facts_absent(facts, shk_out_key(&out, "roofline"), FACTS_SOURCE,
                                            "plain copies were not measured"));
    } else {
        shk_out_json(&out, "roofline", json_incref(roofline));
    }
    shk_out_json(&out, "ranks_state", shk_crew_ranks_json(job, result));
    json_decref(roofline);
    return shk_out_end(&out, err);
}

int shm_facts_not_run(struct shk_facts *facts, unsigned ranks, const char *why,
                      struct shk_error *err)
{
    struct shk_facts_out out = {.facts = facts, .transport = "shm", .source = FACTS_SOURCE};

    shk_out_status(&out, "failed", why, -1, "start");
    shk_out_int(&out, "ranks", ranks);
    return shk_out_end(&out, err);
}
