/* shakedown env: what to add, change or unset, in the syntax of a shell. The verdicts are those of
 * the checks; this only writes their fixes down as lines. */
#include "checks/base/check.h"
#include "cli/commands/commands.h"
#include "cli/commands/shells.h"
#include "cli/exit_code.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct env_lines {
    const struct shk_session *session;
    const struct shk_facts *facts;
    const struct shk_shell *shell;
    FILE *out;
    const char **done; /* names that have a line; a later opinion about them is only a comment */
    size_t done_count, changes;
    bool outside_job;
};

static const char *env_current(const struct shk_facts *facts, const char *name)
{
    char *key = shk_strf("env.%s", name);
    const char *value = key ? shk_facts_get_text(facts, key) : NULL;
    free(key);
    return value;
}

/* A comment may hold line breaks from YAML or of a value: keep each line a comment. */
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

static bool env_is_done(const struct env_lines *l, const char *name)
{
    for (size_t i = 0; i < l->done_count; i++)
        if (strcmp(l->done[i], name) == 0)
            return true;
    return false;
}

/* `name` lives as long as the findings and the catalogue. */
static void env_mark(struct env_lines *l, const char *name)
{
    const char **done = realloc(l->done, (l->done_count + 1) * sizeof *done);
    if (!done)
        return; /* a line too many at worst */
    l->done = done;
    l->done[l->done_count++] = name;
}

static const struct shk_profile_setting *env_line_of(const struct env_lines *l, const char *name)
{
    const struct shk_profile *profile = l->session->profile;
    const struct shk_profile_setting *doubtful = NULL;
    for (size_t i = 0; i < profile->settings_count; i++) {
        const struct shk_profile_setting *line = &profile->settings[i];
        if (strcmp(line->name, name) != 0)
            continue;
        int holds = shk_condition_holds(line->condition, l->facts);
        if (holds > 0)
            return line;
        if (holds < 0 && !doubtful)
            doubtful = line;
    }
    return doubtful;
}

static void env_set(struct env_lines *l, const char *name, const char *value, bool literal)
{
    (literal ? l->shell->set_literal : l->shell->set)(l->out, name, value);
    env_mark(l, name);
    l->changes++;
}

static void env_unset(struct env_lines *l, const char *name)
{
    l->shell->unset(l->out, name);
    env_mark(l, name);
    l->changes++;
}

static const char *env_value(const struct shk_profile_setting *line)
{
    return line && line->accepted ? line->accepted[0] : NULL;
}

/* A variable that the profile wants and nobody set. */
static void env_missing(struct env_lines *l, const struct shk_finding *f)
{
    const struct shk_profile_setting *line = env_line_of(l, f->setting);
    const char *value = env_value(line);
    if (!line || line->must_be_unset || line->strength == SHK_OPTIONAL)
        return;
    bool doubt = f->verdict == SHK_UNKNOWN;
    env_comment(l, "add %s (%s%s%s%s)", line->name, shk_line_strength(line),
                line->condition ? ", if " : "", line->condition ? line->condition : "",
                doubt ? ", which is not known here" : "");
    env_comment(l, "%s", line->why ? line->why : "");
    if (!value)
        env_comment(l, "choose a value, see: shakedown explain %s", line->name);
    else if (doubt)
        fprintf(l->out, "%s ", l->shell->comment);
    if (value)
        l->shell->set(l->out, line->name, value);
    env_mark(l, line->name);
    l->changes++;
}

static size_t env_name_len(const char *text)
{
    static const char name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    return strspn(text, name);
}

/* "export NAME=VALUE" about this very name: the value (free()), without the quotes around it. */
static char *env_fix_value(const char *fix, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(fix, "export ", 7) != 0 || strncmp(fix + 7, name, len) != 0 || fix[7 + len] != '=')
        return NULL;
    const char *start = fix + 8 + len;
    size_t n = strlen(start);
    bool quotes = n > 1 && start[0] == '"' && start[n - 1] == '"';
    return quotes ? strndup(start + 1, n - 2) : strdup(start);
}

/* "unset NAME", alone or before a remark. */
static bool env_fix_unsets(const char *fix, const char *name)
{
    size_t len = strlen(name);
    return strncmp(fix, "unset ", 6) == 0 && strncmp(fix + 6, name, len) == 0 &&
           env_name_len(fix + 6) == len;
}

/* One line of a fix that is a command about `name`: written down. */
static bool env_apply(struct env_lines *l, const char *fix, const char *name)
{
    char *value = env_fix_value(fix, name);
    const char *of_profile = env_value(env_line_of(l, name));
    if (value)
        env_set(l, name, value, !of_profile || strcmp(value, of_profile) != 0);
    else if (env_fix_unsets(fix, name))
        env_unset(l, name);
    else
        return false;
    free(value);
    return true;
}

/* A variable that is set, and wrongly. */
static void env_wrong(struct env_lines *l, const struct shk_finding *f)
{
    const char *now = env_current(l->facts, f->setting), *fix = f->fix ? f->fix : "";
    if (!now || env_is_done(l, f->setting))
        return;
    env_comment(l, "now %s=%s", f->setting, now);
    env_comment(l, "%s", f->why ? f->why : "");
    if (f->diagnosis && strcmp(f->diagnosis, "env-variable-misspelled") == 0) {
        const struct shk_setting *row = shk_config_setting(l->session->config, f->setting);
        const char *right = row ? row->replaced_by : f->expected;
        env_unset(l, f->setting);
        if (right && *right && right[env_name_len(right)] == '\0' &&
            !env_current(l->facts, right) && !env_is_done(l, right))
            env_set(l, right, now, true);
        return;
    }
    if (env_apply(l, fix, f->setting)) {
        const char *remark = strstr(fix, "; ");
        if (remark && strncmp(fix, "unset ", 6) == 0)
            env_comment(l, "%s", remark + 2);
        return;
    }
    const struct shk_profile_setting *line = env_line_of(l, f->setting);
    if (env_value(line) && !line->must_be_unset) {
        env_set(l, f->setting, env_value(line), false);
        return;
    }
    env_comment(l, "%s: %s", f->setting, *fix ? fix : "see: shakedown explain");
    if (strncasecmp(fix, "unset it", 8) == 0) {
        env_unset(l, f->setting);
        return;
    }
    env_mark(l, f->setting);
    l->changes++;
}

/* The setting that a line of a fix is a command about, NULL. */
static const struct shk_setting *env_fixes(const struct env_lines *l, const char *fix)
{
    const char *at = strncmp(fix, "export ", 7) == 0  ? fix + 7
                     : strncmp(fix, "unset ", 6) == 0 ? fix + 6
                                                      : "";
    char *name = strndup(at, env_name_len(at));
    const struct shk_setting *row = name ? shk_config_setting(l->session->config, name) : NULL;
    free(name);
    return row;
}

/* Settings that work against each other: the fix says which one goes. Nothing when it has gone. */
static void env_conflict(struct env_lines *l, const struct shk_finding *f)
{
    char *copy = strdup(f->fix ? f->fix : ""), *save = NULL;
    bool said = false;
    for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        const struct shk_setting *row = env_fixes(l, line);
        if (row && env_is_done(l, row->name))
            continue;
        if (!said) {
            env_comment(l, "%s", f->observed ? f->observed : f->setting);
            env_comment(l, "%s", f->why ? f->why : "");
            said = true;
            l->changes++;
        }
        if (!row || !env_apply(l, line, row->name))
            env_comment(l, "%s", line);
    }
    free(copy);
}

static void env_each(struct env_lines *l, const char *id,
                     void (*write)(struct env_lines *, const struct shk_finding *), bool doubt)
{
    const struct shk_findings *findings = l->session->findings;
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        bool counts = f->verdict == SHK_FAIL || f->verdict == SHK_WARN ||
                      (doubt && f->verdict == SHK_UNKNOWN);
        if (strcmp(f->id, id) == 0 && counts)
            write(l, f);
    }
}

static void env_print(struct env_lines *l)
{
    const struct shk_profile *profile = l->session->profile;
    env_comment(l, "profile %s: %s", profile->name, profile->title);
    if (l->outside_job)
        env_comment(l, "for a job on several nodes; run it inside the job for exactly that job");
    env_each(l, "env.profile", env_missing, true);
    env_each(l, "env.value", env_wrong, false);
    env_each(l, "env.conflict", env_conflict, false);
    if (!l->changes)
        env_comment(l, "nothing to change");
}

/* Outside a job nobody knows how many nodes it will have: the lines are for several. */
static bool env_assume_job(struct shk_facts *facts)
{
    const char *launcher = shk_facts_get_text(facts, "job.launcher");
    if (shk_facts_get_text(facts, "job.scheduler") || !launcher || strcmp(launcher, "local") != 0)
        return false;
    return shk_facts_int(facts, "job.nodes", 2, NULL, "assumed for a job to come") == 0;
}

static int env_write(struct env_lines *l)
{
    struct shk_error err = {""};
    struct shk_output out;
    int rc = shk_output_begin(&out, &err);
    if (!rc) {
        l->facts = l->session->facts[0];
        l->out = out.stream;
        env_print(l);
        free(l->done);
        rc = shk_output_finish(&out, NULL, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

int shk_cmd_env(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    struct env_lines lines = {.session = &session, .shell = shk_shell_find(options->shell)};
    if (!lines.shell) {
        shk_say("--shell: '%s' is not sh, csh or lua", options->shell);
        return SHK_EXIT_USAGE;
    }
    int rc = shk_session_begin(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK) {
        lines.outside_job = env_assume_job(session.facts[0]);
        rc = shk_session_judge(&session);
    }
    if (rc == SHK_EXIT_OK)
        rc = env_write(&lines);
    shk_session_end(&session);
    return rc;
}
