#include "cli/output.h"

#include "core/redact/redact.h"
#include "core/run/clock.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line of shk_progress() stands on the terminal. */
static bool progress_shown;

static void progress_clear(void)
{
    if (!progress_shown)
        return;
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
    progress_shown = false;
}

void shk_say(const char *fmt, ...)
{
    struct shk_error line;
    va_list args;
    va_start(args, fmt);
    vsnprintf(line.text, sizeof line.text, fmt, args);
    va_end(args);
    progress_clear();
    char *clean = shk_redact(line.text);
    fprintf(stderr, "shakedown: %s\n", clean ? clean : "out of memory");
    free(clean);
}

/* Seconds between two lines where none can be erased: a log of a job, a pipe. */
#define PROGRESS_EVERY 10.0

/* Columns of the terminal on stderr; 0: there is none that can erase a line. */
static int progress_columns(void)
{
    const char *term = getenv("TERM");
    struct winsize size;
    if (!isatty(STDERR_FILENO) || !term || strcmp(term, "dumb") == 0)
        return 0;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

void shk_progress(const char *text, bool verbose)
{
    static double first, said;
    int columns = progress_columns();
    if (verbose) {
        shk_say("%s", text);
        return;
    }
    first = first > 0 ? first : shk_clock_s();
    double s = shk_clock_s() - first;
    if (!columns) {
        if (s - said >= PROGRESS_EVERY) {
            said = s;
            shk_say("%.0f s: %s", s, text);
        }
        return;
    }
    fprintf(stderr, "\r\x1b[K%5.1f s  %.*s", s, columns - 10, text);
    fflush(stderr);
    progress_shown = true;
}

void shk_tell(const char *text)
{
    progress_clear();
    fputs(text, stderr);
}

/* May a file be made in the folder of `path`? */
static int output_folder(const char *path)
{
    struct stat st;
    char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;
    if (!folder)
        return -ENOMEM;
    if (slash)
        slash[slash == folder] = '\0';
    const char *place = slash ? folder : ".";
    int rc = stat(place, &st) ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
    if (!rc && faccessat(AT_FDCWD, place, W_OK | X_OK, AT_EACCESS) != 0)
        rc = -errno;
    free(folder);
    return rc;
}

/* Our own file is replaced, whatever its mode. */
static int output_existing(const char *path, const struct stat *st)
{
    if (S_ISDIR(st->st_mode))
        return -EISDIR;
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
        return 0;
    int rc = -errno;
    bool own = S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1;
    return rc == -EACCES && own ? output_folder(path) : rc;
}

int shk_output_check(const char *path, struct shk_error *err)
{
    struct stat st;
    int rc = 0;
    if (strcmp(path, "-") == 0)
        return 0;
    size_t len = strlen(path);
    bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    if (link && geteuid() == 0 && st.st_uid != 0)
        rc = -EPERM;
    else if (stat(path, &st) == 0)
        rc = output_existing(path, &st);
    else if (!len || path[len - 1] == '/')
        rc = !len ? -ENOENT : -EISDIR;
    else if (!link) /* of a link to nowhere only writing tells */
        rc = errno == ENOENT ? output_folder(path) : -errno;
    return rc ? shk_error_sys(err, -rc, "%s", path) : 0;
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

static int output_close(int fd, int rc)
{
    /* close() is where network file systems report a full disk */
    return close(fd) != 0 && !rc ? -errno : rc;
}

static int output_in_place(const struct shk_output *out, const char *path, bool link)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (link ? 0 : O_NOFOLLOW), 0666);
    return fd < 0 ? -errno : output_close(fd, output_write(fd, out->text, out->len));
}

/* Mode of the file that is replaced, else what the umask says. */
static mode_t output_mode(const struct stat *old)
{
    mode_t mask = umask(0);
    umask(mask);
    return old ? old->st_mode & 07777 : 0666 & ~mask;
}

/* A reader (node_exporter, a browser) sees the old file or the new one, never half of it. */
static int output_replace(const struct shk_output *out, const char *path, const struct stat *old)
{
    char *temp = shk_strf("%s.XXXXXX", path);
    int fd = temp ? mkostemp(temp, O_CLOEXEC) : -1, rc = 0;
    if (fd < 0) {
        free(temp);
        return output_in_place(out, path, false);
    }
    if (fchmod(fd, output_mode(old)) != 0)
        rc = -errno;
    if (!rc)
        rc = output_write(fd, out->text, out->len);
    rc = output_close(fd, rc);
    if (!rc && rename(temp, path) != 0)
        rc = -errno;
    if (rc)
        unlink(temp);
    free(temp);
    /* a file that is mounted on its own, as a pod's termination log, cannot be replaced */
    return rc == -EBUSY ? output_in_place(out, path, false) : rc;
}

static int output_file(const struct shk_output *out, const char *path)
{
    struct stat st;
    bool exists = lstat(path, &st) == 0;
    if (!exists && errno != ENOENT)
        return -errno;
    if (!exists || (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid()))
        return output_replace(out, path, exists ? &st : NULL);
    /* a link, a device, somebody else's file */
    bool link = S_ISLNK(st.st_mode);
    if (link && geteuid() == 0 && st.st_uid != 0)
        return -EPERM; /* a user's link in /tmp would choose the file that root overwrites */
    return output_in_place(out, path, link);
}

/* A reader that has seen enough (`shakedown | head`) is no trouble of ours, and no news: what the
 * exit code says stays the verdict. */
static int output_stdout(const struct shk_output *out)
{
    int rc = output_write(STDOUT_FILENO, out->text, out->len);
    return rc == -EPIPE ? 0 : rc;
}

int shk_output_finish(struct shk_output *out, const char *path, struct shk_error *err)
{
    bool to_stdout = !path || strcmp(path, "-") == 0;
    const char *name = to_stdout ? "standard output" : path;
    int rc = fclose(out->stream) ? -errno : 0;
    out->stream = NULL;
    progress_clear();
    if (rc)
        shk_error_sys(err, -rc, "output");
    else if ((rc = to_stdout ? output_stdout(out) : output_file(out, path)))
        shk_error_sys(err, -rc, "%s", name);
    shk_output_discard(out);
    return rc;
}

bool shk_output_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

void shk_output_discard(struct shk_output *out)
{
    if (out->stream)
        fclose(out->stream);
    free(out->text);
    *out = (struct shk_output){0};
}
