#include "cli/commands/shells.h"

#include <stdlib.h>
#include <string.h>

static const struct shk_shell shells[] = {
    {.name = "sh", .comment = "#", .quote = SHK_QUOTE_SH},
    {.name = "csh", .comment = "#", .quote = SHK_QUOTE_CSH},
    {.name = "lua", .comment = "--", .quote = SHK_QUOTE_LUA},
};

bool shk_shell_set(FILE *out, const struct shk_shell *shell, const char *name, const char *value,
                   bool literal)
{
    char *word =
        literal ? shk_quote(shell->quote, value) : shk_quote_expanding(shell->quote, value);
    bool good = word && shk_quote_is_name(name);
    if (good && shell->quote == SHK_QUOTE_LUA)
        fprintf(out, "setenv(\"%s\", %s)\n", name, word);
    else if (good)
        fprintf(out, shell->quote == SHK_QUOTE_CSH ? "setenv %s %s\n" : "export %s=%s\n", name,
                word);
    free(word);
    return good;
}

void shk_shell_unset(FILE *out, const struct shk_shell *shell, const char *name)
{
    if (!shk_quote_is_name(name))
        return;
    if (shell->quote == SHK_QUOTE_LUA)
        fprintf(out, "unsetenv(\"%s\")\n", name);
    else
        fprintf(out, shell->quote == SHK_QUOTE_CSH ? "unsetenv %s\n" : "unset %s\n", name);
}

const struct shk_shell *shk_shell_find(const char *name)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, name) == 0)
            return &shells[i];
    return NULL;
}
