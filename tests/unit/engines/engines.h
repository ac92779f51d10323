/* What the two engines of probes/engine/logengine.h find in a line, held against each other. */
#ifndef SHK_TESTS_ENGINES_H
#define SHK_TESTS_ENGINES_H

#include "probes/engine/logengine.h"
#include "probes/log/logscan.h"

#include <criterion/criterion.h>

enum { PAIR_MATCHES = 4096 };

struct pair_side {
    const struct shk_log_engine *engine;
    struct shk_log_set *set;
    struct shk_log_scratch *scratch;
    struct {
        unsigned id;
        size_t to;
    } matches[PAIR_MATCHES];
    size_t count;
    const bool *every;
};

struct pair {
    struct pair_side sides[2];
    bool *every;  /* by id */
    bool one_way; /* what Vectorscan alone misses is counted */
    size_t lines, matches, missed;
};

/* False, and the test is to end: this program has one engine only, which is said. */
bool pair_possible(void);

/* Sides that search for the same; sets of other patterns than the built-in ones are compiled.
 * -EINVAL: both refuse them. Only one of them: the test fails, but where Vectorscan refuses what
 * can never match: then that side has no set. */
int pair_open(struct pair *pair, const struct shk_log_pattern *patterns, size_t count, bool wide);
void pair_close(struct pair *pair);

/* The test fails where they find something else in a line of the text; a side without a set finds
 * nothing. */
void pair_text(struct pair *pair, const char *name, const char *text, size_t len);

#endif
