#include "checks/base/look.h"

#include "core/facts/elements.h"

#include <string.h>
#include <strings.h>

static const char unexpected_form[] = "it has an unexpected form";
static const char not_known[] = "its source does not know it";

enum shk_look shk_look(const struct shk_facts *facts, const char *key, struct shk_fact *fact_p)
{
    struct shk_fact fact;
    if (!shk_facts_get(facts, key, &fact))
        return SHK_LOOK_MISSING;
    if (fact_p)
        *fact_p = fact;
    return fact.state == SHK_FACT_PRESENT  ? SHK_LOOK_PRESENT
           : fact.state == SHK_FACT_ABSENT ? SHK_LOOK_ABSENT
                                           : SHK_LOOK_FAILED;
}

enum shk_look shk_look_member(const json_t *object, const char *name, json_t **value_p)
{
    json_t *value = json_object_get(object, name);
    if (!value)
        return SHK_LOOK_MISSING;
    if (json_is_null(value))
        return json_object_get(json_object_get(object, "problems"), name) ? SHK_LOOK_FAILED
                                                                          : SHK_LOOK_ABSENT;
    *value_p = value;
    return SHK_LOOK_PRESENT;
}

/* Each type once: what the value of a fact and a member of one have in common. */
#define LOOK_AT(kind, type, is, get)                                                               \
    static enum shk_look take_##kind(enum shk_look look, json_t *value, type *value_p)             \
    {                                                                                              \
        if (look == SHK_LOOK_PRESENT && !is(value))                                                \
            return SHK_LOOK_FAILED;                                                                \
        if (look == SHK_LOOK_PRESENT)                                                              \
            *value_p = get(value);                                                                 \
        return look;                                                                               \
    }                                                                                              \
    enum shk_look shk_look_member_##kind(const json_t *object, const char *name, type *value_p)    \
    {                                                                                              \
        json_t *value = NULL;                                                                      \
        enum shk_look look = shk_look_member(object, name, &value);                                \
        return take_##kind(look, value, value_p);                                                  \
    }

#define LOOK_AT_FACT(kind, type)                                                                   \
    enum shk_look shk_look_##kind(const struct shk_facts *facts, const char *key, type *value_p)   \
    {                                                                                              \
        struct shk_fact fact = {.value = NULL};                                                    \
        enum shk_look look = shk_look(facts, key, &fact);                                          \
        return take_##kind(look, fact.value, value_p);                                             \
    }

/* Texts, numbers, truths, lists or objects: 0 for null, which is none. */
static int entry_kind(const json_t *entry)
{
    return json_is_boolean(entry)  ? 1
           : json_is_number(entry) ? 2
           : json_is_null(entry)   ? 0
                                   : 3 + (int)json_typeof(entry);
}

/* An entry that is null, of another kind than the first, or that does not say what it is of was not
 * read: what the others say is then not all there is. */
static bool is_list(const json_t *value)
{
    size_t n = json_array_size(value);
    int kind = n ? entry_kind(json_array_get(value, 0)) : 1;
    bool same = json_is_array(value) && kind != 0;
    for (size_t i = 1; same && i < n; i++)
        same = entry_kind(json_array_get(value, i)) == kind;
    return same && (!json_is_object(json_array_get(value, 0)) || shk_elements_told(value));
}

static bool is_texts(const json_t *value)
{
    return is_list(value) && (!json_array_size(value) || json_is_string(json_array_get(value, 0)));
}

static bool is_numbers(const json_t *value)
{
    return is_list(value) && (!json_array_size(value) || json_is_number(json_array_get(value, 0)));
}

static bool is_objects(const json_t *value)
{
    return is_list(value) && (!json_array_size(value) || json_is_object(json_array_get(value, 0)));
}

bool shk_says_nothing(const char *text)
{
    static const char *const words[] = {"unknown", "n/a", "[unknown]", "[n/a]"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool is_told_text(const json_t *value)
{
    return json_is_string(value) && !shk_says_nothing(json_string_value(value));
}

#define SAME(value) (value)
LOOK_AT(text, const char *, is_told_text, json_string_value)
LOOK_AT(int, long long, json_is_integer, json_integer_value)
LOOK_AT(number, double, json_is_number, json_number_value)
LOOK_AT(bool, bool, json_is_boolean, json_is_true)
LOOK_AT(array, json_t *, is_list, SAME)
LOOK_AT(texts, json_t *, is_texts, SAME)
LOOK_AT(numbers, json_t *, is_numbers, SAME)
LOOK_AT(objects, json_t *, is_objects, SAME)
LOOK_AT(object, json_t *, json_is_object, SAME)
LOOK_AT_FACT(text, const char *)
LOOK_AT_FACT(int, long long)
LOOK_AT_FACT(bool, bool)
/* Of any kind of entries, and of objects, which nearly all of them are. */
enum shk_look shk_look_list(const struct shk_facts *facts, const char *key, json_t **value_p)
{
    struct shk_fact fact = {.value = NULL};
    enum shk_look look = shk_look(facts, key, &fact);
    return take_array(look, fact.value, value_p);
}

enum shk_look shk_look_array(const struct shk_facts *facts, const char *key, json_t **value_p)
{
    return shk_look_objects(facts, key, value_p);
}

LOOK_AT_FACT(texts, json_t *)
LOOK_AT_FACT(numbers, json_t *)
LOOK_AT_FACT(objects, json_t *)
LOOK_AT_FACT(object, json_t *)

/* A list of which another fact counts the entries by their kind. */
static const struct counted_list {
    const char *list, *count, *kind, *apart; /* entries of which `apart` is true do not count */
} counted_lists[] = {{"pci.devices", "pci.count.", "kind", "vf"}};

struct counted {
    const struct counted_list *as;
    const json_t *list;
};

/* 1: there are fewer than the fact says. */
static int lost_of_kind(const struct shk_fact *fact, void *arg)
{
    const struct counted *counted = arg;
    const char *kind = fact->key + strlen(counted->as->count);
    json_int_t listed = 0;
    size_t i;
    json_t *entry;
    if (fact->state != SHK_FACT_PRESENT || !json_is_integer(fact->value))
        return 0;
    json_array_foreach((json_t *)counted->list, i, entry)
    {
        const char *is = json_string_value(json_object_get(entry, counted->as->kind));
        listed += is && strcmp(is, kind) == 0 &&
                  !json_is_true(json_object_get(entry, counted->as->apart));
    }
    return listed < json_integer_value(fact->value);
}

bool shk_look_lost(const struct shk_facts *facts, const char *key)
{
    struct shk_fact fact = {.value = NULL};
    for (size_t i = 0; i < sizeof counted_lists / sizeof *counted_lists; i++) {
        struct counted counted = {.as = &counted_lists[i]};
        if (strcmp(key, counted.as->list) != 0)
            continue;
        if (shk_look(facts, key, &fact) != SHK_LOOK_PRESENT || !json_is_array(fact.value))
            return false;
        counted.list = fact.value;
        return shk_facts_each(facts, counted.as->count, lost_of_kind, &counted) > 0;
    }
    return false;
}

const char *shk_member_problem(const json_t *object, const char *name)
{
    const char *problem =
        json_string_value(json_object_get(json_object_get(object, "problems"), name));
    json_t *value = json_object_get(object, name);
    if (json_is_string(value) && shk_says_nothing(json_string_value(value)))
        return not_known;
    if (value && !json_is_null(value))
        return unexpected_form;
    return problem;
}

const char *shk_member_words(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

const char *shk_member_name(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "?";
}

size_t shk_list_distinct(const json_t *list, const char *name)
{
    json_t *seen = json_object(), *entry;
    size_t count = 0, i;
    json_array_foreach((json_t *)list, i, entry)
    {
        const char *text = json_string_value(json_object_get(entry, name));
        count += !text || !json_object_get(seen, text);
        if (text)
            (void)json_object_set_new(seen, text, json_true());
    }
    json_decref(seen);
    return count;
}
