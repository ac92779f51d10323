/* Growable string with a sticky status: after a failed allocation every further call is a no-op,
 * and the caller asks once, at the end, through shk_strbuf_take(). */
#ifndef SHK_CORE_STRBUF_H
#define SHK_CORE_STRBUF_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

struct shk_strbuf {
    char *data; /* NUL-terminated once anything was added; NULL before */
    size_t len; /* bytes, without the NUL */
    size_t cap;
    bool failed;
};

#define SHK_STRBUF_INIT                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

void shk_strbuf_add(struct shk_strbuf *sb, const void *data, size_t len);
void shk_strbuf_puts(struct shk_strbuf *sb, const char *text);
void shk_strbuf_putc(struct shk_strbuf *sb, char c);
void shk_strbuf_printf(struct shk_strbuf *sb, const char *fmt, ...) SHK_PRINTF(2, 3);

/* The text so far, "" when empty; owned by sb. */
const char *shk_strbuf_text(const struct shk_strbuf *sb);

/* Hands the text over (free with free()) and leaves sb empty. NULL when out of memory. */
char *shk_strbuf_take(struct shk_strbuf *sb);

void shk_strbuf_free(struct shk_strbuf *sb);

/* String helpers shared by all layers. */

/* Formats into a new string (free()); NULL when out of memory. */
char *shk_strf(const char *fmt, ...) SHK_PRINTF(1, 2);

/* New copy of a text; of NULL an empty one. NULL: out of memory. */
char *shk_copy(const char *text);

/* Optimal-string-alignment distance (insert, delete, substitute, transpose neighbours), ASCII
 * case-insensitive. Strings above 128 bytes count as infinitely far (returns SIZE_MAX). */
size_t shk_edit_distance(const char *a, const char *b);

/* The same when it is at most `limit`, else any larger number; much faster for a small limit. */
size_t shk_edit_distance_within(const char *a, const char *b, size_t limit);

/* How far a word of this length may be from the one that was meant. */
size_t shk_nearest_limit(size_t length);

/* Nearest of `names` to `word`, or NULL when none is near enough to be a plausible misspelling
 * (distance at most 1 for words of 4 characters or less, 2 up to 10, else 3). An exact match is
 * never returned. Borrowed from names. */
const char *shk_nearest(const char *word, const char *const *names, size_t count);

/* Dotted version compare ("1.18.0" > "1.9", missing parts count as 0, a leading 'v' and anything
 * after the first character that is neither digit nor '.' is ignored). Returns <0, 0, >0. */
int shk_version_cmp(const char *a, const char *b);

/* Bytes of the UTF-8 byte order mark that some editors put before a text; 0: none. */
size_t shk_bom(const char *text, size_t len);

/* Is the word in the text, behind a blank and before a blank or one of `ends`? */
bool shk_has_word(const char *text, const char *word, const char *ends);

/* Removes leading and trailing white space in place; returns the start inside s. */
char *shk_trim(char *s);

#endif
