/* One run of the tool: gather, measure, freeze, judge, render. cli/ only sequences these arrows. */
#ifndef SHK_CLI_SESSION_H
#define SHK_CLI_SESSION_H

#include "cli/options.h"
#include "collectives/counters/counters.h"
#include "collectives/launch/world.h"
#include "config/config.h"
#include "core/facts/facts.h"
#include "core/result/finding.h"
#include <time.h>

/* What one node is judged by. */
struct shk_node_profile {
    const struct shk_profile *profile;
    char *why, *doubt; /* see shk_profile_detect() */
};

struct shk_session {
    const struct shk_options *options;
    /* Adds the rows of --history and --baseline to the findings, returns an enum shk_exit; NULL:
     * the command compares with nothing. */
    int (*past)(struct shk_session *session);
    char *command_line; /* as typed */
    double started_s;   /* CLOCK_MONOTONIC */
    time_t started_at;  /* the same moment of the day */
    struct shk_config *config;
    struct shk_name_set *names; /* that probes write down; NULL: not needed so far */
    struct shk_facts **facts;   /* one store per node, or per group of a fleet */
    size_t nodes;
    struct shk_fleet *fleet;           /* large sets of saved facts; NULL: none */
    size_t *weights;                   /* how many nodes each store stands for; NULL: one each */
    const struct shk_profile *profile; /* asked for, else that of most nodes */
    char *profile_why;
    struct shk_node_profile *node_profiles; /* one per store; NULL before the judgement */
    struct shk_findings *findings;
    struct shk_diagnoses diagnoses;
    struct shk_world_options world_options;
    struct shk_world *world; /* ranks of one launcher; NULL: this process alone */
    struct shk_counters_kept counters;
    bool live;
    const char *interrupted; /* name of the signal that ended the run early; NULL: none */
    bool collectives_only;   /* bench: no probes, and only the collectives are judged */
    size_t in_folder;        /* files of the folder that is being loaded; 0: none is */
    char *headline;          /* of a diagnosis, owned, and what it comes to (reports/report.h) */
    enum shk_verdict answer;
    struct shk_coverage coverage; /* of all rows, before some are left out */
    bool part;                    /* the evidence is only part of a picture */
    bool known_only;              /* leave out the rows about what was not looked at */
};

/* Loads the catalogue. Prints the error. Returns an enum shk_exit; shk_session_end() in any case.
 */
int shk_session_open(struct shk_session *session, const struct shk_options *options, int argc,
                     char **argv);

/* Opens and checks --profile, --format and the outputs before anything slow. */
int shk_session_begin(struct shk_session *session, const struct shk_options *options, int argc,
                      char **argv);

/* Joins the other processes of the launcher, unless a capture is read. When this process has
 * nothing to report (any rank but the first), serves rank 0 to its end and sets *done_p: the return
 * value is then the exit code. */
int shk_session_join(struct shk_session *session, bool *done_p);
/* --hosts: starts the ranks over ssh and prints what rank 0 does; its exit code. */
int shk_session_over_ssh(const struct shk_session *session);

/* Probes this host, or the capture of --sysroot: adds one node; in a job of several nodes, every
 * node. */
int shk_session_gather(struct shk_session *session);

/* The exit code of the whole: `code`, or that of the signal that came (128 + its number) unless
 * something worse happened. */
int shk_session_exit(int code);

/* Checks that --format, the extensions of -o and the places of all outputs are good, before the
 * work. Creates and changes nothing. Returns an enum shk_exit. */
int shk_session_outputs(const struct shk_session *session);

/* Runs the collective that the options ask for and adds its facts to the only node. */
int shk_session_measure(struct shk_session *session);

/* session_time.c: writes run.start, run.hardware and run.seconds of a node that was just probed;
 * the second one again when all is measured. 0 or -ENOMEM. */
int shk_session_stamp(const struct shk_session *session, struct shk_facts *facts) SHK_MUST_CHECK;
int shk_session_stamp_end(const struct shk_session *session,
                          struct shk_facts *facts) SHK_MUST_CHECK;

/* Records that no collective was run on purpose, so that saved facts say so too. */
void shk_session_no_collective(struct shk_session *session, const char *why);

/* Takes facts, also on failure: one more node. */
int shk_session_add(struct shk_session *session, struct shk_facts *facts,
                    struct shk_error *err) SHK_MUST_CHECK;

/* session_fleet.c: reads a file of many nodes, or one of many files; nodes that differ only in what
 * may differ become one. False: not such a file, load it one by one. *code_p is an enum shk_exit.
 */
bool shk_session_load_fleet(struct shk_session *session, const char *path, int *code_p);
/* When all is loaded: each group takes the folded names of its nodes as its host.name. */
int shk_session_name_fleet(struct shk_session *session);
void shk_fleet_free(struct shk_fleet *fleet);
/* The same for the nodes of a job, when they are more than can be shown one by one. */
bool shk_session_is_fleet(const struct shk_session *session);
int shk_session_gather_fleet(struct shk_session *session, struct shk_error *err) SHK_MUST_CHECK;
/* The names of the nodes that this store of the session stands for, borrowed; 0: itself. */
size_t shk_fleet_names(const struct shk_fleet *fleet, size_t node, const char *const **names_p);

/* Reads saved facts ("-" is stdin): adds nodes. */
int shk_session_load(struct shk_session *session, const char *path);

/* Of several documents of one host the last one counts; when they differ, a line on stderr says so.
 */
void shk_session_one_per_host(struct shk_session *session);
/* The same of a fleet, before its nodes have their names. */
void shk_fleet_one_per_host(struct shk_session *session);
/* Takes a node out of the session; those after it move up by one. */
void shk_session_drop(struct shk_session *session, size_t node);
#define SHK_HOST_DIFFERS                                                                           \
    "host %s: several documents that differ; the last one counts (shakedown diff compares two; "   \
    "different hosts need different host.name)"

/* Adds NAME=VALUE lines of a file to every node as env.* facts, as the probe would: known names
 * only, secrets withheld. What the file does not name is not set, unless the evidence is only part
 * of a picture and the file does not look like a whole environment. */
int shk_session_load_env(struct shk_session *session, const char *path);

/* Adds a node about which nothing is known yet. */
int shk_session_blank(struct shk_session *session);

/* Scans the files of --log and adds what they show to every node as log.* facts. Nothing without
 * --log. */
int shk_session_load_logs(struct shk_session *session);

/* session_ticket.c: what was read of outputs of tools in the logs (shk_ticket_read()): adds to
 * nodes of the same name, to the only one, or adds nodes. A line on stderr says what was read. */
struct shk_ticket;
int shk_session_take_ticket(struct shk_session *session, struct shk_ticket *ticket,
                            struct shk_error *err) SHK_MUST_CHECK;

/* session_dumps.c: adds the file when it is a dump of PyTorch's flight recorder (probes/ticket);
 * one that cannot be read is left out with a line on stderr. *taken_p: it is no log. 0 or -ENOMEM.
 */
struct shk_flight;
int shk_session_take_dump(struct shk_flight *flight, const char *path, bool *taken_p,
                          struct shk_error *err) SHK_MUST_CHECK;

/* The variables that are written down, from the catalogue. */
int shk_session_names(struct shk_session *session, struct shk_error *err) SHK_MUST_CHECK;

/* session_profile.c: chooses the profile of each node, unless one was asked for. */
int shk_session_profiles(struct shk_session *session, struct shk_error *err) SHK_MUST_CHECK;
void shk_session_profiles_free(struct shk_session *session);
/* Compares nodes of one profile and one hardware with each other. */
int shk_session_compare(struct shk_session *session, struct shk_error *err) SHK_MUST_CHECK;

/* Chooses the profile, runs every check on every node, merges and ranks. */
int shk_session_judge(struct shk_session *session);

/* Where the launcher of a node does not say how many nodes the job has, those that came together
 * do: writes job.nodes. 0 or -ENOMEM. */
int shk_session_tell_nodes(const struct shk_session *session, struct shk_facts *facts);

/* Do the facts tell of a job of several nodes? They are then those of its rank 0. */
bool shk_session_spans(const struct shk_facts *facts);

/* Is a row of check `id` that names no node about the node of these facts, of so many in its
 * document? Not where there are several, nor where it speaks of a whole job. */
bool shk_session_is_own(const struct shk_facts *facts, size_t nodes, const char *id);

/* Renders to every -o, or to stdout. With -o the verdict, the causes and the names of the files go
 * to stderr; a report that could not be written goes to stdout. Returns the exit code of the whole
 * run.
 */
int shk_session_report(struct shk_session *session);

/* Is this the process that tells about the job? Not one of several tasks that did not find each
 * other: what they share is not theirs to write. */
bool shk_session_speaks(const struct shk_session *session);

/* Empties the list of --healthy-nodes: what is left of an earlier run must not be taken for the
 * result of one that did not come to its end. Returns an enum shk_exit. */
int shk_session_node_files_begin(const struct shk_session *session);

/* Writes the lists of --healthy-nodes and --bad-nodes. Returns an enum shk_exit: not OK when a list
 * of healthy nodes was asked for and there is none. */
int shk_session_node_files(const struct shk_session *session);

/* The other ranks of the launcher end, with this exit code. */
void shk_session_leave(struct shk_session *session, int code);

void shk_session_end(struct shk_session *session);
/* The same of what one judgement made: the catalogue stays. */
void shk_session_clear(struct shk_session *session);

#endif
