/* Finds the patterns of a set in pieces of whole lines. Lines of many ranks differ in numbers
 * only: what was found in one is kept by its mask (logmask.h), and a line whose mask is known is
 * not searched again, unless one of the patterns could tell its numbers apart (logwide.h). */
#ifndef SHK_PROBES_LOGFIND_H
#define SHK_PROBES_LOGFIND_H

#include "core/text/error.h"
#include "probes/engine/logengine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is looked for: borrowed, may be shared by several threads. */
struct shk_log_wanted {
    const struct shk_log_engine *engine;
    const struct shk_log_set *exact;
    const struct shk_log_set *wide; /* of those that are not blind; NULL: every line is searched */
    size_t count;                   /* ids are below */
    const bool *every;              /* of these ids every match of a line counts, else one */
    const bool *once;               /* of these only the first line of a piece */
};

struct shk_log_match {
    uint32_t id, to; /* offset in the line behind the match */
};

/* A line that has matches. */
struct shk_log_line {
    uint32_t start, end;   /* in the piece, without its line break */
    uint32_t first, count; /* of the matches, in the order of their ids and offsets */
};

/* What a piece holds, lines in their order. */
struct shk_log_found {
    struct shk_log_line *lines;
    struct shk_log_match *matches;
    size_t line_count, line_cap, match_count, match_cap;
};
void shk_log_found_free(struct shk_log_found *found);

/* For one thread. Memory does not depend on what is searched. */
struct shk_logfind;
struct shk_logfind *shk_logfind_create(const struct shk_log_wanted *wanted); /* NULL: no memory */
void shk_logfind_destroy(struct shk_logfind *find);

/* The wide ones are there now (borrowed). -ENOMEM: *find can only be destroyed. */
int shk_logfind_widen(struct shk_logfind *find, const struct shk_log_set *wide) SHK_MUST_CHECK;

/* Replaces what is in *found. -ENOMEM, or -EIO: cannot be searched. */
int shk_logfind_piece(struct shk_logfind *find, const char *data, size_t len,
                      struct shk_log_found *found) SHK_MUST_CHECK;

#endif
