#include "cli/options.h"

#include "collectives/collective.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Without --sizes. From 256 MiB on NVLink is as full as it gets: nccl-tests' usual figure. */
#define SIZES_AUTO  "4:16M"
#define SIZES_LARGE ((size_t)256 << 20)

static const struct shk_option *option_by_name(const char *name, size_t len)
{
    size_t count;
    const struct shk_option *table = shk_option_table(&count);
    for (size_t i = 0; i < count; i++)
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

static const struct shk_option *option_by_letter(char letter)
{
    size_t count;
    const struct shk_option *table = shk_option_table(&count);
    for (size_t i = 0; i < count; i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

bool shk_option_applies(const struct shk_option *option, const struct shk_command *command)
{
    return shk_has_word("help version", option->name, "") ||
           shk_has_word(command->options, option->name, "");
}

static int option_append(struct shk_texts *list, const char *value, struct shk_error *err)
{
    if (list->count == SHK_LIST_MAX)
        return shk_error_set(err, EINVAL, "more than %d arguments of one kind", SHK_LIST_MAX);
    const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return shk_error_sys(err, ENOMEM, "command line");
    list->items = items;
    list->items[list->count++] = value;
    return 0;
}

static int option_number(const struct shk_option *option, const char *value, long *number_p,
                         struct shk_error *err)
{
    char *end;
    if (!value)
        return shk_error_set(err, EINVAL, "--%s needs a number", option->name);
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < option->min || number > option->max)
        return shk_error_set(err, EINVAL, "--%s: '%s' is not a number from %ld to %ld",
                             option->name, value, option->min, option->max);
    *number_p = number;
    return 0;
}

static int option_store(struct shk_options *options, const struct shk_option *option,
                        const char *value, struct shk_error *err)
{
    void *slot = (char *)options + option->offset;
    switch (option->type) {
    case SHK_OPT_FLAG: *(bool *)slot = true; return 0;
    case SHK_OPT_COUNT: ++*(long *)slot; return 0;
    case SHK_OPT_TEXT: *(const char **)slot = value; return 0;
    case SHK_OPT_LIST: return option_append(slot, value, err);
    case SHK_OPT_NUMBER: return option_number(option, value, slot, err);
    }
    return 0;
}

static int option_argument(struct shk_options *options, const struct shk_command *command,
                           const char *word, struct shk_error *err)
{
    const char *name = command->argument_of;
    return name ? option_store(options, option_by_name(name, strlen(name)), word, err)
                : option_append(&options->arguments, word, err);
}

static int option_unknown(const char *word, const struct shk_command *command,
                          struct shk_error *err)
{
    size_t count, n = 0, len = strcspn(word, "=");
    const struct shk_option *table = shk_option_table(&count);
    const char **names = calloc(count, sizeof *names), *near;
    for (size_t i = 0; names && i < count; i++)
        if (shk_option_applies(&table[i], command))
            names[n++] = table[i].name;
    char *name = strndup(word, len);
    near = names && name && len > 2 ? shk_nearest(name + 2, names, n) : NULL;
    int rc = near
                 ? shk_error_set(err, EINVAL, "unknown option '%s'; did you mean --%s?", name, near)
                 : shk_error_set(err, EINVAL, "unknown option '%s' (see: shakedown %s --help)",
                                 name ? name : word, command->name);
    free(names);
    free(name);
    return rc;
}

/* Consumes argv[*i] and, when it takes one in the next word, its value. */
static int option_take(int argc, char **argv, int *i, struct shk_options *options,
                       const struct shk_command *command, struct shk_error *err)
{
    const char *word = argv[*i], *value = NULL;
    const struct shk_option *option;
    if (word[1] == '-') {
        size_t len = strcspn(word + 2, "=");
        option = option_by_name(word + 2, len);
        value = word[2 + len] ? word + 3 + len : NULL;
    } else {
        option = option_by_letter(word[1]);
        value = option && option->arg && word[2] ? word + 2 : NULL;
        if (option && !option->arg && word[2]) { /* -vv */
            bool same = strspn(word + 1, (char[]){word[1], '\0'}) == strlen(word + 1);
            if (!same || option->type != SHK_OPT_COUNT)
                return option_unknown(word, command, err);
            for (const char *p = word + 2; *p; p++)
                option_store(options, option, NULL, NULL);
        }
    }
    if (!option || !shk_option_applies(option, command))
        return option_unknown(word, command, err);
    if (!option->arg && value)
        return shk_error_set(err, EINVAL, "--%s takes no value", option->name);
    if (option->arg && !value) {
        if (*i + 1 >= argc)
            return shk_error_set(err, EINVAL, "--%s needs %s", option->name, option->arg);
        value = argv[++*i];
    }
    return option_store(options, option, value, err);
}

static const struct shk_command *command_table;
static size_t command_count;

void shk_commands_are(const struct shk_command *commands, size_t count)
{
    command_table = commands;
    command_count = count;
}

const struct shk_command *shk_commands(size_t *count_p)
{
    *count_p = command_count;
    return command_table;
}

static const struct shk_command *command_find(const char *name)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int command_unknown(const char *word, struct shk_error *err)
{
    size_t n;
    const struct shk_command *commands = shk_commands(&n);
    const char *names[64];
    for (size_t i = 0; i < n && i < 64; i++)
        names[i] = commands[i].name;
    const char *near = shk_nearest(word, names, n < 64 ? n : 64);
    size_t len = strlen(word);
    struct stat st;
    bool folder = stat(word, &st) == 0 && S_ISDIR(st.st_mode);
    if (folder || (len > 5 && strcmp(word + len - 5, ".json") == 0))
        return shk_error_set(err, EINVAL, "'%s' is no command; did you mean: shakedown check %s",
                             word, word);
    if (strchr(word, '/') || strchr(word, '.'))
        return shk_error_set(err, EINVAL, "'%s' is no command; did you mean: shakedown diagnose %s",
                             word, word);
    if (near)
        return shk_error_set(err, EINVAL, "unknown command '%s'; did you mean %s?", word, near);
    return shk_error_set(err, EINVAL, "unknown command '%s' (see: shakedown --help)", word);
}

int shk_options_size(const char *text, size_t len, size_t *bytes_p)
{
    char buf[32], *end;
    if (!len || len >= sizeof buf)
        return -EINVAL;
    memcpy(buf, text, len);
    buf[len] = '\0';
    errno = 0;
    unsigned long long value = strtoull(buf, &end, 10);
    static const char units[] = "kmg";
    unsigned shift = 0;
    if (errno || end == buf || buf[0] == '-')
        return -EINVAL;
    if (*end) {
        const char *unit = strchr(units, *end | 0x20);
        if (!unit || end[1])
            return -EINVAL;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (value > (SIZE_MAX >> shift))
        return -EINVAL;
    *bytes_p = (size_t)value << shift;
    return 0;
}

static int options_finish(struct shk_options *options, const struct shk_command *command,
                          struct shk_error *err)
{
    static const char *const fail_on[] = {[SHK_FAIL_ON_FAIL] = "fail",
                                          [SHK_FAIL_ON_WARN] = "warn",
                                          [SHK_FAIL_ON_UNKNOWN] = "unknown"};
    size_t i = 0;
    while (i < 3 && strcmp(fail_on[i], options->fail_on_text) != 0)
        i++;
    if (i == 3)
        return shk_error_set(err, EINVAL, "--fail-on: '%s' is not fail, warn or unknown",
                             options->fail_on_text);
    options->fail_on = (enum shk_fail_on)i;
    if (strcmp(options->color, "auto") && strcmp(options->color, "always") &&
        strcmp(options->color, "never"))
        return shk_error_set(err, EINVAL, "--color: '%s' is not auto, always or never",
                             options->color);
    bool sized = strcmp(options->sizes, "auto") != 0;
    const char *sizes = sized ? options->sizes : SIZES_AUTO, *colon = strchr(sizes, ':');
    size_t head = colon ? (size_t)(colon - sizes) : strlen(sizes);
    const char *last = colon ? colon + 1 : sizes;
    if (shk_options_size(sizes, head, &options->min_bytes) ||
        shk_options_size(last, strlen(last), &options->max_bytes) || options->min_bytes < 4 ||
        options->max_bytes < options->min_bytes || options->max_bytes > (size_t)4 << 30)
        return shk_error_set(err, EINVAL, "--sizes: '%s' is not MIN:MAX with 4 <= MIN <= MAX <= 4G",
                             sizes);
    options->large_bytes = sized ? 0 : SIZES_LARGE;
    if (options->help || options->version)
        return 0;
    if (options->arguments.count < command->min_args)
        return shk_error_set(err, EINVAL, "%s needs %s", command->name, command->arguments);
    if (options->arguments.count > command->max_args)
        return shk_error_set(err, EINVAL, "%s: unexpected argument '%s'", command->name,
                             options->arguments.items[command->max_args]);
    return 0;
}

/* "help", "help COMMAND" and "version", as many tools have them: the same as the options. */
static int options_words(int argc, char **argv, struct shk_options *options,
                         const struct shk_command **command_p, struct shk_error *err)
{
    options->version = strcmp(argv[1], "version") == 0;
    options->help = !options->version;
    *command_p = NULL;
    if (argc > 3 || (argc == 3 && options->version))
        return shk_error_set(err, EINVAL, "%s: unexpected argument '%s'", argv[1], argv[argc - 1]);
    if (argc == 3 && !(*command_p = command_find(argv[2])))
        return command_unknown(argv[2], err);
    return 0;
}

int shk_options_parse(int argc, char **argv, struct shk_options *options_p,
                      const struct shk_command **command_p, struct shk_error *err)
{
    int i = 1, rc = 0;
    bool only_arguments = false;
    size_t count;
    const struct shk_option *table = shk_option_table(&count);
    *options_p = (struct shk_options){0};
    for (size_t k = 0; k < count; k++)
        if (table[k].initial)
            (void)!option_store(options_p, &table[k], table[k].initial, NULL);
    const struct shk_command *command = command_find("run");
    if (argc > 1 && (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "version") == 0))
        return options_words(argc, argv, options_p, command_p, err);
    if (argc > 1 && argv[1][0] != '-') {
        command = command_find(argv[1]);
        if (!command)
            return command_unknown(argv[1], err);
        i = 2;
    }
    for (; i < argc && !rc; i++) {
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (!only_arguments && argv[i][0] == '-' && argv[i][1])
            rc = option_take(argc, argv, &i, options_p, command, err);
        else
            rc = option_argument(options_p, command, argv[i], err);
    }
    if (!rc)
        rc = options_finish(options_p, command, err);
    if (!rc)
        *command_p = command;
    return rc;
}

void shk_options_free(struct shk_options *options)
{
    struct shk_texts *const lists[] = {&options->outputs,   &options->env_files,
                                       &options->log_files, &options->facts_files,
                                       &options->arguments, &options->pids};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->items);
    *options = (struct shk_options){0};
}
