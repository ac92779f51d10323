/* Rows of the matrix that compare a run with earlier ones, or with those of good nodes. */
#ifndef SHK_CHECKS_PAST_ROWS_H
#define SHK_CHECKS_PAST_ROWS_H

#include "core/result/finding.h"

struct shk_past_case {
    const char *metric, *title, *unit;
    double value;    /* of this run */
    int better;      /* 1 more is better, -1 less is */
    double least;    /* part of a value that a difference must come to */
    double *earlier; /* of this node, the last SHK_PAST_FIRST_MOST at most; sorted by this */
    size_t earlier_count;
    double *siblings; /* of the others of its kind, one each; sorted by this */
    size_t siblings_count;
    const char *changed; /* versions and settings that the last of the earlier runs had otherwise,
                            in words; NULL: none */
};

/* Adds a row of family "history" for one node: WARN, with both numbers, when the run is worse than
 * the node's own past or than its siblings are; unknown while runs and siblings are too few. */
void shk_past_row(const struct shk_past_case *c, const char *node, struct shk_findings *findings);

/* Adds a row of family "baseline": WARN when the run is worse than each of the good ones by more
 * than `least`; unknown when there are fewer than SHK_BASELINE_GOOD of them. `earlier` are those.
 */
enum { SHK_BASELINE_GOOD = 3 };
void shk_baseline_row(const struct shk_past_case *c, const char *node,
                      struct shk_findings *findings);

/* Adds a note that says in what versions and settings the node is like none of the good ones;
 * `differs` NULL: in none. */
void shk_baseline_settings(const char *differs, size_t good, const char *node,
                           struct shk_findings *findings);

#endif
