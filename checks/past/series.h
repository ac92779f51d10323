/* One metric of many nodes: each against its own past and beside those of its kind, and what
 * follows from it. Pure functions. */
#ifndef SHK_CHECKS_SERIES_H
#define SHK_CHECKS_SERIES_H

#include "checks/past/past.h"
#include "core/facts/metrics.h"
#include "core/result/finding.h"

struct shk_past_series {
    const char *kind;              /* of hardware; borrowed */
    struct shk_past_point *points; /* in the order of time; borrowed, `common` is filled in */
    size_t count;
    struct shk_past past;
    bool outside;            /* worse than its siblings are */
    bool compared;           /* with its own past or with siblings */
    double siblings, spread; /* their median and standard deviation; NAN: too few */
    size_t siblings_count;
};

/* Judges all of them; `today` in days. Returns 0 or -ENOMEM. */
int shk_past_series_judge(struct shk_past_series *const *all, size_t count,
                          const struct shk_metric *metric, double today);

/* Median of its last runs; NAN when they are too few. */
double shk_past_now(const struct shk_past_series *series);

/* Is it not as it was, or not as its siblings are? */
bool shk_past_wrong(const struct shk_past_series *series);

/* Of a counter: does the port lose its link again and again? That ends the jobs that use it, though
 * each test between may pass: a reason to drain. */
bool shk_past_flaps(const char *metric, const struct shk_past_series *series);

/* Is a finding of a node's last run a reason to drain it? A fault of its own that ends jobs, with
 * what it rests on; neither what the launch got wrong nor what costs performance only. NULL: not
 * said. */
bool shk_past_drains(const char *verdict, const char *scope, const char *observed, const char *why);

/* Of a history or fleet: FAIL a drain is recommended, WARN something is not as it was or a node did
 * not pass, UNKNOWN nothing was compared or passed, else PASS. */
enum shk_verdict shk_past_verdict(size_t drains, size_t wrong, size_t good);

#endif
