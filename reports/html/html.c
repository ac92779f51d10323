/* One HTML file that needs nothing else: no network, no other file; readable without the script,
 * which only filters. */
#include "core/text/nodefold.h"
#include "reports/formats.h"
#include "reports/html/heatmap.h"
#include "reports/html/html_runs.h"
#include "reports/html/page.h"
#include "reports/model/factfold.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/model/nodecount.h"
#include "reports/model/topo.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A browser can show more than a terminal, but not a core dump in a table cell. */
enum { HTML_CLIP = 4000 };

struct html {
    const struct shk_model *model;
    const struct shk_report *report;
    struct shk_node_counts counts;
    struct shk_strbuf *out;
};

static void html_text(const struct html *h, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip_lines(&cut, text ? text : "", HTML_CLIP, 0);
    shk_escape_html(h->out, shk_strbuf_text(&cut));
    h->out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

/* <tag class="css">text</tag>; nothing for an empty text. */
static void html_element(const struct html *h, const char *tag, const char *css, const char *text)
{
    if (!text || !*text)
        return;
    shk_strbuf_printf(h->out, *css ? "<%s class=\"%s\">" : "<%s>", tag, css);
    html_text(h, text);
    shk_strbuf_printf(h->out, "</%s>\n", tag);
}

/* Lines to copy, whole. */
static void html_fix(const struct html *h, const char *fix)
{
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    if (!fix)
        return;
    shk_text_clip_lines(&clean, fix, INT_MAX, 0);
    shk_strbuf_puts(h->out, "<pre>");
    shk_escape_html(h->out, shk_strbuf_text(&clean));
    shk_strbuf_puts(h->out, "</pre>\n");
    h->out->failed |= clean.failed;
    shk_strbuf_free(&clean);
}

/* A node's name, or how many of them fail, as on the screen. */
static void html_who(const struct html *h)
{
    char *say = h->counts.total > 1 ? shk_node_counts_say(&h->counts) : strdup(h->model->where);
    h->out->failed |= !say;
    html_text(h, say);
    free(say);
}

/* Which of several nodes it is about: those that fail, else that warn, else all. */
static void html_names(const struct html *h)
{
    const char *bad = h->counts.failing ? h->counts.failing : h->counts.warning;
    if (h->counts.total > 1)
        html_element(h, "p", "", bad ? bad : h->model->where);
}

static void html_head(const struct html *h)
{
    shk_strbuf_puts(h->out,
                    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>");
    shk_strbuf_printf(h->out, "%s: ", shk_model_word(h->model->verdict));
    html_who(h);
    shk_strbuf_printf(h->out, "</title>\n<style>\n%s</style></head><body>\n" SHK_PAGE_SKIP,
                      shk_page_css);
}

static void html_part(const char *part, void *arg)
{
    struct shk_strbuf *line = arg;
    if (part && *part)
        shk_strbuf_printf(line, "%s%s", line->len ? " \xC2\xB7 " : "", part);
}

/* The machine, job and date. */
static void html_machine(const struct html *h)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    char *job = shk_hardware_job(h->model), *date = shk_hardware_date(h->model);
    char *number = job ? shk_strf("job %s", job) : NULL;
    h->out->failed |= shk_hardware_each(h->model, html_part, &line) != 0;
    html_part(number, &line);
    html_part(date, &line);
    html_element(h, "p", "dim", shk_strbuf_text(&line));
    h->out->failed |= line.failed;
    shk_strbuf_free(&line);
    free(job);
    free(number);
    free(date);
}

/* Which nodes, of several. */
static void html_cause_nodes(const struct html *h, size_t number)
{
    char *names = NULL;
    size_t count = 0;
    h->out->failed |= shk_cause_nodes(h->model, number, &names, &count) != 0;
    if (names) {
        char *text = shk_strf("%zu node%s: %s", count, count == 1 ? "" : "s", names);
        html_element(h, "p", "", text);
        h->out->failed |= !text;
        free(text);
    }
    free(names);
}

static void html_verdict(const struct html *h)
{
    struct shk_strbuf counts = SHK_STRBUF_INIT;
    shk_model_counts(&counts, h->report->coverage.verdicts);
    if (h->report->elapsed_s >= 0)
        shk_strbuf_printf(&counts, "; %.1f s", h->report->elapsed_s);
    shk_strbuf_printf(h->out, "<header class=\"banner %s\"><h1><span class=\"%s\">%s</span> ",
                      shk_verdict_name(h->model->verdict), shk_verdict_name(h->model->verdict),
                      shk_model_word(h->model->verdict));
    html_who(h);
    shk_strbuf_puts(h->out, "</h1>\n");
    html_names(h);
    html_element(h, "p", "", shk_strbuf_text(&counts));
    html_machine(h);
    if (h->report->interrupted)
        shk_strbuf_printf(h->out, "<p><strong>" SHK_MODEL_INTERRUPTED "</strong></p>\n",
                          h->report->interrupted);
    if (h->report->profile) {
        shk_strbuf_puts(h->out, "<p class=\"dim\">profile <strong>");
        html_text(h, h->report->profile);
        shk_strbuf_puts(h->out, "</strong> ");
        html_text(h, h->report->profile_why);
        shk_strbuf_puts(h->out, "</p>");
    }
    shk_strbuf_puts(h->out, "</header>\n" SHK_PAGE_MAIN);
    h->out->failed |= counts.failed;
    shk_strbuf_free(&counts);
}

/* Its title stands above. */
static void html_cause_body(const struct html *h, size_t number)
{
    const struct shk_diagnosis_row *row = &h->report->diagnoses->rows[number - 1];
    struct shk_strbuf who = SHK_STRBUF_INIT;
    shk_model_who(&who, row);
    html_element(h, "p", "dim", shk_strbuf_text(&who));
    html_cause_nodes(h, number);
    html_element(h, "p", "", row->explanation);
    if (row->evidence && *row->evidence) {
        shk_strbuf_puts(h->out, "<ul>");
        for (char **line = row->evidence; *line; line++)
            html_element(h, "li", "", *line);
        shk_strbuf_puts(h->out, "</ul>\n");
    }
    html_fix(h, row->fix);
    html_element(h, "p", "advice", row->advice);
    h->out->failed |= who.failed;
    shk_strbuf_free(&who);
}

/* What the same evidence could mean, in one line that opens. */
static void html_cause_below(const struct html *h, size_t number)
{
    const struct shk_diagnoses *list = h->report->diagnoses;
    struct shk_strbuf titles = SHK_STRBUF_INIT;
    if (shk_cause_below(h->model, number, &titles)) {
        shk_strbuf_puts(h->out, "<details class=\"below\"><summary>less likely: ");
        html_text(h, shk_strbuf_text(&titles));
        shk_strbuf_puts(h->out, "</summary>\n");
        for (size_t i = 0; i < list->count; i++) {
            if (list->rows[i].below != number || shk_cause_is_open(&list->rows[i]))
                continue;
            html_element(h, "h4", "", list->rows[i].title);
            html_cause_body(h, i + 1);
        }
        shk_strbuf_puts(h->out, "</details>\n");
    }
    h->out->failed |= titles.failed;
    shk_strbuf_free(&titles);
}

static void html_cause(const struct html *h, size_t number, size_t place)
{
    const struct shk_diagnosis_row *row = &h->report->diagnoses->rows[number - 1];
    shk_strbuf_printf(h->out, "<div class=\"cause\"><h3><span class=\"%s\">%zu</span> ",
                      shk_verdict_name(row->verdict), place);
    html_text(h, row->title);
    shk_strbuf_puts(h->out, "</h3>\n");
    html_cause_body(h, number);
    html_cause_below(h, number);
    shk_strbuf_puts(h->out, "</div>\n");
}

/* A row that fails or warns and belongs to no cause. */
static void html_cause_row(const struct html *h, const struct shk_finding *row)
{
    char *names = NULL;
    size_t count = 0;
    shk_strbuf_printf(h->out, "<div class=\"cause\"><h3><span class=\"%s\">%s</span> ",
                      shk_verdict_name(row->verdict), shk_model_word(row->verdict));
    html_text(h, row->setting);
    if (row->observed && *row->observed) {
        shk_strbuf_puts(h->out, " = ");
        html_text(h, row->observed);
    }
    shk_strbuf_puts(h->out, "</h3>\n");
    if (h->counts.total > 1)
        h->out->failed |= shk_row_nodes_folded(row, &names, &count) != 0;
    if (names) {
        char *text = shk_strf("%zu node%s: %s", count, count == 1 ? "" : "s", names);
        html_element(h, "p", "", text);
        free(text);
    }
    free(names);
    html_element(h, "p", "", row->why);
    html_fix(h, row->fix);
    html_element(h, "p", "advice", row->advice);
    shk_strbuf_puts(h->out, "</div>\n");
}

static void html_causes(const struct html *h)
{
    const struct shk_diagnoses *list = h->report->diagnoses;
    const struct shk_findings *rows = h->report->findings;
    size_t place = 0, others = 0, count = rows ? shk_findings_count(rows) : 0;
    for (size_t i = 0; list && i < list->count; i++) {
        if (!shk_cause_is_open(&list->rows[i]))
            continue;
        if (!place++)
            shk_strbuf_printf(h->out, "<section><h2>Root cause%s</h2>\n",
                              list->count == 1 ? "" : "s");
        html_cause(h, i + 1, place);
    }
    for (size_t i = 0; i < count; i++) {
        const struct shk_finding *row = shk_findings_at(rows, i);
        bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
        if (!bad || shk_model_cause(h->report, row))
            continue;
        if (!others++)
            shk_strbuf_puts(h->out, place ? "" : "<section><h2>To look at</h2>\n");
        html_cause_row(h, row);
    }
    if (place || others)
        shk_strbuf_puts(h->out, "</section>\n");
}

static void html_coverage(const struct html *h)
{
    const unsigned *evidence = h->report->coverage.evidence;
    struct shk_strbuf line = SHK_STRBUF_INIT;
    shk_model_coverage(&line, &h->report->coverage);
    shk_strbuf_puts(h->out, "<section><h2>Coverage</h2>\n<div class=\"bar\" aria-hidden=\"true\">");
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++)
        if (evidence[e])
            shk_strbuf_printf(h->out, "<span class=\"%s\" style=\"flex:%u\"></span>",
                              shk_evidence_name((enum shk_evidence)e), evidence[e]);
    shk_strbuf_puts(h->out, "</div>\n");
    html_element(h, "p", "", shk_strbuf_text(&line));
    shk_strbuf_puts(h->out, "<div class=\"legend dim\">");
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++)
        shk_strbuf_printf(h->out, "<span><i class=\"%s\"></i>%s</span>",
                          shk_evidence_name((enum shk_evidence)e),
                          shk_model_evidence((enum shk_evidence)e));
    shk_strbuf_puts(h->out, "</div></section>\n");
    h->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

static const struct shk_column html_columns[] = {
    {.title = "verdict"},
    {.title = "family"},
    {.title = "setting", .code = true},
    {.title = "observed", .code = true},
    {.title = "verified"},
    {.title = "why, expected, fix, advice"},
};

static void html_row(const struct html *h, struct shk_table *table, const struct shk_finding *row)
{
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
    shk_table_row(table);
    shk_table_text(table, shk_style_role(row->verdict), shk_model_word(row->verdict));
    shk_table_text(table, SHK_ROLE_PLAIN, row->family);
    shk_table_text(table, SHK_ROLE_PLAIN, row->setting);
    shk_table_text(table, SHK_ROLE_PLAIN, row->observed);
    shk_table_text(table, SHK_ROLE_DIM,
                   row->verdict == SHK_NA ? "" : shk_model_evidence(row->evidence));
    shk_table_text(table, SHK_ROLE_PLAIN, row->why ? row->why : "");
    if (row->expected) {
        char *text = shk_strf("expected %s", row->expected);
        shk_table_note(table, SHK_ROLE_DIM, "", SHK_TABLE_WORDS, text ? text : "");
        h->out->failed |= !text;
        free(text);
    }
    if (row->fix && (bad || row->verdict == SHK_NOTE))
        shk_table_note(table, bad ? SHK_ROLE_FIX : SHK_ROLE_DIM, "", SHK_TABLE_COMMAND, row->fix);
    if (row->advice && (bad || row->verdict == SHK_NOTE))
        shk_table_note(table, SHK_ROLE_PLAIN, "advice: ", SHK_TABLE_WORDS, row->advice);
    if (row->nodes && h->report->nodes > 1) {
        struct shk_strbuf nodes = SHK_STRBUF_INIT;
        size_t count = 0;
        while (row->nodes[count])
            count++;
        shk_strbuf_puts(&nodes, "on ");
        shk_nodefold(&nodes, (const char *const *)row->nodes, count);
        shk_table_note(table, SHK_ROLE_DIM, "", SHK_TABLE_WORDS, shk_strbuf_text(&nodes));
        h->out->failed |= nodes.failed;
        shk_strbuf_free(&nodes);
    }
}

/* Folded: nobody has to act on a note. */
static void html_notes(const struct html *h)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    size_t rows = h->report->findings ? shk_findings_count(h->report->findings) : 0;
    struct shk_table *table =
        shk_table_create(html_columns, sizeof html_columns / sizeof *html_columns);
    if (!table) {
        h->out->failed = true;
        return;
    }
    for (size_t i = 0; i < rows; i++)
        if (shk_findings_at(h->report->findings, i)->verdict == SHK_NOTE)
            html_row(h, table, shk_findings_at(h->report->findings, i));
    if (shk_model_notes(&line, h->report)) {
        shk_strbuf_puts(h->out, "<section class=\"notes\"><details><summary>");
        html_text(h, shk_strbuf_text(&line));
        shk_strbuf_puts(h->out, "</summary>" SHK_PAGE_SCROLL("notes"));
        shk_table_html(table, "notes", HTML_CLIP, h->out);
        shk_strbuf_puts(h->out, "</div></details></section>\n");
    }
    h->out->failed |= line.failed;
    shk_strbuf_free(&line);
    shk_table_destroy(table);
}

static void html_filter(const struct html *h)
{
    static const enum shk_verdict order[] = {SHK_FAIL, SHK_WARN, SHK_UNKNOWN,
                                             SHK_NOTE, SHK_PASS, SHK_NA};
    shk_strbuf_puts(h->out, "<div class=\"filter\" hidden><input id=\"filter\" type=\"search\" "
                            "placeholder=\"filter: words of setting, value, family, node\" "
                            "aria-label=\"filter rows\">");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        shk_strbuf_printf(h->out,
                          "<label class=\"%s\"><input type=\"checkbox\" value=\"%s\"%s> %s "
                          "%u</label>",
                          shk_verdict_name(order[i]), shk_verdict_name(order[i]),
                          order[i] == SHK_NA || order[i] == SHK_NOTE ? "" : " checked",
                          shk_model_word(order[i]), h->report->coverage.verdicts[order[i]]);
    shk_strbuf_puts(h->out, "<span id=\"shown\" class=\"dim\"></span></div>\n");
}

static void html_matrix(const struct html *h)
{
    static const enum shk_verdict order[] = {SHK_FAIL, SHK_WARN, SHK_UNKNOWN,
                                             SHK_NOTE, SHK_PASS, SHK_NA};
    struct shk_table *table =
        shk_table_create(html_columns, sizeof html_columns / sizeof *html_columns);
    size_t rows = h->report->findings ? shk_findings_count(h->report->findings) : 0;
    if (!table) {
        h->out->failed = true;
        return;
    }
    for (size_t o = 0; o < sizeof order / sizeof *order; o++)
        for (size_t i = 0; i < rows; i++)
            if (shk_findings_at(h->report->findings, i)->verdict == order[o])
                html_row(h, table, shk_findings_at(h->report->findings, i));
    shk_strbuf_puts(h->out, "<section><h2>Matrix</h2>\n");
    html_filter(h);
    shk_strbuf_puts(h->out, SHK_PAGE_SCROLL("matrix"));
    shk_table_html(table, "matrix", HTML_CLIP, h->out);
    shk_strbuf_puts(h->out, "</div></section>\n");
    shk_table_destroy(table);
}

static void html_gaps(const struct html *h)
{
    if (!h->model->gaps_count)
        return;
    shk_strbuf_puts(h->out, "<section><h2>Not covered, and why</h2>\n<ul>");
    for (size_t g = 0; g < h->model->gaps_count; g++) {
        const struct shk_group *gap = &h->model->gaps[g];
        shk_strbuf_puts(h->out, "<li>");
        html_text(h, gap->title);
        shk_strbuf_puts(h->out, ": ");
        for (size_t i = 0; i < gap->count; i++) {
            shk_strbuf_puts(h->out, i ? ", " : "");
            shk_strbuf_puts(h->out, "<code>");
            html_text(h, gap->rows[i]->setting);
            shk_strbuf_puts(h->out, "</code>");
        }
        shk_strbuf_puts(h->out, "</li>\n");
    }
    shk_strbuf_puts(h->out, "</ul></section>\n");
}

static void html_environment(const struct html *h)
{
    struct shk_table *table = shk_environment_table(h->model);
    if (!table) {
        h->out->failed = true;
        return;
    }
    if (shk_table_rows(table)) {
        shk_strbuf_puts(
            h->out, "<section><details><summary>Environment and versions</summary>" SHK_PAGE_SCROLL(
                        "environment"));
        shk_table_html(table, "environment", HTML_CLIP, h->out);
        shk_strbuf_puts(h->out, "</div></details></section>\n");
    }
    shk_table_destroy(table);
}

static void html_foot(const struct html *h)
{
    shk_strbuf_puts(h->out, "</main>\n<footer class=\"dim\"><p>How to reproduce:</p>\n");
    html_element(h, "pre", "", h->report->command ? h->report->command : "shakedown");
    shk_strbuf_puts(h->out, "<p>shakedown ");
    html_text(h, h->report->version);
    shk_strbuf_printf(h->out, "</p></footer>\n<script>\n%s</script></body></html>\n", shk_page_js);
}

static int html_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_model *model = shk_model_create(report, options);
    if (!model)
        return -ENOMEM;
    struct html h = {.model = model, .report = model->report, .out = &text};
    text.failed |= shk_node_counts(&h.counts, model) != 0;
    html_head(&h);
    html_verdict(&h);
    html_causes(&h);
    html_coverage(&h);
    shk_heatmap_html(&text, model);
    shk_html_runs(&text, model);
    shk_topo_html(&text, model);
    html_notes(&h);
    html_matrix(&h);
    html_gaps(&h);
    html_environment(&h);
    html_foot(&h);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_node_counts_free(&h.counts);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_html = {
    .name = "html",
    .extension = ".html",
    .doc = "one self-contained page: heat map, plots, filter",
    .render = html_render,
};
