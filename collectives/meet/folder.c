#include "collectives/meet/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder_names {
    char card[64], draft[96];
};

static struct folder_names folder_names(const unsigned char job[SHK_SHA256_BYTES])
{
    struct folder_names names;
    size_t n = (size_t)snprintf(names.card, sizeof names.card, "shakedown-");
    for (unsigned i = 0; i < 8; i++)
        n += (size_t)snprintf(names.card + n, sizeof names.card - n, "%02x", job[i]);
    snprintf(names.draft, sizeof names.draft, ".%s.%d", names.card, (int)getpid());
    return names;
}

static int folder_open(const char *folder, struct shk_error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? shk_error_sys(err, errno, "%s", folder) : fd;
}

int shk_folder_put(const char *folder, const unsigned char job[SHK_SHA256_BYTES], const char *card,
                   struct shk_error *err)
{
    struct folder_names names = folder_names(job);
    int dir = folder_open(folder, err);
    if (dir < 0)
        return dir;
    (void)unlinkat(dir, names.draft, 0);
    int rc = 0,
        fd = openat(dir, names.draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t len = strlen(card);
    if (fd < 0)
        rc = shk_error_sys(err, errno, "%s/%s", folder, names.draft);
    else if (write(fd, card, len) != (ssize_t)len || fsync(fd) ||
             renameat(dir, names.draft, dir, names.card))
        rc = shk_error_sys(err, errno, "%s/%s", folder, names.card);
    if (fd >= 0)
        close(fd);
    if (rc)
        (void)unlinkat(dir, names.draft, 0);
    close(dir);
    return rc;
}

/* Network file systems remember that a name was not there; listing the folder makes them ask. */
static void folder_refresh(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    if (list) {
        (void)readdir(list);
        closedir(list);
    } else if (fd >= 0) {
        close(fd);
    }
}

static int folder_read(int fd, const char *where, char **card_p, struct shk_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return shk_error_sys(err, errno, "%s", where);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
        return shk_error_set(err, EACCES,
                             "%s: not from rank 0 of this job: it belongs to uid %u, mode %04o",
                             where, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777u);
    char text[SHK_FOLDER_CARD + 1];
    ssize_t n = read(fd, text, sizeof text);
    if (n < 0)
        return shk_error_sys(err, errno, "%s", where);
    if ((size_t)n >= sizeof text || memchr(text, '\0', (size_t)n))
        return shk_error_set(err, EPROTO, "%s: no card of rank 0", where);
    if (n > 0 && !(*card_p = strndup(text, (size_t)n)))
        return shk_error_set(err, ENOMEM, "out of memory");
    return 0;
}

int shk_folder_get(const char *folder, const unsigned char job[SHK_SHA256_BYTES], char **card_p,
                   struct shk_error *err)
{
    struct folder_names names = folder_names(job);
    char where[512];
    int rc = 0, dir = folder_open(folder, err);
    *card_p = NULL;
    if (dir < 0)
        return dir;
    folder_refresh(dir);
    snprintf(where, sizeof where, "%s/%s", folder, names.card);
    int fd = openat(dir, names.card, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) {
        rc = folder_read(fd, where, card_p, err);
        close(fd);
    } else if (errno != ENOENT && errno != ESTALE) {
        rc = shk_error_sys(err, errno, "%s", where);
    }
    close(dir);
    return rc;
}

void shk_folder_drop(const char *folder, const unsigned char job[SHK_SHA256_BYTES])
{
    struct folder_names names = folder_names(job);
    struct shk_error err = {""};
    int dir = folder_open(folder, &err);
    if (dir < 0)
        return;
    (void)unlinkat(dir, names.card, 0);
    close(dir);
}
