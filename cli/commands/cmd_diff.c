#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/session/output.h"
#include "cli/session/session.h"
#include "core/text/strbuf.h"
#include "reports/diff/diff.h"

#include <errno.h>
#include <string.h>

static const struct shk_diff_format *diff_format(const char *name, const char *path)
{
    size_t n;
    const struct shk_diff_format *all = shk_diff_formats(&n);
    for (size_t i = 0; i < n; i++)
        if (name ? strcmp(all[i].name, name) == 0 : shk_how_extension(path, all[i].extension))
            return &all[i];
    return name ? NULL : &all[0];
}

static int diff_bad_format(const char *name)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    size_t n;
    const struct shk_diff_format *all = shk_diff_formats(&n);
    for (size_t i = 0; i < n; i++)
        shk_strbuf_printf(&names, "%s%s", i ? ", " : "", all[i].name);
    shk_say("--format: '%s' is not one of %s", name, shk_strbuf_text(&names));
    shk_strbuf_free(&names);
    return SHK_EXIT_USAGE;
}

static int diff_write(const struct shk_options *options, const struct shk_diff_input *input,
                      const char *path, bool *found_p)
{
    struct shk_error err = {""};
    struct shk_output out;
    struct shk_report_options how = shk_how(options, !path);
    int rc = shk_output_begin(&out, &err);
    if (!rc) {
        rc = shk_diff_report(input, diff_format(options->format, path), &how, out.stream, found_p);
        if (rc)
            shk_error_sys(&err, -rc, "diff");
        if (rc)
            shk_output_discard(&out);
        else
            rc = shk_output_finish(&out, path, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

/* Extensions and places of the outputs, before the work. */
static int diff_outputs(const struct shk_options *options)
{
    const char *extensions[8];
    struct shk_error err = {""};
    size_t n, known = 0;
    const struct shk_diff_format *all = shk_diff_formats(&n);
    int rc = 0;
    for (size_t i = 0; i < n && known < sizeof extensions / sizeof *extensions; i++)
        if (all[i].extension)
            extensions[known++] = all[i].extension;
    for (size_t i = 0; !rc && i < options->outputs.count; i++) {
        const char *path = options->outputs.items[i];
        rc = options->format ? 0 : shk_how_known(path, extensions, known, &err);
        rc = rc ? rc : shk_output_check(path, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}

int shk_cmd_diff(const struct shk_options *options, int argc, char **argv)
{
    const char *const *paths = options->arguments.items;
    struct shk_session session;
    bool found = false;
    if (options->format && !diff_format(options->format, NULL))
        return diff_bad_format(options->format);
    int rc = shk_session_open(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = diff_outputs(options);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load(&session, paths[0]);
    size_t nodes_a = session.nodes;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load(&session, paths[1]);
    const struct shk_facts *const *facts = (const struct shk_facts *const *)session.facts;
    struct shk_diff_input input = {
        .version = SHK_VERSION,
        .command = session.command_line,
        .name_a = paths[0],
        .name_b = paths[1],
        .a = facts,
        .nodes_a = nodes_a,
        .nodes_b = session.nodes - nodes_a,
        .all = options->all,
    };
    if (rc == SHK_EXIT_OK) {
        input.b = facts + nodes_a;
        input.rules = shk_config_diff(session.config, &input.rules_count);
    }
    const struct shk_texts *outputs = &options->outputs;
    for (size_t i = 0; rc == SHK_EXIT_OK && i < outputs->count; i++)
        rc = diff_write(options, &input,
                        strcmp(outputs->items[i], "-") == 0 ? NULL : outputs->items[i], &found);
    if (rc == SHK_EXIT_OK && !outputs->count)
        rc = diff_write(options, &input, NULL, &found);
    shk_session_end(&session);
    return rc ? rc : found ? SHK_EXIT_FAIL : SHK_EXIT_OK;
}
