/* Opinions about the value of one variable: its form, what it names, who reads it, what the profile
 * says, what it costs. Each is a row; env.c keeps the worst. */
#include "checks/base/remedy.h"
#include "checks/env/envcase.h"
#include "checks/env/resolve.h"
#include "checks/value/grammar.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char value_unknown[] = "env-value-unknown";
static const char misspelt[] = "env-variable-misspelled";

/* Values of a debugging aid that cost nothing. */
static const char *const quiet[] = {"0",        "off",     "no",    "false",   "none",
                                    "warn",     "warning", "error", "version", "normal",
                                    "disabled", "lazy",    "fatal", "diag",    NULL};

static const char *const words_off[] = {"0", "off", "no", "false", "n", "f", "none", NULL};
static const char *const words_on[] = {"1", "on", "yes", "true", "y", "t", NULL};

static bool listed(const struct shk_setting *setting, const char *const *values, const char *value)
{
    for (; values && *values; values++)
        if (strcmp(*values, "*") == 0 || shk_grammar_same(&setting->grammar, *values, value))
            return true;
    return false;
}

/* Where nothing reads the name: does the value ask for what is so anyway? By the catalogue, or
 * because it switches a feature off, as the names of all these libraries say. */
static bool asks_for_nothing(const struct shk_setting *setting, const char *value)
{
    if (listed(setting, setting->moot, value))
        return true;
    if (setting->kind == SHK_SETTING_FOLKLORE)
        return false;
    if (strstr(setting->name, "DISABLE"))
        return shk_word_is_one_of(words_on, value);
    /* A threshold of an old version is no switch: 0 may have meant the opposite of today. */
    bool is_switch = setting->kind == SHK_SETTING_CURRENT || strstr(setting->name, "ENABLE") ||
                     strstr(setting->name, "_USE_");
    return is_switch && shk_word_is_one_of(words_off, value);
}

static bool required_here(const struct shk_env_case *c)
{
    return c->line && c->holds > 0 && !c->ctx->profile_doubt && !c->line->must_be_unset &&
           c->line->strength == SHK_REQUIRED;
}

/* Of a value that the library cannot use, by what becomes of it. */
static enum shk_verdict misread_verdict(const struct shk_env_case *c,
                                        const struct shk_judged *judged)
{
    const struct shk_setting *s = c->setting;
    if (s->misread == SHK_MISREAD_ENDS || required_here(c))
        return SHK_FAIL;
    if (s->severity <= SHK_SEV_NOISE && !judged->suggestion[0] &&
        (s->misread == SHK_MISREAD_DEFAULT || shk_word_is_one_of(quiet, c->value)))
        return SHK_NOTE;
    if (s->misread == SHK_MISREAD_DEFAULT || s->grammar.type == SHK_VALUE_BOOL)
        return SHK_WARN;
    if (judged->effective[0] && s->default_value &&
        shk_grammar_same(&s->grammar, s->default_value, judged->effective))
        return strcmp(judged->effective, "0") == 0 && shk_word_is_one_of(words_off, c->value)
                   ? SHK_NOTE
                   : SHK_WARN;
    return s->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN;
}

/* What to do about a wrong value: what the profile has comes before what the catalogue says. */
static void say_remedy(struct shk_row *row, const struct shk_env_case *c)
{
    const struct shk_profile_setting *line = c->line;
    const char *value = line && !line->must_be_unset && line->accepted ? line->accepted[0] : NULL;
    if (value && strcmp(value, c->value) != 0)
        shk_row_fix(row, "set-as-in-profile", "name", c->name, "value", value, NULL);
    else
        shk_row_remedy(row, c->setting->fix, c->setting->advice);
}

static void say_suggestion(struct shk_row *row, const struct shk_env_case *c,
                           const struct shk_judged *judged)
{
    if (judged->suggestion[0]) {
        shk_row_text(&row->expected, "%s", judged->suggestion);
        shk_row_fix(row, "set-value", "name", c->name, "value", judged->suggestion, NULL);
    } else {
        say_remedy(row, c);
    }
}

/* False when the value is wrong: what else it would mean is then moot. */
static bool opinion_grammar(struct shk_env_case *c)
{
    struct shk_judged judged;
    shk_grammar_judge(&c->setting->grammar, c->value, &judged);
    if (judged.judgement == SHK_VALUE_OK)
        return true;
    struct shk_row row = shk_env_row(c);
    bool wrong = judged.judgement == SHK_VALUE_WRONG;
    enum shk_verdict odd = c->setting->severity <= SHK_SEV_NOISE ? SHK_NOTE : SHK_WARN;
    shk_row_verdict(&row, wrong ? misread_verdict(c, &judged) : odd, SHK_DECLARED);
    bool kept = wrong && c->setting->misread == SHK_MISREAD_DEFAULT;
    if (row.verdict == SHK_NOTE) {
        bool meant = strcmp(judged.effective, "0") == 0;
        shk_row_text(&row.why, "%s%s", judged.why,
                     kept    ? ", so the default stays"
                     : meant ? ", which is what it means to say"
                             : "");
        shk_env_offer(c, &row);
        return !wrong;
    }
    if (wrong)
        row.diagnosis = judged.diagnosis ? judged.diagnosis : c->setting->diagnosis;
    if (!row.diagnosis && row.verdict == SHK_FAIL)
        row.diagnosis = value_unknown;
    bool more = wrong && c->setting->if_wrong;
    shk_row_text(&row.why, "%s%s%s%s", judged.why, kept ? ", so the default stays" : "",
                 more ? ". " : "", more ? c->setting->if_wrong : "");
    say_suggestion(&row, c, &judged);
    shk_env_offer(c, &row);
    return !wrong;
}

static void opinion_node(struct shk_env_case *c)
{
    struct shk_row row = shk_env_row(c);
    if (!shk_resolve(c->ctx, c->setting, c->value, &row)) {
        /* Nothing to compare, or something that could not be read. */
        if (!shk_row_lacking(&row))
            shk_row_verdict(&row, SHK_PASS, SHK_NOT_COVERED);
        row.fact = c->key;
        shk_env_offer(c, &row);
        return;
    }
    if (row.verdict == SHK_FAIL || row.verdict == SHK_WARN) {
        if (!row.diagnosis && row.verdict == SHK_FAIL)
            row.diagnosis = c->setting->diagnosis ? c->setting->diagnosis : value_unknown;
        if (!row.fix && !row.advice)
            say_remedy(&row, c);
    }
    shk_env_offer(c, &row);
}

static void say_control(struct shk_row *row, const struct shk_setting *setting, const char *value)
{
    bool slip = setting->diagnosis && strcmp(setting->diagnosis, misspelt) == 0;
    if (setting->replaced_by && slip)
        shk_row_fix(row, "misspelled", "name", setting->name, "meant", setting->replaced_by,
                    "value", value, NULL);
    else if (setting->replaced_by)
        shk_row_fix(row, "other-control", "name", setting->name, "control", setting->replaced_by,
                    NULL);
    else
        shk_row_fix(row, "unset", "name", setting->name, NULL);
}

static bool tolerated(const struct shk_env_case *c, const struct shk_read_answer *answer)
{
    switch (c->setting->kind) {
    case SHK_SETTING_CURRENT: return true;
    case SHK_SETTING_RETIRED: return answer->reads == SHK_READS_YES;
    case SHK_SETTING_DEPRECATED: return c->line && !c->line->must_be_unset;
    default: return answer->reads == SHK_READS_YES && answer->asked;
    }
}

static void opinion_kind(struct shk_env_case *c, const struct shk_read_answer *answer)
{
    static const char *const words[] = {
        [SHK_SETTING_DEPRECATED] = "still read, but deprecated",
        [SHK_SETTING_RETIRED] = "only old versions read it",
        [SHK_SETTING_FOLKLORE] = "no library reads this name",
    };
    const struct shk_setting *s = c->setting;
    if (tolerated(c, answer))
        return;
    struct shk_row row = shk_env_row(c);
    bool harmless = s->kind == SHK_SETTING_DEPRECATED || asks_for_nothing(s, c->value) ||
                    (s->kind == SHK_SETTING_RETIRED && s->severity <= SHK_SEV_NOISE);
    shk_row_verdict(&row, harmless ? SHK_NOTE : SHK_WARN,
                    answer->asked ? SHK_EFFECT : SHK_DECLARED);
    const char *effect = s->effect ? s->effect : "";
    shk_row_text(&row.why, "%s%s%s", words[s->kind], *effect ? ": " : "", effect);
    if (!harmless)
        row.diagnosis = s->diagnosis ? s->diagnosis : "env-variable-unknown-to-version";
    if (!harmless || s->replaced_by)
        say_control(&row, s, c->value);
    shk_env_offer(c, &row);
}

/* Who sets what the guide of the site says is not told off for the site's older library. */
static bool follows_profile(const struct shk_env_case *c)
{
    return c->line && !c->line->must_be_unset && !c->line->foreign && !c->ctx->profile_doubt &&
           shk_list_count(c->line->accepted) && shk_profile_accepts(c->setting, c->line, c->value);
}

static void say_unread(struct shk_row *row, const struct shk_env_case *c,
                       const struct shk_read_answer *answer)
{
    const struct shk_setting *s = c->setting;
    bool off = asks_for_nothing(s, c->value);
    bool harmless = off || s->severity <= SHK_SEV_NOISE || follows_profile(c);
    shk_row_verdict(row, harmless ? SHK_NOTE : SHK_WARN, answer->asked ? SHK_EFFECT : SHK_DECLARED);
    shk_row_text(&row->why, "set, but nothing here reads it: %s does not%s%s",
                 answer->text ? answer->text : "the library",
                 answer->asked ? "" : " by its version",
                 off ? "; it asks for the default behaviour" : "");
    if (harmless)
        return;
    row->diagnosis = "env-variable-unknown-to-version";
    say_control(row, s, c->value);
}

static void opinion_readers(struct shk_env_case *c, const struct shk_read_answer *answer)
{
    if (c->setting->kind == SHK_SETTING_FOLKLORE)
        return;
    struct shk_row row = shk_env_row(c);
    if (answer->reads != SHK_READS_YES && answer->unread)
        shk_row_lacks(&row, answer->unread, "whether it is read here is not known: %s was not read",
                      answer->unread);
    else if (answer->disputed)
        shk_row_lacks(&row, answer->disputed,
                      "the library here does not hold this name, though releases like it are said "
                      "to read it");
    switch (answer->reads) {
    case SHK_READS_YES:
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s", answer->text ? answer->text : "a library here");
        break;
    case SHK_READS_NO: say_unread(&row, c, answer); break;
    case SHK_READS_NONE_HERE:
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "no library that reads it was found on this node");
        break;
    case SHK_READS_UNKNOWN: shk_row_verdict(&row, SHK_PASS, SHK_DECLARED); break;
    }
    shk_env_offer(c, &row);
}

/* Of a value that the profile's line does not accept; UNKNOWN when the line may not hold here. */
static void line_verdict(const struct shk_env_case *c, struct shk_row *row)
{
    if (c->holds > 0)
        shk_row_verdict(row, shk_profile_verdict(c->line), SHK_DECLARED);
    else
        shk_row_lacks(row, "profile",
                      "whether %s holds, on which it depends, is not known here: %s",
                      c->line->condition, c->line->why);
    if (c->ctx->profile_doubt) {
        shk_row_verdict(row, SHK_UNKNOWN, SHK_NOT_COVERED);
        shk_read_profile(row);
    }
}

static void opinion_unset(struct shk_env_case *c)
{
    const struct shk_setting *s = c->setting;
    if (s && s->default_value && shk_grammar_same(&s->grammar, s->default_value, c->value))
        return; /* set to its default: harmless */
    struct shk_row row = shk_env_row(c);
    line_verdict(c, &row);
    shk_row_text(&row.expected, "unset");
    shk_row_text(&row.why, "%s",
                 c->line->why ? c->line->why : "the profile says that it must not be set");
    shk_row_fix(&row, "unset", "name", c->name, NULL);
    row.diagnosis = s && s->diagnosis && row.verdict != SHK_NOTE ? s->diagnosis : NULL;
    row.source = c->line->source ? c->line->source : row.source;
    shk_env_offer(c, &row);
}

static const char *line_diagnosis(const struct shk_env_case *c)
{
    /* A missed recommendation in general says less than the setting's own key. */
    const char *key = shk_profile_diagnosis(c->ctx, c->name);
    if (key && strcmp(key, "cxi-recommended-env-missing") != 0)
        return key;
    return c->setting && c->setting->diagnosis ? c->setting->diagnosis
                                               : "vendor-env-profile-mismatch";
}

static void opinion_profile(struct shk_env_case *c)
{
    if (!c->line)
        return;
    if (c->line->must_be_unset) {
        opinion_unset(c);
        return;
    }
    if (shk_profile_accepts(c->setting, c->line, c->value))
        return;
    struct shk_row row = shk_env_row(c);
    char *accepted = shk_profile_accepted_text(c->line);
    line_verdict(c, &row);
    shk_row_text(&row.expected, "%s", accepted ? accepted : "");
    bool hint = c->line->foreign && row.verdict == SHK_NOTE;
    shk_row_text(&row.why, "%s %s: %s", hint ? shk_foreign_list : "profile",
                 hint ? "has another value" : c->ctx->profile->name,
                 c->line->why ? c->line->why : "another value is recommended");
    if (row.verdict != SHK_NOTE) {
        shk_row_fix(&row, "set-as-in-profile", "name", c->name, "value", c->line->accepted[0],
                    NULL);
        row.diagnosis = line_diagnosis(c);
    }
    row.source = c->line->source ? c->line->source : row.source;
    free(accepted);
    shk_env_offer(c, &row);
}

static void opinion_cost(struct shk_env_case *c)
{
    const struct shk_setting *s = c->setting;
    if (!s->production_warning || !*c->value || shk_word_is_one_of(quiet, c->value))
        return;
    if (c->line && !c->line->must_be_unset && shk_list_count(c->line->accepted) &&
        shk_profile_accepts(s, c->line, c->value))
        return;
    if (s->default_value && shk_grammar_same(&s->grammar, s->default_value, c->value))
        return;
    struct shk_row row = shk_env_row(c);
    bool costs = s->costly ? listed(s, s->costly, c->value) : s->severity >= SHK_SEV_PERF_MINOR;
    shk_row_verdict(&row, costs ? SHK_WARN : SHK_NOTE, SHK_DECLARED);
    shk_row_text(&row.why, "for a validation run, not for production: %s",
                 s->cost ? s->cost : "it slows the run down");
    if (costs)
        shk_row_fix(&row, "unset", "name", c->name, NULL);
    shk_env_offer(c, &row);
}

/* What would break a library breaks nothing on a node that does not have it; a job may bring its
 * own. */
static void spare_without_reader(struct shk_row *row)
{
    if (row->verdict != SHK_FAIL)
        return;
    row->verdict = SHK_WARN;
    char *why = row->why;
    row->why = shk_strf("%s%sno library that reads it was found on this node: this holds for a job "
                        "that brings its own",
                        why ? why : "", why ? "; " : "");
    free(why);
}

void shk_env_judge_known(struct shk_env_case *c)
{
    const struct shk_name *family = shk_name_family(c->ctx->config, c->name);
    struct shk_read_answer answer = c->setting->readers_count || !family
                                        ? shk_readers_ask(c->readers, c->setting)
                                        : shk_readers_ask_name(c->readers, family, c->name);
    /* A value that nobody reads breaks nothing, whatever it is. */
    bool moot = answer.reads == SHK_READS_NO && !answer.unread;
    opinion_kind(c, &answer);
    bool sound = c->setting->kind != SHK_SETTING_FOLKLORE && (moot || opinion_grammar(c));
    if (sound && !moot)
        opinion_node(c);
    opinion_readers(c, &answer);
    if (sound && !moot) {
        opinion_profile(c);
        opinion_cost(c);
    }
    if (!c->decided) { /* folklore that a library here reads all the same */
        struct shk_row row = shk_env_row(c);
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s; the value is not judged",
                     answer.text ? answer.text : "a library here");
        shk_env_offer(c, &row);
    }
    if (answer.reads == SHK_READS_NONE_HERE && !answer.unread)
        spare_without_reader(&c->best);
    free(answer.text);
}

/* Without a row in the catalogue, but with a line in the profile. */
void shk_env_judge_profiled(struct shk_env_case *c)
{
    struct shk_row row = shk_env_row(c);
    shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
    shk_env_offer(c, &row);
    opinion_profile(c);
}

/* `near` is what was probably meant. */
static void say_misspelt(struct shk_row *row, const struct shk_env_case *c, const char *near,
                         bool asked)
{
    const struct shk_setting *meant = shk_config_setting(c->ctx->config, near);
    bool harmless =
        meant && meant->kind == SHK_SETTING_RETIRED && asks_for_nothing(meant, c->value);
    shk_row_verdict(row, harmless ? SHK_NOTE : SHK_WARN, asked ? SHK_EFFECT : SHK_DECLARED);
    if (harmless) {
        shk_row_text(&row->why,
                     "nothing reads this name, and %s, if that was meant, asks for what "
                     "is the default anyway",
                     near);
        return;
    }
    shk_row_text(&row->expected, "%s", near);
    shk_row_text(&row->why, "set, but nothing reads this name; did you mean %s?", near);
    shk_row_fix(row, "misspelled", "name", c->name, "meant", near, "value", c->value, NULL);
    row->diagnosis = misspelt;
}

void shk_env_judge_unknown(struct shk_env_case *c)
{
    const struct shk_name *family = shk_name_family(c->ctx->config, c->name);
    struct shk_read_answer answer = {.reads = SHK_READS_UNKNOWN};
    if (family)
        answer = shk_readers_ask_name(c->readers, family, c->name);
    const char *near =
        answer.reads == SHK_READS_YES ? NULL : shk_readers_nearest(c->readers, family, c->name);
    struct shk_row row = shk_env_row(c);
    bool ours = true;
    row.family = family ? family->family : "environment";
    if (answer.reads == SHK_READS_YES) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s; the value is not judged", answer.text);
    } else if (family && shk_name_is_install(c->name)) {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "names an installation; no library reads it at run time");
    } else if (near) {
        say_misspelt(&row, c, near, answer.asked);
    } else if (answer.reads == SHK_READS_NO && family->unknown == SHK_NAME_STRICT) {
        bool off = !strstr(c->name, "DISABLE") && shk_word_is_one_of(words_off, c->value);
        shk_row_verdict(&row, off ? SHK_NOTE : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.why, "set, but nothing here reads it: %s does not know the name%s",
                     answer.text ? answer.text : "the library",
                     off ? "; it disables something that is not present" : "");
        if (!off) {
            shk_row_fix(&row, "unset", "name", c->name, NULL);
            row.diagnosis = "env-variable-unknown-to-version";
        }
    } else if (family && family->unknown == SHK_NAME_STRICT) {
        shk_row_text(&row.why, "not in the catalogue, and no library here could be asked");
    } else {
        ours = false;
    }
    if (ours)
        shk_env_offer(c, &row);
    else
        free(row.observed);
    free(answer.text);
}
