#include "cli/options.h"

#include <string.h>

static void help_option(const struct shk_option *option, FILE *out)
{
    char left[64];
    snprintf(left, sizeof left, "%c%c%c --%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? ',' : ' ', option->name,
             option->arg ? " " : "", option->arg ? option->arg : "");
    fprintf(out, "  %-32s %s%s%s%s\n", left, option->doc, option->initial ? " [" : "",
            option->initial ? option->initial : "", option->initial ? "]" : "");
}

static void help_options(const struct shk_command *command, FILE *out)
{
    static const char *const headings[SHK_GROUP_COUNT] = {
        [SHK_GROUP_TEST] = "What is tested",
        [SHK_GROUP_INPUT] = "What is read",
        [SHK_GROUP_REPORT] = "What is written",
        [SHK_GROUP_GENERAL] = "General",
    };
    size_t count;
    const struct shk_option *table = shk_option_table(&count);
    for (int group = 0; group < SHK_GROUP_COUNT; group++) {
        bool first = true;
        for (size_t i = 0; i < count; i++) {
            if ((int)table[i].group != group || !shk_option_applies(&table[i], command))
                continue;
            if (first)
                fprintf(out, "%s\n", headings[group]);
            help_option(&table[i], out);
            first = false;
        }
    }
}

static void help_program(FILE *out)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    fputs("Usage: shakedown [COMMAND] [OPTION]... [ARGUMENT]...\n"
          "Tells whether a node is fit for GPU collectives, and names the line to change.\n\n"
          "Commands (run is the default; `shakedown COMMAND --help` lists its options):\n",
          out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  %-10s %-22s %s\n", commands[i].name, commands[i].arguments,
                commands[i].doc);
    fputs("\nExamples:\n"
          "  srun --mpi=pmix -N4 --ntasks-per-node=8 shakedown -o report.md   before a job\n"
          "  shakedown --quick                    this node, in a second or two, no GPU context\n"
          "  shakedown diagnose slurm-1234.out    why did that job fail?\n"
          "  shakedown hang                       which rank holds the job up that runs here?\n"
          "  shakedown check nodes/*.json         saved facts of many nodes, on any machine\n"
          "  shakedown explain SETTING            what one setting does\n",
          out);
}

static const struct shk_command *help_run(void)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(commands[i].name, "run") == 0)
            return &commands[i];
    return &commands[0];
}

void shk_options_help(const struct shk_command *command, FILE *out)
{
    if (!command) {
        help_program(out);
        command = help_run();
        fputs("\nOptions of run:\n", out);
    } else {
        fprintf(out, "Usage: shakedown %s [OPTION]... %s\n%s\n\nOptions:\n", command->name,
                command->arguments, command->doc);
    }
    help_options(command, out);
    if (command->exit) {
        fprintf(out, "\nExit: %s.\n", command->exit);
        return;
    }
    fputs("\nExit: 0 nothing failed, 1 something failed, 2 usage or configuration error,\n"
          "3 what the command line names could not be tested (--fail-on unknown: nor a required\n"
          "check), 4 internal or output error.\n",
          out);
}
