#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session/session.h"
#include "core/run/stop.h"

#include <errno.h>

static int probe_write(const struct shk_facts *facts, const char *path)
{
    struct shk_error err = {""};
    struct shk_output out;
    json_t *doc = shk_facts_to_json(facts);
    int rc = doc ? shk_output_begin(&out, &err) : shk_error_sys(&err, ENOMEM, "facts");
    if (!rc) {
        json_dumpf(doc, out.stream, JSON_INDENT(2) | JSON_SORT_KEYS);
        fputc('\n', out.stream);
        rc = shk_output_finish(&out, path, &err);
    }
    json_decref(doc);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

/* To every -o; what could not be written to any file goes to stdout. */
static int probe_outputs(const struct shk_facts *facts, const struct shk_texts *outputs)
{
    int rc = SHK_EXIT_OK;
    for (size_t i = 0; i < outputs->count; i++)
        if (probe_write(facts, outputs->items[i]))
            rc = SHK_EXIT_INTERNAL;
    if (!outputs->count)
        return probe_write(facts, NULL);
    if (rc)
        (void)probe_write(facts, NULL);
    return rc;
}

int shk_cmd_probe(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    struct shk_error err = {""};
    int rc = shk_session_begin(&session, options, argc, argv);
    for (size_t i = 0; rc == SHK_EXIT_OK && i < options->outputs.count; i++) {
        if (shk_output_check(options->outputs.items[i], &err)) {
            shk_say("%s", err.text);
            rc = SHK_EXIT_USAGE;
        }
    }
    shk_stop_catch();
    if (rc == SHK_EXIT_OK)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK)
        shk_session_no_collective(&session, "not run: facts only");
    if (rc == SHK_EXIT_OK)
        rc = shk_session_exit(probe_outputs(session.facts[0], &options->outputs));
    shk_session_end(&session);
    return rc;
}
