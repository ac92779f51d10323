#include "cli/commands/commands.h"

static const struct shk_command commands[] = {
    {.name = "run",
     .arguments = "",
     .options =
         "profile format output color fail-on sysroot config timeout ranks transport provider "
         "rails stress "
         "healthy-nodes bad-nodes hosts rendezvous key-file "
         "sizes quick trust-libraries log history baseline keep anonymize verbose",
     .doc = "probe this node, run a real all-reduce, judge, report",
     .run = shk_cmd_run},
    {.name = "probe",
     .arguments = "",
     .options = "output sysroot capture verbatim config timeout quick trust-libraries verbose",
     .doc = "gather facts only, as JSON",
     .run = shk_cmd_probe},
    {.name = "check",
     .arguments = "FACTS...",
     .options = "profile format output color fail-on config env log anonymize healthy-nodes "
                "bad-nodes history baseline keep verbose",
     .min_args = 1,
     .max_args = SHK_LIST_MAX,
     .doc = "judge saved facts of one or many nodes, offline",
     .run = shk_cmd_check},
    {.name = "diagnose",
     .arguments = "[LOGFILE...]",
     .max_args = SHK_LIST_MAX,
     .argument_of = "log",
     .options = "log env facts profile format output color fail-on config anonymize "
                "verbose",
     .doc = "ranked root causes from logs, an environment, saved facts",
     .run = shk_cmd_diagnose},
    {.name = "hang",
     .arguments = "[FILE...]",
     .options = "pid job hosts here interval no-stacks format output color config anonymize",
     .max_args = SHK_LIST_MAX,
     .doc = "a job hangs now: which rank holds the others up, and where it is",
     .exit = "0 the ranks go on, 1 a rank is named, 2 usage error, no such process,\n"
             "3 it cannot be told from what could be seen, 4 internal or output error",
     .run = shk_cmd_hang},
    {.name = "bench",
     .arguments = "",
     .options =
         "profile format output color fail-on config timeout ranks transport provider rails stress "
         "sizes hosts rendezvous key-file "
         "trust-libraries anonymize verbose",
     .doc = "collectives only",
     .run = shk_cmd_bench},
    {.name = "explain",
     .arguments = "NAME...",
     .list = "settings conflicts checks probes diagnoses profiles",
     .options = "config",
     .min_args = 1,
     .max_args = SHK_LIST_MAX,
     .doc = "settings, conflicts, checks, probes, diagnoses or profiles",
     .run = shk_cmd_explain},
    {.name = "env",
     .arguments = "",
     .options = "profile shell sysroot config timeout quick trust-libraries verbose",
     .doc = "what to export, change or unset for a profile, with reasons as comments",
     .run = shk_cmd_env},
    {.name = "selftest",
     .arguments = "",
     .options = "quick verbose",
     .doc = "plant faults and prove that each is found",
     .run = shk_cmd_selftest},
    {.name = "diff",
     .arguments = "A B",
     .options = "format output color config anonymize all",
     .min_args = 2,
     .max_args = 2,
     .doc = "what differs between two nodes, or before and after: files or folders of facts",
     .run = shk_cmd_diff},
    {.name = "history",
     .arguments = "[NODE] [METRIC]",
     .options = "history until keep format output color config anonymize verbose",
     .max_args = SHK_LIST_MAX,
     .doc = "what changed and since when, of all nodes or one; history add FILE... DB fills it",
     .run = shk_cmd_history},
    {.name = "fleet",
     .arguments = "[DIR|DB]",
     .options = "history profile until keep format output color config anonymize verbose",
     .max_args = 1,
     .doc = "the state of all nodes: which to drain and why, causes, since when",
     .run = shk_cmd_fleet},
    {.name = "list",
     .arguments = "[WHAT [PATTERN]]",
     .options = "config log",
     .max_args = 2,
     .doc = "probes, checks, settings, conflicts, profiles, diagnoses, signatures, rules, "
            "transports or formats; PATTERN: a part of a line; signatures with --log: those that "
            "match each line, as number, name, library, role, root cause, text of a table",
     .list = "lists",
     .run = shk_cmd_list},
    {.name = "completion",
     .arguments = "bash|zsh|fish",
     .options = "",
     .min_args = 1,
     .max_args = 1,
     .doc = "completion of this command line for a shell",
     .run = shk_cmd_completion},
};

const struct shk_command *shk_commands(size_t *count_p)
{
    *count_p = sizeof commands / sizeof *commands;
    return commands;
}
