#include "core/run/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool command_is(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *shk_command_find(const char *name, bool (*good)(const char *path))
{
    const char *path = getenv("PATH");
    char *list = path ? strdup(path) : NULL, *save = NULL, *found = NULL;
    for (char *folder = list ? strtok_r(list, ":", &save) : NULL; folder && !found;
         folder = strtok_r(NULL, ":", &save)) {
        char *program = *folder == '/' ? shk_strf("%s/%s", folder, name) : NULL;
        if (program && command_is(program) && (!good || good(program)))
            found = program;
        else
            free(program);
    }
    free(list);
    return found;
}

int shk_command_output(const char *path, const char *const *argv, size_t most,
                       struct shk_strbuf *out, int *status_p, struct shk_error *err)
{
    int ends[2];
    char chunk[65536];
    ssize_t got;
    if (pipe(ends))
        return shk_error_sys(err, errno, "pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(path, (char *const *)(const void *)argv);
        _exit(127);
    }
    close(ends[1]);
    while ((got = read(ends[0], chunk, sizeof chunk)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0 && out->len < most)
            shk_strbuf_add(out, chunk, (size_t)got);
    close(ends[0]);
    if (child < 0 || waitpid(child, status_p, 0) != child)
        return shk_error_sys(err, errno, "%s", path);
    return 0;
}
