#include "reports/html/html_runs.h"
#include "core/text/nodefold.h"
#include "reports/html/page.h"
#include "reports/html/plot.h"
#include "reports/model/runs_table.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of one plot, and runs whose tables are shown: more cannot be told apart. */
enum { RUNS_MIB = 1 << 20, RUNS_LINES = 12, RUNS_TABLES = 32, RUNS_CLIP = 2000 };

static void runs_text(struct shk_strbuf *out, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, text ? text : "", RUNS_CLIP, 0);
    shk_escape_html(out, shk_strbuf_text(&cut));
    out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static const char *runs_bytes(double bytes, char *buf, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < sizeof units / sizeof *units; u++)
        bytes /= 1024;
    snprintf(buf, size, "%g %s", bytes, units[u]);
    return buf;
}

static double runs_number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Points (bytes, member) of rows; those of a second data type, which start again at small sizes,
 * are left to the table. */
static struct shk_plot_point *runs_points(json_t *sizes, const char *member, size_t *count_p)
{
    json_t *row;
    struct shk_plot_point *points = calloc(json_array_size(sizes) + 1, sizeof *points);
    size_t i, n = 0;
    json_array_foreach(sizes, i, row)
    {
        double bytes = runs_number(row, "bytes");
        if (!points || (n && bytes <= points[n - 1].x))
            break;
        points[n++] = (struct shk_plot_point){bytes, runs_number(row, member)};
    }
    *count_p = n;
    return points;
}

struct runs_lines {
    struct shk_plot_line line[RUNS_LINES];
    char *labels[RUNS_LINES];
    size_t count;
};

static void runs_line(struct runs_lines *lines, struct shk_strbuf *out, json_t *sizes,
                      const char *member, char *label, unsigned color)
{
    size_t n = 0;
    struct shk_plot_point *points = runs_points(sizes, member, &n);
    out->failed |= !points || !label;
    if (!points || !label || !n || lines->count == RUNS_LINES) {
        free(points);
        free(label);
        return;
    }
    lines->labels[lines->count] = label;
    lines->line[lines->count++] =
        (struct shk_plot_line){.label = label,
                               .points = points,
                               .count = n,
                               .expected = strcmp(member, "bandwidth") == 0,
                               .color = color};
}

/* What copies in both directions between two GPUs of the node reached, as a level line. */
static void runs_level(struct runs_lines *lines, struct shk_strbuf *out, const struct shk_run *run,
                       const char *where, unsigned color)
{
    double both = runs_number(shk_run_object(run, "copy"), "both_ways_gbs"), most = 0;
    const json_t *sizes = shk_run_array(run, "sizes");
    json_t *row;
    size_t i;
    json_array_foreach(sizes, i, row) most = fmax(most, runs_number(row, "bytes"));
    if (!(both > 0) || !(most > RUNS_MIB))
        return;
    json_t *level = json_pack("[{s:f,s:f},{s:f,s:f}]", "bytes", (double)RUNS_MIB, "bandwidth", both,
                              "bytes", most, "bandwidth", both);
    runs_line(lines, out, level, "bandwidth",
              shk_strf("roof: copies both ways between two GPUs%s", where), color);
    json_decref(level);
}

/* One colour for each transport, in every plot. */
static unsigned runs_color(const struct shk_model *model, size_t run)
{
    unsigned color = 0;
    for (size_t i = 0; i < run; i++) {
        size_t k = 0;
        if (strcmp(model->runs[i].transport, model->runs[run].transport) == 0)
            return runs_color(model, i);
        while (k < i && strcmp(model->runs[k].transport, model->runs[i].transport) != 0)
            k++;
        color += k == i;
    }
    return color;
}

/* Has a line so many points from there on that it is one? */
static bool runs_reach(const struct runs_lines *lines, double least)
{
    for (size_t i = 0; i < lines->count; i++) {
        size_t points = 0;
        for (size_t k = 0; k < lines->line[i].count; k++)
            points += lines->line[i].points[k].x >= least;
        if (points > 1)
            return true;
    }
    return false;
}

static void runs_plot(struct shk_strbuf *out, const struct shk_model *model, const char *title,
                      const char *member, const char *unit)
{
    struct runs_lines lines = {.count = 0};
    for (size_t i = 0; i < model->runs_count && lines.count < RUNS_LINES; i++) {
        const struct shk_run *run = &model->runs[i];
        json_t *roof = json_object_get(shk_run_object(run, "roofline"), "sizes");
        char *where = model->report->nodes > 1 ? shk_strf(" on %s", run->node) : strdup("");
        out->failed |= !where;
        runs_line(&lines, out, shk_run_array(run, "sizes"), member,
                  shk_strf("%s%s", run->transport, where ? where : ""), runs_color(model, i));
        if (roof && strcmp(member, "busbw") == 0)
            runs_line(&lines, out, roof, "bandwidth",
                      shk_strf("expected: plain %s, %s%s",
                               strcmp(run->transport, "shm") == 0 ? "copies" : "puts",
                               run->transport, where ? where : ""),
                      runs_color(model, i));
        else if (strcmp(member, "busbw") == 0)
            runs_level(&lines, out, run, where ? where : "", runs_color(model, i));
        free(where);
    }
    struct shk_plot plot = {.title = title,
                            .x_label = "message size",
                            .y_label = unit,
                            .x_text = runs_bytes,
                            .lines = lines.line,
                            .count = lines.count};
    if (strcmp(member, "busbw") == 0) { /* small messages say nothing about the bandwidth */
        plot.linear = true;
        plot.least = runs_reach(&lines, RUNS_MIB) ? RUNS_MIB : 0;
    }
    shk_plot_svg(out, &plot);
    for (size_t i = 0; i < lines.count; i++) {
        free((void *)lines.line[i].points);
        free(lines.labels[i]);
    }
}

/* Two runs that were not run for the same reason. */
static bool runs_idle_alike(const struct shk_run *a, const struct shk_run *b)
{
    const char *x = shk_run_text(a, "reason"), *y = shk_run_text(b, "reason");
    return strcmp(a->status, "na") == 0 && strcmp(b->status, "na") == 0 &&
           strcmp(a->transport, b->transport) == 0 && strcmp(x ? x : "", y ? y : "") == 0;
}

/* One line for all nodes; the first that was not run speaks. */
static void runs_where(struct shk_strbuf *title, const struct shk_model *model, size_t at)
{
    const char **names = calloc(model->runs_count, sizeof *names);
    size_t count = 0;
    for (size_t i = at; names && i < model->runs_count; i++)
        if (i == at || runs_idle_alike(&model->runs[at], &model->runs[i]))
            names[count++] = model->runs[i].node;
    shk_strbuf_puts(title, ", on ");
    title->failed |= !names;
    if (names)
        shk_nodefold(title, names, count);
    free(names);
}

static void runs_one(struct shk_strbuf *out, const struct shk_model *model, size_t at)
{
    const struct shk_run *run = &model->runs[at];
    for (size_t i = 0; i < at; i++)
        if (runs_idle_alike(&model->runs[i], run))
            return;
    struct shk_strbuf title = SHK_STRBUF_INIT, summary = SHK_STRBUF_INIT;
    const char *library = shk_run_text(run, "library"), *version = shk_run_text(run, "version");
    const char *reason = shk_run_text(run, "reason");
    size_t i;
    json_t *line;
    shk_run_title(&title, run);
    runs_where(&title, model, at);
    shk_run_summary(&summary, run);
    shk_strbuf_puts(out, "<details class=\"run\"><summary>");
    runs_text(out, shk_strbuf_text(&title));
    if (!shk_run_ok(run) && strcmp(run->status, "na") != 0) {
        shk_strbuf_puts(out, "<span class=\"fail\">: ");
        runs_text(out, run->status);
        shk_strbuf_puts(out, reason ? ": " : "");
        runs_text(out, reason);
        shk_strbuf_puts(out, "</span>");
    } else if (summary.len || reason) {
        shk_strbuf_puts(out, "<span>: ");
        runs_text(out, summary.len ? shk_strbuf_text(&summary) : reason);
        shk_strbuf_puts(out, "</span>");
    }
    shk_strbuf_puts(out, "</summary>\n");
    if (library) {
        shk_strbuf_puts(out, "<p class=\"dim\">library <code>");
        runs_text(out, library);
        shk_strbuf_puts(out, version ? "</code>, version " : "</code>");
        runs_text(out, version);
        shk_strbuf_puts(out, "</p>\n");
    }
    json_t *evidence = shk_run_array(run, "evidence");
    json_array_foreach(evidence, i, line)
    {
        shk_strbuf_puts(out, "<p class=\"dim\">proof: ");
        runs_text(out, json_string_value(line));
        shk_strbuf_puts(out, "</p>\n");
    }
    struct shk_table *table = shk_run_table(run, 0);
    if (!table)
        out->failed = true;
    else if (shk_table_rows(table)) {
        shk_strbuf_puts(out, SHK_PAGE_SCROLL("all sizes"));
        shk_table_html(table, "sizes", RUNS_CLIP, out);
        shk_strbuf_puts(out, "</div>\n");
    }
    shk_strbuf_puts(out, "</details>\n");
    shk_table_destroy(table);
    out->failed |= title.failed || summary.failed;
    shk_strbuf_free(&title);
    shk_strbuf_free(&summary);
}

static void runs_transports(struct shk_strbuf *out, const struct shk_model *model)
{
    struct shk_runs_table runs;
    if (shk_runs_table(&runs, model)) {
        out->failed = true;
        return;
    }
    if (runs.table && shk_table_rows(runs.table)) {
        shk_strbuf_puts(out, SHK_PAGE_SCROLL("transports"));
        shk_table_html(runs.table, "sizes", RUNS_CLIP, out);
        shk_strbuf_puts(out, "</div>\n");
    }
    shk_runs_table_free(&runs);
}

void shk_html_runs(struct shk_strbuf *out, const struct shk_model *model)
{
    shk_strbuf_puts(out, "<section><h2>Collectives</h2>\n");
    if (!model->runs_count)
        shk_strbuf_puts(out, "<p class=\"dim\">None was run.</p>\n");
    runs_transports(out, model);
    shk_strbuf_puts(out, "<div class=\"plots\">\n");
    runs_plot(out, model, "Bus bandwidth", "busbw", "GB/s");
    runs_plot(out, model, "Time of one all-reduce", "time_us", "us");
    shk_strbuf_puts(out, "</div>\n");
    for (size_t i = 0; i < model->runs_count && i < RUNS_TABLES; i++)
        runs_one(out, model, i);
    if (model->runs_count > RUNS_TABLES)
        shk_strbuf_printf(out, "<p class=\"dim\">%zu more runs are in the JSON report.</p>\n",
                          model->runs_count - RUNS_TABLES);
    shk_strbuf_puts(out, "</section>\n");
}
