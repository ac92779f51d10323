#include "checks/selftest/mutate.h"

#include "checks/base/look.h"
#include "checks/selftest/mutate_private.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Members of members beyond this depth are told with the one that they are in. */
enum { MUTATE_DEPTH = 4 };
/* One judgement in so many is made by all checks; prime, so that every way to mutate has its turn.
 */
enum { MUTATE_WHOLE = 97 };

struct mutate {
    struct shk_facts *facts; /* one place at a time is changed, judged and put back */
    struct shk_judge judge;
    const char *fact; /* that is changed, in whole or in part */
    void (*breach)(const struct shk_mutation_breach *breach, void *arg);
    void *arg;
    struct shk_mutation_count count;
    struct shk_error *err;
    int rc;
};

/* One place in the facts. */
struct place {
    json_t *holder; /* object that has the member `name`; NULL: `name` is a whole fact */
    const char *name;
    char *path;
};

static enum shk_verdict verdict_of(const json_t *row)
{
    return row ? (enum shk_verdict)json_integer_value(json_array_get(row, 0)) : SHK_NA;
}

static bool is_bad(enum shk_verdict verdict)
{
    return verdict == SHK_WARN || verdict == SHK_FAIL;
}

static void say(struct mutate *m, const struct place *place, const char *how, const char *row,
                char *problem)
{
    const char *setting = strchr(row, '\n');
    char *check = strndup(row, (size_t)(setting - row));
    struct shk_mutation_breach breach = {.fact = place->path,
                                         .how = how,
                                         .check = check ? check : row,
                                         .setting = setting + 1,
                                         .problem = problem ? problem : "out of memory"};
    m->count.breaches++;
    m->breach(&breach, m->arg);
    free(check);
    free(problem);
}

/* What the rows became when the place was not read. `turned`: rows that a value there can turn. */
static void compare(struct mutate *m, const struct place *place, const char *how,
                    const json_t *rows, const json_t *turned)
{
    const char *key;
    json_t *was;
    json_object_foreach(m->judge.base, key, was)
    {
        const json_t *is = json_object_get(rows, key);
        enum shk_verdict before = verdict_of(was), now = verdict_of(is);
        if (!is)
            say(m, place, how, key, shk_strf("the row (%s) vanishes", shk_verdict_name(before)));
        else if (now != before && now != SHK_UNKNOWN)
            say(m, place, how, key,
                shk_strf("turns from %s to %s", shk_verdict_name(before), shk_verdict_name(now)));
        else if (now != SHK_UNKNOWN && json_object_get(turned, key))
            say(m, place, how, key,
                shk_strf("is %s, although a value there can turn it", shk_verdict_name(now)));
        else if (now == SHK_PASS && !json_equal(json_array_get(was, 1), json_array_get(is, 1)))
            say(m, place, how, key,
                shk_strf("passes over less: \"%s\", before \"%s\"",
                         json_string_value(json_array_get(is, 1)),
                         json_string_value(json_array_get(was, 1))));
    }
    json_object_foreach((json_t *)rows, key, was)
    {
        if (!json_object_get(m->judge.base, key) && is_bad(verdict_of(was)))
            say(m, place, how, key,
                shk_strf("a new row says %s", shk_verdict_name(verdict_of(was))));
    }
}

/* Puts `value` (stolen; NULL: nothing) in the place and returns what was there. */
static json_t *put(struct mutate *m, const struct place *place, json_t *value)
{
    if (!place->holder)
        return shk_facts_swap(m->facts, place->name, value);
    json_t *was = json_incref(json_object_get(place->holder, place->name));
    if (value)
        json_object_set_new(place->holder, place->name, value);
    else
        json_object_del(place->holder, place->name);
    return was;
}

/* Every so often all checks judge: one that is told of a fact without asking for it would say
 * something else then. */
static void judge_whole(struct mutate *m, const struct place *place, const json_t *rows)
{
    const char *key;
    json_t *is, *whole = shk_judge_rows(&m->judge, NULL, &m->rc, m->err);
    json_object_foreach(whole, key, is)
    {
        const json_t *was = json_object_get(rows, key);
        if (verdict_of(was) != verdict_of(is) ||
            (was && !json_equal(json_array_get(was, 1), json_array_get(is, 1))))
            say(m, place, "changed", key,
                shk_strf("says \"%s\" without asking for it",
                         json_string_value(json_array_get(is, 1))));
    }
    json_decref(whole);
}

/* Whatever fails is a cause that the catalogue explains. */
static void judge_explained(struct mutate *m, const struct place *place, const json_t *rows)
{
    const char *key;
    json_t *row;
    json_object_foreach((json_t *)rows, key, row)
    {
        if (json_is_false(json_array_get(row, 3)))
            say(m, place, "changed", key, strdup("fails without a diagnosis of the catalogue"));
    }
}

/* The rows with `value` in the place; NULL: m->rc says why. */
static json_t *judge_with(struct mutate *m, const struct place *place, json_t *value)
{
    json_t *was = put(m, place, value);
    json_t *rows = shk_judge_rows(&m->judge, m->fact, &m->rc, m->err);
    if (rows && m->count.mutations++ % MUTATE_WHOLE == 0)
        judge_whole(m, place, rows);
    judge_explained(m, place, rows);
    json_decref(put(m, place, was));
    return rows;
}

static json_t *as_fact(const struct place *place, json_t *value)
{
    return place->holder ? value : json_pack("{s:s, s:o}", "state", "present", "value", value);
}

/* Values of the same type as `was` that mean something else; NULL when there are no more. */
static json_t *other_value(const json_t *was, size_t i)
{
    long long n = json_integer_value(was);
    switch (json_typeof(was)) {
    case JSON_TRUE:
    case JSON_FALSE: return i == 0 ? json_boolean(!json_is_true(was)) : NULL;
    case JSON_INTEGER: {
        const long long other[] = {0, 1, n * 3 + 1, n / 64, -1};
        return i < sizeof other / sizeof *other ? json_integer(other[i]) : NULL;
    }
    case JSON_REAL: return i < 2 ? json_real(i ? json_real_value(was) * 3 : 0) : NULL;
    case JSON_STRING: {
        static const char *const other[] = {"zzz", "none", "0", "DOWN"};
        return i < sizeof other / sizeof *other ? json_string(other[i]) : NULL;
    }
    case JSON_ARRAY: return i == 0 ? json_array() : NULL;
    case JSON_OBJECT: return i == 0 ? json_object() : NULL;
    default: return NULL;
    }
}

/* Rows that pass and that another value in this place turns to WARN or FAIL. */
static json_t *turned_rows(struct mutate *m, const struct place *place, const json_t *value)
{
    json_t *turned = json_object(), *other;
    for (size_t i = 0; !m->rc && (other = other_value(value, i)); i++) {
        json_t *rows = judge_with(m, place, as_fact(place, other));
        const char *key;
        json_t *row;
        json_object_foreach(rows, key, row)
        {
            if (is_bad(verdict_of(row)) && !is_bad(verdict_of(json_object_get(m->judge.base, key))))
                json_object_set_new(turned, key, json_true());
        }
        json_decref(rows);
    }
    return turned;
}

static void try_unread(struct mutate *m, const struct place *place, const char *how, json_t *value,
                       const json_t *turned)
{
    json_t *rows = m->rc ? NULL : judge_with(m, place, value);
    if (rows)
        compare(m, place, how, rows, turned);
    json_decref(rows);
}

/* Values of other types than `value` has, one after the other; NULL when there are no more. */
static json_t *wrong_type(const json_t *value, size_t *at)
{
    json_t *other = NULL;
    for (; !other; (*at)++) {
        switch (*at) {
        case 0: other = json_string("wrong type"); break;
        case 1: other = json_integer(7); break;
        case 2: other = json_true(); break;
        case 3: other = json_pack("[s]", "wrong type"); break;
        case 4: other = json_pack("[n]"); break;
        case 5: other = json_object(); break;
        case 6: other = json_real(1.5); break;
        default: return NULL;
        }
        bool number = json_is_number(value) && json_is_number(other);
        bool truth = json_is_boolean(value) && json_is_boolean(other);
        bool texts = *at == 3 && json_is_string(json_array_get(value, 0));
        bool same = *at != 4 && json_typeof(other) == json_typeof(value);
        if (texts || truth || number || (*at != 3 && same)) {
            json_decref(other);
            other = NULL;
        }
    }
    return other;
}

/* A text as its source says it where it cannot tell; NULL: the value is none, or a name, which may
 * be any word. */
static json_t *not_known(const char *name, const json_t *value)
{
    static const char *const names[] = {"name", "pci",  "addr",   "gpu",      "peer",  "nic",
                                        "path", "uuid", "domain", "provider", "uverbs"};
    const char *last = strrchr(name, '.');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(last ? last + 1 : name, names[i]) == 0)
            return NULL;
    return json_is_string(value) ? json_string("unknown") : NULL;
}

/* What these do not hold is not there: variables that nobody set, device nodes that do not exist,
 * jobs and all-reduces that were not run. */
static bool may_be_missing(const char *key)
{
    static const char *const prefixes[] = {"env.", "dev.", "job.", "collective."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Lines that were seen in a file: there is no such thing as one that was not read. */
static bool is_evidence(const char *key)
{
    return strncmp(key, "log.", 4) == 0;
}

static void mutate_fact(struct mutate *m, const struct place *place, const json_t *value)
{
    json_t *turned = value ? turned_rows(m, place, value) : json_object(), *other;
    try_unread(m, place, "failed",
               json_pack("{s:s, s:s}", "state", "failed", "reason", "Permission denied"), turned);
    if (!may_be_missing(place->name))
        try_unread(m, place, "missing", NULL, turned);
    for (size_t at = 0; value && (other = wrong_type(value, &at));)
        try_unread(m, place, "of another type", as_fact(place, other), turned);
    json_t *unknown = strncmp(place->name, "env.", 4) == 0 ? NULL : not_known(place->name, value);
    if (unknown)
        try_unread(m, place, "not known to its source", as_fact(place, unknown), turned);
    json_decref(turned);
}

static void mutate_member(struct mutate *m, const struct place *place, const json_t *value)
{
    json_t *turned = turned_rows(m, place, value), *other;
    json_t *problems = json_object_get(place->holder, "problems");
    json_t *with = problems ? json_deep_copy(problems) : json_object(),
           *was = json_incref(problems);
    json_object_set_new(with, place->name, json_string("Permission denied"));
    json_object_set_new(place->holder, "problems", with);
    try_unread(m, place, "failed", json_null(), turned);
    if (was)
        json_object_set_new(place->holder, "problems", was);
    else
        json_object_del(place->holder, "problems");
    try_unread(m, place, "missing", NULL, turned);
    for (size_t at = 0; (other = wrong_type(value, &at));)
        try_unread(m, place, "of another type", other, turned);
    json_t *unknown = not_known(place->name, value);
    if (unknown)
        try_unread(m, place, "not known to its source", unknown, turned);
    json_decref(turned);
}

/* An entry of an array (beyond the last: one more) is none, of a kind that the array does not have,
 * or says nothing; among several it is told by the others, alone by its reader. */
static void mutate_entry(struct mutate *m, json_t *array, size_t i, const char *path)
{
    bool objects = json_is_object(json_array_get(array, 0));
    json_t *was = json_incref(json_array_get(array, i)), *turned = json_object();
    json_t *others[] = {json_null(), json_object(), objects ? json_integer(7) : NULL};
    struct place place = {.name = m->fact, .path = shk_strf("%s/%zu", path, i)};
    for (size_t k = 0; place.path && !m->rc && k < 3 && others[k]; k++) {
        if (was)
            json_array_set(array, i, others[k]);
        else
            json_array_append(array, others[k]);
        json_t *rows = shk_judge_rows(&m->judge, m->fact, &m->rc, m->err);
        m->count.mutations++;
        if (rows)
            compare(m, &place,
                    k == 1 && objects ? "empty"
                    : k               ? "of another type"
                                      : "null",
                    rows, turned);
        json_decref(rows);
        if (was)
            json_array_set(array, i, was);
        else
            json_array_remove(array, i);
    }
    json_decref(others[1]);
    json_decref(others[2]);
    json_decref(turned);
    json_decref(was);
    free(place.path);
}

static void mutate_entries(struct mutate *m, json_t *array, const char *path)
{
    size_t n = json_array_size(array);
    if (!n)
        return;
    mutate_entry(m, array, 0, path);
    if (n > 1)
        mutate_entry(m, array, n - 1, path);
    mutate_entry(m, array, n, path);
}

static void walk(struct mutate *m, json_t *value, const char *path, size_t depth);

static void walk_object(struct mutate *m, json_t *object, const char *path, size_t depth)
{
    const char *name;
    json_t *value;
    json_t *names = json_array();
    json_object_foreach(object, name, value) json_array_append_new(names, json_string(name));
    size_t i;
    json_t *item;
    json_array_foreach(names, i, item)
    {
        name = json_string_value(item);
        value = json_object_get(object, name);
        struct place place = {
            .holder = object, .name = name, .path = shk_strf("%s/%s", path, name)};
        if (place.path && strcmp(name, "problems") != 0 && value && !json_is_null(value)) {
            mutate_member(m, &place, value);
            walk(m, value, place.path, depth + 1);
        }
        free(place.path);
    }
    json_decref(names);
}

/* Of an array the first entry of each kind. */
static void walk(struct mutate *m, json_t *value, const char *path, size_t depth)
{
    static const char *const kinds[] = {"kind", "step", "reader"};
    json_t *seen = json_object(), *entry;
    size_t i;
    if (json_is_object(value) && depth < MUTATE_DEPTH)
        walk_object(m, value, path, depth);
    if (json_is_array(value) && !m->rc)
        mutate_entries(m, value, path);
    json_array_foreach(value, i, entry)
    {
        const char *kind = "";
        for (size_t k = 0; !*kind && k < sizeof kinds / sizeof *kinds; k++) {
            const char *text = json_string_value(json_object_get(entry, kinds[k]));
            kind = text ? text : "";
        }
        if (m->rc || json_object_get(seen, kind))
            continue;
        json_object_set_new(seen, kind, json_true());
        char *at = shk_strf("%s/%zu", path, i);
        if (at)
            walk(m, entry, at, depth);
        free(at);
    }
    json_decref(seen);
}

static int add_key(const struct shk_fact *fact, void *arg)
{
    return json_array_append_new(arg, json_string(fact->key));
}

/* Facts that no check asks for cannot change what checks say. */
static void mutate_all(struct mutate *m)
{
    json_t *keys = json_array(), *item;
    size_t i;
    m->rc = keys ? shk_facts_each(m->facts, "", add_key, keys) : -ENOMEM;
    json_array_foreach(keys, i, item)
    {
        struct shk_fact fact;
        struct place place = {.name = json_string_value(item), .path = NULL};
        if (!shk_judge_asks(&m->judge, place.name) || is_evidence(place.name))
            continue;
        if (m->rc || !shk_facts_get(m->facts, place.name, &fact))
            break;
        json_t *value = json_incref(fact.value);
        m->fact = place.name;
        place.path = strdup(place.name);
        if (place.path) {
            mutate_fact(m, &place, value);
            walk(m, value, place.path, 0);
        }
        free(place.path);
        json_decref(value);
    }
    json_decref(keys);
}

/* Which facts fail together: those of one group ("pci."), or, without one, one in so many, of those
 * that a number made of the key (`mixed`) puts in one order or, without it, as they stand. */
struct set {
    const char *group;
    size_t len, step, at;
    unsigned mixed;
};

static bool in_set(const struct set *set, const char *key, size_t i)
{
    unsigned hash = set->mixed * 2654435761U;
    for (const char *p = key; set->mixed && *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619U;
    if (set->len)
        return strncmp(key, set->group, set->len) == 0;
    return (set->mixed ? hash >> 16 : i) % set->step == set->at;
}

static void judge_set(struct mutate *m, const json_t *keys, const struct set *set)
{
    json_t *was = json_object(), *none = json_object(), *item, *value;
    struct place place = {.name = "",
                          .path =
                              shk_strf("facts %.*s %zu/%zu in order %u", (int)set->len,
                                       set->len ? set->group : "", set->at, set->step, set->mixed)};
    const char *key;
    size_t i;
    json_array_foreach((json_t *)keys, i, item)
    {
        key = json_string_value(item);
        if (!is_evidence(key) && in_set(set, key, i))
            json_object_set_new(was, key,
                                shk_facts_swap(m->facts, key,
                                               json_pack("{s:s, s:s}", "state", "failed", "reason",
                                                         "Permission denied")));
    }
    json_t *rows = shk_judge_rows(&m->judge, NULL, &m->rc, m->err);
    m->count.mutations++;
    json_object_foreach(m->judge.base, key, value)
    {
        /* what does not apply is of a profile that nothing may tell any more */
        if (verdict_of(value) == SHK_NA && rows && !json_object_get(rows, key))
            json_object_set(rows, key, value);
    }
    if (rows && place.path)
        compare(m, &place, "failed together", rows, none);
    json_object_foreach(was, key, value)
        json_decref(shk_facts_swap(m->facts, key, json_incref(value)));
    json_decref(rows);
    json_decref(was);
    json_decref(none);
    free(place.path);
}

/* What one probe gathers, or what lies in one place, fails together. */
static void mutate_sets(struct mutate *m)
{
    enum { ORDERS = 12 };
    static const size_t steps[] = {1, 2, 3, 7};
    json_t *keys = json_array(), *item;
    const char *last = "";
    size_t i;
    m->rc = keys ? shk_facts_each(m->facts, "", add_key, keys) : -ENOMEM;
    json_array_foreach(keys, i, item)
    {
        const char *key = json_string_value(item);
        struct set set = {.group = key, .len = strcspn(key, ".") + 1};
        if (!m->rc && strncmp(key, last, set.len) != 0)
            judge_set(m, keys, &set);
        last = key;
    }
    for (unsigned mixed = 0; mixed < ORDERS; mixed++)
        for (i = 0; i < sizeof steps / sizeof *steps; i++)
            for (size_t at = 0; !m->rc && at < steps[i]; at++)
                judge_set(m, keys, &(struct set){.step = steps[i], .at = at, .mixed = mixed});
    json_decref(keys);
}

int shk_mutate(const struct shk_config *config, const json_t *facts,
               void (*breach)(const struct shk_mutation_breach *breach, void *arg), void *arg,
               struct shk_mutation_count *count_p, struct shk_error *err)
{
    struct mutate m = {.breach = breach, .arg = arg, .err = err};
    json_t *doc =
        json_pack("{s:s, s:o}", "schema", SHK_FACTS_SCHEMA, "facts", json_deep_copy(facts));
    m.rc = doc ? shk_facts_from_json(&m.facts, doc, err) : -ENOMEM;
    if (!m.rc)
        m.rc = shk_judge_begin(&m.judge, config, m.facts, err);
    if (!m.rc)
        mutate_all(&m);
    if (!m.rc)
        mutate_sets(&m);
    *count_p = m.count;
    shk_judge_end(&m.judge);
    json_decref(doc);
    shk_facts_destroy(m.facts);
    return m.rc;
}
