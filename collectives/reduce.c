#include "collectives/reduce.h"
#include <string.h>

/* 64 bytes: a cache line, and the widest vector; narrower machines split it. Unaligned and
 * may_alias, since the caller's buffers are bytes. */
typedef float reduce_f32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t reduce_u32 __attribute__((vector_size(64), aligned(4), may_alias));

#define REDUCE_LANES ((size_t)16)

static void reduce_floats(float *dst, const float *a, const float *b, size_t count)
{
    size_t i = 0;

    for (i = 0; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
        *(reduce_f32 *)(dst + i) = *(const reduce_f32 *)(a + i) + *(const reduce_f32 *)(b + i);
    }
    for (; i < count; i++) {
        dst[i] = a[i] + b[i];
    }
}

static void reduce_ints(uint32_t *dst, const uint32_t *a, const uint32_t *b, size_t count)
{
    size_t i = 0;

    for (i = 0; i + REDUCE_LANES <= count; i += REDUCE_LANES) {
        *(reduce_u32 *)(dst + i) = *(const reduce_u32 *)(a + i) + *(const reduce_u32 *)(b + i);
    }
    for (; i < count; i++) {
        dst[i] = a[i] + b[i];
    }
}

void shk_reduce_sum(enum shk_type type, void *dst, const void *a, const void *b, size_t count)
{
    if (type == SHK_FLOAT32) {
        reduce_floats(dst, a, b, count);
    } else {
        reduce_ints(dst, a, b, count);
    }
}
