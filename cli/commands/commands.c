#include "cli/commands/commands.h"

const struct shk_command shk_command_table[] = {
    {.name = "run",
     .examples =
         "  shakedown                                  this node\n"
         "  shakedown --quick --format line            for a prolog: one line\n"
         "  shakedown -o report.html -o ticket.md      a page and a ticket\n"
         "  srun -N4 --ntasks-per-node=8 shakedown --healthy-nodes good.txt   before a job\n",
     .arguments = "",
     .options =
         "profile format output color fail-on sysroot config timeout ranks transport provider "
         "rails stress "
         "healthy-nodes bad-nodes hosts rendezvous key-file "
         "sizes quick trust-libraries log history baseline keep anonymize verbose",
     .doc = "probe this node, run a real all-reduce, judge, report",
     .run = shk_cmd_run},
    {.name = "probe",
     .examples =
         "  shakedown probe -o facts.json              to be judged elsewhere\n"
         "  shakedown probe --capture tree             a tree for --sysroot, names made up\n",
     .arguments = "",
     .options = "output sysroot capture verbatim config timeout quick trust-libraries verbose",
     .doc = "gather facts only, as JSON",
     .run = shk_cmd_probe},
    {.name = "check",
     .examples =
         "  shakedown check facts.json                 one node\n"
         "  shakedown check nodes/ --bad-nodes bad.txt   a folder with a file for each node\n",
     .arguments = "FACTS|FOLDER...",
     .options = "profile format output color fail-on config env log anonymize healthy-nodes "
                "bad-nodes history baseline keep verbose",
     .min_args = 1,
     .max_args = SHK_LIST_MAX,
     .doc = "judge saved facts of one or many nodes, offline",
     .run = shk_cmd_check},
    {.name = "diagnose",
     .examples = "  shakedown diagnose slurm-1234.out          a log, also .gz or .zst\n"
                 "  journalctl -k | shakedown diagnose -       from a pipe\n",
     .arguments = "[LOGFILE...]",
     .max_args = SHK_LIST_MAX,
     .argument_of = "log",
     .options = "log env facts profile format output color fail-on config anonymize "
                "verbose",
     .doc = "ranked root causes from logs, an environment, saved facts",
     .run = shk_cmd_diagnose},
    {.name = "hang",
     .examples = "  shakedown hang                             the job that runs on this node\n"
                 "  shakedown hang --job 1234                  on all nodes of a Slurm job\n"
                 "  shakedown hang --pods job-name=train       in the pods of a Kubernetes job\n"
                 "  shakedown hang -o here.json                to be put together elsewhere\n",
     .arguments = "[FILE...]",
     .options =
         "pid job hosts pods container here interval watch no-stacks intrusive then-check format "
         "output color config "
         "anonymize",
     .max_args = SHK_LIST_MAX,
     .doc = "for a job that hangs right now: which rank holds up the others, and where it is",
     .exit = "0 the ranks make progress, 1 a rank is named, 2 usage error, no such process, "
             "3 undecided from what could be seen, 4 internal or output error",
     .run = shk_cmd_hang},
    {.name = "bench",
     .examples = "  shakedown bench --transport fabric --sizes 4:256M\n"
                 "  srun -N2 --ntasks-per-node=8 shakedown bench   between nodes\n",
     .arguments = "",
     .options =
         "profile format output color fail-on config timeout ranks transport provider rails stress "
         "sizes hosts rendezvous key-file "
         "trust-libraries anonymize verbose",
     .doc = "collectives only",
     .run = shk_cmd_bench},
    {.name = "explain",
     .examples = "  shakedown explain SETTING                  what it does, and what it is here\n"
                 "  shakedown explain memlock-too-low          a root cause\n",
     .arguments = "NAME...",
     .list = "settings conflicts checks probes diagnoses profiles",
     .options = "config",
     .min_args = 1,
     .max_args = SHK_LIST_MAX,
     .doc = "settings, conflicts, checks, probes, diagnoses or profiles",
     .run = shk_cmd_explain},
    {.name = "env",
     .examples = "  shakedown env --profile lumi-g             for a job script\n"
                 "  shakedown env --shell lua                  for a module file\n",
     .arguments = "",
     .options = "profile shell sysroot config timeout quick trust-libraries verbose",
     .doc = "what to export, change or unset for a profile, with the reasons as comments",
     .run = shk_cmd_env},
    {.name = "selftest",
     .examples = "  shakedown selftest --quick                 without planting load\n",
     .arguments = "",
     .options = "quick verbose",
     .doc = "plant faults and prove that each is found",
     .run = shk_cmd_selftest},
    {.name = "diff",
     .examples = "  shakedown diff good.json bad.json          two nodes\n"
                 "  shakedown diff before/ after/              two folders of nodes\n",
     .arguments = "A B",
     .options = "format output color config anonymize all",
     .min_args = 2,
     .max_args = 2,
     .doc = "what differs between two nodes, or before and after: files or folders of facts",
     .run = shk_cmd_diff},
    {.name = "history",
     .examples = "  shakedown history add today/*.json nodes.db\n"
                 "  shakedown history --history nodes.db nid005012   one node\n",
     .arguments = "[NODE] [METRIC]",
     .options = "history until keep format output color config anonymize verbose",
     .max_args = SHK_LIST_MAX,
     .doc = "what changed and since when, for all nodes or one; history add FILE... DB fills it",
     .run = shk_cmd_history},
    {.name = "fleet",
     .examples = "  shakedown fleet nodes.db                   which nodes to drain, and why\n",
     .arguments = "[DIR|DB]",
     .options = "history profile until keep format output color config anonymize verbose",
     .max_args = 1,
     .doc = "the state of all nodes: which to drain and why, causes, since when",
     .run = shk_cmd_fleet},
    {.name = "profile",
     .examples = "  shakedown profile --from good1.json good2.json -o mysite.yaml\n",
     .arguments = "[FACTS...]",
     .options = "from output config anonymize",
     .max_args = SHK_LIST_MAX,
     .doc = "make a profile of this site from the documents of good nodes: --from FILE...",
     .run = shk_cmd_profile},
    {.name = "config",
     .examples = "  shakedown config check mysite.yaml\n",
     .arguments = "check FILE",
     .options = "config",
     .min_args = 2,
     .max_args = 2,
     .doc = "check a profile, or a folder for --config, for errors",
     .run = shk_cmd_config},
    {.name = "list",
     .examples = "  shakedown list settings GDR                every setting with GDR in its row\n"
                 "  shakedown list profiles\n",
     .arguments = "[WHAT [PATTERN]]",
     .options = "config log",
     .max_args = 2,
     .doc = "probes, checks, settings, conflicts, profiles, diagnoses, signatures, rules, "
            "transports, formats; signatures --log FILE: what matches each line",
     .list = "lists",
     .run = shk_cmd_list},
    {.name = "completion",
     .examples = "  shakedown completion bash > /etc/bash_completion.d/shakedown\n",
     .arguments = "bash|zsh|fish",
     .options = "",
     .min_args = 1,
     .max_args = 1,
     .doc = "command-line completion for a shell",
     .run = shk_cmd_completion},
};

const size_t shk_command_count = sizeof shk_command_table / sizeof *shk_command_table;
