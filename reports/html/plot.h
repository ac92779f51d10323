/* Line plots as SVG, for the HTML report: x logarithmic, y logarithmic or linear. */
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
    bool expected;  /* dashed, without points */
    unsigned color; /* the same number is the same colour in every plot */
};

struct shk_plot {
    const char *title, *x_label, *y_label;                   /* raw text */
    const char *(*x_text)(double x, char *buf, size_t size); /* tick label */
    const struct shk_plot_line *lines;
    size_t count;
    bool linear;  /* y from 0 on a linear axis, else logarithmic like x */
    double least; /* x below it is left out */
};

/* Appends one <svg>; nothing when no point can be drawn. Colours are classes line0 … line7 of the
 * page's style sheet. */
void shk_plot_svg(struct shk_strbuf *out, const struct shk_plot *plot);

#endif
