#include "checks/base/check.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char catalogue[] =
    "- {name: t-log-and-setting, when: [{log: nccl-connected-all-rings}, {setting: NCCL_NET, "
    "matches: \"^X$\"}], diagnosis: acs-enabled, weight: 70, why: both, source: s}\n"
    "- {name: t-fact, when: [{fact: t.fact, lacks: \"^yes$\"}], diagnosis: clock-skew, weight: 60, "
    "why: fact, source: s}\n"
    "- {name: t-no-log, when: [{no-log: nccl-init-complete}, {setting: NCCL_PROTO, unset: true}], "
    "diagnosis: duplicate-gpu, weight: 60, why: none, source: s}\n"
    "- {name: t-gpu-unset, when: [{setting: HSA_ENABLE_SDMA, unset: true}], condition: "
    "\"gpu=amd,gpus>1\", diagnosis: numa-balancing-enabled, weight: 44, why: amd, source: s}\n"
    "- {name: t-against, when: [{fact: t.against, matches: \"1\"}], diagnosis: clock-skew, weight: "
    "-80, why: against, source: s}\n";

static struct shk_config *config;

static void setup(void)
{
    struct shk_error err = {""};
    cr_assert_eq(
        shk_config_load_buffer(&config, "rules", "t.yaml", catalogue, strlen(catalogue), &err), 0,
        "%s", err.text);
}

static void teardown(void)
{
    shk_config_free(config);
}

/* A line that was seen. */
static void saw(struct shk_facts *facts, const char *id, const char *captures)
{
    char key[128];
    snprintf(key, sizeof key, "log.sig.%s", id);
    json_t *entry = json_pack("{s:i, s:s, s:i, s:s}", "lines", 1, "file", "a.log", "line", 7,
                              "text", "the line");
    if (captures)
        json_object_set_new(entry, "captures", json_loads(captures, 0, NULL));
    cr_assert_eq(shk_facts_present(facts, key, entry, NULL, "a.log"), 0);
}

static struct shk_facts *with_log(void)
{
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(
        shk_facts_present(facts, "log.files", json_pack("[{s:s}]", "path", "a.log"), NULL, "--log"),
        0);
    return facts;
}

static struct shk_diagnoses diagnose(struct shk_facts *facts)
{
    struct shk_diagnoses out = {0};
    struct shk_error err = {""};
    struct shk_findings *none = shk_findings_create();
    const struct shk_facts *list[] = {facts};
    cr_assert_eq(shk_diagnose(config, none, list, 1, &out, &err), 0, "%s", err.text);
    shk_findings_destroy(none);
    shk_facts_destroy(facts);
    return out;
}

static const struct shk_diagnosis_row *row(const struct shk_diagnoses *d, const char *key)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->rows[i].key, key) == 0)
            return &d->rows[i];
    return NULL;
}

TestSuite(triage, .init = setup, .fini = teardown);

Test(triage, no_evidence_is_no_diagnosis)
{
    struct shk_diagnoses d = diagnose(shk_facts_create());
    cr_expect_eq(d.count, 0);
    shk_diagnoses_free(&d);
}

Test(triage, all_terms_of_a_rule_must_hold)
{
    struct shk_facts *f = with_log();
    saw(f, "nccl-init-complete", NULL);
    saw(f, "nccl-connected-all-rings", NULL);
    struct shk_diagnoses d = diagnose(f);
    cr_expect_null(row(&d, "acs-enabled"));
    shk_diagnoses_free(&d);
    f = with_log();
    saw(f, "nccl-init-complete", NULL);
    saw(f, "nccl-connected-all-rings", NULL);
    shk_facts_text(f, "env.NCCL_NET", "X", "test");
    d = diagnose(f);
    cr_assert_not_null(row(&d, "acs-enabled"));
    cr_expect_not_null(strstr(row(&d, "acs-enabled")->evidence[0], "a.log:7"));
    cr_expect_not_null(strstr(row(&d, "acs-enabled")->evidence[0], "NCCL_NET=X"));
    shk_diagnoses_free(&d);
}

Test(triage, a_variable_that_the_log_names_counts)
{
    struct shk_facts *f = with_log();
    saw(f, "nccl-connected-all-rings", NULL);
    saw(f, "nccl-init-complete", NULL);
    saw(f, "nccl-env-read", "[{\"name\": \"NCCL_NET\", \"value\": \"X\"}]");
    struct shk_diagnoses d = diagnose(f);
    cr_expect_not_null(row(&d, "acs-enabled"));
    shk_diagnoses_free(&d);
}

Test(triage, what_is_not_known_is_not_unset)
{
    struct shk_diagnoses d = diagnose(with_log());
    cr_assert_not_null(row(&d, "duplicate-gpu"));
    cr_expect_str_eq(row(&d, "duplicate-gpu")->confidence, "possible");
    shk_diagnoses_free(&d);
    struct shk_facts *f = with_log();
    shk_facts_text(f, "probe.env.status", "ok", "test");
    d = diagnose(f);
    cr_expect_not_null(row(&d, "duplicate-gpu"));
    shk_diagnoses_free(&d);
}

/* A variable that is not set says nothing where the hardware was not read: it is so on every node.
 */
Test(triage, unset_on_unread_hardware_is_no_evidence)
{
    static const struct {
        const char *counts;
        bool named;
    } rows[] = {{"failed", false}, {"2", true}, {"0", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_facts *f = shk_facts_create();
        shk_facts_text(f, "probe.env.status", "ok", "test");
        if (strcmp(rows[i].counts, "failed") == 0)
            shk_facts_failed(f, "pci.count.gpu-amd", "test", "denied");
        else
            shk_facts_int(f, "pci.count.gpu-amd", atoi(rows[i].counts), NULL, "test");
        shk_facts_int(f, "pci.count.gpu-nvidia", 0, NULL, "test");
        shk_facts_int(f, "pci.count.neuron", 0, NULL, "test");
        struct shk_diagnoses d = diagnose(f);
        cr_expect_eq(row(&d, "numa-balancing-enabled") != NULL, rows[i].named, "%s",
                     rows[i].counts);
        shk_diagnoses_free(&d);
    }
}

Test(triage, evidence_against_a_cause_takes_it_away)
{
    struct shk_facts *f = shk_facts_create();
    shk_facts_text(f, "t.fact", "no", "test");
    struct shk_diagnoses d = diagnose(f);
    cr_expect_not_null(row(&d, "clock-skew"));
    shk_diagnoses_free(&d);
    f = shk_facts_create();
    shk_facts_text(f, "t.fact", "no", "test");
    shk_facts_int(f, "t.against", 1, NULL, "test");
    d = diagnose(f);
    cr_expect_null(row(&d, "clock-skew"));
    shk_diagnoses_free(&d);
    f = shk_facts_create();
    shk_facts_failed(f, "t.fact", "test", "unreadable");
    d = diagnose(f);
    cr_expect_null(row(&d, "clock-skew"), "a fact that could not be read lacks nothing");
    shk_diagnoses_free(&d);
}

Test(triage, a_symptom_comes_after_the_cause_that_explains_it)
{
    struct shk_facts *f = with_log();
    saw(f, "nccl-remote-error", NULL);
    saw(f, "nccl-init-complete", NULL);
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 1);
    cr_expect_str_eq(d.rows[0].key, "peer-rank-died");
    cr_expect_str_eq(d.rows[0].confidence, "possible");
    shk_diagnoses_free(&d);
    f = with_log();
    saw(f, "nccl-init-complete", NULL);
    saw(f, "nccl-remote-error", NULL);
    saw(f, "fm-version", NULL);
    d = diagnose(f);
    cr_assert_geq(d.count, 2);
    cr_expect_str_eq(d.rows[0].key, "fabric-manager-version-mismatch");
    cr_expect_str_eq(d.rows[1].key, "peer-rank-died");
    cr_expect_eq(d.rows[1].below, 1);
    shk_diagnoses_free(&d);
}

Test(triage, versions_that_differ_between_processes)
{
    struct shk_facts *f = with_log();
    saw(f, "nccl-init-complete", NULL);
    saw(f, "nccl-version-value",
        "[{\"version\": \"2.28.9\", \"node\": \"a\"}, {\"version\": \"2.18.5\", \"node\": \"b\"}]");
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 1);
    cr_expect_str_eq(d.rows[0].key, "libnccl-wrong-version-loaded");
    cr_expect_not_null(strstr(d.rows[0].evidence[0], "2.18.5"), "%s", d.rows[0].evidence[0]);
    shk_diagnoses_free(&d);
}
