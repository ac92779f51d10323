#include "core/facts/factset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FACTSET_PATH = 512, FACTSET_DEPTH = 32 };

/* One fact of the first document: its text with the key, and its hash. */
struct factset_fact {
    const char *text;
    size_t len, key_len; /* key_len: of the key with its quotes */
    struct shk_digest_sum hash;
};

struct shk_factset {
    const struct shk_diff_rule *rules;
    size_t rules_count;
    json_t *classes; /* path -> index of its rule, -1: compared */
    json_t *numbers; /* path of a measurement -> first value seen */
    char first_name[256];
    char *first; /* copy of the first document; the facts point into it */
    struct factset_fact *facts;
    size_t facts_count;
};

/* A walk through one document. */
struct factset_walk {
    struct shk_factset *set;
    const char *at, *end;
    struct shk_digest_sum hash;
    bool quiet; /* inside of something that may differ */
    char path[FACTSET_PATH];
    size_t path_len;
    char *name; /* receives host.name */
    size_t name_size;
    int depth;
    bool value; /* of a fact, rather than its source or reason */
};

struct shk_factset *shk_factset_create(const struct shk_diff_rule *rules, size_t count)
{
    struct shk_factset *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    *set = (struct shk_factset){
        .rules = rules, .rules_count = count, .classes = json_object(), .numbers = json_object()};
    if (!set->classes || !set->numbers) {
        shk_factset_destroy(set);
        return NULL;
    }
    return set;
}

void shk_factset_destroy(struct shk_factset *set)
{
    if (!set)
        return;
    json_decref(set->classes);
    json_decref(set->numbers);
    free(set->first);
    free(set->facts);
    free(set);
}

static void walk_hash(struct factset_walk *w, const char *data, size_t len)
{
    if (!w->quiet)
        shk_digest_add(&w->hash, data, len);
}

static void walk_space(struct factset_walk *w)
{
    while (w->at < w->end && strchr(" \t\r\n", *w->at) && *w->at)
        w->at++;
}

static bool walk_char(struct factset_walk *w, char c)
{
    walk_space(w);
    if (w->at >= w->end || *w->at != c)
        return false;
    w->at++;
    return true;
}

/* A string with its quotes. */
static bool walk_string(struct factset_walk *w, const char **start_p, size_t *len_p)
{
    walk_space(w);
    const char *start = w->at;
    if (w->at >= w->end || *w->at != '"')
        return false;
    for (w->at++; w->at < w->end && *w->at != '"'; w->at++) {
        if ((unsigned char)*w->at < 0x20)
            return false;
        w->at += *w->at == '\\';
    }
    if (w->at >= w->end)
        return false;
    w->at++;
    *start_p = start;
    *len_p = (size_t)(w->at - start);
    return true;
}

static const struct shk_diff_rule *walk_rule(struct factset_walk *w)
{
    return shk_diff_aside_known(w->set->classes, w->set->rules, w->set->rules_count, w->path);
}

static bool walk_within(struct factset_walk *w, const char *text, size_t len, int percent)
{
    char number[32];
    if (len >= sizeof number)
        return false;
    memcpy(number, text, len);
    number[len] = '\0';
    double value = strtod(number, NULL);
    const json_t *seen = json_object_get(w->set->numbers, w->path);
    if (!seen)
        json_object_set_new(w->set->numbers, w->path, json_real(value));
    double first = seen ? json_real_value(seen) : value, far = value - first;
    double size = value > first ? value : first;
    return (far < 0 ? -far : far) * 100 <= percent * (size < 0 ? -size : size);
}

static bool walk_value(struct factset_walk *w);

static bool walk_scalar(struct factset_walk *w)
{
    const char *start = w->at;
    const struct shk_diff_rule *rule = w->quiet ? NULL : walk_rule(w);
    size_t len;
    if (*start == '"') {
        if (!walk_string(w, &start, &len))
            return false;
        walk_hash(w, start, len);
        if (w->name && w->value && strcmp(w->path, "host.name") == 0 && len >= 2)
            snprintf(w->name, w->name_size, "%.*s", (int)(len - 2), start + 1);
        return true;
    }
    while (w->at < w->end && strchr("+-.0123456789aeflnrstuE", *w->at) && *w->at)
        w->at++;
    len = (size_t)(w->at - start);
    if (!len)
        return false;
    if (rule && rule->differs == SHK_DIFF_NOISE && walk_within(w, start, len, rule->percent))
        walk_hash(w, "~", 1);
    else
        walk_hash(w, start, len);
    return true;
}

/* A member of an object inside a value: the path grows by its name. */
static bool walk_member(struct factset_walk *w)
{
    const char *key;
    size_t len, before = w->path_len;
    bool quiet = w->quiet, ok = false;
    if (!walk_string(w, &key, &len) || !walk_char(w, ':') || before + len >= FACTSET_PATH)
        return false;
    w->path[w->path_len++] = '.';
    memcpy(w->path + w->path_len, key + 1, len - 2);
    w->path_len += len - 2;
    w->path[w->path_len] = '\0';
    if (!w->quiet) {
        const struct shk_diff_rule *rule = walk_rule(w);
        w->quiet = rule && rule->differs != SHK_DIFF_NOISE;
    }
    walk_hash(w, key, len);
    ok = walk_value(w);
    w->quiet = quiet;
    w->path_len = before;
    w->path[before] = '\0';
    return ok;
}

static bool walk_list(struct factset_walk *w, char open, char close)
{
    walk_hash(w, &open, 1);
    w->at++;
    if (!walk_char(w, close)) {
        do {
            if (!(open == '{' ? walk_member(w) : walk_value(w)))
                return false;
            walk_hash(w, ",", 1);
        } while (walk_char(w, ','));
        if (!walk_char(w, close))
            return false;
    }
    walk_hash(w, &close, 1);
    return true;
}

static bool walk_value(struct factset_walk *w)
{
    walk_space(w);
    if (w->at >= w->end || ++w->depth > FACTSET_DEPTH)
        return false;
    bool ok = *w->at == '{'   ? walk_list(w, '{', '}')
              : *w->at == '[' ? walk_list(w, '[', ']')
                              : walk_scalar(w);
    w->depth--;
    return ok;
}

/* {"state": …, "value": …}: only what is inside of "value" has a path of its own. */
static bool walk_entry(struct factset_walk *w)
{
    const char *key;
    size_t len;
    walk_space(w);
    if (w->at >= w->end || *w->at != '{') {
        w->value = true; /* a bare value */
        bool ok = walk_value(w);
        w->value = false;
        return ok;
    }
    w->at++;
    if (walk_char(w, '}'))
        return true;
    do {
        if (!walk_string(w, &key, &len) || !walk_char(w, ':'))
            return false;
        walk_hash(w, key, len);
        w->value = len == 7 && memcmp(key, "\"value\"", 7) == 0;
        if (!walk_value(w))
            return false;
    } while (walk_char(w, ','));
    w->value = false;
    return walk_char(w, '}');
}

static bool walk_fact(struct factset_walk *w, struct factset_fact *fact)
{
    const char *key;
    size_t len;
    if (!walk_string(w, &key, &len) || len - 2 >= FACTSET_PATH)
        return false;
    memcpy(w->path, key + 1, len - 2);
    w->path_len = len - 2;
    w->path[w->path_len] = '\0';
    w->hash = SHK_DIGEST_SUM_INIT;
    const struct shk_diff_rule *rule = walk_rule(w);
    w->quiet = rule && rule->differs != SHK_DIFF_NOISE;
    if (w->quiet)
        w->hash = (struct shk_digest_sum){0};
    walk_hash(w, key, len);
    if (!walk_char(w, ':') || !walk_entry(w))
        return false;
    *fact = (struct factset_fact){
        .text = key, .len = (size_t)(w->at - key), .key_len = len, .hash = w->hash};
    return true;
}

static int factset_keep(struct shk_factset *set, const struct factset_fact *fact)
{
    size_t n = set->facts_count;
    if ((n & (n - 1)) == 0) {
        struct factset_fact *more = realloc(set->facts, (n ? 2 * n : 1) * sizeof *more);
        if (!more)
            return -ENOMEM;
        set->facts = more;
    }
    set->facts[set->facts_count++] = *fact;
    return 0;
}

/* Index of the fact of the first document with this key, from `from` on; facts_count: none. */
static size_t factset_find(const struct shk_factset *set, size_t from,
                           const struct factset_fact *fact)
{
    for (size_t i = from; i < set->facts_count; i++)
        if (set->facts[i].key_len == fact->key_len &&
            memcmp(set->facts[i].text, fact->text, fact->key_len) == 0)
            return i;
    return set->facts_count;
}

static bool factset_same(const struct factset_walk *w, const struct factset_fact *fact)
{
    return (size_t)(w->end - w->at) > fact->len && memcmp(w->at, fact->text, fact->len) == 0 &&
           strchr(",} \t\r\n", w->at[fact->len]);
}

/* The members of "facts". */
static int walk_facts(struct factset_walk *w, bool first, struct shk_digest_sum *sum)
{
    struct shk_factset *set = w->set;
    struct factset_fact fact;
    size_t next = 0;
    if (!walk_char(w, '{'))
        return -EINVAL;
    if (walk_char(w, '}'))
        return 0;
    do {
        walk_space(w);
        if (!first && next < set->facts_count && factset_same(w, &set->facts[next])) {
            fact = set->facts[next++];
            w->at += fact.len;
        } else {
            if (!walk_fact(w, &fact))
                return -EINVAL;
            if (first && factset_keep(set, &fact))
                return -ENOMEM;
            size_t at = first ? set->facts_count : factset_find(set, next, &fact);
            next = at < set->facts_count ? at + 1 : next;
        }
        shk_digest_mix(sum, &fact.hash);
    } while (walk_char(w, ','));
    return walk_char(w, '}') ? 0 : -EINVAL;
}

static int walk_document(struct factset_walk *w, bool first, struct shk_digest_sum *sum)
{
    const char *key;
    size_t len;
    bool facts = false;
    int rc = 0;
    if (!walk_char(w, '{'))
        return -EINVAL;
    do {
        if (!walk_string(w, &key, &len) || !walk_char(w, ':'))
            return -EINVAL;
        if (len == 7 && memcmp(key, "\"facts\"", 7) == 0) {
            facts = true;
            rc = walk_facts(w, first, sum);
        } else {
            w->quiet = true;
            w->path[0] = '\0';
            w->path_len = 0;
            rc = walk_value(w) ? 0 : -EINVAL;
            w->quiet = false;
        }
    } while (rc == 0 && walk_char(w, ','));
    return rc ? rc : walk_char(w, '}') && facts ? 0 : -EINVAL;
}

int shk_factset_read(struct shk_factset *set, const char *text, size_t len, size_t *used_p,
                     char key[SHK_FACTSET_KEY], char *name, size_t name_size)
{
    struct factset_walk w = {
        .set = set, .at = text, .end = text + len, .name = name, .name_size = name_size};
    struct shk_digest_sum sum = {0};
    bool first = !set->first;
    int rc = 0;
    name[0] = '\0';
    if (first) {
        /* Its length is not known yet: walk it once for that. */
        struct factset_walk length = w;
        length.quiet = true;
        rc = walk_value(&length) ? 0 : -EINVAL;
        size_t size = (size_t)(length.at - text);
        if (!rc && !(set->first = malloc(size + 1)))
            rc = -ENOMEM;
        if (rc)
            return rc;
        memcpy(set->first, text, size);
        set->first[size] = '\0';
        w.at = set->first;
        w.end = set->first + size;
    }
    rc = walk_document(&w, first, &sum);
    if (first)
        snprintf(set->first_name, sizeof set->first_name, "%s", name);
    else if (!*name) /* its fact is that of the first document */
        snprintf(name, name_size, "%s", set->first_name);
    *used_p = first ? (size_t)(w.at - set->first) : (size_t)(w.at - text);
    struct shk_digest digest = shk_digest_end(&sum);
    shk_digest_text(&digest, key);
    return rc;
}
