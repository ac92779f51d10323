#include "probes/base/filestate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[SHK_FILE_STATES] = {
    [SHK_FILE_READABLE] = "readable", [SHK_FILE_MISSING] = "missing",
    [SHK_FILE_DANGLING] = "dangling", [SHK_FILE_LOOP] = "loop",
    [SHK_FILE_DENIED] = "denied",     [SHK_FILE_DIRECTORY] = "directory",
    [SHK_FILE_SPECIAL] = "special",   [SHK_FILE_OTHER] = "other",
};

const char *shk_file_state_name(enum shk_file_state state)
{
    return names[state];
}

static enum shk_file_state state_missing(const struct shk_host *host, const char *path, char *text,
                                         size_t size)
{
    char *target = NULL;
    if (shk_host_readlink(host, &target, NULL, "%s", path) != 0) {
        snprintf(text, size, "no such file");
        return SHK_FILE_MISSING;
    }
    snprintf(text, size, "a link to %s, which does not exist", target);
    free(target);
    return SHK_FILE_DANGLING;
}

static enum shk_file_state state_denied(const struct shk_host *host, const char *path, char *text,
                                        size_t size)
{
    struct stat st;
    if (shk_host_stat(host, path, &st) == 0)
        snprintf(text, size, "no permission to read it (mode %03o, owner %u)",
                 (unsigned)st.st_mode & 07777, (unsigned)st.st_uid);
    else
        snprintf(text, size, "no permission to enter a directory on the way to it");
    return SHK_FILE_DENIED;
}

static enum shk_file_state state_kind(const struct shk_host *host, const char *path, char *text,
                                      size_t size)
{
    struct stat st;
    bool dir = shk_host_stat(host, path, &st) == 0 && S_ISDIR(st.st_mode);
    snprintf(text, size, dir ? "a directory, not a file" : "not a regular file");
    return dir ? SHK_FILE_DIRECTORY : SHK_FILE_SPECIAL;
}

enum shk_file_state shk_file_state(const struct shk_host *host, const char *path, char *text,
                                   size_t size)
{
    char none[1];
    int fd, rc = shk_host_open_file(host, path, &fd, NULL);
    if (!text) {
        text = none;
        size = sizeof none;
    }
    text[0] = '\0';
    switch (rc) {
    case 0: close(fd); return SHK_FILE_READABLE;
    case -ENOENT:
    case -ENOTDIR: return state_missing(host, path, text, size);
    case -ELOOP: snprintf(text, size, "symbolic links in a circle"); return SHK_FILE_LOOP;
    case -EACCES:
    case -EPERM: return state_denied(host, path, text, size);
    case -EINVAL: return state_kind(host, path, text, size);
    default: snprintf(text, size, "%s", strerror(-rc)); return SHK_FILE_OTHER;
    }
}
