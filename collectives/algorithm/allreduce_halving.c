/* Rabenseifner's algorithm: reduce-scatter by recursive halving, all-gather by recursive doubling.
 * The ring's traffic in 2 log2(n) steps, for powers of two. */
#include "collectives/algorithm/allreduce_private.h"

static bool halving_fits(unsigned ranks, size_t count)
{
    return ranks >= 4 && (ranks & (ranks - 1)) == 0 && count >= ranks * SHK_CHUNK_ALIGN;
}

struct halving {
    struct shk_wire *wire;
    const struct shk_allreduce_args *args;
    enum shk_area parts;
    struct shk_cut cut;
    unsigned first; /* chunks whose sum this rank still works on */
    unsigned count;
    unsigned room; /* chunks of the parts area used by earlier steps */
};

/* Elements [from, to) of chunks. */
static void halving_range(const struct halving *h, unsigned first, unsigned count, size_t *from_p,
                          size_t *to_p)
{
    size_t from = first * h->cut.chunk;
    size_t to = (first + count) * h->cut.chunk;

    *to_p = to < h->cut.count ? to : h->cut.count;
    *from_p = from < *to_p ? from : *to_p;
}

static int halving_step(struct halving *h, enum shk_area source, uint32_t step)
{
    struct shk_heap *heap = h->wire->heap;
    unsigned half = h->count / 2;
    bool upper = (h->wire->rank & half) != 0;
    unsigned peer = h->wire->rank ^ half;
    size_t parts = heap->offset[h->parts] + h->room * h->cut.chunk * SHK_TYPE_BYTES;
    size_t from = 0;
    size_t to = 0;
    int rc = 0;

    halving_range(h, upper ? h->first : h->first + half, half, &from, &to);
    if (from < to) {
        rc = shk_wire_put(h->wire, peer, heap->offset[source] + from * SHK_TYPE_BYTES, parts,
                          (to - from) * SHK_TYPE_BYTES, step);
    }
    h->first += upper ? half : 0;
    h->count = half;
    h->room += half;
    halving_range(h, h->first, half, &from, &to);
    if (rc == 0 && from < to)
        rc = shk_wire_wait(h->wire, peer, step);
    if (rc == 0 && from < to) {
        /* What this adds to was not sent away: the halves that were are no longer this rank's. */
        rc = shk_wire_sum(h->wire, h->args->type,
                          (unsigned char *)shk_heap_at(heap, SHK_AREA_RECV) + from * SHK_TYPE_BYTES,
                          (unsigned char *)shk_heap_at(heap, source) + from * SHK_TYPE_BYTES,
                          heap->base + parts, to - from);
    }
    return rc;
}

/* Sums are complete now: they go straight into the peer's receive area, whose rank is in this
 * operation, since its part is in them. */
static int doubling_step(struct halving *h, uint32_t step)
{
    struct shk_heap *heap = h->wire->heap;
    unsigned peer = h->wire->rank ^ h->count;
    unsigned theirs = h->first ^ h->count;
    size_t recv = heap->offset[SHK_AREA_RECV];
    size_t from = 0;
    size_t to = 0;
    int rc = 0;

    halving_range(h, h->first, h->count, &from, &to);
    if (from < to) {
        rc = shk_wire_put(h->wire, peer, recv + from * SHK_TYPE_BYTES, recv + from * SHK_TYPE_BYTES,
                          (to - from) * SHK_TYPE_BYTES, step);
    }
    halving_range(h, theirs, h->count, &from, &to);
    if (rc == 0 && from < to)
        rc = shk_wire_wait(h->wire, peer, step);
    h->first = h->first < theirs ? h->first : theirs;
    h->count *= 2;
    return rc;
}

static int halving_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct halving h = {
        .wire = wire,
        .args = args,
        .parts = shk_area_by_turn(wire, SHK_AREA_PART0),
        .cut = shk_cut(wire->size, args->count, 0),
        .count = wire->size,
    };
    uint32_t step = 0;
    int rc = 0;

    while (h.count > 1 && rc == 0) {
        rc = halving_step(&h, step == 0 ? SHK_AREA_SEND : SHK_AREA_RECV, step);
        step++;
    }
    while (h.count < wire->size && rc == 0) {
        rc = doubling_step(&h, step);
        step++;
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

const struct shk_algorithm shk_allreduce_halving = {
    .name = "halving",
    .doc = "Rabenseifner: recursive halving, then doubling; least traffic in few steps, for powers "
           "of two",
    .fits = halving_fits,
    .run = halving_run,
};
