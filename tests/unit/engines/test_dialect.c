/* Patterns of the dialect (core/regex/regex.h) made at random: both engines refuse the same, and
 * find the same in texts of the few characters that the patterns are about. */
#include "core/regex/regex.h"
#include "engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t put(char *out, size_t at, const char *text)
{
    return at + (size_t)sprintf(out + at, "%s", text);
}

static size_t make(char *out, size_t at, int depth)
{
    static const char *const atoms[] = {
        "a",    "b",   "Ab",  ".",           "[ab]", "[^a]",   "\\d",    "0",  "\\w",   "\\bab",
        "_",    "aab", "ba",  "[[:alpha:]]", "\\.",  "[a-c]",  "\\x41b", " ",  "ab\\b", "0x",
        "[-a]", "\\S", "b0a", "[]b]",        "\\Ba", "[\\d_]", "\\t",    "\\["};
    static const char *const counts[] = {"",   "",   "",    "",      "?",     "*",    "+",
                                         "??", "*?", "{2}", "{1,3}", "{0,2}", "{2,}", "+?"};
    int parts = 1 + rand() % 3;
    for (int i = 0; i < parts; i++) {
        if (depth < 2 && rand() % 4 == 0) {
            at = put(out, at, rand() % 2 ? "(" : "(?:");
            at = make(out, at, depth + 1);
            at = put(out, at, "|");
            at = make(out, at, depth + 1);
            at = put(out, at, ")");
        } else {
            const char *atom = atoms[(size_t)rand() % (sizeof atoms / sizeof *atoms)];
            at = put(out, at, atom);
            if (strcmp(atom, "ab\\b") == 0)
                continue;
        }
        at = put(out, at, counts[(size_t)rand() % (sizeof counts / sizeof *counts)]);
    }
    return at;
}

static void text_make(char *out, size_t len)
{
    static const char letters[] = "aaabbbABc0019_. x-\t[]\r\x80";
    for (size_t i = 0; i < len; i++)
        out[i] = letters[(size_t)rand() % (sizeof letters - 1)];
}

static bool needs_nothing(const char *text)
{
    struct shk_regex *regex = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_regex_create(&regex, text, &err), 0, "%s: %s", text, err.text);
    bool empty = shk_regex_matches_empty(regex);
    shk_regex_destroy(regex);
    return empty;
}

Test(engines, find_the_same_for_patterns_made_at_random)
{
    enum { PATTERNS = 600, TEXTS = 40, LEN = 48 };
    size_t taken = 0, matches = 0, missed = 0;
    if (!pair_possible())
        return;
    srand(7);
    for (size_t i = 0; i < PATTERNS; i++) {
        char text[2048];
        struct pair pair;
        struct shk_error err = {""};
        size_t at = put(text, 0, i % 5 == 0 ? "(?i)" : "");
        at = put(text, at, i % 7 == 0 ? "^" : "");
        at = make(text, at, 0);
        put(text, at, i % 6 == 0 ? "$" : "");
        cr_assert_eq(shk_regex_check(text, &err), 0, "%s: %s", text, err.text);
        if (needs_nothing(text)) /* config/schema/valid.c refuses it */
            continue;
        const struct shk_log_pattern pattern = {
            .id = "made", .pattern = text, .texts = i % 2 ? "some text of a table %s" : NULL};
        if (!pair_open(&pair, &pattern, 1, i % 3 == 2)) {
            pair.one_way = true;
            for (size_t k = 0; k < TEXTS; k++) {
                char line[LEN];
                size_t len = (size_t)rand() % LEN;
                text_make(line, len);
                pair_text(&pair, text, line, len);
            }
            taken++;
            matches += pair.matches;
            missed += pair.missed;
        }
        pair_close(&pair);
    }
    fprintf(stderr, "engines: %zu of %d patterns taken, %zu matches, Vectorscan misses %zu\n",
            taken, PATTERNS, matches, missed);
    cr_expect_gt(taken, PATTERNS / 2);
    cr_expect_gt(matches, taken);
    cr_expect_lt(missed, matches / 500);
}
