/* Preloaded. Reads of files whose path holds $FAKE_FILES_PATH fail or never return, as on a broken
 * disk, a file system that refuses, or a network file system whose server is gone. Anonymous
 * mappings above $FAKE_FILES_MEMORY bytes fail, as when memory is out. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t read(int fd, void *data, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    const char *part = getenv("FAKE_FILES_PATH"), *fault = getenv("FAKE_FILES_FAULT");
    char link[64], path[4096] = "";
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (part && fault && readlink(link, path, sizeof path - 1) > 0 && strstr(path, part)) {
        while (strcmp(fault, "hang") == 0)
            pause();
        errno = strcmp(fault, "EIO") == 0 ? EIO : EACCES;
        return -1;
    }
    return real(fd, data, size);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    const char *limit = getenv("FAKE_FILES_MEMORY");
    if (limit && (flags & MAP_ANONYMOUS) && size > strtoull(limit, NULL, 10)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}
