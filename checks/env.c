/* Every variable that is set: is it read, is its value right, does it fit node and profile? One row
 * per variable; the worst opinion wins. */
#include "checks/env.h"
#include "checks/clue.h"
#include "checks/grammar.h"
#include "checks/readers.h"
#include "checks/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct env_case {
    const struct shk_check_context *ctx;
    struct shk_readers *readers;
    const char *name, *value, *key;
    const char *origin; /* "environment" or the file */
    const struct shk_setting *setting;
    const struct shk_profile_setting *line; /* of the active profile, NULL */
    int holds;                              /* its condition: 1, or -1 unknown */
    struct shk_row best;
    bool decided; /* best holds an opinion */
};

static const char value_unknown[] = "env-value-unknown";
static const char a_file[] = "a configuration file"; /* when the fact does not say which */

/* Values of a debugging aid that cost nothing. */
static const char *const quiet[] = {"0",       "off",   "no",      "false",  "none",     "warn",
                                    "warning", "error", "version", "normal", "disabled", "lazy"};

static struct shk_row case_row(const struct env_case *c)
{
    struct shk_row row = shk_row_start(&shk_check_env_value, c->name);
    if (c->setting) {
        row.family = c->setting->family;
        row.source = c->setting->source;
    }
    row.fact = c->key;
    if (strcmp(c->origin, "environment") == 0)
        shk_row_text(&row.observed, "%s", c->value);
    else
        shk_row_text(&row.observed, "%s (from %s)", c->value, c->origin);
    return row;
}

/* Worse verdicts win; n/a (nothing here reads it) wins over what could not be looked at; among
 * passes the stronger evidence. */
static int rank(const struct shk_row *row)
{
    static const int ranks[] = {[SHK_PASS] = 0, [SHK_NOTE] = 5,  [SHK_UNKNOWN] = 10,
                                [SHK_NA] = 20,  [SHK_WARN] = 30, [SHK_FAIL] = 40};
    return ranks[row->verdict] + (SHK_EVIDENCE_COUNT - (int)row->evidence);
}

static void row_free(struct shk_row *row)
{
    free(row->observed);
    free(row->expected);
    free(row->why);
    free(row->fix);
}

static void offer(struct env_case *c, struct shk_row *row)
{
    if (!c->decided || rank(row) > rank(&c->best)) {
        if (c->decided)
            row_free(&c->best);
        c->best = *row;
        c->decided = true;
    } else {
        row_free(row);
    }
}

static enum shk_verdict wrong_verdict(const struct shk_setting *setting)
{
    return setting->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN;
}

static bool opinion_grammar(struct env_case *c)
{
    struct shk_judged judged;
    shk_grammar_judge(&c->setting->grammar, c->value, &judged);
    if (judged.judgement == SHK_VALUE_OK)
        return true;
    struct shk_row row = case_row(c);
    bool wrong = judged.judgement == SHK_VALUE_WRONG;
    shk_row_verdict(&row, wrong ? wrong_verdict(c->setting) : SHK_WARN, SHK_DECLARED);
    if (wrong)
        row.diagnosis = judged.diagnosis ? judged.diagnosis : c->setting->diagnosis;
    if (!row.diagnosis && row.verdict == SHK_FAIL)
        row.diagnosis = value_unknown;
    shk_row_text(&row.why, "%s%s%s", judged.why, wrong && c->setting->if_wrong ? ". " : "",
                 wrong && c->setting->if_wrong ? c->setting->if_wrong : "");
    if (judged.suggestion[0]) {
        bool quote = strpbrk(judged.suggestion, " ;|&$") != NULL;
        shk_row_text(&row.expected, "%s", judged.suggestion);
        shk_row_text(&row.fix, "export %s=%s%s%s", c->name, quote ? "\"" : "", judged.suggestion,
                     quote ? "\"" : "");
    } else if (c->setting->fix) {
        shk_row_text(&row.fix, "%s", c->setting->fix);
    }
    offer(c, &row);
    return !wrong;
}

static void opinion_node(struct env_case *c)
{
    struct shk_row row = case_row(c);
    const char *fact = row.fact;
    if (!shk_resolve(c->ctx, c->setting, c->value, &row)) {
        row_free(&row);
        return;
    }
    if (row.fact == fact)
        row.fact = c->key;
    if (row.verdict == SHK_FAIL || row.verdict == SHK_WARN) {
        if (!row.diagnosis && row.verdict == SHK_FAIL)
            row.diagnosis = c->setting->diagnosis ? c->setting->diagnosis : value_unknown;
        if (!row.fix && c->setting->fix)
            shk_row_text(&row.fix, "%s", c->setting->fix);
    }
    offer(c, &row);
}

static void say_control(struct shk_row *row, const struct shk_setting *setting)
{
    if (setting->replaced_by)
        shk_row_text(&row->fix, "unset %s; the real control is %s", setting->name,
                     setting->replaced_by);
    else
        shk_row_text(&row->fix, "%s", setting->fix ? setting->fix : "unset it");
}

static bool version_reads(const struct shk_read_answer *answer)
{
    return answer->reads == SHK_READS_YES;
}

static void opinion_kind(struct env_case *c, const struct shk_read_answer *answer)
{
    static const char *const words[] = {
        [SHK_SETTING_DEPRECATED] = "still read, but deprecated",
        [SHK_SETTING_RETIRED] = "only old versions read it",
        [SHK_SETTING_FOLKLORE] = "no library reads this name",
    };
    const struct shk_setting *s = c->setting;
    bool tolerated = c->line && !c->line->must_be_unset;
    if (s->kind == SHK_SETTING_CURRENT || (s->kind == SHK_SETTING_RETIRED && version_reads(answer)))
        return;
    if (s->kind == SHK_SETTING_DEPRECATED && tolerated)
        return;
    if (s->kind == SHK_SETTING_FOLKLORE && version_reads(answer) && answer->asked)
        return;
    struct shk_row row = case_row(c);
    shk_row_verdict(&row, SHK_WARN, answer->asked ? SHK_EFFECT : SHK_DECLARED);
    const char *effect = s->effect ? s->effect : "";
    if (s->kind == SHK_SETTING_FOLKLORE && strncmp(effect, "Nothing", 7) == 0 && ispunct(effect[7]))
        effect += strlen("Nothing. "); /* said already */
    shk_row_text(&row.why, "%s%s%s", words[s->kind], *effect ? ": " : "", effect);
    row.diagnosis = s->diagnosis                        ? s->diagnosis
                    : s->kind == SHK_SETTING_DEPRECATED ? NULL
                                                        : "env-variable-unknown-to-version";
    say_control(&row, s);
    offer(c, &row);
}

static void opinion_readers(struct env_case *c, const struct shk_read_answer *answer)
{
    if (c->setting->kind == SHK_SETTING_FOLKLORE)
        return;
    struct shk_row row = case_row(c);
    switch (answer->reads) {
    case SHK_READS_YES:
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s", answer->text ? answer->text : "a library here");
        break;
    case SHK_READS_NO:
        shk_row_verdict(&row, SHK_WARN, answer->asked ? SHK_EFFECT : SHK_DECLARED);
        shk_row_text(&row.why, "set, but nothing here reads it: %s does not%s",
                     answer->text ? answer->text : "the library",
                     answer->asked ? "" : " by its version");
        row.diagnosis = "env-variable-unknown-to-version";
        say_control(&row, c->setting);
        break;
    case SHK_READS_NONE_HERE:
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "no library that reads it was found on this node");
        break;
    case SHK_READS_UNKNOWN: shk_row_verdict(&row, SHK_PASS, SHK_DECLARED); break;
    }
    offer(c, &row);
}

static void opinion_unset(struct env_case *c)
{
    const struct shk_setting *s = c->setting;
    if (s && s->default_value && shk_grammar_same(&s->grammar, s->default_value, c->value))
        return; /* set to its default: harmless */
    struct shk_row row = case_row(c);
    shk_row_verdict(&row,
                    c->holds < 0                        ? SHK_UNKNOWN
                    : c->line->strength == SHK_REQUIRED ? SHK_FAIL
                                                        : SHK_WARN,
                    c->holds < 0 ? SHK_NOT_COVERED : SHK_DECLARED);
    shk_row_text(&row.expected, "unset");
    shk_row_text(&row.why, "%s",
                 c->line->why ? c->line->why : "the profile says that it must not be set");
    shk_row_text(&row.fix, "unset %s", c->name);
    row.diagnosis = s && s->diagnosis ? s->diagnosis : NULL;
    row.source = c->line->source ? c->line->source : row.source;
    offer(c, &row);
}

static void opinion_profile(struct env_case *c)
{
    if (!c->line)
        return;
    if (c->line->must_be_unset) {
        opinion_unset(c);
        return;
    }
    if (shk_profile_accepts(c->setting, c->line, c->value))
        return;
    struct shk_row row = case_row(c);
    char *accepted = shk_profile_accepted_text(c->line);
    shk_row_verdict(&row,
                    c->holds < 0                        ? SHK_UNKNOWN
                    : c->line->strength == SHK_REQUIRED ? SHK_FAIL
                                                        : SHK_WARN,
                    c->holds < 0 ? SHK_NOT_COVERED : SHK_DECLARED);
    shk_row_text(&row.expected, "%s", accepted ? accepted : "");
    shk_row_text(&row.why, "profile %s: %s", c->ctx->profile->name,
                 c->line->why ? c->line->why : "another value is recommended");
    shk_row_text(&row.fix, "export %s=\"%s\"", c->name, c->line->accepted[0]);
    /* A missed recommendation in general says less than the setting's own key. */
    row.diagnosis = shk_profile_diagnosis(c->ctx->profile, c->name);
    if (!row.diagnosis || strcmp(row.diagnosis, "cxi-recommended-env-missing") == 0)
        row.diagnosis = c->setting && c->setting->diagnosis ? c->setting->diagnosis
                                                            : "vendor-env-profile-mismatch";
    row.source = c->line->source ? c->line->source : row.source;
    free(accepted);
    offer(c, &row);
}

static void opinion_cost(struct env_case *c)
{
    const struct shk_setting *s = c->setting;
    if (!s->production_warning || !*c->value)
        return;
    if (c->line && !c->line->must_be_unset && shk_list_count(c->line->accepted) &&
        shk_profile_accepts(s, c->line, c->value))
        return;
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
        if (strcasecmp(quiet[i], c->value) == 0)
            return;
    if (s->default_value && shk_grammar_same(&s->grammar, s->default_value, c->value))
        return;
    struct shk_row row = case_row(c);
    shk_row_verdict(&row, SHK_WARN, SHK_DECLARED);
    shk_row_text(&row.why, "for a validation run, not for production: %s",
                 s->cost ? s->cost : "it slows the run down");
    shk_row_text(&row.fix, "unset %s before production runs", c->name);
    offer(c, &row);
}

static void judge_known(struct env_case *c)
{
    const struct shk_name_family *family = shk_name_family(c->name);
    struct shk_read_answer answer = c->setting->readers_count || !family
                                        ? shk_readers_ask(c->readers, c->setting)
                                        : shk_readers_ask_name(c->readers, family, c->name);
    opinion_kind(c, &answer);
    bool sound = c->setting->kind != SHK_SETTING_FOLKLORE && opinion_grammar(c);
    if (sound)
        opinion_node(c);
    opinion_readers(c, &answer);
    if (sound) {
        opinion_profile(c);
        opinion_cost(c);
    }
    if (!c->decided) { /* folklore that a library here reads all the same */
        struct shk_row row = case_row(c);
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s; the value is not judged",
                     answer.text ? answer.text : "a library here");
        offer(c, &row);
    }
    free(answer.text);
}

static void judge_unknown(struct env_case *c)
{
    const struct shk_name_family *family = shk_name_family(c->name);
    struct shk_read_answer answer = {.reads = SHK_READS_UNKNOWN};
    if (family)
        answer = shk_readers_ask_name(c->readers, family, c->name);
    const char *near =
        answer.reads == SHK_READS_YES ? NULL : shk_readers_nearest(c->readers, family, c->name);
    struct shk_row row = case_row(c);
    row.family = family ? family->family : "environment";
    if (answer.reads == SHK_READS_YES) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.why, "read by %s; the value is not judged", answer.text);
    } else if (family && shk_name_is_install(c->name)) {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "names an installation; no library reads it at run time");
    } else if (near) {
        shk_row_verdict(&row, SHK_WARN, answer.asked ? SHK_EFFECT : SHK_DECLARED);
        shk_row_text(&row.expected, "%s", near);
        shk_row_text(&row.why, "set, but nothing reads this name; did you mean %s?", near);
        shk_row_text(&row.fix, "unset %s; export %s=\"%s\"", c->name, near, c->value);
        row.diagnosis = "env-variable-misspelled";
    } else if (answer.reads == SHK_READS_NO && family->strict) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.why, "set, but nothing here reads it: %s does not know the name",
                     answer.text ? answer.text : "the library");
        shk_row_text(&row.fix, "unset %s, or look up its present name", c->name);
        row.diagnosis = "env-variable-unknown-to-version";
    } else if (family && family->strict) {
        shk_row_text(&row.why, "not in the catalogue, and no library here could be asked");
    } else {
        row_free(&row); /* not ours */
        row.id = NULL;
    }
    if (row.id)
        offer(c, &row);
    free(answer.text);
}

/* Without a row in the catalogue, but with a line in the profile. */
static void judge_profiled(struct env_case *c)
{
    struct shk_row row = case_row(c);
    shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
    offer(c, &row);
    opinion_profile(c);
}

/* The same variable in the other place, the environment or a file, wins over this one. True when
 * this value does not count, which deserves a row only when the two differ. */
static bool judge_shadowed(struct env_case *c)
{
    bool from_env = strcmp(c->origin, "environment") == 0;
    if (from_env != shk_env_file_wins(c->ctx->facts, c->name))
        return false;
    char *key = shk_strf(from_env ? "env.file.%s" : "env.%s", c->name);
    struct shk_fact fact;
    bool found = key && shk_facts_get(c->ctx->facts, key, &fact) &&
                 fact.state == SHK_FACT_PRESENT && json_is_string(fact.value);
    free(key);
    const char *winner = found ? json_string_value(fact.value) : c->value;
    if (!found || strcmp(winner, c->value) == 0)
        return found;
    struct shk_row row = case_row(c);
    row.family = c->setting ? c->setting->family : row.family;
    shk_row_verdict(&row, SHK_WARN, SHK_DECLARED);
    shk_row_text(&row.expected, "%s", winner);
    if (from_env)
        shk_row_text(&row.why, "%s says %s, and NVSHMEM 3.6 and later take that",
                     *fact.source ? fact.source : a_file, winner);
    else
        shk_row_text(&row.why, "the environment says %s, which wins over %s", winner, c->origin);
    shk_row_text(&row.fix, "keep one of the two");
    row.diagnosis = "nccl-conf-file-override";
    offer(c, &row);
    return true;
}

static void judge_case(struct env_case *c, struct shk_findings *findings)
{
    c->setting = shk_config_setting(c->ctx->config, c->name);
    if (c->setting && !c->setting->variable)
        c->setting = NULL;
    c->holds = 1;
    c->line = shk_profile_line(c->ctx, c->name, &c->holds);
    if (judge_shadowed(c))
        ;
    else if (c->setting)
        judge_known(c);
    else if (c->line)
        judge_profiled(c);
    else
        judge_unknown(c);
    if (c->decided && c->best.verdict == SHK_PASS)
        shk_log_judge(c->ctx, c->name, c->value, &c->best);
    else if (c->decided && c->best.verdict == SHK_UNKNOWN)
        shk_log_refute(c->ctx, c->name, &c->best);
    if (c->decided)
        shk_row_end(findings, &c->best);
}

struct walk {
    const struct shk_check_context *ctx;
    struct shk_readers *readers;
    struct shk_findings *findings;
};

static int judge_fact(const struct shk_fact *fact, void *arg)
{
    const struct walk *walk = arg;
    bool file = strncmp(fact->key, "env.file.", 9) == 0;
    const char *name = fact->key + (file ? 9 : 4);
    if (fact->state != SHK_FACT_PRESENT || !json_is_string(fact->value) ||
        !shk_is_variable_name(name))
        return 0;
    struct env_case c = {.ctx = walk->ctx,
                         .readers = walk->readers,
                         .name = name,
                         .value = json_string_value(fact->value),
                         .key = fact->key,
                         .origin = !file           ? "environment"
                                   : *fact->source ? fact->source
                                                   : a_file};
    judge_case(&c, walk->findings);
    return 0;
}

bool shk_is_variable_name(const char *name)
{
    if (strncmp(name, "file.", 5) == 0 || !*name)
        return false;
    for (; *name; name++)
        if (*name == '.' || *name == '=')
            return false;
    return true;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_readers readers = {.facts = ctx->facts, .config = ctx->config};
    struct walk walk = {ctx, &readers, findings};
    (void)shk_facts_each(ctx->facts, "env.", judge_fact, &walk);
    shk_readers_clear(&readers);
    if (!shk_env_known(ctx->facts)) {
        struct shk_row row = shk_row_start(&shk_check_env_value, "environment");
        row.required = 1;
        struct shk_fact fact;
        shk_row_unread(findings, &row, ctx->facts,
                       shk_facts_get(ctx->facts, "probe.env.status", &fact) ? "probe.env.status"
                                                                            : "env.");
    }
}

const struct shk_check shk_check_env_value = {
    .id = "env.value",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Variables that are set: known, read by what is loaded, right value, fit for the node",
    .eval = eval,
    .doc =
        "Facts: env.*, env.file.*, fabric.params, nccl.env_names, rccl.env_names, "
        "plugin.candidates, net.ifaces, rdma.devices, path.*.\n"
        "Each variable gets one row, the worst of: value against the grammar of its catalogue row, "
        "names in it against the node, reader present in a version that reads it, the active "
        "profile, cost in production. A wrong value is FAIL when the catalogue says that it costs "
        "most of the performance or more, else WARN. An unknown name of a known family is WARN "
        "when a library here was asked and does not know it, UNKNOWN when nobody could be asked.\n"
        "A value that is as it should be is 'declared': it is set and read, and no more is known. "
        "It is 'effect' when what it names was found on the node (interfaces, devices, paths, a "
        "provider that libfabric offers).",
};
