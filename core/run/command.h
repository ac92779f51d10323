/* Other programs, without a shell between. */
#ifndef SHK_CORE_COMMAND_H
#define SHK_CORE_COMMAND_H

#include "core/text/error.h"
#include "core/text/strbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* The first program of that name in PATH that this user may execute and `good` (NULL: any) takes: a
 * new string. Folders that are not named from the root on are left out. NULL: there is none. */
char *shk_command_find(const char *name, bool (*good)(const char *path));

/* Runs `path` with these words (the first is its name; NULL at the end), adds at most `most` bytes
 * of what it prints on stdout to `out`, and waits for its end: *status_p as of waitpid(), with exit
 * code 127 when it could not be executed. Has no deadline: for a child of isolate.h. Returns 0 or a
 * negative errno with text. */
int shk_command_output(const char *path, const char *const *argv, size_t most,
                       struct shk_strbuf *out, int *status_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
