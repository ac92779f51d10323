/* Whom a file belongs to: root must not run code that others can change. */
#ifndef SHK_CORE_TRUST_H
#define SHK_CORE_TRUST_H

#include "core/text/error.h"

/* 0 when nobody but root can change what `path` leads to: every directory on the way, every link,
 * and the file itself, belong to root and are not writable by others (a directory with the sticky
 * bit, as /tmp, may be). What does not exist is judged by the directories above it. Relative paths
 * start at the current directory. -EPERM with text: "/home/u belongs to user 1000". -ELOOP for
 * links without end; -ENAMETOOLONG. */
int shk_trust_path(const char *path, struct shk_error *err) SHK_MUST_CHECK;

/* Every path of a list as LD_LIBRARY_PATH has it, with any of the `separators` between them. An
 * empty item is the current directory; a leading '@' or '+' (FI_PROVIDER_PATH) is skipped, and what
 * follows a '$' (the loader's tokens) is not looked at. */
int shk_trust_list(const char *list, const char *separators, struct shk_error *err) SHK_MUST_CHECK;

#endif
