#include "core/facts/metrics.h"
#include "core/facts/elements.h"
#include "core/text/stamp.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Depth of values, settings, and counters of one document. */
enum {
    RECORD_DEPTH = 8,
    RECORD_STATES = 2000,
    RECORD_COUNTERS = 64,
    RECORD_TEXT = 256,
    RECORD_CACHE = 65536
};

/* Says that variables which are no facts are not set (probes/host/env.c). */
#define RECORD_ENVIRONMENT "environment.looked_for"

/* What a difference must come to before anybody would act on it: a choice of this program, no
 * measurement. Small messages are given more, since one interrupt is a part of their time. */
static const struct shk_metric metrics[] = {
    {"busbw.", SHK_METRIC_MORE, "GB/s", "best bus bandwidth of the all-reduce", 0.03},
    {"latency.", SHK_METRIC_LESS, "us", "time of the smallest all-reduce", 0.15},
    {"copy.to_device", SHK_METRIC_MORE, "GB/s", "slowest copy from the host to a GPU", 0.04},
    {"copy.to_host", SHK_METRIC_MORE, "GB/s", "slowest copy from a GPU to the host", 0.04},
    {"copy.memory", SHK_METRIC_MORE, "GB/s", "slowest GPU memory", 0.03},
    {"copy.pair", SHK_METRIC_MORE, "GB/s", "slowest copy between two GPUs", 0.04},
    {"count.", SHK_METRIC_COUNT, "", "error counter", 0},
};

const struct shk_metric *shk_metric_find(const char *name)
{
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        size_t len = strlen(metrics[i].name);
        bool prefix = metrics[i].name[len - 1] == '.';
        if (strncmp(name, metrics[i].name, len) == 0 && (prefix ? name[len] : !name[len]))
            return &metrics[i];
    }
    return NULL;
}

struct record {
    json_t *object, *cache;
    const struct shk_diff_rule *rules;
    size_t rules_count, counters;
    bool failed;
};

static void record_put(struct record *r, const char *name, double value)
{
    if (isfinite(value) && json_object_set_new_nocheck(r->object, name, json_real(value)))
        r->failed = true;
}

void shk_sizes_best(const json_t *sizes, double *busbw_p, double *time_us_p)
{
    double least = NAN;
    size_t i;
    json_t *row;
    *busbw_p = *time_us_p = NAN;
    json_array_foreach((json_t *)sizes, i, row)
    {
        double bytes = json_number_value(json_object_get(row, "bytes")),
               busbw = json_number_value(json_object_get(row, "busbw")),
               us = json_number_value(json_object_get(row, "time_us"));
        if (busbw > 0 && !(busbw <= *busbw_p))
            *busbw_p = busbw;
        if (us > 0 && !(bytes >= least)) {
            least = bytes;
            *time_us_p = us;
        }
    }
}

static void record_sizes(struct record *r, const struct shk_facts *facts, const char *transport,
                         const json_t *sizes)
{
    struct shk_fact status;
    char name[160];
    double best, time;
    snprintf(name, sizeof name, "collective.%.100s.status", transport);
    if (!shk_facts_get(facts, name, &status) || !json_string_value(status.value) ||
        strcmp(json_string_value(status.value), "ok") != 0)
        return;
    shk_sizes_best(sizes, &best, &time);
    snprintf(name, sizeof name, "busbw.%.100s", transport);
    record_put(r, name, best);
    snprintf(name, sizeof name, "latency.%.100s", transport);
    record_put(r, name, time);
}

/* "collective.T.sizes" */
static int record_collective(const struct shk_fact *fact, void *arg)
{
    const struct shk_facts *facts = ((void **)arg)[1];
    const char *from = fact->key + strlen("collective."), *dot = strrchr(fact->key, '.');
    char transport[104];
    if (fact->state != SHK_FACT_PRESENT || strcmp(dot, ".sizes") != 0 || dot <= from ||
        (size_t)(dot - from) >= sizeof transport)
        return 0;
    snprintf(transport, sizeof transport, "%.*s", (int)(dot - from), from);
    record_sizes(((void **)arg)[0], facts, transport, fact->value);
    return 0;
}

static void record_least(struct record *r, const char *name, const json_t *list, const char *member)
{
    double least = NAN;
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        double value = json_number_value(json_object_get(row, member));
        if (value > 0 && !(value >= least))
            least = value;
    }
    record_put(r, name, least);
}

static void record_copies(struct record *r, const struct shk_facts *facts)
{
    const json_t *copies = json_array_get(shk_facts_get_array(facts, "collective.peer.copies"), 0),
                 *gpus = json_object_get(copies, "gpus");
    record_least(r, "copy.to_device", gpus, "to_device");
    record_least(r, "copy.to_host", gpus, "to_host");
    record_least(r, "copy.memory", gpus, "memory");
    record_least(r, "copy.pair", json_object_get(copies, "pairs"), "gbs");
}

static void record_counters(struct record *r, const struct shk_facts *facts)
{
    json_t *errors = json_object_get(shk_facts_get_object(facts, "counters.totals"), "errors"),
           *scope, *value;
    const char *of, *counter;
    json_object_foreach(errors, of, scope)
    {
        json_object_foreach(scope, counter, value)
        {
            char name[RECORD_TEXT];
            if (!json_is_number(value) || r->counters++ >= RECORD_COUNTERS)
                continue;
            snprintf(name, sizeof name, "count.%.100s.%.100s", of, counter);
            record_put(r, name, json_number_value(value));
        }
    }
}

static void record_mark(struct record *r, const json_t *unread, const char *scope)
{
    char name[RECORD_TEXT];
    if (json_object_get(unread, scope))
        return;
    snprintf(name, sizeof name, SHK_METRIC_READ "%.100s", scope);
    record_put(r, name, 1);
}

int shk_metrics_mark(const struct shk_facts *facts, json_t *object)
{
    const json_t *totals = shk_facts_get_object(facts, "counters.totals"),
                 *unread = json_object_get(totals, "unread");
    struct record r = {.object = object};
    const char *of;
    json_t *value;
    size_t i;
    json_array_foreach(json_object_get(totals, "read"), i, value)
    {
        if (json_is_string(value) && i < RECORD_COUNTERS)
            record_mark(&r, unread, json_string_value(value));
    }
    json_object_foreach(json_object_get(totals, "errors"), of, value) record_mark(&r, unread, of);
    return r.failed ? -ENOMEM : 0;
}

json_t *shk_metrics_of(const struct shk_facts *facts)
{
    struct record r = {.object = json_object()};
    void *args[2] = {&r, (void *)facts};
    if (!r.object)
        return NULL;
    (void)shk_facts_each(facts, "collective.", record_collective, args);
    record_copies(&r, facts);
    record_counters(&r, facts);
    if (r.failed) {
        json_decref(r.object);
        return NULL;
    }
    return r.object;
}

/* Is what stands there one of the things that nodes agree in? Variables are, unless a rule says
 * that they name a job, a node or a time. */
static bool record_decide(const struct record *r, const char *plain, bool *skip_p,
                          const struct shk_diff_rule **rule_p)
{
    bool variable = strncmp(plain, "env.", 4) == 0 && strchr(plain + 4, '.') == NULL;
    *rule_p = shk_diff_agree_rule(r->rules, r->rules_count, plain);
    *skip_p = variable && shk_diff_aside_rule(r->rules, r->rules_count, plain);
    return *rule_p ? (*rule_p)->differs != SHK_DIFF_NOISE : variable && !*skip_p;
}

/* The same, looked up once for all documents: [wanted, skip, number of the rule]. */
static bool record_wanted(const struct record *r, const char *plain, bool *skip_p,
                          const struct shk_diff_rule **rule_p)
{
    const json_t *had = json_object_get(r->cache, plain);
    if (had) {
        json_int_t rule = json_integer_value(json_array_get(had, 2));
        *skip_p = json_is_true(json_array_get(had, 1));
        *rule_p = rule >= 0 ? &r->rules[rule] : NULL;
        return json_is_true(json_array_get(had, 0));
    }
    bool wanted = record_decide(r, plain, skip_p, rule_p);
    if (r->cache && json_object_size(r->cache) < RECORD_CACHE)
        (void)json_object_set_new(r->cache, plain,
                                  json_pack("[b, b, I]", wanted, *skip_p,
                                            *rule_p ? (json_int_t)(*rule_p - r->rules) : -1));
    return wanted;
}

static void record_text(struct record *r, const char *path, const json_t *value)
{
    char *text = json_is_string(value)
                     ? strndup(json_string_value(value), RECORD_TEXT)
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    size_t len = text ? strlen(text) : 0;
    if (!text || (json_object_size(r->object) < RECORD_STATES &&
                  json_object_set_new(r->object, path,
                                      shk_json_text(text, len > RECORD_TEXT ? RECORD_TEXT : len))))
        r->failed = true;
    free(text);
}

static void record_value(struct record *r, const char *path, const char *plain, const json_t *value,
                         int depth);

static void record_members(struct record *r, const char *path, const char *plain,
                           const json_t *value, int depth)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)value, key, item)
    {
        char *inner = shk_strf("%s.%.100s", path, key), *same = shk_strf("%s.%.100s", plain, key);
        if (inner && same)
            record_value(r, inner, same, item, depth + 1);
        r->failed |= !inner || !same;
        free(inner);
        free(same);
    }
}

static void record_elements(struct record *r, const char *path, const char *plain,
                            const json_t *value, const struct shk_diff_rule *rule, int depth)
{
    size_t i, which = shk_elements_identity(value);
    json_t *item;
    json_array_foreach(value, i, item)
    {
        char *id, *inner = NULL;
        if (!shk_diff_counts(rule, item))
            continue;
        id =
            which < SHK_ELEMENT_IDENTITIES ? shk_element_identity(item, which) : shk_strf("%zu", i);
        inner = id ? shk_strf("%s[%.60s]", path, id) : NULL;
        if (inner)
            record_value(r, inner, plain, item, depth + 1);
        r->failed |= !inner;
        free(inner);
        free(id);
    }
}

static void record_value(struct record *r, const char *path, const char *plain, const json_t *value,
                         int depth)
{
    const struct shk_diff_rule *rule;
    bool skip;
    bool wanted = record_wanted(r, plain, &skip, &rule);
    if (depth > RECORD_DEPTH || skip)
        return;
    if (json_is_object(value)) {
        record_members(r, path, plain, value, depth);
    } else if (json_is_array(value) && json_is_object(json_array_get(value, 0))) {
        record_elements(r, path, plain, value, rule, depth);
    } else if (wanted && !json_is_null(value)) {
        record_text(r, path, value);
    }
}

/* What was looked for and is not there, or could not be read, is kept as such: another run that
 * has it is then a change, or is none. */
static void record_lack(struct record *r, const char *key, bool failed)
{
    const struct shk_diff_rule *rule;
    bool skip;
    if (record_wanted(r, key, &skip, &rule) && !skip && json_object_size(r->object) < RECORD_STATES)
        r->failed |= json_object_set_new(r->object, key, failed ? json_null() : json_false()) != 0;
}

static int record_state(const struct shk_fact *fact, void *arg)
{
    struct record *r = arg;
    if (strcmp(fact->key, RECORD_ENVIRONMENT) == 0)
        r->failed |= fact->state == SHK_FACT_PRESENT &&
                     json_object_set_new(r->object, RECORD_ENVIRONMENT, json_true()) != 0;
    else if (fact->state == SHK_FACT_PRESENT)
        record_value(r, fact->key, fact->key, fact->value, 0);
    else
        record_lack(r, fact->key, fact->state == SHK_FACT_FAILED);
    return r->failed;
}

json_t *shk_states_of(const struct shk_facts *facts, const struct shk_diff_rule *rules,
                      size_t count, json_t *cache)
{
    struct record r = {
        .object = json_object(), .cache = cache, .rules = rules, .rules_count = count};
    if (r.object)
        (void)shk_facts_each(facts, "", record_state, &r);
    if (r.failed) {
        json_decref(r.object);
        return NULL;
    }
    return r.object;
}

/* Would the run that lacks the path have it, if it were there? */
static bool change_looked(const json_t *states, const char *path)
{
    size_t len = strlen(path);
    const char *key;
    json_t *value;
    if (strncmp(path, "env.", 4) == 0)
        return json_is_true(json_object_get(states, RECORD_ENVIRONMENT));
    for (;;) {
        while (len && path[len - 1] != '.' && path[len - 1] != '[')
            len--;
        if (len < 2 || !memchr(path, '.', len - 1))
            return false;
        len--; /* the fact, or what holds the member */
        json_object_foreach((json_t *)states, key, value)
        {
            if (strncmp(key, path, len) == 0 && (!key[len] || strchr(".[", key[len])))
                return !json_is_null(value) || key[len];
        }
    }
}

static void change_add(json_t *list, const char *path, const json_t *from, const json_t *to)
{
    json_array_append_new(list, json_pack("{s:s, s:O*, s:O*}", "path", path, "from",
                                          json_is_string(from) ? from : NULL, "to",
                                          json_is_string(to) ? to : NULL));
}

json_t *shk_states_changes(const json_t *from, const json_t *to)
{
    json_t *list = json_array(), *value;
    const char *path;
    json_object_foreach((json_t *)from, path, value)
    {
        json_t *other = json_object_get(to, path);
        bool known = other ? !json_is_null(other) : change_looked(to, path);
        if (json_is_null(value) || json_is_true(value) || !known ||
            (other ? json_equal(value, other) : json_is_false(value)))
            continue;
        change_add(list, path, value, other);
    }
    json_object_foreach((json_t *)to, path, value)
    {
        if (!json_object_get(from, path) && json_is_string(value) && change_looked(from, path))
            change_add(list, path, NULL, value);
    }
    return list;
}

long long shk_run_start(const struct shk_facts *facts)
{
    long long start = shk_stamp_read(shk_facts_get_text(facts, "run.start"));
    return start >= 0 ? start : shk_stamp_read(shk_facts_get_text(facts, "clock.time"));
}
