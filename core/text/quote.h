/* Text as one word of a command line or one value of a document. Whatever comes from a host (names
 * of interfaces, hosts, files, values of variables) passes here before it gets into a line that
 * somebody may run. */
#ifndef SHK_CORE_QUOTE_H
#define SHK_CORE_QUOTE_H

#include <stdbool.h>

enum shk_quote {
    SHK_QUOTE_SH,       /* POSIX shells: plain where that is safe, else 'single quotes' */
    SHK_QUOTE_CSH,      /* csh and tcsh; '!' too, which they expand within quotes */
    SHK_QUOTE_LUA,      /* a "string" of Lua */
    SHK_QUOTE_SCONTROL, /* as SH, for the value of an option of scontrol, which takes quotes and
                           backslashes within a word for its own */
    SHK_QUOTE_YAML,     /* a "double-quoted" scalar */
    SHK_QUOTE_JSON,     /* a "string" */
    SHK_QUOTE_COUNT
};

/* `text` written so that the target reads exactly it: a new string (free()). NULL when there is no
 * safe way: not UTF-8, control characters (JSON and YAML can escape those below U+0080), characters
 * that are invisible or turn the direction of writing, quotes or backslashes for scontrol; or when
 * out of memory. */
char *shk_quote(enum shk_quote target, const char *text);

/* The same, but $NAME and ${NAME} stay for the target to expand; nothing else does. For values of
 * the catalogue and of a site's files, as /tmp/$USER. For sh, csh and Lua only (else NULL). */
char *shk_quote_expanding(enum shk_quote target, const char *text);

/* Can a person be shown this text as it is: UTF-8 without control, invisible or turning characters?
 */
bool shk_quote_shows(const char *text);

/* Is this a name that shells take for a variable's? */
bool shk_quote_is_name(const char *text);

#endif
