#include "collectives/ranks/data.h"
#include <string.h>

/* Ranks' weights repeat after this many, a prime so that no layout of ranks lines up with it. */
#define DATA_WEIGHTS 61U

static const char *const type_names[SHK_TYPE_COUNT] = {
    [SHK_FLOAT32] = "float32",
    [SHK_INT32] = "int32",
};

const char *shk_type_name(enum shk_type type)
{
    return type_names[type];
}

static uint32_t data_weight(unsigned rank)
{
    return rank % DATA_WEIGHTS + 1;
}

/* Sum of the weights of all ranks. */
static uint64_t data_weights(unsigned ranks)
{
    uint64_t full = ranks / DATA_WEIGHTS;
    uint64_t rest = ranks % DATA_WEIGHTS;

    return full * (DATA_WEIGHTS * (DATA_WEIGHTS + 1) / 2) + rest * (rest + 1) / 2;
}

/* Ranges of a and b as bit masks, so that the sum stays below 2^24. */
struct data_range {
    uint32_t a;
    uint32_t b;
};

static uint32_t data_mask(uint64_t limit)
{
    uint32_t mask = 1023;

    while (mask > 0 && mask > limit)
        mask >>= 1;
    return mask;
}

static struct data_range data_range(unsigned ranks)
{
    uint64_t weights = data_weights(ranks);
    uint64_t half = UINT64_C(1) << 23;

    return (struct data_range){
        .a = data_mask(half / ranks),
        .b = data_mask(weights < half ? half / weights - 1 : 0),
    };
}

static inline uint32_t data_hash(uint32_t i, uint32_t seed)
{
    uint32_t h = i * UINT32_C(0x9e3779b1) + seed * UINT32_C(0x85ebca77);

    h ^= h >> 15;
    h *= UINT32_C(0x2c1b3c6d);
    return h ^ h >> 13;
}

/* copies * a + weight * b, with the sign of the element. */
static inline int32_t data_value(uint32_t h, struct data_range range, uint32_t copies,
                                 uint32_t weight)
{
    uint32_t a = h & range.a;
    uint32_t b = (h >> 10 & range.b) + 1;
    int32_t v = (int32_t)(copies * a + weight * b);

    return h >> 31 ? -v : v;
}

/* 2^-4 … 2^3, built from its bits so that the loop vectorises. */
static inline float data_scale(uint32_t h)
{
    uint32_t bits = (127 - 4 + (h >> 20 & 7)) << 23;
    float scale = 0;

    memcpy(&scale, &bits, sizeof scale);
    return scale;
}

static void data_make(enum shk_type type, void *buf, size_t count, uint32_t first, uint32_t copies,
                      uint32_t weight, struct data_range range, uint32_t seed)
{
    float *floats = buf;
    int32_t *ints = buf;

    if (type == SHK_FLOAT32) {
        for (size_t i = 0; i < count; i++) {
            uint32_t h = data_hash(first + (uint32_t)i, seed);

            floats[i] = (float)data_value(h, range, copies, weight) * data_scale(h);
        }
    } else {
        for (size_t i = 0; i < count; i++) {
            uint32_t h = data_hash(first + (uint32_t)i, seed);

            ints[i] = data_value(h, range, copies, weight);
        }
    }
}

void shk_data_fill(enum shk_type type, void *buf, size_t count, unsigned rank, unsigned ranks,
                   uint32_t seed)
{
    data_make(type, buf, count, 0, 1, data_weight(rank), data_range(ranks), seed);
}

static double data_number(enum shk_type type, const void *at)
{
    float f = 0;
    int32_t i = 0;

    if (type == SHK_FLOAT32) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&i, at, sizeof i);
    return i;
}

static void data_compare(enum shk_type type, const unsigned char *got, const unsigned char *expect,
                         size_t first, size_t count, struct shk_mismatch *bad)
{
    for (size_t i = 0; i < count; i++) {
        size_t at = i * SHK_TYPE_BYTES;

        if (memcmp(got + at, expect + at, SHK_TYPE_BYTES) == 0)
            continue;
        if (bad->wrong++ == 0) {
            bad->index = first + i;
            bad->expected = data_number(type, expect + at);
            bad->got = data_number(type, got + at);
        }
    }
}

bool shk_data_verify(enum shk_type type, const void *buf, size_t count, unsigned ranks,
                     uint32_t seed, struct shk_mismatch *bad)
{
    struct data_range range = data_range(ranks);
    uint32_t weight = (uint32_t)data_weights(ranks);
    const unsigned char *got = buf;
    uint32_t block[1024];
    const size_t step = sizeof block / sizeof block[0];
    struct shk_mismatch found = {0};

    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step;

        data_make(type, block, n, (uint32_t)i, ranks, weight, range, seed);
        if (memcmp(got + i * SHK_TYPE_BYTES, block, n * SHK_TYPE_BYTES) != 0) {
            data_compare(type, got + i * SHK_TYPE_BYTES, (const unsigned char *)block, i, n,
                         &found);
        }
    }
    if (found.wrong == 0)
        return true;
    *bad = found;
    return false;
}
