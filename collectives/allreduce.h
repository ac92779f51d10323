/* All-reduce (sum) algorithms over a wire: from the heap's send area to its receive area. */
#ifndef SHK_COLLECTIVES_ALLREDUCE_H
#define SHK_COLLECTIVES_ALLREDUCE_H

#include "collectives/data.h"
#include "collectives/heap.h"
#include "collectives/wire.h"

struct shk_allreduce_args {
    enum shk_type type;
    size_t count; /* elements of 4 bytes */
};

struct shk_algorithm {
    const char *name;
    const char *doc;
    /* Fit for this many ranks and elements. */
    bool (*when)(unsigned ranks, size_t count);
    /* One operation; the send area may be changed again on return. */
    int (*run)(struct shk_wire *wire, const struct shk_allreduce_args *args);
};

/* The first that fits is used. Ends with name NULL; the last one fits always. */
extern const struct shk_algorithm shk_algorithms[];
const struct shk_algorithm *shk_algorithm_for(unsigned ranks, size_t count);

/* What messages of up to max_bytes need. */
struct shk_allreduce_layout {
    size_t length[SHK_AREA_COUNT]; /* of the heap's areas; the mailbox is the transport's */
    uint32_t indices;              /* of notifications */
    size_t max_put;                /* longest single put in bytes */
};
void shk_allreduce_layout(unsigned ranks, size_t max_bytes, struct shk_allreduce_layout *layout);

/* Begins the next operation and runs it. */
int shk_allreduce(struct shk_wire *wire, const struct shk_algorithm *algorithm,
                  const struct shk_allreduce_args *args) SHK_MUST_CHECK;

#endif
