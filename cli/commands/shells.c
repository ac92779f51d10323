#include "cli/commands/shells.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Values of a profile may name other variables ($USER, $SLURM_JOB_ID) that the shell must expand;
 * a command in the value must not run. */
static void quoted(FILE *out, const char *value, const char *special)
{
    fputc('"', out);
    for (const char *p = value; *p; p++) {
        bool command = *p == '$' && !isalpha((unsigned char)p[1]) && p[1] != '_';
        if (command || strchr(special, *p))
            fputc('\\', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

static void single_quoted(FILE *out, const char *value, bool csh)
{
    fputc('\'', out);
    for (const char *p = value; *p; p++)
        if (*p == '\'')
            fputs("'\\''", out);
        else if (csh && (*p == '!' || *p == '\n'))
            fprintf(out, "\\%c", *p);
        else
            fputc(*p, out);
    fputc('\'', out);
}

static void sh_set(FILE *out, const char *name, const char *value)
{
    fprintf(out, "export %s=", name);
    quoted(out, value, "\"\\`");
    fputc('\n', out);
}

static void sh_set_literal(FILE *out, const char *name, const char *value)
{
    fprintf(out, "export %s=", name);
    single_quoted(out, value, false);
    fputc('\n', out);
}

static void sh_unset(FILE *out, const char *name)
{
    fprintf(out, "unset %s\n", name);
}

static void csh_set(FILE *out, const char *name, const char *value)
{
    fprintf(out, "setenv %s ", name);
    quoted(out, value, "\"\\`!");
    fputc('\n', out);
}

static void csh_set_literal(FILE *out, const char *name, const char *value)
{
    fprintf(out, "setenv %s ", name);
    single_quoted(out, value, true);
    fputc('\n', out);
}

static void csh_unset(FILE *out, const char *name)
{
    fprintf(out, "unsetenv %s\n", name);
}

/* Lua expands nothing: $NAME becomes os.getenv(). */
static void lua_value(FILE *out, const char *name, const char *value, bool expand)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    fprintf(out, "setenv(\"%s\", \"", name);
    for (const char *p = value; *p;) {
        size_t len = expand && *p == '$' ? strspn(p + 1, word) : 0;
        if (len) {
            fprintf(out, "\" .. (os.getenv(\"%.*s\") or \"\") .. \"", (int)len, p + 1);
            p += 1 + len;
            continue;
        }
        if (*p == '"' || *p == '\\' || *p == '\n')
            fputc('\\', out);
        fputc(*p++, out);
    }
    fputs("\")\n", out);
}

static void lua_set(FILE *out, const char *name, const char *value)
{
    lua_value(out, name, value, true);
}

static void lua_set_literal(FILE *out, const char *name, const char *value)
{
    lua_value(out, name, value, false);
}

static void lua_unset(FILE *out, const char *name)
{
    fprintf(out, "unsetenv(\"%s\")\n", name);
}

static const struct shk_shell shells[] = {
    {.name = "sh", .comment = "#", .set = sh_set, .set_literal = sh_set_literal, .unset = sh_unset},
    {.name = "csh",
     .comment = "#",
     .set = csh_set,
     .set_literal = csh_set_literal,
     .unset = csh_unset},
    {.name = "lua",
     .comment = "--",
     .set = lua_set,
     .set_literal = lua_set_literal,
     .unset = lua_unset},
};

const struct shk_shell *shk_shell_find(const char *name)
{
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, name) == 0)
            return &shells[i];
    return NULL;
}
