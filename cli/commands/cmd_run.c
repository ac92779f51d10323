#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/session/session.h"

int shk_cmd_run(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    bool done = false;
    int kept;
    int rc = shk_session_begin(&session, options, argc, argv);
    session.past = options->history || options->baseline ? shk_history_verdict : NULL;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_join(&session, &done);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_outputs(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_node_files_begin(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_measure(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_load_logs(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_judge(&session);
    bool judged = rc == SHK_EXIT_OK && !done;
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_report(&session);
    if (rc != SHK_EXIT_USAGE && rc != SHK_EXIT_INTERNAL && judged &&
        (kept = shk_history_keep(&session)))
        rc = kept;
    shk_session_leave(&session, rc);
    shk_session_end(&session);
    return rc;
}
