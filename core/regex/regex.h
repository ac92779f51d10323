/* The one dialect of regular expressions of the catalogue and of a site's files: what PCRE2 and
 * Vectorscan understand in the same way.
 *
 *   c . \. \t \n \r \xHH  a character; any; one that has a meaning, as it is
 *   [a-z] [^,] [[:space:]]  one of these
 *   \d \w \s \D \W \S     digits, letters of words, white space; all others
 *   ^ $ \b \B             begin and end of the text, of a word, not of a word
 *   ( ) (?: ) |           groups, alternatives
 *   ? * + {2} {2,} {2,5}  how often, with ? behind it as few as possible; at most 255
 *   (?i)                  first of all: letters in either case
 *
 * Bytes are characters. There are no back references, no look-around and nothing that is repeated
 * twice. Any such pattern takes a bounded time and memory for any text: PCRE2 tries its ways one
 * after the other up to a limit, and where that is reached all of them at once. */
#ifndef SHK_CORE_REGEX_H
#define SHK_CORE_REGEX_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

/* What a pattern consists of. SHK_REGEX_CHAR: one byte, or the same letter in the other case. */
enum shk_regex_kind {
    SHK_REGEX_END,
    SHK_REGEX_CHAR,
    SHK_REGEX_SET,
    SHK_REGEX_EDGE,
    SHK_REGEX_OPEN,
    SHK_REGEX_CLOSE,
    SHK_REGEX_BAR,
};

struct shk_regex_token {
    enum shk_regex_kind kind;
    unsigned char c;      /* of SHK_REGEX_CHAR */
    size_t end;           /* behind what is repeated */
    unsigned least, most; /* how often; of a group at its end. most: UINT_MAX when it is open */
};

/* The token at *at_p, which goes behind it. -EINVAL says what is wrong with it. */
int shk_regex_next(const char *pattern, size_t *at_p, struct shk_regex_token *token,
                   struct shk_error *err) SHK_MUST_CHECK;

/* Where the tokens begin: behind (?i). */
size_t shk_regex_start(const char *pattern);

/* -EINVAL: not of this dialect, or too large. */
int shk_regex_check(const char *pattern, struct shk_error *err) SHK_MUST_CHECK;

struct shk_regex;

/* -EINVAL: it cannot be compiled. Of any length: that of a foreign one is checked before. */
int shk_regex_create(struct shk_regex **regex_p, const char *pattern,
                     struct shk_error *err) SHK_MUST_CHECK;
void shk_regex_destroy(struct shk_regex *regex);

/* Worth while for a pattern that is looked for often; before threads share it. */
void shk_regex_speed(struct shk_regex *regex);

bool shk_regex_matches_empty(const struct shk_regex *regex);
size_t shk_regex_groups(const struct shk_regex *regex);

/* What one thread needs to search. NULL: out of memory. */
struct shk_regex_work;
struct shk_regex_work *shk_regex_work_create(void);
void shk_regex_work_destroy(struct shk_regex_work *work);

/* 1: it matches somewhere in the text, 0: it does not. -ENOMEM. */
int shk_regex_find(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                   size_t len) SHK_MUST_CHECK;

/* Tells each offset at which a match ends, wherever it began, until fn returns anything but 0.
 * 0 or -ENOMEM. */
typedef int shk_regex_end(void *arg, size_t to);
int shk_regex_ends(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                   size_t len, shk_regex_end *fn, void *arg) SHK_MUST_CHECK;

/* The first match from `at` on: what its last group took (all of it where there is no group). 1, 0,
 * or -E2BIG: it took too many steps. */
int shk_regex_last_group(struct shk_regex *regex, struct shk_regex_work *work, const char *text,
                         size_t len, size_t at, size_t *start_p, size_t *end_p) SHK_MUST_CHECK;

#endif
