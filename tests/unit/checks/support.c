#include "support.h"
#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct shk_config *load(const char *dir)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load(&config, NULL, dir, &err), 0, "%s", err.text);
    return config;
}

const struct shk_config *support_config(void)
{
    static const struct shk_config *config;
    if (!config)
        config = load(NULL);
    return config;
}

const struct shk_config *support_test_config(void)
{
    static const struct shk_config *config;
    if (!config)
        config = load(SHK_TESTS_DIR "/unit/checks/catalogue");
    return config;
}

struct shk_facts *support_facts(const char *members)
{
    struct shk_facts *facts = NULL;
    struct shk_error err = {""};
    json_error_t jerr;
    char *text = shk_strf("{'schema': 'shakedown.facts/1', 'facts': {%s}}", members);
    cr_assert_not_null(text);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *doc = json_loads(text, 0, &jerr);
    cr_assert_not_null(doc, "%s: %s", jerr.text, text);
    cr_assert_eq(shk_facts_from_json(&facts, doc, &err), 0, "%s", err.text);
    shk_facts_freeze(facts);
    json_decref(doc);
    free(text);
    return facts;
}

struct shk_findings *support_run_in_doubt(const struct shk_config *config, const char *profile,
                                          const char *members, const char *doubt)
{
    struct shk_facts *facts = support_facts(members);
    struct shk_findings *findings = shk_findings_create();
    struct shk_check_context ctx = {
        .facts = facts,
        .config = config,
        .profile = shk_config_profile(config, profile),
        .profile_doubt = doubt,
    };
    struct shk_error err = {""};
    cr_assert_not_null(ctx.profile, "no profile %s", profile);
    cr_assert_eq(shk_checks_run(&ctx, findings, &err), 0, "%s", err.text);
    shk_facts_destroy(facts);
    return findings;
}

struct shk_findings *support_run(const struct shk_config *config, const char *profile,
                                 const char *members)
{
    return support_run_in_doubt(config, profile, members, NULL);
}

const struct shk_finding *support_find(const struct shk_findings *findings, const char *id,
                                       const char *setting)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (strcmp(f->setting, setting) == 0 && (!id || strcmp(f->id, id) == 0))
            return f;
    }
    return NULL;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

char *support_text(const struct shk_finding *f)
{
    return shk_strf(
        "%s %s: %s, %s; observed %s; expected %s; why %s; fix %s; advice %s; diagnosis %s", f->id,
        f->setting, shk_verdict_name(f->verdict), shk_evidence_name(f->evidence),
        or_empty(f->observed), or_empty(f->expected), or_empty(f->why), or_empty(f->fix),
        or_empty(f->advice), or_empty(f->diagnosis));
}

void support_cases(const struct support_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct support_case *c = &cases[i];
        struct shk_findings *findings = support_run(support_test_config(), c->profile, c->facts);
        const struct shk_finding *f = support_find(findings, c->id, c->setting);
        if (c->verdict == SHK_VERDICT_COUNT) {
            cr_expect_null(f, "%s: no row was expected", c->name);
        } else {
            char *text = f ? support_text(f) : NULL;
            cr_expect_not_null(f, "%s: no row", c->name);
            cr_expect(f && f->verdict == c->verdict && f->evidence == c->evidence, "%s: %s",
                      c->name, text);
            cr_expect(!c->says || (text && strstr(text, c->says)), "%s: lacks \"%s\": %s", c->name,
                      c->says, text);
            free(text);
        }
        shk_findings_destroy(findings);
    }
}
