/* One page that needs nothing else. What is the same for many nodes is said once, with folded
 * names, so that it stays readable for ten thousand of them. */
#include "reports/history/history.h"
#include "reports/html/page.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <string.h>

/* Rows of a table; names in a cell, in bytes. */
enum { HTML_ROWS = 500, HTML_WORST = 50, HTML_NAMES = 4000 };

static void html_put(struct shk_strbuf *out, const char *text, int most)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip_lines(&cut, text, (unsigned)most, 0);
    shk_escape_html(out, shk_strbuf_text(&cut));
    out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static void html_cell(struct shk_strbuf *out, const char *css, const char *text)
{
    shk_strbuf_printf(out, *css ? "<td class=\"%s\">" : "<td>", css);
    html_put(out, text, HTML_NAMES);
    shk_strbuf_puts(out, "</td>");
}

static void html_number(struct shk_strbuf *out, const json_t *object, const char *key)
{
    shk_strbuf_printf(out, "<td class=\"num\">%lld</td>",
                      (long long)json_integer_value(json_object_get(object, key)));
}

static const char *html_css(const char *verdict)
{
    static const char *const known[] = {"pass", "warn", "fail", "unknown"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(verdict, known[i]) == 0)
            return known[i];
    return "";
}

static void html_table(struct shk_strbuf *out, const char *title, const char *const *columns)
{
    shk_strbuf_printf(out, "<section><h2>%s</h2>" SHK_PAGE_SCROLL("table") "<table><thead><tr>",
                      title);
    for (; *columns; columns++)
        shk_strbuf_printf(out, "<th>%s</th>", *columns);
    shk_strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void html_table_end(struct shk_strbuf *out, size_t shown, size_t all)
{
    shk_strbuf_puts(out, "</tbody></table></div>");
    if (all > shown)
        shk_strbuf_printf(out, "<p class=\"dim\">%zu more: --format json has all</p>", all - shown);
    shk_strbuf_puts(out, "</section>\n");
}

static void html_rows(struct shk_strbuf *out, const json_t *document, const json_t *rows)
{
    static const char *const columns[] = {"node", "value", "what", NULL};
    const json_t *row;
    size_t i, n = json_array_size(rows);
    if (!n) {
        struct shk_strbuf text = SHK_STRBUF_INIT;
        shk_history_quiet(&text, document);
        shk_strbuf_puts(out, "<section><p>");
        html_put(out, shk_strbuf_text(&text), HTML_NAMES);
        shk_strbuf_puts(out, "</p></section>\n");
        shk_strbuf_free(&text);
        return;
    }
    html_table(out, "Not as before, or not as the others of the kind", columns);
    json_array_foreach(rows, i, row)
    {
        struct shk_strbuf text = SHK_STRBUF_INIT;
        if (i >= HTML_ROWS)
            break;
        shk_history_sentence(&text, row);
        shk_strbuf_puts(out, "<tr>");
        html_cell(out, "warn", shk_history_text(row, "node"));
        html_cell(out, "", shk_history_text(row, "metric"));
        html_cell(out, "", shk_strbuf_text(&text));
        shk_strbuf_puts(out, "</tr>\n");
        shk_strbuf_free(&text);
    }
    html_table_end(out, i, n);
}

static void html_trend(struct shk_strbuf *out, const json_t *trend)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const json_t *event;
    size_t i;
    shk_strbuf_puts(out, "<section><h2>");
    html_put(out, shk_history_text(trend, "node"), HTML_NAMES);
    shk_strbuf_puts(out, ": ");
    html_put(out, shk_history_text(trend, "title"), HTML_NAMES);
    shk_strbuf_puts(out, " (");
    html_put(out, shk_history_text(trend, "metric"), HTML_NAMES);
    shk_strbuf_puts(out, ")</h2>\n");
    shk_trend_svg(out, trend);
    shk_history_sentence(&text, trend);
    shk_strbuf_puts(out, "<p>");
    html_put(out, shk_strbuf_text(&text), HTML_NAMES);
    shk_strbuf_puts(out, "</p><ul>");
    json_array_foreach(json_object_get(trend, "events"), i, event)
    {
        shk_strbuf_puts(out, "<li>");
        html_put(out, shk_history_text(event, "at"), 10);
        shk_strbuf_puts(out, " <code>");
        html_put(out, shk_history_text(event, "path"), HTML_NAMES);
        shk_strbuf_puts(out, "</code> ");
        html_put(out, shk_history_text(event, "from"), HTML_NAMES);
        shk_strbuf_puts(out, " \xE2\x86\x92 ");
        html_put(out, shk_history_text(event, "to"), HTML_NAMES);
        shk_strbuf_puts(out, "</li>\n");
    }
    shk_strbuf_puts(out, "</ul></section>\n");
    shk_strbuf_free(&text);
}

static void html_drain(struct shk_strbuf *out, const json_t *drain)
{
    static const char *const columns[] = {"node", "cause", "since", "seen", "why", NULL};
    const json_t *row;
    size_t i, n = json_array_size(drain);
    if (!n) {
        shk_strbuf_puts(out, "<section><p>No node has to be drained.</p></section>\n");
        return;
    }
    html_table(out, "To be drained", columns);
    json_array_foreach(drain, i, row)
    {
        struct shk_strbuf seen = SHK_STRBUF_INIT;
        if (i >= HTML_ROWS)
            break;
        shk_strbuf_printf(&seen, "%s %s", shk_history_text(row, "setting"),
                          shk_history_text(row, "observed"));
        shk_strbuf_puts(out, "<tr>");
        html_cell(out, "fail", shk_history_text(row, "node"));
        html_cell(out, "", shk_history_text(row, "cause"));
        html_cell(out, "num", shk_history_text(row, "since"));
        html_cell(out, "", shk_strbuf_text(&seen));
        html_cell(out, "", shk_history_text(row, "why"));
        shk_strbuf_puts(out, "</tr>\n");
        shk_strbuf_free(&seen);
    }
    html_table_end(out, i, n);
}

static void html_causes(struct shk_strbuf *out, const json_t *causes)
{
    static const char *const columns[] = {"nodes", "cause", "verdict", "since", "which", NULL};
    const json_t *cause;
    size_t i;
    html_table(out, "Most frequent causes", columns);
    json_array_foreach(causes, i, cause)
    {
        struct shk_strbuf names = SHK_STRBUF_INIT;
        const char *verdict = shk_history_text(cause, "verdict");
        bool launch = strcmp(shk_history_text(cause, "scope"), "launch") == 0;
        if (i >= HTML_ROWS)
            break;
        shk_history_names(&names, json_object_get(cause, "names"));
        shk_strbuf_puts(out, "<tr>");
        html_number(out, cause, "nodes");
        html_cell(out, "", shk_history_text(cause, "name"));
        shk_strbuf_printf(out, "<td class=\"%s\">%s%s</td>", html_css(verdict), html_css(verdict),
                          launch ? ", of the launch" : "");
        html_cell(out, "num", shk_history_text(cause, "since"));
        html_cell(out, "", shk_strbuf_text(&names));
        shk_strbuf_puts(out, "</tr>\n");
        shk_strbuf_free(&names);
    }
    html_table_end(out, i, json_array_size(causes));
}

static void html_groups(struct shk_strbuf *out, const json_t *groups)
{
    static const char *const columns[] = {"nodes", "fail", "warn",  "unknown",
                                          "pass",  "kind", "names", NULL};
    const json_t *group;
    size_t i;
    html_table(out, "By kind", columns);
    json_array_foreach(groups, i, group)
    {
        struct shk_strbuf names = SHK_STRBUF_INIT;
        if (i >= HTML_ROWS)
            break;
        shk_history_names(&names, json_object_get(group, "names"));
        shk_strbuf_puts(out, "<tr>");
        for (size_t k = 0; k < 5; k++)
            html_number(out, group, columns[k]);
        html_cell(out, "", shk_history_text(group, "name"));
        html_cell(out, "", shk_strbuf_text(&names));
        shk_strbuf_puts(out, "</tr>\n");
        shk_strbuf_free(&names);
    }
    html_table_end(out, i, json_array_size(groups));
}

static void html_worst(struct shk_strbuf *out, const json_t *worst)
{
    static const char *const columns[] = {"node", "verdict", "tested", "causes", NULL};
    const json_t *node, *issue;
    size_t i, k;
    html_table(out, "Worst nodes", columns);
    json_array_foreach(worst, i, node)
    {
        const char *verdict = shk_history_text(node, "verdict");
        struct shk_strbuf causes = SHK_STRBUF_INIT;
        if (i >= HTML_WORST || !json_array_size(json_object_get(node, "issues")))
            break;
        json_array_foreach(json_object_get(node, "issues"), k, issue)
            shk_strbuf_printf(&causes, "%s%s since %.10s", k ? "; " : "",
                              shk_history_text(issue, "cause"), shk_history_text(issue, "since"));
        shk_strbuf_puts(out, "<tr>");
        html_cell(out, "", shk_history_text(node, "node"));
        html_cell(out, html_css(verdict), html_css(verdict));
        html_cell(out, "num", shk_history_text(node, "last"));
        html_cell(out, "", shk_strbuf_text(&causes));
        shk_strbuf_puts(out, "</tr>\n");
        shk_strbuf_free(&causes);
    }
    html_table_end(out, i, i);
}

static void html_begin(struct shk_strbuf *out, const char *title, const json_t *document)
{
    static const char *const verdicts[] = {"fail", "warn", "unknown", "pass"};
    const json_t *counts = json_object_get(document, "verdicts"),
                 *total = json_object_get(document, "nodes");
    long long nodes = total ? json_integer_value(total) : -1;
    shk_strbuf_printf(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'\">\n<title>shakedown %s</title>\n<style>\n%s</style>"
        "</head><body>\n" SHK_PAGE_SKIP "<header class=\"banner %s\"><h1>shakedown %s</h1>\n<p>",
        title, shk_page_css, html_css(shk_history_text(document, "verdict")), title);
    if (nodes >= 0)
        shk_strbuf_printf(out, "%lld node%s", nodes, nodes == 1 ? "" : "s");
    for (size_t i = 0; counts && i < sizeof verdicts / sizeof *verdicts; i++)
        shk_strbuf_printf(out, ", %lld %s",
                          (long long)json_integer_value(json_object_get(counts, verdicts[i])),
                          verdicts[i]);
    shk_strbuf_puts(out, ", as of ");
    html_put(out, shk_history_text(document, "until"), 20);
    shk_strbuf_puts(out, "</p></header>\n" SHK_PAGE_MAIN);
}

void shk_history_html(const json_t *document, struct shk_strbuf *out)
{
    bool fleet = strcmp(shk_history_text(document, "schema"), "shakedown.fleet/1") == 0;
    const json_t *trend;
    size_t i;
    html_begin(out, fleet ? "fleet" : "history", document);
    if (fleet) {
        html_drain(out, json_object_get(document, "drain"));
        html_causes(out, json_object_get(document, "causes"));
        html_worst(out, json_object_get(document, "worst"));
        html_groups(out, json_object_get(document, "groups"));
        html_rows(out, document, json_object_get(document, "trend"));
    } else if (json_object_get(document, "rows")) {
        html_rows(out, document, json_object_get(document, "rows"));
    }
    json_array_foreach(json_object_get(document, "trends"), i, trend) html_trend(out, trend);
    shk_strbuf_puts(out, "</main>\n</body></html>\n");
}
