/* How the probes themselves fared. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

struct health {
    const struct shk_check_context *ctx;
    struct shk_findings *findings;
    json_t *names; /* of probes, each once */
    unsigned ok, all;
};

static const struct {
    const char *status;
    enum shk_verdict verdict;
    enum shk_evidence evidence;
} outcomes[] = {
    {"crashed", SHK_FAIL, SHK_TESTED},         {"exited", SHK_FAIL, SHK_TESTED},
    {"timeout", SHK_FAIL, SHK_TESTED},         {"memory", SHK_FAIL, SHK_TESTED},
    {"failed", SHK_UNKNOWN, SHK_NOT_COVERED},  {"skipped", SHK_NA, SHK_NOT_COVERED},
    {"starved", SHK_UNKNOWN, SHK_NOT_COVERED},
};

static const char *member(const struct health *health, const char *name, const char *what)
{
    char *key = shk_strf("probe.%s.%s", name, what);
    const char *text = NULL;
    if (key)
        (void)shk_look_text(health->ctx->facts, key, &text);
    free(key);
    return text;
}

static void describe(struct health *health, struct shk_row *row, const char *name,
                     const char *status)
{
    const char *reason = member(health, name, "reason");
    const char *library = member(health, name, "library");
    const char *call = member(health, name, "call");
    shk_row_text(&row->observed, "%s", status);
    if ((library || call) && strcmp(status, "starved") != 0)
        shk_row_text(&row->why, "%s; it was in %s%s%s", reason ? reason : status,
                     library ? library : "an unknown library", call ? ": " : "", call ? call : "");
    else
        shk_row_text(&row->why, "%s", reason ? reason : "no reason was recorded");
    if (row->verdict == SHK_FAIL) {
        shk_row_text(&row->expected, "a response");
        shk_row_fix(row, "library-faulty", "library", library ? library : "the library", NULL);
    }
}

/* A probe that did not end well, or (status NULL) of which nobody knows how it ended. */
static void bad_probe(struct health *health, const char *name, const char *status)
{
    char *setting = shk_strf("probe %s", name), *key = shk_strf("probe.%s.status", name);
    struct shk_row row =
        shk_row_begin(health->ctx, &shk_check_probe_health, setting ? setting : "probe");
    row.fact = key ? key : "probe.*";
    if (status) {
        shk_row_was_read(&row);
        for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
            if (strcmp(outcomes[i].status, status) == 0)
                shk_row_verdict(&row, outcomes[i].verdict, outcomes[i].evidence);
        describe(health, &row, name, status);
    } else {
        shk_row_lacks(&row, "probe.*", "how this probe ended was not recorded");
    }
    row.required = row.verdict == SHK_UNKNOWN;
    shk_row_end(health->findings, &row);
    free(key);
    free(setting);
}

static int note_name(const struct shk_fact *fact, void *arg)
{
    struct health *health = arg;
    const char *name = fact->key + strlen("probe.");
    const char *dot = strrchr(name, '.');
    char *text = dot ? strndup(name, (size_t)(dot - name)) : NULL;
    if (text && !shk_array_has(health->names, text, false))
        json_array_append_new(health->names, json_string(text));
    free(text);
    return 0;
}

/* Some probes ask a library in a child of its own, and answer although the library did not.
 * Otherwise false, and no row. */
static bool lost_library(struct health *health, const char *name)
{
    static const struct {
        const char *probe, *fact;
    } lost[] = {{"libfabric", "fabric.problem"}};
    json_t *problem = NULL;
    const char *outcome = NULL, *text = NULL;
    for (size_t i = 0; i < sizeof lost / sizeof *lost && !problem; i++)
        if (strcmp(lost[i].probe, name) == 0)
            (void)shk_look_object(health->ctx->facts, lost[i].fact, &problem);
    if (shk_look_member_text(problem, "outcome", &outcome) != SHK_LOOK_PRESENT)
        return false;
    char *setting = shk_strf("probe %s", name);
    struct shk_row row =
        shk_row_begin(health->ctx, &shk_check_probe_health, setting ? setting : "probe");
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++)
        if (strcmp(outcomes[i].status, outcome) == 0)
            shk_row_verdict(&row, outcomes[i].verdict, outcomes[i].evidence);
    bool failed = row.verdict == SHK_FAIL;
    (void)shk_look_member_text(problem, "text", &text);
    shk_row_text(&row.observed, "%s", outcome);
    shk_row_text(&row.expected, "a response");
    shk_row_text(&row.why, "%s; it was in %s: %s", text ? text : outcome,
                 shk_member_name(problem, "library"), shk_member_name(problem, "call"));
    shk_row_fix(&row, "library-faulty", "library", shk_member_name(problem, "library"), NULL);
    row.fact = "fabric.problem";
    if (failed) {
        shk_row_end(health->findings, &row);
    } else {
        free(row.observed);
        free(row.expected);
        free(row.why);
        shk_row_no_remedy(&row);
    }
    free(setting);
    return failed;
}

static void judge_probes(struct health *health, struct shk_row *all)
{
    size_t i;
    json_t *item;
    json_array_foreach(health->names, i, item)
    {
        const char *name = json_string_value(item), *status = member(health, name, "status");
        health->all++;
        if (!status)
            shk_row_lacks(all, "probe.*", "how probe %s ended was not recorded", name);
        bool answered = status && strcmp(status, "ok") == 0;
        if (answered && lost_library(health, name))
            continue;
        if (answered)
            health->ok++;
        else
            bad_probe(health, name, status);
    }
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct health health = {.ctx = ctx, .findings = findings, .names = json_array()};
    struct shk_row row = shk_row_begin(ctx, &shk_check_probe_health, "probes");
    row.fact = "probe.*";
    (void)shk_facts_each(ctx->facts, "probe.", note_name, &health);
    judge_probes(&health, &row);
    if (health.all) {
        if (health.ok)
            shk_row_verdict(&row, SHK_PASS, SHK_TESTED);
        else
            shk_row_text(&row.why, "no probe completed");
        shk_row_text(&row.observed, "%u of %u probes completed", health.ok, health.all);
        shk_row_end(findings, &row);
    } else {
        free(row.unread_why);
    }
    json_decref(health.names);
}

const struct shk_check shk_check_probe_health = {
    .id = "probe.health",
    .diagnosis = "probe-failed",
    .family = "shakedown",
    .title = "Every probe completed",
    .eval = eval,
    .doc = "Facts: probe.<name>.{status, reason, library, call}, fabric.problem.\n"
           "A library that crashes, hangs or eats memory when asked is FAIL and named with the "
           "call: a job would meet the same. A probe that could not read, that a busy node gave no "
           "processor time before its deadline, or of which nobody recorded how it ended, is "
           "UNKNOWN; one that was skipped is n/a.",
};
