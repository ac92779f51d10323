/* Patterns of the catalogue that are looked for in values: conditions, conflicts, profiles. The
 * patterns of log lines are another language, see probes/log/logscan.h. */
#ifndef SHK_CORE_PATTERN_H
#define SHK_CORE_PATTERN_H

#include <stdbool.h>

/* Does the extended regular expression (POSIX) match somewhere in the text? False for one that is
 * none: the catalogue is checked when it is read (config/schema/valid.h). */
bool shk_pattern_matches(const char *pattern, const char *text);

#endif
