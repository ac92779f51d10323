#include "cli/output.h"

#include "cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void shk_say(const char *fmt, ...)
{
    struct shk_error line;
    va_list args;
    va_start(args, fmt);
    vsnprintf(line.text, sizeof line.text, fmt, args);
    va_end(args);
    shk_progress_clear();
    fprintf(stderr, "shakedown: %s\n", line.text);
}

int shk_output_begin(struct shk_output *out, struct shk_error *err)
{
    *out = (struct shk_output){0};
    out->stream = open_memstream(&out->text, &out->len);
    return out->stream ? 0 : shk_error_sys(err, errno, "output");
}

static int output_write(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int shk_output_finish(struct shk_output *out, const char *path, struct shk_error *err)
{
    bool to_stdout = !path || strcmp(path, "-") == 0;
    const char *name = to_stdout ? "standard output" : path;
    int fd = -1, rc = fclose(out->stream) ? -errno : 0;
    out->stream = NULL;
    shk_progress_clear();
    if (rc) {
        shk_error_sys(err, -rc, "output");
        goto out;
    }
    fd = to_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        rc = shk_error_sys(err, errno, "%s", name);
        goto out;
    }
    rc = output_write(fd, out->text, out->len);
    /* close() is where network file systems report a full disk */
    if (!to_stdout && close(fd) != 0 && !rc)
        rc = -errno;
    if (rc)
        shk_error_sys(err, -rc, "%s", name);
out:
    shk_output_discard(out);
    return rc;
}

void shk_output_discard(struct shk_output *out)
{
    if (out->stream)
        fclose(out->stream);
    free(out->text);
    *out = (struct shk_output){0};
}
