/* Job: the ranks of one collective, and what they tell each other outside the transport under test.
 *
 * Ranks exchange small values with put, fence and get, and publish where they are (phase,
 * operation, whom they wait for) so that the supervisor can name a rank that died, stopped or
 * hangs. This implementation joins processes of one host through an anonymous shared segment:
 * nothing of it has a name in the file system, so nothing can be left behind. */
#ifndef SHK_COLLECTIVES_JOB_H
#define SHK_COLLECTIVES_JOB_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shk_job;

/* Most ranks of a job: 8,192 nodes of eight GPUs. Every rank's supervisor maps a slot for each of
 * them, of which it touches what they publish. */
#define SHK_JOB_MAX_RANKS 65536U

enum shk_phase {
    SHK_PHASE_START,
    SHK_PHASE_OPEN,
    SHK_PHASE_REGISTER,
    SHK_PHASE_EXCHANGE,
    SHK_PHASE_WARMUP,
    SHK_PHASE_ALLREDUCE,
    SHK_PHASE_VERIFY,
    SHK_PHASE_TEARDOWN,
    SHK_PHASE_DONE,
    SHK_PHASE_COUNT
};

/* "open", or "allreduce 4096 B" where the size matters. */
void shk_job_phase_text(enum shk_phase phase, uint64_t bytes, char *buf, size_t size);

/* Supervisor: makes the segment, before it forks. `result_bytes` of zeroed shared memory per rank
 * carry results back. -EINVAL, -ENOMEM. */
int shk_job_create(struct shk_job **job_p, unsigned ranks, size_t result_bytes,
                   struct shk_error *err) SHK_MUST_CHECK;
void shk_job_destroy(struct shk_job *job);

/* Worker, after fork: this process is now `rank`; its breadcrumbs go to the segment. */
void shk_job_join(struct shk_job *job, unsigned rank);

unsigned shk_job_rank(const struct shk_job *job);
unsigned shk_job_size(const struct shk_job *job);
void *shk_job_result(const struct shk_job *job, unsigned rank);

/* Longest key, with its NUL, and bytes that all values of one rank may take. */
#define SHK_JOB_KEY   32U
#define SHK_JOB_SPACE 8192U

/* Publishes a value under key; peers see it after the next fence. -ENOSPC when SHK_JOB_SPACE is
 * used up, -EINVAL for a bad key. */
int shk_job_put(struct shk_job *job, const char *key, const void *data, size_t len,
                struct shk_error *err) SHK_MUST_CHECK;

/* Waits for every rank to arrive. -ETIMEDOUT names the first rank that is missing. timeout_ms 0
 * waits for ever (the supervisor's deadline still holds). */
int shk_job_fence(struct shk_job *job, unsigned timeout_ms, struct shk_error *err) SHK_MUST_CHECK;

/* Copies the value that `rank` put. -ENOENT when there is none, -EMSGSIZE when it is longer than
 * cap. */
int shk_job_get(const struct shk_job *job, unsigned rank, const char *key, void *buf, size_t cap,
                size_t *len_p, struct shk_error *err) SHK_MUST_CHECK;

/* Fast barrier for the measuring loop; *max_p (may be NULL) becomes the largest `value` of all
 * ranks. `poll` (may be NULL) is called while waiting, so that peers who still need this rank's
 * progress get it; a negative return stops the wait and is returned. */
int shk_job_barrier(struct shk_job *job, uint64_t value, uint64_t *max_p, int (*poll)(void *arg),
                    void *arg) SHK_MUST_CHECK;

/* What the supervisor sees of this rank: to be set to SHK_PHASE_TEARDOWN before connections are
 * closed, since what TCP did is looked at then. `bytes` is the message size in the sweep, else 0.
 */
void shk_job_set_phase(struct shk_job *job, enum shk_phase phase, uint64_t bytes);
void shk_job_set_op(struct shk_job *job, uint64_t op);
/* -1: not waiting for a peer. */
void shk_job_set_waiting(struct shk_job *job, int peer);

/* Records why this rank gives up. `by_peer`: the error may well be the echo of another rank's
 * trouble (a connection that broke), so that rank is blamed rather than this one. */
void shk_job_fail(struct shk_job *job, int errnum, bool by_peer, const char *text);

/* The same for values that differ between ranks (agree.h): no rank's own error, and no echo. */
void shk_job_disagree(struct shk_job *job, int errnum, const char *text);

/* Walks over the keys that `rank` published: *at_p is 0 at first. False: that was all. */
bool shk_job_next_key(const struct shk_job *job, unsigned rank, uint32_t *at_p,
                      char key[SHK_JOB_KEY]);

/* Giving up the CPU while polling: call with a counter that is 0 at the start of the wait. */
void shk_job_relax(const struct shk_job *job, unsigned *idle);

#endif
