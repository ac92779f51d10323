#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(prom, .timeout = 300);

Test(prom, samples)
{
    static const char *const lines[] = {
        "shakedown_info{version=\"0.1.0\",profile=\"lumi-g\"} 1\n",
        "shakedown_verdict{verdict=\"pass\"} 0\n",
        "shakedown_verdict{verdict=\"fail\"} 1\n",
        "shakedown_findings{verdict=\"pass\"} 5\n",
        "shakedown_findings{verdict=\"unknown\"} 3\n",
        "shakedown_coverage{evidence=\"tested\"} 3\n",
        "shakedown_run_seconds 1.24\n",
        "shakedown_problem{node=\"nid001234\",family=\"nccl\",setting=\"NCCL_SOCKET_IFNAME\","
        "check=\"env.value\",diagnosis=\"socket-ifname-missing\",verdict=\"fail\"} 1\n",
        "setting=\"iommu\",check=\"kernel.iommu\",verdict=\"unknown\"} 1\n",
        "shakedown_root_cause{key=\"socket-ifname-missing\",confidence=\"confirmed\"} 1\n",
        "shakedown_collective_ok{node=\"nid001234\",transport=\"fabric\",provider=\"tcp;ofi_rxm\"}"
        " 1\n",
        "bytes=\"4\"} 1.12e-05\n",
        "bytes=\"4194304\"} 3834792229\n",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "prom");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_not_null(strstr(text, lines[i]), "'%s' is missing in:\n%s", lines[i], text);
    cr_expect_null(strstr(text, "NCCL_CROSS_NIC"), "passes are counted, not listed");
    free(text);
    sample_free(&s);
}

Test(prom, each_node_has_its_problem)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "prom");
    cr_expect_not_null(strstr(text, "shakedown_problem{node=\"nid001235\""));
    cr_expect_not_null(strstr(text, "shakedown_problem{node=\"nid001236\""));
    cr_expect_null(strstr(text, "shakedown_problem{node=\"nid001234\""));
    cr_expect_not_null(strstr(text, "shakedown_collective_ok{node=\"nid001235\",transport="
                                    "\"fabric\",provider=\"tcp;ofi_rxm\"} 0\n"));
    free(text);
    sample_free(&s);
}

/* Two rows with the same labels would make the collector drop the whole file. */
Test(prom, no_series_twice)
{
    struct sample s;
    sample_failing(&s);
    for (int i = 0; i < 2; i++)
        shk_findings_add(s.findings, &(struct shk_finding_in){.id = "same",
                                                              .family = "same",
                                                              .setting = "same",
                                                              .verdict = SHK_FAIL,
                                                              .evidence = SHK_TESTED});
    char *text = sample_render(&s, "prom");
    const char *first = strstr(text, "setting=\"same\"");
    cr_assert_not_null(first);
    cr_expect_null(strstr(first + 1, "setting=\"same\""));
    free(text);
    sample_free(&s);
}

Test(prom, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "prom"), *save = NULL;
        hostile_expect_clean(hostile_texts[i].name, text);
        for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
            cr_expect(strncmp(l, "shakedown_", 10) == 0 ||
                          strncmp(l, "# HELP shakedown_", 17) == 0 ||
                          strncmp(l, "# TYPE shakedown_", 17) == 0,
                      "%s: %s", hostile_texts[i].name, l);
        free(text);
        sample_free(&s);
    }
}

Test(prom, a_long_text_is_cut)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "prom");
    cr_expect_lt(strlen(text), HOSTILE_LONG);
    hostile_expect_clean("megabyte", text);
    free(text);
    sample_free(&s);
    free(big);
}
