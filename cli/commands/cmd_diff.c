#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/session/session.h"
#include "reports/diff/diff.h"

struct diff_task {
    struct shk_diff_input input;
    bool found;
};

static int diff_write(void *arg, const struct shk_form *form, const struct shk_report_options *how,
                      FILE *out)
{
    struct diff_task *task = arg;
    return shk_diff_report(&task->input, form, how, out, &task->found);
}

int shk_cmd_diff(const struct shk_options *options, int argc, char **argv)
{
    const char *const *paths = options->arguments.items;
    struct shk_session session;
    size_t forms_count;
    const struct shk_form *forms = shk_diff_forms(&forms_count);
    int rc = shk_session_open(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = shk_how_outputs(options, forms, forms_count);
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load(&session, paths[0]);
    size_t nodes_a = session.nodes;
    if (rc == SHK_EXIT_OK)
        rc = shk_session_load(&session, paths[1]);
    const struct shk_facts *const *facts = (const struct shk_facts *const *)session.facts;
    struct diff_task task = {.input = {
                                 .version = SHK_VERSION,
                                 .command = session.command_line,
                                 .name_a = paths[0],
                                 .name_b = paths[1],
                                 .a = facts,
                                 .nodes_a = nodes_a,
                                 .nodes_b = session.nodes - nodes_a,
                                 .all = options->all,
                             }};
    if (rc == SHK_EXIT_OK) {
        task.input.b = facts + nodes_a;
        task.input.rules = shk_config_diff(session.config, &task.input.rules_count);
        rc = shk_how_write_all(options, forms, forms_count, "diff", diff_write, &task);
    }
    shk_session_end(&session);
    return rc ? rc : task.found ? SHK_EXIT_FAIL : SHK_EXIT_OK;
}
