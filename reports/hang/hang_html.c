/* One page that needs nothing else, with the merged stacks as a picture. */
#include "reports/formats.h"
#include "reports/hang/hang_private.h"
#include "reports/html/page.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Boxes of the picture; more are in the list of stacks below it. Sizes in pixels. */
enum {
    HTML_BOXES = 160,
    HTML_DEPTH = 24,
    HTML_BOX = 250,
    HTML_LINE = 14,
    HTML_GAP = 12,
    HTML_RAIL = 36,
    HTML_CLIP = 38, /* columns of a line that fit into a box */
    HTML_TEXT = 600
};

struct html_tree {
    struct shk_strbuf *boxes; /* drawn after the lines between them */
    struct shk_strbuf *lines;
    const json_t *named;
    size_t count;
    double width;
};

static void html_put(struct shk_strbuf *out, const char *text, unsigned most)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, text, most, 0);
    shk_escape_html(out, shk_strbuf_text(&cut));
    out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

/* Is every rank of the branch one that is named? */
static bool html_is_named(const json_t *named, const json_t *ranks)
{
    size_t i, k;
    json_t *rank, *one;
    json_array_foreach(ranks, i, rank)
    {
        bool found = false;
        json_array_foreach(named, k, one) found |= json_equal(json_object_get(one, "rank"), rank);
        if (!found)
            return false;
    }
    return json_array_size(ranks) > 0;
}

static void html_box_line(struct shk_strbuf *out, double x, double y, const char *class,
                          const char *text)
{
    shk_strbuf_printf(out, "<text x=\"%.0f\" y=\"%.0f\"%s>", x + 6, y, class);
    html_put(out, text, HTML_CLIP);
    shk_strbuf_puts(out, "</text>");
}

/* The first and the last function of a branch, and how many are between; returns the height. */
static double html_box(struct html_tree *t, const json_t *branch, double x, double y)
{
    const json_t *frames = json_object_get(branch, "frames"),
                 *ranks = json_object_get(branch, "ranks");
    size_t n = json_array_size(frames), lines = 1 + (n > 3 ? 3 : n);
    double height = (double)lines * HTML_LINE + 8;
    struct shk_strbuf who = SHK_STRBUF_INIT, all = SHK_STRBUF_INIT;
    const char *first = json_string_value(json_array_get(frames, 0)),
               *last = json_string_value(json_array_get(frames, n ? n - 1 : 0));
    char between[32];
    hang_ranks(&who, ranks, NULL);
    hang_frames(&all, frames);
    shk_strbuf_printf(t->boxes, "<g><title>");
    html_put(t->boxes, shk_strbuf_text(&all), HTML_TEXT);
    shk_strbuf_printf(t->boxes,
                      "</title><rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" "
                      "height=\"%.0f\" rx=\"4\"/>",
                      html_is_named(t->named, ranks) ? "broken" : "numa", x, y, HTML_BOX, height);
    html_box_line(t->boxes, x, y += HTML_LINE + 1, " class=\"small\"", shk_strbuf_text(&who));
    if (n)
        html_box_line(t->boxes, x, y += HTML_LINE, "", first ? first : "?");
    snprintf(between, sizeof between, "\xe2\x80\xa6 %zu more", n - 2);
    if (n > 3)
        html_box_line(t->boxes, x, y += HTML_LINE, " class=\"small\"", between);
    else if (n == 3)
        html_box_line(t->boxes, x, y += HTML_LINE, "",
                      json_string_value(json_array_get(frames, 1))
                          ? json_string_value(json_array_get(frames, 1))
                          : "?");
    if (n > 1)
        html_box_line(t->boxes, x, y += HTML_LINE, "", last ? last : "?");
    shk_strbuf_puts(t->boxes, "</g>\n");
    t->boxes->failed |= who.failed || all.failed;
    shk_strbuf_free(&who);
    shk_strbuf_free(&all);
    return height;
}

/* Draws the branches below each other and their children to the right of each; returns the first
 * free y. */
static double html_branches(struct html_tree *t, const json_t *branches, unsigned depth, double y,
                            double from)
{
    size_t i;
    json_t *branch;
    double x = 1 + (double)depth * (HTML_BOX + HTML_RAIL);
    json_array_foreach(branches, i, branch)
    {
        if (depth >= HTML_DEPTH || ++t->count > HTML_BOXES)
            return y;
        double height = html_box(t, branch, x, y), middle = y + height / 2;
        if (depth)
            shk_strbuf_printf(t->lines, "<path d=\"M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0f\"/>\n",
                              x - HTML_RAIL, from, x - HTML_RAIL / 2.0, from, x - HTML_RAIL / 2.0,
                              middle, x, middle);
        if (x + HTML_BOX + 1 > t->width)
            t->width = x + HTML_BOX + 1;
        double below = html_branches(t, json_object_get(branch, "children"), depth + 1, y, middle);
        y = y + height + HTML_GAP > below ? y + height + HTML_GAP : below;
    }
    return y;
}

static void html_picture(struct shk_strbuf *out, const json_t *judgement)
{
    struct shk_strbuf boxes = SHK_STRBUF_INIT, lines = SHK_STRBUF_INIT;
    struct html_tree t = {
        .boxes = &boxes, .lines = &lines, .named = json_object_get(judgement, "named")};
    const json_t *tree = json_object_get(judgement, "tree");
    if (!json_array_size(tree))
        return;
    double height = html_branches(&t, tree, 0, 1, 0);
    shk_strbuf_printf(out,
                      "<section><h2>Stacks, merged</h2>" SHK_PAGE_SCROLL(
                          "stacks") "<svg class=\"topology\" role=\"img\" "
                                    "aria-label=\"stacks of the ranks, merged\" width=\"%.0f\" "
                                    "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
                      t.width, height, t.width, height);
    shk_strbuf_puts(out, shk_strbuf_text(&lines));
    shk_strbuf_puts(out, shk_strbuf_text(&boxes));
    shk_strbuf_puts(out, "</svg></div>\n");
    if (t.count > HTML_BOXES)
        shk_strbuf_puts(out, "<p class=\"dim\">not all branches are drawn</p>");
    struct shk_strbuf text = SHK_STRBUF_INIT;
    hang_tree_lines(&text, tree);
    shk_strbuf_puts(out, "<details><summary>as text</summary><pre>");
    shk_escape_html(out, shk_strbuf_text(&text));
    shk_strbuf_puts(out, "</pre></details></section>\n");
    out->failed |= boxes.failed || lines.failed || text.failed;
    shk_strbuf_free(&boxes);
    shk_strbuf_free(&lines);
    shk_strbuf_free(&text);
}

static void html_named(struct shk_strbuf *out, const json_t *named)
{
    size_t i;
    json_t *one;
    json_array_foreach(named, i, one)
    {
        shk_strbuf_puts(out, "<div class=\"cause\"><h3>");
        html_put(out, hang_word(one, "text"), HTML_TEXT);
        shk_strbuf_puts(out, "</h3><p class=\"dim\">");
        html_put(out, hang_word(one, "confidence"), HTML_TEXT);
        shk_strbuf_puts(out, "</p>");
        if (*hang_word(one, "advice")) {
            shk_strbuf_puts(out, "<p>");
            html_put(out, hang_word(one, "advice"), HTML_TEXT);
            shk_strbuf_puts(out, "</p>");
        }
        shk_strbuf_puts(out, "</div>\n");
    }
}

static void html_groups(struct shk_strbuf *out, const json_t *groups)
{
    size_t i;
    json_t *group;
    shk_strbuf_puts(out, "<section><h2>Where the ranks are</h2>" SHK_PAGE_SCROLL(
                             "table") "<table><thead><tr><th>ranks</th><th>where</th><th>moves"
                                      "</th></tr></thead><tbody>\n");
    json_array_foreach(groups, i, group)
    {
        struct shk_strbuf who = SHK_STRBUF_INIT;
        hang_ranks(&who, json_object_get(group, "ranks"), json_object_get(group, "processes"));
        const char *still = hang_word(group, "still");
        shk_strbuf_puts(out, "<tr><td>");
        html_put(out, shk_strbuf_text(&who), HTML_TEXT);
        shk_strbuf_puts(out, "</td><td>");
        html_put(out, hang_word(group, "text"), HTML_TEXT);
        shk_strbuf_printf(out, "</td><td>%s</td></tr>\n",
                          strcmp(still, "no") == 0    ? "yes"
                          : strcmp(still, "yes") == 0 ? "no"
                                                      : "not seen");
        out->failed |= who.failed;
        shk_strbuf_free(&who);
    }
    shk_strbuf_puts(out, "</tbody></table></div></section>\n");
}

/* `lines` are stolen: strings, or {text, fix, verdict}. */
static void html_lines(struct shk_strbuf *out, const char *title, json_t *lines)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        const char *text = json_string_value(line), *fix = hang_word(line, "fix"),
                   *key = hang_word(line, "key");
        bool below = strcmp(key, "cause") == 0 || strcmp(key, "row") == 0;
        shk_strbuf_printf(out, i ? "<li>" : "<section><h2>%s</h2><ul>\n<li>", title);
        shk_strbuf_puts(out, below ? "<span class=\"dim\">" : "<span>");
        html_put(out, text ? text : hang_word(line, "text"), HTML_TEXT);
        shk_strbuf_puts(out, "</span>");
        if (*fix) {
            shk_strbuf_puts(out, "<div class=\"note fix\"><code>");
            html_put(out, fix, HTML_TEXT);
            shk_strbuf_puts(out, "</code></div>");
        }
        shk_strbuf_puts(out, "</li>\n");
    }
    if (json_array_size(lines))
        shk_strbuf_puts(out, "</ul></section>\n");
    json_decref(lines);
}

static const char *html_class(const char *outcome)
{
    if (strcmp(outcome, "named") == 0)
        return "fail";
    return strcmp(outcome, "progress") == 0 ? "pass" : "unknown";
}

int hang_html(const struct shk_hang_report *report, const struct shk_report_options *options,
              FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    const json_t *judgement = report->judgement;
    (void)options;
    shk_strbuf_printf(&text,
                      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "style-src 'unsafe-inline'\">\n<title>shakedown hang</title>\n<style>\n%s"
                      "</style></head><body>\n" SHK_PAGE_SKIP "<header class=\"banner %s\"><h1>",
                      shk_page_css, html_class(hang_word(judgement, "outcome")));
    html_put(&text, hang_word(judgement, "headline"), HTML_TEXT);
    shk_strbuf_puts(&text, "</h1>\n<p class=\"dim\">");
    html_put(&text, report->time, HTML_TEXT);
    shk_strbuf_puts(&text, "</p></header>\n" SHK_PAGE_MAIN);
    html_named(&text, json_object_get(judgement, "named"));
    html_lines(&text, hang_check_title, hang_check_lines(judgement));
    html_groups(&text, json_object_get(judgement, "groups"));
    html_picture(&text, judgement);
    html_lines(&text, hang_audit_title, hang_audit_lines(judgement));
    html_lines(&text, "Other witnesses", json_incref(json_object_get(judgement, "said")));
    html_lines(&text, "Not seen", json_incref(json_object_get(judgement, "unknown")));
    shk_strbuf_puts(&text, "</main>\n<footer class=\"dim\"><code>");
    html_put(&text, report->command, HTML_TEXT);
    shk_strbuf_puts(&text, "</code> shakedown ");
    html_put(&text, report->version, HTML_TEXT);
    shk_strbuf_puts(&text, "</footer>\n</body></html>\n");
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    return rc;
}
