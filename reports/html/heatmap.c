#include "reports/html/heatmap.h"
#include "core/text/nodefold.h"
#include "reports/html/page.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Wider maps do not fit a screen; the matrix has every row. */
enum { HEATMAP_SETTINGS = 60, HEATMAP_ROWS = 400 };

/* One cell per setting for each node: a verdict, or HEAT_EMPTY when no row speaks of it. */
enum { HEAT_EMPTY = 0xff };

struct heatmap {
    const struct shk_model *model;
    size_t nodes; /* entries; one may stand for many nodes of one kind */
    size_t names; /* nodes of all entries */
    const struct shk_finding *settings[HEATMAP_SETTINGS]; /* first row of each column */
    size_t count, left_out, same;
    json_t *index;        /* node name -> number */
    unsigned char *cells; /* nodes x HEATMAP_SETTINGS */
    size_t *order;        /* nodes, those with equal cells next to each other */
};

static bool heat_same_setting(const struct shk_finding *a, const struct shk_finding *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->setting, b->setting) == 0 &&
           strcmp(a->family, b->family) == 0;
}

static size_t heat_column(const struct heatmap *h, const struct shk_finding *row)
{
    size_t c = 0;
    while (c < h->count && !heat_same_setting(h->settings[c], row))
        c++;
    return c;
}

static bool heat_needs_attention(const struct shk_finding *row)
{
    return row->verdict == SHK_FAIL || row->verdict == SHK_WARN ||
           (row->verdict == SHK_UNKNOWN && (row->required || !shk_model_is_gap(row)));
}

static void heat_columns(struct heatmap *h)
{
    const struct shk_findings *list = h->model->report->findings;
    for (size_t i = 0; i < shk_findings_count(list); i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        if (!heat_needs_attention(row) || heat_column(h, row) < h->count)
            continue;
        if (h->count < HEATMAP_SETTINGS)
            h->settings[h->count++] = row;
        else
            h->left_out++;
    }
    for (size_t i = 0; i < shk_findings_count(list); i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        h->same += !heat_needs_attention(row) && heat_column(h, row) == h->count;
    }
}

/* A cell shows the worst verdict of its rows. */
static void heat_mark(struct heatmap *h, size_t node, size_t column, enum shk_verdict verdict)
{
    static const int badness[SHK_VERDICT_COUNT] = {
        [SHK_NA] = 0,      [SHK_PASS] = 1, [SHK_NOTE] = 1,
        [SHK_UNKNOWN] = 2, [SHK_WARN] = 3, [SHK_FAIL] = 4};
    unsigned char *cell = &h->cells[node * HEATMAP_SETTINGS + column];
    if (*cell == HEAT_EMPTY || badness[verdict] > badness[*cell])
        *cell = (unsigned char)verdict;
}

static void heat_cells(struct heatmap *h)
{
    const struct shk_findings *list = h->model->report->findings;
    for (size_t i = 0; i < shk_findings_count(list); i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        size_t column = heat_column(h, row);
        if (column == h->count)
            continue;
        for (size_t n = 0; !row->nodes && n < h->nodes; n++)
            heat_mark(h, n, column, row->verdict);
        for (char **node = row->nodes; node && *node; node++) {
            json_t *at = json_object_get(h->index, *node);
            if (at)
                heat_mark(h, (size_t)json_integer_value(at), column, row->verdict);
        }
    }
}

/* Nodes with the most failures first, equal ones side by side. */
static int heat_cmp(const void *a, const void *b, void *arg)
{
    const struct heatmap *h = arg;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const unsigned char *cx = &h->cells[x * HEATMAP_SETTINGS];
    const unsigned char *cy = &h->cells[y * HEATMAP_SETTINGS];
    static const enum shk_verdict worst[] = {SHK_FAIL, SHK_WARN, SHK_UNKNOWN};
    for (size_t w = 0; w < sizeof worst / sizeof *worst; w++) {
        int nx = 0, ny = 0;
        for (size_t c = 0; c < h->count; c++) {
            nx += cx[c] == worst[w];
            ny += cy[c] == worst[w];
        }
        if (nx != ny)
            return ny - nx;
    }
    int d = memcmp(cx, cy, HEATMAP_SETTINGS);
    return d ? d : x < y ? -1 : x > y;
}

static void heat_name(struct shk_strbuf *out, const struct shk_finding *setting)
{
    struct shk_strbuf name = SHK_STRBUF_INIT;
    shk_text_clip(&name, setting->setting, 48, 0);
    shk_escape_html(out, shk_strbuf_text(&name));
    out->failed |= name.failed;
    shk_strbuf_free(&name);
}

static void heat_head(const struct heatmap *h, struct shk_strbuf *out)
{
    shk_strbuf_puts(
        out,
        SHK_PAGE_SCROLL(
            "nodes and settings") "<table class=\"heat\"><thead><tr><th scope=\"col\">nodes</th>");
    for (size_t c = 0; c < h->count; c++) {
        shk_strbuf_puts(out, "<th scope=\"col\" class=\"tilt\"><span>");
        heat_name(out, h->settings[c]);
        shk_strbuf_puts(out, "</span></th>");
    }
    shk_strbuf_puts(out, "</tr></thead><tbody>\n");
}

static void heat_count(const char *name, void *arg)
{
    (void)name;
    ++*(size_t *)arg;
}

static void heat_row(const struct heatmap *h, size_t first, size_t count, struct shk_strbuf *out)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    const char **list = calloc(count, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        list[i] = h->model->nodes[h->order[first + i]];
    if (list)
        shk_nodefold(&names, list, count);
    else
        out->failed = true;
    size_t nodes = 0;
    for (size_t i = 0; list && i < count; i++) {
        size_t named = 0;
        (void)shk_nodefold_each(list[i], SHK_NODEFOLD_MAX, heat_count, &named);
        nodes += named ? named : 1;
    }
    shk_strbuf_printf(out, "<tr><th scope=\"row\">%zu node%s: ", nodes, nodes == 1 ? "" : "s");
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, shk_strbuf_text(&names), 120, 0);
    shk_escape_html(out, shk_strbuf_text(&cut));
    shk_strbuf_puts(out, "</th>");
    const unsigned char *cells = &h->cells[h->order[first] * HEATMAP_SETTINGS];
    for (size_t c = 0; c < h->count; c++) {
        const char *word =
            cells[c] == HEAT_EMPTY ? "" : shk_verdict_name((enum shk_verdict)cells[c]);
        shk_strbuf_printf(out, "<td class=\"%s\" title=\"", word);
        heat_name(out, h->settings[c]);
        shk_strbuf_printf(out, ": %s\">%s</td>", *word ? word : "not judged",
                          cells[c] == SHK_FAIL      ? "\xE2\x9C\x97"
                          : cells[c] == SHK_WARN    ? "!"
                          : cells[c] == SHK_UNKNOWN ? "?"
                                                    : "");
    }
    shk_strbuf_puts(out, "</tr>\n");
    out->failed |= names.failed || cut.failed;
    shk_strbuf_free(&names);
    shk_strbuf_free(&cut);
    free(list);
}

static void heat_rows(const struct heatmap *h, struct shk_strbuf *out)
{
    size_t rows = 0;
    for (size_t i = 0, end; i < h->nodes; i = end) {
        const unsigned char *cells = &h->cells[h->order[i] * HEATMAP_SETTINGS];
        for (end = i + 1; end < h->nodes; end++)
            if (memcmp(cells, &h->cells[h->order[end] * HEATMAP_SETTINGS], HEATMAP_SETTINGS) != 0)
                break;
        if (rows++ < HEATMAP_ROWS)
            heat_row(h, i, end - i, out);
    }
    shk_strbuf_puts(out, "</tbody></table></div>\n");
    if (rows > HEATMAP_ROWS)
        shk_strbuf_printf(out,
                          "<p class=\"dim\">%zu more groups of nodes are in the JSON report."
                          "</p>\n",
                          rows - HEATMAP_ROWS);
}

static bool heat_prepare(struct heatmap *h)
{
    h->index = json_object();
    h->cells = malloc(h->nodes * HEATMAP_SETTINGS);
    h->order = calloc(h->nodes, sizeof *h->order);
    if (!h->index || !h->cells || !h->order)
        return false;
    memset(h->cells, HEAT_EMPTY, h->nodes * HEATMAP_SETTINGS);
    for (size_t n = 0; n < h->nodes; n++) {
        h->order[n] = n;
        if (json_object_set_new_nocheck(h->index, h->model->nodes[n], json_integer((json_int_t)n)))
            return false;
    }
    heat_columns(h);
    heat_cells(h);
    qsort_r(h->order, h->nodes, sizeof *h->order, heat_cmp, h);
    return true;
}

void shk_heatmap_html(struct shk_strbuf *out, const struct shk_model *model)
{
    struct heatmap h = {.model = model, .nodes = model->report->nodes};
    for (size_t n = 0; n < h.nodes; n++) {
        size_t named = 0;
        (void)shk_nodefold_each(model->nodes[n], SHK_NODEFOLD_MAX, heat_count, &named);
        h.names += named ? named : 1;
    }
    if (h.nodes < 2 || !model->report->findings)
        return;
    if (!heat_prepare(&h)) {
        out->failed = true;
    } else {
        shk_strbuf_puts(out, "<section><h2>Nodes</h2>\n");
        if (h.count) {
            heat_head(&h, out);
            heat_rows(&h, out);
        }
        shk_strbuf_printf(out,
                          "<p class=\"dim\">%zu nodes; %zu settings are the same and without "
                          "complaint on all of them",
                          h.names, h.same);
        if (h.left_out)
            shk_strbuf_printf(out, "; %zu more settings with complaints are in the matrix",
                              h.left_out);
        shk_strbuf_puts(out, ".</p></section>\n");
    }
    json_decref(h.index);
    free(h.cells);
    free(h.order);
}
