/* How the probes themselves fared. */
#include "checks/coded.h"

#include <string.h>

struct health {
    struct shk_findings *findings;
    const struct shk_facts *facts;
    unsigned ok, other;
};

static const struct {
    const char *status;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
} outcomes[] = {
    {"crashed", SHK_FAIL, SHK_TESTED},    {"timeout", SHK_FAIL, SHK_TESTED},
    {"memory", SHK_FAIL, SHK_TESTED},     {"failed", SHK_UNKNOWN, SHK_NOT_COVERED},
    {"skipped", SHK_NA, SHK_NOT_COVERED},
};

static const char *sibling(const struct health *health, const char *name, int len,
                           const char *member)
{
    char *key = shk_strf("probe.%.*s.%s", len, name, member);
    const char *text = key ? shk_facts_get_text(health->facts, key) : NULL;
    free(key);
    return text;
}

static void bad_probe(struct health *health, const char *name, int len, const char *status)
{
    char *setting = shk_strf("probe %.*s", len, name);
    struct shk_row row = shk_row_start(&shk_check_probe_health, setting ? setting : "probe");
    const char *reason = sibling(health, name, len, "reason");
    const char *library = sibling(health, name, len, "library");
    const char *call = sibling(health, name, len, "call");
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        if (strcmp(outcomes[i].status, status) == 0)
            shk_row_verdict(&row, outcomes[i].verdict, outcomes[i].evidence);
    shk_row_text(&row.observed, "%s", status);
    if (library || call)
        shk_row_text(&row.why, "%s; it was in %s%s%s", reason ? reason : status,
                     library ? library : "an unknown library", call ? ": " : "", call ? call : "");
    else
        shk_row_text(&row.why, "%s", reason ? reason : "no reason was recorded");
    if (row.verdict == SHK_FAIL) {
        shk_row_text(&row.expected, "an answer");
        shk_row_text(&row.fix,
                     "a job that makes this call meets the same fault: repair or replace "
                     "%s",
                     library ? library : "the library");
    }
    row.required = row.verdict == SHK_UNKNOWN;
    shk_row_end(health->findings, &row);
    free(setting);
}

static int one_probe(const struct shk_fact *fact, void *arg)
{
    struct health *health = arg;
    const char *name = fact->key + strlen("probe.");
    const char *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".status") != 0 || fact->state != SHK_FACT_PRESENT ||
        !json_is_string(fact->value))
        return 0;
    const char *status = json_string_value(fact->value);
    if (strcmp(status, "ok") == 0) {
        health->ok++;
        return 0;
    }
    health->other++;
    bad_probe(health, name, (int)(dot - name), status);
    return 0;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct health health = {.findings = findings, .facts = ctx->facts};
    (void)shk_facts_each(ctx->facts, "probe.", one_probe, &health);
    if (!health.ok)
        return;
    struct shk_row row = shk_row_start(&shk_check_probe_health, "probes");
    shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
    shk_row_text(&row.observed, "%u of %u gave an answer", health.ok, health.ok + health.other);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_probe_health = {
    .id = "probe.health",
    .family = "shakedown",
    .title = "Every probe gave an answer",
    .eval = eval,
    .doc = "Facts: probe.<name>.{status, reason, library, call}.\n"
           "A library that crashes, hangs or eats memory when asked is FAIL and named with the "
           "call: a job would meet the same. A probe that could not read is UNKNOWN; one that was "
           "skipped is n/a.",
};
