/* Two-shot and pull: each rank adds up one chunk of everybody's vectors and hands the sums to all.
 * The same traffic as the ring in two steps instead of 2 (n - 1), but n - 1 peers at a time. */
#include "collectives/algorithm/allreduce_private.h"

/* Pieces that are fetched ahead of the one being added up. */
#define PULL_AHEAD ((size_t)2)

/* More peers than this at a time serve no network well. */
#define DIRECT_RANKS 64U

struct direct {
    struct shk_wire *wire;
    const struct shk_allreduce_args *args;
    enum shk_area parts; /* of everybody's vectors for the chunk of this rank */
    struct shk_cut cut;
    uint32_t gather; /* first index of the second step */
    uint32_t ready;
};

static struct direct direct_make(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    return (struct direct){
        .wire = wire,
        .args = args,
        .parts = shk_area_by_turn(wire, SHK_AREA_PART0),
        .cut = shk_cut(wire->size, args->count, args->piece_bytes),
        .gather = wire->size * (uint32_t)SHK_PIECES,
        .ready = 2 * wire->size * (uint32_t)SHK_PIECES,
    };
}

static unsigned direct_peer(const struct direct *d, unsigned i)
{
    return (d->wire->rank + i) % d->wire->size;
}

static uint32_t direct_index(unsigned rank, size_t piece)
{
    return rank * (uint32_t)SHK_PIECES + (uint32_t)piece;
}

/* Where in the parts area a piece from `source` lies, in elements. */
static size_t direct_part(const struct direct *d, unsigned source, size_t piece)
{
    return source * d->cut.chunk + piece * d->cut.piece;
}

/* Pieces fetched by pull reuse the places of those added up. */
static size_t pull_part(const struct direct *d, unsigned source, size_t piece)
{
    return direct_part(d, source, piece % (PULL_AHEAD + 1));
}

static int direct_scatter(const struct direct *d)
{
    const struct shk_heap *heap = d->wire->heap;
    size_t from = 0;
    size_t to = 0;
    int rc = 0;

    for (size_t p = 0; p < d->cut.pieces; p++) {
        for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
            unsigned peer = direct_peer(d, i);

            shk_cut_range(&d->cut, peer, p, &from, &to);
            if (from < to) {
                rc = shk_wire_put(
                    d->wire, peer, heap->offset[SHK_AREA_SEND] + from * SHK_TYPE_BYTES,
                    heap->offset[d->parts] + direct_part(d, d->wire->rank, p) * SHK_TYPE_BYTES,
                    (to - from) * SHK_TYPE_BYTES, direct_index(d->wire->rank, p));
            }
        }
    }
    return rc;
}

/* Hands elements [from, to) of the result to all, straight into their receive areas: they contain
 * every rank's part, so every rank is in this operation. */
static int direct_hand_out(const struct direct *d, size_t piece, size_t from, size_t to)
{
    size_t at = d->wire->heap->offset[SHK_AREA_RECV] + from * SHK_TYPE_BYTES;
    int rc = 0;

    for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
        rc = shk_wire_put(d->wire, direct_peer(d, i), at, at, (to - from) * SHK_TYPE_BYTES,
                          d->gather + direct_index(d->wire->rank, piece));
    }
    return rc;
}

/* Adds up a piece of this rank's chunk as the parts arrive; part() tells where they lie. */
static int direct_add(const struct direct *d, size_t piece, size_t from, size_t to,
                      size_t (*part)(const struct direct *d, unsigned source, size_t piece))
{
    const struct shk_heap *heap = d->wire->heap;
    const unsigned char *parts = shk_heap_at(heap, d->parts);
    unsigned char *recv = (unsigned char *)shk_heap_at(heap, SHK_AREA_RECV) + from * SHK_TYPE_BYTES;
    const unsigned char *sum =
        (unsigned char *)shk_heap_at(heap, SHK_AREA_SEND) + from * SHK_TYPE_BYTES;
    int rc = 0;

    for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
        unsigned peer = direct_peer(d, d->wire->size - i);

        rc = shk_wire_wait(d->wire, peer, direct_index(peer, piece));
        if (rc == 0) {
            rc = shk_wire_sum(d->wire, d->args->type, recv, sum,
                              parts + part(d, peer, piece) * SHK_TYPE_BYTES, to - from);
            sum = recv;
        }
    }
    return rc;
}

static int direct_gather(const struct direct *d)
{
    size_t from = 0;
    size_t to = 0;
    int rc = 0;

    for (size_t p = 0; p < d->cut.pieces; p++) {
        for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
            unsigned peer = direct_peer(d, d->wire->size - i);

            shk_cut_range(&d->cut, peer, p, &from, &to);
            if (from < to)
                rc = shk_wire_wait(d->wire, peer, d->gather + direct_index(peer, p));
        }
    }
    return rc == 0 ? shk_wire_flush(d->wire) : rc;
}

static bool twoshot_fits(unsigned ranks, size_t count)
{
    (void)count;
    return ranks > 2 && ranks <= DIRECT_RANKS; /* between two it is the ring */
}

static int twoshot_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct direct d = direct_make(wire, args);
    size_t from = 0;
    size_t to = 0;
    int rc = direct_scatter(&d);

    for (size_t p = 0; p < d.cut.pieces && rc == 0; p++) {
        shk_cut_range(&d.cut, wire->rank, p, &from, &to);
        if (from < to) {
            rc = direct_add(&d, p, from, to, direct_part);
            rc = rc == 0 ? direct_hand_out(&d, p, from, to) : rc;
        }
    }
    return rc == 0 ? direct_gather(&d) : rc;
}

const struct shk_algorithm shk_allreduce_twoshot = {
    .name = "two-shot",
    .doc = "every rank puts a chunk to each peer, adds up its own and puts the sums to all: two "
           "steps",
    .pipelined = true,
    .fits = twoshot_fits,
    .run = twoshot_run,
};

static bool pull_fits(unsigned ranks, size_t count)
{
    return ranks > 1 && ranks <= DIRECT_RANKS && count >= ranks * SHK_CHUNK_ALIGN;
}

/* Tells every peer that the send area is complete, and waits for the same from them. */
static int pull_ready(const struct direct *d)
{
    const struct shk_heap *heap = d->wire->heap;
    size_t slot = heap->offset[shk_area_by_turn(d->wire, SHK_AREA_SLOT0)] +
                  d->wire->rank * shk_slot_bytes(d->wire->size);
    int rc = 0;

    for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
        rc = shk_wire_put(d->wire, direct_peer(d, i), heap->offset[SHK_AREA_SEND], slot,
                          SHK_TYPE_BYTES, d->ready + d->wire->rank);
    }
    for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
        unsigned peer = direct_peer(d, d->wire->size - i);

        rc = shk_wire_wait(d->wire, peer, d->ready + peer);
    }
    return rc;
}

static int pull_fetch(const struct direct *d, size_t piece)
{
    const struct shk_heap *heap = d->wire->heap;
    size_t from = 0;
    size_t to = 0;
    int rc = 0;

    shk_cut_range(&d->cut, d->wire->rank, piece, &from, &to);
    if (piece >= d->cut.pieces || from == to)
        return 0;
    for (unsigned i = 1; i < d->wire->size && rc == 0; i++) {
        unsigned peer = direct_peer(d, d->wire->size - i);

        rc = shk_wire_get(d->wire, peer, heap->offset[SHK_AREA_SEND] + from * SHK_TYPE_BYTES,
                          heap->offset[d->parts] + pull_part(d, peer, piece) * SHK_TYPE_BYTES,
                          (to - from) * SHK_TYPE_BYTES, direct_index(peer, piece));
    }
    return rc;
}

/* A peer's send area is read before the peer has the result of that piece, so it is not changed
 * under the read. */
static int pull_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct direct d = direct_make(wire, args);
    size_t from = 0;
    size_t to = 0;
    int rc = pull_ready(&d);

    for (size_t p = 0; p < PULL_AHEAD && rc == 0; p++)
        rc = pull_fetch(&d, p);
    for (size_t p = 0; p < d.cut.pieces && rc == 0; p++) {
        rc = pull_fetch(&d, p + PULL_AHEAD);
        shk_cut_range(&d.cut, wire->rank, p, &from, &to);
        if (from < to && rc == 0) {
            rc = direct_add(&d, p, from, to, pull_part);
            rc = rc == 0 ? direct_hand_out(&d, p, from, to) : rc;
        }
    }
    return rc == 0 ? direct_gather(&d) : rc;
}

const struct shk_algorithm shk_allreduce_pull = {
    .name = "pull",
    .doc = "every rank reads its chunk of the peers' vectors, adds up and puts the sums to all: "
           "the parts stay in its cache",
    .pipelined = true,
    .gets = true,
    .fits = pull_fits,
    .run = pull_run,
};
