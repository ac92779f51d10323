/* A rank's way to rank 0: every address and port in turn until one of them is its rank 0. */
#ifndef SHK_COLLECTIVES_CONNECT_H
#define SHK_COLLECTIVES_CONNECT_H

#include "collectives/meet/greet.h"
#include "core/text/error.h"

#include <jansson.h>

struct shk_connect {
    const struct shk_greet_self *self;
    const json_t *hosts;  /* names or addresses */
    const unsigned *port; /* that rank 0 may have, in turn */
    unsigned ports;
    uint64_t end_ns; /* CLOCK_MONOTONIC; later nothing is tried any more */
};

/* The socket on which rank 0 said welcome, and what it said; else -errno with text. -EACCES,
 * -EPROTO and -EEXIST: rank 0 answered, and refused. -EHOSTUNREACH: nobody answered that is rank 0
 * of this job, so often as there was time; the text says what was seen last. */
int shk_connect(const struct shk_connect *connect, struct shk_greet_welcome *welcome,
                struct shk_error *err) SHK_MUST_CHECK;

/* Names of the list as addresses, each once, in the order of the list: in a child with a deadline,
 * since resolvers hang. Names that nobody knows (yet) are left out. NULL: out of memory. */
json_t *shk_connect_resolve(const json_t *hosts, unsigned deadline_ms);

#endif
