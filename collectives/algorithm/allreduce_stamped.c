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

struct stamp {
    uint32_t op; /* the operation's number, low 32 bits */
    uint32_t sum;
};

struct stamped_look {
    const struct shk_wire *wire;
    const unsigned char *slot;
    size_t bytes;
    uint64_t since_ns; /* that a stamp does not fit; 0: none was seen */
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

/* Words side by side in the sum: a stripe of two cache lines, whatever the width of a vector. */
#define STAMPED_LANES  ((size_t)32)
#define STAMPED_STRIPE (STAMPED_LANES * sizeof(uint32_t))

typedef uint32_t stamped_lanes[STAMPED_LANES];
typedef size_t stamped_fn(uint32_t *lanes, const unsigned char *data, size_t bytes);
#define STAMPED_WAYS 3U

typedef uint32_t stamped_16 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t stamped_64 __attribute__((vector_size(64), aligned(4), may_alias));

/* The multipliers here and below are those of MurmurHash3's finalizers. Each step keeps words that
 * differ apart. */
#define STAMPED_STRIPES(name_, attribute_, vector_)                                                \
    attribute_ static size_t name_(uint32_t *lanes, const unsigned char *data, size_t bytes)       \
    {                                                                                              \
        vector_ sum[STAMPED_STRIPE / sizeof(vector_)];                                             \
        size_t i = 0;                                                                              \
                                                                                                   \
        memcpy(sum, lanes, sizeof sum);                                                            \
        for (i = 0; i + sizeof sum <= bytes; i += sizeof sum) {                                    \
            for (size_t k = 0; k < sizeof sum / sizeof *sum; k++) {                                \
                sum[k] ^= ((const vector_ *)(const void *)(data + i))[k];                          \
                sum[k] *= UINT32_C(0x85ebca6b);                                                    \
                sum[k] ^= sum[k] >> 15;                                                            \
            }                                                                                      \
        }                                                                                          \
        memcpy(lanes, sum, sizeof sum);                                                            \
        return i;                                                                                  \
    }

STAMPED_STRIPES(stamped_base, , stamped_16)
#if defined(__x86_64__)
STAMPED_STRIPES(stamped_avx2, __attribute__((target("avx2"))), stamped_16)
STAMPED_STRIPES(stamped_avx512, __attribute__((target("avx512f"))), stamped_64)
#endif

/* The best first. */
static size_t stamped_ways(stamped_fn *ways[STAMPED_WAYS])
{
    size_t count = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        ways[count++] = stamped_avx512;
    if (__builtin_cpu_supports("avx2"))
        ways[count++] = stamped_avx2;
#endif
    ways[count++] = stamped_base;
    return count;
}

static uint64_t stamped_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* Vectors that differ have sums that differ, but for one in 2^32. */
static uint32_t stamped_sum_by(stamped_fn *stripes, const unsigned char *data, size_t bytes,
                               uint32_t op)
{
    stamped_lanes lanes;
    uint64_t hash = op;
    uint64_t word = 0;
    size_t i = 0;

    if (bytes >= STAMPED_STRIPE) {
        for (size_t k = 0; k < STAMPED_LANES; k++)
            lanes[k] = op + (uint32_t)k;
        i = stripes(lanes, data, bytes);
        for (size_t k = 0; k < STAMPED_LANES; k += 2)
            hash = stamped_mix(hash, (uint64_t)lanes[k] << 32 | lanes[k + 1]);
    }
    for (; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        hash = stamped_mix(hash, word);
    }
    if (i < bytes) {
        uint32_t last = 0;

        memcpy(&last, data + i, sizeof last);
        hash = stamped_mix(hash, last);
    }
    return (uint32_t)hash;
}

static uint32_t stamped_sum(const unsigned char *data, size_t bytes, uint32_t op)
{
    stamped_fn *ways[STAMPED_WAYS];

    (void)stamped_ways(ways);
    return stamped_sum_by(ways[0], data, bytes, op);
}

size_t shk_stamped_sums(const unsigned char *data, size_t bytes, uint32_t op, uint32_t *sums)
{
    stamped_fn *ways[STAMPED_WAYS];
    size_t count = stamped_ways(ways);

    for (size_t i = 0; i < count; i++)
        sums[i] = stamped_sum_by(ways[i], data, bytes, op);
    return count;
}

static bool stamped_here(void *arg)
{
    struct stamped_look *look = arg;
    const uint32_t *op = (const uint32_t *)(const void *)(look->slot + look->bytes);
    struct stamp stamp;

    if (__atomic_load_n(op, __ATOMIC_ACQUIRE) != (uint32_t)look->wire->op) {
        return false;
    }
    memcpy(&stamp, op, sizeof stamp);
    if (stamp.sum == stamped_sum(look->slot, look->bytes, stamp.op))
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
            shk_reduce_sum(args->type, recv, sum, look.slot, args->count);
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
