#include "core/job/outlier.h"
#include "core/text/order.h"
#include <stdlib.h>

static double outlier_median(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, shk_order_double);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

bool shk_outlier_of(const double *values, unsigned count, struct shk_outlier *outlier_p)
{
    double *known = calloc((size_t)count + 1, sizeof *known);
    struct shk_outlier o = {0};
    double spread = 0;
    unsigned n = 0;

    if (!known)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (values[i] > 0)
            known[n++] = values[i];
    if (n > 0) {
        o.median = outlier_median(known, n);
        for (unsigned i = 0; i < n; i++)
            known[i] = known[i] > o.median ? known[i] - o.median : o.median - known[i];
        o.mad = outlier_median(known, n);
    }
    free(known);
    if (n >= SHK_OUTLIER_MIN) {
        spread = o.mad * SHK_OUTLIER_SCORE / 0.6745;
        o.limit = o.median + spread;
        if (o.limit < o.median * SHK_OUTLIER_FACTOR)
            o.limit = o.median * SHK_OUTLIER_FACTOR;
    }
    *outlier_p = o;
    return true;
}
