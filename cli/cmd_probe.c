#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/session.h"

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

int shk_cmd_probe(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    int rc = shk_session_begin(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_gather(&session);
    if (rc == SHK_EXIT_OK)
        shk_session_no_collective(&session, "not run: facts only");
    const struct shk_texts *outputs = &options->outputs;
    for (size_t i = 0; rc == SHK_EXIT_OK && i < outputs->count; i++)
        rc = probe_write(session.facts[0], outputs->items[i]);
    if (rc == SHK_EXIT_OK && !outputs->count)
        rc = probe_write(session.facts[0], NULL);
    shk_session_end(&session);
    return rc;
}
