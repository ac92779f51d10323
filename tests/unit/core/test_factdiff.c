#include "core/facts/factdiff.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(factdiff, .timeout = 100);

static const struct shk_diff_rule rules[] = {
    {.path = "clock.*", .differs = SHK_DIFF_TIME},
    {.path = "host.name", .differs = SHK_DIFF_NODE},
    {.path = "net.ifaces.addrs", .differs = SHK_DIFF_NODE},
    {.path = "*.busbw", .differs = SHK_DIFF_NOISE, .percent = 20},
    {.path = "clock.synchronised", .differs = SHK_DIFF_COMPARE},
};
enum { RULES = sizeof rules / sizeof *rules };

static struct shk_facts *make(const char *json)
{
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    json_error_t where;
    json_t *doc =
        json_pack("{s:s,s:o}", "schema", SHK_FACTS_SCHEMA, "facts", json_loads(json, 0, &where));
    cr_assert_not_null(doc, "%s: %s", json, where.text);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    return facts;
}

static struct shk_diff *compare(const char *a, const char *b, bool all)
{
    struct shk_facts *x = make(a), *y = make(b);
    struct shk_diff *diff = shk_diff_create(rules, RULES, all);
    cr_assert_eq(shk_diff_sets(diff, (const struct shk_facts *const *)&x, 1,
                               (const struct shk_facts *const *)&y, 1),
                 0);
    shk_facts_destroy(x);
    shk_facts_destroy(y);
    return diff;
}

/* The paths of all rows, with spaces between. */
static void expect_paths(const char *name, const struct shk_diff *diff, const char *want)
{
    char got[1000] = "";
    size_t i;
    json_t *row;
    json_array_foreach(shk_diff_rows(diff), i, row)
    {
        strncat(got, i ? " " : "", sizeof got - strlen(got) - 1);
        strncat(got, json_string_value(json_object_get(row, "path")), sizeof got - strlen(got) - 1);
    }
    cr_expect_str_eq(got, want, "%s: %s", name, got);
}

static const struct {
    const char *name, *a, *b, *paths;
} cases[] = {
    {"the same", "{\"a.b\": [1, {\"x\": null}]}", "{\"a.b\": [1, {\"x\": null}]}", ""},
    {"changed", "{\"a.b\": 1, \"a.c\": 2}", "{\"a.b\": 1, \"a.c\": 3}", "a.c"},
    {"only one side", "{\"a.b\": 1}", "{\"a.c\": 1}", "a.b a.c"},
    {"absent is not zero", "{\"a.b\": 0}", "{\"a.b\": {\"state\": \"absent\"}}", "a.b"},
    {"absent twice, other words", "{\"a.b\": {\"state\": \"absent\", \"reason\": \"x\"}}",
     "{\"a.b\": {\"state\": \"absent\", \"reason\": \"y\"}}", ""},
    {"failed for another reason", "{\"a.b\": {\"state\": \"failed\", \"reason\": \"x\"}}",
     "{\"a.b\": {\"state\": \"failed\", \"reason\": \"y\"}}", "a.b"},
    {"failed and absent", "{\"a.b\": {\"state\": \"failed\", \"reason\": \"x\"}}",
     "{\"a.b\": {\"state\": \"absent\", \"reason\": \"x\"}}", "a.b"},
    {"inside an object", "{\"limits.memlock\": {\"soft\": 1, \"hard\": 2}}",
     "{\"limits.memlock\": {\"soft\": 8, \"hard\": 2}}", "limits.memlock.soft"},
    {"null and missing are one", "{\"a.b\": {\"x\": null, \"y\": 1}}", "{\"a.b\": {\"y\": 1}}", ""},
    {"elements by name, in any order",
     "{\"net.ifaces\": [{\"name\": \"a\", \"mtu\": 1}, {\"name\": \"b\", \"mtu\": 2}]}",
     "{\"net.ifaces\": [{\"name\": \"b\", \"mtu\": 3}, {\"name\": \"a\", \"mtu\": 1}]}",
     "net.ifaces[b].mtu"},
    {"an element more", "{\"net.ifaces\": [{\"name\": \"a\"}]}",
     "{\"net.ifaces\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}", "net.ifaces[b]"},
    {"a name twice tells nothing apart", "{\"a.b\": [{\"name\": \"a\", \"x\": 1}]}",
     "{\"a.b\": [{\"name\": \"a\", \"x\": 1}, {\"name\": \"a\", \"x\": 2}]}", "a.b"},
    {"list of texts", "{\"a.b\": [\"x\", \"y\"]}", "{\"a.b\": [\"y\"]}", "a.b"},
    {"set aside", "{\"clock.offset\": 1, \"host.name\": \"a\"}",
     "{\"clock.offset\": 2, \"host.name\": \"b\"}", ""},
    {"compared all the same", "{\"clock.synchronised\": true}", "{\"clock.synchronised\": false}",
     "clock.synchronised"},
    {"addresses of two nodes",
     "{\"host.name\": \"a\", \"net.ifaces\": [{\"name\": \"e\", \"addrs\": [\"1\"]}]}",
     "{\"host.name\": \"b\", \"net.ifaces\": [{\"name\": \"e\", \"addrs\": [\"2\"]}]}", ""},
    {"addresses of one node, before and after",
     "{\"host.name\": \"a\", \"net.ifaces\": [{\"name\": \"e\", \"addrs\": [\"1\"]}]}",
     "{\"host.name\": \"a\", \"net.ifaces\": [{\"name\": \"e\", \"addrs\": [\"2\"]}]}",
     "net.ifaces[e].addrs"},
    {"within the noise", "{\"c.sizes\": [{\"bytes\": 4, \"busbw\": 10.0}]}",
     "{\"c.sizes\": [{\"bytes\": 4, \"busbw\": 8.5}]}", ""},
    {"a collective became slow", "{\"c.sizes\": [{\"bytes\": 4, \"busbw\": 10.0}]}",
     "{\"c.sizes\": [{\"bytes\": 4, \"busbw\": 7.5}]}", "c.sizes[4].busbw"},
    {"a measurement is missing", "{\"c.sizes\": [{\"bytes\": 4, \"busbw\": 10.0}]}",
     "{\"c.sizes\": [{\"bytes\": 4}]}", "c.sizes[4].busbw"},
    {"other type", "{\"a.b\": \"1\"}", "{\"a.b\": 1}", "a.b"},
    {"object and list", "{\"a.b\": {\"x\": 1}}", "{\"a.b\": [1]}", "a.b"},
};

Test(factdiff, cases)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_diff *diff = compare(cases[i].a, cases[i].b, false);
        expect_paths(cases[i].name, diff, cases[i].paths);
        shk_diff_destroy(diff);
        diff = compare(cases[i].b, cases[i].a, false);
        expect_paths(cases[i].name, diff, cases[i].paths);
        shk_diff_destroy(diff);
    }
}

Test(factdiff, set_aside_is_counted_and_all_shows_it)
{
    static const char a[] = "{\"clock.offset\": 1, \"clock.max_error\": 1, \"host.name\": \"a\"}";
    static const char b[] = "{\"clock.offset\": 2, \"clock.max_error\": 2, \"host.name\": \"b\"}";
    struct shk_diff *diff = compare(a, b, false);
    cr_expect_eq(shk_diff_aside(diff, SHK_DIFF_TIME), 2);
    cr_expect_eq(shk_diff_aside(diff, SHK_DIFF_NODE), 1);
    shk_diff_destroy(diff);
    diff = compare(a, b, true);
    expect_paths("all", diff, "clock.max_error clock.offset host.name");
    cr_expect_eq(shk_diff_aside(diff, SHK_DIFF_TIME), 0);
    shk_diff_destroy(diff);
}

/* The sides are whole facts, with what a reader needs. */
Test(factdiff, sides)
{
    struct shk_diff *diff =
        compare("{\"shm.size\": {\"state\": \"present\", \"value\": 64, \"unit\": \"B\"}}",
                "{\"shm.size\": {\"state\": \"failed\", \"reason\": \"denied\"}}", false);
    json_t *row = json_array_get(shk_diff_rows(diff), 0);
    json_t *want = json_loads("{\"path\": \"shm.size\", \"fact\": \"shm.size\", \"a\": {\"state\": "
                              "\"present\", \"value\": 64, \"unit\": \"B\"}, \"b\": {\"state\": "
                              "\"failed\", \"reason\": \"denied\"}, \"nodes\": [\"unnamed\"]}",
                              0, NULL);
    cr_expect(json_equal(row, want));
    json_decref(want);
    shk_diff_destroy(diff);
}

static void make_nodes(struct shk_facts **nodes, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"host.name\": \"%s\", \"a.b\": %d}", names[i],
                 names[i][1] > '2');
        nodes[i] = make(text);
    }
}

Test(factdiff, nodes_are_paired_by_name_and_alike_rows_joined)
{
    static const char *const left[] = {"n1", "n2", "n3", "n4"}, *const right[] = {"n4", "n3", "n1",
                                                                                  "n9"};
    struct shk_facts *a[4], *b[4];
    make_nodes(a, left, 4);
    make_nodes(b, right, 4);
    for (size_t i = 0; i < 4; i++)
        shk_facts_int(b[i], "a.b", 7, NULL, "");
    struct shk_diff *diff = shk_diff_create(rules, RULES, false);
    cr_assert_eq(shk_diff_sets(diff, (const struct shk_facts *const *)a, 4,
                               (const struct shk_facts *const *)b, 4),
                 0);
    cr_expect_eq(shk_diff_pairs(diff), 3);
    cr_expect_str_eq(json_string_value(json_array_get(shk_diff_only_a(diff), 0)), "n2");
    cr_expect_str_eq(json_string_value(json_array_get(shk_diff_only_b(diff), 0)), "n9");
    cr_assert_eq(json_array_size(shk_diff_rows(diff)), 2);
    size_t together = 0;
    for (size_t i = 0; i < 2; i++)
        together +=
            json_array_size(json_object_get(json_array_get(shk_diff_rows(diff), i), "nodes")) == 2;
    cr_expect_eq(together, 1, "n3 and n4 say the same");
    shk_diff_destroy(diff);
    /* one reference against many */
    diff = shk_diff_create(rules, RULES, false);
    cr_assert_eq(shk_diff_sets(diff, (const struct shk_facts *const *)a, 1,
                               (const struct shk_facts *const *)b, 4),
                 0);
    cr_expect_eq(shk_diff_pairs(diff), 4);
    cr_assert_eq(json_array_size(shk_diff_rows(diff)), 1);
    cr_expect_eq(json_array_size(json_object_get(json_array_get(shk_diff_rows(diff), 0), "nodes")),
                 4);
    shk_diff_destroy(diff);
    for (size_t i = 0; i < 4; i++) {
        shk_facts_destroy(a[i]);
        shk_facts_destroy(b[i]);
    }
}

/* What diff, the digest of a document, the parts on the wire and the history of a node share. */
Test(factdiff, why_a_value_may_differ)
{
    static const struct shk_diff_rule patterns[] = {
        {.path = "fabric.*", .differs = SHK_DIFF_AGREE},
        {.path = "fabric.*", .differs = SHK_DIFF_TIME},
        {.path = "fabric.*_ms", .differs = SHK_DIFF_NOISE},
        {.path = "fabric.version", .differs = SHK_DIFF_COMPARE},
    };
    static const struct {
        const char *path;
        const struct shk_diff_rule *rule;
    } paths[] = {{"fabric.path", &patterns[1]},
                 {"fabric.x_ms", &patterns[1]}, /* the first one */
                 {"fabric.version", NULL},      /* taken back */
                 {"host.kernel", NULL}};
    json_t *known = json_object();
    for (size_t i = 0; i < 2 * sizeof paths / sizeof *paths; i++) {
        size_t k = i % (sizeof paths / sizeof *paths);
        cr_expect_eq(shk_diff_aside_rule(patterns, 4, paths[k].path), paths[k].rule, "%s",
                     paths[k].path);
        cr_expect_eq(shk_diff_aside_known(known, patterns, 4, paths[k].path), paths[k].rule, "%s",
                     paths[k].path);
    }
    cr_expect_eq(json_object_size(known), 4);
    json_decref(known);
}
