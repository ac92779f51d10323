/* Causes by the words of lines that no signature decides. */
#include "checks/base/check.h"
#include "core/search/search.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const char catalogue[] =
    "- {key: t-wombat, title: The wombat has left its burrow, explanation: Nobody is at home., "
    "like: 'burrow without wombat, marsupial cannot be found at its entrance', advice: Call it., "
    "who: user, source: s}\n"
    "- {key: t-quokka, title: A quokka smiles, explanation: It always does., "
    "like: 'quokka smiling at visitors of the island', only-on: [container], advice: Smile back., "
    "who: user, source: s}\n";

static const char wombat[] = "zoo: error: no marsupial at the entrance of its burrow";
static const char quokka[] = "zoo: error: quokka on the island smiles at its visitors";

static struct shk_config *config;

static void setup(void)
{
    struct shk_error err = {""};
    if (!shk_search_built())
        cr_skip_test("this build has no SQLite");
    cr_assert_eq(
        shk_config_load_buffer(&config, "diagnoses", "t.yaml", catalogue, strlen(catalogue), &err),
        0, "%s", err.text);
}

static void teardown(void)
{
    shk_config_free(config);
}

static struct shk_facts *with_log(int lines)
{
    struct shk_facts *facts = shk_facts_create();
    json_t *files = json_pack("[{s:s}]", "path", "a.log");
    cr_assert_eq(shk_facts_present(facts, "log.files", files, NULL, "--log"), 0);
    cr_assert_eq(shk_facts_int(facts, "log.lines", lines, NULL, "--log"), 0);
    return facts;
}

/* log.unknown or log.doubt with this line. */
static void line(struct shk_facts *facts, const char *key, const char *text)
{
    json_t *value = json_pack("{s:i, s:[{s:s, s:i, s:s, s:i}]}", "lines", 1, "shapes", "file",
                              "a.log", "line", 3, "text", text, "lines", 1);
    cr_assert_eq(shk_facts_present(facts, key, value, NULL, "--log"), 0);
}

static void saw(struct shk_facts *facts, const char *id)
{
    char key[128];
    snprintf(key, sizeof key, "log.sig.%s", id);
    json_t *entry =
        json_pack("{s:i, s:s, s:i, s:s}", "lines", 1, "file", "a.log", "line", 7, "text", "seen");
    cr_assert_eq(shk_facts_present(facts, key, entry, NULL, "a.log"), 0);
}

/* Ends the facts. */
static struct shk_diagnoses diagnose(struct shk_facts *facts)
{
    struct shk_diagnoses out = {0};
    struct shk_error err = {""};
    struct shk_findings *none = shk_findings_create();
    const struct shk_facts *list[] = {facts};
    cr_assert_eq(shk_diagnose(config, none, list, 1, &out, &err), 0, "%s", err.text);
    shk_findings_destroy(none);
    shk_facts_destroy(facts);
    return out;
}

static void expect_without(struct shk_diagnoses *out, const char *key)
{
    for (size_t i = 0; i < out->count; i++)
        cr_expect_str_neq(out->rows[i].key, key);
    shk_diagnoses_free(out);
}

/* Is this the first cause, and only possible? NULL: there is none. Ends the facts. */
static void expect(struct shk_facts *facts, const char *key, const char *what)
{
    struct shk_diagnoses out = diagnose(facts);
    if (key) {
        cr_assert_gt(out.count, 0, "%s", what);
        cr_expect_str_eq(out.rows[0].key, key, "%s: %s", what, out.rows[0].key);
        cr_expect_str_eq(out.rows[0].confidence, "possible", "%s", what);
        cr_expect_not_null(strstr(out.rows[0].evidence[0], "by its words only"), "%s", what);
    } else {
        cr_expect_eq(out.count, 0, "%s: %s", what, out.count ? out.rows[0].key : "");
    }
    shk_diagnoses_free(&out);
}

Test(likeness, an_unknown_error_is_looked_up, .init = setup, .fini = teardown)
{
    struct shk_facts *facts = with_log(3);
    line(facts, "log.unknown", wombat);
    expect(facts, "t-wombat", "words");
    facts = with_log(3);
    line(facts, "log.unknown", "zoo: error: burrow");
    expect(facts, NULL, "one word");
    facts = with_log(3);
    line(facts, "log.unknown", "zoo <info> error: no marsupial at the entrance of its burrow");
    expect(facts, NULL, "only informs");
    expect(with_log(3), NULL, "no line");
    expect(shk_facts_create(), NULL, "no log");
}

Test(likeness, what_may_tell_of_trouble_counts_in_an_excerpt, .init = setup, .fini = teardown)
{
    struct shk_facts *facts = with_log(3);
    line(facts, "log.doubt", wombat);
    expect(facts, "t-wombat", "excerpt");
    facts = with_log(3000);
    line(facts, "log.doubt", wombat);
    expect(facts, NULL, "whole log");
    facts = with_log(3000);
    line(facts, "log.unknown", wombat);
    expect(facts, "t-wombat", "whole log with an error");
    facts = with_log(3);
    line(facts, "log.doubt", wombat);
    saw(facts, "nccl-init-complete");
    expect(facts, NULL, "started");
}

Test(likeness, what_cannot_be_here_is_not_named, .init = setup, .fini = teardown)
{
    struct shk_facts *facts = with_log(3);
    line(facts, "log.unknown", quokka);
    expect(facts, "t-quokka", "anywhere");
    facts = with_log(3);
    line(facts, "log.unknown", quokka);
    cr_assert_eq(shk_facts_text(facts, "host.container", "none", "t"), 0);
    struct shk_diagnoses out = diagnose(facts);
    expect_without(&out, "t-quokka");
}

Test(likeness, a_consequence_gives_way_a_cause_does_not, .init = setup, .fini = teardown)
{
    struct shk_facts *facts = with_log(30);
    line(facts, "log.unknown", wombat);
    saw(facts, "slurm-exit");
    expect(facts, "t-wombat", "consequence");

    facts = with_log(30);
    line(facts, "log.unknown", wombat);
    saw(facts, "cuda-802");
    struct shk_diagnoses out = diagnose(facts);
    cr_assert_gt(out.count, 0);
    cr_expect_str_eq(out.rows[0].key, "fabric-manager-down");
    expect_without(&out, "t-wombat");
}

Test(likeness, the_line_that_is_most_like_it_is_shown, .init = setup, .fini = teardown)
{
    struct shk_facts *facts = with_log(30);
    json_t *value = json_pack("{s:i, s:[{s:s, s:i, s:s, s:i}, {s:s, s:i, s:s, s:i}]}", "lines", 2,
                              "shapes", "file", "a.log", "line", 3, "text", "zoo: error: closing",
                              "lines", 1, "file", "a.log", "line", 9, "text", wombat, "lines", 1);
    cr_assert_eq(shk_facts_present(facts, "log.unknown", value, NULL, "--log"), 0);
    struct shk_diagnoses out = diagnose(facts);
    cr_assert_gt(out.count, 0);
    cr_expect_str_eq(out.rows[0].key, "t-wombat");
    cr_expect_not_null(strstr(out.rows[0].evidence[0], "a.log:9: "), "%s", out.rows[0].evidence[0]);
    shk_diagnoses_free(&out);
}
