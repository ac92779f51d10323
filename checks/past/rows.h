/* Rows of the matrix that compare a run with earlier ones, or with those of good nodes. */
#ifndef SHK_CHECKS_PAST_ROWS_H
#define SHK_CHECKS_PAST_ROWS_H

#include "core/result/finding.h"

#include <jansson.h>

struct shk_past_case {
    const char *metric, *title, *unit;
    double value;    /* of this run */
    int better;      /* 1 more is better, -1 less is */
    double least;    /* part of a value that a difference must come to */
    double *earlier; /* of this node, the last SHK_PAST_FIRST_MOST at most; sorted by this */
    size_t earlier_count;
    double *siblings; /* of the others of its kind, one each; sorted by this */
    size_t siblings_count;
    const json_t *changed; /* what is not as in the last of the earlier runs (shk_states_changes());
                              NULL: not known */
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

/* Adds a note that says in what versions and settings (shk_states_of()) the node is like none
 * of the good ones of its kind, an array of theirs; nothing where there are none. Unknown when one
 * of its own could not be read. */
void shk_baseline_settings(const json_t *mine, const json_t *good, const char *node,
                           struct shk_findings *findings);

#endif
