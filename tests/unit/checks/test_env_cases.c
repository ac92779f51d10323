/* Whole environments on whole nodes, judged with the real catalogue: env_wrong.json (each case
 * names the row that must not pass) and env_healthy.json (no WARN and no FAIL at all). */
#include "core/text/strbuf.h"
#include "support.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { WRONG_AT_LEAST = 120, HEALTHY_AT_LEAST = 40 };

static json_t *load(const char *name)
{
    char path[512];
    json_error_t err;
    cr_assert_lt(snprintf(path, sizeof(path), "%s/unit/checks/%s", SHK_TESTS_DIR, name),
                 (int)sizeof(path));
    json_t *doc = json_load_file(path, 0, &err);
    cr_assert_not_null(doc, "%s:%d: %s", path, err.line, err.text);
    return doc;
}

static const json_t *node_of(const json_t *nodes, const char *name)
{
    const json_t *node = json_object_get(nodes, name);
    cr_assert_not_null(node, "no node %s", name);
    return node;
}

/* Facts of the node it is like, then its own. */
static void add_node(json_t *facts, const json_t *nodes, const char *name)
{
    const json_t *node = node_of(nodes, name);
    const char *like = json_string_value(json_object_get(node, "like"));
    if (like)
        add_node(facts, nodes, like);
    json_object_update(facts, json_object_get(node, "facts"));
}

static json_t *file_fact(const char *value)
{
    return json_pack("{s:s, s:s, s:s}", "state", "present", "value", value, "source",
                     "/etc/nccl.conf");
}

static struct shk_facts *facts_of(const json_t *nodes, const json_t *item)
{
    json_t *all = json_object(), *value;
    const char *name;
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    add_node(all, nodes, json_string_value(json_object_get(item, "node")));
    json_object_update(all, json_object_get(item, "facts"));
    json_object_foreach(json_object_get(item, "env"), name, value)
    {
        char *key = shk_strf("env.%s", name);
        json_object_set(all, key, value);
        free(key);
    }
    json_object_foreach(json_object_get(item, "file"), name, value)
    {
        char *key = shk_strf("env.file.%s", name);
        json_object_set_new(all, key, file_fact(json_string_value(value)));
        free(key);
    }
    json_t *doc = json_pack("{s:s, s:o}", "schema", SHK_FACTS_SCHEMA, "facts", all);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    json_decref(doc);
    shk_facts_freeze(facts);
    return facts;
}

static struct shk_findings *judge(const json_t *nodes, const json_t *item)
{
    struct shk_facts *facts = facts_of(nodes, item);
    const json_t *node = node_of(nodes, json_string_value(json_object_get(item, "node")));
    const char *profile = json_string_value(json_object_get(node, "profile"));
    struct shk_findings *findings = shk_findings_create();
    struct shk_error err = {""};
    struct shk_check_context ctx = {
        .facts = facts,
        .config = support_config(),
        .profile = shk_config_profile(support_config(), profile),
    };
    cr_assert_not_null(ctx.profile, "no profile %s", profile);
    cr_assert_eq(shk_checks_run(&ctx, findings, &err), 0, "%s", err.text);
    shk_facts_destroy(facts);
    return findings;
}

static const struct shk_finding *worst_about(const struct shk_findings *findings,
                                             const char *setting)
{
    const struct shk_finding *worst = NULL;
    static const int badness[] = {[SHK_FAIL] = 5, [SHK_WARN] = 4, [SHK_UNKNOWN] = 3,
                                  [SHK_NOTE] = 2, [SHK_PASS] = 1, [SHK_NA] = 0};
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (strcmp(f->setting, setting) == 0 &&
            (!worst || badness[f->verdict] > badness[worst->verdict]))
            worst = f;
    }
    return worst;
}

static void check_wrong(const json_t *nodes, const json_t *item)
{
    const char *setting = json_string_value(json_object_get(item, "setting"));
    const char *verdict = json_string_value(json_object_get(item, "verdict"));
    const char *suggests = json_string_value(json_object_get(item, "suggests"));
    const char *diagnosis = json_string_value(json_object_get(item, "diagnosis"));
    char *label = json_dumps(item, JSON_COMPACT);
    struct shk_findings *findings = judge(nodes, item);
    const struct shk_finding *f = worst_about(findings, setting);
    char *text = f ? support_text(f) : NULL;
    size_t i;
    json_t *part;
    cr_expect(f && strcmp(shk_verdict_name(f->verdict), verdict) == 0, "%s\n  %s", label, text);
    json_array_foreach(json_object_get(item, "says"), i, part)
        cr_expect(text && strstr(text, json_string_value(part)), "%s lacks \"%s\"\n  %s", label,
                  json_string_value(part), text);
    if (f && suggests)
        cr_expect((f->fix && strstr(f->fix, suggests)) ||
                      (f->advice && strstr(f->advice, suggests)) ||
                      (f->expected && strstr(f->expected, suggests)),
                  "%s does not suggest %s\n  %s", label, suggests, text);
    if (f && diagnosis)
        cr_expect(f->diagnosis && strcmp(f->diagnosis, diagnosis) == 0, "%s\n  %s", label, text);
    free(text);
    free(label);
    shk_findings_destroy(findings);
}

static void check_healthy(const json_t *nodes, const json_t *item)
{
    const char *name = json_string_value(json_object_get(item, "name"));
    struct shk_findings *findings = judge(nodes, item);
    size_t passed = 0;
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        char *text = support_text(f);
        cr_expect(f->verdict != SHK_WARN && f->verdict != SHK_FAIL, "%s: false alarm: %s", name,
                  text);
        passed += f->verdict == SHK_PASS;
        free(text);
    }
    cr_expect_geq(passed, 3, "%s: nothing was judged", name);
    shk_findings_destroy(findings);
}

Test(env_cases, wrong_environments)
{
    json_t *nodes = load("env_nodes.json"), *items = load("env_wrong.json"), *item;
    size_t i;
    cr_assert_geq(json_array_size(items), WRONG_AT_LEAST);
    json_array_foreach(items, i, item) check_wrong(nodes, item);
    json_decref(items);
    json_decref(nodes);
}

Test(env_cases, healthy_environments)
{
    json_t *nodes = load("env_nodes.json"), *items = load("env_healthy.json"), *item;
    size_t i;
    cr_assert_geq(json_array_size(items), HEALTHY_AT_LEAST);
    json_array_foreach(items, i, item) check_healthy(nodes, item);
    json_decref(items);
    json_decref(nodes);
}
