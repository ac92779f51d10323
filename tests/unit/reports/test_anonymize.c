#include "hostile.h"
#include "reports/privacy/anonymize.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(anonymize, .timeout = 300);

/* Everything in here that must not leave the site. */
static const char *const anonymize_private[] = {
    "nid00123",
    "alice",
    "proj42",
    "10.10.0.7",
    "02:00:00:00:0a:0b",
    "506b:4b03:00c2:b3a4",
    "8a56a4bc-e184",
    "SN-778899",
    "hunter2",
    "hf_abcdefghijklmnopqrstuvwxyz",
};

static void anonymize_make(struct sample *s)
{
    sample_cluster(s);
    struct shk_facts *f = s->facts[0];
    shk_facts_text(f, "env.USER", "alice", "environment");
    shk_facts_text(f, "env.SLURM_JOB_ACCOUNT", "proj42", "environment");
    shk_facts_text(f, "env.SLURM_JOB_NODELIST", "nid[001234-001236]", "environment");
    shk_facts_text(f, "env.WANDB_API_KEY", "hunter2", "environment");
    shk_facts_text(f, "host.version", "9.8.7.6", "/home/alice/version of nid001235");
    shk_facts_present(f, "net.ifaces",
                      json_pack("[{s:s,s:s,s:[{s:s}]}]", "name", "hsn0", "mac", "02:00:00:00:0a:0b",
                                "addrs", "addr", "10.10.0.7"),
                      NULL, "netlink");
    shk_facts_present(f, "gpu.nvidia.devices",
                      json_pack("[{s:s,s:s,s:s}]", "uuid",
                                "GPU-8a56a4bc-e184-a047-2620-be19fdf913d5", "serial", "SN-778899",
                                "guid", "506b:4b03:00c2:b3a4"),
                      NULL, "nvml");
    shk_facts_failed(f, "rdma.devices", "ssh nid001236", "alice may not read 10.10.0.7");
    shk_findings_add(s->findings, &(struct shk_finding_in){
                                      .id = "net.ifaces",
                                      .family = "host",
                                      .setting = "hsn0 on nid001234",
                                      .verdict = SHK_WARN,
                                      .evidence = SHK_TESTED,
                                      .observed = "10.10.0.7 at 02:00:00:00:0a:0b",
                                      .expected = "version 9.8.7.6 for proj42",
                                      .why = "nid001236 does not answer alice; GPU SN-778899",
                                      .fix = "export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz",
                                  });
    s->report.coverage = shk_findings_coverage(s->findings);
    s->report.command = "shakedown check /home/alice/nid001234.json --token hunter2";
    s->report.profile_why = "seen on nid001234";
}

static char *anonymize_render(struct sample *s, bool names, const char *format)
{
    s->options.anonymize = names;
    return sample_render(s, format);
}

Test(anonymize, nothing_private_is_left_in_any_format)
{
    struct sample s;
    anonymize_make(&s);
    size_t formats;
    const struct shk_format *const *all = shk_formats(&formats);
    for (size_t f = 0; f < formats; f++) {
        s.options.verbose = true;
        char *text = anonymize_render(&s, true, all[f]->name);
        for (size_t i = 0; i < sizeof anonymize_private / sizeof *anonymize_private; i++)
            cr_expect_null(strstr(text, anonymize_private[i]), "%s shows %s: %.200s", all[f]->name,
                           anonymize_private[i], strstr(text, anonymize_private[i]));
        free(text);
    }
    sample_free(&s);
}

Test(anonymize, the_same_name_is_the_same_everywhere)
{
    static const char *const parts[] = {"on node-[2-3]",
                                        "hsn0 on node-1",
                                        "node-3 does not answer user-1",
                                        "addr-1 at mac-1",
                                        "expected version 9.8.7.6 for account-1",
                                        "GPU serial-1"};
    struct sample s;
    anonymize_make(&s);
    s.options.verbose = true;
    char *text = anonymize_render(&s, true, "term");
    cr_expect_not_null(strstr(text, "FAIL  2 of 3 nodes fail"), "%.100s", text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect_not_null(strstr(text, parts[i]), "'%s' is missing in:\n%s", parts[i], text);
    free(text);
    sample_free(&s);
}

Test(anonymize, secrets_go_from_every_format_without_being_asked)
{
    struct sample s;
    anonymize_make(&s);
    size_t formats;
    const struct shk_format *const *all = shk_formats(&formats);
    cr_assert_eq(formats, 9);
    for (size_t f = 0; f < formats; f++) {
        s.options.verbose = true;
        char *text = anonymize_render(&s, false, all[f]->name);
        cr_expect_null(strstr(text, "hunter2"), "%s", all[f]->name);
        cr_expect_null(strstr(text, "hf_abcdefghijklmnopqrstuvwxyz"), "%s", all[f]->name);
        cr_expect_not_null(strstr(text, "nid"), "%s: names stay", all[f]->name);
        free(text);
    }
    char *text = anonymize_render(&s, false, "json");
    cr_expect_not_null(strstr(text, "10.10.0.7"));
    cr_expect_not_null(strstr(text, "HF_TOKEN=[redacted]"));
    free(text);
    sample_free(&s);
}

/* A user whom only a path names, after a text that names him otherwise. */
Test(anonymize, users_are_learnt_before_anything_is_replaced)
{
    struct sample s;
    sample_cluster(&s);
    shk_facts_text(s.facts[0], "env.AAA", "/scratch/carol-cache", "environment");
    shk_facts_text(s.facts[0], "env.ZZZ", "/home/carol/x", "environment");
    char *text = anonymize_render(&s, true, "json");
    cr_expect_null(strstr(text, "carol"), "%s", strstr(text, "carol"));
    cr_expect_not_null(strstr(text, "/scratch/user-1-cache"));
    free(text);
    sample_free(&s);
}

Test(anonymize, keeps_everything_else)
{
    struct sample s;
    sample_failing(&s);
    char *text = anonymize_render(&s, true, "term");
    cr_expect_not_null(strstr(text, "FAIL  node-1 "));
    cr_expect_not_null(strstr(text, "libfabric 1.15.2.0"));
    cr_expect_not_null(strstr(text, "fabric tcp;ofi_rxm   11.2"));
    free(text);
    sample_free(&s);
}

/* A copy without anything to take out is the same report. */
Test(anonymize, copies_the_whole_report)
{
    struct sample s;
    sample_thousand(&s);
    struct shk_scrubbed *scrubbed = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_report_scrub(&scrubbed, &s.report, SHK_SCRUB_SECRETS, &err), 0, "%s",
                 err.text);
    const struct shk_report *copy = shk_scrubbed_report(scrubbed);
    cr_assert_eq(shk_findings_count(copy->findings), shk_findings_count(s.findings));
    for (size_t i = 0; i < shk_findings_count(s.findings); i++) {
        const struct shk_finding *a = shk_findings_at(s.findings, i);
        const struct shk_finding *b = shk_findings_at(copy->findings, i);
        cr_expect_str_eq(b->setting, a->setting);
        cr_expect_eq(b->verdict, a->verdict);
        cr_expect_eq(b->evidence, a->evidence);
        cr_expect_eq(b->required, a->required);
        cr_expect_eq(b->nodes == NULL, a->nodes == NULL);
        for (size_t n = 0; a->nodes && a->nodes[n]; n++)
            cr_expect_str_eq(b->nodes[n], a->nodes[n]);
    }
    for (size_t n = 0; n < s.report.nodes; n++) {
        json_t *a = shk_facts_to_json(s.facts[n]), *b = shk_facts_to_json(copy->facts[n]);
        cr_expect(json_equal(a, b), "node %zu", n);
        json_decref(a);
        json_decref(b);
    }
    cr_expect_str_eq(copy->diagnoses->rows[0].evidence[0], s.diagnoses.rows[0].evidence[0]);
    cr_expect_str_eq(copy->command, s.report.command);
    shk_scrubbed_destroy(scrubbed);
    sample_free(&s);
}

Test(anonymize, hostile)
{
    size_t formats;
    const struct shk_format *const *all = shk_formats(&formats);
    for (size_t i = 0; i < hostile_count * formats; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i / formats].text);
        char *text = anonymize_render(&s, true, all[i % formats]->name);
        hostile_expect_clean(hostile_texts[i / formats].name, text);
        free(text);
        sample_free(&s);
    }
}

Test(anonymize, empty)
{
    struct sample s;
    sample_empty(&s);
    char *text = anonymize_render(&s, true, "term");
    cr_expect_not_null(strstr(text, "no node"));
    free(text);
    sample_free(&s);
}
