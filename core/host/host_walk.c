/* openat2(RESOLVE_IN_ROOT) for kernels before 5.6 and for sandboxes that forbid it: one component
 * at a time, links read and followed here, so that nothing leads out of the root. */
#include "core/host/host_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { WALK_DEPTH = 64, WALK_LINKS = 40, WALK_PATH = 4096 };

struct walk {
    int dirs[WALK_DEPTH]; /* O_PATH; dirs[0] is the root, borrowed */
    unsigned depth;       /* index of the folder that we are in */
    unsigned links;
    char rest[WALK_PATH]; /* what is still to go */
};

static void walk_up_to(struct walk *w, unsigned depth)
{
    while (w->depth > depth)
        close(w->dirs[w->depth--]);
}

/* Puts the target of a link in front of what is still to go. */
static int walk_link(struct walk *w, int fd)
{
    char target[WALK_PATH];
    ssize_t len = readlinkat(fd, "", target, sizeof target);
    size_t rest = strlen(w->rest);
    if (len < 0)
        return -errno;
    if (++w->links > WALK_LINKS)
        return -ELOOP;
    if (len == 0 || (size_t)len + 1 + rest >= WALK_PATH)
        return len ? -ENAMETOOLONG : -ENOENT;
    if (*target == '/')
        walk_up_to(w, 0);
    memmove(w->rest + len + 1, w->rest, rest + 1);
    memcpy(w->rest, target, (size_t)len);
    w->rest[len] = '/';
    if (!rest)
        w->rest[len] = '\0';
    return 0;
}

/* Takes the next component off; "" at the end. */
static int walk_next(struct walk *w, char *name, size_t size)
{
    char *p = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(p, "/");
    if (len >= size)
        return -ENAMETOOLONG;
    memcpy(name, p, len);
    name[len] = '\0';
    memmove(w->rest, p + len, strlen(p + len) + 1);
    return 0;
}

/* One component that is neither "." nor "..". 0: go on; else the descriptor at the end + 1, or a
 * negative errno. */
static int walk_enter(struct walk *w, const char *name, int flags)
{
    struct stat st;
    bool last = !*w->rest;
    int fd = openat(w->dirs[w->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) ? -errno : 0;
    if (rc == 0 && S_ISLNK(st.st_mode) && !(last && flags & O_NOFOLLOW)) {
        rc = walk_link(w, fd);
    } else if (rc == 0 && S_ISDIR(st.st_mode) && w->depth + 1 < WALK_DEPTH) {
        w->dirs[++w->depth] = fd;
        return 0;
    } else if (rc == 0 && !last) {
        rc = S_ISDIR(st.st_mode) ? -ENAMETOOLONG : -ENOTDIR;
    } else if (rc == 0) {
        int end = openat(w->dirs[w->depth], name, flags | O_NOFOLLOW | O_CLOEXEC);
        rc = end < 0 ? -errno : end + 1;
    }
    close(fd);
    return rc;
}

static int walk_run(struct walk *w, int flags)
{
    char name[256];
    for (;;) {
        int rc = walk_next(w, name, sizeof name);
        if (rc < 0)
            return rc;
        if (!*name) {
            int fd = openat(w->dirs[w->depth], ".", flags | O_CLOEXEC);
            return fd < 0 ? -errno : fd + 1;
        }
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            walk_up_to(w, w->depth ? w->depth - 1 : 0);
            continue;
        }
        rc = walk_enter(w, name, flags);
        if (rc)
            return rc;
    }
}

int shk_host_walk(int root, const char *path, int flags)
{
    struct walk w = {.dirs = {root}};
    if (strlen(path) >= sizeof w.rest) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(w.rest, path);
    int rc = walk_run(&w, flags);
    walk_up_to(&w, 0);
    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    return rc - 1;
}
