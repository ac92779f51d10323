#include "cli/how.h"

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

bool shk_how_extension(const char *path, const char *extension)
{
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot && extension && strcasecmp(dot, extension) == 0;
}
