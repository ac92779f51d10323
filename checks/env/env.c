/* Every variable that is set: is it read, is its value right, does it fit node and profile? One row
 * per variable; the worst opinion wins. */
#include "checks/base/remedy.h"
#include "checks/env/envcase.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

static const char the_environment[] = "environment";
static const char a_file[] = "a configuration file"; /* when the fact does not say which */

static bool from_environment(const struct shk_env_case *c)
{
    return c->origin == the_environment;
}

struct shk_row shk_env_row(const struct shk_env_case *c)
{
    struct shk_row row = shk_row_begin(c->ctx, &shk_check_env_value, c->name);
    if (c->setting) {
        row.family = c->setting->family;
        row.source = c->setting->source;
    }
    row.fact = c->key;
    if (!c->value)
        return row;
    shk_row_was_read(&row);
    if (from_environment(c))
        shk_row_text(&row.observed, "%s", c->value);
    else
        shk_row_text(&row.observed, "%s (from %s)", c->value, c->origin);
    return row;
}

/* Worse verdicts win; n/a (nothing here reads it) wins over what could not be looked at; among
 * passes the stronger evidence. */
static int rank(const struct shk_row *row)
{
    static const int ranks[] = {[SHK_PASS] = 0, [SHK_NOTE] = 10, [SHK_UNKNOWN] = 20,
                                [SHK_NA] = 30,  [SHK_WARN] = 40, [SHK_FAIL] = 50};
    return ranks[row->verdict] + (SHK_EVIDENCE_COUNT - (int)row->evidence);
}

static void row_free(struct shk_row *row)
{
    free(row->observed);
    free(row->expected);
    free(row->why);
    shk_row_no_remedy(row);
    free(row->unread_why);
}

static void keep_doubt(struct shk_row *row, struct shk_row *loser)
{
    row->read += loser->read;
    if (loser->unread && !row->unread) {
        memcpy(row->unread_key, loser->unread_key, sizeof row->unread_key);
        row->unread_why = loser->unread_why;
        loser->unread_why = NULL;
    }
    row->unread += loser->unread;
}

void shk_env_offer(struct shk_env_case *c, struct shk_row *row)
{
    if (!c->decided) {
        c->best = *row;
        c->decided = true;
        return;
    }
    bool wins = rank(row) > rank(&c->best);
    struct shk_row loser = wins ? c->best : *row;
    if (wins)
        c->best = *row;
    keep_doubt(&c->best, &loser);
    row_free(&loser);
}

/* The other place where the variable may be set; the state of its fact. */
static enum shk_look look_elsewhere(const struct shk_env_case *c, struct shk_fact *fact)
{
    char *key = shk_strf(from_environment(c) ? "env.file.%s" : "env.%s", c->name);
    enum shk_look look = key ? shk_look(c->ctx->facts, key, fact) : SHK_LOOK_MISSING;
    free(key);
    if (look == SHK_LOOK_PRESENT &&
        (!json_is_string(fact->value) || shk_env_withheld(json_string_value(fact->value))))
        return SHK_LOOK_FAILED;
    return look;
}

/* The same variable in the other place, the environment or a file, wins over this one. True when
 * this value does not count, which deserves a row only when the two differ. */
static bool judge_shadowed(struct shk_env_case *c)
{
    struct shk_fact fact;
    if (from_environment(c) != shk_env_file_wins(c->ctx->facts, c->name) ||
        look_elsewhere(c, &fact) != SHK_LOOK_PRESENT)
        return false;
    const char *winner = json_string_value(fact.value);
    if (strcmp(winner, c->value) == 0)
        return true;
    struct shk_row row = shk_env_row(c);
    shk_row_verdict(&row, SHK_WARN, SHK_DECLARED);
    shk_row_text(&row.expected, "%s", winner);
    if (from_environment(c))
        shk_row_text(&row.why, "%s says %s, and NVSHMEM 3.6 and later take that",
                     *fact.source ? fact.source : a_file, winner);
    else
        shk_row_text(&row.why, "the environment says %s, which wins over %s", winner, c->origin);
    shk_row_fix(&row, "set-in-two-places", "name", c->name, NULL);
    row.diagnosis = "nccl-conf-file-override";
    shk_env_offer(c, &row);
    return true;
}

/* A withheld value in the other place may win over this one. */
static void doubt_elsewhere(struct shk_env_case *c)
{
    struct shk_fact fact;
    if (from_environment(c) == shk_env_file_wins(c->ctx->facts, c->name) &&
        look_elsewhere(c, &fact) == SHK_LOOK_FAILED)
        shk_row_lacks(&c->best, c->key, "%s is also set in %s, where it could not be read", c->name,
                      from_environment(c) ? "a configuration file" : "the environment");
}

static bool mentions(const struct shk_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->settings_count; i++)
        if (strcmp(profile->settings[i].name, name) == 0)
            return true;
    return false;
}

/* When the profile is not certain, those that may be the right one count, too. */
static void doubt_profile(struct shk_env_case *c)
{
    size_t count;
    const struct shk_profile *profiles = shk_config_profiles(c->ctx->config, &count);
    if (!c->ctx->profile_doubt)
        return;
    for (size_t i = 0; i < count; i++)
        if (mentions(&profiles[i], c->name)) {
            shk_read_profile(&c->best);
            return;
        }
}

static void find_rules(struct shk_env_case *c)
{
    c->setting = shk_config_setting(c->ctx->config, c->name);
    if (c->setting && !c->setting->variable)
        c->setting = NULL;
    c->holds = 1;
    c->line = shk_profile_line(c->ctx, c->name, &c->holds);
}

static void judge_case(struct shk_env_case *c, struct shk_findings *findings)
{
    if (judge_shadowed(c))
        ;
    else if (c->setting)
        shk_env_judge_known(c);
    else if (c->line)
        shk_env_judge_profiled(c);
    else
        shk_env_judge_unknown(c);
    if (!c->decided)
        return;
    if (c->best.verdict == SHK_PASS)
        shk_log_judge(c->ctx, c->name, c->value, &c->best);
    else if (c->best.verdict == SHK_UNKNOWN)
        shk_log_refute(c->ctx, c->name, &c->best);
    doubt_elsewhere(c);
    doubt_profile(c);
    shk_row_end(findings, &c->best);
}

/* It is set, to what is not known: the row stays, and says so. */
static void judge_unread(struct shk_env_case *c, struct shk_findings *findings)
{
    const char *value = NULL;
    const struct shk_name *family = shk_name_family(c->ctx->config, c->name);
    if (!c->setting && !c->line && !family)
        return;
    struct shk_row row = shk_env_row(c);
    if (!c->setting && family)
        row.family = family->family;
    row.required = c->line && c->line->strength == SHK_REQUIRED;
    if (shk_read_text(&row, c->key, &value) == SHK_LOOK_PRESENT)
        shk_row_lacks(&row, c->key, "the value of %s was withheld, so it was not judged", c->name);
    shk_row_end(findings, &row);
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
    if (fact->state == SHK_FACT_ABSENT || !shk_is_variable_name(name))
        return 0;
    struct shk_env_case c = {.ctx = walk->ctx,
                             .readers = walk->readers,
                             .name = name,
                             .key = fact->key,
                             .origin = !file           ? the_environment
                                       : *fact->source ? fact->source
                                                       : a_file};
    find_rules(&c);
    if (fact->state == SHK_FACT_PRESENT && json_is_string(fact->value) &&
        !shk_env_withheld(json_string_value(fact->value)))
        c.value = json_string_value(fact->value);
    if (c.value)
        judge_case(&c, walk->findings);
    else
        judge_unread(&c, walk->findings);
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
        const char *status = NULL;
        struct shk_row row = shk_row_begin(ctx, &shk_check_env_value, "environment");
        row.required = 1;
        if (shk_look_text(ctx->facts, "probe.env.status", &status) == SHK_LOOK_PRESENT)
            shk_row_lacks(&row, "probe.env.status", "the environment was not read: %s", status);
        else
            shk_row_lacks(&row, "probe.env.status", "the environment was not read");
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_env_value = {
    .id = "env.value",
    .diagnosis = "env-value-unknown",
    .scope = SHK_SCOPE_LAUNCH,
    .family = "environment",
    .title = "Variables that are set: known, read by a loaded library, with a valid value that "
             "suits the node",
    .eval = eval,
    .doc =
        "Facts: env.*, env.file.*, fabric.params, nccl.env_names, rccl.env_names, "
        "plugin.candidates, net.ifaces, rdma.devices, path.*.\n"
        "Each variable gets one row, the worst of: value against the grammar of its catalogue row, "
        "names in it against the node, reader present in a version that reads it, the active "
        "profile, cost in production. A value is judged by what comes of it: FAIL when the process "
        "ends, or when what the library makes of it costs most of the performance or more; WARN "
        "when the default stays or less is lost; a note when it costs nothing (names that are "
        "deprecated but read, features switched off that are not there, log levels that cost a "
        "few lines). An unknown name of a known family is WARN when a library here was asked and "
        "does not know it, UNKNOWN when nobody could be asked. A value that was withheld or could "
        "not be read is UNKNOWN.\n"
        "A value that is as it should be is 'declared': it is set and read, and no more is known. "
        "It is 'effect' when what it names was found on the node (interfaces, devices, paths, a "
        "provider that libfabric offers).",
};
