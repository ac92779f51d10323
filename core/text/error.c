#include "core/text/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void error_clean(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = ' ';
    size_t len = strlen(text);
    while (len && text[len - 1] == ' ')
        text[--len] = '\0';
}

static void error_write(struct shk_error *err, int errnum, bool with_reason, const char *fmt,
                        va_list args)
{
    int n = vsnprintf(err->text, sizeof err->text, fmt, args);
    if (n < 0)
        n = 0;
    if (with_reason && (size_t)n < sizeof err->text - 1) {
        char buf[128];
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s",
                 strerror_r(errnum, buf, sizeof buf));
    }
    error_clean(err->text);
}

int shk_error_set(struct shk_error *err, int errnum, const char *fmt, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, fmt);
        error_write(err, errnum, false, fmt, args);
        va_end(args);
    }
    errno = saved;
    return -errnum;
}

int shk_error_sys(struct shk_error *err, int errnum, const char *fmt, ...)
{
    int saved = errno;
    if (err) {
        va_list args;
        va_start(args, fmt);
        error_write(err, errnum, true, fmt, args);
        va_end(args);
    }
    errno = saved;
    return -errnum;
}
