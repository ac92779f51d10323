#include "cli/options.h"

#include "collectives/collective.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Without --sizes. From 256 MiB on NVLink is as full as it gets: nccl-tests' usual figure. */
#define SIZES_AUTO  "4:16M"
#define SIZES_LARGE ((size_t)256 << 20)

#define AT(member) offsetof(struct shk_options, member)

static const struct shk_option table[] = {
    {.name = "profile",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(profile),
     .arg = "NAME|FILE|auto",
     .list = "profiles",
     .initial = "auto",
     .doc = "what this system should look like (see: list profiles)"},
    {.name = "format",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(format),
     .arg = "FORMAT",
     .list = "formats",
     .doc = "format of the report (see: list formats)"},
    {.name = "output",
     .group = SHK_GROUP_REPORT,
     .letter = 'o',
     .type = SHK_OPT_LIST,
     .offset = AT(outputs),
     .arg = "FILE",
     .doc = "write to FILE, format by its extension; may be repeated"},
    {.name = "color",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(color),
     .arg = "auto|always|never",
     .initial = "auto",
     .doc = "colours of the terminal report; auto: on a terminal, unless NO_COLOR is set"},
    {.name = "fail-on",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(fail_on_text),
     .arg = "fail|warn|unknown",
     .initial = "fail",
     .doc = "what makes the exit code non-zero"},
    {.name = "sysroot",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_TEXT,
     .offset = AT(sysroot),
     .arg = "DIR",
     .doc = "read a captured tree instead of this host"},
    {.name = "capture",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(capture_dir),
     .arg = "DIR",
     .doc = "also write what is read into DIR, for --sysroot; names and addresses are made up"},
    {.name = "verbatim",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_FLAG,
     .offset = AT(verbatim),
     .doc = "with --capture: keep names, addresses and serial numbers as they are (secrets always "
            "go)"},
    {.name = "config",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(config_dir),
     .arg = "DIR",
     .doc = "site settings, profiles and diagnoses on top of the built-in ones"},
    {.name = "timeout",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_NUMBER,
     .offset = AT(timeout_s),
     .arg = "SEC",
     .initial = "60",
     .min = 1,
     .max = 86400,
     .doc = "deadline of the collective; also the longest that one probe may take"},
    {.name = "hosts",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(hosts),
     .arg = "FILE",
     .doc = "hosts of FILE (a line each: HOST, or HOST slots=N) over ssh: a rank for each slot; "
            "hang looks at each"},
    {.name = "rendezvous",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(rendezvous),
     .arg = "WHERE",
     .initial = "auto",
     .doc = "where the tasks of a launcher meet: tcp://HOST:PORT, file:///DIR, auto (as the "
            "launcher says), none"},
    {.name = "key-file",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(key_file),
     .arg = "FILE",
     .doc = "file of mode 0600 with the key by which the tasks know each other"},
    {.name = "ranks",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_NUMBER,
     .offset = AT(ranks),
     .arg = "N",
     .min = 1,
     .max = 1024,
     .doc = "local ranks of the all-reduce; without it one for each GPU, and two without GPUs"},
    {.name = "transport",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(transport),
     .arg = "NAME",
     .list = "transports",
     .initial = "auto",
     .doc = "collective to run (see: list transports), auto or none"},
    {.name = "provider",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(provider),
     .arg = "NAME",
     .doc = "libfabric provider for the fabric transport, instead of libfabric's own choice"},
    {.name = "rails",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_NUMBER,
     .offset = AT(rails),
     .arg = "N",
     .initial = "8",
     .min = 1,
     .max = SHK_RAILS_MAX,
     .doc = "network devices that the fabric all-reduce uses side by side; 1: the first only"},
    {.name = "stress",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_NUMBER,
     .offset = AT(stress_s),
     .arg = "SEC",
     .initial = "0",
     .min = 0,
     .max = 3600,
     .doc = "load on all GPUs at once for so long: copies within, between and to them; 0: none"},
    {.name = "sizes",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(sizes),
     .arg = "MIN:MAX",
     .initial = "auto",
     .doc = "message sizes in bytes, K, M or G; auto: 4:16M, run goes on to 256M between GPUs of "
            "one node"},
    {.name = "shell",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(shell),
     .arg = "sh|csh|lua",
     .initial = "sh",
     .doc = "syntax of the lines (lua: for Lmod module files)"},
    {.name = "pid",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_LIST,
     .offset = AT(pids),
     .arg = "N[,N...]",
     .doc = "these processes, and the ranks that they started; may be repeated"},
    {.name = "job",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_TEXT,
     .offset = AT(job),
     .arg = "ID[.STEP]",
     .doc = "only ranks of this job, or step of it; of a Slurm job on all of its nodes, by srun "
            "--overlap"},
    {.name = "here",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_FLAG,
     .offset = AT(here),
     .doc = "with --job: on this host only"},
    {.name = "interval",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_NUMBER,
     .offset = AT(interval_s),
     .arg = "SEC",
     .initial = "5",
     .min = 1,
     .max = 600,
     .doc = "between the first and the last of five looks; a job whose ranks wait longer for each "
            "other at times needs more"},
    {.name = "no-stacks",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_FLAG,
     .offset = AT(no_stacks),
     .doc = "stop no thread, not even for the millisecond that a copy of its stack takes"},
    {.name = "quick",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_FLAG,
     .offset = AT(quick),
     .doc = "safe for a prolog: no collective, no GPU context"},
    {.name = "trust-libraries",
     .group = SHK_GROUP_TEST,
     .type = SHK_OPT_FLAG,
     .offset = AT(trust_libraries),
     .doc = "as root: load libraries from places that other users can change, too"},
    {.name = "env",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_LIST,
     .offset = AT(env_files),
     .arg = "FILE",
     .doc = "environment to judge, NAME=VALUE lines; may be repeated"},
    {.name = "log",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_LIST,
     .offset = AT(log_files),
     .arg = "FILE",
     .doc = "log of a job, also .gz or .zst, - for stdin; may be repeated"},
    {.name = "facts",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_LIST,
     .offset = AT(facts_files),
     .arg = "FILE",
     .doc = "saved facts (see: probe); may be repeated"},
    {.name = "healthy-nodes",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(healthy_nodes),
     .arg = "FILE",
     .doc =
         "write the nodes where something passed, nothing failed and nothing required is unknown"},
    {.name = "bad-nodes",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(bad_nodes),
     .arg = "FILE",
     .doc = "write the nodes that have a fault of their own, for srun --exclude"},
    {.name = "history",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_TEXT,
     .offset = AT(history),
     .arg = "FILE",
     .doc = "history of the nodes (SQLite, on a local disk): what is judged is added to it"},
    {.name = "baseline",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_TEXT,
     .offset = AT(baseline),
     .arg = "DIR",
     .doc = "facts or reports of good runs on such nodes: what is worse than they are is a WARN"},
    {.name = "keep",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_NUMBER,
     .offset = AT(keep_days),
     .arg = "DAYS",
     .initial = "400",
     .min = 1,
     .max = 36500,
     .doc = "what is older goes out of the history, and of each node all but 2000 runs"},
    {.name = "until",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_TEXT,
     .offset = AT(until),
     .arg = "TIME",
     .doc = "as it was then: 2026-11-28 or 2026-11-28T18:49:07Z"},
    {.name = "from",
     .group = SHK_GROUP_INPUT,
     .type = SHK_OPT_TEXT,
     .offset = AT(from),
     .arg = "FILE",
     .doc = "facts or a report of a good node; further ones as arguments"},
    {.name = "anonymize",
     .group = SHK_GROUP_REPORT,
     .type = SHK_OPT_FLAG,
     .offset = AT(anonymize),
     .doc = "replace hosts, users, addresses and hardware identifiers (secrets always go)"},
    {.name = "all",
     .group = SHK_GROUP_REPORT,
     .letter = 'a',
     .type = SHK_OPT_FLAG,
     .offset = AT(all),
     .doc = "set nothing aside: times, names and job numbers too"},
    {.name = "verbose",
     .group = SHK_GROUP_REPORT,
     .letter = 'v',
     .type = SHK_OPT_COUNT,
     .offset = AT(verbose),
     .doc = "show what passed too, and progress on stderr"},
    {.name = "help",
     .group = SHK_GROUP_GENERAL,
     .letter = 'h',
     .type = SHK_OPT_FLAG,
     .offset = AT(help),
     .doc = "this text"},
    {.name = "version",
     .group = SHK_GROUP_GENERAL,
     .letter = 'V',
     .type = SHK_OPT_FLAG,
     .offset = AT(version),
     .doc = "version of shakedown and of its libraries"},
};
enum { TABLE_COUNT = sizeof table / sizeof *table };

const struct shk_option *shk_option_table(size_t *count_p)
{
    *count_p = TABLE_COUNT;
    return table;
}

static const struct shk_option *option_by_name(const char *name, size_t len)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (strlen(table[i].name) == len && strncmp(table[i].name, name, len) == 0)
            return &table[i];
    return NULL;
}

static const struct shk_option *option_by_letter(char letter)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (table[i].letter && table[i].letter == letter)
            return &table[i];
    return NULL;
}

static bool option_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += len)
        if ((p == words || p[-1] == ' ') && (p[len] == ' ' || !p[len]))
            return true;
    return false;
}

bool shk_option_applies(const struct shk_option *option, const struct shk_command *command)
{
    return option_word("help version", option->name) || option_word(command->options, option->name);
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
    const char *names[TABLE_COUNT], *near;
    size_t n = 0, len = strcspn(word, "=");
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (shk_option_applies(&table[i], command))
            names[n++] = table[i].name;
    char *name = strndup(word, len);
    near = name && len > 2 ? shk_nearest(name + 2, names, n) : NULL;
    int rc = near
                 ? shk_error_set(err, EINVAL, "unknown option '%s'; did you mean --%s?", name, near)
                 : shk_error_set(err, EINVAL, "unknown option '%s' (see: shakedown %s --help)",
                                 name ? name : word, command->name);
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
    if (len > 5 && strcmp(word + len - 5, ".json") == 0)
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
    *options_p = (struct shk_options){0};
    for (size_t k = 0; k < TABLE_COUNT; k++)
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
