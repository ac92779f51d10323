/* Values that lines of a log name: do all processes say the same? */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

/* Interfaces and NICs may well have other names on other nodes. */
enum { SPECIFIC = 60 };

const char *shk_clue_variable(const struct shk_config *config, const char *name, int *weight_p)
{
    const struct shk_setting *setting = shk_config_setting(config, name);
    *weight_p = 80;
    if (!setting || setting->severity == SHK_SEV_NONE || strstr(name, "VISIBLE") ||
        strstr(name, "HOSTID") || shk_env_own(config, name))
        return NULL;
    switch (setting->grammar.type) {
    case SHK_VALUE_INTERFACES: *weight_p = 45; return "socket-ifname-differs-across-nodes";
    case SHK_VALUE_HCAS: *weight_p = 45; return "hca-differs-across-nodes";
    case SHK_VALUE_PATH:
    case SHK_VALUE_PATHS:
    case SHK_VALUE_HOST_PORT:
    case SHK_VALUE_DEVICES: return NULL;
    default: return "env-differs-across-ranks";
    }
}

static const char *text_of(const json_t *tuple, const char *name)
{
    const char *text = NULL;
    (void)shk_look_member_text(tuple, name, &text);
    return text;
}

static const char *who(const json_t *tuple)
{
    const char *node = text_of(tuple, "node"), *origin = text_of(tuple, "origin");
    return node ? node : origin ? origin : "?";
}

/* The first captured text of a tuple that is not a name or a place. */
static const char *value_of(const json_t *tuple)
{
    static const char *const groups[] = {"value", "version", "iface", "address", "count"};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        const char *text = text_of(tuple, groups[i]);
        if (text)
            return text;
    }
    return NULL;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* First tuple with the same name and another value, behind `from`. */
static json_t *other_value(const json_t *tuples, size_t from)
{
    const json_t *first = json_array_get(tuples, from);
    for (size_t i = from + 1; i < json_array_size(tuples); i++) {
        json_t *t = json_array_get(tuples, i);
        if (same(text_of(t, "name"), text_of(first, "name")) && !same(value_of(t), value_of(first)))
            return t;
    }
    return NULL;
}

static bool named_before(const json_t *tuples, size_t at)
{
    const char *name = text_of(json_array_get(tuples, at), "name");
    for (size_t i = 0; i < at; i++)
        if (same(text_of(json_array_get(tuples, i), "name"), name))
            return true;
    return false;
}

static void one_signature(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *facts, const struct shk_signature *sig)
{
    json_t *tuples = json_object_get(shk_log_seen(facts, sig->id), "captures");
    for (size_t i = 0; i < json_array_size(tuples); i++) {
        const json_t *a = json_array_get(tuples, i), *b = other_value(tuples, i);
        const char *name = text_of(a, "name"), *key = sig->differs;
        int weight = sig->weight;
        if (!b || named_before(tuples, i))
            continue;
        if (name && !key)
            key = shk_clue_variable(config, name, &weight);
        if (!key || !value_of(a) || !value_of(b))
            continue;
        shk_clue_add(clues, key, weight, weight >= SPECIFIC,
                     shk_strf("%s is \"%s\" on %s and \"%s\" on %s", name ? name : sig->meaning,
                              value_of(a), who(a), value_of(b), who(b)));
    }
}

static bool count_of(const json_t *tuple, long long *count_p)
{
    const char *text = text_of(tuple, "count");
    char *end = NULL;
    if (text)
        *count_p = strtoll(text, &end, 10);
    return text && end != text;
}

/* Of counts of one name: the process that is behind all others stopped first. */
struct behind {
    const json_t *last; /* tuple of the least */
    long long least, next;
    size_t count;
};

static void note_count(struct behind *b, const json_t *tuple, long long count)
{
    if (!b->count++ || count < b->least) {
        b->next = b->least;
        b->least = count;
        b->last = tuple;
    } else if (b->count == 2 || count < b->next) {
        b->next = count;
    }
}

static void one_behind(struct shk_clues *clues, const struct shk_facts *facts,
                       const struct shk_signature *sig)
{
    json_t *tuples = json_object_get(shk_log_seen(facts, sig->id), "captures");
    for (size_t i = 0; i < json_array_size(tuples); i++) {
        const json_t *first = json_array_get(tuples, i);
        struct behind b = {0};
        for (size_t k = i; k < json_array_size(tuples) && !named_before(tuples, i); k++) {
            const json_t *tuple = json_array_get(tuples, k);
            long long count = 0;
            if (same(text_of(tuple, "name"), text_of(first, "name")) && count_of(tuple, &count) &&
                text_of(tuple, "origin"))
                note_count(&b, tuple, count);
        }
        if (b.count < 2 || b.next <= b.least)
            continue;
        shk_clue_add(clues, sig->behind, sig->weight, sig->weight >= SPECIFIC,
                     shk_strf("%s: %s stopped first, at %lld; the next one is at %lld",
                              sig->meaning, text_of(b.last, "origin"), b.least, b.next));
    }
}

void shk_clues_from_values(struct shk_clues *clues, const struct shk_config *config,
                           const struct shk_facts *const *facts, size_t nodes)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    if (!nodes || !shk_log_given(facts[0]))
        return;
    for (size_t i = 0; i < count; i++)
        if (sigs[i].capture)
            one_signature(clues, config, facts[0], &sigs[i]);
    for (size_t i = 0; i < count; i++)
        if (sigs[i].behind)
            one_behind(clues, facts[0], &sigs[i]);
}
