#include "reports/diff/diff_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Shorter lists are shown whole. */
enum { DIFF_WORDS = 4 };

static void diff_value(struct shk_strbuf *out, const json_t *value, const char *unit);

static void diff_list(struct shk_strbuf *out, const json_t *array)
{
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item)
    {
        if (i)
            shk_strbuf_puts(out, ", ");
        diff_value(out, item, NULL);
    }
    if (!json_array_size(array))
        shk_strbuf_puts(out, "empty");
}

static void diff_members(struct shk_strbuf *out, const json_t *object)
{
    const char *key;
    json_t *item;
    bool first = true;
    json_object_foreach((json_t *)object, key, item)
    {
        if (json_is_null(item))
            continue;
        shk_strbuf_printf(out, "%s%s=", first ? "" : " ", key);
        if (json_is_array(item))
            shk_strbuf_puts(out, "[");
        diff_value(out, item, NULL);
        if (json_is_array(item))
            shk_strbuf_puts(out, "]");
        first = false;
    }
    if (first)
        shk_strbuf_puts(out, "empty");
}

static void diff_bytes(struct shk_strbuf *out, long long bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes / 1024;
    size_t u = 0;
    for (; n >= 1024 && u < 3; u++)
        n /= 1024;
    shk_strbuf_printf(out, "%lld B", bytes);
    if (bytes >= 1024)
        shk_strbuf_printf(out, " (%.4g %s)", n, units[u]);
}

static void diff_value(struct shk_strbuf *out, const json_t *value, const char *unit)
{
    if (json_is_string(value)) {
        shk_strbuf_puts(out, *json_string_value(value) ? json_string_value(value) : "\"\"");
        return;
    }
    if (json_is_array(value)) {
        diff_list(out, value);
        return;
    }
    if (json_is_object(value)) {
        diff_members(out, value);
        return;
    }
    if (json_is_integer(value) && unit && strcmp(unit, "B") == 0) {
        diff_bytes(out, json_integer_value(value));
        return;
    }
    if (json_is_real(value)) {
        shk_strbuf_printf(out, "%g", json_real_value(value));
    } else {
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        shk_strbuf_puts(out, text ? text : "");
        out->failed |= !text;
        free(text);
    }
    if (unit)
        shk_strbuf_printf(out, " %s", unit);
}

static void diff_side(struct shk_strbuf *out, const json_t *row, const json_t *side)
{
    const char *fact = json_string_value(json_object_get(row, "fact"));
    const char *path = json_string_value(json_object_get(row, "path"));
    const char *state = json_string_value(json_object_get(side, "state"));
    const char *reason = json_string_value(json_object_get(side, "reason"));
    const json_t *value = json_object_get(side, "value");
    bool variable = strncmp(fact, "env.", 4) == 0 && !strchr(fact + 4, '.');
    bool limit = strncmp(fact, "limits.", 7) == 0 && json_integer_value(value) == -1;
    if (!side)
        shk_strbuf_puts(out, variable                  ? "not set"
                             : strcmp(fact, path) == 0 ? "not looked for"
                                                       : "none");
    else if (limit)
        shk_strbuf_puts(out, "unlimited");
    else if (value)
        diff_value(out, value, json_string_value(json_object_get(side, "unit")));
    else
        shk_strbuf_printf(out, "%s%s%s", strcmp(state, "failed") == 0 ? "unknown" : state,
                          reason && *reason ? ": " : "", reason ? reason : "");
}

/* Set of the words of a text or array of texts; NULL when it is none. */
static json_t *diff_words(const json_t *value, char separator)
{
    json_t *words = json_object(), *item;
    size_t i;
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item) ||
            json_object_set_new(words, json_string_value(item), json_null())) {
            json_decref(words);
            return NULL;
        }
    }
    for (const char *s = json_string_value(value); s && *s;) {
        size_t n = 0;
        while (s[n] && s[n] != separator)
            n++;
        char *word = strndup(s, n);
        if (word && n)
            json_object_set_new(words, word, json_null());
        free(word);
        s += n + (s[n] == separator);
    }
    return words;
}

/* What is in a and not in b; "…" stands for what they share. */
static size_t diff_only(struct shk_strbuf *out, const json_t *a, json_t *b, const char *between)
{
    const char *word;
    json_t *none;
    size_t n = 0;
    shk_strbuf_puts(out, "\xE2\x80\xA6");
    json_object_foreach((json_t *)a, word, none)
    {
        if (json_object_get(b, word))
            continue;
        shk_strbuf_printf(out, "%s%s", n++ ? between : " ", word);
    }
    return n;
}

static bool diff_as_words(const json_t *x, const json_t *y, struct shk_strbuf *a,
                          struct shk_strbuf *b)
{
    static const char *const separators[] = {" ", ":", ","};
    bool arrays = json_is_array(x) && json_is_array(y);
    if (!arrays && !(json_is_string(x) && json_is_string(y)))
        return false;
    for (size_t i = 0; i < (arrays ? 1 : 3); i++) {
        json_t *left = diff_words(x, *separators[i]), *right = diff_words(y, *separators[i]);
        size_t nl = json_object_size(left), nr = json_object_size(right), done = 0;
        if (left && right && (nl >= DIFF_WORDS || nr >= DIFF_WORDS)) {
            const char *between = arrays ? ", " : separators[i];
            size_t only = diff_only(a, left, right, between);
            done = only + diff_only(b, right, left, between);
            if (only == nl || !done) { /* nothing in common, or another order */
                shk_strbuf_free(a);
                shk_strbuf_free(b);
                done = 0;
            }
        }
        json_decref(left);
        json_decref(right);
        if (done)
            return true;
    }
    return false;
}

void shk_diff_texts(const json_t *row, struct shk_strbuf *a, struct shk_strbuf *b)
{
    json_t *left = json_object_get(row, "a"), *right = json_object_get(row, "b");
    if (diff_as_words(json_object_get(left, "value"), json_object_get(right, "value"), a, b))
        return;
    diff_side(a, row, left);
    diff_side(b, row, right);
}

/* Each number as '*'. */
static void diff_shape(struct shk_strbuf *out, const char *path)
{
    for (const char *p = path; *p; p++)
        if (!isdigit((unsigned char)*p))
            shk_strbuf_putc(out, *p);
        else if (p == path || !isdigit((unsigned char)p[-1]))
            shk_strbuf_putc(out, '*');
}

/* New reference: the shape and the sides of the row. */
static json_t *diff_kind(const json_t *row)
{
    struct shk_strbuf shape = SHK_STRBUF_INIT;
    diff_shape(&shape, json_string_value(json_object_get(row, "path")));
    json_t *kind = json_pack("{s:s,s:O*,s:O*,s:O*}", "path", shk_strbuf_text(&shape), "a",
                             json_object_get(row, "a"), "b", json_object_get(row, "b"), "nodes",
                             json_object_get(row, "nodes"));
    shk_strbuf_free(&shape);
    return kind;
}

json_t *shk_diff_fold(const json_t *rows)
{
    json_t *folded = json_array(), *seen = json_object(), *row;
    bool failed = !folded || !seen;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_t *kind = diff_kind(row), *copy = json_copy(row);
        char *key = kind ? json_dumps(kind, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
        json_t *first = key ? json_object_get(seen, key) : NULL;
        failed |= !key || !copy;
        if (first) {
            json_int_t n = json_integer_value(json_object_get(first, "alike"));
            failed |= json_object_set_new(first, "alike", json_integer(n + 1)) != 0 ||
                      json_object_set(first, "path", json_object_get(kind, "path")) != 0;
        } else if (!failed) {
            failed |= json_object_set_new(copy, "alike", json_integer(1)) != 0 ||
                      json_array_append(folded, copy) != 0 || json_object_set(seen, key, copy) != 0;
        }
        free(key);
        json_decref(copy);
        json_decref(kind);
    }
    json_decref(seen);
    if (failed) {
        json_decref(folded);
        return NULL;
    }
    return folded;
}
