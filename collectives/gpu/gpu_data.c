#include "collectives/gpu/gpu_data.h"
#include <math.h>
#include <string.h>

static const struct type_row {
    const char *name;
    const char *tag;
    size_t bytes;
    uint32_t limit; /* whole numbers up to this are exact; int32: far from the poison */
} types[SHK_GPU_TYPE_COUNT] = {
    [SHK_GPU_F32] = {"float32", "f32", 4, 1U << 24},
    [SHK_GPU_F16] = {"float16", "f16", 2, 1U << 11},
    [SHK_GPU_BF16] = {"bfloat16", "bf16", 2, 1U << 8},
    [SHK_GPU_I32] = {"int32", "i32", 4, 1U << 21},
};

const char *shk_gpu_type_name(enum shk_gpu_type type)
{
    return types[type].name;
}

const char *shk_gpu_type_tag(enum shk_gpu_type type)
{
    return types[type].tag;
}

size_t shk_gpu_type_bytes(enum shk_gpu_type type)
{
    return types[type].bytes;
}

/* Sum of the weights 1 … period, 1 … over all ranks. */
static uint64_t weights(unsigned ranks, unsigned period)
{
    uint64_t rest = ranks % period;

    return (uint64_t)(ranks / period) * (period * (period + 1) / 2) + rest * (rest + 1) / 2;
}

static uint32_t mask_up_to(uint64_t limit)
{
    uint32_t mask = 1023;

    while (mask > 0 && mask > limit)
        mask >>= 1;
    return mask;
}

/* Weights repeat after this many ranks: primes, so that no layout of ranks lines up with them. */
static bool plan(struct shk_gpu_spec *spec, enum shk_gpu_type type, unsigned ranks,
                 unsigned *period_p)
{
    static const unsigned periods[] = {61, 7, 3, 1};
    uint64_t limit = types[type].limit;

    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        uint64_t sum = weights(ranks, periods[i]);
        uint64_t half = limit / 2;

        if (sum <= limit - limit / 4) {
            uint64_t room_b = half > sum ? half / sum - 1 : 0;

            spec->type = type;
            spec->mask_b = mask_up_to(room_b);
            spec->mask_a = mask_up_to((limit - sum * (spec->mask_b + 1)) / ranks);
            *period_p = periods[i];
            return true;
        }
    }
    return false;
}

bool shk_gpu_spec_for(struct shk_gpu_spec *spec, enum shk_gpu_type type, unsigned rank,
                      unsigned ranks, uint32_t seed)
{
    unsigned period = 1;

    memset(spec, 0, sizeof *spec);
    if (!plan(spec, type, ranks, &period))
        return false;
    spec->seed = seed;
    spec->copies = 1;
    spec->weight = rank % period + 1;
    return true;
}

bool shk_gpu_spec_sum(struct shk_gpu_spec *spec, enum shk_gpu_type type, unsigned ranks,
                      uint32_t seed)
{
    unsigned period = 1;

    memset(spec, 0, sizeof *spec);
    if (!plan(spec, type, ranks, &period))
        return false;
    spec->seed = seed;
    spec->copies = ranks;
    spec->weight = (uint32_t)weights(ranks, period);
    return true;
}

static uint32_t bits_of(float value)
{
    uint32_t bits = 0;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value = 0;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t shk_gpu_bfloat_of(float value)
{
    uint32_t bits = bits_of(value);

    if (isnan(value))
        return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float shk_gpu_float_of_bfloat(uint16_t bfloat)
{
    return float_of((uint32_t)bfloat << 16);
}

uint16_t shk_gpu_half_of(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    float size = fabsf(value);

    if (isnan(value))
        return 0x7fff;
    if (size >= 65520.0F)
        return (uint16_t)(sign | 0x7c00);
    if (size < 6.103515625e-05F) { /* 2^-14: below, steps of 2^-24 */
        return (uint16_t)(sign | (uint16_t)nearbyintf(size * 16777216.0F));
    }
    bits &= 0x7fffffff;
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000U) >> 13);
}

float shk_gpu_float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t power = half >> 10 & 31;
    uint32_t part = half & 0x3ff;

    if (power == 0)
        return float_of(sign | bits_of((float)part / 16777216.0F));
    if (power == 31)
        return float_of(sign | 0x7f800000U | part << 13);
    return float_of(sign | (power + 112) << 23 | part << 13);
}

static void element(const struct shk_gpu_spec *spec, uint64_t i, void *to)
{
    uint32_t h = shk_gpu_hash(i, spec->seed);
    int32_t whole = shk_gpu_whole(spec, h);
    float value = ldexpf((float)whole, shk_gpu_power(h));
    uint16_t narrow = 0;

    switch (spec->type) {
    case SHK_GPU_I32: memcpy(to, &whole, sizeof whole); break;
    case SHK_GPU_F32: memcpy(to, &value, sizeof value); break;
    default:
        narrow = spec->type == SHK_GPU_F16 ? shk_gpu_half_of(value) : shk_gpu_bfloat_of(value);
        memcpy(to, &narrow, sizeof narrow);
        break;
    }
}

void shk_gpu_data_fill(const struct shk_gpu_spec *spec, void *to, size_t count)
{
    size_t bytes = types[spec->type].bytes;

    for (size_t i = 0; i < count; i++)
        element(spec, i, (unsigned char *)to + i * bytes);
}

void shk_gpu_data_check(const struct shk_gpu_spec *spec, const void *got, size_t count,
                        struct shk_gpu_check *result)
{
    size_t bytes = types[spec->type].bytes;
    unsigned char expected[8];

    for (size_t i = 0; i < count; i++) {
        element(spec, i, expected);
        if (memcmp((const unsigned char *)got + i * bytes, expected, bytes) != 0) {
            result->first = result->wrong == 0 ? i : result->first;
            result->wrong++;
        }
    }
}

double shk_gpu_data_number(enum shk_gpu_type type, const void *at)
{
    uint16_t narrow = 0;
    int32_t whole = 0;
    float value = 0;

    switch (type) {
    case SHK_GPU_F32: memcpy(&value, at, sizeof value); return (double)value;
    case SHK_GPU_I32: memcpy(&whole, at, sizeof whole); return whole;
    default:
        memcpy(&narrow, at, sizeof narrow);
        return (double)(type == SHK_GPU_F16 ? shk_gpu_float_of_half(narrow)
                                            : shk_gpu_float_of_bfloat(narrow));
    }
}
