#include "core/history/history_private.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* How long a writer waits for the others; "SHKD" as application_id tells our file from others. */
enum { HISTORY_BUSY_MS = 60000, HISTORY_APPLICATION = 0x53484b44 };

/* In the order of sqlite_schema: by name. SQLite keeps the text as it is. */
static const char *const schema[] = {
    "CREATE TABLE issue(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL)",
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE)",
    "CREATE TABLE run(id INTEGER PRIMARY KEY, node INTEGER NOT NULL, start INTEGER NOT NULL, "
    "seconds REAL, job TEXT, verdict TEXT NOT NULL, profile INTEGER, kind INTEGER, states INTEGER, "
    "UNIQUE(node, start))",
    "CREATE TABLE run_issue(run INTEGER NOT NULL, issue INTEGER NOT NULL, PRIMARY KEY(run, issue)) "
    "WITHOUT ROWID",
    "CREATE TABLE sample(run INTEGER NOT NULL, metric INTEGER NOT NULL, value REAL NOT NULL, "
    "PRIMARY KEY(run, metric)) WITHOUT ROWID",
    "CREATE TABLE states(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, text TEXT NOT NULL)",
};
enum { HISTORY_TABLES = sizeof schema / sizeof *schema };

const char *shk_history_network(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } known[] = {
        {0x6969, "NFS"},        {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
        {0x19830326, "BeeGFS"}, {0x00C36400, "Ceph"},   {0xFF534D42, "CIFS"},
        {0xFE534D42, "SMB"},    {0x517B, "SMB"},        {0x5346414F, "AFS"},
        {0x6B414653, "AFS"},    {0x01021997, "9P"},     {0xAAD7AAEA, "PanFS"},
        {0x7461636F, "OCFS2"},  {0x01161970, "GFS2"},   {0x73757245, "Coda"},
        {0x65735546, "FUSE"},   {0x564C, "NCP"},        {0x20030528, "OrangeFS"},
        {0x013111A8, "IBRIX"},  {0xBACBACBC, "VMHGFS"}, {0x6B616665, "kAFS"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == (type & 0xFFFFFFFF))
            return known[i].name;
    return NULL;
}

int history_error(const struct shk_history *history, int code, struct shk_error *err)
{
    const char *path = history->path;
    switch (code & 0xff) {
    case SQLITE_NOTADB: return shk_error_set(err, EINVAL, "%s: not a history database", path);
    case SQLITE_CORRUPT:
        return shk_error_set(err, EINVAL, "%s: the database is damaged (%s)", path,
                             sqlite3_errstr(code));
    case SQLITE_READONLY:
        if (code == SQLITE_READONLY_ROLLBACK)
            return shk_error_set(err, EPERM,
                                 "%s: a writer was killed in the middle; whoever may write the "
                                 "file has to open it once",
                                 path);
        /* fall through */
    case SQLITE_PERM:
        return shk_error_set(err, EPERM, "%s: may not be written: %s", path, sqlite3_errstr(code));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return shk_error_set(err, EBUSY, "%s: another program has held the database for %d s", path,
                             HISTORY_BUSY_MS / 1000);
    case SQLITE_FULL: return shk_error_set(err, ENOSPC, "%s: %s", path, strerror(ENOSPC));
    case SQLITE_NOMEM: return shk_error_sys(err, ENOMEM, "%s", path);
    case SQLITE_IOERR: return shk_error_set(err, EIO, "%s: %s", path, sqlite3_errstr(code));
    default: return shk_error_set(err, EINVAL, "%s: %s", path, sqlite3_errstr(code));
    }
}

int history_exec(struct shk_history *history, const char *sql, struct shk_error *err)
{
    int code = sqlite3_exec(history->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? 0 : history_error(history, code, err);
}

/* A number that a pragma gives. */
static int open_pragma(struct shk_history *history, const char *sql, int *value_p,
                       struct shk_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(history->db, sql, -1, &statement, NULL);
    code = code ? code : sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *value_p = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? 0 : history_error(history, code, err);
}

/* Are the tables ours, and nothing else: no view, no trigger? */
static int open_compare(struct shk_history *history, bool *same_p, bool *empty_p,
                        struct shk_error *err)
{
    static const char sql[] = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    sqlite3_stmt *statement = NULL;
    size_t at = 0;
    bool same = true;
    int code = sqlite3_prepare_v2(history->db, sql, -1, &statement, NULL);
    while (!code && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        same = same && at < HISTORY_TABLES && text && strcmp(text, schema[at]) == 0;
        at++;
        code = 0;
    }
    sqlite3_finalize(statement);
    *same_p = same && at == HISTORY_TABLES;
    *empty_p = at == 0;
    return code == SQLITE_DONE ? 0 : history_error(history, code, err);
}

static int open_make(struct shk_history *history, struct shk_error *err)
{
    char text[96];
    int rc = 0;
    for (size_t i = 0; i < HISTORY_TABLES && !rc; i++)
        rc = history_exec(history, schema[i], err);
    snprintf(text, sizeof text, "PRAGMA application_id=%d; PRAGMA user_version=%d",
             HISTORY_APPLICATION, SHK_HISTORY_VERSION);
    return rc ? rc : history_exec(history, text, err);
}

static int open_schema(struct shk_history *history, bool write, struct shk_error *err)
{
    int application = 0, version = 0;
    bool same = false, empty = false;
    int rc = write ? history_exec(history, "BEGIN IMMEDIATE", err) : 0;
    rc = rc ? rc : open_pragma(history, "PRAGMA application_id", &application, err);
    rc = rc ? rc : open_pragma(history, "PRAGMA user_version", &version, err);
    rc = rc ? rc : open_compare(history, &same, &empty, err);
    if (rc)
        return rc;
    if (write && empty && !application && !version)
        rc = open_make(history, err);
    else if (application != HISTORY_APPLICATION)
        rc = shk_error_set(err, EINVAL, "%s: %s", history->path,
                           empty ? "empty, no history database"
                                 : "an SQLite database of another program");
    else if (version > SHK_HISTORY_VERSION)
        rc = shk_error_set(err, EINVAL,
                           "%s: written by a newer shakedown (schema %d, this one knows %d)",
                           history->path, version, SHK_HISTORY_VERSION);
    else if (version != SHK_HISTORY_VERSION || !same)
        rc = shk_error_set(err, EINVAL, "%s: not the schema of a history database (version %d)",
                           history->path, version);
    if (write && !rc)
        rc = history_exec(history, "COMMIT", err);
    return rc;
}

/* Directory without links and the name in it: SQLite then refuses a link at the end of the way. */
static char *open_real(const char *path, struct shk_error *err)
{
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strlen(path) >= sizeof folder || !*name) {
        shk_error_set(err, EINVAL, "%s: not the name of a file", path);
        return NULL;
    }
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    if (!realpath(folder, real)) {
        shk_error_sys(err, errno, "%s", path);
        return NULL;
    }
    char *whole = shk_strf("%s%s%s", strcmp(real, "/") ? real : "", "/", name);
    if (!whole)
        shk_error_sys(err, ENOMEM, "%s", path);
    return whole;
}

/* What may be known of the file before SQLite sees it. */
static int open_check(const char *real, const char *path, bool write, struct shk_error *err)
{
    struct stat st;
    struct statfs fs;
    int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(real, flags | O_RDONLY);
    if (fd < 0 && errno == ENOENT && write) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(real, '/') - real) + 1, real);
        if (statfs(folder, &fs) == 0 && shk_history_network((unsigned long)fs.f_type))
            return shk_error_set(err, ENOTSUP,
                                 "%s: on a network file system (%s), where locks "
                                 "cannot be relied on; use a local disk",
                                 path, shk_history_network((unsigned long)fs.f_type));
        fd = open(real, flags | O_CREAT | O_RDWR, 0644);
    }
    if (fd < 0)
        return errno == ELOOP
                   ? shk_error_set(err, EINVAL, "%s: a symbolic link; name the file itself", path)
                   : shk_error_sys(err, errno, "%s", path);
    int rc = 0;
    if (fstat(fd, &st) || fstatfs(fd, &fs))
        rc = shk_error_sys(err, errno, "%s", path);
    else if (!S_ISREG(st.st_mode))
        rc = shk_error_set(err, EINVAL, "%s: not a regular file", path);
    else if (st.st_mode & S_IWOTH)
        rc = shk_error_set(err, EPERM, "%s: everybody may write it (mode %04o): chmod o-w %s", path,
                           (unsigned)st.st_mode & 07777, path);
    else if (shk_history_network((unsigned long)fs.f_type))
        rc = shk_error_set(err, ENOTSUP,
                           "%s: on a network file system (%s), where locks cannot "
                           "be relied on; use a local disk",
                           path, shk_history_network((unsigned long)fs.f_type));
    else if (write && faccessat(AT_FDCWD, real, W_OK, AT_EACCESS))
        rc = shk_error_sys(err, errno, "%s", path);
    close(fd);
    return rc;
}

/* As https://sqlite.org/security.html has it for files from others. */
static int open_defend(struct shk_history *history, struct shk_error *err)
{
    static const int on[] = {SQLITE_DBCONFIG_DEFENSIVE},
                     off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW};
    sqlite3_limit(history->db, SQLITE_LIMIT_LENGTH, 16 << 20);
    sqlite3_busy_timeout(history->db, HISTORY_BUSY_MS);
    for (size_t i = 0; i < sizeof on / sizeof *on; i++)
        sqlite3_db_config(history->db, on[i], 1, NULL);
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        sqlite3_db_config(history->db, off[i], 0, NULL);
    return history_exec(history, "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0", err);
}

int shk_history_open(struct shk_history **history_p, const char *path, bool write,
                     struct shk_error *err)
{
    bool memory = strcmp(path, ":memory:") == 0;
    struct shk_history *history = calloc(1, sizeof *history);
    char *real = memory ? strdup(path) : open_real(path, err);
    int rc = !history || (memory && !real) ? shk_error_sys(err, ENOMEM, "%s", path)
             : real                        ? 0
                                           : -EINVAL;
    if (!rc && !memory)
        rc = open_check(real, path, write, err);
    if (!rc && !(history->path = strdup(path)))
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    if (!rc) {
        /* one who may write can roll back what a killed writer left */
        bool may = memory || write || faccessat(AT_FDCWD, real, W_OK, AT_EACCESS) == 0;
        int flags = may ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
        int code = sqlite3_open_v2(real, &history->db,
                                   flags | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX, NULL);
        rc = code ? history_error(history, code, err) : open_defend(history, err);
    }
    rc = rc ? rc : open_schema(history, write, err);
    free(real);
    if (rc) {
        shk_history_close(history);
        return rc;
    }
    *history_p = history;
    return 0;
}

void shk_history_close(struct shk_history *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < HISTORY_STATEMENTS; i++)
        sqlite3_finalize(history->statements[i]);
    sqlite3_close(history->db);
    free(history->path);
    free(history);
}
