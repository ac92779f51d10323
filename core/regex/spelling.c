#include "core/regex/spelling.h"

#include "core/regex/regex.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* PARTS: tokens of a pattern; LETTERS: so many outside of errors say more than the error; GAP:
 * separators in front of an error; SIGNALS: a status up to this one may be a signal; DIGIT: one
 * digit is too little to be looked for in every line. */
enum { PARTS = 512, LETTERS = 4, GAP = 4, SIGNALS = 15, DIGIT = 9 };

struct part {
    size_t start, end; /* in the pattern, with what repeats it */
    enum shk_regex_kind kind;
    char c;     /* of a character that stands there once; 0 */
    bool error; /* belongs to the text or name of an error */
};

struct parts {
    const char *pattern;
    struct part items[PARTS];
    size_t count;
};

static bool read_parts(struct parts *parts, const char *pattern)
{
    struct shk_regex_token token;
    size_t at = shk_regex_start(pattern);
    parts->pattern = pattern;
    parts->count = 0;
    for (size_t was = at; !shk_regex_next(pattern, &at, &token, NULL); was = at) {
        if (token.kind == SHK_REGEX_END)
            return true;
        if (parts->count == PARTS)
            return false;
        bool once = token.kind == SHK_REGEX_CHAR && token.least == 1 && token.most == 1;
        parts->items[parts->count++] = (struct part){
            .start = was, .end = at, .kind = token.kind, .c = once ? (char)token.c : '\0'};
    }
    return false;
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Tokens from `at` on that are this text, a letter in any case; 0: others. */
static size_t text_at(const struct parts *parts, size_t at, const char *text)
{
    size_t n = strlen(text);
    if (at + n > parts->count || (at + n < parts->count && in_word(parts->items[at + n].c)))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (!parts->items[at + i].c ||
            tolower((unsigned char)parts->items[at + i].c) != tolower((unsigned char)text[i]))
            return 0;
    return n;
}

/* The error whose name or first text begins at `at`, the longest one. */
static const struct shk_errno *error_at(const struct parts *parts, size_t at, size_t *length_p)
{
    size_t count;
    const struct shk_errno *rows = shk_errnos(&count), *best = NULL;
    *length_p = 0;
    if (at && in_word(parts->items[at - 1].c))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t n = isupper((unsigned char)*rows[i].name) ? text_at(parts, at, rows[i].name) : 0;
        size_t more = rows[i].texts ? text_at(parts, at, *rows[i].texts) : 0;
        n = more > n ? more : n;
        if (n > *length_p) {
            *length_p = n;
            best = &rows[i];
        }
    }
    return best;
}

/* Letters outside of errors that a match has besides part `at`, on one side of it (step -1, 1). */
static size_t letters_beside(const struct parts *parts, size_t at, int step)
{
    size_t letters = 0, depth = 0;
    bool other = false; /* another alternative of a group around */
    enum shk_regex_kind in = step > 0 ? SHK_REGEX_OPEN : SHK_REGEX_CLOSE,
                        out = step > 0 ? SHK_REGEX_CLOSE : SHK_REGEX_OPEN;
    for (size_t i = at + (size_t)step; i < parts->count; i += (size_t)step) {
        const struct part *part = &parts->items[i];
        if (part->kind == in) {
            depth++;
        } else if (part->kind == out) {
            other = depth ? other : false;
            depth -= depth > 0;
        } else if (part->kind == SHK_REGEX_BAR && !depth) {
            other = true;
        } else if (!other) {
            letters += !part->error && isalnum((unsigned char)part->c);
        }
    }
    return letters;
}

static void put_texts(struct shk_strbuf *sb, const char *const *texts, const char *between)
{
    for (; texts && *texts; texts++, between = "|") {
        const char *text = *texts;
        shk_strbuf_puts(sb, between);
        if (isalpha((unsigned char)*text)) {
            shk_strbuf_printf(sb, "[%c%c]", toupper((unsigned char)*text),
                              tolower((unsigned char)*text));
            text++;
        }
        for (; *text; text++)
            shk_strbuf_printf(sb, "%s%c", in_word(*text) || *text == ' ' ? "" : "\\", *text);
    }
}

/* Numbers of which the line says that they are of errno.h. Of the first two only errno itself is
 * one: -1 is what most functions return, and 2 a usual exit status. */
static void put_numbers(struct shk_strbuf *sb, int n, bool loose)
{
    if (loose && n > 2)
        shk_strbuf_printf(sb,
                          "|\\b([Ee]rrno|[Ee]rror( code)?|[Ee]rr|rc|ret(val)?)[ :=(]{1,4}-?%d\\b"
                          "|([:=>)]|returned|with) ?-%d\\b|\\(-?%d\\)",
                          n, n, n);
    else
        shk_strbuf_printf(sb, "|\\b([Ee]rrno|os error)[ :=(]{1,4}-?%d\\b", n);
    if (!loose && n > DIGIT)
        shk_strbuf_printf(sb, "|\\b([Ee]rror|[Ee]rr|ret(val)?%s)[ :=(]{1,4}-%d\\b",
                          n > SIGNALS ? "|code|status|returned" : "", n);
}

/* In front of the name: libfabric's own constants are those of errno.h. */
static const char before_name[] = "FI";

/* The name, classes of exceptions, and numbers; each begins with `|`, but for the first one. */
static void put_codes(struct shk_strbuf *sb, const struct shk_errno *row, bool loose)
{
    if (isupper((unsigned char)*row->name))
        shk_strbuf_printf(sb, "|\\b(%s_)?%s\\b", before_name, row->name);
    for (const char *const *n = row->names; n && *n; n++)
        shk_strbuf_printf(sb, "|\\b%s\\b", *n);
    if (row->number)
        put_numbers(sb, row->number, loose);
}

/* In place of the parts from `from` on, of which those from `at` on are the error's own. */
static void put_error(struct shk_strbuf *sb, const struct parts *parts, size_t from, size_t at,
                      const struct shk_errno *row)
{
    const struct part *items = parts->items;
    bool loose = letters_beside(parts, at, -1) + letters_beside(parts, at, 1) >= LETTERS;
    struct shk_strbuf codes = SHK_STRBUF_INIT;
    put_codes(&codes, row, loose);
    const char *code = codes.len ? shk_strbuf_text(&codes) + 1 : "";
    bool gap = from < at;
    shk_strbuf_puts(sb, "(?:");
    shk_strbuf_add(sb, parts->pattern + items[from].start, items[at].start - items[from].start);
    shk_strbuf_puts(sb, gap ? "(?:" : "");
    put_texts(sb, row->texts, "");
    shk_strbuf_printf(sb, gap ? ")|.*(?:%s))" : "|%s)", code);
    sb->failed |= codes.failed;
    shk_strbuf_free(&codes);
}

/* Marks the parts that are an error; how many errors there are. */
static size_t mark_errors(struct parts *parts)
{
    size_t count = 0, length;
    for (size_t i = 0; i < parts->count; i += length ? length : 1) {
        const struct shk_errno *row = error_at(parts, i, &length);
        for (size_t k = 0; row && k < length; k++)
            parts->items[i + k].error = true;
        count += row != NULL;
    }
    return count;
}

/* Where the separators in front of part `at` begin. */
static size_t gap_before(const struct parts *parts, size_t at)
{
    size_t from = at;
    while (from && at - from < GAP && parts->items[from - 1].c &&
           strchr(" :,('\"=-", parts->items[from - 1].c))
        from--;
    return from;
}

char *shk_spell_pattern(const char *pattern)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    struct parts *parts = malloc(sizeof *parts);
    if (!parts)
        return NULL;
    size_t done = 0, length;
    bool any = read_parts(parts, pattern) && mark_errors(parts);
    for (size_t i = 0; any && i < parts->count; i += length ? length : 1) {
        const struct shk_errno *row = error_at(parts, i, &length);
        if (!row || !row->texts)
            continue;
        size_t from = gap_before(parts, i);
        if (from && parts->items[from - 1].c == ']') /* "[Errno 13] Permission denied" */
            continue;
        from = parts->items[from].start < done ? i : from;
        shk_strbuf_add(&sb, pattern + done, parts->items[from].start - done);
        put_error(&sb, parts, from, i, row);
        done = parts->items[i + length - 1].end;
    }
    shk_strbuf_puts(&sb, pattern + done);
    free(parts);
    return shk_strbuf_take(&sb);
}

char *shk_spell_error(const struct shk_errno *row)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    put_texts(&sb, row->texts, "|");
    put_codes(&sb, row, true);
    if (row->words)
        shk_strbuf_printf(&sb, "|%s", row->words);
    char *text = shk_strbuf_take(&sb);
    if (text && *text)
        memmove(text, text + 1, strlen(text));
    return text;
}
