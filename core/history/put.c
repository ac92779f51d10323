#include "core/facts/digest.h"
#include "core/history/history_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of one run and texts of one, at most: a document from a stranger fills no disk. */
enum { PUT_METRICS = 256, PUT_STATES = 4096, PUT_ISSUES = 256, PUT_TEXT = 4 << 20 };

#define PUT_RUN                                                                                    \
    "INSERT INTO run(node, start, seconds, job, verdict, profile, kind, states) "                  \
    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING"
#define PUT_HANGING(table)                                                                         \
    "DELETE FROM " table " WHERE run NOT IN (SELECT id FROM run) AND ?1 >= 0 AND ?2 >= 0"
/* What is too old, and of each node what is too much. */
#define PUT_OLD                                                                                    \
    "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE start < ?1 UNION ALL SELECT id FROM "   \
    "(SELECT id, row_number() OVER (PARTITION BY node ORDER BY start DESC) AS n FROM run) "        \
    "WHERE n > ?2)"
#define PUT_STATES_LEFT                                                                            \
    "DELETE FROM states WHERE id NOT IN (SELECT states FROM run WHERE states IS NOT NULL) "        \
    "AND ?1 >= 0 AND ?2 >= 0"

static const char *const put_sql[HISTORY_STATEMENTS] = {
    [HISTORY_NAME_ADD] = "INSERT INTO name(text) VALUES(?1) ON CONFLICT DO NOTHING",
    [HISTORY_NAME_GET] = "SELECT id FROM name WHERE text=?1",
    [HISTORY_STATES_ADD] = "INSERT INTO states(digest, text) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
    [HISTORY_STATES_GET] = "SELECT id FROM states WHERE digest=?1",
    [HISTORY_ISSUE_ADD] = "INSERT INTO issue(digest, text) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
    [HISTORY_ISSUE_GET] = "SELECT id FROM issue WHERE digest=?1",
    [HISTORY_RUN_ADD] = PUT_RUN,
    [HISTORY_SAMPLE_ADD] = "INSERT INTO sample(run, metric, value) VALUES(?1, ?2, ?3)",
    [HISTORY_RUN_ISSUE_ADD] = "INSERT OR IGNORE INTO run_issue(run, issue) VALUES(?1, ?2)",
};

/* The statement, ready to be bound; NULL with *code_p set. */
static sqlite3_stmt *put_statement(struct shk_history *history, enum history_statement which,
                                   int *code_p)
{
    sqlite3_stmt **statement = &history->statements[which];
    *code_p = *statement ? SQLITE_OK
                         : sqlite3_prepare_v3(history->db, put_sql[which], -1,
                                              SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return *code_p ? NULL : *statement;
}

/* Runs it once; *id_p (may be NULL): the number in its first row, unchanged without one. */
static int put_step(sqlite3_stmt *statement, long long *id_p)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW && id_p)
        *id_p = sqlite3_column_int64(statement, 0);
    int reset = sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : reset ? reset : code;
}

static int put_name(struct shk_history *history, const char *text, long long *id_p)
{
    for (int i = 0; i < 2; i++) {
        int code;
        sqlite3_stmt *s = put_statement(history, i ? HISTORY_NAME_GET : HISTORY_NAME_ADD, &code);
        code = code ? code : sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC);
        code = code ? code : put_step(s, i ? id_p : NULL);
        if (code)
            return code;
    }
    return SQLITE_OK;
}

/* A text that many runs share, by its digest. */
static int put_shared(struct shk_history *history, enum history_statement add,
                      enum history_statement get, const json_t *value, long long *id_p)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    size_t len = text ? strlen(text) : 0;
    struct shk_digest digest = shk_digest_of(text ? text : "", len);
    int code = !text ? SQLITE_NOMEM : len > PUT_TEXT ? SQLITE_TOOBIG : SQLITE_OK;
    for (int i = 0; i < 2 && !code; i++) {
        sqlite3_stmt *s = put_statement(history, i ? get : add, &code);
        code =
            code ? code : sqlite3_bind_blob(s, 1, digest.bytes, sizeof digest.bytes, SQLITE_STATIC);
        if (!code && !i)
            code = sqlite3_bind_text(s, 2, text, (int)len, SQLITE_STATIC);
        code = code ? code : put_step(s, i ? id_p : NULL);
    }
    free(text);
    return code;
}

static int put_maybe(sqlite3_stmt *statement, int at, const char *text, long long id)
{
    return text ? sqlite3_bind_int64(statement, at, id) : sqlite3_bind_null(statement, at);
}

static int put_run(struct shk_history *history, const struct shk_history_run *run, long long *id_p)
{
    long long node = 0, profile = 0, kind = 0, states = 0;
    int code = put_name(history, run->node, &node);
    if (!code && run->profile)
        code = put_name(history, run->profile, &profile);
    if (!code && run->kind)
        code = put_name(history, run->kind, &kind);
    if (!code && run->states)
        code = put_shared(history, HISTORY_STATES_ADD, HISTORY_STATES_GET, run->states, &states);
    sqlite3_stmt *s = code ? NULL : put_statement(history, HISTORY_RUN_ADD, &code);
    code = code ? code : sqlite3_bind_int64(s, 1, node);
    code = code ? code : sqlite3_bind_int64(s, 2, run->start);
    if (!code && run->seconds >= 0 && isfinite(run->seconds))
        code = sqlite3_bind_double(s, 3, run->seconds);
    code = code ? code : sqlite3_bind_text(s, 4, run->job, -1, SQLITE_STATIC);
    code = code ? code : sqlite3_bind_text(s, 5, run->verdict, -1, SQLITE_STATIC);
    code = code ? code : put_maybe(s, 6, run->profile, profile);
    code = code ? code : put_maybe(s, 7, run->kind, kind);
    code = code ? code : put_maybe(s, 8, run->states ? "" : NULL, states);
    code = code ? code : put_step(s, NULL);
    *id_p = !code && sqlite3_changes(history->db) ? sqlite3_last_insert_rowid(history->db) : 0;
    return code;
}

static int put_samples(struct shk_history *history, const json_t *metrics, long long run)
{
    const char *name;
    json_t *value;
    int code = SQLITE_OK;
    size_t count = 0;
    json_object_foreach((json_t *)metrics, name, value)
    {
        long long metric = 0;
        if (code || !json_is_number(value) || !isfinite(json_number_value(value)) ||
            count++ >= PUT_METRICS)
            continue;
        code = put_name(history, name, &metric);
        sqlite3_stmt *s = code ? NULL : put_statement(history, HISTORY_SAMPLE_ADD, &code);
        code = code ? code : sqlite3_bind_int64(s, 1, run);
        code = code ? code : sqlite3_bind_int64(s, 2, metric);
        code = code ? code : sqlite3_bind_double(s, 3, json_number_value(value));
        code = code ? code : put_step(s, NULL);
    }
    return code;
}

static int put_issues(struct shk_history *history, const json_t *issues, long long run)
{
    size_t i;
    json_t *value;
    int code = SQLITE_OK;
    json_array_foreach(issues, i, value)
    {
        long long issue = 0;
        if (code || i >= PUT_ISSUES)
            break;
        code = put_shared(history, HISTORY_ISSUE_ADD, HISTORY_ISSUE_GET, value, &issue);
        sqlite3_stmt *s = code ? NULL : put_statement(history, HISTORY_RUN_ISSUE_ADD, &code);
        code = code ? code : sqlite3_bind_int64(s, 1, run);
        code = code ? code : sqlite3_bind_int64(s, 2, issue);
        code = code ? code : put_step(s, NULL);
    }
    return code;
}

int shk_history_put(struct shk_history *history, const struct shk_history_run *run, bool *new_p,
                    struct shk_error *err)
{
    long long id = 0;
    *new_p = false;
    if (json_object_size(run->states) > PUT_STATES)
        return shk_error_set(err, E2BIG, "%s: more than %d settings of %.64s", history->path,
                             PUT_STATES, run->node);
    int code = put_run(history, run, &id);
    if (!code && id)
        code = put_samples(history, run->metrics, id);
    if (!code && id)
        code = put_issues(history, run->issues, id);
    if (code)
        return history_error(history, code, err);
    *new_p = id != 0;
    return 0;
}

int shk_history_begin(struct shk_history *history, struct shk_error *err)
{
    int rc = history_exec(history, "BEGIN IMMEDIATE", err);
    history->writing = !rc;
    return rc;
}

int shk_history_commit(struct shk_history *history, struct shk_error *err)
{
    int rc = history_exec(history, "COMMIT", err);
    history->writing = history->writing && rc;
    return rc;
}

int shk_history_retain(struct shk_history *history, long long before, long long most,
                       struct shk_error *err)
{
    static const char *const forget[] = {
        PUT_OLD,
        PUT_HANGING("sample"),
        PUT_HANGING("run_issue"),
        "DELETE FROM issue WHERE id NOT IN (SELECT issue FROM run_issue) AND ?1 >= 0 AND ?2 >= 0",
        PUT_STATES_LEFT,
    };
    for (size_t i = 0; i < sizeof forget / sizeof *forget; i++) {
        sqlite3_stmt *s = NULL;
        int code = sqlite3_prepare_v2(history->db, forget[i], -1, &s, NULL);
        code = code ? code : sqlite3_bind_int64(s, 1, before < 0 ? 0 : before);
        code = code ? code : sqlite3_bind_int64(s, 2, most);
        code = code ? code : sqlite3_step(s);
        bool changed = code == SQLITE_DONE && sqlite3_changes(history->db) > 0;
        sqlite3_finalize(s);
        if (code != SQLITE_DONE)
            return history_error(history, code, err);
        if (i == 0 && !changed) /* nothing was forgotten: no need to look for what hung on it */
            return 0;
    }
    return 0;
}
