#include "core/run/tree.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* A byte that says what follows: a text or key (length, bytes, NUL), a list or object (how many),
 * a number (8 bytes). Lengths have 4 bytes. */
enum { TREE_TEXT = 's', TREE_LIST = 'a', TREE_OBJECT = 'o', TREE_INT = 'i', TREE_REAL = 'r' };
enum { TREE_TRUE = 't', TREE_FALSE = 'f', TREE_NULL = 'n' };

static void tree_size(struct shk_strbuf *out, size_t size)
{
    uint32_t n = (uint32_t)size;
    out->failed |= size > UINT32_MAX;
    shk_strbuf_add(out, (const char *)&n, sizeof n);
}

static void tree_text(struct shk_strbuf *out, const char *text, size_t len)
{
    tree_size(out, len);
    shk_strbuf_add(out, text, len);
    shk_strbuf_add(out, "", 1);
}

static void tree_put(struct shk_strbuf *out, const json_t *value, unsigned depth);

static void tree_members(struct shk_strbuf *out, const json_t *value, unsigned depth)
{
    const char *key;
    json_t *item;
    size_t i;
    tree_size(out, json_is_object(value) ? json_object_size(value) : json_array_size(value));
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            tree_text(out, key, strlen(key));
            tree_put(out, item, depth);
        }
        return;
    }
    json_array_foreach(value, i, item)
    {
        tree_put(out, item, depth);
    }
}

static void tree_put(struct shk_strbuf *out, const json_t *value, unsigned depth)
{
    json_int_t number = json_integer_value(value);
    double real = json_real_value(value);
    out->failed |= depth > SHK_TREE_DEPTH || !value;
    if (out->failed)
        return;
    switch (json_typeof(value)) {
    case JSON_OBJECT: shk_strbuf_putc(out, TREE_OBJECT); break;
    case JSON_ARRAY: shk_strbuf_putc(out, TREE_LIST); break;
    case JSON_STRING: shk_strbuf_putc(out, TREE_TEXT); break;
    case JSON_INTEGER: shk_strbuf_putc(out, TREE_INT); break;
    case JSON_REAL: shk_strbuf_putc(out, TREE_REAL); break;
    case JSON_TRUE: shk_strbuf_putc(out, TREE_TRUE); break;
    case JSON_FALSE: shk_strbuf_putc(out, TREE_FALSE); break;
    case JSON_NULL: shk_strbuf_putc(out, TREE_NULL); break;
    }
    if (json_is_string(value))
        tree_text(out, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        shk_strbuf_add(out, (const char *)&number, sizeof number);
    else if (json_is_real(value))
        shk_strbuf_add(out, (const char *)&real, sizeof real);
    else if (json_is_object(value) || json_is_array(value))
        tree_members(out, value, depth + 1);
}

void shk_tree_write(struct shk_strbuf *out, const json_t *value)
{
    tree_put(out, value, 0);
}

struct tree_in {
    const char *at, *end;
    bool nomem;
};

static bool tree_take(struct tree_in *in, void *to, size_t size)
{
    if ((size_t)(in->end - in->at) < size)
        return false;
    memcpy(to, in->at, size);
    in->at += size;
    return true;
}

/* The text with its NUL, borrowed; NULL: there is none of that form. */
static const char *tree_take_text(struct tree_in *in, size_t *len_p)
{
    uint32_t len;
    if (!tree_take(in, &len, sizeof len) || (size_t)(in->end - in->at) <= len || in->at[len] ||
        memchr(in->at, '\0', len))
        return NULL;
    const char *text = in->at;
    in->at += (size_t)len + 1;
    *len_p = len;
    return text;
}

static json_t *tree_get(struct tree_in *in, unsigned depth);

static bool tree_get_member(struct tree_in *in, json_t *value, unsigned depth)
{
    size_t len = 0;
    const char *key = json_is_object(value) ? tree_take_text(in, &len) : NULL;
    if (json_is_object(value) && (!key || json_object_get(value, key)))
        return false;
    json_t *item = tree_get(in, depth);
    if (!item)
        return false;
    return (key ? json_object_set_new(value, key, item) : json_array_append_new(value, item)) == 0;
}

static json_t *tree_get_members(struct tree_in *in, bool object, unsigned depth)
{
    uint32_t count;
    if (depth > SHK_TREE_DEPTH || !tree_take(in, &count, sizeof count))
        return NULL;
    json_t *value = object ? json_object() : json_array();
    in->nomem |= !value;
    for (uint32_t i = 0; value && i < count; i++)
        if (!tree_get_member(in, value, depth)) {
            json_decref(value);
            return NULL;
        }
    return value;
}

static json_t *tree_get(struct tree_in *in, unsigned depth)
{
    char tag;
    json_int_t number;
    double real;
    size_t len;
    if (!tree_take(in, &tag, 1))
        return NULL;
    switch (tag) {
    case TREE_OBJECT: return tree_get_members(in, true, depth + 1);
    case TREE_LIST: return tree_get_members(in, false, depth + 1);
    case TREE_INT: return tree_take(in, &number, sizeof number) ? json_integer(number) : NULL;
    case TREE_REAL: return tree_take(in, &real, sizeof real) ? json_real(real) : NULL;
    case TREE_TRUE: return json_true();
    case TREE_FALSE: return json_false();
    case TREE_NULL: return json_null();
    case TREE_TEXT: break;
    default: return NULL;
    }
    const char *text = tree_take_text(in, &len);
    return text ? json_stringn(text, len) : NULL;
}

int shk_tree_read(const void *data, size_t len, json_t **value_p)
{
    struct tree_in in = {.at = data, .end = (const char *)data + len};
    json_t *value = tree_get(&in, 0);
    if (value && in.at != in.end) {
        json_decref(value);
        value = NULL;
    }
    *value_p = value;
    return value ? 0 : in.nomem ? -ENOMEM : -EPROTO;
}
