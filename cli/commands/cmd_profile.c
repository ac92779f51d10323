#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/history/profile.h"
#include "cli/how.h"
#include "cli/output.h"
#include "cli/session/session.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* There is no other form than the YAML that it is. */
static const struct shk_form profile_forms[] = {{"yaml", NULL}};

static int profile_write(void *arg, const struct shk_form *form,
                         const struct shk_report_options *how, FILE *out)
{
    const struct shk_strbuf *text = arg;
    (void)form, (void)how;
    return fwrite(shk_strbuf_text(text), 1, text->len, out) == text->len ? 0 : -EIO;
}

int shk_cmd_profile(const struct shk_options *options, int argc, char **argv)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_session session;
    struct shk_error err = {""};
    int rc = shk_session_open(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK && !options->from) {
        shk_say("profile needs --from FILE...");
        rc = SHK_EXIT_USAGE;
    }
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->outputs.count; i++) {
        if (shk_output_check(options->outputs.items[i], &err)) {
            shk_say("%s", err.text);
            rc = SHK_EXIT_USAGE;
        }
    }
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load(&session, options->from);
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->arguments.count; i++)
        rc = shk_session_load(&session, options->arguments.items[i]);
    if (rc == SHK_EXIT_OK && session.fleet)
        rc = shk_session_name_fleet(&session);
    if (rc == SHK_EXIT_OK &&
        shk_profile_make(session.config, (const struct shk_facts *const *)session.facts,
                         session.nodes, SHK_VERSION, options->anonymize, &text, &err)) {
        shk_say("%s", err.text);
        rc = SHK_EXIT_USAGE;
    }
    if (rc == SHK_EXIT_OK)
        rc = shk_how_write_all(options, profile_forms, 1, "profile", profile_write, &text);
    shk_strbuf_free(&text);
    shk_session_end(&session);
    return rc;
}

/* config check FILE: a profile, or a folder as --config takes it. */
int shk_cmd_config(const struct shk_options *options, int argc, char **argv)
{
    const char *path = options->arguments.items[1];
    const struct shk_profile *profile = NULL;
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    struct stat st;
    (void)argc;
    (void)argv;
    if (strcmp(options->arguments.items[0], "check") != 0) {
        shk_say("config: there is no '%s'; did you mean: config check %s",
                options->arguments.items[0], path);
        return SHK_EXIT_USAGE;
    }
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = shk_config_load(&config, "/etc/shakedown", folder ? path : options->config_dir, &err);
    if (!rc && !folder)
        rc = shk_config_load_profile(config, path, &profile, &err);
    if (rc)
        shk_say("%s", err.text);
    else if (profile)
        shk_say("%s: a profile, %s: %zu signals, %zu settings, %zu facts, %zu floors", path,
                profile->name, profile->signals_count, profile->settings_count,
                profile->facts_count, profile->floors_count);
    else
        shk_say("%s: nothing is wrong", path);
    shk_config_free(config);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}
