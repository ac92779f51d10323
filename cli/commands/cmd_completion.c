/* Completion for three shells, from the tables of options and commands. Names that the catalogue
 * holds are asked from `shakedown list` at completion time. */
#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"

#include <ctype.h>
#include <string.h>

enum completion_kind { COMPLETION_NOTHING, COMPLETION_WORDS, COMPLETION_FILE, COMPLETION_DIR };

/* What may follow: fixed words in "a|b", a list of `shakedown list`, files or folders. */
struct completion_value {
    enum completion_kind kind;
    const char *words; /* with '|' between; words in capitals stand for something else */
    const char *list;
};

static struct completion_value completion_of(const char *arg, const char *list)
{
    struct completion_value v = {.list = list};
    if (!arg || !*arg)
        return v;
    if (strstr(arg, "FILE") || strstr(arg, "FACTS") || strcmp(arg, "A B") == 0)
        v.kind = COMPLETION_FILE;
    else if (strcmp(arg, "DIR") == 0)
        v.kind = COMPLETION_DIR;
    else if (list)
        v.kind = COMPLETION_WORDS;
    if (strchr(arg, '|')) {
        v.words = arg;
        v.kind = v.kind ? v.kind : COMPLETION_WORDS;
    }
    return v;
}

/* The words that are meant literally, with spaces between. */
static void completion_words(FILE *out, const char *words)
{
    for (const char *p = words; p && *p;) {
        size_t n = strcspn(p, "|");
        if (!isupper((unsigned char)*p))
            fprintf(out, "%.*s ", (int)n, p);
        p += n + (p[n] == '|');
    }
}

#define COMPLETION_NAMES                                                                           \
    "  for list in \"$@\"; do\n    command shakedown list $list 2>/dev/null | cut -d' ' -f1\n  "   \
    "done\n"

static void bash_reply(FILE *out, struct completion_value v)
{
    if (v.words || v.list) {
        fputs("COMPREPLY=($(compgen -W \"", out);
        completion_words(out, v.words);
        if (v.list)
            fprintf(out, "$(_shakedown_list %s)", v.list);
        fputs("\" -- \"$cur\"))", out);
    }
    if (v.kind == COMPLETION_FILE)
        fprintf(out, "%sCOMPREPLY+=($(compgen -f -- \"$cur\"))", v.words || v.list ? "; " : "");
    else if (v.kind == COMPLETION_DIR)
        fputs("COMPREPLY=($(compgen -d -- \"$cur\"))", out);
    else if (v.kind == COMPLETION_NOTHING)
        fputs(":", out);
    fputs(" ;;\n", out);
}

static void bash_values(FILE *out)
{
    size_t n;
    const struct shk_option *table = shk_option_table(&n);
    fputs("    case $prev in\n", out);
    for (size_t i = 0; i < n; i++) {
        if (!table[i].arg)
            continue;
        fprintf(out, "    --%s", table[i].name);
        if (table[i].letter)
            fprintf(out, "|-%c", table[i].letter);
        fputs(") ", out);
        bash_reply(out, completion_of(table[i].arg, table[i].list));
    }
    fputs("    *) false ;;\n    esac && return\n", out);
}

static void completion_bash(FILE *out)
{
    size_t commands_count, n;
    const struct shk_command *commands = shk_commands(&commands_count);
    const struct shk_option *table = shk_option_table(&n);
    fputs("# bash completion of shakedown, generated from its tables\n"
          "_shakedown_list() {\n  local list\n" COMPLETION_NAMES "}\n_shakedown() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run\n"
          "    COMPREPLY=()\n"
          "    [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]] && command=${COMP_WORDS[1]}\n",
          out);
    bash_values(out);
    fputs("    if [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then\n        COMPREPLY=($(compgen -W \"",
          out);
    for (size_t i = 0; i < commands_count; i++)
        fprintf(out, "%s ", commands[i].name);
    fputs("\" -- \"$cur\"))\n        return\n    fi\n    local options=\n    case $command in\n",
          out);
    for (size_t i = 0; i < commands_count; i++) {
        fprintf(out, "    %s) options=\"", commands[i].name);
        for (size_t k = 0; k < n; k++)
            if (shk_option_applies(&table[k], &commands[i]))
                fprintf(out, "--%s ", table[k].name);
        fputs("\" ;;\n", out);
    }
    fputs(
        "    esac\n    if [[ $cur == -* ]]; then\n        COMPREPLY=($(compgen -W \"$options\" -- "
        "\"$cur\"))\n        return\n    fi\n    case $command in\n",
        out);
    for (size_t i = 0; i < commands_count; i++) {
        fprintf(out, "    %s) ", commands[i].name);
        bash_reply(out, completion_of(commands[i].arguments, commands[i].list));
    }
    fputs("    esac\n}\ncomplete -o filenames -F _shakedown shakedown\n", out);
}

/* Text between single quotes in zsh and fish; brackets and colons mean something to _arguments. */
static void completion_quote(FILE *out, const char *text, const char *special)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, "%s%c", strchr(special, *p) ? "\\" : "", *p);
    }
}

static void zsh_value(FILE *out, struct completion_value v)
{
    if (v.list)
        fprintf(out,
                v.kind == COMPLETION_FILE ? "{_shakedown_names %s; _files}" : "_shakedown_names %s",
                v.list);
    else if (v.kind == COMPLETION_FILE)
        fputs("_files", out);
    else if (v.kind == COMPLETION_DIR)
        fputs("_files -/", out);
    else if (v.words) {
        fputc('(', out);
        completion_words(out, v.words);
        fputc(')', out);
    }
}

static void zsh_command(FILE *out, const struct shk_command *command)
{
    size_t n;
    const struct shk_option *table = shk_option_table(&n);
    struct completion_value v = completion_of(command->arguments, command->list);
    fprintf(out, "  %s)\n    _arguments -s \\\n", command->name);
    for (size_t k = 0; k < n; k++) {
        if (!shk_option_applies(&table[k], command))
            continue;
        bool again = table[k].type == SHK_OPT_LIST || table[k].type == SHK_OPT_COUNT;
        fprintf(out, "      '%s--%s%s[", again ? "*" : "", table[k].name, table[k].arg ? "=" : "");
        completion_quote(out, table[k].doc, "[]:\\");
        fputc(']', out);
        if (table[k].arg) {
            fputc(':', out);
            completion_quote(out, table[k].arg, "[]:\\");
            fputc(':', out);
            zsh_value(out, completion_of(table[k].arg, table[k].list));
        }
        fputs("' \\\n", out);
    }
    fputs("      '*:argument:", out);
    zsh_value(out, v);
    fputc('\'', out);
    fputs(" ;;\n", out);
}

static void completion_zsh(FILE *out)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    fputs("#compdef shakedown\n# zsh completion of shakedown, generated from its tables\n"
          "_shakedown_names() {\n  local list\n  local -a names\n  "
          "names=(${(f)\"$(\n" COMPLETION_NAMES
          "  )\"})\n  compadd -a names\n}\n_shakedown() {\n  local -a commands=(\n",
          out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "    '%s:", commands[i].name);
        completion_quote(out, commands[i].doc, ":\\");
        fputs("'\n", out);
    }
    fputs("  )\n  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
          "    _describe command commands\n    return\n  fi\n"
          "  local command=run\n"
          "  if [[ $words[2] != -* ]]; then\n    command=$words[2]\n    shift words\n"
          "    (( CURRENT-- ))\n  fi\n  case $command in\n",
          out);
    for (size_t i = 0; i < n; i++)
        zsh_command(out, &commands[i]);
    fputs("  esac\n}\nif [[ $funcstack[1] == _shakedown ]]; then _shakedown \"$@\"; "
          "else compdef _shakedown shakedown; fi\n",
          out);
}

static void fish_value(FILE *out, struct completion_value v)
{
    if (v.words || v.list) {
        fputs(" -a '", out);
        completion_words(out, v.words);
        for (const char *p = v.list; p && *p;) {
            size_t n = strcspn(p, " ");
            fprintf(out, "(shakedown list %.*s 2>/dev/null | string split -f1 \" \") ", (int)n, p);
            p += n + (p[n] == ' ');
        }
        fputc('\'', out);
    }
    if (v.kind == COMPLETION_FILE)
        fputs(" -F", out);
    else if (v.kind == COMPLETION_DIR)
        fputs(" -f -a '(__fish_complete_directories)'", out);
    else
        fputs(" -f", out);
}

static void fish_option(FILE *out, const char *when, const struct shk_option *option)
{
    fprintf(out, "complete -c shakedown -n '%s' -l %s", when, option->name);
    if (option->letter)
        fprintf(out, " -s %c", option->letter);
    if (option->arg) {
        fputs(" -r", out);
        fish_value(out, completion_of(option->arg, option->list));
    }
    fputs(" -d '", out);
    completion_quote(out, option->doc, "");
    fputs("'\n", out);
}

static void completion_fish(FILE *out)
{
    size_t commands_count, n;
    const struct shk_command *commands = shk_commands(&commands_count);
    const struct shk_option *table = shk_option_table(&n);
    fputs("# fish completion of shakedown, generated from its tables\n"
          "complete -c shakedown -f\n"
          "function __shakedown_first\n  test (count (commandline -opc)) -eq 1\nend\n",
          out);
    for (size_t i = 0; i < commands_count; i++) {
        const struct shk_command *c = &commands[i];
        char when[128];
        fprintf(out, "complete -c shakedown -n __shakedown_first -a %s -d '", c->name);
        completion_quote(out, c->doc, "");
        fputs("'\n", out);
        for (size_t k = 0; k < n && i == 0; k++) /* the first command is the default */
            if (shk_option_applies(&table[k], c))
                fish_option(out, "__shakedown_first", &table[k]);
        snprintf(when, sizeof when, "__fish_seen_subcommand_from %s", c->name);
        for (size_t k = 0; k < n; k++)
            if (shk_option_applies(&table[k], c))
                fish_option(out, when, &table[k]);
        if (*c->arguments) {
            fprintf(out, "complete -c shakedown -n '%s'", when);
            fish_value(out, completion_of(c->arguments, c->list));
            fputc('\n', out);
        }
    }
}

int shk_cmd_completion(const struct shk_options *options, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    struct shk_error err = {""};
    struct shk_output out;
    size_t i = 0;
    (void)argc;
    (void)argv;
    while (i < 3 && strcmp(shells[i].name, options->arguments.items[0]) != 0)
        i++;
    if (i == 3) {
        shk_say("completion: '%s' is not bash, zsh or fish", options->arguments.items[0]);
        return SHK_EXIT_USAGE;
    }
    int rc = shk_output_begin(&out, &err);
    if (!rc) {
        shells[i].write(out.stream);
        rc = shk_output_finish(&out, NULL, &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}
