/* Patterns of the catalogue that are looked for in values: conditions, conflicts, profiles. */
#ifndef SHK_CORE_PATTERN_H
#define SHK_CORE_PATTERN_H

#include <stdbool.h>

/* Does the regular expression (core/regex/regex.h) match somewhere in the text? False for one that
 * is none: the catalogue is checked when it is read (config/schema/valid.h). */
bool shk_pattern_matches(const char *pattern, const char *text);

#endif
