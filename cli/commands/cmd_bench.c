#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/session/session.h"

int shk_cmd_bench(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    bool done = false;
    int rc = shk_session_begin(&session, options, argc, argv);
    session.collectives_only = true;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_join(&session, &done);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_outputs(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_measure(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_judge(&session);
    if (rc == SHK_EXIT_OK && !done)
        rc = shk_session_report(&session);
    shk_session_leave(&session, rc);
    shk_session_end(&session);
    return rc;
}
