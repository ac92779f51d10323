#include "core/redact/redact.h"

#include "core/redact/redact_private.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer names are no names. */
enum { REDACT_NAME = 128 };
/* What decides whether a value goes stands in its beginning. */
enum { REDACT_DECIDE = 2048 };

static bool redact_is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Does a word start at s? */
static bool redact_starts(const char *text, const char *s)
{
    return s == text || !isalnum((unsigned char)s[-1]);
}

static size_t redact_name_span(const char *s)
{
    size_t n = 0;
    while (n < REDACT_NAME && (redact_is_word(s[n]) || s[n] == '-' || s[n] == '.'))
        n++;
    return n;
}

bool shk_redact_is_done(const char *s)
{
    return strncmp(s, SHK_REDACTED, sizeof SHK_REDACTED - 1) == 0;
}

/* A backslash before a quote belongs to the quote, as in JSON inside of JSON. */
static bool redact_is_escape(const char *s)
{
    return *s == '\\' && (s[1] == '"' || s[1] == '\'' || s[1] == 'n');
}

size_t shk_redact_unquoted(const char *s, size_t most)
{
    size_t n = 0;
    while (n < most && s[n] && !strchr(" \t\r\n,;&\"')]}>|", s[n]) && !redact_is_escape(s + n))
        n++;
    return n;
}

/* Does the value end here, at one of the characters that unquoted values end at? A separator is one
 * of its characters unless another member follows, and so is a bracket in the middle of a word. */
static bool redact_ends(const char *s)
{
    const char *next = s + 1;
    if (!*s || strchr(" \t\r\n\"\\", *s))
        return true;
    if (!strchr(",;&|", *s))
        return *s == '\'' ? !isalnum((unsigned char)*next)
                          : !*next || strchr(" \t\r\n\\,;&|\"')]}>", *next);
    size_t item = strcspn(next, " \t\r\n,;&|\"'");
    return !item || *next == '\\' || memchr(next, '=', item) || memchr(next, ':', item);
}

static size_t redact_bare(const char *s, size_t most)
{
    size_t n = shk_redact_unquoted(s, most);
    while (n < most && !redact_ends(s + n))
        n += 1 + shk_redact_unquoted(s + n + 1, most - n - 1);
    return n;
}

size_t shk_redact_until(const char *s, const char *ends, size_t most)
{
    size_t n = 0;
    while (n < most && s[n] && !strchr(ends, s[n]))
        n++;
    return n;
}

/* Inside of a query, where quotes are %22. */
static size_t redact_encoded(const char *s, size_t most)
{
    size_t n = 0;
    while (n < most && s[n] && !strchr(" \t\r\n&\"'", s[n]) && strncmp(s + n, "%22", 3) != 0 &&
           strncmp(s + n, "%26", 3) != 0)
        n++;
    return n;
}

static size_t redact_quoted(const char *s, char quote, size_t most)
{
    size_t n = 0;
    while (n < most && s[n] && s[n] != quote && s[n] != '\n')
        n += s[n] == '\\' && s[n + 1] ? 2 : 1;
    return n;
}

/* "Bearer xyz" and the other schemes of an Authorization header: bytes with the blank, 0. */
static size_t redact_scheme(const char *s)
{
    static const char *const schemes[] = {"Bearer ", "Basic ", "Token ", "Negotiate ", "ApiKey "};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncasecmp(s, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    return 0;
}

static size_t redact_blanks(const char *s)
{
    return strspn(s, " \t");
}

/* '=', ':', "=>", ":=", also as a query has them: its bytes, 0. */
static size_t redact_sign(const char *s)
{
    if (strncasecmp(s, "%3D", 3) == 0 || strncasecmp(s, "%3A", 3) == 0)
        return 3;
    if (*s != '=' && *s != ':')
        return 0;
    return 1 + (s[1] == '=' || s[1] == '>');
}

/* What stands between a name and its value, from `s`: its bytes, 0 when nothing does. *loose_p: it
 * may as well be a sentence. */
static size_t redact_operator(const char *s, bool option, bool *loose_p)
{
    static const char set_by[] = " set by environment to ";
    *loose_p = false;
    if (!*s || !strchr("=: \t\"'\\%", *s))
        return 0;
    if (strncmp(s, set_by, sizeof set_by - 1) == 0)
        return sizeof set_by - 1;
    size_t at = redact_blanks(s);
    if (option && at && s[at] && !strchr("-=:\r\n", s[at]))
        return at;
    size_t quoted = 0;
    if (strncmp(s, "%22", 3) == 0)
        quoted = 3; /* a quoted name inside of a query */
    else if (*s == '\\' && s[1] == '"')
        quoted = 2; /* inside of a quoted text */
    else if (*s == '"' || *s == '\'')
        quoted = 1; /* as in JSON */
    at = quoted + redact_blanks(s + quoted);
    size_t sign = redact_sign(s + at);
    if (!sign)
        return 0;
    *loose_p = s[at] == ':' && sign == 1 && !quoted;
    at += sign;
    return at + redact_blanks(s + at);
}

/* The value at s, of `most` bytes at most. `quote`: what stands before it; '%': it is part of a
 * query, '<': the tag of its name does, '\n': it is that of a header; 0: nothing. */
static size_t redact_value_span(const char *s, char quote, size_t most)
{
    size_t scheme;
    switch (quote) {
    case '%': return redact_encoded(s, most);
    case '\n': return shk_redact_until(s, "\r\n\"'", most);
    case '\0': scheme = redact_scheme(s); return scheme + redact_bare(s + scheme, most);
    default: return redact_quoted(s, quote, most);
    }
}

/* The value of these is the rest of the line. */
static bool redact_is_header(const char *name, size_t len)
{
    static const char *const names[] = {"Authorization", "Proxy-Authorization", "Cookie",
                                        "Set-Cookie"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncasecmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* How the value at s, behind an operator of `between` bytes, is quoted; *skip_p: bytes of that. */
static char redact_quote(const char *s, size_t between, bool header, size_t *skip_p)
{
    const char *sign = s - between;
    bool query = memchr(sign, '%', between) != NULL;
    *skip_p = query && strncmp(s, "%22", 3) == 0 ? 3 : 0;
    if (query)
        return '%';
    if (*s == '\\' && s[1] == '"') {
        *skip_p = 2;
        return '\0';
    }
    *skip_p = *s == '"' || *s == '\'';
    return *skip_p ? *s : header ? '\n' : '\0';
}

/* <name>value</name>, from `name` on: the value's bytes, those before it in *head_p. */
static size_t redact_tagged(const char *text, const char *s, size_t name, size_t *head_p)
{
    const char *value = s + name + 1;
    if (s == text || s[-1] != '<' || s[name] != '>')
        return 0;
    size_t n = redact_quoted(value, '<', REDACT_DECIDE);
    if (!shk_redact_name(s, name, value, n, false))
        return 0;
    *head_p = name + 1;
    return redact_quoted(value, '<', SIZE_MAX);
}

/* NAME=value, NAME: value, "name": "value", --name value: the value's bytes, those before it in
 * *head_p; `name` bytes may be a name. */
static size_t redact_assignment(const char *text, const char *s, size_t name, size_t *head_p)
{
    static const char any[] = "anything1-or-longer"; /* that a secret name does not let pass */
    bool loose = false, option = s[0] == '-' && name > 2 && (s == text || redact_blanks(s - 1));
    size_t between = name ? redact_operator(s + name, option, &loose) : 0;
    bool file = loose && s > text && s[-1] == '/'; /* "/etc/passwd: Permission denied" */
    if (!between || file)
        return 0;
    size_t at = name + between, skip = 0;
    char quote = redact_quote(s + at, between, loose && redact_is_header(s, name), &skip);
    at += skip;
    if (!quote && !skip && !shk_redact_name(s, name, any, sizeof any - 1, loose))
        return 0;
    size_t value = redact_value_span(s + at, quote, REDACT_DECIDE);
    if (shk_redact_is_done(s + at + redact_scheme(s + at)) ||
        !shk_redact_name(s, name, s + at, value, loose))
        return 0;
    value = redact_value_span(s + at, quote, SIZE_MAX);
    bool sentence = loose && value > 1 && s[at + value - 1] == '.';
    *head_p = at;
    return value - sentence;
}

/* Members of a query that are secret in no other place. */
static size_t redact_query(const char *text, const char *s, size_t *head_p)
{
    static const char *const names[] = {"key=", "sig=", "signature=", "code=", "auth="};
    if (s == text || !strchr("?&;", s[-1]))
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]), value;
        if (strncasecmp(s, names[i], n) != 0)
            continue;
        value = shk_redact_unquoted(s + n, SIZE_MAX);
        *head_p = n;
        return value > 7 && !shk_redact_is_done(s + n) ? value : 0;
    }
    return 0;
}

/* "Bearer" and something that is no word of a sentence. */
static size_t redact_bearer(const char *s, size_t *head_p)
{
    bool mixed = false;
    if (*s != 'B' && *s != 'b')
        return 0;
    size_t n = strncasecmp(s, "Bearer ", 7) == 0 ? 7 : strncasecmp(s, "Bearer%20", 9) == 0 ? 9 : 0;
    if (!n)
        return 0;
    size_t value = shk_redact_unquoted(s + n, SIZE_MAX);
    for (size_t i = n; i < n + value; i++)
        mixed |= isdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]);
    *head_p = n;
    return value >= 16 || (value >= 4 && mixed) ? value : 0;
}

size_t shk_redact_at(const char *text, const char *s, size_t *head_p)
{
    *head_p = 0;
    size_t n = shk_redact_userinfo(text, s);
    if (!n)
        n = shk_redact_token(s);
    if (n)
        return n;
    size_t name = redact_name_span(s);
    n = redact_assignment(text, s, name, head_p);
    if (!n)
        n = redact_tagged(text, s, name, head_p);
    if (!n)
        n = redact_query(text, s, head_p);
    if (!n)
        n = redact_bearer(s, head_p);
    if (!n)
        n = shk_redact_option(text, s, head_p);
    return n ? n : shk_redact_login(text, s, name, head_p);
}

/* Letters and digits from `s` on. Long runs, as of base64, go at the speed of the C library. */
static size_t redact_run(const char *s)
{
    enum { SHORT = 16 };
    size_t n = 0;
    while (n < SHORT && isalnum((unsigned char)s[n]))
        n++;
    return n < SHORT ? n
                     : n + strspn(s + n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789");
}

/* The next place from `s` on where a secret or its name can start, NULL when there is none. */
static const char *redact_start(const char *text, const char *s)
{
    for (; *s; s++) {
        if (s > text && s[-1] == '/' && redact_starts(text, s))
            return s; /* user:password may start with anything */
        if ((redact_is_word(*s) || *s == '-' || *s == '.') && redact_starts(text, s))
            return s;
        size_t run = redact_run(s);
        s += run - (run && !s[run]);
    }
    return NULL;
}

/* The next secret from `s` on: where it is, NULL when there is none; *len_p its bytes. */
static const char *redact_next(const char *text, const char *s, size_t *len_p)
{
    for (; (s = redact_start(text, s)); s++) {
        size_t head = 0;
        size_t n = shk_redact_at(text, s, &head);
        if (n) {
            *len_p = n;
            return s + head;
        }
    }
    return NULL;
}

char *shk_redact(const char *text)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    size_t len = 0;
    const char *from = text;
    for (const char *at = text; (at = redact_next(text, at, &len)); from = at) {
        shk_strbuf_add(&out, from, (size_t)(at - from));
        shk_strbuf_puts(&out, SHK_REDACTED);
        at += len;
    }
    shk_strbuf_puts(&out, from);
    if (out.len || out.failed)
        return shk_strbuf_take(&out);
    shk_strbuf_free(&out);
    return strdup("");
}

/* The items of a value, split where lists are; an item that is a path is never looked into. */
static bool redact_has_random(const char *value)
{
    for (const char *p = value; *p;) {
        size_t item = strcspn(p, ",:; \t\n");
        bool path = strchr("/.~$", *p) != NULL;
        for (size_t i = 0; !path && i < item;) {
            size_t len = strspn(p + i, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-+=./");
            if (shk_redact_random(p + i, len))
                return true;
            i += len + 1;
        }
        p += item + (p[item] != '\0');
    }
    return false;
}

bool shk_redact_value(const char *name, const char *value, const char **why_p)
{
    size_t len;
    const char *why = shk_redact_name(name, strlen(name), value, strlen(value), false);
    if (!why && strstr(value, SHK_REDACTED))
        why = "it was redacted where it was written down";
    if (!why && (redact_next(value, value, &len) || strncasecmp(value, "Bearer ", 7) == 0))
        why = "the value holds a password, a token or a key";
    if (!why && redact_has_random(value))
        why = "the value looks like a random key";
    if (why)
        *why_p = why;
    return why != NULL;
}

static json_t *redact_json_string(json_t *value)
{
    size_t len;
    const char *text = json_string_value(value);
    if (!redact_next(text, text, &len))
        return json_incref(value);
    char *clean = shk_redact(text);
    json_t *copy = clean ? json_string_nocheck(clean) : NULL;
    free(clean);
    return copy;
}

/* Is this member a secret by its name, or "value" beside a "name" that is one? */
static bool redact_json_member(const json_t *object, const char *key, const json_t *item)
{
    const char *why, *text = json_string_value(item);
    const char *name = json_string_value(json_object_get(object, "name"));
    if (!text)
        return false;
    if (name && strcmp(key, "value") == 0 && shk_redact_value(name, text, &why))
        return true;
    return shk_redact_name(key, strlen(key), text, strlen(text), false) != NULL;
}

/* `item` redacted took the place of `was` in the container: a copy of it is made at the first. */
static json_t *redact_json_object(json_t *value)
{
    json_t *copy = NULL, *item;
    const char *key;
    json_object_foreach(value, key, item)
    {
        json_t *clean = redact_json_member(value, key, item) ? json_string(SHK_REDACTED)
                                                             : shk_redact_json(item);
        if (clean != item && !copy && clean)
            copy = json_copy(value);
        int rc = !clean || (clean != item && !copy);
        if (!rc && clean != item)
            rc = json_object_set_nocheck(copy, key, clean);
        json_decref(clean);
        if (rc) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy ? copy : json_incref(value);
}

static json_t *redact_json_array(json_t *value)
{
    json_t *copy = NULL, *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        json_t *clean = shk_redact_json(item);
        if (clean != item && !copy && clean)
            copy = json_copy(value);
        int rc = !clean || (clean != item && !copy);
        if (!rc && clean != item)
            rc = json_array_set(copy, i, clean);
        json_decref(clean);
        if (rc) {
            json_decref(copy);
            return NULL;
        }
    }
    return copy ? copy : json_incref(value);
}

json_t *shk_redact_json(json_t *value)
{
    if (json_is_string(value))
        return redact_json_string(value);
    if (json_is_object(value))
        return redact_json_object(value);
    return json_is_array(value) ? redact_json_array(value) : json_incref(value);
}
