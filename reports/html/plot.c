#include "reports/html/plot.h"
#include "reports/text/escape.h"

#include <math.h>
#include <stdio.h>

enum {
    PLOT_WIDTH = 460,
    PLOT_HEIGHT = 260,
    PLOT_LEFT = 58,
    PLOT_RIGHT = 28, /* half of the last label */
    PLOT_TOP = 28,
    PLOT_BOTTOM = 44,
    PLOT_COLORS = 8,
    PLOT_TICKS = 8,
    PLOT_MARKS = 6, /* of sizes, whose names are wide */
    PLOT_STEPS = 5, /* of a linear axis */
    PLOT_ROW = 15,  /* of the legend */
    PLOT_KEY = 22
};

struct plot_frame {
    double x0, x1, y0, y1; /* decades (base 2 in x, 10 in y); of a linear axis the value */
    bool linear;
    double least;
};

static bool plot_is_drawable(const struct plot_frame *f, const struct shk_plot_point *p)
{
    return isfinite(p->x) && isfinite(p->y) && p->x > 0 && p->y > 0 && p->x >= f->least;
}

/* The least of 1, 2, 5, 10, 20 … that is no less than value. */
static double plot_round(double value)
{
    double ten = pow(10, floor(log10(value)));
    return value <= ten ? ten : value <= 2 * ten ? 2 * ten : value <= 5 * ten ? 5 * ten : 10 * ten;
}

static bool plot_measure(const struct shk_plot *plot, struct plot_frame *f)
{
    bool any = false;
    for (size_t l = 0; l < plot->count; l++) {
        for (size_t i = 0; i < plot->lines[l].count; i++) {
            const struct shk_plot_point *p = &plot->lines[l].points[i];
            if (!plot_is_drawable(f, p))
                continue;
            double x = log2(p->x), y = f->linear ? p->y : log10(p->y);
            f->x0 = any ? fmin(f->x0, x) : x;
            f->x1 = any ? fmax(f->x1, x) : x;
            f->y0 = any ? fmin(f->y0, y) : y;
            f->y1 = any ? fmax(f->y1, y) : y;
            any = true;
        }
    }
    f->x0 = floor(f->x0);
    f->x1 = fmax(ceil(f->x1), f->x0 + 1);
    f->y0 = f->linear ? 0 : floor(f->y0);
    f->y1 = f->linear ? any ? plot_round(f->y1 / PLOT_STEPS) * PLOT_STEPS : 1
                      : fmax(ceil(f->y1), f->y0 + 1);
    return any;
}

static double plot_x(const struct plot_frame *f, double x)
{
    return PLOT_LEFT + (log2(x) - f->x0) / (f->x1 - f->x0) * (PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT);
}

static double plot_y(const struct plot_frame *f, double y)
{
    return PLOT_HEIGHT - PLOT_BOTTOM -
           ((f->linear ? y : log10(y)) - f->y0) / (f->y1 - f->y0) *
               (PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM);
}

static void plot_text(struct shk_strbuf *out, double x, double y, const char *attributes,
                      const char *text)
{
    shk_strbuf_printf(out, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    shk_escape_html(out, text);
    shk_strbuf_puts(out, "</text>");
}

static void plot_axes(struct shk_strbuf *out, const struct shk_plot *plot,
                      const struct plot_frame *f)
{
    double step = fmax(1, ceil((f->x1 - f->x0) / PLOT_MARKS));
    char text[32];
    for (double d = f->x0; d <= f->x1; d += step) {
        double x = plot_x(f, exp2(d));
        shk_strbuf_printf(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>",
                          x, PLOT_TOP, x, PLOT_HEIGHT - PLOT_BOTTOM);
        plot_text(out, x, PLOT_HEIGHT - PLOT_BOTTOM + 14, " text-anchor=\"middle\"",
                  plot->x_text(exp2(d), text, sizeof text));
    }
    step = f->linear ? f->y1 / PLOT_STEPS : fmax(1, ceil((f->y1 - f->y0) / PLOT_TICKS));
    for (double d = f->y0; d <= f->y1 + step / 1e6; d += step) {
        double value = f->linear ? d : pow(10, d), y = plot_y(f, value);
        shk_strbuf_printf(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>",
                          PLOT_LEFT, y, PLOT_WIDTH - PLOT_RIGHT, y);
        snprintf(text, sizeof text, "%g", value);
        plot_text(out, PLOT_LEFT - 6, y + 4, " text-anchor=\"end\"", text);
    }
    plot_text(out, PLOT_LEFT, 16, " class=\"title\"", plot->title);
    plot_text(out, PLOT_WIDTH - PLOT_RIGHT, 16, " text-anchor=\"end\"", plot->y_label);
    plot_text(out, PLOT_WIDTH - PLOT_RIGHT, PLOT_HEIGHT - 12, " text-anchor=\"end\"",
              plot->x_label);
}

static void plot_line(struct shk_strbuf *out, const struct shk_plot_line *line,
                      const struct plot_frame *f, unsigned color)
{
    shk_strbuf_printf(out, "<g class=\"line%u%s\"><title>", color,
                      line->expected ? " expected" : "");
    shk_escape_html(out, line->label);
    shk_strbuf_puts(out, "</title><polyline points=\"");
    for (size_t i = 0; i < line->count; i++)
        if (plot_is_drawable(f, &line->points[i]))
            shk_strbuf_printf(out, "%.1f,%.1f ", plot_x(f, line->points[i].x),
                              plot_y(f, line->points[i].y));
    shk_strbuf_puts(out, "\"/>");
    for (size_t i = 0; i < line->count && !line->expected; i++)
        if (plot_is_drawable(f, &line->points[i]))
            shk_strbuf_printf(
                out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%g</title></circle>",
                plot_x(f, line->points[i].x), plot_y(f, line->points[i].y), line->points[i].y);
    shk_strbuf_puts(out, "</g>");
}

/* Below the axes, where no line passes: a row for each. */
static void plot_legend(struct shk_strbuf *out, const struct shk_plot *plot, size_t at)
{
    const struct shk_plot_line *line = &plot->lines[at];
    double y = PLOT_HEIGHT + PLOT_ROW * (double)(at + 1) - 4;
    shk_strbuf_printf(out, "<g class=\"line%u%s\">", line->color % PLOT_COLORS,
                      line->expected ? " expected" : "");
    shk_strbuf_printf(out, "<polyline points=\"%d,%.1f %d,%.1f\"/>", PLOT_LEFT, y - 4,
                      PLOT_LEFT + PLOT_KEY, y - 4);
    if (!line->expected)
        shk_strbuf_printf(out, "<circle cx=\"%d\" cy=\"%.1f\" r=\"3\"/>", PLOT_LEFT + PLOT_KEY / 2,
                          y - 4);
    shk_strbuf_puts(out, "</g>");
    plot_text(out, PLOT_LEFT + PLOT_KEY + 6, y, "", line->label);
}

void shk_plot_svg(struct shk_strbuf *out, const struct shk_plot *plot)
{
    struct plot_frame frame = {.linear = plot->linear, .least = plot->least};
    if (!plot_measure(plot, &frame))
        return;
    shk_strbuf_printf(out, "<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
                      PLOT_WIDTH,
                      PLOT_HEIGHT + (plot->count > 1 ? PLOT_ROW * (int)plot->count : 0));
    shk_escape_html(out, plot->title);
    shk_strbuf_puts(out, "\">");
    plot_axes(out, plot, &frame);
    for (size_t l = 0; l < plot->count; l++)
        plot_line(out, &plot->lines[l], &frame, plot->lines[l].color % PLOT_COLORS);
    for (size_t l = 0; l < plot->count && plot->count > 1; l++)
        plot_legend(out, plot, l);
    shk_strbuf_puts(out, "</svg>\n");
}
