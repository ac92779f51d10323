#include "reports/history/history.h"
#include "reports/text/escape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPARK_LEVELS = 8, SPARK_MOST = 200, SVG_WIDTH = 640, SVG_HEIGHT = 180, SVG_EDGE = 24 };

static double spark_value(const json_t *points, size_t i)
{
    return json_number_value(json_object_get(json_array_get(points, i), "value"));
}

static const char *spark_at(const json_t *object)
{
    return shk_history_text(object, "at");
}

static void spark_range(const json_t *points, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < json_array_size(points); i++) {
        *low = fmin(*low, spark_value(points, i));
        *high = fmax(*high, spark_value(points, i));
    }
}

/* Did anything change between the points a (not with it) and b? */
static bool spark_changed(const json_t *trend, size_t a, size_t b)
{
    const json_t *points = json_object_get(trend, "points"), *event;
    size_t i;
    json_array_foreach(json_object_get(trend, "events"), i, event)
    {
        if (strcmp(spark_at(event), a ? spark_at(json_array_get(points, a - 1)) : "") > 0 &&
            strcmp(spark_at(event), spark_at(json_array_get(points, b))) <= 0)
            return true;
    }
    return false;
}

void shk_sparkline(struct shk_strbuf *out, const json_t *trend, size_t width, bool unicode)
{
    static const char *const blocks[SPARK_LEVELS] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                                     "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char ascii[] = "_.-:=+*#";
    const json_t *points = json_object_get(trend, "points");
    size_t n = json_array_size(points);
    double low, high;
    char marks[SPARK_MOST + 1] = "";
    width = width > SPARK_MOST ? SPARK_MOST : width;
    width = n < width ? n : width;
    spark_range(points, &low, &high);
    for (size_t c = 0; c < width; c++) {
        size_t from = c * n / width, to = (c + 1) * n / width;
        double sum = 0;
        for (size_t i = from; i < to; i++)
            sum += spark_value(points, i);
        double part = high > low ? (sum / (double)(to - from) - low) / (high - low) : 0.5;
        int level = (int)fmin(SPARK_LEVELS - 1, fmax(0, part * SPARK_LEVELS));
        marks[c] = from && spark_changed(trend, from, to - 1) ? '^' : ' ';
        marks[c + 1] = '\0';
        if (unicode)
            shk_strbuf_puts(out, blocks[level]);
        else
            shk_strbuf_putc(out, ascii[level]);
    }
    size_t last = strlen(marks);
    while (last && marks[last - 1] == ' ')
        marks[--last] = '\0';
    if (last)
        shk_strbuf_printf(out, "\n%s", marks);
}

static void svg_text(struct shk_strbuf *out, double x, double y, const char *end, const char *text)
{
    shk_strbuf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, end);
    shk_escape_html(out, text);
    shk_strbuf_puts(out, "</text>");
}

/* Where a change is, among the points. */
static void svg_events(struct shk_strbuf *out, const json_t *trend, double step)
{
    const json_t *points = json_object_get(trend, "points"), *event;
    size_t i;
    json_array_foreach(json_object_get(trend, "events"), i, event)
    {
        size_t k = 0;
        while (k < json_array_size(points) &&
               strcmp(spark_at(json_array_get(points, k)), spark_at(event)) < 0)
            k++;
        double x = SVG_EDGE + step * (double)k;
        shk_strbuf_printf(out,
                          "<line class=\"grid\" stroke-dasharray=\"3 2\" x1=\"%.1f\" y1=\"%d\" "
                          "x2=\"%.1f\" y2=\"%d\"><title>",
                          x, SVG_EDGE, x, SVG_HEIGHT - SVG_EDGE);
        shk_escape_html(out, shk_history_text(event, "path"));
        shk_strbuf_puts(out, ": ");
        shk_escape_html(out, shk_history_text(event, "from"));
        shk_strbuf_puts(out, " \xE2\x86\x92 ");
        shk_escape_html(out, shk_history_text(event, "to"));
        shk_strbuf_puts(out, "</title></line>");
    }
}

void shk_trend_svg(struct shk_strbuf *out, const json_t *trend)
{
    const json_t *points = json_object_get(trend, "points");
    size_t n = json_array_size(points);
    double low, high, step = n > 1 ? (double)(SVG_WIDTH - 2 * SVG_EDGE) / (double)(n - 1) : 0;
    char text[48];
    if (!n)
        return;
    spark_range(points, &low, &high);
    double room = high > low ? (high - low) * 0.1 : fmax(fabs(high), 1) * 0.1;
    low -= room;
    high += room;
    shk_strbuf_printf(out, "<svg class=\"plot trend\" viewBox=\"0 0 %d %d\" role=\"img\">",
                      SVG_WIDTH, SVG_HEIGHT);
    svg_events(out, trend, step);
    shk_strbuf_puts(out, "<g class=\"line0\"><polyline points=\"");
    for (size_t i = 0; i < n; i++)
        shk_strbuf_printf(out, "%.1f,%.1f ", SVG_EDGE + step * (double)i,
                          SVG_HEIGHT - SVG_EDGE -
                              (spark_value(points, i) - low) / (high - low) *
                                  (SVG_HEIGHT - 2 * SVG_EDGE));
    shk_strbuf_puts(out, "\"/></g>");
    snprintf(text, sizeof text, "%.4g %.20s", high - room, shk_history_text(trend, "unit"));
    svg_text(out, 2, SVG_EDGE - 8, "", text);
    snprintf(text, sizeof text, "%.4g", low + room);
    svg_text(out, 2, SVG_HEIGHT - SVG_EDGE + 4, "", text);
    snprintf(text, sizeof text, "%.10s", spark_at(json_array_get(points, 0)));
    svg_text(out, SVG_EDGE, SVG_HEIGHT - 4, "", text);
    snprintf(text, sizeof text, "%.10s", spark_at(json_array_get(points, n - 1)));
    svg_text(out, SVG_WIDTH - SVG_EDGE, SVG_HEIGHT - 4, " text-anchor=\"end\"", text);
    shk_strbuf_puts(out, "</svg>\n");
}
