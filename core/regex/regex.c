#define PCRE2_CODE_UNIT_WIDTH 8
#include "core/regex/regex.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <limits.h>
#include <pcre2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* STEPS: of all tries of one search, shared by the places where a match can begin; a place has
 * STEPS_LEAST at least. HEAP: in KiB, for a search without a compiled pattern. ROOM_MAX: of
 * integers, for a search of all ways at once. */
enum {
    STEPS = 1 << 26,
    STEPS_LEAST = 1000,
    STEPS_MOST = 1 << 20,
    HEAP = 4096,
    ROOM = 4096,
    ROOM_MAX = 1 << 20,
    OPTIONS = PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP |
              PCRE2_NEVER_BACKSLASH_C
};

struct shk_regex {
    char *pattern;
    pcre2_code *code;
    _Atomic(pcre2_code *) whole; /* from the begin of the text on; made when it is needed */
};

struct shk_regex_work {
    pcre2_match_data *match;
    pcre2_match_context *limits;
    int *room;
    size_t room_count;
};

/* The same whatever PCRE2 was built with. */
static pcre2_code *regex_compile(const char *pattern, uint32_t more, char *why, size_t size)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(context, PCRE2_BSR_ANYCRLF);
    pcre2_set_parens_nest_limit(context, 64);
    pcre2_code *made = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, OPTIONS | more,
                                     &code, &at, context);
    pcre2_compile_context_free(context);
    if (!made && why) {
        PCRE2_UCHAR text[160] = "";
        pcre2_get_error_message(code, text, sizeof text);
        snprintf(why, size, "%s at character %zu", (const char *)text, at + 1);
    }
    return made;
}

int shk_regex_create(struct shk_regex **regex_p, const char *pattern, struct shk_error *err)
{
    char why[224] = "";
    struct shk_regex *regex = calloc(1, sizeof *regex);
    if (!regex || !(regex->pattern = strdup(pattern))) {
        free(regex);
        return shk_error_sys(err, ENOMEM, "regular expression");
    }
    regex->code = regex_compile(pattern, 0, why, sizeof why);
    if (!regex->code) {
        shk_regex_destroy(regex);
        return *why ? shk_error_set(err, EINVAL, "not a regular expression: %s", why)
                    : shk_error_sys(err, ENOMEM, "regular expression");
    }
    *regex_p = regex;
    return 0;
}

void shk_regex_destroy(struct shk_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    pcre2_code_free(atomic_load(&regex->whole));
    free(regex->pattern);
    free(regex);
}

void shk_regex_speed(struct shk_regex *regex)
{
    pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE); /* without it, it is only slower */
}

bool shk_regex_matches_empty(const struct shk_regex *regex)
{
    uint32_t empty = 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_MATCHEMPTY, &empty);
    return empty;
}

size_t shk_regex_groups(const struct shk_regex *regex)
{
    uint32_t groups = 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    return groups;
}

struct shk_regex_work *shk_regex_work_create(void)
{
    struct shk_regex_work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    work->match = pcre2_match_data_create(16, NULL);
    work->limits = pcre2_match_context_create(NULL);
    if (!work->match || !work->limits) {
        shk_regex_work_destroy(work);
        return NULL;
    }
    pcre2_set_heap_limit(work->limits, HEAP);
    return work;
}

void shk_regex_work_destroy(struct shk_regex_work *work)
{
    if (!work)
        return;
    pcre2_match_data_free(work->match);
    pcre2_match_context_free(work->limits);
    free(work->room);
    free(work);
}

static int regex_match(const struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                       size_t len, size_t at)
{
    size_t steps = STEPS / (len + 1);
    steps = steps < STEPS_LEAST ? STEPS_LEAST : steps > STEPS_MOST ? STEPS_MOST : steps;
    pcre2_set_match_limit(work->limits, (uint32_t)steps);
    return pcre2_match(regex->code, (PCRE2_SPTR)text, len, at, 0, work->match, work->limits);
}

/* `a+` as `aa*`, `a{3,}` as `a{3}a*`: a walk that counts has as many ways as it counted. */
static bool regex_uncounted(struct shk_strbuf *sb, const char *pattern)
{
    struct shk_regex_token token = {.kind = SHK_REGEX_BAR};
    size_t at = shk_regex_start(pattern);
    shk_strbuf_add(sb, pattern, at);
    for (size_t was = at; token.kind != SHK_REGEX_END; was = at) {
        if (shk_regex_next(pattern, &at, &token, NULL))
            return false;
        bool one = token.kind == SHK_REGEX_CHAR || token.kind == SHK_REGEX_SET;
        if (!one || !token.least || token.most != UINT_MAX) {
            shk_strbuf_add(sb, pattern + was, at - was);
            continue;
        }
        shk_strbuf_add(sb, pattern + was, token.end - was);
        if (token.least > 1)
            shk_strbuf_printf(sb, "{%u}", token.least);
        shk_strbuf_add(sb, pattern + was, token.end - was);
        shk_strbuf_putc(sb, '*');
    }
    return true;
}

/* The pattern behind any text, for one walk over all of it. What is repeated must not be made
 * possessive: that would leave out ends. */
static pcre2_code *regex_whole(struct shk_regex *regex)
{
    pcre2_code *whole = atomic_load(&regex->whole), *was = NULL;
    if (whole)
        return whole;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    shk_strbuf_puts(&sb, "(?:.*?)(?:");
    if (!regex_uncounted(&sb, regex->pattern)) { /* not of the dialect */
        shk_strbuf_free(&sb);
        shk_strbuf_printf(&sb, "(?:.*?)(?:%s", regex->pattern);
    }
    shk_strbuf_putc(&sb, ')');
    uint32_t more = PCRE2_ANCHORED | PCRE2_NO_AUTO_CAPTURE | PCRE2_NO_AUTO_POSSESS;
    whole = sb.failed ? NULL : regex_compile(sb.data, more, NULL, 0);
    shk_strbuf_free(&sb);
    if (whole && !atomic_compare_exchange_strong(&regex->whole, &was, whole)) {
        pcre2_code_free(whole);
        whole = was;
    }
    return whole;
}

static bool work_grow(struct shk_regex_work *work)
{
    size_t count = work->room ? work->room_count * 4 : ROOM;
    int *room = count <= ROOM_MAX ? reallocarray(work->room, count, sizeof *room) : NULL;
    if (!room)
        return false;
    work->room = room;
    work->room_count = count;
    return true;
}

/* All ways at once: how many matches there are; 0: more than there is room for. */
static int regex_walk(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                      size_t len, uint32_t options)
{
    pcre2_code *whole = regex_whole(regex);
    int rc = PCRE2_ERROR_DFA_WSSIZE;
    if (!whole)
        return -ENOMEM;
    pcre2_set_match_limit(work->limits, UINT32_MAX);
    while (rc == PCRE2_ERROR_DFA_WSSIZE) {
        if (!work->room && !work_grow(work))
            return -ENOMEM;
        rc = pcre2_dfa_match(whole, (PCRE2_SPTR)text, len, 0, options, work->match, work->limits,
                             work->room, work->room_count);
        if (rc == PCRE2_ERROR_DFA_WSSIZE && !work_grow(work))
            return -ENOMEM;
    }
    return rc == PCRE2_ERROR_NOMATCH ? -ENOENT : rc < 0 ? -ENOMEM : rc;
}

int shk_regex_find(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                   size_t len)
{
    int rc = regex_match(regex, work, text, len, 0);
    if (rc >= 0)
        return 1;
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    rc = regex_walk(regex, work, text, len, PCRE2_DFA_SHORTEST);
    return rc == -ENOENT ? 0 : rc < 0 ? rc : 1;
}

int shk_regex_ends(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                   size_t len, shk_regex_end *fn, void *arg)
{
    int rc = regex_walk(regex, work, text, len, 0);
    for (uint32_t room = 64; rc == 0; room *= 8) {
        pcre2_match_data *more =
            pcre2_match_data_create(room < len + 1 ? room : (uint32_t)len + 1, NULL);
        if (!more)
            return -ENOMEM;
        pcre2_match_data_free(work->match);
        work->match = more;
        rc = regex_walk(regex, work, text, len, 0);
    }
    const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(work->match);
    for (int i = rc - 1; i >= 0; i--)
        if (fn(arg, spans[2 * i + 1]))
            break;
    return rc == -ENOENT || rc > 0 ? 0 : rc;
}

int shk_regex_last_group(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                         size_t len, size_t at, size_t *start_p, size_t *end_p)
{
    int rc = regex_match(regex, work, text, len, at);
    if (rc == PCRE2_ERROR_NOMATCH)
        return 0;
    if (rc < 0)
        return -E2BIG;
    const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(work->match);
    size_t last = shk_regex_groups(regex), room = pcre2_get_ovector_count(work->match);
    last = last < room ? last : room - 1;
    *start_p = spans[2 * last];
    *end_p = spans[2 * last + 1];
    return spans[2 * last] != PCRE2_UNSET;
}
