/* Wire: one-sided puts between the symmetric heaps of a job's ranks, with notification at the
 * target. What the all-reduce algorithms are written on; a transport supplies it.
 *
 * A put carries an index below shk_wire_indices(). The target sees the index arrive only after the
 * put's data is readable there. Arrivals are counted per operation: shk_wire_begin() opens the next
 * one, on every rank in the same order, and a rank may run at most one operation ahead of another.
 * That holds for every all-reduce by itself, since its result needs a contribution from all.
 *
 * After an error every call fails with it; shk_wire_error() has the text. */
#ifndef SHK_COLLECTIVES_WIRE_H
#define SHK_COLLECTIVES_WIRE_H

#include "collectives/algorithm/heap.h"
#include "collectives/ranks/job.h"
#include "core/text/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shk_wire;

/* Beside an operation's number in a cache line of 64 bytes. */
#define SHK_WIRE_SIGN_BYTES ((size_t)56)

struct shk_wire_ops {
    int (*put)(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
               uint32_t index);
    /* Optional. Reads `bytes` at the peer's offset `from` to this rank's offset `to`; `index` then
     * arrives at this rank. */
    int (*get)(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
               uint32_t index);
    /* Optional. A put of at most wire->max_drop bytes of which nothing tells the peer but the
     * data. */
    int (*drop)(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes);
    /* Moves data along and collects arrivals (shk_wire_arrived()); negative on error. Returns how
     * many events it handled. */
    int (*progress)(struct shk_wire *wire);
};

/* What a rank shows to those that map its memory. Each part has its cache line, and the one that
 * processors fetch along with it, to itself. */
struct shk_wire_sign {
    _Alignas(128) uint64_t op; /* stored with release order, after what it speaks of */
    unsigned char data[SHK_WIRE_SIGN_BYTES];
};

struct shk_wire_board {
    struct shk_wire_sign vector[2]; /* a vector of operation `op` is there, by parity */
    struct shk_wire_sign ready;     /* the send area is filled, the receive area may be written */
    struct shk_wire_sign done;      /* nothing of the peers is read or written any more */
};

/* A rank as the others see it in their own memory. */
struct shk_wire_mapped {
    unsigned char *base; /* of its heap */
    struct shk_wire_board *board;
};

/* Base of a transport's own structure (first member). */
struct shk_wire {
    const struct shk_wire_ops *ops;
    struct shk_job *job;
    struct shk_heap *heap;
    unsigned rank;
    unsigned size;
    size_t max_put;    /* longest single put in bytes */
    size_t max_drop;   /* longest drop in bytes; 0: the wire has none */
    size_t free_drop;  /* longest drop that takes a way of its own, quicker than any put; 0: none */
    size_t max_inject; /* longest put that leaves nothing pending; 0: not known */
    unsigned pending;  /* puts whose source may not be changed yet */
    unsigned last_peer; /* of the last put */
    unsigned lanes;     /* ways side by side that large puts take turns on */
    uint64_t op;        /* operations begun */
    uint32_t indices;
    uint8_t *arrived[2]; /* by parity of the operation: arrivals not yet consumed */
    bool borrowed;       /* they are the transport's: peers write there */
    const struct shk_wire_mapped *mapped; /* of each rank; NULL: no rank maps another's memory */
    int status;
    bool by_peer; /* the error may be the echo of a peer's end */
    struct shk_error error;
};

/* Prepares the base part. -ENOMEM. Undone by shk_wire_fini(). */
int shk_wire_init(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                  struct shk_heap *heap, uint32_t indices, struct shk_error *err) SHK_MUST_CHECK;
void shk_wire_fini(struct shk_wire *wire);

/* The same with arrivals in memory of the transport's, zeroed: peers set arrived[parity of the
 * operation][index] to 1 with release order. */
void shk_wire_init_at(struct shk_wire *wire, const struct shk_wire_ops *ops, struct shk_job *job,
                      struct shk_heap *heap, uint32_t indices, uint8_t *const arrived[2]);

/* For transports: notes the first error, returns its status. */
int shk_wire_fail(struct shk_wire *wire, int errnum, bool by_peer, const char *fmt, ...)
    SHK_PRINTF(4, 5);

/* For transports: a notification of operation `op` (its low 8 bits) with `index` is here. */
int shk_wire_arrived(struct shk_wire *wire, uint8_t op, uint32_t index);

void shk_wire_begin(struct shk_wire *wire);
static inline unsigned shk_wire_parity(const struct shk_wire *wire)
{
    return (unsigned)(wire->op & 1);
}

/* Puts `bytes` at heap offset `from` to offset `to` of peer; the source must stay as it is until
 * shk_wire_flush(). */
int shk_wire_put(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                 uint32_t index) SHK_MUST_CHECK;

/* Gets `bytes` at heap offset `from` of peer to offset `to` here: `index` then arrives here, as if
 * peer had put it. Only where wire->ops->get is set. */
int shk_wire_get(struct shk_wire *wire, unsigned peer, size_t from, size_t to, size_t bytes,
                 uint32_t index) SHK_MUST_CHECK;

/* The same without an index. Only where wire->max_drop allows it. There may be nothing to flush:
 * the source stays as it is until peer is known to have it. */
int shk_wire_drop(struct shk_wire *wire, unsigned peer, size_t from, size_t to,
                  size_t bytes) SHK_MUST_CHECK;

/* Waits until here(arg) is true, for what peer dropped. */
int shk_wire_watch(struct shk_wire *wire, unsigned peer, bool (*here)(void *arg),
                   void *arg) SHK_MUST_CHECK;

/* Waits for `index` of the current operation, which comes from `peer`, and consumes it. */
int shk_wire_wait(struct shk_wire *wire, unsigned peer, uint32_t index) SHK_MUST_CHECK;

/* Where ranks map each other's memory: waits until peer's sign says that it is in operation
 * wire->op, or one later. */
int shk_wire_see(struct shk_wire *wire, unsigned peer,
                 const struct shk_wire_sign *sign) SHK_MUST_CHECK;

/* Shows a sign of this rank to them. */
void shk_wire_show(struct shk_wire *wire, struct shk_wire_sign *sign);

/* Waits until every source may be changed again. */
int shk_wire_flush(struct shk_wire *wire) SHK_MUST_CHECK;

/* One round of progress, for waiting elsewhere: pass it to shk_job_barrier(). */
int shk_wire_poll(void *wire);

#endif
