#include "cli/commands.h"

static const struct shk_command commands[] = {
    {.name = "run",
     .arguments = "",
     .options = "profile format output fail-on sysroot config timeout ranks transport provider "
                "sizes quick anonymize verbose",
     .doc = "probe this node, run a real all-reduce, judge, report",
     .run = shk_cmd_run},
    {.name = "probe",
     .arguments = "",
     .options = "output sysroot timeout quick verbose",
     .doc = "gather facts only, as JSON",
     .run = shk_cmd_probe},
    {.name = "check",
     .arguments = "FACTS...",
     .options = "profile format output fail-on config env anonymize verbose",
     .min_args = 1,
     .max_args = SHK_LIST_MAX,
     .doc = "judge saved facts of one or many nodes, offline",
     .run = shk_cmd_check},
    {.name = "bench",
     .arguments = "",
     .options = "profile format output fail-on config timeout ranks transport provider sizes "
                "anonymize verbose",
     .doc = "collectives only",
     .run = shk_cmd_bench},
    {.name = "explain",
     .arguments = "NAME",
     .options = "config",
     .min_args = 1,
     .max_args = 1,
     .doc = "one setting, conflict, check, probe, diagnosis or profile",
     .run = shk_cmd_explain},
    {.name = "env",
     .arguments = "",
     .options = "profile shell sysroot config timeout quick verbose",
     .doc = "what to export, change or unset for a profile, with reasons as comments",
     .run = shk_cmd_env},
    {.name = "selftest",
     .arguments = "",
     .options = "quick verbose",
     .doc = "plant faults and prove that each is found",
     .run = shk_cmd_selftest},
    {.name = "diff",
     .arguments = "A B",
     .options = "format output config anonymize all",
     .min_args = 2,
     .max_args = 2,
     .doc = "what differs between two nodes, or before and after: files or folders of facts",
     .run = shk_cmd_diff},
    {.name = "list",
     .arguments = "[WHAT]",
     .options = "config",
     .max_args = 1,
     .doc = "probes, checks, settings, conflicts, profiles, diagnoses, transports or formats",
     .run = shk_cmd_list},
};

const struct shk_command *shk_commands(size_t *count_p)
{
    *count_p = sizeof commands / sizeof *commands;
    return commands;
}
