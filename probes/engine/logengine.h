/* Engines that look for many expressions in a line at once. All find the same: which ids match, and
 * for those of which every match is asked for, each offset behind a match that begins anywhere. */
#ifndef SHK_PROBES_LOGENGINE_H
#define SHK_PROBES_LOGENGINE_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

/* What is looked for; several expressions may have the same id. */
struct shk_log_expressions {
    char **texts;
    unsigned *ids;
    bool *every; /* all its matches in a line are told, else one or more of them */
    size_t count;
};

struct shk_log_set;     /* compiled expressions; may be shared by several threads */
struct shk_log_scratch; /* what one thread needs to search a set */

/* Behind a match at offset `to`. Anything but 0 ends the search of the line. */
typedef int shk_log_told(void *arg, unsigned id, size_t to);

/* For any processor of this architecture, or for this one only. */
enum shk_log_target { SHK_LOG_ANY_PROCESSOR, SHK_LOG_THIS_PROCESSOR };

struct shk_log_engine {
    const char *name;
    size_t widen_from; /* bytes of logs for which it is worth while to compile a second set */
    bool (*runs_here)(void);
    /* -EINVAL: *bad_p is the expression that is wrong (SIZE_MAX: all together), err->text why. */
    int (*compile)(const struct shk_log_expressions *list, enum shk_log_target target,
                   struct shk_log_set **set_p, size_t *bad_p, struct shk_error *err);
    /* A set as bytes, new memory (free()); and back: -EINVAL when it is none for this engine or
     * processor. */
    int (*save)(const struct shk_log_set *set, char **data_p, size_t *size_p);
    int (*load)(const char *data, size_t size, struct shk_log_set **set_p);
    void (*destroy)(struct shk_log_set *set);
    int (*scratch)(const struct shk_log_set *set, struct shk_log_scratch **scratch_p);
    void (*scratch_destroy)(struct shk_log_scratch *scratch);
    /* A line without what breaks it, "\n" or "\r\n". -EIO: cannot be searched. */
    int (*search)(const struct shk_log_set *set, struct shk_log_scratch *scratch, const char *line,
                  size_t len, shk_log_told *told, void *arg);
};

/* The fastest that this program has and that runs here. */
const struct shk_log_engine *shk_log_engine(void);

const struct shk_log_engine *shk_log_engine_pcre2(void);

/* NULL: this program was built without it. */
const struct shk_log_engine *shk_log_engine_vectorscan(void);

#endif
