/* Facts from a stranger: parsed, judged with the real catalogue, ranked, and rendered in every
 * format. */
#include "checks/base/check.h"
#include "config/config.h"
#include "core/facts/metrics.h"
#include "fuzz.h"
#include "reports/report.h"

#include <stdlib.h>
#include <string.h>

static void facts_render(const struct shk_facts *facts, const struct shk_profile *profile,
                         const struct shk_findings *findings, const struct shk_diagnoses *diagnoses)
{
    size_t count;
    const struct shk_format *const *formats = shk_formats(&count);
    struct shk_report report = {.version = "fuzz",
                                .command = "fuzz",
                                .profile = profile->name,
                                .profile_why = "fuzz",
                                .facts = &facts,
                                .nodes = 1,
                                .findings = findings,
                                .diagnoses = diagnoses,
                                .coverage = shk_findings_coverage(findings),
                                .elapsed_s = -1};
    for (size_t i = 0; i < count; i++) {
        struct shk_report_options options = {.unicode = true, .anonymize = i % 2 != 0};
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        if (formats[i]->render(&report, &options, out) != 0)
            abort();
        fclose(out);
        free(text);
    }
}

static void facts_judge(struct shk_facts *facts)
{
    static struct shk_config *config;
    struct shk_error err = {""};
    struct shk_diagnoses diagnoses = {0};
    char *why = NULL;
    if (!config && shk_config_load(&config, NULL, NULL, &err) != 0)
        abort();
    size_t rules_count;
    const struct shk_diff_rule *rules = shk_config_diff(config, &rules_count);
    json_decref(shk_metrics_of(facts));
    json_decref(shk_states_of(facts, rules, rules_count, NULL));
    (void)shk_run_start(facts);
    shk_facts_freeze(facts);
    struct shk_findings *findings = shk_findings_create();
    const struct shk_profile *profile = shk_profile_detect(config, facts, &why, NULL);
    struct shk_check_context ctx = {.facts = facts, .config = config, .profile = profile};
    if (shk_checks_run(&ctx, findings, &err) != 0)
        abort();
    shk_findings_sort(findings);
    if (shk_diagnose(config, findings, NULL, 0, &diagnoses, &err) != 0)
        abort();
    facts_render(facts, profile, findings, &diagnoses);
    shk_diagnoses_free(&diagnoses);
    shk_findings_destroy(findings);
    free(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shk_error err = {""};
    struct shk_facts *facts = NULL;
    json_t *doc = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    if (!doc)
        return 0;
    json_t *faults = json_array();
    int rc = shk_facts_reported(&facts, doc, faults, &err);
    bool whole = rc == 0 && json_array_size(faults) == 0;
    struct shk_facts *strict = NULL;
    struct shk_error why = {""};
    if (whole != (shk_facts_from_json(&strict, doc, &why) == 0))
        abort(); /* what is malformed is the same to both */
    shk_facts_destroy(strict);
    json_decref(faults);
    json_decref(doc);
    if (rc == 0)
        facts_judge(facts);
    else if (!*err.text || strchr(err.text, '\n'))
        abort(); /* one line that says why */
    shk_facts_destroy(facts);
    return 0;
}
