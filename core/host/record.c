#include "core/host/record.h"

#include "core/host/record_private.h"
#include "core/text/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD_LINKS = 40 };

static int record_empty(const char *dir)
{
    DIR *d = opendir(dir);
    if (!d)
        return -errno;
    int rc = 0;
    for (struct dirent *e; !rc && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = -ENOTEMPTY;
    closedir(d);
    return rc;
}

int shk_record_begin(struct shk_host *host, const char *dir, struct shk_error *err)
{
    struct shk_record *record = NULL;
    if (!host->live)
        return shk_error_set(err, EINVAL, "capture %s: only a live host can be captured", dir);
    record = calloc(1, sizeof *record);
    if (!record || !(record->dir = strdup(dir))) {
        free(record);
        return shk_error_sys(err, ENOMEM, "capture");
    }
    record->fd = record->log = -1;
    int rc = 0;
    if (mkdir(dir, 0700) != 0)
        rc = errno == EEXIST ? record_empty(dir) : -errno;
    if (!rc && (record->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        rc = -errno;
    if (!rc && mkdirat(record->fd, ".shakedown", 0700) != 0)
        rc = -errno;
    if (!rc && (record->log = openat(record->fd, ".shakedown/log",
                                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0)
        rc = -errno;
    if (rc) {
        shk_record_close(record);
        return shk_error_sys(err, -rc, "capture %s", dir);
    }
    host->record = record;
    return 0;
}

void shk_record_close(struct shk_record *record)
{
    if (!record)
        return;
    if (record->log >= 0)
        close(record->log);
    if (record->fd >= 0)
        close(record->fd);
    free(record->dir);
    free(record);
}

/* One write(), so that lines of probes that run side by side do not mix. */
static void record_log(const struct shk_record *record, const char *fmt, ...) SHK_PRINTF(2, 3);
static void record_log(const struct shk_record *record, const char *fmt, ...)
{
    char line[PATH_MAX + 64];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, args);
    va_end(args);
    if (n <= 0 || (size_t)n >= sizeof line - 1 || strchr(line, '\n'))
        return;
    line[n] = '\n';
    ssize_t written = write(record->log, line, (size_t)n + 1);
    (void)written; /* a line that is lost is a fact that the replay lacks */
}

static void record_folders(const struct shk_record *record, const char *real)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", real);
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdirat(record->fd, path, 0755);
        *slash = '/';
    }
}

/* Processes of others are their own business. */
static bool record_is_private(const char *real)
{
    unsigned long pid;
    char after;
    return sscanf(real, "proc/%lu%c", &pid, &after) == 2 && after == '/' && pid != 1;
}

/* /proc/self leads to another process in each child, and in the replay. */
static bool record_is_folder(const char *real)
{
    return strcmp(real, "proc/self") == 0 || strcmp(real, "proc/thread-self") == 0;
}

/* Appends one component to real (no leading '/'); ".." takes one away. */
static bool record_step(char real[PATH_MAX], const char *name, size_t n)
{
    size_t len = strlen(real);
    if (n == 0 || (n == 1 && *name == '.'))
        return true;
    if (n == 2 && strncmp(name, "..", 2) == 0) {
        char *slash = strrchr(real, '/');
        *(slash ? slash : real) = '\0';
        return true;
    }
    return snprintf(real + len, PATH_MAX - len, "%s%.*s", len ? "/" : "", (int)n, name) <
           (int)(PATH_MAX - len);
}

/* Walks a path of the host without its links, which are made in the capture on the way. The last
 * component is followed unless nofollow. False when that is impossible. */
static bool record_walk(const struct shk_host *host, const char *path, bool nofollow,
                        char real[PATH_MAX])
{
    char rest[PATH_MAX], target[PATH_MAX], more[PATH_MAX];
    int links = 0;
    real[0] = '\0';
    snprintf(rest, sizeof rest, "%s", path);
    for (char *at = rest; at && *at;) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        bool last = at[n + strspn(at + n, "/")] == '\0';
        if (!record_step(real, at, n))
            return false;
        at += n;
        ssize_t got = *real && !record_is_folder(real) && !(last && nofollow)
                          ? readlinkat(host->fd, real, target, sizeof target - 1)
                          : -1;
        if (got < 0)
            continue;
        target[got] = '\0';
        if (++links > RECORD_LINKS || record_is_private(real))
            return false;
        record_folders(host->record, real);
        if (symlinkat(target, host->record->fd, real) != 0 && errno != EEXIST)
            return false;
        snprintf(more, sizeof more, "%s", at);
        if (snprintf(rest, sizeof rest, "%s%s", target, more) >= (int)sizeof rest)
            return false;
        char *slash = strrchr(real, '/');
        *(*target == '/' || !slash ? real : slash) = '\0';
        at = rest;
    }
    return *real && !record_is_private(real);
}

int shk_record_put(const struct shk_record *record, const char *name, const char *data, size_t len,
                   struct shk_error *err)
{
    record_folders(record, name);
    int fd = openat(record->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    int rc = fd < 0 ? -errno : 0;
    for (size_t at = 0; !rc && at < len;) {
        ssize_t n = write(fd, data + at, len - at);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        else if (n > 0)
            at += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return rc ? shk_error_sys(err, -rc, "capture %s/%s", record->dir, name) : 0;
}

/* The daemons that the replay has to find again. */
static bool record_is_daemon(const char *comm)
{
    static const char *const names[] = {"nv-fabricmanage", "nvidia-imex", "nvidia-persiste"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(comm, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

void shk_record_file(const struct shk_host *host, const char *path, const char *data, size_t len)
{
    char real[PATH_MAX];
    if (!host->record)
        return;
    if (!record_walk(host, path, false, real) &&
        !(record_is_private(real) && record_is_daemon(data)))
        return;
    if (shk_record_put(host->record, real, data, len, NULL) != 0)
        record_log(host->record, "E %d %s", EIO, path);
}

void shk_record_list(const struct shk_host *host, const char *path, char *const *names)
{
    char real[PATH_MAX], entry[PATH_MAX];
    if (!host->record || !record_walk(host, path, false, real))
        return;
    record_folders(host->record, real);
    mkdirat(host->record->fd, real, 0755);
    if (strcmp(real, "proc") == 0)
        return;
    for (; *names; names++) {
        char target[PATH_MAX];
        struct stat st;
        if (snprintf(entry, sizeof entry, "%s/%s", real, *names) >= (int)sizeof entry ||
            fstatat(host->fd, entry, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        ssize_t n =
            S_ISLNK(st.st_mode) ? readlinkat(host->fd, entry, target, sizeof target - 1) : 0;
        if (n > 0) {
            target[n] = '\0';
            if (symlinkat(target, host->record->fd, entry) != 0)
                continue;
        } else if (S_ISDIR(st.st_mode)) {
            mkdirat(host->record->fd, entry, 0755);
        } else {
            int fd = openat(host->record->fd, entry, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
            if (fd >= 0)
                close(fd);
        }
    }
}

void shk_record_link(const struct shk_host *host, const char *path)
{
    char real[PATH_MAX], target[PATH_MAX];
    if (!host->record || !record_walk(host, path, true, real))
        return;
    ssize_t n = readlinkat(host->fd, real, target, sizeof target - 1);
    if (n <= 0)
        return;
    target[n] = '\0';
    record_folders(host->record, real);
    if (symlinkat(target, host->record->fd, real) != 0 && errno != EEXIST)
        record_log(host->record, "E %d %s", errno, path);
}

void shk_record_stat(const struct shk_host *host, const char *path, const struct stat *st)
{
    char real[PATH_MAX];
    if (!host->record || !record_walk(host, path, false, real))
        return;
    record_folders(host->record, real);
    if (S_ISDIR(st->st_mode)) {
        mkdirat(host->record->fd, real, 0755);
    } else {
        int fd = openat(host->record->fd, real, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0)
            close(fd);
    }
    if (strncmp(real, "dev/", 4) == 0)
        record_log(host->record, "N %o %u %u %s", (unsigned)st->st_mode, (unsigned)st->st_uid,
                   (unsigned)st->st_gid, path);
}

void shk_record_error(const struct shk_host *host, const char *path, int errnum)
{
    if (host->record && errnum != ENOENT && errnum != ENOTDIR)
        record_log(host->record, "E %d %s", errnum, path);
}

void shk_record_asked(const struct shk_host *host, const char *variable)
{
    if (host->record)
        record_log(host->record, "V %s", variable);
}
