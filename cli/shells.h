/* Environment lines in the syntax of a shell or of Lmod. */
#ifndef SHK_CLI_SHELLS_H
#define SHK_CLI_SHELLS_H

#include <stdio.h>

struct shk_shell {
    const char *name; /* "sh", "csh", "lua" */
    const char *comment;
    void (*set)(FILE *out, const char *name, const char *value);
    void (*unset)(FILE *out, const char *name);
};

/* NULL when there is none of that name. */
const struct shk_shell *shk_shell_find(const char *name);

#endif
