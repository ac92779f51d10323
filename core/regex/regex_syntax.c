#include "core/regex/regex.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN_MAX = 512, COUNT_MAX = 255, DEPTH_MAX = 32, PARTS_MAX = 1024 };

size_t shk_regex_start(const char *pattern)
{
    return strncmp(pattern, "(?i)", 4) == 0 ? 4 : 0;
}

/* A member of a class: a byte; or -1: several, by an escape or a name. */
static int class_member(const char *pattern, size_t *at_p, int *byte_p, struct shk_error *err)
{
    static const char *const names[] = {"alnum", "alpha", "blank", "cntrl", "digit",
                                        "graph", "lower", "print", "punct", "space",
                                        "upper", "word",  "xdigit"};
    const char *p = pattern + *at_p;
    *byte_p = -1;
    if (*p == '[' && p[1] == ':') {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            size_t len = strlen(names[i]);
            if (strncmp(p + 2, names[i], len) == 0 && strncmp(p + 2 + len, ":]", 2) == 0) {
                *at_p += len + 4;
                return 0;
            }
        }
        return shk_error_set(err, EINVAL, "\"%.12s\" names no class such as [:space:]", p);
    }
    if (*p == '[' && p[1] && strchr(".=", p[1]))
        return shk_error_set(err, EINVAL, "[%c is not understood in a class", p[1]);
    *byte_p = (unsigned char)*p;
    *at_p += 1;
    if (*p != '\\')
        return 0;
    char c = p[1];
    *at_p += 1;
    if (c == 'x' && isxdigit((unsigned char)p[2]) && isxdigit((unsigned char)p[3])) {
        char hex[] = {p[2], p[3], '\0'};
        *byte_p = (int)strtoul(hex, NULL, 16);
        *at_p += 2;
    } else if (c && strchr("tnr", c)) {
        *byte_p = c == 't' ? '\t' : c == 'n' ? '\n' : '\r';
    } else if (c && strchr("dDwWsS", c)) {
        *byte_p = -1;
    } else if (!c || isalnum((unsigned char)c)) {
        return shk_error_set(err, EINVAL, "\\%c is not understood in a class", c ? c : ' ');
    } else {
        *byte_p = (unsigned char)c;
    }
    return 0;
}

static int class_range(const char *pattern, size_t *at_p, int low, struct shk_error *err)
{
    int high;
    *at_p += 1;
    int rc = class_member(pattern, at_p, &high, err);
    if (!rc && (low < 0 || high < 0))
        rc = shk_error_set(err, EINVAL, "a range needs a character on either side");
    if (!rc && low > high)
        rc = shk_error_set(err, EINVAL, "the range %c-%c has no character", low, high);
    return rc;
}

/* [...]; of one letter in either case it is that letter. */
static int token_class(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                       struct shk_error *err)
{
    size_t at = *at_p + 1;
    bool negated = pattern[at] == '^';
    int letter = -1, count = 0;
    at += negated;
    for (bool first = true; first || pattern[at] != ']'; first = false) {
        int byte;
        if (!pattern[at])
            return shk_error_set(err, EINVAL, "a class that begins with [ does not end");
        int rc = class_member(pattern, &at, &byte, err);
        if (!rc && pattern[at] == '-' && pattern[at + 1] && pattern[at + 1] != ']') {
            rc = class_range(pattern, &at, byte, err);
            byte = -1;
        }
        if (rc)
            return rc;
        bool same = byte >= 0 && (!count || letter == tolower(byte));
        letter = same ? tolower(byte) : -1;
        count++;
    }
    *at_p = at + 1;
    token->kind = !negated && letter >= 0 ? SHK_REGEX_CHAR : SHK_REGEX_SET;
    token->c = (unsigned char)letter;
    return 0;
}

static int token_escape(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                        struct shk_error *err)
{
    char c = pattern[*at_p + 1];
    int byte;
    if (c == 'b' || c == 'B') {
        token->kind = SHK_REGEX_EDGE;
        *at_p += 2;
        return 0;
    }
    if (!c || (isalnum((unsigned char)c) && !strchr("dDwWsStnrx", c)))
        return shk_error_set(err, EINVAL, "\\%c is not understood", c ? c : ' ');
    int rc = class_member(pattern, at_p, &byte, err);
    token->kind = byte >= 0 ? SHK_REGEX_CHAR : SHK_REGEX_SET;
    token->c = (unsigned char)byte;
    return rc;
}

static int token_group(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                       struct shk_error *err)
{
    const char *p = pattern + *at_p;
    bool plain = strncmp(p, "(?:", 3) == 0;
    token->kind = SHK_REGEX_OPEN;
    if (p[1] == '*' || (p[1] == '?' && !plain))
        return shk_error_set(err, EINVAL,
                             "\"%.4s\" is not understood: of (?...) there are (?:...) and a "
                             "leading (?i)",
                             p);
    *at_p += plain ? 3 : 1;
    return 0;
}

static int token_what(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                      struct shk_error *err)
{
    char c = pattern[*at_p];
    if (c == '\\')
        return token_escape(pattern, at_p, token, err);
    if (c == '[')
        return token_class(pattern, at_p, token, err);
    if (c == '(')
        return token_group(pattern, at_p, token, err);
    if (c && strchr("?*+{", c))
        return shk_error_set(err, EINVAL, "nothing that %c could repeat stands before it%s", c,
                             c == '{' ? "; write \\{ for the character" : "");
    static const char special[] = ")|^$.";
    static const enum shk_regex_kind kinds[] = {SHK_REGEX_CLOSE, SHK_REGEX_BAR, SHK_REGEX_EDGE,
                                                SHK_REGEX_EDGE, SHK_REGEX_SET};
    const char *found = c ? strchr(special, c) : NULL;
    token->kind = !c ? SHK_REGEX_END : found ? kinds[found - special] : SHK_REGEX_CHAR;
    token->c = (unsigned char)c;
    *at_p += c != '\0';
    return 0;
}

static int token_count(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                       struct shk_error *err)
{
    char *end;
    if (!isdigit((unsigned char)pattern[*at_p + 1]))
        return shk_error_set(err, EINVAL, "{ without a number; write \\{ for the character");
    unsigned long least = strtoul(pattern + *at_p + 1, &end, 10), most = least;
    bool open = *end == ',' && end[1] == '}';
    if (*end == ',' && !open)
        most = isdigit((unsigned char)end[1]) ? strtoul(end + 1, &end, 10) : 0;
    end += open;
    most = open ? UINT_MAX : most;
    if (*end != '}' || most < least)
        return shk_error_set(err, EINVAL, "\"%.12s\" is no count such as {2} or {1,3}",
                             pattern + *at_p);
    if (least > COUNT_MAX || (most > COUNT_MAX && most != UINT_MAX))
        return shk_error_set(err, EINVAL, "repeated more than %d times", COUNT_MAX);
    *at_p = (size_t)(end + 1 - pattern);
    token->least = (unsigned)least;
    token->most = (unsigned)most;
    return 0;
}

int shk_regex_next(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                   struct shk_error *err)
{
    *token = (struct shk_regex_token){.least = 1, .most = 1};
    int rc = token_what(pattern, at_p, token, err);
    token->end = *at_p;
    char c = rc ? '\0' : pattern[*at_p];
    bool once = token->kind == SHK_REGEX_OPEN || token->kind == SHK_REGEX_BAR ||
                token->kind == SHK_REGEX_EDGE || token->kind == SHK_REGEX_END;
    if (rc || once || !c || !strchr("?*+{", c))
        return rc;
    if (c == '{') {
        rc = token_count(pattern, at_p, token, err);
    } else {
        token->least = c == '+';
        token->most = c == '?' ? 1 : UINT_MAX;
        *at_p += 1;
    }
    *at_p += !rc && pattern[*at_p] == '?';
    if (!rc && pattern[*at_p] && strchr("?*+{", pattern[*at_p]))
        rc = shk_error_set(err, EINVAL, "%c behind what is repeated already", pattern[*at_p]);
    return rc;
}

/* Parts of the pattern once what is counted is written out. */
struct parts {
    double outside[DEPTH_MAX], now;
    size_t depth;
};

static int parts_add(struct parts *parts, const struct shk_regex_token *token,
                     struct shk_error *err)
{
    unsigned most = token->most == UINT_MAX ? token->least : token->most;
    double copies = most > 1 ? most : 1;
    if (token->kind == SHK_REGEX_OPEN && parts->depth == DEPTH_MAX)
        return shk_error_set(err, EINVAL, "more than %d groups in each other", DEPTH_MAX);
    if (token->kind == SHK_REGEX_CLOSE && !parts->depth)
        return shk_error_set(err, EINVAL, ") without (");
    if (token->kind == SHK_REGEX_OPEN) {
        parts->outside[parts->depth++] = parts->now;
        parts->now = 1;
    } else if (token->kind == SHK_REGEX_CLOSE) {
        parts->now = parts->outside[--parts->depth] + parts->now * copies;
    } else if (token->kind == SHK_REGEX_END && parts->depth) {
        return shk_error_set(err, EINVAL, "a group that begins with ( does not end");
    } else {
        parts->now += copies;
    }
    if (parts->now > PARTS_MAX)
        return shk_error_set(err, EINVAL, "what is repeated becomes too large");
    return 0;
}

/* What means something else to other libraries. */
static int escape_check(const char *pattern, size_t at, struct shk_error *err)
{
    if (pattern[at] != '\\' || !strchr("<>`'", pattern[at + 1]))
        return 0;
    return shk_error_set(err, EINVAL,
                         "\\%c: write \\b for the edge of a word, %c for the character",
                         pattern[at + 1], pattern[at + 1]);
}

/* ^ only where a text can begin, $ only where it can end: elsewhere they can never match. */
static int edge_check(const char *pattern, size_t at, size_t end, struct shk_error *err)
{
    size_t first = shk_regex_start(pattern);
    char before = at > first ? pattern[at - 1] : '|', behind = pattern[end];
    bool group = at >= first + 2 && before == ':' && pattern[at - 2] == '?';
    if (pattern[at] == '^' && !group && !strchr("(|^", before))
        return shk_error_set(err, EINVAL, "^ is not at the begin; write \\^ for the character");
    if (pattern[at] == '$' && behind && !strchr(")|", behind))
        return shk_error_set(err, EINVAL, "$ is not at the end; write \\$ for the character");
    return 0;
}

int shk_regex_check(const char *pattern, struct shk_error *err)
{
    struct parts parts = {.depth = 0};
    struct shk_regex_token token = {.kind = SHK_REGEX_BAR};
    if (strnlen(pattern, PATTERN_MAX + 1) > PATTERN_MAX)
        return shk_error_set(err, EINVAL, "regular expression longer than %d bytes", PATTERN_MAX);
    int rc = 0;
    for (size_t at = shk_regex_start(pattern), was; !rc && token.kind != SHK_REGEX_END;) {
        was = at;
        rc = shk_regex_next(pattern, &at, &token, err);
        rc = rc ? rc : parts_add(&parts, &token, err);
        rc = rc ? rc : escape_check(pattern, was, err);
        if (!rc && token.kind == SHK_REGEX_EDGE)
            rc = edge_check(pattern, was, at, err);
    }
    return rc;
}
