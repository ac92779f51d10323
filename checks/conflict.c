/* Settings that do not go together: the conflicts of the catalogue. */
#include "checks/env.h"
#include "checks/grammar.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

static bool matches(const char *pattern, const char *value)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool hit = regexec(&re, value, 0, NULL, 0) == 0;
    regfree(&re);
    return hit;
}

static bool is_one_of(const struct shk_check_context *ctx, const char *name,
                      const char *const *values, const char *value)
{
    static const struct shk_grammar plain = {.type = SHK_VALUE_STRING};
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    for (; *values; values++)
        if (shk_grammar_same(setting ? &setting->grammar : &plain, *values, value))
            return true;
    return false;
}

static bool term_holds(const struct shk_check_context *ctx, const struct shk_conflict_term *term)
{
    const char *value = shk_env_get(ctx->facts, term->setting);
    if (term->unset)
        return !value;
    if (term->lacks)
        return !value || !matches(term->lacks, value);
    if (!value)
        return false;
    if (term->is)
        return is_one_of(ctx, term->setting, term->is, value);
    if (term->is_not)
        return !is_one_of(ctx, term->setting, term->is_not, value);
    return term->set || (term->matches && matches(term->matches, value));
}

static bool all_hold(const struct shk_check_context *ctx, const struct shk_conflict *conflict)
{
    for (size_t i = 0; i < conflict->when_count; i++)
        if (!term_holds(ctx, &conflict->when[i]))
            return false;
    return conflict->when_count > 0;
}

static void say_terms(const struct shk_check_context *ctx, const struct shk_conflict *conflict,
                      struct shk_strbuf *names, struct shk_strbuf *values)
{
    for (size_t i = 0; i < conflict->when_count; i++) {
        const char *name = conflict->when[i].setting;
        const char *value = shk_env_get(ctx->facts, name);
        shk_strbuf_printf(names, "%s%s", i ? " + " : "", name);
        shk_strbuf_printf(values, "%s%s%s%s", i ? ", " : "", name, value ? "=" : " ",
                          value ? value : "not set");
    }
}

static void conflict_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                         const struct shk_conflict *conflict, int holds)
{
    struct shk_strbuf names = SHK_STRBUF_INIT, values = SHK_STRBUF_INIT;
    say_terms(ctx, conflict, &names, &values);
    struct shk_row row = shk_row_start(&shk_check_env_conflict, shk_strbuf_text(&names));
    const struct shk_setting *first = shk_config_setting(ctx->config, conflict->when[0].setting);
    row.family = first ? first->family : row.family;
    row.source = conflict->source;
    row.fact = "env.*";
    shk_row_text(&row.observed, "%s", shk_strbuf_text(&values));
    if (holds < 0) {
        shk_row_text(&row.why, "a conflict when %s, which is not known here: %s",
                     conflict->condition, conflict->why);
    } else {
        shk_row_verdict(&row, strcmp(conflict->verdict, "fail") == 0 ? SHK_FAIL : SHK_WARN,
                        conflict->condition ? SHK_EFFECT : SHK_DECLARED);
        row.diagnosis = conflict->diagnosis;
        shk_row_text(&row.why, "%s", conflict->why);
        shk_row_text(&row.fix, "%s", conflict->fix);
    }
    shk_row_end(findings, &row);
    shk_strbuf_free(&names);
    shk_strbuf_free(&values);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t count, found = 0;
    const struct shk_conflict *conflicts = shk_config_conflicts(ctx->config, &count);
    struct shk_row row = shk_row_start(&shk_check_env_conflict, "conflicts");
    row.fact = "env.*";
    if (!shk_env_known(ctx->facts)) {
        shk_row_text(&row.why, "the environment was not read");
        shk_row_end(findings, &row);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!all_hold(ctx, &conflicts[i]))
            continue;
        int holds = shk_condition_holds(conflicts[i].condition, ctx->facts);
        if (holds == 0)
            continue;
        found++;
        conflict_row(ctx, findings, &conflicts[i], holds);
    }
    if (!found && count) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "none of %zu known ones", count);
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_env_conflict = {
    .id = "env.conflict",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "No two settings work against each other",
    .eval = eval,
    .doc = "Facts: env.*, env.file.*, and what the conditions of the conflicts ask.\n"
           "The known conflicts are data (config/conflicts); verdict and reason are theirs. When "
           "the condition of one cannot be decided the row is UNKNOWN.",
};
