#include "cli/how.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool how_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

struct shk_report_options shk_how(const struct shk_options *options, bool to_stdout)
{
    struct shk_report_options how = {.width = 100,
                                     .unicode = how_utf8(),
                                     .verbose = options->verbose > 0,
                                     .anonymize = options->anonymize};
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (!to_stdout || !isatty(STDOUT_FILENO))
        return how;
    struct winsize size;
    how.color = !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        how.width = size.ws_col;
    return how;
}

static int how_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int shk_how_known(const char *path, const char *const *known, size_t count, struct shk_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.'), *sorted[16];
    struct shk_strbuf list = SHK_STRBUF_INIT;
    if (!dot || dot == name || !dot[1])
        return 0;
    for (size_t i = 0; i < count; i++)
        if (shk_how_extension(name, known[i]))
            return 0;
    count = count < sizeof sorted / sizeof *sorted ? count : sizeof sorted / sizeof *sorted;
    memcpy(sorted, known, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, how_cmp);
    for (size_t i = 0; i < count; i++)
        shk_strbuf_printf(&list, "%s%s", !i ? "" : i + 1 < count ? ", " : " and ", sorted[i]);
    int rc = shk_error_set(
        err, EINVAL, "-o %s: no format has the extension '%s'; known are %s (or give --format)",
        path, dot, shk_strbuf_text(&list));
    shk_strbuf_free(&list);
    return rc;
}

bool shk_how_extension(const char *path, const char *extension)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && extension && strcasecmp(dot, extension) == 0;
}
