#include "collectives/algorithm/allreduce_private.h"

/* A ring operation: reduce-scatter, then all-gather, both in size - 1 steps to the next rank. */
struct ring {
    struct shk_wire *wire;
    const struct shk_allreduce_args *args;
    enum shk_area parts; /* partial sums that arrive */
    unsigned next;
    unsigned prev;
    struct shk_cut cut;
};

static int ring_put(const struct ring *ring, enum shk_area source, enum shk_area target,
                    unsigned chunk, size_t piece, size_t step)
{
    const struct shk_heap *heap = ring->wire->heap;
    size_t from = 0;
    size_t to = 0;

    shk_cut_range(&ring->cut, chunk, piece, &from, &to);
    if (from == to)
        return 0;
    return shk_wire_put(ring->wire, ring->next, heap->offset[source] + from * SHK_TYPE_BYTES,
                        heap->offset[target] + from * SHK_TYPE_BYTES, (to - from) * SHK_TYPE_BYTES,
                        (uint32_t)(step * ring->cut.pieces + piece));
}

static int ring_wait(const struct ring *ring, unsigned chunk, size_t piece, size_t step)
{
    size_t from = 0;
    size_t to = 0;

    shk_cut_range(&ring->cut, chunk, piece, &from, &to);
    return from == to
               ? 0
               : shk_wire_wait(ring->wire, ring->prev, (uint32_t)(step * ring->cut.pieces + piece));
}

/* Adds this rank's elements to the partial sum that arrived; the sum goes to the receive area,
 * which is its final place for the chunk that ends here. */
static int ring_add(const struct ring *ring, unsigned chunk, size_t piece)
{
    size_t from = 0;
    size_t to = 0;

    shk_cut_range(&ring->cut, chunk, piece, &from, &to);
    return shk_add_areas(ring->wire, ring->args->type, SHK_AREA_RECV, SHK_AREA_SEND, ring->parts,
                         from, to);
}

/* In step s this rank sends chunk rank - s and receives rank - s - 1. The last sum to be completed
 * here is at once sent on as the first all-gather step, straight into the peer's receive area: it
 * contains every rank's part, so every rank is in this operation and done with the one before. */
static int ring_reduce_scatter(const struct ring *ring)
{
    unsigned size = ring->wire->size;
    size_t steps = size - 1;
    size_t ahead = shk_cut_ahead(ring->wire, &ring->cut);
    int rc = 0;

    for (size_t p = 0; p < ahead && p < ring->cut.pieces && rc == 0; p++)
        rc = ring_put(ring, SHK_AREA_SEND, ring->parts, ring->wire->rank, p, 0);
    for (size_t s = 1; s <= steps; s++) {
        unsigned chunk = (unsigned)((ring->wire->rank + size - s) % size);
        enum shk_area target = s < steps ? ring->parts : SHK_AREA_RECV;

        for (size_t p = 0; p < ring->cut.pieces && rc == 0; p++) {
            rc = ring_wait(ring, chunk, p, s - 1);
            if (rc == 0) {
                rc = ring_add(ring, chunk, p);
                rc = rc == 0 ? ring_put(ring, SHK_AREA_RECV, target, chunk, p, s) : rc;
            }
            if (s == 1 && rc == 0 && p + ahead < ring->cut.pieces)
                rc = ring_put(ring, SHK_AREA_SEND, ring->parts, ring->wire->rank, p + ahead, 0);
        }
    }
    return rc;
}

static int ring_all_gather(const struct ring *ring)
{
    unsigned size = ring->wire->size;
    size_t steps = size - 1;
    int rc = 0;

    for (size_t s = steps + 1; s <= 2 * steps; s++) {
        unsigned chunk = (unsigned)((ring->wire->rank + 2 * size - s) % size);

        for (size_t p = 0; p < ring->cut.pieces && rc == 0; p++) {
            rc = ring_wait(ring, chunk, p, s - 1);
            if (rc == 0 && s < 2 * steps)
                rc = ring_put(ring, SHK_AREA_RECV, SHK_AREA_RECV, chunk, p, s);
        }
    }
    return rc;
}

/* Tells the rank before that this one has begun, so that its receive area may be written to, and
 * waits for the same from the next. */
static int ring_ready(const struct ring *ring)
{
    const struct shk_heap *heap = ring->wire->heap;
    uint32_t ready = 2 * ring->wire->size * (uint32_t)SHK_PIECES;
    size_t slot = heap->offset[shk_area_by_turn(ring->wire, SHK_AREA_SLOT0)];
    int rc = shk_wire_put(ring->wire, ring->prev, heap->offset[SHK_AREA_SEND], slot, SHK_TYPE_BYTES,
                          ready + ring->wire->rank);

    return rc == 0 ? shk_wire_wait(ring->wire, ring->next, ready + ring->next) : rc;
}

static bool ring_fits(unsigned ranks, size_t count)
{
    (void)count;
    return ranks > 1;
}

static struct ring ring_make(struct shk_wire *wire, const struct shk_allreduce_args *args,
                             enum shk_area parts)
{
    return (struct ring){
        .wire = wire,
        .args = args,
        .parts = parts,
        .next = (wire->rank + 1) % wire->size,
        .prev = (wire->rank + wire->size - 1) % wire->size,
        .cut = shk_cut(wire->size, args->count, args->piece_bytes),
    };
}

static int ring_turns(const struct ring *ring)
{
    int rc = ring_reduce_scatter(ring);

    if (rc == 0)
        rc = ring_all_gather(ring);
    return rc == 0 ? shk_wire_flush(ring->wire) : rc;
}

static int ring_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct ring ring = ring_make(wire, args, shk_area_by_turn(wire, SHK_AREA_PART0));

    return ring_turns(&ring);
}

const struct shk_algorithm shk_allreduce_ring = {
    .name = "ring",
    .doc = "reduce-scatter and all-gather around a ring in pieces: least traffic, for large "
           "messages",
    .pipelined = true,
    .fits = ring_fits,
    .run = ring_run,
};

static int inplace_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct ring ring = ring_make(wire, args, SHK_AREA_RECV);
    int rc = ring_ready(&ring);

    return rc == 0 ? ring_turns(&ring) : rc;
}

const struct shk_algorithm shk_allreduce_inplace = {
    .name = "in-place",
    .doc =
        "the ring with its partial sums in the receive area, once the next rank has said that it "
        "is free: one buffer less goes through the caches",
    .pipelined = true,
    .fits = ring_fits,
    .run = inplace_run,
};
