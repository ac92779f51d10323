#include "hostile.h"
#include "reports/diff/diff.h"
#include "reports/diff/diff_text.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(diff, .timeout = 300);

static const struct shk_diff_rule rules[] = {{.path = "host.name", .differs = SHK_DIFF_NODE}};

static char *diff_render(const char *format, const struct shk_facts *a, const struct shk_facts *b,
                         bool anonymize)
{
    struct shk_diff_input input = {.version = "0.1.0",
                                   .command = "shakedown diff a.json b.json",
                                   .name_a = "a.json",
                                   .name_b = "b.json",
                                   .a = &a,
                                   .b = &b,
                                   .nodes_a = 1,
                                   .nodes_b = 1,
                                   .rules = rules,
                                   .rules_count = 1};
    struct shk_report_options options = {.unicode = true, .anonymize = anonymize};
    char *text = NULL;
    size_t len = 0, n;
    bool found = false;
    FILE *out = open_memstream(&text, &len);
    const struct shk_form *all = shk_diff_forms(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, format) == 0)
            cr_assert_eq(shk_diff_report(&input, &all[i], &options, out, &found), 0);
    fclose(out);
    cr_expect_eq(found, a != b);
    return text;
}

static struct shk_facts *diff_facts(const char *text)
{
    struct shk_facts *f = shk_facts_create();
    shk_facts_text(f, "host.name", "nid001", "uname");
    shk_facts_present(f, "env.FI_PROVIDER", shk_json_text(text, strlen(text)), NULL, "environment");
    return f;
}

Test(diff, hostile)
{
    static const char *const names[] = {"term", "md", "json"};
    struct shk_facts *plain = diff_facts("a value that nothing else has");
    for (size_t i = 0; i < hostile_count * 3; i++) {
        struct shk_facts *f = diff_facts(hostile_texts[i / 3].text);
        char *text = diff_render(names[i % 3], plain, f, false);
        hostile_expect_clean(hostile_texts[i / 3].name, text);
        const char *tag = i % 3 == 1 ? strstr(text, "<script") : NULL;
        cr_expect(!tag || tag[-1] == '`', "markup outside of code: %s", text);
        free(text);
        shk_facts_destroy(f);
    }
    shk_facts_destroy(plain);
}

Test(diff, formats_say_the_same)
{
    struct shk_facts *a = diff_facts("cxi"), *b = diff_facts("tcp");
    char *text = diff_render("term", a, b, false);
    cr_expect_not_null(strstr(text, "a.json (nid001) and b.json (nid001)\n1 difference\n"), "%s",
                       text);
    cr_expect_not_null(strstr(text, "  env.FI_PROVIDER  cxi  tcp\n"), "%s", text);
    free(text);
    text = diff_render("md", a, b, false);
    cr_expect_eq(strncmp(text, "**1 difference**\n", 17), 0, "%s", text);
    cr_expect_not_null(strstr(text, "| `env.FI_PROVIDER` | `cxi` | `tcp` |\n"), "%s", text);
    free(text);
    text = diff_render("json", a, b, true);
    json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_expect_str_eq(json_string_value(json_object_get(doc, "schema")), "shakedown.diff/1");
    cr_expect_eq(json_array_size(json_object_get(doc, "differences")), 1);
    cr_expect_null(strstr(text, "nid001"), "anonymous");
    json_decref(doc);
    free(text);
    text = diff_render("term", a, a, false);
    cr_expect_str_eq(text, "a.json (nid001) and b.json (nid001)\n0 differences\n");
    free(text);
    shk_facts_destroy(a);
    shk_facts_destroy(b);
}

Test(diff, markdown_fits_a_comment)
{
    struct shk_facts *a = diff_facts("x"), *b = diff_facts("x");
    char key[32], value[300];
    for (int i = 0; i < 2000; i++) {
        snprintf(key, sizeof key, "env.A%c%c%c", 'A' + i % 26, 'A' + i / 26 % 26, 'A' + i / 676);
        memset(value, 'a' + i % 26, sizeof value - 1);
        value[sizeof value - 1] = '\0';
        shk_facts_text(a, key, value, "");
        shk_facts_int(b, key, i, NULL, "");
    }
    char *text = diff_render("md", a, b, false);
    cr_expect_lt(strlen(text), 65001);
    cr_expect_gt(strlen(text), 20000);
    cr_expect_eq(strncmp(text, "**2000 differences**", 20), 0);
    cr_expect_not_null(strstr(text, " more rows are omitted"));
    free(text);
    shk_facts_destroy(a);
    shk_facts_destroy(b);
}

static const struct {
    const char *row, *a, *b;
} diff_cases[] = {
    {"{\"path\":\"env.X\",\"fact\":\"env.X\",\"a\":{\"state\":\"present\",\"value\":\"\"}}", "\"\"",
     "not set"},
    {"{\"path\":\"a.b\",\"fact\":\"a.b\",\"a\":{\"state\":\"failed\",\"reason\":\"no\"}}",
     "unknown: no", "not looked for"},
    {"{\"path\":\"a.b.c\",\"fact\":\"a.b\",\"a\":{\"state\":\"present\",\"value\":true}}", "true",
     "none"},
    {"{\"path\":\"limits.memlock.soft\",\"fact\":\"limits.memlock\",\"a\":{\"state\":\"present\","
     "\"value\":-1},\"b\":{\"state\":\"present\",\"value\":8388608,\"unit\":\"B\"}}",
     "unlimited", "8388608 B (8 MiB)"},
    {"{\"path\":\"k.c\",\"fact\":\"k.c\",\"a\":{\"state\":\"present\",\"value\":\"ro quiet a=1 "
     "iommu=pt\"},\"b\":{\"state\":\"present\",\"value\":\"ro quiet a=1\"}}",
     "\xE2\x80\xA6 iommu=pt", "\xE2\x80\xA6"},
    {"{\"path\":\"k.c\",\"fact\":\"k.c\",\"a\":{\"state\":\"present\",\"value\":\"/a:/b:/c:/d\"},"
     "\"b\":{\"state\":\"present\",\"value\":\"/d:/a:/b:/c\"}}",
     "/a:/b:/c:/d", "/d:/a:/b:/c"},
    {"{\"path\":\"k.c\",\"fact\":\"k.c\",\"a\":{\"state\":\"present\",\"value\":[\"a\",\"b\",\"c\","
     "\"d\"]},\"b\":{\"state\":\"present\",\"value\":[\"b\",\"c\",\"d\",\"e\"]}}",
     "\xE2\x80\xA6 a", "\xE2\x80\xA6 e"},
    {"{\"path\":\"n.i[x]\",\"fact\":\"n.i\",\"a\":{\"state\":\"present\",\"value\":{\"name\":\"x\","
     "\"mtu\":9000,\"pci\":null,\"l\":[1,2]}}}",
     "name=x mtu=9000 l=[1, 2]", "none"},
};

Test(diff, texts)
{
    for (size_t i = 0; i < sizeof diff_cases / sizeof *diff_cases; i++) {
        struct shk_strbuf a = SHK_STRBUF_INIT, b = SHK_STRBUF_INIT;
        json_t *row = json_loads(diff_cases[i].row, 0, NULL);
        cr_assert_not_null(row, "%zu", i);
        shk_diff_texts(row, &a, &b);
        cr_expect_str_eq(shk_strbuf_text(&a), diff_cases[i].a, "%zu: %s", i, shk_strbuf_text(&a));
        cr_expect_str_eq(shk_strbuf_text(&b), diff_cases[i].b, "%zu: %s", i, shk_strbuf_text(&b));
        shk_strbuf_free(&a);
        shk_strbuf_free(&b);
        json_decref(row);
    }
}

Test(diff, alike_rows_are_one)
{
    json_t *rows = json_loads("[{\"path\":\"dev.nvidia0\",\"a\":1,\"nodes\":[]},"
                              "{\"path\":\"dev.nvidia1\",\"a\":1,\"nodes\":[]},"
                              "{\"path\":\"dev.nvidia2\",\"a\":2,\"nodes\":[]},"
                              "{\"path\":\"dev.nvidia10\",\"a\":1,\"nodes\":[]}]",
                              0, NULL);
    json_t *folded = shk_diff_fold(rows);
    cr_assert_eq(json_array_size(folded), 2);
    json_t *first = json_array_get(folded, 0), *second = json_array_get(folded, 1);
    cr_expect_str_eq(json_string_value(json_object_get(first, "path")), "dev.nvidia*");
    cr_expect_eq(json_integer_value(json_object_get(first, "alike")), 3);
    cr_expect_str_eq(json_string_value(json_object_get(second, "path")), "dev.nvidia2");
    json_decref(folded);
    json_decref(rows);
}
