/* Agree: what has to be the same on every rank, such as the provider that they talk through.
 *
 * A difference is a relation between ranks: the one that notices first is no more to blame than any
 * other. So every rank publishes what it has, and who judges the run puts it to the vote of the
 * nodes, of all that was published, whoever gave up first. */
#ifndef SHK_COLLECTIVES_AGREE_H
#define SHK_COLLECTIVES_AGREE_H

#include "collectives/ranks/crew.h"
#include "collectives/ranks/job.h"
#include <jansson.h>

/* Bytes of a value that are compared, with its NUL. */
#define SHK_AGREE_VALUE 256U

/* Publishes the value of `what` ("provider", at most SHK_JOB_KEY - 2 bytes), which has to be the
 * same everywhere. */
int shk_agree_put(struct shk_job *job, const char *what, const char *value,
                  struct shk_error *err) SHK_MUST_CHECK;

/* The same for what need not agree, but explains why something else does not. NULL: not set. */
int shk_agree_note(struct shk_job *job, const char *what, const char *value,
                   struct shk_error *err) SHK_MUST_CHECK;

/* After a fence: -EPROTO when a rank has another value of something that has to be the same. It is
 * then recorded as a disagreement of this job, not as an error of this rank. */
int shk_agree_check(struct shk_job *job, struct shk_error *err) SHK_MUST_CHECK;

/* What differs among the ranks, what has to be the same first: [{what, must, majority, odd,
 * odd_rank, values: [{value, nodes, ranks}]}]. Each node has one vote (of a single node, each
 * rank); `majority` is the value of more than half of them, null when there is none. odd: nodes
 * outside of the majority, or all that disagree; odd_rank: index of the first rank outside of it,
 * -1. Empty when nothing differs; NULL: out of memory. */
json_t *shk_agree_judge(const struct shk_job *job, const struct shk_crew_result *result);

/* "provider differs: udp on node2 (rank 1), tcp on 2 of 3 nodes": what a row of shk_agree_judge()
 * says. */
void shk_agree_text(const json_t *row, char *buf, size_t size);

#endif
