#include "collectives/algorithm/allreduce_private.h"

static bool single_fits(unsigned ranks, size_t count)
{
    (void)count;
    return ranks == 1;
}

static int single_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    return shk_wire_copy(wire, shk_heap_at(wire->heap, SHK_AREA_RECV),
                         shk_heap_at(wire->heap, SHK_AREA_SEND), args->count * SHK_TYPE_BYTES);
}

const struct shk_algorithm shk_allreduce_single = {
    .name = "single",
    .doc = "one rank: a copy",
    .fits = single_fits,
    .run = single_run,
};

static bool oneshot_fits(unsigned ranks, size_t count)
{
    return ranks > 1 && count * SHK_TYPE_BYTES <= shk_slot_bytes(ranks);
}

static int oneshot_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    enum shk_area area = shk_area_by_turn(wire, SHK_AREA_SLOT0);
    const unsigned char *slots = shk_heap_at(wire->heap, area);
    size_t stride = shk_slot_bytes(wire->size);
    size_t bytes = args->count * SHK_TYPE_BYTES;
    size_t send = wire->heap->offset[SHK_AREA_SEND];
    size_t mine = wire->heap->offset[area] + wire->rank * stride;
    const void *sum = shk_heap_at(wire->heap, SHK_AREA_SEND);
    void *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    int rc = 0;

    for (unsigned i = 1; i < wire->size && rc == 0; i++)
        rc = shk_wire_put(wire, (wire->rank + i) % wire->size, send, mine, bytes, wire->rank);
    for (unsigned i = 1; i < wire->size && rc == 0; i++) {
        unsigned peer = (wire->rank + wire->size - i) % wire->size;

        rc = shk_wire_wait(wire, peer, peer);
        if (rc == 0) {
            rc = shk_wire_sum(wire, args->type, recv, sum, slots + peer * stride, args->count);
            sum = recv;
        }
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

const struct shk_algorithm shk_allreduce_oneshot = {
    .name = "one-shot",
    .doc = "every rank puts its vector to every peer; each adds up: one step, for small messages",
    .fits = oneshot_fits,
    .run = oneshot_run,
};

static bool doubling_fits(unsigned ranks, size_t count)
{
    return ranks > 2 && oneshot_fits(ranks, count);
}

/* Recursive doubling between the largest power of two of ranks. The first 2 * `extra` ranks pair
 * up: the even one gives its vector to the odd one and gets the result from it. */
struct doubling {
    struct shk_wire *wire;
    const struct shk_allreduce_args *args;
    enum shk_area area;
    size_t bytes;
    size_t sum; /* heap offset of the partial sum */
    uint32_t slot;
};

static size_t doubling_slot(const struct doubling *d, uint32_t slot)
{
    return d->wire->heap->offset[d->area] + slot * shk_slot_bytes(d->wire->size);
}

/* Adds what arrived in a slot. The sum replaces it there, since an earlier one may still be on its
 * way out; the last goes to the receive area. */
static int doubling_add(struct doubling *d, unsigned peer, bool last)
{
    struct shk_heap *heap = d->wire->heap;
    size_t to = last ? heap->offset[SHK_AREA_RECV] : doubling_slot(d, d->slot);
    int rc = shk_wire_wait(d->wire, peer, d->slot);

    if (rc == 0) {
        rc = shk_wire_sum(d->wire, d->args->type, heap->base + to, heap->base + d->sum,
                          heap->base + doubling_slot(d, d->slot), d->args->count);
        d->sum = to;
        d->slot++;
    }
    return rc;
}

static unsigned doubling_extra(unsigned ranks, unsigned *power_p)
{
    unsigned power = 1;

    while (power <= ranks / 2)
        power *= 2;
    *power_p = power;
    return ranks - power;
}

static int doubling_steps(struct doubling *d, unsigned virtual, unsigned power, unsigned extra)
{
    unsigned mask = 1;
    int rc = 0;

    d->slot = 1;
    for (mask = 1; mask < power && rc == 0; mask *= 2) {
        unsigned other = virtual ^ mask;
        unsigned peer = other < extra ? 2 * other + 1 : other + extra;

        rc = shk_wire_put(d->wire, peer, d->sum, doubling_slot(d, d->slot), d->bytes, d->slot);
        if (rc == 0)
            rc = doubling_add(d, peer, mask * 2 == power);
    }
    return rc;
}

static int doubling_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    struct doubling d = {.wire = wire,
                         .args = args,
                         .area = shk_area_by_turn(wire, SHK_AREA_SLOT0),
                         .bytes = args->count * SHK_TYPE_BYTES,
                         .sum = wire->heap->offset[SHK_AREA_SEND]};
    size_t recv = wire->heap->offset[SHK_AREA_RECV];
    uint32_t final = wire->size;
    unsigned power = 0;
    unsigned extra = doubling_extra(wire->size, &power);
    bool paired = wire->rank < 2 * extra;
    int rc = 0;

    if (paired && wire->rank % 2 == 0) {
        rc = shk_wire_put(wire, wire->rank + 1, d.sum, doubling_slot(&d, 0), d.bytes, 0);
        rc = rc == 0 ? shk_wire_wait(wire, wire->rank + 1, final) : rc;
        return rc == 0 ? shk_wire_flush(wire) : rc;
    }
    if (paired)
        rc = doubling_add(&d, wire->rank - 1, false);
    if (rc == 0)
        rc = doubling_steps(&d, paired ? wire->rank / 2 : wire->rank - extra, power, extra);
    if (rc == 0 && paired) {
        /* Its vector is in the sum, so the peer is in this operation. */
        rc = shk_wire_put(wire, wire->rank - 1, recv, recv, d.bytes, final);
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

const struct shk_algorithm shk_allreduce_doubling = {
    .name = "doubling",
    .doc = "recursive doubling: pairs at growing distance exchange their sums; few steps for small "
           "messages between many ranks",
    .fits = doubling_fits,
    .run = doubling_run,
};
