#include "cli/session/progress.h"

#include "cli/session/output.h"
#include "core/run/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Seconds between two lines where none can be erased: a log of a job, a pipe. */
#define PROGRESS_EVERY 10.0

static bool shown;

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
    shown = true;
}

void shk_progress_clear(void)
{
    if (!shown)
        return;
    fputs("\r\x1b[K", stderr);
    fflush(stderr);
    shown = false;
}
