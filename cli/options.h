/* Command line: one table of options and one of commands; parsing, help and completion come from
 * the tables. */
#ifndef SHK_CLI_OPTIONS_H
#define SHK_CLI_OPTIONS_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { SHK_LIST_MAX = 65536 };

/* Repeatable option or arguments; the texts are argv's own. */
struct shk_texts {
    const char **items;
    size_t count;
};

enum shk_fail_on { SHK_FAIL_ON_FAIL, SHK_FAIL_ON_WARN, SHK_FAIL_ON_UNKNOWN };

struct shk_options {
    const char *profile; /* "auto" */
    const char *format;  /* NULL: by -o extension, else "term" */
    struct shk_texts outputs;
    const char *color; /* "auto", "always" or "never" */
    const char *fail_on_text;
    enum shk_fail_on fail_on;
    const char *sysroot;
    const char *config_dir;
    const char *capture_dir;
    bool verbatim;
    const char *rendezvous, *key_file; /* how the tasks of a launcher meet */
    const char *hosts;                 /* file: start a rank on each, over ssh */
    long timeout_s;                    /* of one probe, and of the whole collective */
    long ranks;
    long rails;
    long stress_s;
    const char *transport;
    const char *provider;
    const char *sizes;
    size_t min_bytes, max_bytes; /* from sizes */
    size_t large_bytes;          /* between GPUs of one node, unless sizes were given */
    const char *shell;
    struct shk_texts pids;
    const char *job;
    long interval_s;
    const char *pods, *container; /* a selector of pods; one container of each, or of this host */
    long watch_s;                 /* look again and again; 0: once */
    bool no_stacks, intrusive, here, then_check;
    const char *healthy_nodes, *bad_nodes; /* files to write */
    const char *history, *baseline;        /* a database, a folder of good runs */
    const char *until;                     /* a day of the past that stands for today */
    const char *from;                      /* a document to make a profile of; more are arguments */
    long keep_days;                        /* of the history */
    bool quick, anonymize, all, trust_libraries;
    long verbose;
    bool help, version;
    struct shk_texts env_files, log_files, facts_files;
    struct shk_texts arguments;
};

enum shk_option_type {
    SHK_OPT_FLAG,  /* bool */
    SHK_OPT_COUNT, /* long, counts repetitions */
    SHK_OPT_TEXT,  /* const char * */
    SHK_OPT_LIST,  /* struct shk_texts */
    SHK_OPT_NUMBER /* long, min..max */
};

/* Headings of the help, in its order. */
enum shk_option_group {
    SHK_GROUP_TEST,   /* what is looked at and measured */
    SHK_GROUP_INPUT,  /* logs, environments, facts and captures */
    SHK_GROUP_REPORT, /* what is written, and the exit code */
    SHK_GROUP_GENERAL,
    SHK_GROUP_COUNT
};

struct shk_option {
    const char *name; /* without "--" */
    enum shk_option_group group;
    char letter; /* 0: none */
    enum shk_option_type type;
    size_t offset;
    const char *arg;     /* "DIR"; NULL for flags */
    const char *list;    /* of `shakedown list`, whose names complete the value; NULL */
    const char *initial; /* default value as text; NULL: none */
    long min, max;       /* SHK_OPT_NUMBER */
    const char *doc;
};

struct shk_command {
    const char *name;
    const char *arguments; /* "FACTS...", "" when none */
    const char *options;   /* names of its options, space separated */
    const char *list;      /* of `shakedown list`, space separated, that complete an argument */
    size_t min_args, max_args;
    const char *argument_of; /* the list option that arguments are values of, too; NULL: none */
    const char *doc;
    const char *examples; /* lines: "  shakedown …     what it is for" */
    const char *exit;     /* what its exit codes mean; NULL: as those of the program */
    int (*run)(const struct shk_options *options, int argc, char **argv); /* enum shk_exit */
};

/* The commands are those of this table from now on (borrowed); main() says so first. */
void shk_commands_are(const struct shk_command *commands, size_t count);
const struct shk_command *shk_commands(size_t *count_p);
const struct shk_option *shk_option_table(size_t *count_p);

/* Parses argv into *options_p and finds the command ("run" when the first word is an option or
 * missing; NULL for `help` and `version` alone, which are the same as the options). On misuse
 * returns -EINVAL with one line that names the word and, where one is near, the right spelling.
 * shk_options_free() releases the lists, also after an error. */
int shk_options_parse(int argc, char **argv, struct shk_options *options_p,
                      const struct shk_command **command_p, struct shk_error *err) SHK_MUST_CHECK;
void shk_options_free(struct shk_options *options);

bool shk_option_applies(const struct shk_option *option, const struct shk_command *command);

/* Help of one command, or of the program when command is NULL, for a terminal of width columns. */
void shk_options_help(const struct shk_command *command, unsigned width, FILE *out);

/* Bytes from "4", "64K", "16M", "1G" (powers of 1024). */
int shk_options_size(const char *text, size_t len, size_t *bytes_p) SHK_MUST_CHECK;

#endif
