/* A node against its own past and against its siblings: robust statistics, and nothing else. Pure
 * functions of numbers.
 *
 * Medians and the median absolute deviation (MAD), because one bad run in ten must move neither
 * (half of the values may be wrong before they do: Rousseeuw and Croux, J. Am. Stat. Assoc. 88,
 * 1273, 1993). 1.4826 x MAD is the standard deviation where values are normally distributed. */
#ifndef SHK_CHECKS_PAST_H
#define SHK_CHECKS_PAST_H

#include <stdbool.h>
#include <stddef.h>

/* Runs before anything is said of a node, of which the last SHK_PAST_RECENT are compared with the
 * first; siblings before anything is said of their spread. */
enum { SHK_PAST_FIRST = 14, SHK_PAST_FIRST_MOST = 30, SHK_PAST_RECENT = 5, SHK_PAST_SIBLINGS = 8 };

/* Standard deviations that a shift of the median of the last runs must come to. With 5 of them, and
 * 14 to compare with, normal noise alone gets there once in 10^7. */
#define SHK_PAST_SIGMAS 4.0
/* The same for the distance from the siblings: one value, of as many nodes as there are. */
#define SHK_PAST_SIBLING_SIGMAS 5.0

/* An error counter must have risen in so many runs of the last so many days: one rise is an
 * accident, several are a fault that comes and goes. */
enum { SHK_PAST_RISES = 3 };
#define SHK_PAST_RISE_DAYS 14.0

struct shk_past_point {
    double t; /* days, any zero, rising */
    double value;
    double common;    /* median of the siblings at that time; NAN: not known */
    long long states; /* which versions and settings the node had: equal numbers are equal */
};

enum shk_past_change {
    SHK_PAST_SAME,  /* as it was */
    SHK_PAST_FEW,   /* too few runs to tell */
    SHK_PAST_DRIFT, /* little by little */
    SHK_PAST_STEP,  /* from one run to the next */
    SHK_PAST_RISES_OFTEN
};

struct shk_past {
    enum shk_past_change change;
    double before, now;               /* medians of the first and the last runs */
    double common_before, common_now; /* of the siblings then; NAN: not known */
    double spread;                    /* standard deviation of the first runs, by their MAD */
    double part;                      /* change as part of `before`, what siblings share taken out:
                                         negative is worse */
    size_t from;                      /* the point at which it begins */
    size_t first, rises;              /* points compared with; runs in which a counter rose */
    double by;                        /* what it rose by in all */
};

/* Sorts the values. NAN when there are none. */
double shk_past_median(double *values, size_t count);
/* Standard deviation by the MAD about `median`; leaves the values in another order. */
double shk_past_deviation(double *values, size_t count, double median);

/* better: 1 more is better, -1 less is. least: part of the value that a change must come to. Both
 * conditions must hold: SHK_PAST_SIGMAS and least. Returns 0 or -ENOMEM. */
int shk_past_judge(const struct shk_past_point *points, size_t count, int better, double least,
                   struct shk_past *past);

/* A counter since its device was reset: a lower value than before is a new start. */
void shk_past_count(const struct shk_past_point *points, size_t count, double today,
                    struct shk_past *past);

/* Median and standard deviation of siblings (in any order; they are sorted); NAN when they are too
 * few. */
void shk_past_spread(double *siblings, size_t count, double *median_p, double *spread_p);

/* Is `value` worse than siblings with this median and deviation are? */
bool shk_past_worse(double value, double median, double spread, int better, double least);

/* The place of `value` among its siblings (with it among them, in any order; they are sorted).
 * True: it is worse than they are. *median_p, *spread_p: theirs, NAN when they are too few. */
bool shk_past_outside(double value, double *siblings, size_t count, int better, double least,
                      double *median_p, double *spread_p);

#endif
