/* Inside of isolation: the parent's loop (isolate.c), the child's side and the conclusion drawn
 * from how it ended (isolate_child.c). */
#ifndef SHK_CORE_ISOLATE_PRIVATE_H
#define SHK_CORE_ISOLATE_PRIVATE_H

#include "core/run/isolate.h"
#include "core/run/isolate_share.h"
#include "core/text/strbuf.h"

/* 64 MiB of result JSON and 64 KiB of captured output bound what a broken child can cost. */
#define ISOLATE_MAX_RESULT ((size_t)64 << 20)
#define ISOLATE_MAX_OUTPUT ((size_t)64 << 10)

struct isolate_crumb {
    char library[128];
    char call[128];
};

struct isolate_child {
    const struct shk_isolate_job *job;
    struct isolate_crumb *crumb;
    pid_t pid;
    int result_fd, output_fd, statm_fd; /* -1: closed, not opened yet */
    double started, killed_at, sampled; /* ms, monotonic; sampled: its memory, last */
    size_t resident;                    /* bytes, then */
    unsigned deadline_ms;               /* the job's, or less within a child; 0: none */
    bool running, killed;
    enum shk_isolate_outcome why; /* when killed */
    struct isolate_share share;
    struct shk_strbuf result, output;
};

/* The child's life; never returns. */
void shk_isolate_child_main(const struct shk_isolate_job *job, struct isolate_crumb *crumb,
                            pid_t parent, int result_fd, int output_fd) __attribute__((noreturn));

/* Fills result from the wait status, the result frame, the captured output and the breadcrumb. */
void shk_isolate_conclude(struct isolate_child *child, int status, double ms,
                          struct shk_isolate_result *result);

#endif
