/* Patterns that have the text or the name of an error of the system, and take all that programs
 * print in its place (core/text/errnos.h). */
#ifndef SHK_CORE_SPELLING_H
#define SHK_CORE_SPELLING_H

#include "core/text/errnos.h"

/* The pattern, which is of the dialect of regex.h, with each (GNU) text or name of an installed
 * error replaced by all spellings of it: the texts of C libraries, the name, "errno 12", "rc = -12"
 * and the like; the numbers alone ("(12)", ": -12") only where the pattern says more than the
 * error. After a separator (": Permission denied") the name and the number may stand anywhere
 * behind it. New memory, free(); NULL: none. */
char *shk_spell_pattern(const char *pattern);

/* A pattern of all spellings of an error, its words too. New memory, free(); NULL: none. */
char *shk_spell_error(const struct shk_errno *row);

#endif
