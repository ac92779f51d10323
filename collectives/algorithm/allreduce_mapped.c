/* Between ranks that map each other's heaps: no data is put, it is read and written where it lies.
 */
#include "collectives/algorithm/allreduce_private.h"
#include <string.h>

/* Summed up before it is handed out: small enough to stay in a level-1 cache meanwhile. */
#define MAPPED_PIECE ((size_t)16384 / SHK_TYPE_BYTES)

static unsigned mapped_peer(const struct shk_wire *wire, unsigned distance)
{
    return (wire->rank + distance) % wire->size;
}

static const unsigned char *mapped_area(const struct shk_wire *wire, unsigned rank,
                                        enum shk_area area)
{
    return wire->mapped[rank].base + wire->heap->offset[area];
}

static bool readall_fits(unsigned ranks, size_t count)
{
    return ranks > 1 && count * SHK_TYPE_BYTES <= shk_slot_bytes(ranks);
}

/* Each rank's vector is copied once, into memory of its own: beside the sign when it fits the same
 * cache line. A rank that writes there again, two operations later, has seen everyone in the one
 * between, which they begin when they have read this one. */
static int readall_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    enum shk_area area = shk_area_by_turn(wire, SHK_AREA_SLOT0);
    struct shk_wire_sign *mine = &wire->mapped[wire->rank].board->vector[shk_wire_parity(wire)];
    size_t bytes = args->count * SHK_TYPE_BYTES;
    bool tiny = bytes <= SHK_WIRE_SIGN_BYTES;
    const void *sum = shk_heap_at(wire->heap, SHK_AREA_SEND);
    void *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    int rc = 0;

    memcpy(tiny ? (void *)mine->data : shk_heap_at(wire->heap, area), sum, bytes);
    shk_wire_show(wire, mine);
    for (unsigned i = 1; i < wire->size && rc == 0; i++) {
        unsigned peer = mapped_peer(wire, i);
        const struct shk_wire_sign *sign = &wire->mapped[peer].board->vector[shk_wire_parity(wire)];

        rc = shk_wire_see(wire, peer, sign);
        if (rc == 0) {
            shk_reduce_sum(args->type, recv, sum, tiny ? sign->data : mapped_area(wire, peer, area),
                           args->count);
            sum = recv;
        }
    }
    return rc;
}

const struct shk_algorithm shk_allreduce_readall = {
    .name = "read-all",
    .doc =
        "every rank reads the vectors of all others where they are and adds them up: one step, for "
        "small messages in shared memory",
    .maps = true,
    .fits = readall_fits,
    .run = readall_run,
};

static bool readpart_fits(unsigned ranks, size_t count)
{
    (void)count;
    return ranks > 1;
}

static int readpart_meet(struct shk_wire *wire, bool done)
{
    struct shk_wire_board *mine = wire->mapped[wire->rank].board;
    int rc = 0;

    shk_wire_show(wire, done ? &mine->done : &mine->ready);
    for (unsigned i = 1; i < wire->size && rc == 0; i++) {
        unsigned peer = mapped_peer(wire, i);
        const struct shk_wire_board *board = wire->mapped[peer].board;

        rc = shk_wire_see(wire, peer, done ? &board->done : &board->ready);
    }
    return rc;
}

/* Elements [from, to) of the sum, on every rank. */
static void readpart_piece(struct shk_wire *wire, enum shk_type type, size_t from, size_t to)
{
    size_t at = from * SHK_TYPE_BYTES;
    size_t bytes = (to - from) * SHK_TYPE_BYTES;
    unsigned char *recv = (unsigned char *)shk_heap_at(wire->heap, SHK_AREA_RECV) + at;
    const unsigned char *sum = (unsigned char *)shk_heap_at(wire->heap, SHK_AREA_SEND) + at;

    for (unsigned i = 1; i < wire->size; i++) {
        shk_reduce_sum(type, recv, sum, mapped_area(wire, mapped_peer(wire, i), SHK_AREA_SEND) + at,
                       to - from);
        sum = recv;
    }
    for (unsigned i = 1; i < wire->size; i++) {
        unsigned char *base = wire->mapped[mapped_peer(wire, i)].base;

        memcpy(base + wire->heap->offset[SHK_AREA_RECV] + at, recv, bytes);
    }
}

static int readpart_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    size_t chunk = shk_cut_chunk(wire->size, args->count);
    size_t from = wire->rank * chunk;
    size_t end = from + chunk < args->count ? from + chunk : args->count;
    int rc = readpart_meet(wire, false);

    for (; from < end && rc == 0; from += MAPPED_PIECE) {
        readpart_piece(wire, args->type, from,
                       from + MAPPED_PIECE < end ? from + MAPPED_PIECE : end);
    }
    return rc == 0 ? readpart_meet(wire, true) : rc;
}

int shk_mapped_copy(struct shk_wire *wire, size_t count, size_t piece_bytes)
{
    size_t chunk = shk_cut_chunk(wire->size, count);
    size_t piece = piece_bytes / SHK_TYPE_BYTES;
    size_t from = wire->rank * chunk;
    size_t end = from + chunk < count ? from + chunk : count;

    for (; from < end; from += piece) {
        size_t at = from * SHK_TYPE_BYTES;
        size_t bytes = (from + piece < end ? piece : end - from) * SHK_TYPE_BYTES;

        for (unsigned i = 0; i < wire->size; i++) {
            unsigned char *base = wire->mapped[mapped_peer(wire, i)].base;

            memcpy(base + wire->heap->offset[SHK_AREA_RECV] + at,
                   base + wire->heap->offset[SHK_AREA_SEND] + at, bytes);
        }
    }
    return readpart_meet(wire, true);
}

const struct shk_algorithm shk_allreduce_readpart = {
    .name = "read-part",
    .doc =
        "every rank adds up its part of all vectors where they are and writes the sums to all: for "
        "large messages in shared memory",
    .maps = true,
    .fits = readpart_fits,
    .run = readpart_run,
};
