/* shakedown env: what to add, change or unset, in the syntax of a shell. The verdicts are those of
 * the checks; this only writes their fixes down as lines. */
#include "checks/base/row.h"
#include "cli/commands/commands.h"
#include "cli/commands/shells.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>

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
    const struct shk_check_context ctx = {.profile = l->session->profile, .facts = l->facts};
    return shk_profile_line(&ctx, name, NULL);
}

static void env_set(struct env_lines *l, const char *name, const char *value, bool literal)
{
    if (!shk_shell_set(l->out, l->shell, name, value, literal))
        env_comment(l, "%s: the value cannot be written as a line of this shell", name);
    env_mark(l, name);
    l->changes++;
}

static void env_unset(struct env_lines *l, const char *name)
{
    shk_shell_unset(l->out, l->shell, name);
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
    if (value && !shk_shell_set(l->out, l->shell, line->name, value, false))
        env_comment(l, "%s: the value cannot be written as a line of this shell", line->name);
    env_mark(l, line->name);
    l->changes++;
}

static void env_apply(struct env_lines *l, const json_t *edit)
{
    const char *name = json_string_value(json_object_get(edit, "name"));
    const char *value = json_string_value(json_object_get(edit, "value"));
    if (!value)
        env_unset(l, name);
    else
        env_set(l, name, value, !json_is_true(json_object_get(edit, "expands")));
}

static const char *env_edit_name(const json_t *edit)
{
    return json_string_value(json_object_get(edit, "name"));
}

/* What the fix of a row changes, but for what has a line already. A variable besides the row's own
 * that is set stays as it is. False when it changes nothing. */
static bool env_apply_all(struct env_lines *l, const struct shk_finding *f)
{
    size_t i, applied = 0;
    json_t *edit;
    json_array_foreach(f->edits, i, edit)
    {
        const char *name = env_edit_name(edit);
        bool own = strcmp(name, f->setting) == 0;
        bool misspelt = f->diagnosis && strcmp(f->diagnosis, "env-variable-misspelled") == 0;
        if (env_is_done(l, name) || (!own && misspelt && env_current(l->facts, name)))
            continue;
        env_apply(l, edit);
        applied++;
    }
    return applied > 0;
}

/* Words, and a fix that is no change of the environment. */
static void env_advise(const struct env_lines *l, const struct shk_finding *f)
{
    if (f->fix && !f->edits)
        env_comment(l, "%s: %s", f->setting, f->fix);
    if (f->advice)
        env_comment(l, "%s: %s", f->setting, f->advice);
    if (!f->fix && !f->advice)
        env_comment(l, "%s: see shakedown explain", f->setting);
}

/* A variable that is set, and wrongly. */
static void env_wrong(struct env_lines *l, const struct shk_finding *f)
{
    const char *now = env_current(l->facts, f->setting);
    if (!now || env_is_done(l, f->setting))
        return;
    env_comment(l, "now %s=%s", f->setting, now);
    env_comment(l, "%s", f->why ? f->why : "");
    if (f->edits)
        env_apply_all(l, f);
    if (!f->edits || f->advice)
        env_advise(l, f);
    if (env_is_done(l, f->setting))
        return;
    const struct shk_profile_setting *line = env_line_of(l, f->setting);
    if (env_value(line) && !line->must_be_unset) {
        env_set(l, f->setting, env_value(line), false);
        return;
    }
    env_mark(l, f->setting);
    l->changes++;
}

/* Settings that work against each other: the fix says which one goes. Nothing when it has gone. */
static void env_conflict(struct env_lines *l, const struct shk_finding *f)
{
    size_t i, open = 0;
    json_t *edit;
    json_array_foreach(f->edits, i, edit) open += !env_is_done(l, env_edit_name(edit));
    if (f->edits && !open)
        return;
    env_comment(l, "%s", f->observed ? f->observed : f->setting);
    env_comment(l, "%s", f->why ? f->why : "");
    l->changes++;
    if (!env_apply_all(l, f) || f->advice)
        env_advise(l, f);
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
