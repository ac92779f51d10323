/* Filling the history and asking it: what `shakedown history`, `fleet` and --history share. */
#ifndef SHK_CLI_HISTORY_H
#define SHK_CLI_HISTORY_H

#include "checks/past/series.h"
#include "cli/session/session.h"
#include "core/facts/metrics.h"
#include "core/history/history.h"

/* Where the history is when nobody says; how many days are kept, and how many runs of a node. */
#define SHK_HISTORY_PLACE "/var/lib/shakedown/history.db"
enum { SHK_HISTORY_RUNS = 2000 };

/* Days of the past that a node is compared with. */
enum { SHK_HISTORY_WINDOW = 90 };

struct shk_collected {
    size_t added, known; /* runs; those that were there already */
    size_t undated;      /* documents that do not say when they are of */
    size_t future;       /* documents of a node whose clock is ahead by more than a day */
    size_t unnamed;      /* documents without host.name */
    size_t unreadable;   /* files */
};

/* collect.c: adds every run of the files and folders to the database. Facts are judged on the way,
 * reports have their verdicts. `session` was begun; it stays empty. What cannot be read is said and
 * counted. Returns an enum shk_exit. */
int shk_collect(struct shk_session *session, struct shk_history *history, const char *const *paths,
                size_t count, struct shk_collected *collected);

/* The nodes of a judged session, one run each. */
int shk_collect_session(struct shk_session *session, struct shk_history *history,
                        struct shk_error *err) SHK_MUST_CHECK;

/* "/var/lib/…" or --history; exit code by what went wrong. */
const char *shk_history_place(const struct shk_options *options);
int shk_history_fail(const struct shk_error *err, int rc);

/* verdict.c: adds the rows of --history and --baseline to the findings of a judged session. Returns
 * an enum shk_exit. */
int shk_history_verdict(struct shk_session *session);
/* Adds the nodes of the session to the database of --history, if there is one; likewise. */
int shk_history_keep(struct shk_session *session);

/* series.c: one metric of one node. */
struct shk_series {
    char *node, *kind; /* kind: that of most of its runs; "" not known */
    size_t room, votes;
    struct shk_past_series of;
};

struct shk_metric_series {
    char *name;
    const struct shk_metric *metric;
    struct shk_series *series; /* by node */
    size_t count, room;
};

/* Reads a metric up to `until` and judges every node. `node` NULL: all. Without siblings (one node
 * only) a node has its past alone. */
int shk_series_load(struct shk_history *history, const char *metric, long long until,
                    struct shk_metric_series *out, struct shk_error *err) SHK_MUST_CHECK;
void shk_series_free(struct shk_metric_series *series);
/* What changed between two sets of states (shk_states_changes()), new reference. NULL: not known.
 */
json_t *shk_states_diff(struct shk_history *history, long long from, long long to);

/* overview.c: {"nodes", "runs", "from", "to", "verdict", "compared", "few", "metrics": [{"name",
 * "title", "unit"}], "rows": [...]} of all nodes; rows are the nodes that are not as they were,
 * compared and few count the values that have enough runs or siblings and those that do not. New
 * reference. */
json_t *shk_overview(struct shk_history *history, long long until, struct shk_error *err);
/* One metric of one node, with its events. */
json_t *shk_trend(struct shk_history *history, const char *node, const char *metric,
                  long long until, struct shk_error *err);
/* The state of each node by its last run, causes, drain list. New reference. */
json_t *shk_fleet_state(struct shk_history *history, long long until, struct shk_error *err);

#endif
