#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/output.h"
#include "collectives/meet/key.h"
#include "config/config.h"
#include "core/run/dynlib.h"

#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

/* A closed standard descriptor would be handed to the next open(), and our output with it.
 * Read-only for all three: writing a report to a closed stdout stays an error. */
static void main_hold_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", O_RDONLY);
}

/* help and version go through the same write path: a full disk there is an error too */
static int main_print(const struct shk_options *options, const struct shk_command *command)
{
    struct shk_error err = {""};
    struct shk_output out;
    int rc = shk_output_begin(&out, &err);
    if (!rc && options->version)
        shk_version_print(out.stream);
    else if (!rc)
        shk_options_help(command, shk_how(options, true).width, out.stream);
    if (!rc)
        rc = shk_output_finish(&out, NULL, &err);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

int main(int argc, char **argv)
{
    struct shk_options options;
    const struct shk_command *command = NULL;
    struct shk_error err = {""};
    int rc;
    main_hold_descriptors();
    shk_config_install(NULL);
    shk_key_take();
    setlocale(LC_CTYPE, "");
    /* a parent that ignores SIGCHLD would take our children's exit status from us */
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on files is an error like a full disk */
    shk_commands_are(shk_command_table, shk_command_count);
    if (shk_options_parse(argc, argv, &options, &command, &err)) {
        shk_say("%s", err.text);
        rc = SHK_EXIT_USAGE;
    } else if (options.help || options.version) {
        bool whole = argc > 1 && argv[1][0] == '-';
        rc = main_print(&options, whole ? NULL : command);
    } else {
        shk_dynlib_guard(!options.trust_libraries);
        rc = command->run(&options, argc, argv);
    }
    shk_options_free(&options);
    return rc;
}
