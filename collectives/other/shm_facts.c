#include "collectives/algorithm/sweep.h"
#include "collectives/other/shm_private.h"
#include <stdio.h>
#include <string.h>

#define FACTS_SOURCE "all-reduce in shared memory"

/* Writing many facts with one test at the end. */
struct facts_out {
    struct shk_facts *facts;
    int rc; /* first error */
    char key[64];
};

static const char *facts_key(struct facts_out *out, const char *member)
{
    snprintf(out->key, sizeof(out->key), "collective.shm.%s", member);
    return out->key;
}

static void facts_note(struct facts_out *out, int rc)
{
    out->rc = out->rc != 0 ? out->rc : rc;
}

/* text NULL or "": absent. */
static void facts_text(struct facts_out *out, const char *member, const char *text)
{
    facts_note(out, shk_facts_text(out->facts, facts_key(out, member),
                                   text != NULL && *text != '\0' ? text : NULL, FACTS_SOURCE));
}

static void facts_json(struct facts_out *out, const char *member, json_t *value)
{
    facts_note(out,
               shk_facts_present(out->facts, facts_key(out, member), value, NULL, FACTS_SOURCE));
}

static void facts_status(struct facts_out *out, const char *status, const char *reason, int rank,
                         const char *phase)
{
    facts_text(out, "status", status);
    facts_text(out, "reason", reason);
    facts_text(out, "phase", phase);
    if (rank >= 0) {
        facts_note(out,
                   shk_facts_int(out->facts, facts_key(out, "rank"), rank, NULL, FACTS_SOURCE));
    } else {
        facts_note(out, shk_facts_absent(out->facts, facts_key(out, "rank"), FACTS_SOURCE,
                                         "no single rank is to blame"));
    }
}

static void facts_outcome(struct facts_out *out, const struct shk_job *job,
                          const struct shk_crew_result *result)
{
    struct shk_error wrong = {{0}};
    int rank = -1;

    if (result->outcome == SHK_CREW_OK && shk_sweep_wrong(job, &rank, &wrong)) {
        facts_status(out, "wrong", wrong.text, rank, "verify");
        return;
    }
    facts_status(out, shk_crew_status(result->outcome), result->reason.text, result->rank,
                 result->phase);
    if (result->cause != NULL) {
        facts_text(out, "cause", result->cause);
    }
}

static void facts_line(json_t *lines, const char *text)
{
    (void)json_array_append_new(lines, shk_json_text(text, strlen(text)));
}

static void facts_evidence(struct facts_out *out, const struct shk_job *job,
                           const struct shk_crew_result *result, const json_t *roofline)
{
    json_t *lines = json_array();
    uint64_t verified = shk_sweep_verified(job);
    char line[SHK_CREW_OUTPUT + 64];
    unsigned rank = 0;

    facts_line(lines, "own shared memory: one anonymous mapping that all ranks inherited; "
                      "libfabric was not loaded");
    if (verified > 0) {
        snprintf(line, sizeof(line), "%llu elements verified on %u ranks",
                 (unsigned long long)verified, shk_job_size(job));
        facts_line(lines, line);
    }
    if (json_is_object(roofline)) {
        snprintf(line, sizeof(line), "plain puts between the same ranks: %.2f us one way",
                 json_number_value(json_object_get(roofline, "latency_us")));
        facts_line(lines, line);
    }
    for (rank = 0; rank < shk_job_size(job); rank++) {
        if (result->ranks[rank].output[0] != '\0') {
            snprintf(line, sizeof(line), "output of rank %u: %s", rank, result->ranks[rank].output);
            facts_line(lines, line);
        }
    }
    facts_json(out, "evidence", lines);
}

static int facts_end(const struct facts_out *out, struct shk_error *err)
{
    return out->rc == 0 ? 0 : shk_error_sys(err, -out->rc, "facts of the all-reduce");
}

int shm_facts(struct shk_facts *facts, const struct shk_job *job,
              const struct shk_crew_result *result, struct shk_error *err)
{
    struct facts_out out = {.facts = facts};
    json_t *roofline = shk_sweep_roofline_json(job);

    facts_outcome(&out, job, result);
    facts_note(&out, shk_facts_int(facts, facts_key(&out, "ranks"), shk_job_size(job), NULL,
                                   FACTS_SOURCE));
    facts_json(&out, "sizes", shk_sweep_json(job));
    facts_evidence(&out, job, result, roofline);
    if (json_is_null(roofline)) {
        facts_note(&out, shk_facts_absent(facts, facts_key(&out, "roofline"), FACTS_SOURCE,
                                          "plain puts were not measured"));
    } else {
        facts_json(&out, "roofline", json_incref(roofline));
    }
    facts_json(&out, "ranks_state", shk_crew_ranks_json(job, result));
    json_decref(roofline);
    return facts_end(&out, err);
}

int shm_facts_not_run(struct shk_facts *facts, unsigned ranks, const char *why,
                      struct shk_error *err)
{
    struct facts_out out = {.facts = facts};

    facts_status(&out, "failed", why, -1, "start");
    facts_note(&out, shk_facts_int(facts, facts_key(&out, "ranks"), ranks, NULL, FACTS_SOURCE));
    return facts_end(&out, err);
}
