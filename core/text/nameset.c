#include "core/text/nameset.h"

#include "core/text/order.h"
#include "core/text/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct shk_name_set {
    struct shk_name_rule *rules;
    size_t count, cap;
    unsigned *slots;    /* number + 1 of a rule with a whole name, by its hash; 0: free */
    size_t slot_cap;    /* a power of two */
    unsigned *next;     /* of each prefix the one noted before it with that first letter, + 1 */
    unsigned heads[32]; /* the last prefix of each first letter, + 1; either case */
};

enum { NAME_LETTER = 31 };

struct shk_name_set *shk_name_set_create(void)
{
    return calloc(1, sizeof(struct shk_name_set));
}

void shk_name_set_destroy(struct shk_name_set *set)
{
    if (!set)
        return;
    free(set->rules);
    free(set->slots);
    free(set->next);
    free(set);
}

/* FNV-1a, 64 bit. */
static size_t name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

/* The slot of that whole name: the first rule's, when several have it, or a free one. */
static unsigned *name_slot(const struct shk_name_set *set, const char *name)
{
    size_t i = name_hash(name) & (set->slot_cap - 1);
    while (set->slots[i] && strcmp(set->rules[set->slots[i] - 1].name, name) != 0)
        i = (i + 1) & (set->slot_cap - 1);
    return &set->slots[i];
}

static void name_note(struct shk_name_set *set, size_t i)
{
    if (set->rules[i].prefix) {
        unsigned *head = &set->heads[*set->rules[i].name & NAME_LETTER];
        set->next[i] = *head;
        *head = (unsigned)i + 1;
        return;
    }
    unsigned *slot = name_slot(set, set->rules[i].name);
    if (!*slot)
        *slot = (unsigned)i + 1;
}

/* At most half of the slots are taken. */
static int name_grow(struct shk_name_set *set)
{
    size_t cap = set->cap ? set->cap * 2 : 128;
    struct shk_name_rule *rules = reallocarray(set->rules, cap, sizeof *rules);
    if (rules)
        set->rules = rules;
    unsigned *slots = calloc(2 * cap, sizeof *slots), *next = calloc(cap, sizeof *next);
    if (!rules || !slots || !next) {
        free(slots);
        free(next);
        return -ENOMEM;
    }
    free(set->slots);
    free(set->next);
    set->slots = slots;
    set->next = next;
    set->cap = cap;
    set->slot_cap = 2 * cap;
    memset(set->heads, 0, sizeof set->heads);
    for (size_t i = 0; i < set->count; i++)
        name_note(set, i);
    return 0;
}

int shk_name_set_add(struct shk_name_set *set, const struct shk_name_rule *rule)
{
    if (set->count == set->cap && name_grow(set) < 0)
        return -ENOMEM;
    set->rules[set->count] = *rule;
    name_note(set, set->count++);
    return 0;
}

const char *shk_name_how_text(enum shk_name_how how)
{
    static const char *const names[] = {
        [SHK_NAME_PREFIX] = "prefix",
        [SHK_NAME_EXACT] = "name",
        [SHK_NAME_NEAR] = "near",
    };
    return names[how];
}

bool shk_name_ok(const char *name)
{
    if (!*name || isdigit((unsigned char)*name))
        return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

static bool name_any_word(const struct shk_name_rule *rule)
{
    return strcmp(rule->near[0], "*") == 0;
}

static bool name_begins_with_word(const char *text, const struct shk_name_rule *rule)
{
    if (name_any_word(rule))
        return true;
    for (const char *const *word = rule->near; *word; word++) {
        size_t n = strlen(*word);
        if (strncasecmp(text, *word, n) == 0 && !isalnum((unsigned char)text[n]))
            return true;
    }
    return false;
}

/* One error in the prefix, or its underscore left out or typed as something else. */
static bool name_prefix_near(const char *name, const struct shk_name_rule *rule)
{
    char token[32], expected[32];
    size_t stem = strlen(rule->name) - 1, len = strcspn(name, "_-. ");
    if (stem >= sizeof expected)
        return false;
    if (strncasecmp(name, rule->name, stem) == 0) {
        const char *rest = name + stem;
        if (*rest == '-' || *rest == '.' || *rest == ' ')
            rest++;
        return *rest && !name_any_word(rule) && name_begins_with_word(rest, rule);
    }
    if (!name[len] || len < 3 || len >= sizeof token || len + 1 < stem || len > stem + 1)
        return false;
    memcpy(token, name, len);
    token[len] = '\0';
    memcpy(expected, rule->name, stem);
    expected[stem] = '\0';
    return shk_edit_distance_within(token, expected, 1) == 1 &&
           name_begins_with_word(name + len + 1, rule);
}

static struct shk_name_match name_match(const struct shk_name_rule *rule, enum shk_name_how how)
{
    return (struct shk_name_match){.family = rule->family, .how = how, .of = rule->name};
}

static bool name_exact(const struct shk_name_set *set, const char *name,
                       struct shk_name_match *match_p)
{
    const struct shk_name_rule *best = NULL;
    size_t longest = 0;
    unsigned whole = set->slot_cap ? *name_slot(set, name) : 0;
    if (whole) {
        *match_p = name_match(&set->rules[whole - 1], SHK_NAME_EXACT);
        return true;
    }
    for (unsigned i = set->heads[*name & NAME_LETTER]; i; i = set->next[i - 1]) {
        const struct shk_name_rule *rule = &set->rules[i - 1];
        size_t len = strlen(rule->name);
        bool begins = rule->wraps ? strncmp(name, rule->name, len) == 0
                                  : strncasecmp(name, rule->name, len) == 0;
        if (begins && len && len >= longest) { /* the first of two */
            best = rule;
            longest = len;
        }
    }
    if (best && best->wraps)
        return shk_name_classify(set, name + longest, match_p);
    if (best)
        *match_p = name_match(best, strncmp(name, best->name, longest) == 0 ? SHK_NAME_PREFIX
                                                                            : SHK_NAME_NEAR);
    return best != NULL;
}

static bool name_near(const struct shk_name_set *set, const char *name,
                      struct shk_name_match *match_p)
{
    for (int prefixes = 0; prefixes < 2; prefixes++)
        for (size_t i = 0; i < set->count; i++) {
            const struct shk_name_rule *rule = &set->rules[i];
            if (!rule->near || rule->wraps || rule->prefix != prefixes)
                continue;
            if (prefixes ? name_prefix_near(name, rule)
                         : shk_edit_distance_within(name, rule->name, 1) <= 1) {
                *match_p = name_match(rule, SHK_NAME_NEAR);
                return true;
            }
        }
    return false;
}

bool shk_name_classify(const struct shk_name_set *set, const char *name,
                       struct shk_name_match *match_p)
{
    return set && (name_exact(set, name, match_p) || name_near(set, name, match_p));
}

bool shk_name_covered(const struct shk_name_set *set, const char *name)
{
    struct shk_name_match match;
    return set && name_exact(set, name, &match) && match.how != SHK_NAME_NEAR;
}

static bool name_has_prefix(const struct shk_name_set *set, const char *name)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->rules[i].prefix &&
            strncmp(name, set->rules[i].name, strlen(set->rules[i].name)) == 0)
            return true;
    return false;
}

/* Appends the sorted prefixes, or the names that none of them covers. */
static json_t *name_list(const struct shk_name_set *set, bool prefixes)
{
    const char **texts = calloc(set->count + 1, sizeof *texts);
    json_t *list = texts ? json_array() : NULL;
    size_t count = 0;
    for (size_t i = 0; list && i < set->count; i++)
        if (set->rules[i].prefix == prefixes &&
            (prefixes || !name_has_prefix(set, set->rules[i].name)))
            texts[count++] = set->rules[i].name;
    if (count)
        qsort(texts, count, sizeof *texts, shk_order_text);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_string(texts[i]));
    free(texts);
    return list;
}

json_t *shk_name_set_json(const struct shk_name_set *set)
{
    return json_pack("{s:o, s:o}", "names", name_list(set, false), "prefixes",
                     name_list(set, true));
}

bool shk_name_json_covers(const json_t *record, const char *name)
{
    size_t i;
    json_t *item, *prefixes = json_object_get(record, "prefixes"),
                  *names = json_object_get(record, "names");
    json_array_foreach(prefixes, i, item)
    {
        const char *text = json_string_value(item);
        if (text && *text && *text == *name && strncmp(name, text, strlen(text)) == 0)
            return true;
    }
    json_array_foreach(names, i, item)
    {
        const char *text = json_string_value(item);
        if (text && *text == *name && strcmp(name, text) == 0)
            return true;
    }
    return false;
}
