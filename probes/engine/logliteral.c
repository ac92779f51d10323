#include "probes/engine/logliteral.h"

#include "core/regex/regex.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

/* Of texts rarer than RARE_MAX bits none is better. */
enum { RARE_MAX = 48 };

/* Texts found so far; those of the best choice are the last ones. */
struct need {
    const char *pattern;
    size_t at;
    struct shk_log_literal *literals;
    size_t count;
    bool failed; /* not understood, or too many */
};

/* What is asked for next is to be found in this many bits of a line, about. */
static int byte_bits(char c)
{
    if (isdigit((unsigned char)c) || strchr(" etaoinsr", c))
        return 3;
    return isalpha((unsigned char)c) || strchr("_.:,-/=[]()", c) ? 5 : 7;
}

static int window_bits(const char *text, size_t len)
{
    int bits = 0;
    for (size_t i = 0; i < len; i++)
        bits += byte_bits(text[i]);
    return bits;
}

static int literal_bits(struct shk_log_literal *literal)
{
    int best = -1;
    for (size_t i = 0; i + SHK_LOG_GRAM <= literal->len; i++) {
        int bits = window_bits(literal->text + i, SHK_LOG_GRAM);
        if (bits > best) {
            best = bits;
            literal->rare = (unsigned char)i;
        }
    }
    int bits = literal->len < SHK_LOG_GRAM_LEAST ? 0 : window_bits(literal->text, literal->len);
    return bits < RARE_MAX ? bits : RARE_MAX;
}

/* Keeps the texts from `from` on in place of those from `base` on when they are rarer. */
static void need_choose(struct need *need, size_t base, size_t from, int bits, int *best_p)
{
    if (bits > *best_p) {
        *best_p = bits;
        memmove(need->literals + base, need->literals + from,
                (need->count - from) * sizeof *need->literals);
        need->count = base + need->count - from;
    } else {
        need->count = from;
    }
}

/* The run of fixed bytes ends. */
static void need_run(struct need *need, size_t base, struct shk_log_literal *run, int *best_p)
{
    int bits = literal_bits(run);
    if (run->len && bits > *best_p) {
        if (need->count == SHK_LOG_LITERALS_MAX) {
            need->failed = true;
            return;
        }
        need->literals[need->count++] = *run;
        need_choose(need, base, need->count - 1, bits, best_p);
    }
    *run = (struct shk_log_literal){.len = 0};
}

static int need_either(struct need *need, struct shk_regex_token *last);

static void need_char(struct need *need, size_t base, const struct shk_regex_token *token,
                      struct shk_log_literal *run, int *best_p)
{
    if (token->least)
        run->text[run->len++] = shk_log_fold((char)token->c);
    if (token->least != 1 || token->most != 1 || run->len == SHK_LOG_LITERAL_MAX)
        need_run(need, base, run, best_p);
}

/* One alternative, up to `|`, `)` or the end, which is *last: its texts are behind those that were
 * there; how rare they are, 0: there are none. */
static int need_branch(struct need *need, struct shk_regex_token *last)
{
    size_t base = need->count;
    struct shk_log_literal run = {.len = 0};
    int best = 0;
    while (!need->failed) {
        struct shk_regex_token token;
        need->failed = shk_regex_next(need->pattern, &need->at, &token, NULL) != 0;
        if (need->failed)
            break;
        if (token.kind == SHK_REGEX_CHAR) {
            need_char(need, base, &token, &run, &best);
            continue;
        }
        if (token.kind == SHK_REGEX_EDGE)
            continue;
        need_run(need, base, &run, &best);
        if (token.kind == SHK_REGEX_OPEN) {
            size_t from = need->count;
            int bits = need_either(need, &token);
            need_choose(need, base, from, token.least ? bits : 0, &best);
        } else if (token.kind != SHK_REGEX_SET) {
            *last = token;
            break;
        }
    }
    return best;
}

/* Alternatives, up to what ends all of them. */
static int need_either(struct need *need, struct shk_regex_token *last)
{
    size_t base = need->count;
    int rarest = RARE_MAX;
    bool any = false;
    do {
        int bits = need_branch(need, last);
        any |= !bits;
        rarest = bits < rarest ? bits : rarest;
    } while (!need->failed && last->kind == SHK_REGEX_BAR);
    if (any)
        need->count = base;
    for (size_t n = need->count - base; n > 1; n /= 2)
        rarest -= rarest > 1;
    return any ? 0 : rarest;
}

size_t shk_log_literals(const char *pattern, struct shk_log_literal literals[SHK_LOG_LITERALS_MAX])
{
    struct need need = {.pattern = pattern, .at = shk_regex_start(pattern), .literals = literals};
    struct shk_regex_token last = {.kind = SHK_REGEX_END};
    int bits = need_either(&need, &last);
    return need.failed || !bits || last.kind != SHK_REGEX_END ? 0 : need.count;
}
