/* A transport with ranks of this host, and the counters of the host around it. */
#ifndef SHK_COLLECTIVES_COUNTERS_H
#define SHK_COLLECTIVES_COUNTERS_H

#include "collectives/collective.h"

#include <stdint.h>

/* Reads the counters of this node (probes/counters/counters.h has the form), in two parts: the GPUs
 * are asked while the caller goes on. */
struct shk_counters_source {
    void *(*begin)(void *arg); /* NULL: there are none */
    json_t *(*end)(void *reading);
    void *arg;
};

/* The last reading: what follows at once begins with it, instead of reading once more (NVML alone
 * takes 0.3 s). A reading that goes on, with the fact that waits for it, is here until the next run
 * has ended, or shk_counters_settle(). Starts zeroed; shk_counters_forget() at the end. */
struct shk_counters_kept {
    json_t *after;
    uint64_t read_ns;
    /* the reading under way; NULL: none */
    void *reading;
    json_t *(*end)(void *reading);
    uint64_t begun_ns;
    json_t *before; /* what it is to be held against, for the fact `key` */
    char *key;
    struct shk_facts *facts;
    int rc; /* of a fact that could not be written */
};

/* Counters before a run: those after the last one where that was just now, else read. NULL: read()
 * has none. The caller's. */
json_t *shk_counters_before(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg);
/* Counters after a run: always read. The caller's. */
json_t *shk_counters_after(struct shk_counters_kept *kept, json_t *(*read)(void *arg), void *arg);
void shk_counters_forget(struct shk_counters_kept *kept);

/* Around a run whose facts say collective.<name>.moved, as shk_counters_run() does it. leave():
 * begins the reading after it; the fact is written when that has ended, at the latest by
 * shk_counters_settle() (kept NULL: at once). ran false: nothing ran, nothing is read. */
struct shk_counters_span {
    json_t *before;
    bool promised; /* it is the reading under way */
};
void shk_counters_enter(const struct shk_collective_options *options,
                        struct shk_counters_span *span);
int shk_counters_leave(const struct shk_collective_options *options, struct shk_counters_span *span,
                       const char *name, bool ran, struct shk_facts *facts,
                       struct shk_error *err) SHK_MUST_CHECK;

/* Ends the reading under way and writes the fact that waits for it. kept may be NULL. */
int shk_counters_settle(struct shk_counters_kept *kept, struct shk_error *err) SHK_MUST_CHECK;

/* Runs it; options->counters (NULL: nobody wants to know) is asked before and after:
 * collective.<name>.moved has what came in between (core/job/moved.h). */
int shk_counters_run(const struct shk_transport *transport,
                     const struct shk_collective_options *options, struct shk_facts *facts,
                     struct shk_error *err) SHK_MUST_CHECK;

#endif
