/* The history of nodes: an SQLite database on a local disk, one row for each run of each node.
 *
 * One file, with SQLite's rollback journal and not its write-ahead log: a reader needs no right to
 * write beside it, a copy of the file is whole, and writers are rare and short. Each waits for the
 * others up to HISTORY_BUSY_MS. What a killed writer had not committed is rolled back by the next
 * one. On a network file system locks cannot be relied on: such a file is refused
 * (https://sqlite.org/howtocorrupt.html, 2.1).
 *
 * The file may come from anyone: links, foreign schemas, triggers and newer versions are refused,
 * SQLite runs in its defensive mode, and a damaged file is an error of one line. */
#ifndef SHK_CORE_HISTORY_H
#define SHK_CORE_HISTORY_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>

/* user_version of the database. */
#define SHK_HISTORY_VERSION 1

struct shk_history;

/* One run of one node; texts and objects are borrowed. */
struct shk_history_run {
    long long id; /* of the row; not for shk_history_put() */
    const char *node;
    long long start;     /* seconds since 1970 */
    double seconds;      /* how long it took; negative: not known */
    const char *job;     /* NULL: none */
    const char *verdict; /* "pass", "warn", "fail", "unknown" */
    const char *profile; /* NULL: not known */
    const char *kind;    /* nodes of one hardware are siblings; NULL: not known */
    long long states_id; /* equal for runs that say the same; not for shk_history_put() */
    json_t *metrics;     /* {name: number}, core/facts/metrics.h; NULL when it was read */
    json_t *states;      /* {path: text}: versions, firmware, settings; NULL when it was read */
    json_t *issues;      /* [{"cause", "setting", "verdict", "scope", "observed"}]; likewise */
};

/* A number of one run. */
struct shk_history_sample {
    const char *node, *kind; /* borrowed during the call */
    long long start, states_id;
    double value;
};

/* Name of a network file system by statfs(2)'s f_type (magic numbers of linux/magic.h and of the
 * file systems' own sources); NULL: it is none. */
const char *shk_history_network(unsigned long type);

/* Opens the database at `path`; with `write` it is made when it is missing. ":memory:" is one that
 * nobody else sees. Returns 0 or a negative errno with one line: -EINVAL (not such a database, a
 * link, too new), -EPERM, -ENOTSUP (network file system), -ENOSYS (built without SQLite). */
int shk_history_open(struct shk_history **history_p, const char *path, bool write,
                     struct shk_error *err) SHK_MUST_CHECK;
void shk_history_close(struct shk_history *history); /* NULL is fine; rolls back */

/* Everything between is in the file as a whole or not at all. */
int shk_history_begin(struct shk_history *history, struct shk_error *err) SHK_MUST_CHECK;
int shk_history_commit(struct shk_history *history, struct shk_error *err) SHK_MUST_CHECK;

/* Adds a run; *new_p is false when the database has one of this node and time already, which
 * stays. */
int shk_history_put(struct shk_history *history, const struct shk_history_run *run, bool *new_p,
                    struct shk_error *err) SHK_MUST_CHECK;

/* Forgets runs that began before `before`, and of each node all but the newest `most`. */
int shk_history_retain(struct shk_history *history, long long before, long long most,
                       struct shk_error *err) SHK_MUST_CHECK;

/* Readers, each from `since` to `until` inclusive, ordered by node and time. `node` and `metric`
 * NULL: all. A non-zero return of fn ends it and is returned. */
int shk_history_runs(struct shk_history *history, const char *node, long long since,
                     long long until, int (*fn)(const struct shk_history_run *run, void *arg),
                     void *arg, struct shk_error *err) SHK_MUST_CHECK;
/* With `zero` (a metric that marks runs, else NULL) a run that lacks the metric counts as 0 where
 * it has the mark, of nodes that have the metric in any run. */
int shk_history_samples(struct shk_history *history, const char *metric, const char *zero,
                        const char *node, long long since, long long until,
                        int (*fn)(const struct shk_history_sample *sample, void *arg), void *arg,
                        struct shk_error *err) SHK_MUST_CHECK;
/* Names of metrics in use, or of nodes, sorted. */
int shk_history_metrics(struct shk_history *history, int (*fn)(const char *name, void *arg),
                        void *arg, struct shk_error *err) SHK_MUST_CHECK;
int shk_history_nodes(struct shk_history *history, int (*fn)(const char *name, void *arg),
                      void *arg, struct shk_error *err) SHK_MUST_CHECK;
/* New reference to {path: text}; *states_p is NULL when there is none of that number. */
int shk_history_states(struct shk_history *history, long long id, json_t **states_p,
                       struct shk_error *err) SHK_MUST_CHECK;
/* New reference to what was wrong in a run, as it was put. */
int shk_history_issues(struct shk_history *history, long long run, json_t **issues_p,
                       struct shk_error *err) SHK_MUST_CHECK;

#endif
