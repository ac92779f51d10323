/* Settings that the profile wants and that are not set. */
#include "checks/job/profile.h"
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"
#include "checks/value/grammar.h"
#include "core/regex/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RIVAL_ROWS = 128 }; /* more names than all profiles of one kind of node have */

/* Interfaces: a value is as good as an accepted one when each of its entries begins with one of the
 * accepted entries ("hsn0,hsn1" where "hsn" is accepted). */
static bool same_network(const char *accepted, const char *value)
{
    bool ax, ae, vx, ve;
    accepted = shk_grammar_list_body(accepted, &ax, &ae);
    value = shk_grammar_list_body(value, &vx, &ve);
    if (ax || vx)
        return false;
    const char *item, *want;
    size_t len, want_len;
    while (shk_grammar_item(&value, ',', &item, &len)) {
        bool hit = false;
        for (const char *pos = accepted; !hit && shk_grammar_item(&pos, ',', &want, &want_len);)
            hit = want_len && len >= want_len && strncmp(item, want, want_len) == 0;
        if (!hit)
            return false;
    }
    return true;
}

bool shk_profile_accepts(const struct shk_setting *setting, const struct shk_profile_setting *line,
                         const char *value)
{
    static const struct shk_grammar plain = {.type = SHK_VALUE_STRING};
    const struct shk_grammar *grammar = setting ? &setting->grammar : &plain;
    if (!shk_list_count(line->accepted))
        return true;
    for (const char *const *a = line->accepted; *a; a++) {
        if (shk_grammar_same(grammar, *a, value))
            return true;
        if (grammar->type == SHK_VALUE_INTERFACES && same_network(*a, value))
            return true;
    }
    return false;
}

char *shk_profile_accepted_text(const struct shk_profile_setting *line)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (const char *const *a = line->accepted; a && *a; a++) {
        if (sb.len > 80) {
            shk_strbuf_puts(&sb, " or …");
            break;
        }
        shk_strbuf_printf(&sb, "%s%s", sb.len ? " or " : "", *a);
    }
    return sb.len ? shk_strbuf_take(&sb) : NULL;
}

const char *shk_profile_diagnosis(const struct shk_check_context *ctx, const char *name)
{
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    if (setting && setting->missed)
        return setting->missed;
    return shk_profile_wants_provider(ctx->profile, "cxi") ? "cxi-recommended-env-missing" : NULL;
}

const char shk_foreign_list[] = "the list of the fabric's maker, not the guide of this site,";

enum shk_verdict shk_profile_verdict(const struct shk_profile_setting *line)
{
    static const enum shk_verdict verdicts[] = {
        [SHK_OPTIONAL] = SHK_NOTE, [SHK_RECOMMENDED] = SHK_WARN, [SHK_REQUIRED] = SHK_FAIL};
    if (line->other)
        return strcmp(line->other, "fail") == 0   ? SHK_FAIL
               : strcmp(line->other, "warn") == 0 ? SHK_WARN
                                                  : SHK_NOTE;
    return line->foreign ? SHK_NOTE : verdicts[line->strength];
}

static void say_missing(const struct shk_check_context *ctx, struct shk_row *row,
                        const struct shk_profile_setting *line, const struct shk_setting *setting)
{
    const char *why = line->why ? line->why : "see the profile";
    if (line->foreign) {
        shk_row_verdict(row, SHK_NOTE, SHK_DECLARED);
        shk_row_text(&row->why, "%s has it: %s", shk_foreign_list, why);
        return;
    }
    bool required = line->strength == SHK_REQUIRED;
    shk_row_verdict(row, required ? SHK_FAIL : SHK_WARN, SHK_DECLARED);
    shk_row_text(&row->why, "%s: %s", required ? "required here" : "recommended here", why);
    if (shk_list_count(line->accepted))
        shk_row_fix(row, "set-as-in-profile", "name", line->name, "value", line->accepted[0], NULL);
    else if (setting)
        shk_row_remedy(row, setting->fix, setting->advice);
    row->diagnosis = shk_profile_diagnosis(ctx, line->name);
}

/* Reads whether the variable is set; one reason for all when no environment was read. */
static enum shk_look read_setting(struct shk_row *row, const char *name)
{
    const char *value = NULL;
    enum shk_look look = shk_look_setting(row->ctx, name, &value);
    if (look != SHK_LOOK_MISSING)
        return shk_read_env(row, name, &value);
    if (shk_env_known(row->ctx->facts))
        shk_row_lacks(row, "environment.looked_for",
                      "the facts were gathered where nothing looked for %s", name);
    else
        shk_row_lacks(row, "probe.env.status", "the environment was not read");
    return look;
}

/* A row for a line of the profile whose variable is not set, or not known to be. */
static void missing_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                        const struct shk_profile_setting *line, int holds)
{
    const struct shk_setting *setting = shk_config_setting(ctx->config, line->name);
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_profile, line->name);
    row.family = setting ? setting->family : row.family;
    row.source = line->source ? line->source : setting ? setting->source : NULL;
    row.required = line->strength == SHK_REQUIRED;
    char *accepted = shk_profile_accepted_text(line);
    shk_row_text(&row.expected, "%s", accepted ? accepted : "set");
    free(accepted);
    (void)read_setting(&row, line->name);
    shk_read_profile(&row);
    if (holds < 0 && !shk_row_lacking(&row))
        shk_row_lacks(&row, "profile", "%s when %s, which is not known here",
                      line->strength == SHK_OPTIONAL ? "an option" : "recommended",
                      line->condition);
    if (shk_row_lacking(&row)) {
        shk_row_end(findings, &row);
        return;
    }
    shk_row_text(&row.observed, "not set");
    if (line->strength == SHK_OPTIONAL) {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "not needed: %s", line->why ? line->why : "optional");
    } else {
        say_missing(ctx, &row, line, setting);
    }
    shk_row_end(findings, &row);
}

/* Set, or set to what could not be read: env.value has the row. */
static bool is_set(const struct shk_facts *facts, const char *name)
{
    const char *value = NULL;
    enum shk_look look = shk_look_env(facts, name, &value);
    return look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED;
}

static bool has_line(const struct shk_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->settings_count; i++)
        if (strcmp(profile->settings[i].name, name) == 0 && !profile->settings[i].must_be_unset)
            return true;
    return false;
}

/* A count or a text that matches; other facts are no sign. */
static bool speaks_for(const struct shk_facts *facts, const struct shk_profile_signal *signal)
{
    const char *text = NULL;
    long long count = 0;
    char *number = shk_look_int(facts, signal->fact, &count) == SHK_LOOK_PRESENT
                       ? shk_strf("%lld", count)
                       : NULL;
    if (number)
        text = number;
    else
        (void)shk_look_text(facts, signal->fact, &text);
    bool speaks = text && signal->matches && shk_pattern_matches(signal->matches, text);
    free(number);
    return speaks;
}

/* Does anything that was read speak for the profile? */
static bool may_be(const struct shk_check_context *ctx, const struct shk_profile *profile)
{
    for (size_t i = 0; !profile->abstract && i < profile->signals_count; i++)
        if (speaks_for(ctx->facts, &profile->signals[i]))
            return true;
    return false;
}

static void rival_rows(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct shk_profile *rival, const char **done, size_t *done_count)
{
    for (size_t i = 0; i < rival->settings_count; i++) {
        const struct shk_profile_setting *line = &rival->settings[i];
        const struct shk_setting *setting = shk_config_setting(ctx->config, line->name);
        bool judged = line->must_be_unset || (setting && !setting->variable) ||
                      has_line(ctx->profile, line->name) || is_set(ctx->facts, line->name);
        for (size_t k = 0; k < *done_count && !judged; k++)
            judged = strcmp(done[k], line->name) == 0;
        if (judged || *done_count == RIVAL_ROWS)
            continue;
        done[(*done_count)++] = line->name;
        missing_row(ctx, findings, line, 1);
    }
}

/* The profile is not certain: what others that may be the right one ask for has a row, too. */
static void eval_rivals(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t count, done_count = 0;
    const char *done[RIVAL_ROWS];
    const struct shk_profile *profiles = shk_config_profiles(ctx->config, &count);
    for (size_t i = 0; i < count; i++)
        if (may_be(ctx, &profiles[i]))
            rival_rows(ctx, findings, &profiles[i], done, &done_count);
}

static void eval_profile(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    const struct shk_profile *profile = ctx->profile;
    for (size_t i = 0; i < profile->settings_count; i++) {
        const char *name = profile->settings[i].name;
        const struct shk_setting *setting = shk_config_setting(ctx->config, name);
        int holds = 1;
        const struct shk_profile_setting *line = shk_profile_line(ctx, name, &holds);
        /* One row per name: the line that applies; kernel parameters are judged by code. */
        if (line != &profile->settings[i] || line->must_be_unset || is_set(ctx->facts, name) ||
            (setting && !setting->variable))
            continue;
        missing_row(ctx, findings, line, holds);
    }
    if (ctx->profile_doubt)
        eval_rivals(ctx, findings);
}

/* Does env.profile have the row? */
static bool in_profile(const struct shk_check_context *ctx, const char *name)
{
    int holds = 1;
    const struct shk_profile_setting *line = shk_profile_line(ctx, name, &holds);
    return line && holds > 0 && !line->must_be_unset && !ctx->profile_doubt;
}

static void audit_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                      const char *name)
{
    const struct shk_setting *setting = shk_config_setting(ctx->config, name);
    int holds = 1;
    const struct shk_profile_setting *line = shk_profile_line(ctx, name, &holds);
    struct shk_row row = shk_row_begin(ctx, &shk_check_env_audit, name);
    row.family = setting ? setting->family : row.family;
    row.source = line && line->source ? line->source : setting ? setting->source : NULL;
    if (read_setting(&row, name) == SHK_LOOK_ABSENT)
        shk_row_text(&row.observed, "not set");
    if (line || ctx->profile_doubt)
        shk_read_profile(&row);
    if (line && holds < 0)
        shk_row_lacks(&row, "profile", "whether it is needed when %s is not known here",
                      line->condition);
    if (line && line->must_be_unset) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.expected, "unset");
        shk_row_end(findings, &row);
    } else if (setting && setting->kind == SHK_SETTING_FOLKLORE) {
        shk_row_na(findings, &row, "not set; no library reads this name");
    } else {
        shk_row_na(findings, &row, "not set; default: %s",
                   setting && setting->default_value ? setting->default_value : "none needed");
    }
}

static void eval_audit(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    size_t count;
    const struct shk_setting *settings = shk_config_settings(ctx->config, &count);
    for (size_t i = 0; i < count; i++)
        if (settings[i].audited && !is_set(ctx->facts, settings[i].name) &&
            !in_profile(ctx, settings[i].name))
            audit_row(ctx, findings, settings[i].name);
}

const struct shk_check shk_check_env_profile = {
    .id = "env.profile",
    .diagnosis = "env-required-missing",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Variables that the profile asks for and that are not set",
    .eval = eval_profile,
    .doc =
        "Facts: env.*, env.file.*, and what the conditions of the profile ask (job.nodes, "
        "host.container, versions).\n"
        "Required and missing is FAIL, recommended and missing WARN, optional n/a; what is only in "
        "the list of the fabric's maker, and not in the guide of the site, a note. When the "
        "environment was not read, the profile is not certain, or the condition of a line cannot "
        "be decided, the row is UNKNOWN. Values that are set are judged by env.value.",
};

const struct shk_check shk_check_env_audit = {
    .id = "env.audit",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Commonly recommended variables that are not set",
    .eval = eval_audit,
    .doc = "Facts: env.*, env.file.*.\n"
           "So that the matrix says for each of them that it was looked at: n/a with the default "
           "when not set; pass when the profile says that it must be unset.",
};
