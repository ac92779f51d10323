#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(junit, .timeout = 300);

Test(junit, verdicts)
{
    static const char *const parts[] = {
        "<testsuites name=\"shakedown\" time=\"1.240\">",
        "<testsuite name=\"nccl\" hostname=\"nid001234\" tests=\"4\" failures=\"1\" errors=\"0\" "
        "skipped=\"0\" time=\"1.240\">",
        "<property name=\"profile\" value=\"lumi-g\"/>",
        "<testcase classname=\"env.value\" name=\"NCCL_SOCKET_IFNAME\" time=\"0.000\">"
        "<failure type=\"fail\" message=\"hns3 is no interface of this node; did you mean "
        "hsn3?\">observed: hsn0,hsn1,hsn2,hns3\n",
        "fix: export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3\n",
        "</failure></testcase>",
        "classname=\"env.value\" name=\"NCCL_DEBUG\" time=\"0.000\"><system-out>WARN\n",
        "classname=\"env.value\" name=\"NCCL_CROSS_NIC\" time=\"0.000\"/>",
        "<testsuite name=\"libfabric\" hostname=\"nid001234\" tests=\"4\" failures=\"0\" "
        "errors=\"0\" skipped=\"2\"",
        "<skipped message=\"needs a job with more than one node\">",
        "classname=\"kernel.iommu\" name=\"iommu\" time=\"0.000\"><error type=\"unknown\" "
        "message=\"/sys/kernel/iommu_groups: permission denied\">",
        "</testsuites>\n",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "junit"), *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order in:\n%s", parts[i], text);
        at = found ? found : at;
    }
    cr_expect_null(strstr(text, "efa module"), "a row that does not apply");
    free(text);
    sample_free(&s);
}

Test(junit, nodes_of_a_row)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "junit");
    cr_expect_not_null(strstr(text, "nodes: nid[001235-001236]\n"));
    free(text);
    sample_free(&s);
}

/* Well-formedness itself is tested with a parser, in tests/golden/check_formats.py. */
Test(junit, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "junit");
        hostile_expect_clean(hostile_texts[i].name, text);
        cr_expect_null(strstr(text, "<script"), "%s", hostile_texts[i].name);
        cr_expect_null(strstr(text, "<!"), "%s", hostile_texts[i].name);
        free(text);
        sample_free(&s);
    }
}

Test(junit, a_long_text_is_cut)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "junit");
    cr_expect_lt(strlen(text), 4 << 20);
    hostile_expect_clean("megabyte", text);
    free(text);
    sample_free(&s);
    free(big);
}

static const char *times_probe_of(const char *key)
{
    if (strcmp(key, "limits") == 0)
        return "limits";
    return strncmp(key, "env.", 4) == 0 ? "env" : NULL;
}

static void times_ms(struct shk_facts *facts, const char *key, double ms)
{
    cr_assert_eq(shk_facts_present(facts, key, json_real(ms), "ms", "test"), 0);
}

/* A probe or collective counts once, with the first row that rests on it; of several nodes the
 * slowest. */
Test(junit, times_of_rows)
{
    static const struct {
        const char *fact, *time;
    } rows[] = {
        {"env.A, limits.soft", "2.000"},
        {"env.B", "0.000"},
        {"env.*", "0.000"},
        {"collective.peer.sizes", "3.125"},
        {"nobody.knows", "0.000"},
        {NULL, "0.000"},
        {"collective.peer.moved", "0.000"},
        {"collective.*.x", "0.000"},
        {"probe.late.status", "5.000"},
        {"collective.nccl.status", "0.000"},
    };
    struct sample s;
    sample_cluster(&s);
    times_ms(s.facts[0], "probe.env.ms", 250);
    times_ms(s.facts[1], "probe.env.ms", 1500);
    times_ms(s.facts[0], "probe.limits.ms", 500);
    times_ms(s.facts[0], "probe.late.ms", 5000);
    times_ms(s.facts[0], "collective.peer.ms", 3125);
    cr_assert_eq(shk_facts_text(s.facts[0], "collective.nccl.ms", "soon", "test"), 0);
    shk_findings_destroy(s.findings);
    s.report.findings = s.findings = shk_findings_create();
    s.report.probe_of = times_probe_of;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char setting[8] = {(char)('a' + i)};
        shk_findings_add(s.findings, &(struct shk_finding_in){.id = "x",
                                                              .family = "kernel",
                                                              .setting = setting,
                                                              .verdict = SHK_PASS,
                                                              .evidence = SHK_TESTED,
                                                              .fact = rows[i].fact});
    }
    char *text = sample_render(&s, "junit"), want[64];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(want, sizeof want, "name=\"%c\" time=\"%s\"", (char)('a' + i), rows[i].time);
        cr_expect_not_null(strstr(text, want), "%s is not in:\n%s", want, text);
    }
    free(text);
    s.report.probe_of = NULL;
    text = sample_render(&s, "junit");
    cr_expect_not_null(strstr(text, "name=\"a\" time=\"0.000\""), "%s", text);
    free(text);
    sample_free(&s);
}
