/* A full-text index in memory, by SQLite's FTS5: which of the texts that were added have most words
 * in common with another one. Words are what BM25 weighs: rare ones count more than common ones,
 * and endings do not count ("registered" is "register"). */
#ifndef SHK_CORE_SEARCH_H
#define SHK_CORE_SEARCH_H

#include "core/text/error.h"
#include "core/text/strbuf.h"

#include <stddef.h>

struct shk_search;

struct shk_search_hit {
    size_t id;
    double score; /* above zero; only to be compared with others of the same search */
};

/* Is this build able to search (has it SQLite)? The SQLite that is there at run time may still lack
 * FTS5: then shk_search_create() says so. */
bool shk_search_built(void);

/* -ENOTSUP: without SQLite or FTS5. */
int shk_search_create(struct shk_search **search_p, struct shk_error *err) SHK_MUST_CHECK;
void shk_search_destroy(struct shk_search *search);

/* Several texts may have the same id. A text without words is not kept. */
int shk_search_add(struct shk_search *search, size_t id, const char *text,
                   struct shk_error *err) SHK_MUST_CHECK;

/* The texts with the most in common, best first, at most `cap`; an id comes once for each of its
 * texts. How many there are, or a negative errno. Only the first words of a very long text are
 * looked for (SHK_SEARCH_WORDS different ones). */
#define SHK_SEARCH_WORDS 400
int shk_search_find(struct shk_search *search, const char *text, struct shk_search_hit *hits,
                    size_t cap, struct shk_error *err) SHK_MUST_CHECK;

/* Appends the words of a text as they are compared, each in lower case and with a space behind it:
 * names of functions and variables are taken apart (ncclCommInitRank, NCCL_IB_HCA), numbers of up
 * to three digits count (errno), words that every error has (failed, error, the) do not. */
void shk_search_words(struct shk_strbuf *out, const char *text);

#endif
