#include "hostile.h"
#include "reports/format/json_parts.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

TestSuite(json, .timeout = 300);

static json_t *json_of(const struct sample *s)
{
    char *text = sample_render(s, "json");
    json_error_t where;
    json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    cr_assert_not_null(doc, "not JSON: line %d: %s", where.line, where.text);
    free(text);
    return doc;
}

static const char *json_at(json_t *doc, const char *a, const char *b)
{
    json_t *inner = json_object_get(doc, a);
    return json_string_value(b ? json_object_get(inner, b) : inner);
}

Test(json, summary)
{
    static const struct {
        const char *key;
        int value;
    } counts[] = {{"pass", 5},    {"warn", 1}, {"fail", 1},
                  {"unknown", 3}, {"na", 1},   {"required_unknown", 1}},
      coverage[] = {{"tested", 3}, {"log", 0}, {"effect", 1}, {"declared", 3}, {"none", 3}};
    struct sample s;
    sample_failing(&s);
    json_t *doc = json_of(&s), *summary = json_object_get(doc, "summary");
    cr_expect_str_eq(json_at(doc, "schema", NULL), SHK_REPORT_SCHEMA);
    cr_expect_str_eq(json_at(doc, "version", NULL), "0.1.0");
    cr_expect_str_eq(json_at(doc, "command", NULL), "shakedown --profile auto");
    cr_expect_str_eq(json_at(doc, "profile", "name"), "lumi-g");
    cr_expect_str_eq(json_at(doc, "summary", "verdict"), "fail");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cr_expect_eq(json_integer_value(json_object_get(summary, counts[i].key)), counts[i].value,
                     "%s", counts[i].key);
    for (size_t i = 0; i < sizeof coverage / sizeof *coverage; i++)
        cr_expect_eq(json_integer_value(
                         json_object_get(json_object_get(summary, "coverage"), coverage[i].key)),
                     coverage[i].value, "%s", coverage[i].key);
    json_decref(doc);
    sample_free(&s);
}

Test(json, rows)
{
    struct sample s;
    sample_failing(&s);
    json_t *doc = json_of(&s);
    json_t *row = json_array_get(json_object_get(doc, "findings"), 0);
    json_t *cause = json_array_get(json_object_get(doc, "diagnoses"), 0);
    cr_expect_eq(json_array_size(json_object_get(doc, "findings")), 11);
    cr_expect_str_eq(json_at(row, "setting", NULL), "NCCL_SOCKET_IFNAME");
    cr_expect_str_eq(json_at(row, "verdict", NULL), "fail");
    cr_expect_str_eq(json_at(row, "evidence", NULL), "tested");
    cr_expect_str_eq(json_at(row, "fix", NULL), "export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3");
    cr_expect(json_is_true(json_object_get(row, "required")));
    cr_expect_str_eq(json_at(cause, "key", NULL), "socket-ifname-missing");
    cr_expect_eq(json_array_size(json_object_get(cause, "evidence")), 1);
    cr_expect_str_eq(json_at(json_object_get(doc, "collectives"), "fabric", "status"), "ok");
    cr_expect_eq(json_array_size(json_object_get(
                     json_object_get(json_object_get(doc, "collectives"), "fabric"), "sizes")),
                 6);
    json_decref(doc);
    sample_free(&s);
}

Test(json, a_node_is_a_facts_document)
{
    struct sample s;
    sample_cluster(&s);
    json_t *doc = json_of(&s), *nodes = json_object_get(doc, "nodes");
    cr_assert_eq(json_array_size(nodes), 3);
    for (size_t i = 0; i < 3; i++) {
        struct shk_facts *back = NULL;
        struct shk_error err = {""};
        cr_assert_eq(shk_facts_from_json(&back, json_array_get(nodes, i), &err), 0, "%s", err.text);
        json_t *was = shk_facts_to_json(s.facts[i]), *is = shk_facts_to_json(back);
        cr_expect(json_equal(was, is));
        cr_expect_str_eq(json_at(json_array_get(nodes, i), "name", NULL),
                         shk_facts_get_text(s.facts[i], "host.name"));
        json_decref(was);
        json_decref(is);
        shk_facts_destroy(back);
    }
    json_decref(doc);
    sample_free(&s);
}

/* A transport that works on one node and fails on another has failed. */
Test(json, collectives_show_the_broken_run)
{
    struct sample s;
    sample_cluster(&s);
    json_t *doc = json_of(&s), *all = json_object_get(doc, "collectives");
    cr_expect_str_eq(json_at(all, "fabric", "status"), "failed");
    cr_expect_str_eq(json_at(all, "fabric", "node"), "nid001235");
    json_decref(doc);
    sample_free(&s);
}

Test(json, offline_has_no_elapsed_time)
{
    struct sample s;
    sample_empty(&s);
    json_t *doc = json_of(&s);
    cr_expect_null(json_object_get(doc, "elapsed_s"));
    cr_expect_str_eq(json_at(doc, "summary", "verdict"), "unknown");
    json_decref(doc);
    sample_free(&s);
}

Test(json, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        json_t *doc = json_of(&s);
        cr_expect_eq(json_array_size(json_object_get(doc, "findings")), SHK_VERDICT_COUNT + 1, "%s",
                     hostile_texts[i].name);
        char *text = sample_render(&s, "json");
        hostile_expect_clean(hostile_texts[i].name, text);
        free(text);
        json_decref(doc);
        sample_free(&s);
    }
}

/* Shown as escapes, read back as the characters that they are. */
Test(json, invisible_characters_survive)
{
    static const char raw[] = "a\xE2\x80\xAE"
                              "b\xC2\x9B"
                              "c\xF3\xA0\x80\x81"
                              "d\x7F"
                              "e\xE4\xB8\xAD";
    struct sample s;
    sample_hostile(&s, raw);
    char *text = sample_render(&s, "json");
    cr_expect_not_null(strstr(text, "\"profile\": {\n    \"name\": "
                                    "\"a\\u202eb\\u009bc\\udb40\\udc01d\\u007fe\xE4\xB8\xAD\""),
                       "%s", text);
    free(text);
    json_t *doc = json_of(&s);
    cr_expect_str_eq(json_at(doc, "profile", "name"), raw);
    json_decref(doc);
    sample_free(&s);
}

Test(json, a_long_text_is_kept_whole)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    json_t *doc = json_of(&s);
    cr_expect_eq(
        strlen(json_at(json_array_get(json_object_get(doc, "findings"), 0), "observed", NULL)),
        HOSTILE_LONG);
    json_decref(doc);
    sample_free(&s);
    free(big);
}
