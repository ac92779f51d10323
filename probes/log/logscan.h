/* Looks for many patterns at once in logs, and says what was found as facts: log.files, log.lines,
 * log.sig.<id>, log.unknown (docs/facts.md). Lines of many ranks and nodes that match the same
 * pattern are folded into one entry with a count, the first occurrence and the first few places.
 * Memory does not depend on the size of the logs. */
#ifndef SHK_PROBES_LOGSCAN_H
#define SHK_PROBES_LOGSCAN_H

#include "core/facts/facts.h"
#include "core/text/error.h"
#include "probes/engine/logengine.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shk_log_pattern {
    const char *id;
    const char *pattern;          /* core/regex/regex.h, within one line; NULL: texts anywhere */
    const char *texts;            /* messages behind the pattern (core/text/messages.h); NULL */
    const char *object;           /* in place of both: the line names this (core/regex/regex.h), */
    const char *const *errors;    /* and one of these errors (core/text/errnos.h) */
    const char *capture;          /* PCRE with named groups, on the line that matched; NULL */
    const char *place;            /* for messages about the pattern; may be NULL */
    const char *const *elsewhere; /* ids of lines that other nodes print instead; NULL */
    const char *const *ended_by;  /* ids of lines that say later that it is over; NULL */
    bool state;                   /* remember of whom the last lines spoke */
    bool origins;                 /* remember who printed it */
    bool error_words;             /* only says that a line looks like an error */
    bool doubt_words;             /* only says that a line may tell of trouble */
    bool once;                    /* it is enough to know that it is there: no count */
    bool explains;                /* a line that matches is known, even if it looks like an error */
    bool guess;                   /* counts only at lines that nothing else decides */
    bool decides;                 /* knows what a line means, so that nothing is guessed at it */
    bool general;                 /* its object is of many kinds */
    bool yields; /* does not count where a pattern with an object that is not general fits the line
                  */
};

/* Databases that were compiled from the same patterns before: themselves, and the wider ones by
 * which lines are told that need not be searched (logwide.h; NULL: there are none). */
struct shk_log_database {
    const struct shk_log_engine *engine; /* that made it; NULL: shk_log_engine() */
    uint64_t patterns;                   /* shk_logscan_digest() of them */
    const char *data, *wide;
    size_t size, wide_size;
};

struct shk_logscan;

uint64_t shk_logscan_digest(const struct shk_log_pattern *patterns, size_t count);

/* Compiles for any processor of this architecture, by this engine (NULL: shk_log_engine()); data
 * and wide are new memory (free()). */
int shk_logscan_compile(const struct shk_log_pattern *patterns, size_t count,
                        const struct shk_log_engine *engine, struct shk_log_database *made,
                        struct shk_error *err) SHK_MUST_CHECK;

/* Takes the database when it fits these patterns and this processor, else (or when it is NULL, or
 * has no data) compiles by its engine, which takes Vectorscan about a second for 600 patterns. The
 * texts are borrowed until destroy. -EINVAL names the pattern that is wrong. */
int shk_logscan_create(struct shk_logscan **scan_p, const struct shk_log_pattern *patterns,
                       size_t count, const struct shk_log_database *database,
                       struct shk_error *err) SHK_MUST_CHECK;

/* From now on `fn` gets every piece of whole lines of the files before it is scanned; what it
 * returns other than 0 (a negative errno) ends the scan. */
typedef int shk_logscan_watcher(void *arg, const char *name, const char *data, size_t len);
void shk_logscan_watch(struct shk_logscan *scan, shk_logscan_watcher *fn, void *arg);

/* From now on `fn` gets each line that matches: its number in the file, the pattern's index, and
 * the line; nearly in the order of the lines. */
typedef void shk_logscan_hit(void *arg, unsigned long long number, size_t pattern, const char *line,
                             size_t len);
void shk_logscan_hits(struct shk_logscan *scan, shk_logscan_hit *fn, void *arg);

/* Scans a file ("-" is stdin). What was found before an error is kept. */
int shk_logscan_file(struct shk_logscan *scan, const char *path,
                     struct shk_error *err) SHK_MUST_CHECK;

/* Scans text in memory as a file of that name; may be called again to go on with it. */
int shk_logscan_text(struct shk_logscan *scan, const char *name, const char *text, size_t len,
                     struct shk_error *err) SHK_MUST_CHECK;

/* Writes what was found so far. */
int shk_logscan_facts(const struct shk_logscan *scan, struct shk_facts *facts);

void shk_logscan_destroy(struct shk_logscan *scan);

#endif
