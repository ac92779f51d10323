/* The judgement as rows, for the forms that have nothing but rows: JUnit, Prometheus, annotations.
 */
#include "reports/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    struct shk_findings *list;
    bool failed;
};

static void rows_add(struct rows *rows, const struct shk_finding_in *in, const char *host)
{
    size_t at = shk_findings_count(rows->list);
    shk_findings_add(rows->list, in);
    if (host && *host && shk_findings_count(rows->list) > at)
        rows->failed |= shk_findings_set_nodes(rows->list, at, &host, 1) != 0;
}

static void rows_outcome(struct rows *rows, const json_t *judgement)
{
    const char *outcome = hang_word(judgement, "outcome");
    bool progress = strcmp(outcome, "progress") == 0, named = strcmp(outcome, "named") == 0;
    rows_add(rows,
             &(struct shk_finding_in){.id = "hang.job",
                                      .family = "hang",
                                      .setting = "job",
                                      .verdict = progress ? SHK_PASS
                                                 : named  ? SHK_FAIL
                                                          : SHK_UNKNOWN,
                                      .evidence = progress || named ? SHK_EFFECT : SHK_NOT_COVERED,
                                      .observed = hang_word(judgement, "headline"),
                                      .required = 1},
             NULL);
}

static void rows_named(struct rows *rows, const json_t *named)
{
    size_t i;
    json_t *one;
    json_array_foreach(named, i, one)
    {
        struct shk_strbuf who = SHK_STRBUF_INIT;
        const json_t *rank = json_object_get(one, "rank"), *pid = json_object_get(one, "pid");
        if (json_is_integer(rank))
            shk_strbuf_printf(&who, "rank %lld", (long long)json_integer_value(rank));
        else
            shk_strbuf_printf(&who, "process %lld", (long long)json_integer_value(pid));
        char *why = shk_strf("%s: %s", hang_word(one, "confidence"), hang_word(one, "text"));
        const char *advice = hang_word(one, "advice");
        rows_add(rows,
                 &(struct shk_finding_in){.id = "hang.rank",
                                          .family = "hang",
                                          .setting = shk_strbuf_text(&who),
                                          .verdict = SHK_FAIL,
                                          .evidence = SHK_EFFECT,
                                          .observed = hang_word(one, "kind"),
                                          .why = why,
                                          .advice = *advice ? advice : NULL,
                                          .required = 1},
                 hang_word(one, "host"));
        rows->failed |= !why || who.failed;
        free(why);
        shk_strbuf_free(&who);
    }
}

/* What may have to do with it is a warning, whatever it is worth by itself. `lines` are stolen. */
static void rows_lines(struct rows *rows, const char *id, json_t *lines)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        char number[40];
        const char *fix = hang_word(line, "fix");
        snprintf(number, sizeof number, "%s %zu", hang_word(line, "key"), i + 1);
        bool pass = strcmp(hang_word(line, "verdict"), "pass") == 0,
             unknown = strcmp(hang_word(line, "verdict"), "unknown") == 0;
        rows_add(rows,
                 &(struct shk_finding_in){.id = id,
                                          .family = "hang",
                                          .setting = number,
                                          .verdict = pass      ? SHK_PASS
                                                     : unknown ? SHK_UNKNOWN
                                                               : SHK_WARN,
                                          .evidence = unknown ? SHK_NOT_COVERED : SHK_EFFECT,
                                          .observed = hang_word(line, "text"),
                                          .fix = *fix ? fix : NULL},
                 NULL);
    }
    json_decref(lines);
}

static void rows_unseen(struct rows *rows, const json_t *unknown)
{
    size_t i;
    json_t *text;
    json_array_foreach(unknown, i, text)
    {
        char number[40];
        snprintf(number, sizeof number, "not seen %zu", i + 1);
        if (json_is_string(text))
            rows_add(rows,
                     &(struct shk_finding_in){.id = "hang.unseen",
                                              .family = "hang",
                                              .setting = number,
                                              .verdict = SHK_UNKNOWN,
                                              .evidence = SHK_NOT_COVERED,
                                              .observed = json_string_value(text)},
                     NULL);
    }
}

static enum shk_verdict rows_answer(const json_t *judgement)
{
    const char *outcome = hang_word(judgement, "outcome");
    if (strcmp(outcome, "named") == 0)
        return SHK_FAIL;
    return strcmp(outcome, "progress") == 0 ? SHK_PASS : SHK_UNKNOWN;
}

int hang_rows(const struct shk_hang_report *report, const struct shk_facts *const *facts,
              size_t nodes, const char *form, const struct shk_report_options *options, FILE *out)
{
    const struct shk_format *format = shk_format_find(form);
    struct rows rows = {.list = shk_findings_create()};
    struct shk_diagnoses none = {0};
    if (!rows.list || !format) {
        shk_findings_destroy(rows.list);
        return format ? -ENOMEM : -EINVAL;
    }
    rows_outcome(&rows, report->judgement);
    rows_named(&rows, json_object_get(report->judgement, "named"));
    rows_lines(&rows, "hang.check", hang_check_lines(report->judgement));
    rows_lines(&rows, "hang.audit", hang_audit_lines(report->judgement));
    rows_unseen(&rows, json_object_get(report->judgement, "unknown"));
    shk_findings_sort(rows.list);
    const struct shk_report all = {.version = report->version,
                                   .command = report->command,
                                   .profile = "hang",
                                   .profile_why = "",
                                   .facts = facts,
                                   .nodes = nodes,
                                   .findings = rows.list,
                                   .diagnoses = &none,
                                   .coverage = shk_findings_coverage(rows.list),
                                   .elapsed_s = -1,
                                   .headline = hang_word(report->judgement, "headline"),
                                   .answer = rows_answer(report->judgement)};
    int rc = rows.failed ? -ENOMEM : shk_findings_status(rows.list);
    rc = rc ? rc : format->render(&all, options, out);
    shk_findings_destroy(rows.list);
    return rc;
}
