#include "cli/options.h"
#include "core/text/strbuf.h"
#include "reports/text/wrap.h"

#include <stdlib.h>
#include <string.h>

struct help {
    FILE *out;
    unsigned width;
};

/* Two columns; what does not fit the second goes on below its start. */
static void help_row(const struct help *h, const char *left, const char *text)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    struct shk_wrap wrap = {.width = h->width, .indent = 2, .lead = left};
    shk_wrap_put(&line, &wrap, text);
    fputs(shk_strbuf_text(&line), h->out);
    shk_strbuf_free(&line);
}

static void help_option(const struct help *h, const struct shk_option *option)
{
    char word[64], left[72];
    snprintf(word, sizeof word, "%c%c%c --%s%s%s", option->letter ? '-' : ' ',
             option->letter ? option->letter : ' ', option->letter ? ',' : ' ', option->name,
             option->arg ? " " : "", option->arg ? option->arg : "");
    snprintf(left, sizeof left, "%-32s ", word);
    char *text = shk_strf("%s%s%s%s", option->doc, option->initial ? " [" : "",
                          option->initial ? option->initial : "", option->initial ? "]" : "");
    help_row(h, left, text ? text : option->doc);
    free(text);
}

static void help_options(const struct help *h, const struct shk_command *command)
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
                fprintf(h->out, "%s\n", headings[group]);
            help_option(h, &table[i]);
            first = false;
        }
    }
}

static void help_program(const struct help *h)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    fputs("Usage: shakedown [COMMAND] [OPTION]... [ARGUMENT]...\n"
          "Tells whether a node is fit for GPU collectives, and names the line to change.\n\n"
          "Commands (run is the default; `shakedown COMMAND --help` lists its options):\n",
          h->out);
    for (size_t i = 0; i < n; i++) {
        char left[64];
        snprintf(left, sizeof left, "%-10s %-22s ", commands[i].name, commands[i].arguments);
        help_row(h, left, commands[i].doc);
    }
    fputs("\nExamples:\n"
          "  srun --mpi=pmix -N4 --ntasks-per-node=8 shakedown -o report.md   before a job\n"
          "  shakedown --quick                    this node, in a second or two, no GPU context\n"
          "  shakedown diagnose slurm-1234.out    why did that job fail?\n"
          "  shakedown hang                       which rank holds the job up that runs here?\n"
          "  shakedown check nodes/*.json         saved facts of many nodes, on any machine\n"
          "  shakedown explain SETTING            what one setting does\n",
          h->out);
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

static void help_sentence(const struct help *h, const char *lead, const char *text)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    char *whole = shk_strf("%s%s%s", lead, text, *lead ? "." : "");
    struct shk_wrap wrap = {.width = h->width};
    shk_wrap_put(&line, &wrap, whole ? whole : text);
    fputs(shk_strbuf_text(&line), h->out);
    shk_strbuf_free(&line);
    free(whole);
}

void shk_options_help(const struct shk_command *command, unsigned width, FILE *out)
{
    struct help h = {.out = out, .width = width};
    if (!command) {
        help_program(&h);
        command = help_run();
        fputs("\nOptions of run:\n", out);
    } else {
        fprintf(out, "Usage: shakedown %s [OPTION]... %s\n", command->name, command->arguments);
        help_sentence(&h, "", command->doc);
        fprintf(out, "\nExamples:\n%s\nOptions:\n", command->examples);
    }
    help_options(&h, command);
    fputc('\n', out);
    help_sentence(&h, "Exit: ",
                  command->exit ? command->exit
                                : "0 nothing failed, 1 something failed, 2 usage or configuration "
                                  "error, 3 what the command line names could not be tested "
                                  "(--fail-on unknown: nor a required check), 4 internal or output "
                                  "error");
}
