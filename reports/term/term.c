/* Terminal report: what to do first, then what is known and how, then the numbers. */
#include "reports/formats.h"
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TERM_WIDTH = 100, TERM_WIDTH_LEAST = 40 };

static void term_put(const struct term *t, const struct shk_wrap *like, const char *text)
{
    struct shk_wrap wrap = *like;
    wrap.style = t->style;
    wrap.width = t->width;
    wrap.clip = TERM_CLIP;
    if (text && *text)
        shk_wrap_put(t->out, &wrap, text);
}

void shk_term_text(const struct term *t, enum shk_role role, unsigned indent, const char *lead,
                   const char *text)
{
    term_put(t, &(struct shk_wrap){.role = role, .indent = indent, .lead = lead}, text);
}

void shk_term_fix(const struct term *t, unsigned indent, const char *fix)
{
    term_put(t,
             &(struct shk_wrap){
                 .role = SHK_ROLE_FIX, .indent = indent, .lead = shk_term_arrow(t), .shell = true},
             fix);
}

void shk_term_title(const struct term *t, const char *title, const char *rest)
{
    shk_strbuf_printf(t->out, "\n%s%s%s", shk_style_on(t->style, SHK_ROLE_TITLE), title,
                      shk_style_off(t->style, SHK_ROLE_TITLE));
    shk_strbuf_printf(t->out, "%s%s\n", rest ? "  " : "", rest ? rest : "");
}

const char *shk_term_arrow(const struct term *t)
{
    return t->style.unicode ? "\xE2\x86\x92 " : "> ";
}

static void term_verdict(const struct term *t)
{
    static const char *const words[SHK_VERDICT_COUNT] = {
        [SHK_PASS] = "PASS", [SHK_WARN] = "WARN", [SHK_FAIL] = "FAIL", [SHK_UNKNOWN] = "UNKNOWN"};
    bool named = t->report->headline != NULL;
    enum shk_verdict verdict = named ? t->report->answer : t->model->verdict;
    enum shk_role role = shk_style_role(verdict);
    struct shk_strbuf lead = SHK_STRBUF_INIT, line = SHK_STRBUF_INIT;
    const char *dot = shk_style_sign(t->style, SHK_SIGN_DOT);
    shk_strbuf_printf(&lead, "%s %s  ", shk_style_sign(t->style, shk_style_verdict_sign(verdict)),
                      named ? "diagnosis" : words[verdict]);
    if (named)
        shk_strbuf_puts(&line, t->report->headline);
    else
        shk_strbuf_printf(&line, "%s %s ", t->model->where, dot);
    if (!named)
        shk_model_counts(&line, t->report->coverage.verdicts);
    if (t->report->elapsed_s >= 0)
        shk_strbuf_printf(&line, " %s %.1f s", dot, t->report->elapsed_s);
    term_put(t, &(struct shk_wrap){.lead = shk_strbuf_text(&lead), .lead_role = role},
             shk_strbuf_text(&line));
    if (t->report->interrupted) {
        char *text = shk_strf(SHK_MODEL_INTERRUPTED, t->report->interrupted);
        t->out->failed |= !text;
        shk_term_text(t, SHK_ROLE_UNKNOWN, (unsigned)shk_text_width(shk_strbuf_text(&lead)), "",
                      text);
        free(text);
    }
    if (t->report->profile) {
        struct shk_strbuf why = SHK_STRBUF_INIT;
        bool has_why = t->report->profile_why && *t->report->profile_why;
        shk_strbuf_printf(&why, "profile %s%s%s%s", t->report->profile, has_why ? " (" : "",
                          has_why ? t->report->profile_why : "", has_why ? ")" : "");
        shk_term_text(t, SHK_ROLE_DIM, (unsigned)shk_text_width(shk_strbuf_text(&lead)), "",
                      shk_strbuf_text(&why));
        shk_strbuf_free(&why);
    }
    t->out->failed |= lead.failed || line.failed;
    shk_strbuf_free(&lead);
    shk_strbuf_free(&line);
}

static void term_cause(const struct term *t, size_t number, const struct shk_diagnosis_row *row)
{
    struct shk_strbuf lead = SHK_STRBUF_INIT, who = SHK_STRBUF_INIT;
    shk_strbuf_printf(&lead, "%2zu  ", number);
    term_put(t,
             &(struct shk_wrap){.role = SHK_ROLE_TITLE,
                                .lead = shk_strbuf_text(&lead),
                                .lead_role = shk_style_role(row->verdict)},
             row->title);
    shk_model_who(&who, row);
    shk_term_text(t, SHK_ROLE_DIM, 4, "", shk_strbuf_text(&who));
    for (char **line = row->evidence; line && *line; line++)
        shk_term_text(t, SHK_ROLE_PLAIN, 4, "- ", *line);
    if (t->verbose)
        shk_term_text(t, SHK_ROLE_PLAIN, 4, "", row->explanation);
    shk_term_fix(t, 4, row->fix);
    t->out->failed |= lead.failed || who.failed;
    shk_strbuf_free(&lead);
    shk_strbuf_free(&who);
}

static void term_causes(const struct term *t)
{
    const struct shk_diagnoses *list = t->report->diagnoses;
    if (!list || !list->count)
        return;
    shk_term_title(t, list->count == 1 ? "Root cause" : "Root causes", NULL);
    for (size_t i = 0; i < list->count; i++)
        term_cause(t, i + 1, &list->rows[i]);
}

static void term_coverage(const struct term *t)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    shk_model_coverage(&line, &t->report->coverage);
    shk_strbuf_putc(t->out, '\n');
    term_put(t, &(struct shk_wrap){.lead = "Coverage  ", .lead_role = SHK_ROLE_TITLE},
             shk_strbuf_text(&line));
    t->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

/* The notes are folded to a line; with --verbose the matrix has them in full. */
static void term_notes(const struct term *t)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    if (!t->verbose && shk_model_notes(&line, t->report)) {
        shk_strbuf_puts(&line, " (-v shows them)");
        term_put(t, &(struct shk_wrap){.lead = "Notes     ", .lead_role = SHK_ROLE_TITLE},
                 shk_strbuf_text(&line));
    }
    t->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

static int term_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_model *model = shk_model_create(report, options);
    if (!model)
        return -ENOMEM;
    struct term t = {
        .model = model,
        .report = model->report,
        .style = {.color = options->color, .unicode = options->unicode},
        .width = options->width ? options->width : TERM_WIDTH,
        .verbose = options->verbose,
        .out = &text,
    };
    if (t.width < TERM_WIDTH_LEAST)
        t.width = TERM_WIDTH_LEAST;
    term_verdict(&t);
    term_causes(&t);
    term_coverage(&t);
    term_notes(&t);
    shk_term_matrix(&t);
    shk_term_gaps(&t);
    shk_term_runs(&t);
    if (t.verbose) {
        shk_term_topology(&t);
        shk_term_probes(&t);
    }
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_term = {
    .name = "term",
    .extension = ".txt",
    .doc = "for a terminal: root causes, coverage, matrix, collectives",
    .render = term_render,
};
