#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(line, .timeout = 300);

/* Printable ASCII, one line of at most 200 bytes, nothing that a shell or Slurm would take apart.
 */
static void line_expect_plain(const char *what, const char *text)
{
    size_t len = strlen(text);
    cr_expect(len > 1 && len <= 201, "%s: %zu bytes", what, len);
    cr_expect_eq(strchr(text, '\n'), text + len - 1, "%s: %s", what, text);
    for (size_t i = 0; i + 1 < len; i++)
        cr_expect(text[i] >= ' ' && text[i] < 127, "%s: byte %d", what, text[i]);
    cr_expect_null(strpbrk(text, "'\"`$\\"), "%s: %s", what, text);
}

Test(line, failed)
{
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "line");
    line_expect_plain("failing", text);
    cr_expect_eq(
        strncmp(text, "FAIL nid001234: socket-ifname-missing: NCCL_SOCKET_IFNAME hsn0", 60), 0,
        "%s", text);
    free(text);
    sample_free(&s);
}

/* The node that the cause names, not all of them. */
Test(line, of_several_nodes)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "line");
    line_expect_plain("cluster", text);
    cr_expect_eq(strncmp(text, "FAIL nid[001235-001236]: socket-ifname-missing: ", 48), 0, "%s",
                 text);
    free(text);
    sample_free(&s);
}

static char *line_of(enum shk_verdict verdict, int required, const char *why)
{
    struct sample s;
    sample_healthy(&s);
    shk_findings_add(s.findings, &(struct shk_finding_in){.id = "extra.row",
                                                          .family = "extra",
                                                          .setting = "extra",
                                                          .verdict = verdict,
                                                          .evidence = SHK_TESTED,
                                                          .observed = "64 KiB",
                                                          .why = why,
                                                          .required = required});
    s.report.coverage = shk_findings_coverage(s.findings);
    char *text = sample_render(&s, "line");
    sample_free(&s);
    return text;
}

Test(line, passed_and_unknown)
{
    char *pass = line_of(SHK_PASS, 0, NULL), *unknown = line_of(SHK_UNKNOWN, 1, "not readable");
    cr_expect_eq(strncmp(pass, "PASS nid001234: ", 16), 0, "%s", pass);
    cr_expect_not_null(strstr(pass, "passed"), "%s", pass);
    cr_expect_str_eq(unknown,
                     "UNKNOWN nid001234: extra 64 KiB: not readable [libfabric 1.15.2.0]\n");
    free(pass);
    free(unknown);
}

/* When the run was and what it ran on, as far as there is room: a part for which there is none is
 * left out whole. */
Test(line, when_and_hardware)
{
    struct sample s;
    sample_healthy(&s);
    shk_facts_text(s.facts[0], "run.start", "2026-11-28T18:49:07Z", "clock");
    shk_facts_text(s.facts[0], "host.product", "a machine with a name of fifty bytes and no more !",
                   "x");
    char *text = sample_render(&s, "line");
    line_expect_plain("hardware", text);
    cr_expect_not_null(strstr(text,
                              " [2026-11-28T18:49:07Z, 1.2 s; a machine with a name of fifty bytes "
                              "and no more !; libfabric 1.15.2.0]\n"),
                       "%s", text);
    free(text);
    shk_findings_add(s.findings,
                     &(struct shk_finding_in){.id = "extra.row",
                                              .family = "extra",
                                              .setting = "extra",
                                              .verdict = SHK_FAIL,
                                              .evidence = SHK_TESTED,
                                              .why = "a reason that takes up nearly all of "
                                                     "the line, a hundred bytes, so that "
                                                     "only the short part fits in",
                                              .required = 1});
    s.report.coverage = shk_findings_coverage(s.findings);
    text = sample_render(&s, "line");
    line_expect_plain("hardware", text);
    cr_expect_not_null(strstr(text, "fits in [2026-11-28T18:49:07Z, 1.2 s; libfabric 1.15.2.0]\n"),
                       "%s", text);
    free(text);
    sample_free(&s);
}

/* What is cut keeps the number of further causes. */
Test(line, cut)
{
    struct sample s;
    char *big = hostile_long();
    sample_failing(&s);
    struct shk_diagnosis_row *rows = calloc(4, sizeof *rows);
    for (size_t i = 0; i < 4; i++)
        rows[i] = (struct shk_diagnosis_row){.key = "extra.row",
                                             .title = big,
                                             .explanation = "",
                                             .fix = "",
                                             .confidence = "likely",
                                             .verdict = i == 2 ? SHK_WARN : SHK_FAIL};
    s.report.diagnoses = &(struct shk_diagnoses){.rows = rows, .count = 4};
    char *text = sample_render(&s, "line");
    line_expect_plain("cut", text);
    cr_expect_not_null(strstr(text, "..., +2 more\n"), "%s", text);
    free(text);
    free(rows);
    free(big);
    sample_free(&s);
}

/* A node is not drained for what the job's owner set, even when that ranks first. */
Test(line, fault_of_the_node_first)
{
    struct sample s;
    struct shk_diagnosis_row rows[] = {
        {.key = "of-launch", .title = "t", .verdict = SHK_FAIL, .scope = SHK_SCOPE_LAUNCH},
        {.key = "of-node", .title = "t", .verdict = SHK_FAIL, .scope = SHK_SCOPE_NODE},
        {.key = "a-warning", .title = "t", .verdict = SHK_WARN, .scope = SHK_SCOPE_NODE},
    };
    sample_failing(&s);
    s.report.diagnoses = &(struct shk_diagnoses){.rows = rows, .count = 3};
    char *text = sample_render(&s, "line");
    cr_expect_not_null(strstr(text, ": of-node: "), "%s", text);
    cr_expect_not_null(strstr(text, ", +1 more [libfabric 1.15.2.0]\n"), "%s", text);
    free(text);
    s.report.diagnoses = &(struct shk_diagnoses){.rows = rows, .count = 1};
    text = sample_render(&s, "line");
    cr_expect_not_null(strstr(text, ": of-launch: "), "%s", text);
    free(text);
    sample_free(&s);
}

Test(line, of_nothing)
{
    struct sample s;
    sample_empty(&s);
    char *text = sample_render(&s, "line");
    line_expect_plain("nothing", text);
    free(text);
    sample_free(&s);
}

Test(line, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "line");
        hostile_expect_clean(hostile_texts[i].name, text);
        line_expect_plain(hostile_texts[i].name, text);
        free(text);
        sample_free(&s);
    }
}
