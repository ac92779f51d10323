/* The files that a process has mapped, opened from outside of its root. */
#include "core/run/isolate.h"
#include "probes/hang/hang_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MODULES_HEADER = 1024 };

bool hang_is_named(const char *path, const char *const *names)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (; names && *names; names++)
        if (strncmp(name, *names, strlen(*names)) == 0)
            return true;
    return false;
}

/* Does the file begin as what is mapped? Another one may have taken its place. */
static int modules_is_mapped(long pid, const struct hang_region *region, int fd)
{
    unsigned char file[MODULES_HEADER], memory[MODULES_HEADER];
    struct iovec local = {memory, sizeof memory},
                 remote = {(void *)(uintptr_t)region->start, sizeof memory};
    ssize_t got = pread(fd, file, sizeof file, 0);
    if (got <= 0)
        return got ? errno : ENODATA;
    ssize_t there = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
    if (there < 0)
        return errno;
    return there >= got && memcmp(file, memory, (size_t)got) == 0 ? 0 : ESTALE;
}

static int modules_open_one(const struct shk_host *host, long pid, const struct hang_region *region,
                            int *fd_p)
{
    char *path = shk_strf("/proc/%ld/root%s", pid, region->path);
    int fd = -1, error = region->deleted ? ESTALE : path ? 0 : ENOMEM;
    shk_crumb_call("%s", region->path);
    if (!error)
        error = -shk_host_open_file(host, path, &fd, NULL);
    if (!error)
        error = modules_is_mapped(pid, region, fd);
    if (error && fd >= 0)
        close(fd);
    free(path);
    *fd_p = error ? -1 : fd;
    return error;
}

size_t hang_modules_open(const struct shk_host *host, long pid, const struct hang_maps *maps,
                         const char *const *names, struct hang_module *modules, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < maps->count && count < most; i++) {
        const struct hang_region *region = &maps->regions[i];
        if (region->offset || *region->path != '/' || strncmp(region->path, "/dev/", 5) == 0 ||
            (names ? !hang_is_named(region->path, names) : region->deleted))
            continue;
        int fd, error = modules_open_one(host, pid, region, &fd);
        if (!error || names)
            modules[count++] = (struct hang_module){
                .fd = fd, .error = error, .base = region->start, .path = region->path};
    }
    shk_crumb_clear();
    return count;
}
