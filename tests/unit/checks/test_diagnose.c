#include "support.h"

#include <criterion/criterion.h>
#include <string.h>

static void add(struct shk_findings *findings, const char *setting, enum shk_verdict verdict,
                enum shk_evidence evidence, const char *key, const char *fix)
{
    const struct shk_finding_in in = {.id = "test",
                                      .family = "test",
                                      .setting = setting,
                                      .verdict = verdict,
                                      .evidence = evidence,
                                      .observed = "this",
                                      .why = "that",
                                      .fix = fix,
                                      .diagnosis = key};
    shk_findings_add(findings, &in);
}

static struct shk_diagnoses diagnose(struct shk_findings *findings)
{
    struct shk_diagnoses out = {0};
    struct shk_error err = {""};
    cr_assert_eq(shk_diagnose(support_test_config(), findings, NULL, 0, &out, &err), 0, "%s",
                 err.text);
    shk_findings_destroy(findings);
    return out;
}

Test(diagnose, nothing_wrong_is_no_diagnosis)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "a", SHK_PASS, SHK_TESTED, "test-cause", NULL);
    add(f, "b", SHK_UNKNOWN, SHK_NOT_COVERED, "test-cause", NULL);
    add(f, "c", SHK_WARN, SHK_TESTED, NULL, NULL);
    add(f, "noted", SHK_NOTE, SHK_TESTED, "test-cause", "advice");
    struct shk_diagnoses d = diagnose(f);
    cr_expect_eq(d.count, 0);
    shk_diagnoses_free(&d);
}

Test(diagnose, a_failed_check_without_a_diagnosis_stands_for_itself)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "warned", SHK_WARN, SHK_EFFECT, "test-cause", NULL);
    add(f, "c", SHK_FAIL, SHK_TESTED, NULL, "do this");
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 2);
    cr_expect_str_eq(d.rows[0].title, "c: this");
    cr_expect_str_eq(d.rows[0].fix, "do this");
    cr_expect_str_eq(d.rows[1].key, "test-cause");
    shk_diagnoses_free(&d);
    f = shk_findings_create();
    add(f, "failed", SHK_FAIL, SHK_DECLARED, "test-cause", NULL);
    add(f, "c", SHK_FAIL, SHK_TESTED, NULL, NULL);
    d = diagnose(f);
    cr_assert_eq(d.count, 2, "every FAIL is among the causes");
    cr_expect_str_eq(d.rows[0].key, "test-cause");
    cr_expect_str_eq(d.rows[1].title, "c: this");
    shk_diagnoses_free(&d);
}

Test(diagnose, findings_of_one_key_are_merged)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "noted", SHK_NOTE, SHK_TESTED, "test-cause", "advice");
    add(f, "a", SHK_WARN, SHK_DECLARED, "test-cause", "first");
    add(f, "b", SHK_FAIL, SHK_TESTED, "test-cause", "second");
    add(f, "c", SHK_FAIL, SHK_TESTED, "test-cause", "second");
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 1);
    cr_expect_str_eq(d.rows[0].title, "The cause");
    cr_expect_str_eq(d.rows[0].who, "admin");
    cr_expect_str_eq(d.rows[0].fix, "first\nsecond");
    cr_expect_str_eq(d.rows[0].confidence, "confirmed");
    cr_expect_eq(d.rows[0].verdict, SHK_FAIL);
    cr_expect_str_eq(d.rows[0].evidence[0], "a = this: that");
    cr_expect_null(d.rows[0].evidence[3]);
    shk_diagnoses_free(&d);
}

Test(diagnose, a_cause_comes_before_what_it_explains)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "effect", SHK_FAIL, SHK_TESTED, "test-effect", NULL);
    add(f, "cause", SHK_WARN, SHK_DECLARED, "test-cause", NULL);
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 2);
    cr_expect_str_eq(d.rows[0].key, "test-cause");
    cr_expect_str_eq(d.rows[0].advice, "Repair the cause.");
    cr_expect_str_eq(d.rows[0].confidence, "possible");
    cr_expect_str_eq(d.rows[1].key, "test-effect");
    shk_diagnoses_free(&d);
}

Test(diagnose, a_symptom_never_outranks_a_cause)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "symptom", SHK_FAIL, SHK_TESTED, "test-symptom", NULL);
    add(f, "effect", SHK_WARN, SHK_DECLARED, "test-effect", NULL);
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 2);
    cr_expect_str_eq(d.rows[0].key, "test-effect");
    shk_diagnoses_free(&d);
}

Test(diagnose, fail_comes_before_warn_and_tested_before_declared)
{
    struct shk_findings *f = shk_findings_create();
    add(f, "w", SHK_WARN, SHK_TESTED, "no-such-key-1", NULL);
    add(f, "d", SHK_FAIL, SHK_DECLARED, "no-such-key-2", NULL);
    add(f, "t", SHK_FAIL, SHK_TESTED, "no-such-key-3", "mend it");
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 3);
    cr_expect_str_eq(d.rows[0].key, "no-such-key-3");
    cr_expect_str_eq(d.rows[0].title, "t: this");
    cr_expect_str_eq(d.rows[0].explanation, "that");
    cr_expect_str_eq(d.rows[0].fix, "mend it");
    cr_expect_str_eq(d.rows[1].key, "no-such-key-2");
    cr_expect_str_eq(d.rows[2].key, "no-such-key-1");
    shk_diagnoses_free(&d);
}

/* Nodes that differ in what another row found wrong there add no second cause and no certainty. */
Test(diagnose, a_repeat_joins_the_cause)
{
    const char *const nodes[] = {"nid001", "nid002"};
    struct shk_findings *f = shk_findings_create();
    shk_findings_add(f, &(struct shk_finding_in){.id = "limits.memlock",
                                                 .family = "limits",
                                                 .setting = "RLIMIT_MEMLOCK",
                                                 .verdict = SHK_FAIL,
                                                 .evidence = SHK_EFFECT,
                                                 .observed = "64 KiB",
                                                 .fact = "a, limits.memlock",
                                                 .diagnosis = "test-cause"});
    for (int other = 0; other < 2; other++)
        shk_findings_add(f,
                         &(struct shk_finding_in){.id = "nodes.agree",
                                                  .family = "nodes",
                                                  .setting = "limits.memlock.hard",
                                                  .verdict = SHK_FAIL,
                                                  .evidence = SHK_EFFECT,
                                                  .observed = "64 KiB",
                                                  .fact = other ? "limits.mem" : "limits.memlock"});
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(shk_findings_set_nodes(f, i, nodes, 2), 0);
    cr_assert_eq(shk_repeats_settle(f), 0);
    cr_expect_str_eq(shk_findings_at(f, 1)->diagnosis, "test-cause");
    cr_expect_null(shk_findings_at(f, 2)->diagnosis);
    struct shk_diagnoses d = diagnose(f);
    cr_assert_eq(d.count, 2);
    cr_expect_str_eq(d.rows[0].key, "test-cause");
    cr_expect_str_eq(d.rows[0].confidence, "likely");
    cr_expect_str_eq(d.rows[0].evidence[1], "limits.memlock.hard = 64 KiB");
    cr_expect_str_eq(d.rows[1].key, "nodes.agree");
    shk_diagnoses_free(&d);
}
