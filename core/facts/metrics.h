/* What the history keeps of a facts document: numbers that have a trend, and texts whose change may
 * explain one. */
#ifndef SHK_CORE_METRICS_H
#define SHK_CORE_METRICS_H

#include "core/facts/factdiff.h"

enum shk_metric_kind {
    SHK_METRIC_MORE, /* more is better */
    SHK_METRIC_LESS, /* less is better */
    SHK_METRIC_COUNT /* counts errors since the device was reset; what is not there is 0 */
};

struct shk_metric {
    const char *name; /* "busbw."; a name that ends in '.' stands for all that begin so */
    enum shk_metric_kind kind;
    const char *unit;
    const char *title; /* for people */
    double least;      /* part of its value that a difference must come to, to matter */
};

/* Of a name in the history; NULL: not one of them. */
const struct shk_metric *shk_metric_find(const char *name);

/* New reference to {name: number}: best bus bandwidth and least time of each collective, copies,
 * error counters that are not 0. NULL: out of memory. */
json_t *shk_metrics_of(const struct shk_facts *facts);

/* Adds SHK_METRIC_READ with the scope of each device whose counters were read: where a counter of
 * it is not there, it is 0; without the mark it is not known. Returns 0 or -ENOMEM. */
#define SHK_METRIC_READ "read."
int shk_metrics_mark(const struct shk_facts *facts, json_t *object);

/* The best bus bandwidth of a sweep's sizes in GB/s, and the time of its smallest message in us;
 * NAN: no size has one. */
void shk_sizes_best(const json_t *sizes, double *busbw_p, double *time_us_p);

/* New reference to {path: text}: all that nodes of one kind must agree in (config/diff: versions,
 * firmware, settings, states of ports), and the variables that no rule sets aside; false for what
 * was looked for and is not there, null for what could not be read. NULL: out of memory. `cache`
 * (an object of the caller, of one set of rules; NULL: none) remembers which paths count. */
json_t *shk_states_of(const struct shk_facts *facts, const struct shk_diff_rule *rules,
                      size_t count, json_t *cache);

/* What changed from one of these to the other: [{"path", "from", "to"}], without "from" what is
 * new, without "to" what is gone; a new reference, NULL: out of memory. What one of the runs did
 * not look at, or could not read, is no change. */
json_t *shk_states_changes(const json_t *from, const json_t *to);

/* When the run of a document began: run.start, else clock.time; -1: it does not say. */
long long shk_run_start(const struct shk_facts *facts);

#endif
