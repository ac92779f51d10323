/* What the sources of logscan.h share. */
#ifndef SHK_PROBES_LOGSCAN_PRIVATE_H
#define SHK_PROBES_LOGSCAN_PRIVATE_H

#include "core/run/logfile.h"
#include "core/text/messages.h"
#include "probes/engine/logengine.h"
#include "probes/log/logcapture.h"
#include "probes/log/logfind.h"
#include "probes/log/logparts.h"
#include "probes/log/logscan.h"
#include "probes/log/logstate.h"
#include "probes/log/logteam.h"
#include "probes/log/logunknown.h"

#define SHK_LOG_PLACES_MAX 8 /* origins and nodes named per pattern */

#define SHK_LOG_GUESSES_MAX 8 /* at one line */

struct log_places {
    char *names[SHK_LOG_PLACES_MAX];
    size_t named;
    unsigned long long distinct;
};

struct log_sig {
    unsigned long long lines; /* that match */
    size_t line_end;          /* in this piece: matches before it are on a line already counted */
    char *file, *text;        /* first occurrence */
    unsigned long long line;
    struct log_places origins, nodes;
    struct shk_log_captures captures;
    struct shk_log_states *states; /* of a pattern with `state`, from its first line on */
};

struct log_file {
    char *name;
    struct shk_logfile_totals totals;
};

struct shk_logscan {
    shk_logscan_watcher *watch;
    void *watch_arg;
    shk_logscan_hit *hit;
    void *hit_arg;
    size_t numbered; /* bytes of the piece whose line breaks are counted */
    unsigned long long number;
    const struct shk_log_pattern *patterns;
    size_t count;
    const struct shk_log_engine *engine;
    struct shk_log_set *exact, *wide;
    bool *every, *once; /* by pattern, for the search */
    struct shk_logfind *find;
    struct shk_log_found found;
    size_t bytes;                      /* that were searched before there were wider patterns */
    struct shk_log_matcher **matchers; /* of captures; NULL where there is none */
    struct shk_messages **tables;      /* at the first pattern that stands before the same texts */
    struct log_sig *sigs;
    struct log_file *files;
    size_t file_count;
    struct shk_log_seen *seen;  /* origins and nodes */
    struct shk_log_seen *ranks; /* process -> rank */
    struct shk_log_unknown *unknown, *doubt;
    /* The piece that is being scanned. */
    struct shk_logpiece piece;
    size_t line_start, line_end; /* the line whose matches are told */
    struct shk_logline who;      /* printed it, once that was asked */
    bool who_known;
    size_t guesses[SHK_LOG_GUESSES_MAX], guess_count; /* patterns that guess at it, */
    size_t yields[SHK_LOG_GUESSES_MAX], yield_count;  /* and that yield to what it names */
    bool named;                                       /* it names an object that is not general */
    bool decided;                                     /* another one knows what it means */
    bool trouble;                /* it looks like trouble, or a pattern guesses at it */
    struct shk_log_parts *parts; /* made when the first such line is not decided */
    bool failed;
};

/* The mark in `seen` of a node ('n') or origin ('o') that printed a line. */
uint64_t shk_logscan_place(size_t id, char kind, const char *name);

/* -EINVAL: the pattern, where it is and why it is wrong. */
int shk_logscan_bad(const struct shk_log_pattern *pattern, const char *why, struct shk_error *err);

/* Tables behind the same pattern are one: the index of its first pattern. */
size_t shk_logscan_table(const struct shk_log_pattern *patterns, size_t i);

/* The patterns themselves, or wider ones for those that tell numbers apart (logwide.h). */
enum shk_log_width { SHK_LOG_EXACT, SHK_LOG_WIDE };

/* The patterns as a set of the engine, which destroys it. NULL when there is no pattern, or one
 * that cannot be widened. */
int shk_logscan_build(const struct shk_log_engine *engine, const struct shk_log_pattern *patterns,
                      size_t n, enum shk_log_width width, enum shk_log_target target,
                      struct shk_log_set **set_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
