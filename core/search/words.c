#include "core/search/search.h"

#include <ctype.h>
#include <string.h>

enum { SHORTEST = 2, LONGEST = 40, DIGITS = 3 };

/* In nearly every message, whatever it is about. */
static const char *const empty_words[] = {
    "an",   "and", "at", "be", "by", "err", "error", "fail", "failed", "for",     "from", "in",
    "info", "is",  "it", "of", "on", "or",  "the",   "to",   "warn",   "warning", "was",  "with",
};

static bool is_empty(const char *word, size_t len)
{
    for (size_t i = 0; i < sizeof empty_words / sizeof *empty_words; i++)
        if (strlen(empty_words[i]) == len && strncmp(empty_words[i], word, len) == 0)
            return true;
    return false;
}

/* The end of the word at text: of letters up to where a new one begins in a name ("commInit",
 * "HMEMInit"), or of digits. */
static size_t word_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t n = 1;
    if (isdigit(s[0])) {
        while (isdigit(s[n]))
            n++;
        return n;
    }
    for (; isalpha(s[n]); n++) {
        bool up = isupper(s[n]);
        if (up && (islower(s[n - 1]) || islower(s[n + 1])))
            break;
    }
    return n;
}

void shk_search_words(struct shk_strbuf *out, const char *text)
{
    for (const char *s = text; *s;) {
        if (!isalnum((unsigned char)*s)) {
            s++;
            continue;
        }
        size_t n = word_length(s);
        char word[LONGEST + 1];
        bool digits = isdigit((unsigned char)*s);
        bool kept = digits ? n <= DIGITS : n >= SHORTEST && n <= LONGEST;
        for (size_t i = 0; kept && i < n; i++)
            word[i] = (char)tolower((unsigned char)s[i]);
        if (kept && !is_empty(word, n))
            shk_strbuf_printf(out, "%.*s ", (int)n, word);
        s += n;
    }
}
