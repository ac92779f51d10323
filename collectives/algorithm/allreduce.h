/* All-reduce (sum) algorithms over a wire: from the heap's send area to its receive area. */
#ifndef SHK_COLLECTIVES_ALLREDUCE_H
#define SHK_COLLECTIVES_ALLREDUCE_H

#include "collectives/algorithm/heap.h"
#include "collectives/algorithm/wire.h"
#include "collectives/ranks/data.h"

/* Bytes that travel and are added up while the next are under way: small enough for a level-2
 * cache, large enough to hide the cost of a put. */
#define SHK_PIECE_BYTES ((size_t)131072)

struct shk_allreduce_args {
    enum shk_type type;
    size_t count;       /* elements of 4 bytes */
    size_t piece_bytes; /* of pipelined algorithms; 0: SHK_PIECE_BYTES */
};

struct shk_algorithm {
    const char *name;
    const char *doc;
    bool pipelined; /* obeys piece_bytes */
    bool gets;      /* needs a wire with get */
    bool maps;      /* needs a wire whose ranks map each other's heaps */
    /* Bytes of the drops that it makes of so many elements; NULL: it makes none. */
    size_t (*drops)(size_t count);
    /* Can it do this many ranks and elements? */
    bool (*fits)(unsigned ranks, size_t count);
    /* One operation; the send area may be changed again on return. */
    int (*run)(struct shk_wire *wire, const struct shk_allreduce_args *args);
};

/* Ends with NULL. The last one fits always. */
extern const struct shk_algorithm *const shk_algorithms[];

/* Index in shk_algorithms of what is used where nothing was measured (see
 * collectives/algorithm/tune.h). */
unsigned shk_algorithm_default(unsigned ranks, size_t count);

/* What messages of up to max_bytes need. */
struct shk_allreduce_layout {
    size_t length[SHK_AREA_COUNT]; /* of the heap's areas */
    uint32_t indices;              /* of notifications */
    size_t max_put;                /* longest single put in bytes */
};
void shk_allreduce_layout(unsigned ranks, size_t max_bytes, struct shk_allreduce_layout *layout);

/* Begins the next operation and runs it. */
int shk_allreduce(struct shk_wire *wire, const struct shk_algorithm *algorithm,
                  const struct shk_allreduce_args *args) SHK_MUST_CHECK;

#endif
