/* What shells and Lua read of a quoted word: models for the tests of core/text/quote.h. */
#ifndef SHK_TESTS_UNQUOTE_H
#define SHK_TESTS_UNQUOTE_H

#include "core/text/quote.h"

#include <stdbool.h>
#include <string.h>

/* One word of a POSIX shell, or of csh (where '!' is a history reference unless escaped, within
 * single quotes too), without expansions: false when it is anything but one word. */
static inline bool unquote_shell(const char *p, bool csh, char *out)
{
    bool quoted = false;
    if (!*p)
        return false;
    for (; *p; p++) {
        if (quoted && *p == '\'')
            quoted = false;
        else if (!quoted && *p == '\'')
            quoted = true;
        else if (csh && *p == '\\' && p[1] == '!')
            *out++ = *++p;
        else if (csh && *p == '!')
            return false;
        else if (quoted)
            *out++ = *p;
        else if (*p == '\\' && p[1])
            *out++ = *++p;
        else if (strchr(" \t\n\"\\$`*?[](){}<>|&;#~^!", *p))
            return false;
        else
            *out++ = *p;
    }
    *out = '\0';
    return !quoted;
}

/* A string of Lua, YAML or JSON: '\\', '"' and \uXXXX below U+0080. */
static inline bool unquote_string(const char *p, char *out)
{
    size_t len = strlen(p);
    if (len < 2 || *p != '"' || p[len - 1] != '"')
        return false;
    for (const char *end = p++ + len - 1; p < end; p++) {
        unsigned code = 0;
        if (*p == '"' || (unsigned char)*p < 0x20)
            return false;
        if (*p == '\\' && p[1] == 'u') {
            for (int i = 2; i < 6; i++)
                code = code * 16 + (unsigned)(p[i] <= '9' ? p[i] - '0' : p[i] - 'a' + 10);
            p += 5;
            *out++ = (char)code;
        } else {
            p += *p == '\\';
            *out++ = *p;
        }
    }
    *out = '\0';
    return true;
}

static inline bool unquote(enum shk_quote target, const char *word, char *out)
{
    if (target == SHK_QUOTE_SH || target == SHK_QUOTE_CSH || target == SHK_QUOTE_SCONTROL)
        return unquote_shell(word, target == SHK_QUOTE_CSH, out);
    return unquote_string(word, out);
}

#endif
