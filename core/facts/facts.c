#include "core/facts/facts.h"

#include "core/facts/facts_private.h"
#include "core/redact/redact.h"
#include "core/text/order.h"
#include "core/text/prose.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const fact_states[] = {
    [SHK_FACT_PRESENT] = "present",
    [SHK_FACT_ABSENT] = "absent",
    [SHK_FACT_FAILED] = "failed",
};

struct shk_facts *shk_facts_create(void)
{
    struct shk_facts *facts = calloc(1, sizeof *facts);
    if (facts && !(facts->table = json_object())) {
        free(facts);
        facts = NULL;
    }
    return facts;
}

void shk_facts_destroy(struct shk_facts *facts)
{
    if (!facts)
        return;
    json_decref(facts->table);
    free(facts);
}

void shk_facts_freeze(struct shk_facts *facts)
{
    facts->frozen = true;
}

bool shk_facts_key_valid(const char *key)
{
    size_t len = strlen(key);
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+-";
    return len >= 1 && len <= 255 && strspn(key, allowed) == len;
}

json_t *shk_facts_swap(struct shk_facts *facts, const char *key, json_t *entry)
{
    json_t *was = facts->frozen ? NULL : json_incref(json_object_get(facts->table, key));
    if (facts->frozen)
        json_decref(entry);
    else if (entry)
        (void)json_object_set_new(facts->table, key, entry);
    else
        (void)json_object_del(facts->table, key);
    return was;
}

/* A variable of the environment or of a file whose value must not be written down: failed, so that
 * nobody judges it; NULL when it is none. */
static json_t *facts_withhold(const char *key, const json_t *entry)
{
    const char *value = json_string_value(json_object_get(entry, "value")), *why = NULL;
    const char *source = json_string_value(json_object_get(entry, "source"));
    if (strncmp(key, "env.", 4) != 0 || !value)
        return NULL;
    const char *name = strncmp(key, "env.file.", 9) == 0 ? key + 9 : key + 4;
    if (!shk_redact_value(name, value, &why))
        return NULL;
    char *reason = shk_strf("withheld: looks like a secret (%s)", why);
    json_t *withheld = reason ? json_pack("{s:s,s:s,s:s}", "state", fact_states[SHK_FACT_FAILED],
                                          "source", source ? source : "", "reason", reason)
                              : NULL;
    free(reason);
    return withheld ? withheld : json_null();
}

int shk_facts_store(struct shk_facts *facts, const char *key, json_t *entry)
{
    if (!entry)
        return -ENOMEM;
    if (facts->frozen || !shk_facts_key_valid(key)) {
        json_decref(entry);
        return facts->frozen ? -EROFS : -EINVAL;
    }
    json_t *given = entry, *withheld = facts_withhold(key, given);
    entry = withheld ? withheld : shk_redact_json(given);
    json_decref(given);
    if (!json_is_object(entry)) /* out of memory */
        return -ENOMEM;
    return json_object_set_new(facts->table, key, entry) ? -ENOMEM : 0;
}

static void facts_set_text(json_t *entry, const char *member, const char *text)
{
    if (text)
        json_object_set_new(entry, member, shk_json_text(text, strlen(text)));
}

int shk_facts_present(struct shk_facts *facts, const char *key, json_t *value, const char *unit,
                      const char *source)
{
    if (!value)
        return -ENOMEM;
    json_t *entry = json_pack("{s:s,s:o}", "state", fact_states[SHK_FACT_PRESENT], "value", value);
    facts_set_text(entry, "unit", unit);
    facts_set_text(entry, "source", source);
    return shk_facts_store(facts, key, entry);
}

static int facts_missing(struct shk_facts *facts, const char *key, enum shk_fact_state state,
                         const char *source, const char *reasonf, va_list args)
{
    char *reason = NULL;
    if (vasprintf(&reason, reasonf, args) < 0)
        return -ENOMEM;
    json_t *entry = json_pack("{s:s}", "state", fact_states[state]);
    facts_set_text(entry, "source", source);
    shk_prose(reason);
    facts_set_text(entry, "reason", reason);
    free(reason);
    return shk_facts_store(facts, key, entry);
}

int shk_facts_absent(struct shk_facts *facts, const char *key, const char *source,
                     const char *reasonf, ...)
{
    va_list args;
    va_start(args, reasonf);
    int rc = facts_missing(facts, key, SHK_FACT_ABSENT, source, reasonf, args);
    va_end(args);
    return rc;
}

int shk_facts_failed(struct shk_facts *facts, const char *key, const char *source,
                     const char *reasonf, ...)
{
    va_list args;
    va_start(args, reasonf);
    int rc = facts_missing(facts, key, SHK_FACT_FAILED, source, reasonf, args);
    va_end(args);
    return rc;
}

int shk_facts_text(struct shk_facts *facts, const char *key, const char *text, const char *source)
{
    if (!text)
        return shk_facts_absent(facts, key, source, "not there");
    return shk_facts_present(facts, key, shk_json_text(text, strlen(text)), NULL, source);
}

int shk_facts_int(struct shk_facts *facts, const char *key, long long value, const char *unit,
                  const char *source)
{
    return shk_facts_present(facts, key, json_integer(value), unit, source);
}

int shk_facts_bool(struct shk_facts *facts, const char *key, bool value, const char *source)
{
    return shk_facts_present(facts, key, json_boolean(value), NULL, source);
}

int shk_facts_state_parse(const char *name)
{
    for (size_t i = 0; name && i < sizeof fact_states / sizeof *fact_states; i++)
        if (strcmp(name, fact_states[i]) == 0)
            return (int)i;
    return -1;
}

static void facts_view(const char *key, json_t *entry, struct shk_fact *fact)
{
    const char *source = json_string_value(json_object_get(entry, "source"));
    int state = shk_facts_state_parse(json_string_value(json_object_get(entry, "state")));
    *fact = (struct shk_fact){
        .key = key,
        .state = (enum shk_fact_state)state,
        .value = state == SHK_FACT_PRESENT ? json_object_get(entry, "value") : NULL,
        .unit = json_string_value(json_object_get(entry, "unit")),
        .source = source ? source : "",
        .reason = json_string_value(json_object_get(entry, "reason")),
    };
}

void shk_facts_watch(struct shk_facts *facts, json_t *seen)
{
    facts->seen = seen;
}

static void facts_seen(const struct shk_facts *facts, const char *key)
{
    if (facts->seen)
        (void)json_object_set_new(facts->seen, key, json_true());
}

bool shk_facts_get(const struct shk_facts *facts, const char *key, struct shk_fact *fact_p)
{
    facts_seen(facts, key);
    json_t *entry = json_object_get(facts->table, key);
    if (!entry)
        return false;
    facts_view(json_object_iter_key(json_object_iter_at(facts->table, key)), entry, fact_p);
    return true;
}

static json_t *facts_value(const struct shk_facts *facts, const char *key)
{
    struct shk_fact fact;
    return shk_facts_get(facts, key, &fact) ? fact.value : NULL;
}

const char *shk_facts_get_text(const struct shk_facts *facts, const char *key)
{
    return json_string_value(facts_value(facts, key));
}

long long shk_facts_get_int(const struct shk_facts *facts, const char *key, long long fallback)
{
    json_t *value = facts_value(facts, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

json_t *shk_facts_get_array(const struct shk_facts *facts, const char *key)
{
    json_t *value = facts_value(facts, key);
    return json_is_array(value) ? value : NULL;
}

json_t *shk_facts_get_object(const struct shk_facts *facts, const char *key)
{
    json_t *value = facts_value(facts, key);
    return json_is_object(value) ? value : NULL;
}

int shk_facts_each(const struct shk_facts *facts, const char *prefix,
                   int (*fn)(const struct shk_fact *fact, void *arg), void *arg)
{
    size_t n = 0, plen = strlen(prefix);
    const char **keys = calloc(json_object_size(facts->table) + 1, sizeof *keys);
    if (!keys)
        return -ENOMEM;
    const char *key;
    json_t *entry;
    json_object_foreach(facts->table, key, entry)
    {
        if (strncmp(key, prefix, plen) == 0)
            keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, shk_order_text);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        struct shk_fact fact;
        facts_seen(facts, keys[i]);
        facts_view(keys[i], json_object_get(facts->table, keys[i]), &fact);
        rc = fn(&fact, arg);
    }
    free(keys);
    return rc;
}

size_t shk_facts_count(const struct shk_facts *facts)
{
    return json_object_size(facts->table);
}

int shk_facts_merge(struct shk_facts *dst, const struct shk_facts *src)
{
    if (dst->frozen)
        return -EROFS;
    return json_object_update(dst->table, src->table) ? -ENOMEM : 0;
}
