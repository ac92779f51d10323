/* Environment lines in the syntax of a shell or of Lmod. */
#ifndef SHK_CLI_SHELLS_H
#define SHK_CLI_SHELLS_H

#include "core/text/quote.h"

#include <stdio.h>

struct shk_shell {
    const char *name; /* "sh", "csh", "lua" */
    const char *comment;
    enum shk_quote quote;
};

/* Writes the line that sets a variable. `$NAME` in the value is expanded by the shell, as profiles
 * mean it, unless it is to be taken literally; nothing else is. False, and nothing written, when
 * name or value cannot be quoted safely. */
bool shk_shell_set(FILE *out, const struct shk_shell *shell, const char *name, const char *value,
                   bool literal);

/* Writes the line that unsets a variable; nothing for what is no name. */
void shk_shell_unset(FILE *out, const struct shk_shell *shell, const char *name);

/* NULL when there is none of that name. */
const struct shk_shell *shk_shell_find(const char *name);

#endif
