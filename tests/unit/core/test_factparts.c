#include "core/facts/factparts.h"
#include "core/facts/pack.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_diff_rule rules[] = {
    {.path = "host.name", .differs = SHK_DIFF_NODE},
    {.path = "env.JOB_*", .differs = SHK_DIFF_JOB, .job_wide = true},
    {.path = "env.*RANK", .differs = SHK_DIFF_JOB},
    {.path = "net.ifaces.addrs", .differs = SHK_DIFF_NODE},
    {.path = "host.memory", .differs = SHK_DIFF_NOISE, .percent = 5},
    {.path = "host.limit", .differs = SHK_DIFF_NOISE, .percent = 5},
    {.path = "topology.xml",
     .differs = SHK_DIFF_DERIVED,
     .part = "((name|serial)=\"|pid )([^\" ]*)"},
    {.path = "topology.twice", .differs = SHK_DIFF_DERIVED},
};
enum { RULES = sizeof rules / sizeof *rules };

static struct shk_facts *facts_of(const char *text)
{
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    json_t *doc = json_object(), *table = json_loads(text, JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(table, "%s", text);
    json_object_set_new(doc, "schema", json_string(SHK_FACTS_SCHEMA));
    json_object_set_new(doc, "facts", table);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    return facts;
}

static struct shk_factparts split(const char *text)
{
    struct shk_factparts parts;
    struct shk_error err = {""};
    struct shk_facts *facts = facts_of(text);
    cr_assert_eq(shk_factparts_split(&parts, facts, rules, RULES, &err), 0, "%s", err.text);
    shk_facts_destroy(facts);
    return parts;
}

static int join(const struct shk_factparts *parts, struct shk_facts **facts_p,
                struct shk_error *err)
{
    struct shk_factsection *sections[16] = {0};
    int rc = 0;
    for (size_t i = 0; i < parts->count && rc == 0; i++)
        rc = shk_factsection_parse(&sections[i], parts->sections[i].text, parts->sections[i].len,
                                   err);
    if (rc == 0)
        rc = shk_factparts_join(facts_p, sections, parts->count, parts->own, parts->own_len, err);
    for (size_t i = 0; i < parts->count; i++)
        shk_factsection_free(sections[i]);
    return rc;
}

#define NODE(name, rank, addr, memory, mtu)                                                        \
    "{\"env.JOB_ID\":{\"state\":\"present\",\"value\":\"77\"},"                                    \
    "\"env.MY_RANK\":{\"state\":\"present\",\"value\":\"" rank "\"},"                              \
    "\"host.name\":{\"state\":\"present\",\"value\":\"" name "\",\"source\":\"asked " name "\"},"  \
    "\"host.memory\":{\"state\":\"present\",\"value\":" memory ",\"unit\":\"B\"},"                 \
    "\"host.os\":{\"state\":\"absent\",\"reason\":\"no file on " name "\"},"                       \
    "\"net.ifaces\":{\"state\":\"present\",\"value\":[{\"mtu\":" mtu ",\"addrs\":[\"" addr         \
    "\"]}]},"                                                                                      \
    "\"topology.xml\":{\"state\":\"present\",\"value\":\"<a name=\\\"" name                        \
    "\\\" serial=\\\"\\\">\\n<b/>\\n<a serial=\\\"" addr "\\\"> pid 5\\n\"},"                      \
    "\"topology.place\":{\"state\":\"present\",\"value\":\"s1." name "\"},"                        \
    "\"topology.twice\":{\"state\":\"present\",\"value\":[1.5,null,true]}}"

/* What comes out is what went in, and like nodes have the same sections. */
Test(factparts, alike)
{
    static const char *const nodes[] = {
        NODE("nid1", "0", "10.0.0.1", "1000", "1500"),
        NODE("nid22", "1", "10.0.0.22", "1001.25", "1500"),
        NODE("nid3", "2", "10.0.0.3", "1002", "9000"),
    };
    struct shk_factparts first = split(nodes[0]);
    cr_assert_eq(first.count, 4);
    cr_assert_str_eq(first.sections[0].name, "env");
    cr_assert_null(strstr(first.own, "77"));
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct shk_factparts parts = split(nodes[i]);
        struct shk_facts *joined = NULL, *given = facts_of(nodes[i]);
        struct shk_error err = {""};
        cr_assert_eq(join(&parts, &joined, &err), 0, "%s", err.text);
        json_t *a = shk_facts_to_json(joined), *b = shk_facts_to_json(given);
        cr_expect(json_equal(a, b), "node %zu", i);
        for (size_t k = 0; k < first.count; k++) {
            bool odd = i == 2 && strcmp(first.sections[k].name, "net") == 0;
            cr_expect_eq(shk_digest_equal(&parts.sections[k].digest, &first.sections[k].digest),
                         !odd, "node %zu, %s: %s", i, first.sections[k].name,
                         parts.sections[k].text);
        }
        json_decref(a);
        json_decref(b);
        shk_facts_destroy(joined);
        shk_facts_destroy(given);
        shk_factparts_clear(&parts);
    }
    shk_factparts_clear(&first);
}

/* Like nodes may differ in what is their own, in measurements only as much as their rule says. */
Test(factparts, alike_within_noise)
{
    static const struct {
        const char *memory, *rank;
        bool alike;
    } cases[] = {
        {"1000", "0", true}, {"1040", "5", true}, {"1060", "0", false}, {"950.5", "0", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char node[600];
        static const char form[] =
            "{\"env.MY_RANK\":\"%s\",\"host.memory\":%s,\"host.limit\":{\"soft\":%s,\"hard\":5}}";
        snprintf(node, sizeof node, form, "0", "1000", "1000");
        struct shk_factparts first = split(node);
        snprintf(node, sizeof node, form, cases[i].rank, cases[i].memory, "1000");
        struct shk_factparts other = split(node);
        cr_expect_eq(shk_factparts_alike(&first, other.own, other.own_len), cases[i].alike, "%zu",
                     i);
        shk_factparts_clear(&other);
        snprintf(node, sizeof node, form, "0", "1000", cases[i].memory);
        other = split(node);
        cr_expect_eq(shk_factparts_alike(&first, other.own, other.own_len), cases[i].alike, "%zu",
                     i);
        cr_expect_not(shk_factparts_alike(&first, "[]", 2));
        cr_expect_not(shk_factparts_alike(&first, "nonsense", 8));
        shk_factparts_clear(&other);
        shk_factparts_clear(&first);
    }
}

/* Texts with the mark's own character, with NUL, and parts that are no whole characters. */
Test(factparts, marks_in_facts)
{
    static const char *const nodes[] = {
        "{\"a.b\":\"\\u001a\",\"a.c\":[\"\\u001ax\\u001a\",\"x\\u001a\"],\"a.d\":\"a\\u0000b\"}",
        "{\"a.b\":{\"state\":\"failed\",\"reason\":\"\\u001a why\",\"source\":\"\\u001a\"}}",
        "{\"topology.xml\":\"name=\\\"\\u001a\\\"\"}",
        "{\"topology.xml\":\"name=\\\"\\u00e9\\\" serial=\\\"\\u00e9\"}",
        "{}",
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct shk_factparts parts = split(nodes[i]);
        struct shk_facts *joined = NULL, *given = facts_of(nodes[i]);
        struct shk_error err = {""};
        cr_assert_eq(join(&parts, &joined, &err), 0, "%zu: %s", i, err.text);
        json_t *a = shk_facts_to_json(joined), *b = shk_facts_to_json(given);
        cr_expect(json_equal(a, b), "%zu", i);
        json_decref(a);
        json_decref(b);
        shk_facts_destroy(joined);
        shk_facts_destroy(given);
        shk_factparts_clear(&parts);
    }
}

/* Rank 0 reads what other processes sent. */
Test(factparts, hostile)
{
    static const struct {
        const char *section, *own, *why;
    } cases[] = {
        {"{\"a.b\":\"\\u001a\"}", "[]", "shorter than what was taken out"},
        {"{\"a.b\":\"\\u001a\"}", "[1,2]", "longer than what was taken out"},
        {"{\"a.b\":\"\\u001a\"}", "{}", "not a JSON array"},
        {"{\"a.b\":\"\\u001a\"}", "[1", "not a JSON array"},
        {"{\"a.b\":\"\\u001ax\\u001a\"}", "[1]", "a part of a text is not a text"},
        {"{\"a.b\":{\"state\":\"\\u001a\"}}", "[\"odd\"]", "state 'odd'"},
        {"{\"a.b\":{\"state\":\"odd\"}}", "[]", "state 'odd'"},
        {"{\"a b\":1}", "[]", "not a fact key"},
        {"{\"a.b\":1,\"a.b\":2}", "[]", "duplicate"},
        {"[1]", "[]", "not an object"},
        {"nonsense", "[]", "not JSON"},
        {"{\"a.b\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"\\u001a\"]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "]]]"
         "]]]]]]]]]]]]}",
         "[1]", "nested deeper"},
        {"{\"a.b\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"\\u001a\"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
         "]"
         "]]]]]]}",
         "[1]", "nested deeper"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_factpart section = {.text = (char *)cases[i].section,
                                       .len = strlen(cases[i].section)};
        struct shk_factparts parts = {.sections = &section,
                                      .count = 1,
                                      .own = (char *)cases[i].own,
                                      .own_len = strlen(cases[i].own)};
        struct shk_facts *joined = NULL;
        struct shk_error err = {""};
        cr_expect_eq(join(&parts, &joined, &err), -EPROTO, "%zu", i);
        cr_expect_not_null(strstr(err.text, cases[i].why), "%zu: %s", i, err.text);
    }
}

Test(factparts, digest)
{
    char text[SHK_DIGEST_TEXT];
    struct shk_digest digest = shk_digest_of("", 0), other = shk_digest_of("foobar", 6);
    /* draft-eastlake-fnv, test vectors of FNV-1a with 128 bits. */
    shk_digest_text(&digest, text);
    cr_expect_str_eq(text, "6c62272e07bb014262b821756295c58d");
    shk_digest_text(&other, text);
    cr_expect_str_eq(text, "343e1662793c64bf6f0d3597ba446f18");
    cr_expect_not(shk_digest_equal(&digest, &other));
}

Test(factparts, packed)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    struct shk_error err = {""};
    char *text = NULL, *big = malloc(1 << 20);
    size_t len = 0;
    memset(big, 'x', 1 << 20);
    shk_pack(&sb, big, 1 << 20);
    cr_assert_not(sb.failed);
    cr_expect_lt(sb.len, 1024);
    cr_assert_eq(shk_unpack(sb.data, sb.len, 1 << 20, &text, &len, &err), 0, "%s", err.text);
    cr_expect_eq(len, 1 << 20);
    cr_expect_eq(memcmp(text, big, len), 0);
    free(text);
    text = NULL;
    cr_expect_eq(shk_unpack(sb.data, sb.len, (1 << 20) - 1, &text, &len, &err), -EPROTO);
    cr_expect_not_null(strstr(err.text, "more than"), "%s", err.text);
    for (size_t cut = 0; cut < sb.len; cut++)
        cr_expect_eq(shk_unpack(sb.data, cut, 1 << 20, &text, &len, &err), -EPROTO, "%zu", cut);
    cr_expect_eq(shk_unpack("nonsense", 8, 1 << 20, &text, &len, &err), -EPROTO);
    cr_expect_null(text);
    shk_strbuf_free(&sb);
    free(big);
}
