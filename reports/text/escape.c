#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Cleans s into a new buffer; empty when out of memory, which `out` then reports as well. */
static struct shk_strbuf escape_clean(struct shk_strbuf *out, const char *s, unsigned flags)
{
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    shk_text_clean(&clean, s, strlen(s), flags);
    if (clean.failed)
        out->failed = true;
    return clean;
}

void shk_escape_html(struct shk_strbuf *out, const char *s)
{
    static const char *const entity[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
    };
    struct shk_strbuf clean = escape_clean(out, s, SHK_CLEAN_LINES);
    for (const char *p = shk_strbuf_text(&clean); *p; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < 128 && entity[c])
            shk_strbuf_puts(out, entity[c]);
        else
            shk_strbuf_putc(out, *p);
    }
    shk_strbuf_free(&clean);
}

/* Characters that start or end markup anywhere in a line. '$' is a formula on GitHub, '{' a macro
 * in Jira. An entity is text and never structure, in table cells as well. */
static const char *const escape_md_entity[128] = {
    ['&'] = "&amp;", ['<'] = "&lt;",   ['>'] = "&gt;",   ['|'] = "&#124;", ['`'] = "&#96;",
    ['*'] = "&#42;", ['['] = "&#91;",  [']'] = "&#93;",  ['~'] = "&#126;", ['\\'] = "&#92;",
    ['$'] = "&#36;", ['{'] = "&#123;", ['}'] = "&#125;", ['!'] = "&#33;",  ['\n'] = "<br>",
};

static bool escape_is_word(unsigned char c)
{
    return isalnum(c) || c >= 0x80;
}

/* '_' inside a word is no emphasis; '@name' and '#1' would notify people or link issues. */
static void escape_md_char(struct shk_strbuf *out, const char *start, const char *p)
{
    unsigned char c = (unsigned char)*p, next = (unsigned char)p[1];
    unsigned char prev = p > start ? (unsigned char)p[-1] : 0;
    if (c < 128 && escape_md_entity[c])
        shk_strbuf_puts(out, escape_md_entity[c]);
    else if (c == '_' && !(escape_is_word(prev) && (escape_is_word(next) || next == '_')))
        shk_strbuf_puts(out, "&#95;");
    else if ((c == '@' && escape_is_word(next)) || (c == '#' && isdigit(next)))
        shk_strbuf_printf(out, "%c<!-- -->", c);
    else
        shk_strbuf_putc(out, (char)c);
}

/* Headings, lists and rules start at the beginning of a line, also behind our own "- ". Returns
 * the characters dealt with. */
static size_t escape_md_start(struct shk_strbuf *out, const char *p)
{
    size_t digits = strspn(p, "0123456789");
    if (digits && (p[digits] == '.' || p[digits] == ')') && strchr(" \n", p[digits + 1])) {
        shk_strbuf_add(out, p, digits);
        shk_strbuf_printf(out, "&#%d;", p[digits]);
        return digits + 1;
    }
    if (*p && strchr("#+-=", *p)) {
        shk_strbuf_printf(out, "&#%d;", *p);
        return 1;
    }
    return 0;
}

void shk_escape_md(struct shk_strbuf *out, const char *s)
{
    struct shk_strbuf clean = escape_clean(out, s, SHK_CLEAN_LINES);
    const char *start = shk_strbuf_text(&clean);
    start += strspn(start, " \n");
    for (const char *p = start + escape_md_start(out, start); *p; p++)
        escape_md_char(out, start, p);
    shk_strbuf_free(&clean);
}

void shk_escape_md_code(struct shk_strbuf *out, const char *s)
{
    struct shk_strbuf clean = escape_clean(out, s, 0);
    const char *text = shk_strbuf_text(&clean);
    size_t len = strlen(text);
    bool plain = len && !strpbrk(text, "`|") && text[0] != ' ' && text[len - 1] != ' ';
    if (plain) {
        shk_strbuf_printf(out, "`%s`", text);
    } else {
        shk_strbuf_puts(out, "<code>");
        for (const char *p = text; *p; p++)
            escape_md_char(out, text, p);
        shk_strbuf_puts(out, "</code>");
    }
    shk_strbuf_free(&clean);
}

static size_t escape_longest_run(const char *s, char c)
{
    size_t longest = 0, run = 0;
    for (; *s; s++) {
        run = *s == c ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest;
}

void shk_escape_md_block(struct shk_strbuf *out, const char *info, const char *s)
{
    struct shk_strbuf clean = escape_clean(out, s, SHK_CLEAN_LINES);
    const char *text = shk_strbuf_text(&clean);
    size_t fence = escape_longest_run(text, '`') + 1;
    if (fence < 3)
        fence = 3;
    for (size_t i = 0; i < fence; i++)
        shk_strbuf_putc(out, '`');
    shk_strbuf_printf(out, "%s\n%s", info, text);
    if (*text && text[strlen(text) - 1] != '\n')
        shk_strbuf_putc(out, '\n');
    for (size_t i = 0; i < fence; i++)
        shk_strbuf_putc(out, '`');
    shk_strbuf_putc(out, '\n');
    shk_strbuf_free(&clean);
}

void shk_escape_prom(struct shk_strbuf *out, const char *s)
{
    struct shk_strbuf clean = escape_clean(out, s, 0);
    for (const char *p = shk_strbuf_text(&clean); *p; p++) {
        if (*p == '\\' || *p == '"')
            shk_strbuf_putc(out, '\\');
        shk_strbuf_putc(out, *p);
    }
    shk_strbuf_free(&clean);
}
