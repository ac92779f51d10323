#include "checks/base/check.h"
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/run/stop.h"
#include "core/text/strbuf.h"

#include <stdlib.h>

/* What a whole reading would have come to is not known when it was cut short. */
static void diagnose_cut(struct shk_session *session)
{
    char *whole = session->headline;
    if (!session->interrupted || !whole)
        return;
    session->headline = shk_strf("%s; interrupted by %s: what was not read by then is not known",
                                 whole, session->interrupted);
    session->answer = session->answer == SHK_PASS ? SHK_UNKNOWN : session->answer;
    free(whole);
}

int shk_cmd_diagnose(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    int rc = shk_session_begin(&session, options, argc, argv);
    session.part = true;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_outputs(&session);
    if (rc == SHK_EXIT_OK && !options->log_files.count && !options->env_files.count &&
        !options->facts_files.count) {
        shk_say("diagnose: nothing to look at; give a log (- for stdin), --env or --facts");
        rc = SHK_EXIT_USAGE;
    }
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->facts_files.count; i++)
        rc = shk_session_load(&session, options->facts_files.items[i]);
    if (rc == SHK_EXIT_OK)
        shk_session_one_per_host(&session);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_name_fleet(&session);
    if (rc == SHK_EXIT_OK && !session.nodes)
        rc = shk_session_blank(&session);
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->env_files.count; i++)
        rc = shk_session_load_env(&session, options->env_files.items[i]);
    if (rc == SHK_EXIT_OK) {
        shk_stop_catch(); /* what was read by then is judged */
        rc = shk_session_load_logs(&session);
    }
    session.known_only = !options->verbose;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_judge(&session);
    if (rc == SHK_EXIT_OK)
        session.answer = shk_diagnose_answer(session.config, &session.diagnoses, &session.coverage,
                                             session.facts[0], &session.headline);
    diagnose_cut(&session);
    if (rc == SHK_EXIT_OK && !session.headline)
        rc = SHK_EXIT_INTERNAL;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_report(&session);
    shk_session_end(&session);
    return rc;
}
