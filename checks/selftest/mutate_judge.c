#include "checks/selftest/mutate_private.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char judge_profile[] = "profile"; /* stands beside the numbers of checks */

/* Adds the findings; `check`: who made them. */
static void judge_collect(const struct shk_config *config, const struct shk_findings *findings,
                          size_t check, json_t *rows)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        bool explained =
            f->verdict != SHK_FAIL || (f->diagnosis && shk_config_diagnosis(config, f->diagnosis));
        char *key = shk_strf("%s\n%s", f->id, f->setting);
        json_object_set_new(rows, key ? key : "",
                            json_pack("[i, s, I, b]", (int)f->verdict,
                                      f->observed ? f->observed : "", (json_int_t)check,
                                      explained));
        free(key);
    }
}

/* Runs the checks that are not skipped. */
static int judge_run(const struct shk_judge *judge, const struct shk_profile *profile,
                     const char *doubt, size_t check, json_t *rows, struct shk_error *err)
{
    struct shk_findings *findings = shk_findings_create();
    struct shk_check_context ctx = {.facts = judge->facts,
                                    .config = judge->config,
                                    .profile = profile,
                                    .profile_doubt = doubt,
                                    .skip = judge->skip};
    int rc = findings ? shk_checks_run(&ctx, findings, err) : -ENOMEM;
    if (!rc)
        judge_collect(judge->config, findings, check, rows);
    shk_findings_destroy(findings);
    return rc;
}

/* Who asked for the facts in `seen`. */
static int judge_asked(struct shk_judge *judge, const json_t *seen, const char *who)
{
    const char *fact;
    json_t *value;
    json_object_foreach((json_t *)seen, fact, value)
    {
        json_t *askers = json_object_get(judge->asked, fact);
        if (!askers && json_object_set_new(judge->asked, fact, askers = json_object()))
            return -ENOMEM;
        if (json_object_set_new(askers, who, json_true()))
            return -ENOMEM;
    }
    return 0;
}

/* Runs one check, or chooses the profile, and sees what it asks for. */
static int judge_learn(struct shk_judge *judge, size_t check, struct shk_error *err)
{
    json_t *seen = json_object();
    char number[24];
    bool profile = check == judge->checks;
    snprintf(number, sizeof number, "%zu", check);
    shk_facts_watch(judge->facts, seen);
    int rc = seen ? 0 : -ENOMEM;
    if (!rc && profile) {
        judge->profile = shk_profile_detect(judge->config, judge->facts, NULL, &judge->doubt);
    } else if (!rc) {
        judge->skip[check] = false;
        rc = judge_run(judge, judge->profile, judge->doubt, check, judge->base, err);
        judge->skip[check] = true;
    }
    shk_facts_watch(judge->facts, NULL);
    if (!rc)
        rc = judge_asked(judge, seen, profile ? judge_profile : number);
    json_decref(seen);
    return rc;
}

int shk_judge_begin(struct shk_judge *judge, const struct shk_config *config,
                    struct shk_facts *facts, struct shk_error *err)
{
    *judge = (struct shk_judge){
        .config = config, .facts = facts, .base = json_object(), .asked = json_object()};
    (void)shk_checks(&judge->checks);
    judge->skip = malloc(judge->checks * sizeof *judge->skip);
    if (!judge->base || !judge->asked || !judge->skip)
        return -ENOMEM;
    memset(judge->skip, true, judge->checks * sizeof *judge->skip);
    int rc = judge_learn(judge, judge->checks, err);
    for (size_t i = 0; !rc && i < judge->checks; i++)
        rc = judge_learn(judge, i, err);
    return rc;
}

void shk_judge_end(struct shk_judge *judge)
{
    json_decref(judge->base);
    json_decref(judge->asked);
    free(judge->doubt);
    free(judge->skip);
    *judge = (struct shk_judge){.config = NULL};
}

bool shk_judge_asks(const struct shk_judge *judge, const char *fact)
{
    return json_object_get(judge->asked, fact) != NULL;
}

/* Which checks need not run when only `fact` has changed. */
static void judge_choose(struct shk_judge *judge, const char *fact)
{
    const json_t *askers = fact ? json_object_get(judge->asked, fact) : NULL;
    const char *who;
    json_t *value;
    memset(judge->skip, fact != NULL, judge->checks * sizeof *judge->skip);
    json_object_foreach((json_t *)askers, who, value)
    {
        if (strcmp(who, judge_profile) != 0)
            judge->skip[strtoul(who, NULL, 10)] = false;
    }
}

/* Another profile, or doubt about it, and all that the checks said is open again. */
static const struct shk_profile *judge_profile_now(struct shk_judge *judge, const char *fact,
                                                   char **doubt_p)
{
    const json_t *askers = fact ? json_object_get(judge->asked, fact) : NULL;
    if (fact && !json_object_get(askers, judge_profile)) {
        *doubt_p = judge->doubt ? strdup(judge->doubt) : NULL;
        return judge->profile;
    }
    const struct shk_profile *now = shk_profile_detect(judge->config, judge->facts, NULL, doubt_p);
    const char *was = judge->doubt ? judge->doubt : "", *is = *doubt_p ? *doubt_p : "";
    if (now != judge->profile || strcmp(was, is) != 0)
        judge_choose(judge, NULL);
    return now;
}

/* Adds what the checks that do not run said at the beginning. */
static int judge_add_known(const struct shk_judge *judge, json_t *rows)
{
    const char *key;
    json_t *row;
    json_object_foreach(judge->base, key, row)
    {
        size_t check = (size_t)json_integer_value(json_array_get(row, 2));
        if (judge->skip[check] && json_object_set(rows, key, row))
            return -ENOMEM;
    }
    return 0;
}

json_t *shk_judge_rows(struct shk_judge *judge, const char *fact, int *rc_p, struct shk_error *err)
{
    char *doubt = NULL;
    json_t *rows = json_object();
    judge_choose(judge, fact);
    const struct shk_profile *profile = judge_profile_now(judge, fact, &doubt);
    *rc_p = rows ? judge_add_known(judge, rows) : -ENOMEM;
    if (!*rc_p)
        *rc_p = judge_run(judge, profile, doubt, 0, rows, err);
    free(doubt);
    if (!*rc_p)
        return rows;
    json_decref(rows);
    return NULL;
}
