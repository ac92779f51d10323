/* Parts of logscan: values captured from lines, and small sets of hashes. */
#ifndef SHK_PROBES_LOGCAPTURE_H
#define SHK_PROBES_LOGCAPTURE_H

#include "core/text/error.h"
#include "probes/log/logline.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular expression with named groups. */
struct shk_log_matcher;
int shk_log_matcher_create(struct shk_log_matcher **matcher_p, const char *pattern,
                           struct shk_error *err) SHK_MUST_CHECK;
void shk_log_matcher_destroy(struct shk_log_matcher *matcher);

/* Distinct tuples of captured values, the first ones; others are only counted. */
#define SHK_LOG_CAPTURES_MAX 64
struct shk_log_tuple {
    uint64_t hash;
    unsigned long long lines;
    json_t *values; /* {group: text, "origin": who printed it first} */
};
struct shk_log_captures {
    struct shk_log_tuple *tuples;
    size_t count;
    unsigned long long more; /* lines with further tuples */
};

/* Matches the line and folds what it captures. Returns the number of the group "rank", which is
 * not kept as a value, or -1. */
long shk_log_capture(struct shk_log_captures *captures, struct shk_log_matcher *matcher,
                     const char *line, size_t len, const struct shk_logline *who);
/* Hash of what the group `name` takes of the line; 0: the pattern has none, or it took no part. */
uint64_t shk_log_capture_name(struct shk_log_matcher *matcher, const char *line, size_t len);
json_t *shk_log_captures_json(const struct shk_log_captures *captures); /* new reference */
void shk_log_captures_free(struct shk_log_captures *captures);

/* A map from hashes to numbers of at most `max` entries; what does not fit is not kept. */
struct shk_log_seen;
struct shk_log_seen *shk_log_seen_create(size_t max);
bool shk_log_seen_add(struct shk_log_seen *seen, uint64_t hash); /* was it new (and kept)? */
void shk_log_seen_set(struct shk_log_seen *seen, uint64_t hash, uint32_t value);
bool shk_log_seen_get(const struct shk_log_seen *seen, uint64_t hash, uint32_t *value_p);
void shk_log_seen_destroy(struct shk_log_seen *seen);
uint64_t shk_log_hash(const char *text);

#endif
