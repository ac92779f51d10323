/* A note is worth knowing and costs nothing: every format has it, none makes anything of it. */
#include "sample.h"

#include "reports/model/model.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(note, .timeout = 300);

#define NOTES "2 notes: NCCL_CHECKS_DISABLE; symmetric window, unaligned 16-bit data"

static char *note_render(const char *format, bool verbose)
{
    struct sample s;
    sample_noted(&s);
    s.options.verbose = verbose;
    s.options.width = 140;
    char *text = sample_render(&s, format);
    sample_free(&s);
    return text;
}

static void note_has(const char *format, bool verbose, const char *const *parts, size_t count)
{
    char *text = note_render(format, verbose);
    for (size_t i = 0; i < count; i++)
        cr_expect_not_null(strstr(text, parts[i]), "%s: '%s' is missing in:\n%s", format, parts[i],
                           text);
    free(text);
}

static void note_lacks(const char *format, bool verbose, const char *part)
{
    char *text = note_render(format, verbose);
    cr_expect_null(strstr(text, part), "%s: '%s' in:\n%s", format, part, text);
    free(text);
}

#define HAS(format, verbose, ...)                                                                  \
    note_has(format, verbose, (const char *const[]){__VA_ARGS__},                                  \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

Test(note, colours_no_verdict)
{
    struct shk_coverage c = {.verdicts = {[SHK_PASS] = 3, [SHK_NOTE] = 2}};
    cr_expect_eq(shk_model_verdict(&c), SHK_PASS);
    c.verdicts[SHK_PASS] = 0;
    cr_expect_eq(shk_model_verdict(&c), SHK_PASS, "something was judged");
    c.required_unknown = 1;
    cr_expect_eq(shk_model_verdict(&c), SHK_UNKNOWN);
    c.verdicts[SHK_WARN] = 1;
    cr_expect_eq(shk_model_verdict(&c), SHK_WARN);
}

Test(note, counted_in_words)
{
    static const unsigned one[SHK_VERDICT_COUNT] = {[SHK_NOTE] = 1, [SHK_PASS] = 4};
    static const unsigned two[SHK_VERDICT_COUNT] = {[SHK_NOTE] = 2, [SHK_WARN] = 1};
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_model_counts(&out, one);
    shk_strbuf_puts(&out, "; ");
    shk_model_counts(&out, two);
    cr_expect_str_eq(shk_strbuf_text(&out), "1 note, 4 passed; 1 warning, 2 notes");
    shk_strbuf_free(&out);
}

Test(note, many_are_named_in_part)
{
    struct sample s;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    sample_healthy(&s);
    cr_expect_eq(shk_model_notes(&out, &s.report), 0);
    cr_expect_eq(out.len, 0);
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "X%02d", i);
        shk_findings_add(s.findings, &(struct shk_finding_in){.id = "x",
                                                              .family = "x",
                                                              .setting = name,
                                                              .verdict = SHK_NOTE,
                                                              .evidence = SHK_DECLARED});
    }
    s.report.coverage = shk_findings_coverage(s.findings);
    cr_expect_eq(shk_model_notes(&out, &s.report), 30);
    cr_expect_str_eq(shk_strbuf_text(&out),
                     "30 notes: X00; X01; X02; X03; X04; X05; X06; X07 and 22 more");
    shk_strbuf_free(&out);
    sample_free(&s);
}

Test(note, terminal_folds_it_to_a_line)
{
    HAS("term", false, "\xE2\x9C\x93 PASS  nid001234 \xC2\xB7 2 notes, 5 passed",
        "" NOTES " (-v)\n");
    note_lacks("term", false, "retired");
    HAS("term", true, "i note", "NCCL retired it; nothing reads it.",
        "optional: unset NCCL_CHECKS_DISABLE");
    note_lacks("term", true, "-v shows them");
}

Test(note, markdown_folds_it)
{
    HAS("md", false, "**shakedown: PASS**", "2 notes, 5 passed",
        "<details><summary>" NOTES "</summary>", "| note |",
        "optional `unset NCCL_CHECKS_DISABLE`");
    HAS("md", true, "<details open><summary>" NOTES);
    note_lacks("md", false, "Failed and warned");
}

Test(note, html_folds_it_and_filters_it)
{
    HAS("html", false, "<header class=\"banner pass\">",
        "<section class=\"notes\"><details><summary>" NOTES "</summary>", "<td class=\"note\">",
        "<label class=\"note\"><input type=\"checkbox\" value=\"note\"> note 2</label>",
        "unset NCCL_CHECKS_DISABLE");
}

Test(note, json_has_its_own_word)
{
    HAS("json", false, "\"schema\": \"shakedown.report/2\"", "\"verdict\": \"pass\"", "\"note\": 2",
        "\"verdict\": \"note\"", "\"fix\": \"unset NCCL_CHECKS_DISABLE\"");
}

Test(note, junit_passes_with_output)
{
    HAS("junit", false, "failures=\"0\" errors=\"0\" skipped=\"0\"",
        "classname=\"env.value\" name=\"NCCL_CHECKS_DISABLE\" "
        "time=\"0.000\"><system-out>note\nobserved: 1\n",
        "fix: unset NCCL_CHECKS_DISABLE\n");
    note_lacks("junit", false, "<failure");
    note_lacks("junit", false, "<skipped");
}

Test(note, prometheus_has_it_as_a_state_of_its_own)
{
    HAS("prom", false, "shakedown_findings{verdict=\"note\"} 2\n",
        "shakedown_verdict{verdict=\"pass\"} 1\n",
        "shakedown_note{node=\"nid001234\",family=\"nccl\",setting=\"NCCL_CHECKS_DISABLE\",check="
        "\"env.value\",verdict=\"note\"} 1\n");
    note_lacks("prom", false, "shakedown_verdict{verdict=\"note\"}");
    note_lacks("prom", false, "shakedown_problem{");
}

/* A node whose only difference is a note is no row of the map. */
Test(note, no_cell_in_the_map)
{
    struct sample s;
    sample_cluster(&s);
    shk_findings_add(s.findings, &(struct shk_finding_in){.id = "x",
                                                          .family = "x",
                                                          .setting = "only noted",
                                                          .verdict = SHK_NOTE,
                                                          .evidence = SHK_DECLARED});
    s.report.coverage = shk_findings_coverage(s.findings);
    char *text = sample_render(&s, "html");
    cr_expect_not_null(strstr(text, "table class=\"heat\""));
    cr_expect_null(strstr(text, "title=\"only noted"));
    free(text);
    sample_free(&s);
}
