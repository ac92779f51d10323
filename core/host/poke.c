#include "core/host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int shk_host_poke(const struct shk_host *host, const char *path, unsigned owner)
{
    struct stat st;
    int rc = 0;
    if (!shk_host_is_live(host))
        return -EPERM;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st))
        rc = -errno;
    else if (!S_ISFIFO(st.st_mode) || st.st_uid != owner)
        rc = -EPERM;
    else if (write(fd, "1", 1) != 1)
        rc = -errno;
    close(fd);
    return rc;
}
