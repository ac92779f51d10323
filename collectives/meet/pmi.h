/* PMI-1 over the socket of a process manager: Hydra (MPICH, Intel MPI), Slurm's --mpi=pmi2, and
 * what is made after them. A card of rank 0 is put, all tasks pass a barrier, the others get it.
 *
 * The wire protocol (lines of KEY=VALUE) needs no library; PMI-2's sockets speak it, too. Every
 * answer is read with a limit and until a deadline. */
#ifndef SHK_COLLECTIVES_PMI_H
#define SHK_COLLECTIVES_PMI_H

#include "core/text/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Longest line: what MPICH's simple PMI allows. */
#define SHK_PMI_LINE 4096U
/* Longest card that any of them takes: PMI_MAXVALLEN of MPICH and of Slurm is 1024. */
#define SHK_PMI_CARD 1000U

struct shk_pmi {
    unsigned rank, size;
    char *card; /* of rank 0, the caller's; NULL at rank 0 */
    /* -ETIMEDOUT at the barrier: the manager was told that this task is done with it, so that it
     * takes its end for no failure. */
    bool late;
    char space[128]; /* what the manager calls this job; "" not known */
};

/* The exchange over a connected socket: rank 0 gives its card (without blanks), the others get it.
 * -EPROTO, -ETIMEDOUT, -EPIPE with text. Neither closes nor keeps fd. `id` >= 0: the number by
 * which the manager knows a process that connected to its port, which tells rank and size; else
 * they must be right. */
int shk_pmi_exchange(int fd, int id, const char *card, unsigned deadline_ms, struct shk_pmi *pmi,
                     struct shk_error *err) SHK_MUST_CHECK;

/* Opens the socket that the variables name, and exchanges, in a child with a deadline. pmi->rank is
 * this rank; a size of 0 is filled in, any other must be right. */
int shk_pmi_join(struct shk_pmi *pmi, const char *card, unsigned deadline_ms,
                 struct shk_error *err) SHK_MUST_CHECK;

#endif
