#include "core/facts/factdiff.h"

#include "core/facts/elements.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct shk_diff {
    const struct shk_diff_rule *rules;
    size_t rules_count;
    bool all;
    bool agree;     /* only what nodes of one kind must agree in */
    bool same_node; /* of the pair at hand */
    bool failed;
    const char *node; /* of the pair at hand */
    const char *fact; /* of the value at hand */
    const char *unit;
    json_t *rows;
    json_t *index; /* path and both sides as text -> position in rows */
    json_t *only_a, *only_b;
    size_t pairs;
    size_t aside[SHK_DIFF_CLASS_COUNT];
};

/* Where in a value: shown with array elements, matched without. */
struct diff_at {
    const char *path, *plain;
};

static const char *const diff_classes[SHK_DIFF_CLASS_COUNT] = {
    [SHK_DIFF_TIME] = "time",       [SHK_DIFF_NODE] = "node",   [SHK_DIFF_JOB] = "job",
    [SHK_DIFF_DERIVED] = "derived", [SHK_DIFF_NOISE] = "noise", [SHK_DIFF_COMPARE] = "compare",
    [SHK_DIFF_AGREE] = "agree",
};

const char *shk_diff_class_name(enum shk_diff_class differs)
{
    return (size_t)differs < SHK_DIFF_CLASS_COUNT ? diff_classes[differs] : "unknown";
}

struct shk_diff *shk_diff_create(const struct shk_diff_rule *rules, size_t count, bool all)
{
    struct shk_diff *diff = calloc(1, sizeof *diff);
    if (!diff)
        return NULL;
    *diff = (struct shk_diff){.rules = rules,
                              .rules_count = count,
                              .all = all,
                              .rows = json_array(),
                              .index = json_object(),
                              .only_a = json_array(),
                              .only_b = json_array()};
    if (!diff->rows || !diff->index || !diff->only_a || !diff->only_b) {
        shk_diff_destroy(diff);
        return NULL;
    }
    return diff;
}

void shk_diff_destroy(struct shk_diff *diff)
{
    if (!diff)
        return;
    json_decref(diff->rows);
    json_decref(diff->index);
    json_decref(diff->only_a);
    json_decref(diff->only_b);
    free(diff);
}

void shk_diff_must_agree(struct shk_diff *diff)
{
    diff->agree = true;
}

json_t *shk_diff_rows(const struct shk_diff *diff)
{
    return diff->rows;
}

json_t *shk_diff_only_a(const struct shk_diff *diff)
{
    return diff->only_a;
}

json_t *shk_diff_only_b(const struct shk_diff *diff)
{
    return diff->only_b;
}

size_t shk_diff_pairs(const struct shk_diff *diff)
{
    return diff->pairs;
}

size_t shk_diff_aside(const struct shk_diff *diff, enum shk_diff_class differs)
{
    return diff->aside[differs];
}

const struct shk_diff_rule *shk_diff_aside_rule(const struct shk_diff_rule *rules, size_t count,
                                                const char *plain)
{
    const struct shk_diff_rule *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (rules[i].differs == SHK_DIFF_AGREE || (found && rules[i].differs != SHK_DIFF_COMPARE))
            continue;
        if (fnmatch(rules[i].path, plain, FNM_NOESCAPE) == 0)
            found = &rules[i];
    }
    return found && found->differs != SHK_DIFF_COMPARE ? found : NULL;
}

const struct shk_diff_rule *shk_diff_aside_known(json_t *known, const struct shk_diff_rule *rules,
                                                 size_t count, const char *plain)
{
    const json_t *had = json_object_get(known, plain);
    if (had)
        return json_integer_value(had) < 0 ? NULL : &rules[json_integer_value(had)];
    const struct shk_diff_rule *found = shk_diff_aside_rule(rules, count, plain);
    (void)json_object_set_new(known, plain, json_integer(found ? found - rules : -1));
    return found;
}

static const struct shk_diff_rule *diff_rule(const struct shk_diff *diff, const char *plain)
{
    return diff->all ? NULL : shk_diff_aside_rule(diff->rules, diff->rules_count, plain);
}

const struct shk_diff_rule *shk_diff_agree_rule(const struct shk_diff_rule *rules, size_t count,
                                                const char *plain)
{
    const struct shk_diff_rule *found = NULL;
    for (size_t i = 0; i < count && !(found && found->fails_jobs); i++)
        if ((rules[i].fails_jobs ||
             (!found && (rules[i].differs == SHK_DIFF_AGREE || rules[i].agree))) &&
            fnmatch(rules[i].path, plain, FNM_NOESCAPE) == 0)
            found = &rules[i];
    return found;
}

static bool diff_within(const json_t *a, const json_t *b, int percent)
{
    double x = json_number_value(a), y = json_number_value(b);
    double largest = x > y ? x : y, least = x > y ? y : x;
    double size = largest > -least ? largest : -least;
    return json_is_number(a) && json_is_number(b) && (largest - least) * 100 <= percent * size;
}

/* Is the difference between two sides (NULL: no such thing) one that means nothing? */
static bool diff_set_aside(struct shk_diff *diff, const char *plain, const json_t *a,
                           const json_t *b)
{
    const struct shk_diff_rule *rule = diff_rule(diff, plain);
    if (!rule || (rule->differs == SHK_DIFF_NODE && diff->same_node) ||
        (rule->differs == SHK_DIFF_NOISE && !(a && b && diff_within(a, b, rule->percent))))
        return false;
    diff->aside[rule->differs]++;
    return true;
}

/* Steals a and b, which may be NULL; rows of other nodes that say the same are joined. */
static void diff_row(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b)
{
    if (diff->agree && !shk_diff_agree_rule(diff->rules, diff->rules_count, at.plain)) {
        json_decref(a);
        json_decref(b);
        return;
    }
    json_t *row = json_pack("{s:s,s:s*,s:s,s:o*,s:o*,s:[s]}", "path", at.path, "plain",
                            diff->agree ? at.plain : NULL, "fact", diff->fact, "a", a, "b", b,
                            "nodes", diff->node);
    char *left = a ? json_dumps(a, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    char *right = b ? json_dumps(b, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    char *key = shk_strf("%s\n%s\n%s", at.path, left ? left : "", right ? right : "");
    free(left);
    free(right);
    json_t *had = key ? json_object_get(diff->index, key) : NULL;
    json_t *nodes =
        had ? json_object_get(json_array_get(diff->rows, (size_t)json_integer_value(had)), "nodes")
            : NULL;
    if (!row || !key)
        diff->failed = true;
    else if (nodes)
        diff->failed |= json_array_append_new(nodes, json_string(diff->node)) != 0;
    else
        diff->failed |=
            json_object_set_new(diff->index, key,
                                json_integer((json_int_t)json_array_size(diff->rows))) != 0 ||
            json_array_append(diff->rows, row) != 0;
    json_decref(row);
    free(key);
}

static json_t *diff_side(const struct shk_diff *diff, json_t *value)
{
    return value
               ? json_pack("{s:s,s:O,s:s*}", "state", "present", "value", value, "unit", diff->unit)
               : NULL;
}

static void diff_values(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b);

/* Members that a and b have; a member that is null on one side and missing on the other is the
 * same. */
static void diff_objects(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b)
{
    const char *key;
    json_t *value, *all = json_copy(a);
    if (!all || json_object_update(all, b))
        diff->failed = true;
    json_object_foreach(all, key, value)
    {
        char *path = shk_strf("%s.%s", at.path, key), *plain = shk_strf("%s.%s", at.plain, key);
        if (path && plain)
            diff_values(diff, (struct diff_at){path, plain}, json_object_get(a, key),
                        json_object_get(b, key));
        else
            diff->failed = true;
        free(path);
        free(plain);
    }
    json_decref(all);
}

/* {identity: element}; NULL when the members do not tell the elements apart. */
static json_t *diff_by_identity(const json_t *array, size_t which)
{
    json_t *map = json_object(), *element;
    size_t i;
    json_array_foreach(array, i, element)
    {
        char *id = shk_element_identity(element, which);
        bool bad = !id || json_object_get(map, id) || json_object_set(map, id, element);
        free(id);
        if (bad) {
            json_decref(map);
            return NULL;
        }
    }
    return map;
}

bool shk_diff_counts(const struct shk_diff_rule *rule, const json_t *element)
{
    for (const char *const *where = rule ? rule->where : NULL; element && where && *where;
         where++) {
        bool no = **where == '!';
        if (json_is_true(json_object_get(element, *where + no)) == no)
            return false;
    }
    return true;
}

/* Is this element one that nodes need not agree in? One that is no longer what `where` asks for,
 * but is on the other side, does count. */
static bool diff_irrelevant(const struct shk_diff *diff, const char *plain, const json_t *a,
                            const json_t *b)
{
    const struct shk_diff_rule *rule =
        diff->agree ? shk_diff_agree_rule(diff->rules, diff->rules_count, plain) : NULL;
    if (!rule || !rule->where)
        return false;
    bool in_a = a && shk_diff_counts(rule, a), in_b = b && shk_diff_counts(rule, b);
    return !in_a && !in_b;
}

static void diff_elements(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b)
{
    const char *id;
    json_t *element, *all = json_copy(a);
    if (!all || json_object_update(all, b))
        diff->failed = true;
    json_object_foreach(all, id, element)
    {
        if (diff_irrelevant(diff, at.plain, json_object_get(a, id), json_object_get(b, id)))
            continue;
        char *path = shk_strf("%s[%s]", at.path, id);
        if (path)
            diff_values(diff, (struct diff_at){path, at.plain}, json_object_get(a, id),
                        json_object_get(b, id));
        else
            diff->failed = true;
        free(path);
    }
    json_decref(all);
}

/* False when nothing tells the elements apart. */
static bool diff_arrays(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b)
{
    for (size_t i = 0; i < SHK_ELEMENT_IDENTITIES; i++) {
        json_t *x = diff_by_identity(a, i);
        json_t *y = x ? diff_by_identity(b, i) : NULL;
        if (y)
            diff_elements(diff, at, x, y);
        json_decref(x);
        json_decref(y);
        if (y)
            return true;
    }
    return false;
}

/* NULL: no such member. */
static void diff_values(struct shk_diff *diff, struct diff_at at, json_t *a, json_t *b)
{
    bool none_a = !a || json_is_null(a), none_b = !b || json_is_null(b);
    if ((none_a && none_b) || (a && b && json_equal(a, b)))
        return;
    if (diff_set_aside(diff, at.plain, a, b))
        return;
    if (json_is_object(a) && json_is_object(b))
        diff_objects(diff, at, a, b);
    else if (!json_array_size(a) || !json_array_size(b) || !diff_arrays(diff, at, a, b))
        diff_row(diff, at, diff_side(diff, a), diff_side(diff, b));
}

static json_t *diff_fact_side(const struct shk_fact *fact)
{
    static const char *const states[] = {"present", "absent", "failed"};
    return json_pack("{s:s,s:O*,s:s*,s:s*}", "state", states[fact->state], "value", fact->value,
                     "unit", fact->unit, "reason", fact->reason);
}

/* Both present: the values. Else the states, and why a fact could not be read. */
static void diff_facts(struct shk_diff *diff, const struct shk_fact *a, const struct shk_fact *b)
{
    const char *key = a ? a->key : b->key;
    diff->fact = key;
    diff->unit = a && a->unit ? a->unit : b ? b->unit : NULL;
    if (a && b && a->state == SHK_FACT_PRESENT && b->state == SHK_FACT_PRESENT) {
        diff_values(diff, (struct diff_at){key, key}, a->value, b->value);
        return;
    }
    bool same = a && b && a->state == b->state;
    if (same && a->state == SHK_FACT_FAILED)
        same = strcmp(a->reason ? a->reason : "", b->reason ? b->reason : "") == 0;
    if (!same && !diff_set_aside(diff, key, NULL, NULL))
        diff_row(diff, (struct diff_at){key, key}, a ? diff_fact_side(a) : NULL,
                 b ? diff_fact_side(b) : NULL);
}

struct diff_walk {
    struct shk_diff *diff;
    const struct shk_facts *other;
    bool only_missing;
};

static int diff_each(const struct shk_fact *fact, void *arg)
{
    struct diff_walk *walk = arg;
    struct shk_fact other;
    bool found = shk_facts_get(walk->other, fact->key, &other);
    if (!walk->only_missing)
        diff_facts(walk->diff, fact, found ? &other : NULL);
    else if (!found)
        diff_facts(walk->diff, NULL, fact);
    return walk->diff->failed ? -ENOMEM : 0;
}

static const char *diff_name(const struct shk_facts *facts)
{
    const char *name = shk_facts_get_text(facts, "host.name");
    return name ? name : "unnamed";
}

static int diff_pair(struct shk_diff *diff, const struct shk_facts *a, const struct shk_facts *b)
{
    const char *left = shk_facts_get_text(a, "host.name"), *right = diff_name(b);
    diff->same_node = left && strcmp(left, right) == 0;
    diff->node = right;
    diff->pairs++;
    struct diff_walk walk = {.diff = diff, .other = b};
    int rc = shk_facts_each(a, "", diff_each, &walk);
    walk = (struct diff_walk){.diff = diff, .other = a, .only_missing = true};
    return rc ? rc : shk_facts_each(b, "", diff_each, &walk);
}

static int diff_row_order(const void *a, const void *b)
{
    return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "path")),
                  json_string_value(json_object_get(*(json_t *const *)b, "path")));
}

static int diff_sort(struct shk_diff *diff)
{
    size_t n = json_array_size(diff->rows);
    json_t **rows = calloc(n + 1, sizeof(json_t *)), *sorted = json_array();
    if (!rows || !sorted) {
        free(rows);
        json_decref(sorted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = json_array_get(diff->rows, i);
    qsort(rows, n, sizeof(json_t *), diff_row_order);
    for (size_t i = 0; i < n; i++)
        diff->failed |= json_array_append(sorted, rows[i]) != 0;
    free(rows);
    json_decref(diff->rows);
    diff->rows = sorted;
    return diff->failed ? -ENOMEM : 0;
}

/* Partners by name; the k-th of a name goes with the k-th. */
static int diff_by_name(struct shk_diff *diff, const struct shk_facts *const *a, size_t na,
                        const struct shk_facts *const *b, size_t nb)
{
    bool *used = calloc(nb + 1, sizeof *used);
    int rc = used ? 0 : -ENOMEM;
    for (size_t i = 0; i < na && !rc; i++) {
        size_t k = 0;
        while (k < nb && (used[k] || strcmp(diff_name(a[i]), diff_name(b[k])) != 0))
            k++;
        if (k == nb) {
            rc = json_array_append_new(diff->only_a, json_string(diff_name(a[i]))) ? -ENOMEM : 0;
            continue;
        }
        used[k] = true;
        rc = diff_pair(diff, a[i], b[k]);
    }
    for (size_t k = 0; k < nb && !rc; k++)
        if (!used[k])
            rc = json_array_append_new(diff->only_b, json_string(diff_name(b[k]))) ? -ENOMEM : 0;
    free(used);
    return rc;
}

int shk_diff_sets(struct shk_diff *diff, const struct shk_facts *const *a, size_t na,
                  const struct shk_facts *const *b, size_t nb)
{
    int rc = 0;
    if (na == 1 && nb)
        for (size_t i = 0; i < nb && !rc; i++)
            rc = diff_pair(diff, a[0], b[i]);
    else
        rc = diff_by_name(diff, a, na, b, nb);
    if (!rc && diff->failed)
        rc = -ENOMEM;
    return rc ? rc : diff_sort(diff);
}
