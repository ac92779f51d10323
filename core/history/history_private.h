#ifndef SHK_CORE_HISTORY_PRIVATE_H
#define SHK_CORE_HISTORY_PRIVATE_H

#include "core/history/history.h"

#include <sqlite3.h>

/* Prepared statements, by what they are for. */
enum history_statement {
    HISTORY_NAME_ADD,
    HISTORY_NAME_GET,
    HISTORY_STATES_ADD,
    HISTORY_STATES_GET,
    HISTORY_ISSUE_ADD,
    HISTORY_ISSUE_GET,
    HISTORY_RUN_ADD,
    HISTORY_SAMPLE_ADD,
    HISTORY_RUN_ISSUE_ADD,
    HISTORY_STATEMENTS
};

struct shk_history {
    sqlite3 *db;
    char *path; /* for messages */
    sqlite3_stmt *statements[HISTORY_STATEMENTS];
    bool writing; /* inside of a transaction */
};

/* One line about the last error of SQLite: negative errno. */
int history_error(const struct shk_history *history, int code, struct shk_error *err);

/* Runs SQL without results. */
int history_exec(struct shk_history *history, const char *sql, struct shk_error *err);

#endif
