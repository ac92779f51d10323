/* Outliers among measurements of which lower is better: a latency, a time per byte. */
#ifndef SHK_CORE_OUTLIER_H
#define SHK_CORE_OUTLIER_H

#include <stdbool.h>

/* Modified z-score 0.6745 (x - median) / MAD above which a value is an outlier: Iglewicz and
 * Hoaglin 1993, as in the NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.5.17. */
#define SHK_OUTLIER_SCORE 3.5

/* And as a multiple of the median: where values hardly scatter (a MAD near zero, a handful of
 * values) every difference would be an outlier. Half the speed is what a link that came up with
 * half its lanes or the next lower rate has. */
#define SHK_OUTLIER_FACTOR 2.0

/* Fewer values than this have no majority. */
#define SHK_OUTLIER_MIN 3U

struct shk_outlier {
    double median, mad; /* of the values; mad: median absolute deviation */
    double limit;       /* above it a value is an outlier; 0: too few values */
};

/* Values that are not above 0 do not count. False when out of memory. */
bool shk_outlier_of(const double *values, unsigned count, struct shk_outlier *outlier_p);

#endif
