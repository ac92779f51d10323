#include "core/facts/factparts.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_MARK 0x1a

/* A deeper value is no fact (core/facts/factdoc.c). */
enum { JOIN_DEPTH = 40 };

struct shk_factsection {
    struct shk_facts *plain; /* facts without marks */
    json_t *marked;          /* key -> entry, in the order of the text */
};

static bool join_has_mark(json_t *value, int depth)
{
    const char *key, *text = json_string_value(value);
    size_t i;
    json_t *item;
    if (text || depth > JOIN_DEPTH)
        return text && text[0] == JOIN_MARK;
    json_object_foreach(value, key, item)
    {
        if (join_has_mark(item, depth + 1))
            return true;
    }
    json_array_foreach(value, i, item)
    {
        if (join_has_mark(item, depth + 1))
            return true;
    }
    return false;
}

/* The store of {key: entry}; steals table. */
static int join_facts(struct shk_facts **facts_p, json_t *table, struct shk_error *err)
{
    json_t *doc = json_pack("{s:s, s:o}", "schema", SHK_FACTS_SCHEMA, "facts", table);
    struct shk_error why = {""};
    int rc = doc ? shk_facts_from_json(facts_p, doc, &why) : shk_error_sys(&why, ENOMEM, "facts");
    json_decref(doc);
    if (rc)
        shk_error_set(err, EPROTO, "%s", why.text);
    return rc == -ENOMEM ? rc : rc ? -EPROTO : 0;
}

int shk_factsection_parse(struct shk_factsection **section_p, const char *text, size_t len,
                          struct shk_error *err)
{
    json_error_t where;
    json_t *table = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where);
    struct shk_factsection *section = calloc(1, sizeof *section);
    json_t *plain = json_object(), *entry;
    const char *key;
    int rc = table ? 0 : shk_error_set(err, EPROTO, "not JSON: %s", where.text);
    if (!rc && !json_is_object(table))
        rc = shk_error_set(err, EPROTO, "not an object of facts");
    if (!rc && (!section || !plain || !(section->marked = json_object())))
        rc = shk_error_sys(err, ENOMEM, "facts");
    json_object_foreach(table, key, entry)
    {
        if (rc)
            break;
        if (json_object_set(join_has_mark(entry, 0) ? section->marked : plain, key, entry))
            rc = shk_error_sys(err, ENOMEM, "facts");
    }
    if (!rc)
        rc = join_facts(&section->plain, json_incref(plain), err);
    json_decref(plain);
    json_decref(table);
    if (rc) {
        shk_factsection_free(section);
        return rc;
    }
    *section_p = section;
    return 0;
}

void shk_factsection_free(struct shk_factsection *section)
{
    if (!section)
        return;
    shk_facts_destroy(section->plain);
    json_decref(section->marked);
    free(section);
}

/* Puts a node's own back in the place of the marks. */
struct join {
    json_t *own;
    size_t next;
    struct shk_error *err;
};

static json_t *join_fill(struct join *j, json_t *value, int depth);

static json_t *join_own(struct join *j)
{
    json_t *item = json_array_get(j->own, j->next);
    if (!item)
        shk_error_set(j->err, EPROTO, "its own part is shorter than what was taken out");
    j->next++;
    return json_incref(item);
}

/* Behind its first mark, a text with parts taken out. */
static json_t *join_text(struct join *j, const char *text)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool ok = true;
    for (const char *p = text; ok && *p; p++) {
        size_t plain = strcspn(p, "\x1a");
        shk_strbuf_add(&sb, p, plain);
        p += plain;
        if (!*p)
            break;
        json_t *part = join_own(j);
        ok = json_is_string(part);
        if (ok)
            shk_strbuf_puts(&sb, json_string_value(part));
        else if (part)
            shk_error_set(j->err, EPROTO, "a part of a text is not a text");
        json_decref(part);
    }
    json_t *out = ok && !sb.failed ? json_string(shk_strbuf_text(&sb)) : NULL;
    shk_strbuf_free(&sb);
    return out;
}

static json_t *join_object(struct join *j, json_t *value, int depth)
{
    json_t *out = json_object(), *item;
    const char *key;
    json_object_foreach(value, key, item)
    {
        if (out && json_object_set_new(out, key, join_fill(j, item, depth + 1))) {
            json_decref(out);
            out = NULL;
        }
    }
    return out;
}

static json_t *join_array(struct join *j, json_t *value, int depth)
{
    json_t *out = json_array(), *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        if (out && json_array_append_new(out, join_fill(j, item, depth + 1))) {
            json_decref(out);
            out = NULL;
        }
    }
    return out;
}

/* A new reference; NULL with text in err, or out of memory. */
static json_t *join_fill(struct join *j, json_t *value, int depth)
{
    const char *text = json_string_value(value);
    if (depth > JOIN_DEPTH) {
        shk_error_set(j->err, EPROTO, "nested deeper than %d", JOIN_DEPTH);
        return NULL;
    }
    if (text && text[0] == JOIN_MARK)
        return text[1] ? join_text(j, text + 1) : join_own(j);
    if (json_is_object(value))
        return join_object(j, value, depth);
    if (json_is_array(value))
        return join_array(j, value, depth);
    return json_incref(value);
}

static int join_sections(struct join *j, struct shk_facts *facts,
                         struct shk_factsection *const *sections, size_t count, json_t *table)
{
    const char *key;
    json_t *entry;
    for (size_t i = 0; i < count; i++) {
        if (shk_facts_merge(facts, sections[i]->plain))
            return shk_error_sys(j->err, ENOMEM, "facts");
        json_object_foreach(sections[i]->marked, key, entry)
        {
            json_t *filled = join_fill(j, entry, 0);
            if (!filled && !j->err->text[0])
                shk_error_sys(j->err, ENOMEM, "facts");
            if (json_object_set_new(table, key, filled))
                return -EPROTO;
        }
    }
    if (j->next != json_array_size(j->own))
        return shk_error_set(j->err, EPROTO, "its own part is longer than what was taken out");
    return 0;
}

int shk_factparts_join(struct shk_facts **facts_p, struct shk_factsection *const *sections,
                       size_t count, const char *own, size_t own_len, struct shk_error *err)
{
    struct shk_error why = {""};
    struct shk_facts *facts = shk_facts_create(), *filled = NULL;
    json_t *table = json_object();
    struct join j = {.own = json_loadb(own, own_len, JSON_ALLOW_NUL, NULL), .err = &why};
    int rc = facts && table ? 0 : shk_error_sys(&why, ENOMEM, "facts");
    if (!rc && !json_is_array(j.own))
        rc = shk_error_set(&why, EPROTO, "its own part is not a JSON array");
    rc = rc ? rc : join_sections(&j, facts, sections, count, table);
    rc = rc ? rc : join_facts(&filled, json_incref(table), &why);
    if (!rc && shk_facts_merge(facts, filled))
        rc = shk_error_sys(&why, ENOMEM, "facts");
    shk_facts_destroy(filled);
    json_decref(table);
    json_decref(j.own);
    if (rc) {
        shk_facts_destroy(facts);
        return shk_error_set(err, -rc, "%s", why.text);
    }
    *facts_p = facts;
    return 0;
}

static bool alike_within(double a, double b, int percent)
{
    double most = a > b ? a : b, least = a > b ? b : a;
    double size = most > -least ? most : -least;
    return (most - least) * 100 <= percent * size;
}

/* Measurements may be inside of objects: {"soft", "hard"}. */
static bool alike_value(json_t *a, json_t *b, int percent)
{
    const char *key;
    json_t *item;
    if (json_is_number(a) && json_is_number(b))
        return alike_within(json_number_value(a), json_number_value(b), percent);
    if (!json_is_object(a) || !json_is_object(b))
        return json_equal(a, b);
    json_object_foreach(a, key, item)
    {
        json_t *other = json_object_get(b, key);
        bool numbers = json_is_number(item) && json_is_number(other);
        if (numbers ? !alike_value(item, other, percent) : !json_equal(item, other))
            return false;
    }
    return json_object_size(a) == json_object_size(b);
}

bool shk_factparts_alike(const struct shk_factparts *first, const char *own, size_t own_len)
{
    json_t *a = json_loadb(first->own, first->own_len, JSON_ALLOW_NUL, NULL);
    json_t *b = json_loadb(own, own_len, JSON_ALLOW_NUL, NULL);
    bool same = json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b);
    for (size_t i = 0; same && i < first->noise_count; i++)
        if (first->noise[i])
            same = alike_value(json_array_get(a, i), json_array_get(b, i), first->noise[i]);
    json_decref(a);
    json_decref(b);
    return same;
}
