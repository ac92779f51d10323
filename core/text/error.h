/* Errors: a status for the program, a text for people.
 *
 * Fallible functions return 0 or a negative errno value and take a `struct shk_error *` (last
 * argument, may be NULL). The text is written once, by the function that knows the cause; callers
 * pass it on. Libraries neither print nor exit: only cli/ and reports/ write to streams. */
#ifndef SHK_CORE_ERROR_H
#define SHK_CORE_ERROR_H

#include <stdarg.h>

#define SHK_MUST_CHECK   __attribute__((warn_unused_result))
#define SHK_PRINTF(f, a) __attribute__((format(printf, f, a)))

struct shk_error {
    char text[512]; /* one line, no trailing newline; control characters already replaced */
};

/* Writes the text (if err is not NULL) and returns -errnum. `errnum` is a positive errno value;
 * errno itself is preserved. The text is cut, never overflowed. */
int shk_error_set(struct shk_error *err, int errnum, const char *fmt, ...) SHK_PRINTF(3, 4);

/* As shk_error_set(), with ": strerror(errnum)" appended. */
int shk_error_sys(struct shk_error *err, int errnum, const char *fmt, ...) SHK_PRINTF(3, 4);

#endif
