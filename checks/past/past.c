#include "checks/past/past.h"
#include "core/text/order.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values of a machine are never so steady that less than this part of them is a change. */
#define PAST_STEADY 0.002

double shk_past_median(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, shk_order_double);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double shk_past_deviation(double *values, size_t count, double median)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - median);
    return 1.4826 * shk_past_median(values, count);
}

static double past_median_of(const double *values, size_t count, double *work)
{
    memcpy(work, values, count * sizeof *values);
    return shk_past_median(work, count);
}

struct fit {
    double error;
    size_t from;
};

/* Least squares of a level that changes once: sums from the left tell both means. */
static struct fit past_step(const double *y, size_t n)
{
    struct fit best = {.error = INFINITY};
    double all = 0, square = 0, left = 0;
    for (size_t i = 0; i < n; i++) {
        all += y[i];
        square += y[i] * y[i];
    }
    for (size_t k = 1; k < n; k++) {
        left += y[k - 1];
        double right = all - left;
        double error = square - left * left / (double)k - right * right / (double)(n - k);
        if (error < best.error)
            best = (struct fit){error, k};
    }
    return best;
}

/* The same of a level that begins to fall or rise at one point. */
static struct fit past_hinge(const struct shk_past_point *points, const double *y, size_t n)
{
    struct fit best = {.error = INFINITY};
    for (size_t k = 0; k + 2 < n; k++) {
        double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, count = (double)n;
        for (size_t i = 0; i < n; i++) {
            double x = points[i].t > points[k].t ? points[i].t - points[k].t : 0;
            sx += x;
            sy += y[i];
            sxx += x * x;
            sxy += x * y[i];
            syy += y[i] * y[i];
        }
        double vx = sxx - sx * sx / count, cxy = sxy - sx * sy / count;
        double error = syy - sy * sy / count - (vx > 0 ? cxy * cxy / vx : 0);
        if (error < best.error)
            best = (struct fit){error, k};
    }
    return best;
}

/* Which of both fits better; one bad run must not decide, so values far out are drawn in. */
static void past_shape(const struct shk_past_point *points, double *y, size_t n, double middle,
                       struct shk_past *past)
{
    double far = fabs(past->part * middle) + 4 * past->spread;
    for (size_t i = 0; i < n; i++)
        y[i] = fmax(middle - far, fmin(middle + far, y[i])) - middle;
    struct fit step = past_step(y, n), hinge = past_hinge(points, y, n);
    past->change = step.error <= hinge.error ? SHK_PAST_STEP : SHK_PAST_DRIFT;
    past->from = step.error <= hinge.error ? step.from : hinge.from;
}

/* What all siblings share is taken out where it is known. */
static bool past_relative(const struct shk_past_point *points, size_t n, double *y)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++)
        known += isfinite(points[i].common) && points[i].common > 0;
    for (size_t i = 0; i < n; i++)
        y[i] = points[i].value / (known == n ? points[i].common : 1);
    return known == n;
}

/* Standard deviation of the first values about a line through them (Theil and Sen: the median of
 * all slopes): a slow decline is not noise. */
static int past_noise(const struct shk_past_point *points, const double *y, size_t n,
                      double *spread)
{
    double *slopes = calloc(n * n / 2 + n, sizeof *slopes), *rest = slopes + n * n / 2;
    size_t count = 0;
    if (!slopes)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (points[k].t > points[i].t)
                slopes[count++] = (y[k] - y[i]) / (points[k].t - points[i].t);
    double slope = count ? shk_past_median(slopes, count) : 0;
    for (size_t i = 0; i < n; i++)
        rest[i] = y[i] - slope * (points[i].t - points[0].t);
    *spread = shk_past_deviation(rest, n, shk_past_median(rest, n));
    free(slopes);
    return 0;
}

static void past_medians(const struct shk_past_point *points, size_t n, double *work,
                         struct shk_past *past)
{
    size_t first = past->first, last = n - SHK_PAST_RECENT;
    for (size_t i = 0; i < n; i++)
        work[i] = points[i].value;
    past->before = shk_past_median(work, first);
    past->now = shk_past_median(work + last, SHK_PAST_RECENT);
    for (size_t i = 0; i < n; i++)
        work[i] = points[i].common;
    past->common_before = shk_past_median(work, first);
    past->common_now = shk_past_median(work + last, SHK_PAST_RECENT);
}

int shk_past_judge(const struct shk_past_point *points, size_t n, int better, double least,
                   struct shk_past *past)
{
    *past = (struct shk_past){.change = SHK_PAST_FEW, .common_before = NAN, .common_now = NAN};
    if (n < SHK_PAST_FIRST + SHK_PAST_RECENT)
        return 0;
    double *y = calloc(2 * n, sizeof *y), *work = y ? y + n : NULL;
    if (!y)
        return -ENOMEM;
    past->change = SHK_PAST_SAME;
    past->first = n / 3 < SHK_PAST_FIRST        ? SHK_PAST_FIRST
                  : n / 3 > SHK_PAST_FIRST_MOST ? SHK_PAST_FIRST_MOST
                                                : n / 3;
    bool relative = past_relative(points, n, y);
    past_medians(points, n, work, past);
    if (!relative)
        past->common_before = past->common_now = NAN;
    double middle = past_median_of(y, past->first, work);
    double now = past_median_of(y + n - SHK_PAST_RECENT, SHK_PAST_RECENT, work);
    if (past_noise(points, y, past->first, &past->spread)) {
        free(y);
        return -ENOMEM;
    }
    past->spread = fmax(past->spread, PAST_STEADY * fabs(middle));
    past->part = middle > 0 ? better * (now - middle) / middle : 0;
    if (middle > 0 && past->part < -least && fabs(now - middle) > SHK_PAST_SIGMAS * past->spread)
        past_shape(points, y, n, middle, past);
    past->spread *= relative ? past->common_now : 1;
    free(y);
    return 0;
}

void shk_past_count(const struct shk_past_point *points, size_t n, double today,
                    struct shk_past *past)
{
    *past = (struct shk_past){.change = SHK_PAST_SAME, .common_before = NAN, .common_now = NAN};
    for (size_t i = 1; i < n; i++) {
        double had = points[i].value < points[i - 1].value ? 0 : points[i - 1].value;
        if (!(points[i].value > had) || points[i].t < today - SHK_PAST_RISE_DAYS)
            continue;
        past->from = past->rises ? past->from : i;
        past->rises++;
        past->by += points[i].value - had;
    }
    past->now = n ? points[n - 1].value : 0;
    if (past->rises >= SHK_PAST_RISES)
        past->change = SHK_PAST_RISES_OFTEN;
}

void shk_past_spread(double *siblings, size_t count, double *median_p, double *spread_p)
{
    *median_p = *spread_p = NAN;
    if (count < SHK_PAST_SIBLINGS)
        return;
    *median_p = shk_past_median(siblings, count);
    *spread_p = fmax(shk_past_deviation(siblings, count, *median_p), PAST_STEADY * *median_p);
}

bool shk_past_worse(double value, double median, double spread, int better, double least)
{
    double worse = better * (median - value);
    return median > 0 && worse > least * median && worse > SHK_PAST_SIBLING_SIGMAS * spread;
}

bool shk_past_outside(double value, double *siblings, size_t count, int better, double least,
                      double *median_p, double *spread_p)
{
    shk_past_spread(siblings, count, median_p, spread_p);
    return shk_past_worse(value, *median_p, *spread_p, better, least);
}
