#include "core/text/quote.h"

#include "core/text/strbuf.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define QUOTE_NAME    QUOTE_LETTERS "0123456789"
#define QUOTE_PLAIN   QUOTE_NAME "@%+=:,./-"

/* C1 controls, zero-width and direction marks, line and paragraph separators, byte-order mark. */
static bool quote_is_invisible(const unsigned char *p)
{
    if (p[0] == 0xC2)
        return p[1] >= 0x80 && p[1] <= 0x9F;
    if (p[0] == 0xE2 && p[1] == 0x80)
        return (p[2] >= 0x8B && p[2] <= 0x8F) || (p[2] >= 0xA8 && p[2] <= 0xAE);
    if (p[0] == 0xE2 && p[1] == 0x81)
        return p[2] >= 0xA0 && p[2] <= 0xAF;
    return p[0] == 0xEF && p[1] == 0xBB && p[2] == 0xBF;
}

static bool quote_is_text(const char *text, bool controls)
{
    json_t *utf8 = json_string(text);
    bool good = utf8 != NULL;
    json_decref(utf8);
    for (const unsigned char *p = (const unsigned char *)text; good && *p; p++)
        good = !quote_is_invisible(p) && (controls || (*p >= 0x20 && *p != 0x7F));
    return good;
}

bool shk_quote_shows(const char *text)
{
    return quote_is_text(text, false);
}

bool shk_quote_is_name(const char *text)
{
    return *text && strchr(QUOTE_LETTERS, *text) && !text[strspn(text, QUOTE_NAME)];
}

static void quote_single(struct shk_strbuf *out, const char *text, size_t len, bool csh)
{
    shk_strbuf_putc(out, '\'');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'')
            shk_strbuf_puts(out, "'\\''");
        else if (csh && text[i] == '!')
            shk_strbuf_puts(out, "\\!");
        else
            shk_strbuf_putc(out, text[i]);
    }
    shk_strbuf_putc(out, '\'');
}

static void quote_shell(struct shk_strbuf *out, const char *text, bool csh)
{
    if (*text && !text[strspn(text, QUOTE_PLAIN)])
        shk_strbuf_puts(out, text);
    else
        quote_single(out, text, strlen(text), csh);
}

static void quote_escaped(struct shk_strbuf *out, const char *text, size_t len, const char *special)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F)
            shk_strbuf_printf(out, "\\u%04x", c);
        else
            shk_strbuf_printf(out, "%s%c", strchr(special, c) ? "\\" : "", c);
    }
}

char *shk_quote(enum shk_quote target, const char *text)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    bool document = target == SHK_QUOTE_YAML || target == SHK_QUOTE_JSON;
    if (!quote_is_text(text, document))
        return NULL;
    switch (target) {
    case SHK_QUOTE_SCONTROL:
        if (strpbrk(text, "\"'\\"))
            return NULL;
        quote_shell(&out, text, false);
        break;
    case SHK_QUOTE_SH:
    case SHK_QUOTE_CSH: quote_shell(&out, text, target == SHK_QUOTE_CSH); break;
    case SHK_QUOTE_LUA:
    case SHK_QUOTE_YAML:
    case SHK_QUOTE_JSON:
        shk_strbuf_putc(&out, '"');
        quote_escaped(&out, text, strlen(text), "\"\\");
        shk_strbuf_putc(&out, '"');
        break;
    default: return NULL;
    }
    return shk_strbuf_take(&out);
}

/* Length of "$NAME" or "${NAME}" at the start of the text, 0 when there is none; the name. */
static size_t quote_variable(const char *text, const char **name_p, size_t *name_len_p)
{
    if (*text != '$')
        return 0;
    bool brace = text[1] == '{';
    const char *name = text + 1 + brace;
    if (!*name || !strchr(QUOTE_LETTERS, *name))
        return 0;
    size_t len = strspn(name, QUOTE_NAME);
    if (brace && name[len] != '}')
        return 0;
    *name_p = name;
    *name_len_p = len;
    return (size_t)(name - text) + len + brace;
}

/* Pieces of a value: what the target expands, and what stays as it is. In sh both stand in one pair
 * of double quotes; csh has no way to write '"' or '`' in those, Lua expands nothing. */
static void quote_variable_put(struct shk_strbuf *out, enum shk_quote target, const char *name,
                               size_t len)
{
    if (target == SHK_QUOTE_SH)
        shk_strbuf_printf(out, "${%.*s}", (int)len, name);
    else if (target == SHK_QUOTE_CSH)
        shk_strbuf_printf(out, "\"$%.*s\"", (int)len, name);
    else
        shk_strbuf_printf(out, "\" .. (os.getenv(\"%.*s\") or \"\") .. \"", (int)len, name);
}

char *shk_quote_expanding(enum shk_quote target, const char *text)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    bool csh = target == SHK_QUOTE_CSH;
    if ((target != SHK_QUOTE_SH && !csh && target != SHK_QUOTE_LUA) || !shk_quote_shows(text))
        return NULL;
    if (!strchr(text, '$'))
        return shk_quote(target, text);
    if (!csh)
        shk_strbuf_putc(&out, '"');
    while (*text) {
        const char *name;
        size_t len, skip = quote_variable(text, &name, &len);
        if (skip) {
            quote_variable_put(&out, target, name, len);
            text += skip;
            continue;
        }
        skip = 1 + strcspn(text + 1, "$");
        if (csh)
            quote_single(&out, text, skip, true);
        else
            quote_escaped(&out, text, skip, target == SHK_QUOTE_SH ? "\"\\`$" : "\"\\");
        text += skip;
    }
    if (!csh)
        shk_strbuf_putc(&out, '"');
    return shk_strbuf_take(&out);
}
