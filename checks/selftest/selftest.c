#include "checks/selftest/selftest.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct selftest {
    const struct shk_config *config;
    const struct shk_check *check;
    const struct shk_profile *profile;
    const char *setting; /* may be NULL */
    bool asked;          /* the profile was named */
    enum shk_verdict verdict;
    char *problem;
};

static const struct shk_check *selftest_check(const char *id)
{
    size_t count;
    const struct shk_check *const *all = shk_checks(&count);
    for (size_t i = 0; id && i < count; i++) {
        if (strcmp(all[i]->id, id) == 0)
            return all[i];
    }
    return NULL;
}

static const char *selftest_text(const json_t *entry, const char *member)
{
    return json_string_value(json_object_get(entry, member));
}

/* Findings of the one check; NULL: out of memory, or facts that are none (err). */
static struct shk_findings *selftest_judge(const struct selftest *t, const json_t *facts,
                                           struct shk_error *err)
{
    struct shk_facts *store = NULL;
    struct shk_findings *findings = shk_findings_create();
    json_t *doc = json_pack("{s:s, s:O}", "schema", SHK_FACTS_SCHEMA, "facts", facts);
    if (findings && doc && shk_facts_from_json(&store, doc, err) == 0) {
        struct shk_check_context ctx = {
            .facts = store, .config = t->config, .profile = t->profile, .profile_asked = t->asked};
        shk_facts_freeze(store);
        t->check->eval(&ctx, findings);
    } else {
        shk_findings_destroy(findings);
        findings = NULL;
    }
    json_decref(doc);
    shk_facts_destroy(store);
    return findings;
}

/* First row of the setting (any, when NULL) with the verdict. */
static const struct shk_finding *selftest_find(const struct shk_findings *findings,
                                               const char *setting, enum shk_verdict verdict)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        if (f->verdict == verdict && (!setting || strcmp(f->setting, setting) == 0))
            return f;
    }
    return NULL;
}

static void selftest_healthy(struct selftest *t, const struct shk_findings *findings)
{
    const struct shk_finding *f = selftest_find(findings, NULL, SHK_FAIL);
    if (!f)
        f = selftest_find(findings, NULL, SHK_WARN);
    if (f)
        t->problem = shk_strf("a healthy node gives %s: %s", shk_verdict_name(f->verdict),
                              f->why ? f->why : f->setting);
}

static void selftest_broken(struct selftest *t, const struct shk_findings *findings)
{
    if (!selftest_find(findings, t->setting, t->verdict))
        t->problem = shk_strf("not found: no %s for %s", shk_verdict_name(t->verdict),
                              t->setting ? t->setting : "any setting");
}

static void selftest_unread(struct selftest *t, const struct shk_findings *findings)
{
    if (t->setting && selftest_find(findings, t->setting, SHK_PASS))
        t->problem = shk_strf("%s passes although nothing could be read", t->setting);
}

/* `over` laid over the facts; with `unreadable`, its keys could not be read instead. */
static json_t *selftest_overlay(const json_t *facts, const json_t *over, bool unreadable)
{
    json_t *all = json_copy((json_t *)facts);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)over, key, value)
    {
        if (unreadable)
            json_object_set_new(all, key,
                                json_pack("{s:s, s:s}", "state", "failed", "reason", "selftest"));
        else if (json_is_null(value))
            json_object_del(all, key);
        else
            json_object_set(all, key, value);
    }
    return all;
}

static int selftest_case(struct selftest *t, const json_t *healthy, const json_t *broken,
                         struct shk_error *err)
{
    static void (*const legs[])(struct selftest *, const struct shk_findings *) = {
        selftest_healthy, selftest_broken, selftest_unread};
    static const char nothing[] = "{}";
    json_t *none = json_loads(nothing, 0, NULL);
    json_t *facts[] = {selftest_overlay(healthy, none, false),
                       selftest_overlay(healthy, broken, false),
                       selftest_overlay(healthy, broken, true)};
    int rc = 0;
    for (size_t i = 0; i < 3; i++) {
        struct shk_findings *findings = NULL;
        if (rc == 0 && !t->problem)
            findings = selftest_judge(t, facts[i], err);
        if (findings)
            legs[i](t, findings);
        else if (rc == 0 && !t->problem)
            rc = -EINVAL;
        shk_findings_destroy(findings);
        json_decref(facts[i]);
    }
    json_decref(none);
    return rc;
}

static int selftest_verdict(const char *name, enum shk_verdict *verdict_p)
{
    for (int i = 0; name && i < SHK_VERDICT_COUNT; i++) {
        if (strcmp(shk_verdict_name((enum shk_verdict)i), name) == 0) {
            *verdict_p = (enum shk_verdict)i;
            return 0;
        }
    }
    return -EINVAL;
}

/* "expects": {fact: value}: the profile of a site that has it from its good nodes. */
static void selftest_expect(struct selftest *t, const json_t *expects, struct shk_profile *made,
                            struct shk_profile_fact *fact, const char *accepted[2])
{
    void *member = json_object_iter((json_t *)expects);
    if (!member || !t->profile)
        return;
    accepted[0] = json_string_value(json_object_iter_value(member));
    accepted[1] = NULL;
    *fact = (struct shk_profile_fact){.fact = json_object_iter_key(member),
                                      .accepted = accepted,
                                      .why = "good nodes have it",
                                      .source = "selftest"};
    *made = *t->profile;
    made->facts = fact;
    made->facts_count = 1;
    t->profile = made;
}

static int selftest_entry(const struct shk_config *config, const json_t *entry, size_t i,
                          void (*row)(const struct shk_selftest_row *row, void *arg), void *arg,
                          struct shk_error *err)
{
    const char *profile = selftest_text(entry, "profile");
    const char *what = selftest_text(entry, "what");
    const json_t *healthy = json_object_get(entry, "healthy");
    const json_t *broken = json_object_get(entry, "broken");
    struct shk_error why = {""};
    struct selftest t = {.config = config,
                         .check = selftest_check(selftest_text(entry, "check")),
                         .profile = shk_config_profile(config, profile ? profile : "single-node"),
                         .setting = selftest_text(entry, "setting"),
                         .asked = json_is_true(json_object_get(entry, "asked"))};
    const char *accepted[2];
    struct shk_profile_fact fact;
    struct shk_profile made;
    selftest_expect(&t, json_object_get(entry, "expects"), &made, &fact, accepted);
    if (!t.check || !t.profile || !what || !json_is_object(healthy) || !json_is_object(broken) ||
        selftest_verdict(selftest_text(entry, "verdict"), &t.verdict) < 0)
        return shk_error_set(err, EINVAL, "selftest case %zu: not complete", i);
    if (selftest_case(&t, healthy, broken, &why) < 0)
        return shk_error_set(err, EINVAL, "selftest case %zu: %s", i, why.text);
    struct shk_selftest_row result = {
        .check = t.check->id, .what = what, .ok = !t.problem, .problem = t.problem};
    row(&result, arg);
    free(t.problem);
    return 0;
}

int shk_selftest_checks(const struct shk_config *config, const char *json,
                        void (*row)(const struct shk_selftest_row *row, void *arg), void *arg,
                        struct shk_error *err)
{
    json_error_t at;
    size_t i;
    json_t *entry, *cases = json_loads(json, JSON_REJECT_DUPLICATES, &at);
    int rc = json_is_array(cases)
                 ? 0
                 : shk_error_set(err, EINVAL, "selftest cases: line %d: %s", at.line, at.text);
    json_array_foreach(cases, i, entry)
    {
        if (rc == 0)
            rc = selftest_entry(config, entry, i, row, arg, err);
    }
    json_decref(cases);
    return rc;
}
