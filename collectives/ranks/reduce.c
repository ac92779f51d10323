#include "collectives/ranks/reduce.h"
#include <string.h>

/* 64 bytes: a cache line, and the widest vector; narrower machines split it. Unaligned and
 * may_alias, since the caller's buffers are bytes. */
typedef float reduce_f32 __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t reduce_u32 __attribute__((vector_size(64), aligned(4), may_alias));

#define REDUCE_LANES ((size_t)16)

typedef void reduce_fn(enum shk_type type, void *dst, const void *a, const void *b, size_t count);

static inline __attribute__((always_inline)) void reduce_floats(float *dst, const float *a,
                                                                const float *b, size_t count)
{
    size_t i = 0;

    for (i = 0; i + REDUCE_LANES <= count; i += REDUCE_LANES)
        *(reduce_f32 *)(dst + i) = *(const reduce_f32 *)(a + i) + *(const reduce_f32 *)(b + i);
    for (; i < count; i++)
        dst[i] = a[i] + b[i];
}

static inline __attribute__((always_inline)) void reduce_ints(uint32_t *dst, const uint32_t *a,
                                                              const uint32_t *b, size_t count)
{
    size_t i = 0;

    for (i = 0; i + REDUCE_LANES <= count; i += REDUCE_LANES)
        *(reduce_u32 *)(dst + i) = *(const reduce_u32 *)(a + i) + *(const reduce_u32 *)(b + i);
    for (; i < count; i++)
        dst[i] = a[i] + b[i];
}

static inline __attribute__((always_inline)) void
reduce_any(enum shk_type type, void *dst, const void *a, const void *b, size_t count)
{
    if (type == SHK_FLOAT32)
        reduce_floats(dst, a, b, count);
    else
        reduce_ints(dst, a, b, count);
}

static void reduce_base(enum shk_type type, void *dst, const void *a, const void *b, size_t count)
{
    reduce_any(type, dst, a, b, count);
}

/* The same for what the baseline of x86-64, SSE2, does not have. Chosen at run time, and not by
 * target_clones: its resolvers run before the sanitizers are ready. */
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void reduce_avx2(enum shk_type type, void *dst,
                                                        const void *a, const void *b, size_t count)
{
    reduce_any(type, dst, a, b, count);
}

__attribute__((target("avx512f"))) static void
reduce_avx512(enum shk_type type, void *dst, const void *a, const void *b, size_t count)
{
    reduce_any(type, dst, a, b, count);
}
#endif

static reduce_fn *reduce_choose(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return reduce_avx512;
    if (__builtin_cpu_supports("avx2"))
        return reduce_avx2;
#endif
    return reduce_base;
}

void shk_reduce_sum(enum shk_type type, void *dst, const void *a, const void *b, size_t count)
{
    reduce_choose()(type, dst, a, b, count);
}
