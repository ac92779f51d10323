#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/history/print.h"
#include "cli/output.h"

#include <string.h>
#include <sys/stat.h>

/* A folder of documents becomes a history that nobody else sees. */
static int fleet_open(struct shk_session *session, const char *path, struct shk_history **history_p)
{
    struct shk_error err = {""};
    struct shk_collected count;
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    int rc = shk_history_open(history_p, folder ? ":memory:" : path, folder, &err);
    if (rc)
        return shk_history_fail(&err, rc);
    int code = folder ? shk_collect(session, *history_p, &path, 1, &count) : SHK_EXIT_OK;
    if (code == SHK_EXIT_OK && folder && !count.added) {
        shk_say("%s: no document here says of which node and when it is", path);
        code = SHK_EXIT_USAGE;
    }
    return code;
}

int shk_cmd_fleet(const struct shk_options *options, int argc, char **argv)
{
    const char *path =
        options->arguments.count ? options->arguments.items[0] : shk_history_place(options);
    struct shk_history *history = NULL;
    struct shk_session session;
    struct shk_error err = {""};
    json_t *document = NULL;
    long long until = 0;
    int rc = shk_session_begin(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_history_until(&session, &until);
    if (rc == SHK_EXIT_OK)
        rc = shk_history_outputs(options);
    if (rc == SHK_EXIT_OK)
        rc = fleet_open(&session, path, &history);
    if (rc == SHK_EXIT_OK && !(document = shk_fleet_state(history, until, &err))) {
        shk_say("%s", err.text);
        rc = SHK_EXIT_USAGE;
    }
    shk_history_close(history);
    bool drain = json_array_size(json_object_get(document, "drain")) > 0;
    if (rc == SHK_EXIT_OK)
        rc = shk_history_print(options, document);
    json_decref(document);
    shk_session_end(&session);
    return rc ? rc : drain ? SHK_EXIT_FAIL : SHK_EXIT_OK;
}
