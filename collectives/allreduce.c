#include "collectives/allreduce.h"
#include "collectives/reduce.h"
#include <string.h>

/* Largest one-shot message: where the ring overtakes it, measured over tcp and shm with 2 to 8
 * ranks (docs/collectives.md). Its traffic grows with the ranks, so does not the limit. */
#define ONESHOT_BYTES_2 ((size_t)32768)
#define ONESHOT_BYTES   ((size_t)8192)

/* Pieces of a ring chunk that travel and are added up while the next is under way: small enough
 * for a level-2 cache, large enough to hide the cost of a put. */
#define RING_PIECE  ((size_t)131072)
#define RING_PIECES ((size_t)64)

/* Chunks begin on a cache line. */
#define RING_ALIGN ((size_t)64 / SHK_TYPE_BYTES)

static bool single_when(unsigned ranks, size_t count)
{
    (void)count;
    return ranks == 1;
}

static int single_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    memcpy(shk_heap_at(wire->heap, SHK_AREA_RECV), shk_heap_at(wire->heap, SHK_AREA_SEND),
           args->count * SHK_TYPE_BYTES);
    return 0;
}

static size_t oneshot_limit(unsigned ranks)
{
    return ranks <= 2 ? ONESHOT_BYTES_2 : ONESHOT_BYTES;
}

static bool oneshot_when(unsigned ranks, size_t count)
{
    return count * SHK_TYPE_BYTES <= oneshot_limit(ranks);
}

/* Each rank puts its vector into its own slot on every peer, and adds up what the peers put. */
static int oneshot_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    enum shk_area area = shk_wire_parity(wire) != 0 ? SHK_AREA_SLOT1 : SHK_AREA_SLOT0;
    const unsigned char *slots = shk_heap_at(wire->heap, area);
    size_t stride = oneshot_limit(wire->size);
    size_t bytes = args->count * SHK_TYPE_BYTES;
    size_t send = wire->heap->offset[SHK_AREA_SEND];
    size_t mine = wire->heap->offset[area] + wire->rank * stride;
    const void *sum = shk_heap_at(wire->heap, SHK_AREA_SEND);
    void *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    unsigned i = 0;
    int rc = 0;

    for (i = 1; i < wire->size && rc == 0; i++) {
        rc = shk_wire_put(wire, (wire->rank + i) % wire->size, send, mine, bytes, wire->rank);
    }
    for (i = 1; i < wire->size && rc == 0; i++) {
        unsigned peer = (wire->rank + wire->size - i) % wire->size;

        rc = shk_wire_wait(wire, peer, peer);
        if (rc == 0) {
            shk_reduce_sum(args->type, recv, sum, slots + peer * stride, args->count);
            sum = recv;
        }
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

/* A ring operation: reduce-scatter, then all-gather, both in size - 1 steps to the next rank. */
struct ring {
    struct shk_wire *wire;
    const struct shk_allreduce_args *args;
    enum shk_area parts; /* partial sums that arrive */
    unsigned next;
    unsigned prev;
    size_t piece;  /* elements */
    size_t pieces; /* of the largest chunk */
};

static size_t ring_chunk_elements(unsigned ranks, size_t count)
{
    size_t chunk = (count + ranks - 1) / ranks;

    return (chunk + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
}

static size_t ring_piece_elements(size_t chunk)
{
    size_t piece = RING_PIECE / SHK_TYPE_BYTES;
    size_t least = (chunk + RING_PIECES - 1) / RING_PIECES;

    least = (least + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
    return piece > least ? piece : least;
}

/* Elements [from, to) of a piece of a chunk; empty where the vector ends earlier. */
static void ring_range(const struct ring *ring, unsigned chunk, size_t piece, size_t *from_p,
                       size_t *to_p)
{
    size_t count = ring->args->count;
    size_t size = ring_chunk_elements(ring->wire->size, count);
    size_t from = chunk * size + piece * ring->piece;
    size_t end = (chunk + 1) * size < count ? (chunk + 1) * size : count;

    *from_p = from < end ? from : end;
    *to_p = from + ring->piece < end ? from + ring->piece : end;
    if (*to_p < *from_p) {
        *to_p = *from_p;
    }
}

static int ring_put(const struct ring *ring, enum shk_area source, enum shk_area target,
                    unsigned chunk, size_t piece, size_t step)
{
    const struct shk_heap *heap = ring->wire->heap;
    size_t from = 0;
    size_t to = 0;

    ring_range(ring, chunk, piece, &from, &to);
    if (from == to) {
        return 0;
    }
    return shk_wire_put(ring->wire, ring->next, heap->offset[source] + from * SHK_TYPE_BYTES,
                        heap->offset[target] + from * SHK_TYPE_BYTES, (to - from) * SHK_TYPE_BYTES,
                        (uint32_t)(step * ring->pieces + piece));
}

static int ring_wait(const struct ring *ring, unsigned chunk, size_t piece, size_t step)
{
    size_t from = 0;
    size_t to = 0;

    ring_range(ring, chunk, piece, &from, &to);
    return from == to
               ? 0
               : shk_wire_wait(ring->wire, ring->prev, (uint32_t)(step * ring->pieces + piece));
}

/* Adds this rank's elements to the partial sum that arrived; the sum goes to the receive area,
 * which is its final place for the chunk that ends here. */
static void ring_add(const struct ring *ring, unsigned chunk, size_t piece)
{
    const struct shk_heap *heap = ring->wire->heap;
    size_t from = 0;
    size_t to = 0;
    size_t at = 0;

    ring_range(ring, chunk, piece, &from, &to);
    at = from * SHK_TYPE_BYTES;
    shk_reduce_sum(ring->args->type, (unsigned char *)shk_heap_at(heap, SHK_AREA_RECV) + at,
                   (unsigned char *)shk_heap_at(heap, SHK_AREA_SEND) + at,
                   (unsigned char *)shk_heap_at(heap, ring->parts) + at, to - from);
}

/* In step s this rank sends chunk rank - s and receives rank - s - 1. The last sum to be completed
 * here is at once sent on as the first all-gather step, straight into the peer's receive area: it
 * contains every rank's part, so every rank is in this operation and done with the one before. */
static int ring_reduce_scatter(const struct ring *ring)
{
    unsigned size = ring->wire->size;
    size_t steps = size - 1;
    size_t s = 0;
    size_t p = 0;
    int rc = 0;

    for (p = 0; p < ring->pieces && rc == 0; p++) {
        rc = ring_put(ring, SHK_AREA_SEND, ring->parts, ring->wire->rank, p, 0);
    }
    for (s = 1; s <= steps; s++) {
        unsigned chunk = (unsigned)((ring->wire->rank + size - s) % size);
        enum shk_area target = s < steps ? ring->parts : SHK_AREA_RECV;

        for (p = 0; p < ring->pieces && rc == 0; p++) {
            rc = ring_wait(ring, chunk, p, s - 1);
            if (rc == 0) {
                ring_add(ring, chunk, p);
                rc = ring_put(ring, SHK_AREA_RECV, target, chunk, p, s);
            }
        }
    }
    return rc;
}

static int ring_all_gather(const struct ring *ring)
{
    unsigned size = ring->wire->size;
    size_t steps = size - 1;
    size_t s = 0;
    size_t p = 0;
    int rc = 0;

    for (s = steps + 1; s <= 2 * steps; s++) {
        unsigned chunk = (unsigned)((ring->wire->rank + 2 * size - s) % size);

        for (p = 0; p < ring->pieces && rc == 0; p++) {
            rc = ring_wait(ring, chunk, p, s - 1);
            if (rc == 0 && s < 2 * steps) {
                rc = ring_put(ring, SHK_AREA_RECV, SHK_AREA_RECV, chunk, p, s);
            }
        }
    }
    return rc;
}

static bool ring_when(unsigned ranks, size_t count)
{
    (void)ranks;
    (void)count;
    return true;
}

static int ring_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    size_t chunk = ring_chunk_elements(wire->size, args->count);
    struct ring ring = {
        .wire = wire,
        .args = args,
        .parts = shk_wire_parity(wire) != 0 ? SHK_AREA_PART1 : SHK_AREA_PART0,
        .next = (wire->rank + 1) % wire->size,
        .prev = (wire->rank + wire->size - 1) % wire->size,
        .piece = ring_piece_elements(chunk),
    };
    int rc = 0;

    ring.pieces = (chunk + ring.piece - 1) / ring.piece;
    rc = ring_reduce_scatter(&ring);
    if (rc == 0) {
        rc = ring_all_gather(&ring);
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

const struct shk_algorithm shk_algorithms[] = {
    {
        .name = "single",
        .doc = "one rank: a copy",
        .when = single_when,
        .run = single_run,
    },
    {
        .name = "one-shot",
        .doc =
            "every rank puts its vector to every peer; each adds up: one step, for small messages",
        .when = oneshot_when,
        .run = oneshot_run,
    },
    {
        .name = "ring",
        .doc = "reduce-scatter and all-gather around a ring in pieces: least traffic, for large "
               "messages",
        .when = ring_when,
        .run = ring_run,
    },
    {0},
};

const struct shk_algorithm *shk_algorithm_for(unsigned ranks, size_t count)
{
    const struct shk_algorithm *algorithm = shk_algorithms;

    while (!algorithm->when(ranks, count)) {
        algorithm++;
    }
    return algorithm;
}

void shk_allreduce_layout(unsigned ranks, size_t max_bytes, struct shk_allreduce_layout *layout)
{
    bool ring = ranks > 1 && max_bytes > oneshot_limit(ranks);
    size_t chunk = ring_chunk_elements(ranks, max_bytes / SHK_TYPE_BYTES);
    size_t slots = ranks > 1 ? ranks * oneshot_limit(ranks) : 0;
    size_t parts = ring ? max_bytes : 0;

    *layout = (struct shk_allreduce_layout){
        .length = {[SHK_AREA_SEND] = max_bytes,
                   [SHK_AREA_RECV] = max_bytes,
                   [SHK_AREA_SLOT0] = slots,
                   [SHK_AREA_SLOT1] = slots,
                   [SHK_AREA_PART0] = parts,
                   [SHK_AREA_PART1] = parts},
        .indices = ring ? 2 * (ranks - 1) * (uint32_t)RING_PIECES : ranks,
        .max_put = ring ? ring_piece_elements(chunk) * SHK_TYPE_BYTES : oneshot_limit(ranks),
    };
    if (layout->indices < ranks) {
        layout->indices = ranks;
    }
}

int shk_allreduce(struct shk_wire *wire, const struct shk_algorithm *algorithm,
                  const struct shk_allreduce_args *args)
{
    shk_wire_begin(wire);
    return algorithm->run(wire, args);
}
