/* One-shot for a few bytes, whose vectors tell by themselves that they are there: the target sees a
 * stamp behind them in its memory. What a provider does to tell of an arrival (over tcp;ofi_rxm two
 * system calls) falls away. In which order a provider writes the bytes of a put is not known, so
 * the stamp has a sum of them. */
#include "collectives/algorithm/allreduce_private.h"
#include "collectives/ranks/job_private.h"
#include "collectives/ranks/reduce.h"
#include <string.h>

/* A stamp whose sum does not fit its vector for so long is of one that was damaged on the way: it
 * is taken, and the verification tells. */
#define STAMPED_PATIENCE_NS UINT64_C(100000000)

#define STAMPED_CHAINS ((size_t)4)

struct stamp {
    uint32_t op; /* the operation's number, low 32 bits */
    uint32_t sum;
};

struct stamped_look {
    const struct shk_wire *wire;
    const unsigned char *slot;
    size_t bytes;
    uint64_t since_ns; /* that a stamp does not fit; 0: none was seen */
    unsigned char packet[SHK_STAMPED_PACKET];
};

static size_t stamped_drops(size_t count)
{
    return count * SHK_TYPE_BYTES + sizeof(struct stamp);
}

static bool stamped_fits(unsigned ranks, size_t count)
{
    return ranks > 1 && stamped_drops(count) <= SHK_STAMPED_PACKET &&
           stamped_drops(count) <= shk_slot_bytes(ranks);
}

/* The multiplier is that of MurmurHash3's finalizer. */
static uint64_t stamped_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* Vectors that differ have sums that differ, but for one in 2^32. Several chains at once, since
 * each multiplication waits for the one before. */
static uint32_t stamped_sum(const unsigned char *data, size_t bytes, uint32_t op)
{
    uint64_t chain[STAMPED_CHAINS];
    uint64_t words[STAMPED_CHAINS];
    uint64_t hash = op;
    size_t i = 0;

    for (size_t k = 0; k < STAMPED_CHAINS; k++)
        chain[k] = op + k;
    for (i = 0; i + sizeof words <= bytes; i += sizeof words) {
        memcpy(words, data + i, sizeof words);
        for (size_t k = 0; k < STAMPED_CHAINS; k++)
            chain[k] = stamped_mix(chain[k], words[k]);
    }
    for (size_t k = 0; i > 0 && k < STAMPED_CHAINS; k++)
        hash = stamped_mix(hash, chain[k]);
    for (; i < bytes; i += sizeof(uint32_t)) {
        uint32_t word = 0;

        memcpy(&word, data + i, sizeof word);
        hash = stamped_mix(hash, word);
    }
    return (uint32_t)hash;
}

static bool stamped_here(void *arg)
{
    struct stamped_look *look = arg;
    const uint32_t *op = (const uint32_t *)(const void *)(look->slot + look->bytes);
    struct stamp stamp;

    if (__atomic_load_n(op, __ATOMIC_ACQUIRE) != (uint32_t)look->wire->op) {
        return false;
    }
    memcpy(look->packet, look->slot, look->bytes + sizeof stamp);
    memcpy(&stamp, look->packet + look->bytes, sizeof stamp);
    if (stamp.sum == stamped_sum(look->packet, look->bytes, stamp.op))
        return true;
    look->since_ns = look->since_ns != 0 ? look->since_ns : shk_job_now_ns();
    return shk_job_now_ns() - look->since_ns > STAMPED_PATIENCE_NS;
}

/* Slots take turns as those of one-shot do. */
static int stamped_run(struct shk_wire *wire, const struct shk_allreduce_args *args)
{
    enum shk_area area = shk_area_by_turn(wire, SHK_AREA_SLOT0);
    unsigned char *slots = shk_heap_at(wire->heap, area);
    size_t stride = shk_slot_bytes(wire->size);
    size_t bytes = args->count * SHK_TYPE_BYTES;
    size_t mine = wire->heap->offset[area] + wire->rank * stride;
    const void *sum = shk_heap_at(wire->heap, SHK_AREA_SEND);
    void *recv = shk_heap_at(wire->heap, SHK_AREA_RECV);
    unsigned char *packet = slots + wire->rank * stride; /* nobody puts to a rank's own slot */
    struct stamp stamp = {.op = (uint32_t)wire->op};
    int rc = 0;

    memcpy(packet, sum, bytes);
    stamp.sum = stamped_sum(packet, bytes, stamp.op);
    memcpy(packet + bytes, &stamp, sizeof stamp);
    for (unsigned i = 1; i < wire->size && rc == 0; i++) {
        rc = shk_wire_drop(wire, (wire->rank + i) % wire->size, mine, mine, bytes + sizeof stamp);
    }
    for (unsigned i = 1; i < wire->size && rc == 0; i++) {
        unsigned peer = (wire->rank + wire->size - i) % wire->size;
        struct stamped_look look = {.wire = wire, .slot = slots + peer * stride, .bytes = bytes};

        rc = shk_wire_watch(wire, peer, stamped_here, &look);
        if (rc == 0) {
            shk_reduce_sum(args->type, recv, sum, look.packet, args->count);
            sum = recv;
        }
    }
    return rc == 0 ? shk_wire_flush(wire) : rc;
}

const struct shk_algorithm shk_allreduce_stamped = {
    .name = "stamped",
    .doc = "one-shot of a few bytes with a stamp behind them, which the target sees in its memory: "
           "no notification",
    .drops = stamped_drops,
    .fits = stamped_fits,
    .run = stamped_run,
};
