#include "fuzz.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char fuzz_dir[256];

static int fuzz_call(char *const *argv)
{
    pid_t pid;
    int status = -1;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
        waitpid(pid, &status, 0);
    return status;
}

static void fuzz_remove(void)
{
    char *const argv[] = {"rm", "-rf", "--", fuzz_dir, NULL};
    fuzz_call(argv);
}

const char *shk_fuzz_dir(const char *from)
{
    if (*fuzz_dir)
        return fuzz_dir;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
    snprintf(fuzz_dir, sizeof fuzz_dir, "%s/shk-fuzz-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(fuzz_dir)) {
        *fuzz_dir = '\0';
        return fuzz_dir;
    }
    atexit(fuzz_remove);
    if (from) {
        char source[1024];
        snprintf(source, sizeof source, "%s/.", from);
        char *const argv[] = {"cp", "-a", "--", source, fuzz_dir, NULL};
        if (fuzz_call(argv) != 0)
            abort();
    }
    return fuzz_dir;
}

int shk_fuzz_put(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    size_t n = f ? fwrite(data, 1, size, f) : 0;
    return f && fclose(f) == 0 && n == size ? 0 : -1;
}
