/* PMIx: how the processes that one launcher started find each other.
 *
 * libpmix is opened by name in an isolated child that connects, asks, publishes and finalizes
 * within a deadline, so a missing, hanging or crashing library is an outcome and not an end. The
 * connection to the server is not held afterwards: Slurm's server kills the whole step when a
 * process that holds one dies, and with it the report that should name that process. */
#ifndef SHK_COLLECTIVES_PMIX_H
#define SHK_COLLECTIVES_PMIX_H

#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>

enum shk_pmix_status {
    SHK_PMIX_NONE,   /* no PMIx server in the environment */
    SHK_PMIX_OK,     /* all members below are valid */
    SHK_PMIX_FAILED, /* there is a server, but something failed: reason */
};

struct shk_pmix {
    enum shk_pmix_status status;
    struct shk_error reason; /* "" when OK */
    bool missing;            /* FAILED: because there is no library */
    bool tried;              /* shk_pmix_join() was called */
    char library[512];       /* path of what was loaded; "" when nothing was */
    char version[96];        /* as the library tells it */
    unsigned rank, size, local_rank, local_size, nodes;
    char **hosts; /* rank 0 only: host of each rank, size entries, "" where not known; else NULL */
    char *card;   /* what rank 0 published */
    double ms;
};

/* Was pmix.h there when this program was built? Without it no job can be joined. */
bool shk_pmix_built(void);

/* Is this process a PMIx client (PMIX_NAMESPACE and PMIX_RANK)? *rank_p: its rank. No library is
 * called. */
bool shk_pmix_offered(unsigned *rank_p);

/* Joins the job. Rank 0 publishes `card` (printable text), the others wait until it is there, at
 * most `deadline_ms`. Always fills pmix; free with shk_pmix_clear(). `names`: library instead of
 * libpmix.so.2 (tests), else NULL. */
void shk_pmix_join(struct shk_pmix *pmix, const char *card, unsigned deadline_ms,
                   const char *const *names);
void shk_pmix_clear(struct shk_pmix *pmix);

#endif
