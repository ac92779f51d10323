#define PCRE2_CODE_UNIT_WIDTH 8
#include "probes/log/logcapture.h"

#include "core/facts/facts.h"
#include "core/text/strbuf.h"
#include "probes/log/logcodes.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS_MAX = 8, VALUE_MAX = 200, BACKTRACK_MAX = 100000, HEAP_MAX = 4096 /* KiB */ };

struct shk_log_matcher {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    struct {
        char name[16];
        int number;
    } groups[GROUPS_MAX];
    size_t group_count;
};

static void matcher_groups(struct shk_log_matcher *matcher)
{
    uint32_t count = 0, size = 0;
    PCRE2_SPTR table = NULL;
    pcre2_pattern_info(matcher->code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(matcher->code, PCRE2_INFO_NAMEENTRYSIZE, &size);
    pcre2_pattern_info(matcher->code, PCRE2_INFO_NAMETABLE, &table);
    for (uint32_t i = 0; i < count && matcher->group_count < GROUPS_MAX; i++, table += size) {
        matcher->groups[matcher->group_count].number = table[0] << 8 | table[1];
        char *name = matcher->groups[matcher->group_count].name;
        strncpy(name, (const char *)table + 2, sizeof matcher->groups[0].name - 1);
        matcher->group_count++;
    }
}

int shk_log_matcher_create(struct shk_log_matcher **matcher_p, const char *pattern,
                           struct shk_error *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    struct shk_log_matcher *matcher = calloc(1, sizeof *matcher);
    if (!matcher)
        return shk_error_sys(err, ENOMEM, "capture");
    matcher->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &at, NULL);
    if (!matcher->code) {
        PCRE2_UCHAR text[128];
        pcre2_get_error_message(code, text, sizeof text);
        shk_log_matcher_destroy(matcher);
        return shk_error_set(err, EINVAL, "capture: %s at character %zu", (const char *)text, at);
    }
    pcre2_jit_compile(matcher->code, PCRE2_JIT_COMPLETE); /* without it, it is only slower */
    matcher->match = pcre2_match_data_create_from_pattern(matcher->code, NULL);
    matcher->limits = pcre2_match_context_create(NULL);
    if (!matcher->match || !matcher->limits) {
        shk_log_matcher_destroy(matcher);
        return shk_error_sys(err, ENOMEM, "capture");
    }
    pcre2_set_match_limit(matcher->limits, BACKTRACK_MAX);
    pcre2_set_heap_limit(matcher->limits, HEAP_MAX);
    matcher_groups(matcher);
    *matcher_p = matcher;
    return 0;
}

void shk_log_matcher_destroy(struct shk_log_matcher *matcher)
{
    if (!matcher)
        return;
    pcre2_match_context_free(matcher->limits);
    pcre2_match_data_free(matcher->match);
    pcre2_code_free(matcher->code);
    free(matcher);
}

static uint64_t hash_more(uint64_t hash, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) /* FNV-1a */
        hash = (hash ^ (unsigned char)data[i]) * 0x100000001b3u;
    return (hash ^ 0xff) * 0x100000001b3u;
}

uint64_t shk_log_hash(const char *text)
{
    return hash_more(0xcbf29ce484222325u, text, strlen(text));
}

/* Span of a group in the line; empty when it took no part. */
static size_t group_span(const struct shk_log_matcher *matcher, size_t g, size_t *start_p)
{
    const PCRE2_SIZE *spans = pcre2_get_ovector_pointer(matcher->match);
    int n = matcher->groups[g].number;
    if (spans[2 * n] == PCRE2_UNSET || spans[2 * n + 1] < spans[2 * n])
        return 0;
    *start_p = spans[2 * n];
    size_t len = spans[2 * n + 1] - spans[2 * n];
    return len < VALUE_MAX ? len : VALUE_MAX;
}

static void capture_new(struct shk_log_captures *captures, const struct shk_log_matcher *matcher,
                        uint64_t hash, const char *line, const struct shk_logline *who)
{
    if (!captures->tuples)
        captures->tuples = calloc(SHK_LOG_CAPTURES_MAX, sizeof *captures->tuples);
    if (!captures->tuples || captures->count == SHK_LOG_CAPTURES_MAX) {
        captures->more++;
        return;
    }
    json_t *values = json_object();
    for (size_t g = 0; g < matcher->group_count; g++) {
        size_t start = 0, len = group_span(matcher, g, &start);
        const char *name = matcher->groups[g].name, *code = shk_log_code(name, line + start, len);
        json_object_set_new(values, name,
                            code ? json_string(code) : shk_json_text(line + start, len));
    }
    if (*who->origin)
        json_object_set_new(values, "origin", shk_json_text(who->origin, strlen(who->origin)));
    if (*who->node)
        json_object_set_new(values, "node", shk_json_text(who->node, strlen(who->node)));
    captures->tuples[captures->count++] =
        (struct shk_log_tuple){.hash = hash, .lines = 1, .values = values};
}

long shk_log_capture(struct shk_log_captures *captures, struct shk_log_matcher *matcher,
                     const char *line, size_t len, const struct shk_logline *who)
{
    if (pcre2_match(matcher->code, (PCRE2_SPTR)line, len, 0, 0, matcher->match, matcher->limits) <=
        0)
        return -1;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t g = 0; g < matcher->group_count; g++) {
        size_t start = 0, span = group_span(matcher, g, &start);
        if (strcmp(matcher->groups[g].name, "rank") == 0)
            return span ? strtol(line + start, NULL, 10) : -1;
        hash = hash_more(hash, line + start, span);
    }
    for (size_t i = 0; i < captures->count; i++)
        if (captures->tuples[i].hash == hash) {
            captures->tuples[i].lines++;
            return -1;
        }
    capture_new(captures, matcher, hash, line, who);
    return -1;
}

uint64_t shk_log_capture_name(struct shk_log_matcher *matcher, const char *line, size_t len)
{
    if (pcre2_match(matcher->code, (PCRE2_SPTR)line, len, 0, 0, matcher->match, matcher->limits) <=
        0)
        return 0;
    for (size_t g = 0; g < matcher->group_count; g++) {
        size_t start = 0, span = group_span(matcher, g, &start);
        if (span && strcmp(matcher->groups[g].name, "name") == 0)
            return hash_more(0xcbf29ce484222325u, line + start, span);
    }
    return 0;
}

json_t *shk_log_captures_json(const struct shk_log_captures *captures)
{
    json_t *array = json_array();
    for (size_t i = 0; i < captures->count; i++) {
        json_t *tuple = json_copy(captures->tuples[i].values);
        json_object_set_new(tuple, "lines", json_integer((json_int_t)captures->tuples[i].lines));
        json_array_append_new(array, tuple);
    }
    return array;
}

void shk_log_captures_free(struct shk_log_captures *captures)
{
    for (size_t i = 0; i < captures->count; i++)
        json_decref(captures->tuples[i].values);
    free(captures->tuples);
    *captures = (struct shk_log_captures){0};
}

struct shk_log_seen {
    size_t max, count, slots; /* slots: a power of two, more than count */
    uint64_t *keys;           /* 0: free */
    uint32_t *values;
};

struct shk_log_seen *shk_log_seen_create(size_t max)
{
    struct shk_log_seen *seen = calloc(1, sizeof *seen);
    if (seen)
        seen->max = max;
    return seen;
}

/* Slot of the hash, or the free one where it belongs. */
static size_t seen_slot(const uint64_t *keys, size_t slots, uint64_t hash)
{
    size_t at = (size_t)(hash * 0x9e3779b97f4a7c15u >> 20) & (slots - 1);
    while (keys[at] && keys[at] != hash)
        at = (at + 1) & (slots - 1);
    return at;
}

static bool seen_grow(struct shk_log_seen *seen)
{
    size_t slots = seen->slots ? seen->slots * 2 : 256;
    uint64_t *keys = calloc(slots, sizeof *keys);
    uint32_t *values = calloc(slots, sizeof *values);
    if (!keys || !values) {
        free(keys);
        free(values);
        return false;
    }
    for (size_t i = 0; i < seen->slots; i++)
        if (seen->keys[i]) {
            size_t at = seen_slot(keys, slots, seen->keys[i]);
            keys[at] = seen->keys[i];
            values[at] = seen->values[i];
        }
    free(seen->keys);
    free(seen->values);
    seen->keys = keys;
    seen->values = values;
    seen->slots = slots;
    return true;
}

static bool seen_put(struct shk_log_seen *seen, uint64_t hash, uint32_t value, bool replace)
{
    hash |= 1; /* 0 is a free slot */
    if (seen->slots) {
        size_t at = seen_slot(seen->keys, seen->slots, hash);
        if (seen->keys[at]) {
            if (replace)
                seen->values[at] = value;
            return false;
        }
    }
    if (seen->count == seen->max || (seen->count * 2 >= seen->slots && !seen_grow(seen)))
        return false;
    size_t at = seen_slot(seen->keys, seen->slots, hash);
    seen->keys[at] = hash;
    seen->values[at] = value;
    seen->count++;
    return true;
}

bool shk_log_seen_add(struct shk_log_seen *seen, uint64_t hash)
{
    return seen_put(seen, hash, 0, false);
}

void shk_log_seen_set(struct shk_log_seen *seen, uint64_t hash, uint32_t value)
{
    seen_put(seen, hash, value, true);
}

bool shk_log_seen_get(const struct shk_log_seen *seen, uint64_t hash, uint32_t *value_p)
{
    hash |= 1;
    if (!seen->slots)
        return false;
    size_t at = seen_slot(seen->keys, seen->slots, hash);
    if (!seen->keys[at])
        return false;
    *value_p = seen->values[at];
    return true;
}

void shk_log_seen_destroy(struct shk_log_seen *seen)
{
    if (!seen)
        return;
    free(seen->keys);
    free(seen->values);
    free(seen);
}
