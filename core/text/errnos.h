/* Errors of the system by all that programs call them: the rows of config/errors, installed once by
 * the main program as those of uses.h. A log has "Cannot allocate memory", "ENOMEM" or "errno 12"
 * for the same error. */
#ifndef SHK_CORE_ERRNOS_H
#define SHK_CORE_ERRNOS_H

#include <stdbool.h>
#include <stddef.h>

struct shk_errno {
    const char *name;         /* "ENOMEM"; in small letters: no error of errno.h, only words */
    int number;               /* of Linux on all processors that have GPUs; 0: none */
    const char *const *texts; /* what strerror() of C libraries says, the GNU one first; the first
                                 letter in either case; NULL */
    const char *const *names; /* classes of exceptions and the like; NULL */
    const char *words;        /* a pattern (core/regex/regex.h) for further ways to say it; NULL */
    const char *source;
    const char *place; /* FILE:LINE of the row */
};

/* Borrows the rows until the next call. Not to be called while another thread runs. */
void shk_errnos_install(const struct shk_errno *rows, size_t count);

/* Those that are installed. */
const struct shk_errno *shk_errnos(size_t *count_p);

/* By its number where there is one, else by its name or one of its texts, in any case; NULL. */
const struct shk_errno *shk_errno_find(const char *text, bool number, long value);

/* Of all rows: changes with any of them. */
unsigned long long shk_errnos_digest(void);

#endif
