#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/session/session.h"

int shk_cmd_check(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    int kept;
    int rc = shk_session_begin(&session, options, argc, argv);
    session.past = options->history || options->baseline ? shk_history_verdict : NULL;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_outputs(&session);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_node_files_begin(&session);
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->arguments.count; i++)
        rc = shk_session_load(&session, options->arguments.items[i]);
    if (rc == SHK_EXIT_OK)
        shk_session_one_per_host(&session);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_name_fleet(&session);
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->env_files.count; i++)
        rc = shk_session_load_env(&session, options->env_files.items[i]);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load_logs(&session);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_judge(&session);
    bool judged = rc == SHK_EXIT_OK;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_report(&session);
    if (rc != SHK_EXIT_USAGE && rc != SHK_EXIT_INTERNAL && judged &&
        (kept = shk_history_keep(&session)))
        rc = kept;
    shk_session_end(&session);
    return rc;
}
