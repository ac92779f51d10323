/* Ways to run this program on the nodes of a job: inside of the Slurm job, over ssh, in the pods of
 * Kubernetes. */
#ifndef SHK_CLI_REACH_H
#define SHK_CLI_REACH_H

#include "core/text/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum shk_reach_way { SHK_REACH_HERE, SHK_REACH_SRUN, SHK_REACH_SSH, SHK_REACH_PODS };

enum { SHK_REACH_WORDS = 48, SHK_REACH_PATH = 4096 };

struct shk_reach {
    enum shk_reach_way way;
    const char *job;       /* SRUN: "ID" or "ID.STEP" */
    char *space;           /* PODS: namespace; NULL: kubectl's own. Owned */
    const char *container; /* PODS: of the pod; NULL: its first */
    json_t *names;         /* {name that a node gives itself: name by which it was reached} */
    char program[SHK_REACH_PATH]; /* this program, as it is found over there */
};

struct shk_reach_call {
    const char *argv[SHK_REACH_WORDS]; /* NULL at the end */
    char *text;                        /* that some of the words point to; owned */
};

/* Fills program and names; free with shk_reach_end(). 0 or -ENOMEM with text. */
int shk_reach_begin(struct shk_reach *reach, enum shk_reach_way way,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_reach_end(struct shk_reach *reach);

/* The command that runs this program with `words` (NULL at the end, without its name) on one node,
 * by the name by which it is reached, or with srun on several ("a,b"; count tells how many), a task
 * on each. What it points to must outlive the call. 0 or -ENOMEM. */
int shk_reach_call(struct shk_reach_call *call, const struct shk_reach *reach, const char *host,
                   unsigned count, const char *const *words) SHK_MUST_CHECK;
void shk_reach_call_end(struct shk_reach_call *call);

/* In a child of core/run/isolate.h: runs it, and gives {text, code}: what it printed on stdout from
 * the first line on that begins with '{' (`whole`: all of it), and its exit code. -ENOENT: the
 * program of argv[0] is not there. */
int shk_reach_run(const struct shk_reach_call *call, bool whole, json_t **result_p,
                  struct shk_error *err) SHK_MUST_CHECK;

#endif
