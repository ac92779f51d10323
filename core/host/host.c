#include "core/host/host.h"

#include "core/host/host_private.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int shk_host_open(struct shk_host **host_p, const char *sysroot, struct shk_error *err)
{
    bool live = !sysroot || strcmp(sysroot, "/") == 0;
    struct shk_host *host = calloc(1, sizeof *host);
    if (!host)
        return shk_error_sys(err, ENOMEM, "sysroot");
    host->fd = -1;
    host->live = live;
    host->root = strdup(live ? "/" : sysroot);
    if (!host->root) {
        shk_host_close(host);
        return shk_error_sys(err, ENOMEM, "sysroot");
    }
    host->fd = open(host->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host->fd < 0) {
        int rc = shk_error_sys(err, errno, "sysroot %s", host->root);
        shk_host_close(host);
        return rc;
    }
    if (!live) {
        int rc = faccessat(host->fd, ".", R_OK | X_OK, AT_EACCESS) ? errno : 0;
        if (!rc)
            rc = -shk_host_load_calls(host, err);
        else
            shk_error_sys(err, rc, "sysroot %s", host->root);
        if (rc) {
            shk_host_close(host);
            return -rc;
        }
    }
    *host_p = host;
    return 0;
}

void shk_host_close(struct shk_host *host)
{
    if (!host)
        return;
    int saved = errno;
    if (host->fd >= 0)
        close(host->fd);
    json_decref(host->calls);
    shk_record_close(host->record);
    free(host->root);
    free(host);
    errno = saved;
}

bool shk_host_is_live(const struct shk_host *host)
{
    return host->live;
}

const char *shk_host_root(const struct shk_host *host)
{
    return host->root;
}

/* The path below the root. */
static const char *host_relative(const char *path)
{
    path += strspn(path, "/");
    return *path ? path : ".";
}

int shk_host_openat(const struct shk_host *host, const char *path, int flags)
{
    path = host_relative(path);
    flags |= O_CLOEXEC;
    if (!(flags & O_PATH)) /* openat2() refuses the combination */
        flags |= O_NOCTTY;
    if (host->live)
        return openat(host->fd, path, flags);
    struct open_how how = {.flags = (unsigned)flags,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    /* A rename anywhere on the system makes a walk through ".." start over (openat2(2)). */
    int fd, tries = 10000;
    do
        fd = (int)syscall(SYS_openat2, host->fd, path, &how, sizeof how);
    while (fd < 0 && errno == EAGAIN && --tries);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = shk_host_walk(host->fd, path, flags);
    return fd;
}

int shk_host_open_file(const struct shk_host *host, const char *path, int *fd_p,
                       struct shk_error *err)
{
    /* O_NONBLOCK so that a FIFO in place of a file cannot hang us before fstat() refuses it. */
    int fd = shk_host_openat(host, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return shk_error_sys(err, errno, "%s", path);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return shk_error_set(err, EINVAL, "%s: not a regular file", path);
    }
    *fd_p = fd;
    return 0;
}

/* What a captured host answered in place of a content: a failure that a tree cannot hold. */
static int host_captured_error(const struct shk_host *host, const char *path)
{
    json_t *errors = json_object_get(host->calls, "errors");
    return (int)json_integer_value(json_object_get(errors, path));
}

static int host_read(const struct shk_host *host, const char *path, char **data_p, size_t *len_p,
                     struct shk_error *err)
{
    int fd, rc = host_captured_error(host, path);
    if (rc > 0)
        return shk_error_sys(err, rc, "%s", path);
    rc = shk_host_open_file(host, path, &fd, err);
    if (rc)
        return rc;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            rc = shk_error_sys(err, errno, "%s", path);
            break;
        }
        if (n == 0)
            break;
        if (sb.len + (size_t)n > SHK_HOST_MAX_READ) {
            rc =
                shk_error_set(err, EFBIG, "%s: larger than %zu MiB", path, SHK_HOST_MAX_READ >> 20);
            break;
        }
        shk_strbuf_add(&sb, chunk, (size_t)n);
    }
    close(fd);
    size_t len = sb.len;
    char *data = NULL;
    if (!rc && !(data = shk_strbuf_take(&sb)))
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    shk_strbuf_free(&sb);
    if (rc)
        return rc;
    *data_p = data;
    *len_p = len;
    return 0;
}

int shk_host_read(const struct shk_host *host, const char *path, char **data_p, size_t *len_p,
                  struct shk_error *err)
{
    size_t len = 0;
    int rc = host_read(host, path, data_p, &len, err);
    if (rc)
        shk_record_error(host, path, -rc);
    else
        shk_record_file(host, path, *data_p, len);
    if (!rc && len_p)
        *len_p = len;
    return rc;
}

/* Formats a path; NULL when out of memory. */
#define HOST_PATH(path, fmt)                                                                       \
    char *path = NULL;                                                                             \
    do {                                                                                           \
        va_list args_;                                                                             \
        va_start(args_, fmt);                                                                      \
        if (vasprintf(&path, fmt, args_) < 0)                                                      \
            path = NULL;                                                                           \
        va_end(args_);                                                                             \
    } while (0)

static int host_first_line(const struct shk_host *host, const char *path, char **line_p,
                           struct shk_error *err)
{
    char *data;
    int rc = shk_host_read(host, path, &data, NULL, err);
    if (rc)
        return rc;
    char *nl = strchr(data, '\n');
    if (nl)
        *nl = '\0';
    char *text = shk_trim(data);
    memmove(data, text, strlen(text) + 1);
    *line_p = data;
    return 0;
}

int shk_host_line(const struct shk_host *host, char **line_p, struct shk_error *err,
                  const char *pathf, ...)
{
    HOST_PATH(path, pathf);
    if (!path)
        return shk_error_sys(err, ENOMEM, "%s", pathf);
    int rc = host_first_line(host, path, line_p, err);
    free(path);
    return rc;
}

int shk_host_i64(const struct shk_host *host, long long *value_p, struct shk_error *err,
                 const char *pathf, ...)
{
    HOST_PATH(path, pathf);
    if (!path)
        return shk_error_sys(err, ENOMEM, "%s", pathf);
    char *line = NULL;
    int rc = host_first_line(host, path, &line, err);
    if (!rc) {
        char *end;
        errno = 0;
        bool hex = line[0] == '0' && (line[1] == 'x' || line[1] == 'X');
        long long value = strtoll(line, &end, hex ? 16 : 10);
        if (errno || end == line || *end)
            rc = shk_error_set(err, EINVAL, "%s: not an integer: '%.40s'", path, line);
        else
            *value_p = value;
    }
    free(line);
    free(path);
    return rc;
}

static int host_natural_cmp(const void *a, const void *b)
{
    const char *s = *(char *const *)a, *t = *(char *const *)b;
    while (*s && *t) {
        if (isdigit((unsigned char)*s) && isdigit((unsigned char)*t)) {
            while (*s == '0')
                s++;
            while (*t == '0')
                t++;
            size_t ns = strspn(s, "0123456789"), nt = strspn(t, "0123456789");
            int d = ns != nt ? (ns < nt ? -1 : 1) : memcmp(s, t, ns);
            if (d)
                return d;
            s += ns;
            t += nt;
        } else if (*s != *t) {
            return (unsigned char)*s < (unsigned char)*t ? -1 : 1;
        } else {
            s++;
            t++;
        }
    }
    if (*s || *t)
        return *s ? 1 : -1;
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int host_list_dir(DIR *dir, char ***names_p, size_t *count_p)
{
    size_t n = 0, cap = 16;
    char **names = calloc(cap, sizeof *names);
    struct dirent *e;
    while (names && (errno = 0, e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (n + 2 > cap) {
            char **more = realloc(names, (cap *= 2) * sizeof *names);
            if (!more)
                goto nomem;
            names = more;
        }
        if (!(names[n] = strdup(e->d_name)))
            goto nomem;
        names[++n] = NULL;
    }
    if (!names)
        return -ENOMEM;
    if (errno) {
        int rc = -errno;
        shk_host_list_free(names);
        return rc;
    }
    qsort(names, n, sizeof *names, host_natural_cmp);
    *names_p = names;
    if (count_p)
        *count_p = n;
    return 0;
nomem:
    names[n] = NULL;
    shk_host_list_free(names);
    return -ENOMEM;
}

int shk_host_list(const struct shk_host *host, char ***names_p, size_t *count_p,
                  struct shk_error *err, const char *pathf, ...)
{
    HOST_PATH(path, pathf);
    if (!path)
        return shk_error_sys(err, ENOMEM, "%s", pathf);
    int rc = host_captured_error(host, path);
    int fd = rc ? -1 : shk_host_openat(host, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0) {
        rc = shk_error_sys(err, rc ? rc : errno, "%s", path);
    } else {
        DIR *dir = fdopendir(fd);
        if (!dir) {
            rc = shk_error_sys(err, errno, "%s", path);
            close(fd);
        } else {
            rc = host_list_dir(dir, names_p, count_p);
            if (rc)
                shk_error_sys(err, -rc, "%s", path);
            closedir(dir);
        }
    }
    if (rc)
        shk_record_error(host, path, -rc);
    else
        shk_record_list(host, path, *names_p);
    free(path);
    return rc;
}

void shk_host_list_free(char **names)
{
    for (char **p = names; p && *p; p++)
        free(*p);
    free(names);
}

int shk_host_readlink(const struct shk_host *host, char **target_p, struct shk_error *err,
                      const char *pathf, ...)
{
    HOST_PATH(path, pathf);
    if (!path)
        return shk_error_sys(err, ENOMEM, "%s", pathf);
    int rc = 0;
    char buf[4096];
    int fd = host->live ? -1 : shk_host_openat(host, path, O_PATH | O_NOFOLLOW);
    ssize_t n = host->live ? readlinkat(host->fd, host_relative(path), buf, sizeof buf - 1)
                : fd < 0   ? -1
                           : readlinkat(fd, "", buf, sizeof buf - 1);
    if (n < 0) {
        /* readlinkat() on something that is no link says ENOENT with an empty path */
        int e = fd >= 0 && errno == ENOENT ? EINVAL : errno;
        rc = shk_error_sys(err, e, "%s", path);
    } else {
        buf[n] = '\0';
        shk_record_link(host, path);
        char *target = strdup(buf);
        if (target)
            *target_p = target;
        else
            rc = shk_error_sys(err, ENOMEM, "%s", path);
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}

/* Captures cannot hold device nodes; hostcalls.json gives their real type, mode and owner. */
static void host_apply_node(const struct shk_host *host, const char *path, struct stat *st)
{
    json_t *node = json_object_get(json_object_get(host->calls, "nodes"), path);
    const char *mode = json_string_value(json_object_get(node, "mode"));
    if (!mode)
        return;
    mode_t bits = (mode_t)strtoul(mode, NULL, 8);
    st->st_mode = (bits & S_IFMT ? bits & S_IFMT : S_IFCHR) | (bits & 07777);
    st->st_uid = (uid_t)json_integer_value(json_object_get(node, "uid"));
    st->st_gid = (gid_t)json_integer_value(json_object_get(node, "gid"));
}

static int host_captured_stat(const struct shk_host *host, const char *path, struct stat *st)
{
    int fd = shk_host_openat(host, path, O_PATH);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, st) ? -errno : 0;
    close(fd);
    if (!rc)
        host_apply_node(host, path, st);
    return rc;
}

int shk_host_stat(const struct shk_host *host, const char *path, struct stat *st)
{
    int rc;
    if (!host->live)
        rc = host_captured_stat(host, path, st);
    else
        rc = fstatat(host->fd, host_relative(path), st, AT_NO_AUTOMOUNT) ? -errno : 0;
    if (!rc)
        shk_record_stat(host, path, st);
    return rc;
}

bool shk_host_exists(const struct shk_host *host, const char *pathf, ...)
{
    HOST_PATH(path, pathf);
    struct stat st;
    bool yes = path && shk_host_stat(host, path, &st) == 0;
    free(path);
    return yes;
}

static bool host_captured_in_group(const json_t *ids, gid_t gid)
{
    if ((gid_t)json_integer_value(json_object_get(ids, "gid")) == gid)
        return true;
    size_t i;
    json_t *group;
    json_array_foreach(json_object_get(ids, "groups"), i, group)
    {
        if ((gid_t)json_integer_value(group) == gid)
            return true;
    }
    return false;
}

static int host_captured_access(const struct shk_host *host, const struct stat *st)
{
    json_t *ids = json_object_get(host->calls, "ids");
    json_t *euid = json_object_get(ids, "euid");
    unsigned need = 06, shift = 0;
    if (json_is_integer(euid)) {
        if (json_integer_value(euid) == 0)
            return 0;
        if ((uid_t)json_integer_value(euid) == st->st_uid)
            shift = 6;
        else if (host_captured_in_group(ids, st->st_gid))
            shift = 3;
    }
    return ((st->st_mode >> shift) & need) == need ? 0 : -EACCES;
}

int shk_host_access_rw(const struct shk_host *host, const char *path)
{
    if (host->live) {
        const char *rel = path;
        while (*rel == '/')
            rel++;
        return faccessat(host->fd, *rel ? rel : ".", R_OK | W_OK, AT_EACCESS) ? -errno : 0;
    }
    struct stat st;
    int rc = shk_host_stat(host, path, &st);
    return rc ? rc : host_captured_access(host, &st);
}
