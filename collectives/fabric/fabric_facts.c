#include "collectives/algorithm/sweep.h"
#include "collectives/fabric/fabric_private.h"
#include "collectives/ranks/facts_out.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FACTS_SOURCE "libfabric all-reduce"

static const char *const facts_members[] = {
    "provider", "fabric", "domain", "endpoint", "protocol", "library", "version",
};

/* What rank `first` (-1: none in particular), or else some rank, got to publish under key, as a new
 * NUL-terminated string; NULL when none did. */
static char *facts_published_by(const struct shk_job *job, int first, const char *key)
{
    char *buf = malloc(SHK_JOB_SPACE + 1);
    unsigned size = shk_job_size(job);
    unsigned start = first > 0 && (unsigned)first < size ? (unsigned)first : 0;
    size_t len = 0;

    for (unsigned i = 0; i < size && buf != NULL; i++) {
        if (shk_job_get(job, (start + i) % size, key, buf, SHK_JOB_SPACE, &len, NULL) == 0) {
            buf[len] = '\0';
            return buf;
        }
    }
    free(buf);
    return NULL;
}

static char *facts_published(const struct shk_job *job, const char *key)
{
    return facts_published_by(job, 0, key);
}

static json_t *facts_identity(const struct shk_job *job)
{
    char *text = facts_published(job, FABRIC_IDENTITY);
    json_t *identity = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    return identity;
}

static void facts_chosen(struct shk_facts_out *out, const json_t *identity)
{
    for (size_t i = 0; i < sizeof facts_members / sizeof facts_members[0]; i++) {
        const char *member = facts_members[i];
        const char *text = json_string_value(json_object_get(identity, member));

        if (text) {
            shk_out_text(out, member, text);
        } else {
            shk_out_note(out, shk_facts_failed(out->facts, shk_out_key(out, member), FACTS_SOURCE,
                                               "no rank got as far as opening a provider"));
        }
    }
}

static void facts_add_line(json_t *lines, const char *text)
{
    (void)json_array_append_new(lines, shk_json_text(text, strlen(text)));
}

static void facts_add_identity(json_t *lines, const json_t *identity)
{
    const char *provider = NULL;
    const char *protocol = NULL;
    const char *domain = NULL;
    const char *fabric = NULL;
    const char *mr_mode = NULL;
    const char *progress = NULL;
    char line[512];

    if (json_unpack((json_t *)identity, "{s:s, s:s, s:s, s:s, s:s, s:s}", "provider", &provider,
                    "protocol", &protocol, "domain", &domain, "fabric", &fabric, "mr_mode",
                    &mr_mode, "progress", &progress) != 0) {
        return;
    }
    snprintf(line, sizeof line, "libfabric's first choice: %s (%s) on domain %s, fabric %s; %s%s%s",
             provider, protocol, domain, fabric, progress, *mr_mode != '\0' ? "; " : "", mr_mode);
    facts_add_line(lines, line);
}

static bool facts_is_hmem(const struct shk_facts_out *out)
{
    return strcmp(out->transport, "fabric-hmem") == 0;
}

/* GPU memory: does the provider offer it, or what it was asked for and does. */
static json_t *facts_hmem(struct shk_facts_out *out, const struct shk_job *job)
{
    char *text = facts_published(job, FABRIC_HMEM);
    json_t *hmem = text ? json_loads(text, 0, NULL) : NULL;
    const char *why = "no rank got as far as opening a provider";

    free(text);
    if (hmem) {
        shk_out_json(out, "hmem", json_incref(hmem));
    } else if (facts_is_hmem(out)) {
        shk_out_note(
            out, shk_facts_absent(out->facts, shk_out_key(out, "hmem"), FACTS_SOURCE, "%s", why));
    } else {
        shk_out_json(out, "hmem", json_pack("{s:s, s:s}", "status", "na", "reason", why));
    }
    if (facts_is_hmem(out))
        shk_out_json(out, "devices", shk_gpu_memory_devices(job));
    return hmem;
}

static void facts_add_hmem(json_t *lines, const json_t *hmem)
{
    const char *iface = NULL;
    const char *usual = NULL;
    const char *sums = NULL;
    const char *p2p = NULL;
    const char *answer = NULL;
    const char *calls = NULL;
    char line[512];

    if (json_unpack((json_t *)hmem, "{s:s, s:s, s:s, s:{s:s, s:s, s:s}}", "iface", &iface,
                    "host_provider", &usual, "sums", &sums, "effective", "p2p", &p2p, "answer",
                    &answer, "cuda_calls", &calls) != 0) {
        return;
    }
    snprintf(line, sizeof line,
             "%s; peer to peer requested: required (%s), effective: %s; calls of CUDA by the "
             "provider: %s; sums %s",
             iface, answer, p2p, calls, sums);
    facts_add_line(lines, line);
    snprintf(line, sizeof line, "provider of host memory: %s", *usual != '\0' ? usual : "none");
    facts_add_line(lines, line);
}

/* The highest of the roofline, as what the efficiency of the sizes is measured by. */
static void facts_add_roofline(json_t *lines, const struct shk_job *job)
{
    json_t *roofline = shk_sweep_roofline_json(job);
    json_t *row = NULL;
    double best = 0;
    char line[256];
    size_t i = 0;

    json_array_foreach(json_object_get(roofline, "sizes"), i, row)
    {
        double bandwidth = json_number_value(json_object_get(row, "bandwidth"));

        best = bandwidth > best ? bandwidth : best;
    }
    if (best > 0) {
        snprintf(line, sizeof line,
                 "plain puts between the same ranks: %.2f us one way, up to %.2f GB/s from every "
                 "rank to the next at once",
                 json_number_value(json_object_get(roofline, "latency_us")), best);
        facts_add_line(lines, line);
    }
    json_decref(roofline);
}

/* What is shown as evidence, too. */
struct facts_shown {
    const json_t *identity, *hmem, *rails, *ports;
};

static void facts_add_published(json_t *lines, const struct shk_job *job, const char *key)
{
    char *text = facts_published(job, key);

    if (text)
        facts_add_line(lines, text);
    free(text);
}

/* Sizes of which nothing but the data told. */
static bool facts_stamped(const struct shk_job *job)
{
    json_t *sizes = shk_sweep_json(job);
    json_t *row = NULL;
    bool found = false;
    size_t i = 0;

    json_array_foreach(sizes, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "algorithm"));

        found |= name && strcmp(name, "stamped") == 0;
    }
    json_decref(sizes);
    return found;
}

static void facts_evidence(struct shk_facts_out *out, const struct shk_job *job,
                           const struct shk_crew_result *result, const struct facts_shown *shown)
{
    json_t *lines = json_array();
    char *notify = facts_published(job, FABRIC_NOTIFY);
    char *direct = facts_published(job, FABRIC_DIRECT);
    uint64_t verified = shk_sweep_verified(job);
    char line[SHK_CREW_OUTPUT + 64];

    facts_add_identity(lines, shown->identity);
    fabric_ports_evidence(shown->ports, facts_add_line, lines);
    facts_add_published(lines, job, FABRIC_QUEUES);
    facts_add_hmem(lines, shown->hmem);
    if (notify) {
        snprintf(line, sizeof line, "arrival known at the target by: %.100s%s", notify,
                 facts_stamped(job) ? "; of `stamped` by a stamp in the data" : "");
        facts_add_line(lines, line);
    }
    if (direct) {
        snprintf(line, sizeof line,
                 "for `stamped` there are connected endpoints of %.40s; sizes that take "
                 "it are verified by the first choice as well",
                 direct);
        facts_add_line(lines, line);
    }
    if (verified > 0) {
        snprintf(line, sizeof line, "%llu elements verified on %u ranks",
                 (unsigned long long)verified, shk_job_size(job));
        facts_add_line(lines, line);
    }
    facts_add_roofline(lines, job);
    fabric_rails_evidence(shown->rails, facts_add_line, lines);
    for (unsigned rank = 0; rank < shk_job_size(job); rank++) {
        if (result->ranks[rank].output[0] != '\0') {
            snprintf(line, sizeof line, "output of rank %u: %s", rank, result->ranks[rank].output);
            facts_add_line(lines, line);
        }
    }
    free(direct);
    free(notify);
    shk_out_json(out, "evidence", lines);
}

/* What each rank published under key as an object, with its number: of ranks that got that far. */
static json_t *facts_rows(struct shk_facts_out *out, const struct shk_job *job, const char *key)
{
    json_t *rows = json_array();
    char buf[512];
    size_t len = 0;

    for (unsigned rank = 0; rank < shk_job_size(job) && rows != NULL; rank++) {
        json_t *row = NULL;

        if (shk_job_get(job, rank, key, buf, sizeof buf, &len, NULL) != 0)
            continue;
        row = json_loadb(buf, len, 0, NULL);
        if (json_is_object(row) && (json_object_set_new(row, "rank", json_integer(rank)) != 0 ||
                                    json_array_append(rows, row) != 0)) {
            shk_out_note(out, -ENOMEM);
        }
        json_decref(row);
    }
    return rows;
}

static void facts_roofline(struct shk_facts_out *out, const struct shk_job *job)
{
    json_t *roofline = shk_sweep_roofline_json(job);

    if (json_is_null(roofline)) {
        shk_out_note(out, shk_facts_absent(out->facts, shk_out_key(out, "roofline"), FACTS_SOURCE,
                                           "plain puts were not measured"));
    } else {
        shk_out_json(out, "roofline", roofline);
    }
}

/* A cause that has nothing to do with the memory. */
static bool facts_elsewhere(const struct shk_crew_result *result)
{
    const char *cause = result->cause ? result->cause : "";

    return strcmp(cause, "rank-stopped") == 0 || strcmp(cause, "rank-silent") == 0 ||
           strcmp(cause, "node-unreachable") == 0;
}

/* GPU memory, unless all went well: why, and was there nothing to test? */
static bool facts_not_here(struct shk_facts_out *out, const struct shk_job *job,
                           const struct shk_crew_result *result)
{
    char *cause = facts_published_by(job, result->rank, FABRIC_CAUSE);
    bool na = cause && strcmp(cause, "na") == 0 && result->outcome == SHK_CREW_FAILED;

    if (na)
        shk_out_status(out, "na", result->reason.text, -1, NULL);
    else if (cause && strcmp(cause, "na") != 0)
        shk_out_text(out, "cause", cause);
    else
        shk_out_text(out, "cause", facts_elsewhere(result) ? result->cause : "hmem-failed");
    free(cause);
    return na;
}

/* Host memory: what the crew found out, or what the rank itself did. */
static void facts_cause(struct shk_facts_out *out, const struct shk_job *job,
                        const struct shk_crew_result *result)
{
    char *refused = !result->cause && result->outcome == SHK_CREW_FAILED
                        ? facts_published_by(job, result->rank, FABRIC_REFUSED)
                        : NULL;

    if (result->cause)
        shk_out_text(out, "cause", result->cause);
    else if (refused)
        shk_out_text(out, "cause", refused);
    free(refused);
}

static void facts_outcome(struct shk_facts_out *out, const struct shk_job *job,
                          const struct shk_crew_result *result)
{
    struct shk_error wrong = {{0}};
    int rank = -1;

    if (facts_is_hmem(out) && result->outcome != SHK_CREW_OK && facts_not_here(out, job, result))
        return;
    if (result->outcome == SHK_CREW_OK && shk_sweep_wrong(job, &rank, &wrong)) {
        shk_out_status(out, "wrong", wrong.text, rank, "verify");
        if (facts_is_hmem(out))
            shk_out_text(out, "cause", "hmem-wrong");
    } else {
        rank = result->rank >= 0 ? (int)result->ranks[result->rank].id : -1;
        shk_out_status(out, shk_crew_status(result->outcome), result->reason.text, rank,
                       result->phase);
        if (!facts_is_hmem(out))
            facts_cause(out, job, result);
    }
}

int fabric_facts(const char *transport, struct shk_facts *facts, const struct shk_job *job,
                 const struct shk_crew_result *result, struct shk_error *err)
{
    struct shk_facts_out out = {.facts = facts, .transport = transport, .source = FACTS_SOURCE};
    json_t *identity = facts_identity(job);
    json_t *hmem = NULL;
    json_t *ports = NULL;
    json_t *rails = fabric_rails_json(job, result);

    facts_outcome(&out, job, result);
    shk_out_int(&out, "ranks", shk_job_size(job));
    facts_chosen(&out, identity);
    shk_out_json(&out, "sizes", shk_sweep_json(job));
    facts_roofline(&out, job);
    hmem = facts_hmem(&out, job);
    shk_out_json(&out, "placement", facts_rows(&out, job, FABRIC_PLACE));
    ports = facts_rows(&out, job, FABRIC_PORT);
    facts_evidence(&out, job, result, &(struct facts_shown){identity, hmem, rails, ports});
    if (json_array_size(ports) > 0)
        shk_out_json(&out, "ports", json_incref(ports));
    shk_out_json(&out, "rails", rails);
    shk_out_json(&out, "ranks_state", shk_crew_ranks_json(job, result));
    if (json_array_size(result->disagree) > 0)
        shk_out_json(&out, "disagree", json_incref(result->disagree));
    json_decref(ports);
    json_decref(hmem);
    json_decref(identity);
    return shk_out_end(&out, err);
}

int fabric_facts_not_run(const char *transport, struct shk_facts *facts, unsigned ranks,
                         const char *status, const char *why, struct shk_error *err)
{
    struct shk_facts_out out = {.facts = facts, .transport = transport, .source = FACTS_SOURCE};

    shk_out_status(&out, status, why, -1, "start");
    shk_out_int(&out, "ranks", ranks);
    return shk_out_end(&out, err);
}
