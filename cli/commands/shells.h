/* Environment lines in the syntax of a shell or of Lmod. */
#ifndef SHK_CLI_SHELLS_H
#define SHK_CLI_SHELLS_H

#include <stdio.h>

struct shk_shell {
    const char *name; /* "sh", "csh", "lua" */
    const char *comment;
    /* `$NAME` in the value is expanded by the shell, as profiles mean it; nothing else is. */
    void (*set)(FILE *out, const char *name, const char *value);
    /* The value as it is. */
    void (*set_literal)(FILE *out, const char *name, const char *value);
    void (*unset)(FILE *out, const char *name);
};

/* NULL when there is none of that name. */
const struct shk_shell *shk_shell_find(const char *name);

#endif
