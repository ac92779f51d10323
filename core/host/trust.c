#include "core/host/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRUST_MAX_LINKS = 40 }; /* as the kernel has it */

static int trust_judge(const char *path, const struct stat *st, struct shk_error *err)
{
    bool link = S_ISLNK(st->st_mode), sticky = S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX;
    bool group = st->st_mode & S_IWGRP && st->st_gid != 0, others = st->st_mode & S_IWOTH;
    if (st->st_uid != 0)
        return shk_error_set(err, EPERM, "%s belongs to user %u", path, (unsigned)st->st_uid);
    if (!link && !sticky && (group || others))
        return shk_error_set(err, EPERM, "%s is writable by %s", path,
                             others ? "everybody" : "its group");
    return 0;
}

/* Puts the target of the link at path[0..end) in the place of that part. */
static int trust_follow(char *path, size_t end, struct shk_error *err)
{
    char target[PATH_MAX], rest[PATH_MAX], link[PATH_MAX];
    snprintf(link, sizeof link, "%.*s", (int)end, path);
    snprintf(rest, sizeof rest, "%s", path + end);
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0)
        return shk_error_sys(err, errno, "%s", link);
    target[n] = '\0';
    size_t keep = *target == '/' ? 0 : (size_t)(strrchr(link, '/') - link) + 1;
    if (keep + (size_t)n + strlen(rest) >= PATH_MAX)
        return shk_error_sys(err, ENAMETOOLONG, "%s", link);
    memmove(path + keep, target, (size_t)n);
    memcpy(path + keep + n, rest, strlen(rest) + 1);
    return 0;
}

/* One walk from the root to the end or to the first link, which is then followed: 1. */
static int trust_walk(char *path, struct shk_error *err)
{
    for (size_t end = 0; path[end];) {
        char prefix[PATH_MAX];
        struct stat st;
        end += strspn(path + end, "/");
        end += strcspn(path + end, "/");
        snprintf(prefix, sizeof prefix, "%.*s", (int)end, path);
        if (lstat(prefix, &st) != 0)
            return errno == ENOENT || errno == ENOTDIR ? 0
                                                       : shk_error_sys(err, errno, "%s", prefix);
        int rc = trust_judge(prefix, &st, err);
        if (!rc && S_ISLNK(st.st_mode))
            rc = trust_follow(path, end, err) ? -EPERM : 1;
        if (rc)
            return rc;
    }
    return 0;
}

int shk_trust_path(const char *path, struct shk_error *err)
{
    char whole[PATH_MAX], here[PATH_MAX];
    int n = *path == '/'                ? snprintf(whole, sizeof whole, "%s", path)
            : getcwd(here, sizeof here) ? snprintf(whole, sizeof whole, "%s/%s", here, path)
                                        : -1;
    if (n < 0 || (size_t)n >= sizeof whole)
        return shk_error_sys(err, n < 0 ? ENOENT : ENAMETOOLONG, "%s", path);
    for (int links = 0; links < TRUST_MAX_LINKS; links++) {
        int rc = trust_walk(whole, err);
        if (rc <= 0)
            return rc;
    }
    return shk_error_sys(err, ELOOP, "%s", path);
}

int shk_trust_list(const char *list, const char *separators, struct shk_error *err)
{
    const char *p = list + strspn(list, "@");
    for (bool more = *p != '\0'; more;) {
        char item[PATH_MAX];
        size_t n = strcspn(p, separators), skip = *p == '+';
        size_t used = strcspn(p, "$");
        int len = (int)((used < n ? used : n) - skip);
        if (n >= sizeof item)
            return shk_error_sys(err, ENAMETOOLONG, "%.80s…", p);
        snprintf(item, sizeof item, "%.*s", len, p + skip);
        int rc = p[skip] == '$' ? 0 : shk_trust_path(*item ? item : ".", err);
        if (rc)
            return rc;
        more = p[n] != '\0';
        p += n + more;
    }
    return 0;
}
