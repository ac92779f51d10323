/* Line plots as SVG, for the HTML report: both axes logarithmic. */
#ifndef SHK_REPORTS_PLOT_H
#define SHK_REPORTS_PLOT_H

#include "core/text/strbuf.h"
#include <stdbool.h>

struct shk_plot_point {
    double x, y; /* points with x or y not above 0 are left out */
};

struct shk_plot_line {
    const char *label; /* raw text */
    const struct shk_plot_point *points;
    size_t count;
    bool expected; /* dashed, without points */
};

struct shk_plot {
    const char *title, *x_label, *y_label;                   /* raw text */
    const char *(*x_text)(double x, char *buf, size_t size); /* tick label */
    const struct shk_plot_line *lines;
    size_t count;
};

/* Appends one <svg>; nothing when no point can be drawn. Colours are classes line0 … line5 of the
 * page's style sheet. */
void shk_plot_svg(struct shk_strbuf *out, const struct shk_plot *plot);

#endif
