#include "core/history/history_private.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int get_done(struct shk_history *history, sqlite3_stmt *statement, int code, int stopped,
                    struct shk_error *err)
{
    sqlite3_finalize(statement);
    if (stopped)
        return stopped;
    return code == SQLITE_DONE ? 0 : history_error(history, code, err);
}

static const char *get_text(sqlite3_stmt *statement, int column)
{
    return (const char *)sqlite3_column_text(statement, column);
}

static int get_bind(sqlite3_stmt *statement, const char *node, long long since, long long until)
{
    int code = sqlite3_bind_int64(statement, 1, since);
    code = code ? code : sqlite3_bind_int64(statement, 2, until);
    return code ? code : sqlite3_bind_text(statement, 3, node, -1, SQLITE_STATIC);
}

int shk_history_runs(struct shk_history *history, const char *node, long long since,
                     long long until, int (*fn)(const struct shk_history_run *run, void *arg),
                     void *arg, struct shk_error *err)
{
    static const char sql[] =
        "SELECT r.id, n.text, r.start, r.seconds, r.job, r.verdict, p.text, k.text, r.states "
        "FROM run r JOIN name n ON n.id = r.node LEFT JOIN name p ON p.id = r.profile "
        "LEFT JOIN name k ON k.id = r.kind WHERE r.start BETWEEN ?1 AND ?2 "
        "AND (?3 IS NULL OR n.text = ?3) ORDER BY n.text, r.start";
    sqlite3_stmt *s = NULL;
    int stopped = 0, code = sqlite3_prepare_v2(history->db, sql, -1, &s, NULL);
    code = code ? code : get_bind(s, node, since, until);
    while (!code && !stopped && (code = sqlite3_step(s)) == SQLITE_ROW) {
        struct shk_history_run run = {
            .id = sqlite3_column_int64(s, 0),
            .node = get_text(s, 1),
            .start = sqlite3_column_int64(s, 2),
            .seconds = sqlite3_column_type(s, 3) == SQLITE_NULL ? -1 : sqlite3_column_double(s, 3),
            .job = get_text(s, 4),
            .verdict = get_text(s, 5),
            .profile = get_text(s, 6),
            .kind = get_text(s, 7),
            .states_id = sqlite3_column_int64(s, 8),
        };
        code = run.node && run.verdict ? 0 : SQLITE_CORRUPT;
        stopped = code ? 0 : fn(&run, arg);
    }
    return get_done(history, s, code, stopped, err);
}

#define GET_METRIC "(SELECT id FROM name WHERE text = ?4)"
/* Of nodes where it was ever seen. */
#define GET_ANY                                                                                    \
    "AND r.node IN (SELECT o.node FROM run o JOIN sample x ON x.run = o.id AND x.metric "          \
    "= " GET_METRIC ") "
#define GET_MARKED                                                                                 \
    "JOIN sample m ON m.run = r.id AND m.metric = (SELECT id FROM name WHERE text = ?5) LEFT JOIN"
#define GET_SAMPLES(join, any)                                                                     \
    "SELECT n.text, k.text, r.start, r.states, coalesce(s.value, 0) FROM run r "                   \
    "JOIN name n ON n.id = r.node " join " sample s ON s.run = r.id AND s.metric = " GET_METRIC    \
    " LEFT JOIN name k ON k.id = r.kind WHERE r.start BETWEEN ?1 AND ?2 "                          \
    "AND (?3 IS NULL OR n.text = ?3) " any "ORDER BY n.text, r.start"

int shk_history_samples(struct shk_history *history, const char *metric, const char *zero,
                        const char *node, long long since, long long until,
                        int (*fn)(const struct shk_history_sample *sample, void *arg), void *arg,
                        struct shk_error *err)
{
    const char *sql = zero ? GET_SAMPLES(GET_MARKED, GET_ANY) : GET_SAMPLES("JOIN", "");
    sqlite3_stmt *s = NULL;
    int stopped = 0, code = sqlite3_prepare_v2(history->db, sql, -1, &s, NULL);
    code = code ? code : get_bind(s, node, since, until);
    code = code ? code : sqlite3_bind_text(s, 4, metric, -1, SQLITE_STATIC);
    code = code || !zero ? code : sqlite3_bind_text(s, 5, zero, -1, SQLITE_STATIC);
    while (!code && !stopped && (code = sqlite3_step(s)) == SQLITE_ROW) {
        struct shk_history_sample sample = {
            .node = get_text(s, 0),
            .kind = get_text(s, 1),
            .start = sqlite3_column_int64(s, 2),
            .states_id = sqlite3_column_int64(s, 3),
            .value = sqlite3_column_double(s, 4),
        };
        code = sample.node ? 0 : SQLITE_CORRUPT;
        stopped = code ? 0 : fn(&sample, arg);
    }
    return get_done(history, s, code, stopped, err);
}

static int get_names(struct shk_history *history, const char *sql,
                     int (*fn)(const char *name, void *arg), void *arg, struct shk_error *err)
{
    sqlite3_stmt *s = NULL;
    int stopped = 0, code = sqlite3_prepare_v2(history->db, sql, -1, &s, NULL);
    while (!code && !stopped && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *name = get_text(s, 0);
        code = name ? 0 : SQLITE_CORRUPT;
        stopped = code ? 0 : fn(name, arg);
    }
    return get_done(history, s, code, stopped, err);
}

int shk_history_metrics(struct shk_history *history, int (*fn)(const char *name, void *arg),
                        void *arg, struct shk_error *err)
{
    return get_names(history,
                     "SELECT text FROM name WHERE id IN (SELECT metric FROM sample) ORDER BY text",
                     fn, arg, err);
}

int shk_history_nodes(struct shk_history *history, int (*fn)(const char *name, void *arg),
                      void *arg, struct shk_error *err)
{
    return get_names(history,
                     "SELECT text FROM name WHERE id IN (SELECT node FROM run) ORDER BY text", fn,
                     arg, err);
}

/* Texts of JSON in the first column, for one number. */
static int get_json(struct shk_history *history, const char *sql, long long id,
                    int (*fn)(json_t *value, void *arg), void *arg, struct shk_error *err)
{
    sqlite3_stmt *s = NULL;
    int code = sqlite3_prepare_v2(history->db, sql, -1, &s, NULL), stopped = 0;
    code = code ? code : sqlite3_bind_int64(s, 1, id);
    while (!code && !stopped && (code = sqlite3_step(s)) == SQLITE_ROW) {
        const char *text = get_text(s, 0);
        json_t *value = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
        code = json_is_object(value) ? 0 : SQLITE_CORRUPT;
        stopped = code ? 0 : fn(value, arg);
        json_decref(value);
    }
    return get_done(history, s, code, stopped, err);
}

static int get_one(json_t *value, void *arg)
{
    json_t **to = arg;
    json_decref(*to);
    *to = json_incref(value);
    return 0;
}

int shk_history_states(struct shk_history *history, long long id, json_t **states_p,
                       struct shk_error *err)
{
    *states_p = NULL;
    return get_json(history, "SELECT text FROM states WHERE id=?1", id, get_one, states_p, err);
}

static int get_append(json_t *value, void *arg)
{
    return json_array_append(arg, value) ? -ENOMEM : 0;
}

int shk_history_issues(struct shk_history *history, long long run, json_t **issues_p,
                       struct shk_error *err)
{
    static const char sql[] = "SELECT i.text FROM run_issue r JOIN issue i ON i.id = r.issue "
                              "WHERE r.run=?1 ORDER BY i.text";
    *issues_p = json_array();
    int rc = *issues_p ? get_json(history, sql, run, get_append, *issues_p, err)
                       : shk_error_sys(err, ENOMEM, "%s", history->path);
    if (rc) {
        json_decref(*issues_p);
        *issues_p = NULL;
    }
    return rc;
}
