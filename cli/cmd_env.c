#include "checks/check.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/shells.h"
#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

struct env_lines {
    const struct shk_session *session;
    const struct shk_facts *facts;
    const struct shk_shell *shell;
    FILE *out;
    size_t changes;
};

static const char *env_current(const struct shk_facts *facts, const char *name)
{
    char *key = shk_strf("env.%s", name);
    const char *value = key ? shk_facts_get_text(facts, key) : NULL;
    free(key);
    return value;
}

/* A comment may hold line breaks from YAML: keep each line a comment. */
static void env_comment(const struct env_lines *l, const char *fmt, ...) SHK_PRINTF(2, 3);
static void env_comment(const struct env_lines *l, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    char *save = NULL;
    for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        fprintf(l->out, "%s %s\n", l->shell->comment, line);
    free(text);
}

static bool env_accepted(const struct shk_profile_setting *line, const char *value)
{
    bool any = !line->accepted || !line->accepted[0];
    for (size_t i = 0; !any && line->accepted[i]; i++)
        if (strcmp(line->accepted[i], value) == 0)
            return true;
    return any;
}

static void env_set_line(struct env_lines *l, const struct shk_profile_setting *line,
                         const char *now)
{
    const char *value = line->accepted ? line->accepted[0] : NULL;
    env_comment(l, "%s%s%s (%s%s%s)", now ? "now " : "", now ? now : "", now ? ": change" : "add",
                shk_strength_name(line->strength), line->condition ? ", if " : "",
                line->condition ? line->condition : "");
    env_comment(l, "%s", line->why ? line->why : "");
    if (value)
        l->shell->set(l->out, line->name, value);
    else
        env_comment(l, "%s: choose a value, see: shakedown explain %s", line->name, line->name);
    l->changes++;
}

static void env_profile_line(struct env_lines *l, const struct shk_profile_setting *line)
{
    const char *now = env_current(l->facts, line->name);
    int holds = shk_condition_holds(line->condition, l->facts);
    if (holds == 0)
        return;
    if (line->must_be_unset) {
        if (!now)
            return;
        env_comment(l, "now %s: unset (%s)", now, shk_strength_name(line->strength));
        env_comment(l, "%s", line->why ? line->why : "");
        l->shell->unset(l->out, line->name);
        l->changes++;
        return;
    }
    if (now && env_accepted(line, now)) {
        if (l->session->options->verbose)
            env_comment(l, "%s=%s is as recommended", line->name, now);
        return;
    }
    if (!now && line->strength == SHK_OPTIONAL)
        return;
    env_set_line(l, line, now);
}

static bool env_in_profile(const struct shk_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->settings_count; i++)
        if (strcmp(profile->settings[i].name, name) == 0)
            return true;
    return false;
}

/* Variables that the checks found to be read by nothing, or worth nothing. */
static int env_dead_variable(const struct shk_fact *fact, void *arg)
{
    struct env_lines *l = arg;
    const char *name = fact->key + strlen("env.");
    const struct shk_setting *row = shk_config_setting(l->session->config, name);
    if (!row || env_in_profile(l->session->profile, name) || fact->state != SHK_FACT_PRESENT)
        return 0;
    if (row->kind != SHK_SETTING_FOLKLORE && row->kind != SHK_SETTING_RETIRED)
        return 0;
    env_comment(l, "%s: no library reads it%s%s", row->effect,
                row->replaced_by ? "; the real control is " : "",
                row->replaced_by ? row->replaced_by : "");
    l->shell->unset(l->out, name);
    l->changes++;
    return 0;
}

static void env_misspelt(struct env_lines *l)
{
    for (size_t i = 0; i < shk_findings_count(l->session->findings); i++) {
        const struct shk_finding *f = shk_findings_at(l->session->findings, i);
        if (!f->diagnosis || strcmp(f->diagnosis, "env-variable-misspelled") != 0 ||
            shk_config_setting(l->session->config, f->setting))
            continue;
        env_comment(l, "%s", f->why ? f->why : "read by nothing");
        if (f->fix)
            env_comment(l, "%s", f->fix);
        l->shell->unset(l->out, f->setting);
        l->changes++;
    }
}

static void env_print(struct env_lines *l)
{
    const struct shk_profile *profile = l->session->profile;
    env_comment(l, "profile %s: %s", profile->name, profile->title);
    for (size_t i = 0; i < profile->settings_count; i++)
        env_profile_line(l, &profile->settings[i]);
    shk_facts_each(l->facts, "env.", env_dead_variable, l);
    env_misspelt(l);
    if (!l->changes)
        env_comment(l, "nothing to change");
}

int shk_cmd_env(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    struct shk_error err = {""};
    struct shk_output out;
    struct env_lines lines = {.session = &session, .shell = shk_shell_find(options->shell)};
    if (!lines.shell) {
        shk_say("--shell: '%s' is not sh, csh or lua", options->shell);
        return SHK_EXIT_USAGE;
    }
    int rc = shk_session_begin(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_judge(&session);
    if (rc == SHK_EXIT_OK) {
        rc = shk_output_begin(&out, &err) ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
        if (rc == SHK_EXIT_OK) {
            lines.facts = session.facts[0];
            lines.out = out.stream;
            env_print(&lines);
            if (shk_output_finish(&out, NULL, &err))
                rc = SHK_EXIT_INTERNAL;
        }
        if (rc)
            shk_say("%s", err.text);
    }
    shk_session_end(&session);
    return rc;
}
