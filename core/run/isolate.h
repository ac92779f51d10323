/* Isolation: code that may crash, hang or eat memory runs in a child with a deadline.
 *
 * The child leaves breadcrumbs (library, call) in shared memory; when it dies or is killed, the
 * parent knows where it was. Whatever the child writes to its stdout or stderr (vendor libraries
 * print) is captured, never mixed into our output. */
#ifndef SHK_CORE_ISOLATE_H
#define SHK_CORE_ISOLATE_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum shk_isolate_outcome {
    SHK_CHILD_OK,       /* fn returned 0 and its result arrived whole */
    SHK_CHILD_FAILED,   /* fn returned an error; its text is in .error */
    SHK_CHILD_EXITED,   /* the child called exit() or _exit() itself; .code is the status */
    SHK_CHILD_SIGNALED, /* died of signal .code */
    SHK_CHILD_TIMEOUT,  /* killed at the deadline */
    SHK_CHILD_STARVED,  /* killed at the deadline, but had hardly any processor time: the node was
                         * too busy, which says nothing about the code that it was in */
    SHK_CHILD_MEMORY,   /* killed for exceeding the memory limit */
    SHK_CHILD_NOT_RUN, /* could not be started, or core/run/stop.h asked to end; reason in .error */
};

struct shk_isolate_job {
    const char *name;
    /* Runs in the child. Puts its result (any JSON; reference stolen) in *result_p. Returns 0 or a
     * negative errno with text in err. A result is delivered also on error, when set. */
    int (*fn)(void *arg, json_t **result_p, struct shk_error *err);
    void *arg;
    unsigned deadline_ms; /* 0: none. Within a child never beyond the child's own */
    size_t memory_limit;  /* resident bytes; 0: SHK_ISOLATE_MEMORY */
};

/* 1 GiB resident: several times what libfabric, hwloc or a plugin's init use on large nodes, far
 * below what would hurt a node. */
#define SHK_ISOLATE_MEMORY ((size_t)1 << 30)

struct shk_isolate_result {
    enum shk_isolate_outcome outcome;
    int code;
    json_t *result;         /* NULL when none arrived */
    struct shk_error error; /* "" when OK; else one line naming name, outcome, library and call */
    char library[128];      /* breadcrumb at the end: "" when none was set */
    char call[128];
    char *output; /* captured stdout+stderr, at most 64 KiB (head and tail kept), NULL if empty */
    double ms;    /* wall time */
};

/* Runs jobs, at most `parallel` at once (0: as many as CPUs, at least 2), and waits for all of
 * them. results has n entries, all filled on return; free with shk_isolate_result_clear(). Children
 * of the child are killed with it (own process group, parent-death signal). Never blocks beyond
 * the largest deadline plus 1 s. */
int shk_isolate_run(const struct shk_isolate_job *jobs, struct shk_isolate_result *results,
                    size_t n, unsigned parallel, struct shk_error *err) SHK_MUST_CHECK;
void shk_isolate_result_clear(struct shk_isolate_result *result);

/* One job beside others: begun now, waited for later. Meanwhile shk_isolate_run() watches over its
 * deadline and memory, and so does shk_isolate_turn(); without either shk_isolate_end() does, late.
 * The job is copied, what its `name` and `arg` point to is borrowed. Every job begun is to be
 * ended, by the same process, which frees it. */
struct shk_isolate_pending;
int shk_isolate_begin(struct shk_isolate_pending **pending_p, const struct shk_isolate_job *job,
                      struct shk_error *err) SHK_MUST_CHECK;
void shk_isolate_end(struct shk_isolate_pending *pending, struct shk_isolate_result *result);
/* Looks after the jobs that this process began, without waiting: for who waits for something else.
 */
void shk_isolate_turn(void);

/* In a child with a deadline: milliseconds that its own children may still use, 0 when there are
 * none left. -1 where there is no deadline. For dividing the time among several steps. */
double shk_isolate_left_ms(void);

/* "timed out in libfabric.so.1: fi_getinfo after 5000 ms", for findings. */
const char *shk_isolate_outcome_name(enum shk_isolate_outcome outcome);

/* Breadcrumbs, set by code in the child just before it enters foreign code; no-ops elsewhere.
 * Async-signal-safe to read after death. */
void shk_crumb_library(const char *library);
void shk_crumb_call(const char *callf, ...) SHK_PRINTF(1, 2);
void shk_crumb_clear(void);

/* Points the breadcrumbs of this process at caller-provided shared memory (both char[128]); used
 * by the collective's own workers. NULL, NULL turns them off. */
void shk_crumb_attach(char *library, char *call);

#endif
