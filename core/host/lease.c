#include "core/host/host_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int shk_host_unused(const struct shk_host *host, const char *path, struct stat *st)
{
    struct sigaction quiet = {.sa_handler = SIG_IGN}, before;
    int rc = 0;
    if (!shk_host_is_live(host))
        return -ENODATA;
    if (lstat(path, st))
        return -errno;
    if (!S_ISREG(st->st_mode))
        return -EINVAL;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)sigaction(SIGIO, &quiet, &before);
    if (fcntl(fd, F_SETLEASE, F_WRLCK))
        rc = -errno;
    close(fd); /* which gives the lease back */
    (void)sigaction(SIGIO, &before, NULL);
    return rc;
}
