/* The commands, one short file each: take the parsed options, return an enum shk_exit. */
#ifndef SHK_CLI_COMMANDS_H
#define SHK_CLI_COMMANDS_H

#include "cli/options.h"

/* For shk_commands_are(). */
extern const struct shk_command shk_command_table[];
extern const size_t shk_command_count;

int shk_cmd_run(const struct shk_options *options, int argc, char **argv);
int shk_cmd_probe(const struct shk_options *options, int argc, char **argv);
int shk_cmd_check(const struct shk_options *options, int argc, char **argv);
int shk_cmd_diff(const struct shk_options *options, int argc, char **argv);
int shk_cmd_hang(const struct shk_options *options, int argc, char **argv);
int shk_cmd_diagnose(const struct shk_options *options, int argc, char **argv);
int shk_cmd_bench(const struct shk_options *options, int argc, char **argv);
int shk_cmd_list(const struct shk_options *options, int argc, char **argv);
int shk_cmd_env(const struct shk_options *options, int argc, char **argv);
int shk_cmd_completion(const struct shk_options *options, int argc, char **argv);
int shk_cmd_selftest(const struct shk_options *options, int argc, char **argv);
int shk_cmd_history(const struct shk_options *options, int argc, char **argv);
int shk_cmd_fleet(const struct shk_options *options, int argc, char **argv);
int shk_cmd_profile(const struct shk_options *options, int argc, char **argv);
int shk_cmd_config(const struct shk_options *options, int argc, char **argv);
int shk_cmd_explain(const struct shk_options *options, int argc, char **argv);

/* Writes which signatures match which lines of the files: number of the line, name, library, role,
 * root cause or -, text of a table or -, separated by tabs, nearly in the order of the lines. */
struct shk_config;
int shk_list_lines(const struct shk_config *config, const struct shk_texts *files, FILE *out,
                   struct shk_error *err) SHK_MUST_CHECK;

/* What --version prints. */
void shk_version_print(FILE *out);

#endif
