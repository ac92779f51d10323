#include "core/run/tree.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static json_t *back(const json_t *value)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    json_t *read = NULL;
    shk_tree_write(&out, value);
    cr_assert_not(out.failed);
    cr_assert_eq(shk_tree_read(out.data, out.len, &read), 0);
    /* neither a part of it nor more than it is taken */
    for (size_t cut = 0; cut < out.len; cut++) {
        json_t *none = NULL;
        char *copy = malloc(cut + 1); /* so that a read behind it is seen */
        memcpy(copy, out.data, cut);
        cr_expect_eq(shk_tree_read(copy, cut, &none), -EPROTO, "%zu of %zu", cut, out.len);
        cr_expect_null(none);
        free(copy);
    }
    shk_strbuf_putc(&out, 'n');
    json_t *none = NULL;
    cr_expect_eq(shk_tree_read(out.data, out.len, &none), -EPROTO);
    shk_strbuf_free(&out);
    return read;
}

Test(tree, values_come_back)
{
    static const char *const texts[] = {
        "null",
        "true",
        "[]",
        "{}",
        "\"\"",
        "-9223372036854775808",
        "0.1",
        "1e300",
        "{\"a\": [1, 2.5, null, true, false, {\"b\": {}}], \"z\": \"\"}",
        "\"a\\u00e9\\ud83d\\ude00\"",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *value = json_loads(texts[i], JSON_DECODE_ANY, NULL), *read = back(value);
        char *a = json_dumps(value, JSON_ENCODE_ANY), *b = json_dumps(read, JSON_ENCODE_ANY);
        cr_expect(json_equal(value, read), "%s", texts[i]);
        cr_expect_str_eq(a, b); /* the order of members as well */
        free(a);
        free(b);
        json_decref(value);
        json_decref(read);
    }
}

Test(tree, refuses)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"", 0},
        {"x", 1},
        {"s\1\0\0\0\xff\0", 7},                    /* no UTF-8 */
        {"s\1\0\0\0\0\0", 7},                      /* a NUL in it */
        {"s\1\0\0\0aa", 7},                        /* no NUL behind it */
        {"s\377\377\377\377a\0", 7},               /* longer than all */
        {"a\377\377\377\377", 5},                  /* items that are not there */
        {"o\2\0\0\0\1\0\0\0a\0n\1\0\0\0a\0n", 19}, /* a key twice */
        {"r\0\0\0\0\0\0\370\177", 9},              /* not a number */
        {"i\0\0\0", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *read = NULL;
        cr_expect_eq(shk_tree_read(cases[i].bytes, cases[i].len, &read), -EPROTO, "case %zu", i);
        cr_expect_null(read);
    }
}

Test(tree, deep_values_are_refused)
{
    struct shk_strbuf bytes = SHK_STRBUF_INIT, out = SHK_STRBUF_INIT;
    json_t *value = json_array(), *read = NULL;
    for (int i = 0; i < SHK_TREE_DEPTH + 1; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, value);
        value = outer;
    }
    shk_tree_write(&out, value);
    cr_expect(out.failed);
    for (int i = 0; i < 1000000; i++)
        shk_strbuf_add(&bytes, "a\1\0\0\0", 5);
    cr_expect_eq(shk_tree_read(bytes.data, bytes.len, &read), -EPROTO);
    json_decref(value);
    shk_strbuf_free(&bytes);
    shk_strbuf_free(&out);
}
