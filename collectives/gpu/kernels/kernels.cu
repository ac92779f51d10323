/* All-reduce kernels on raw peer pointers, and the fill and check kernels of the tests. The only
 * CUDA source; loaded as an embedded fatbin by the driver. Names: shk_<what>_<type>[_<ranks>]. */
#include "collectives/gpu/kernels/kernels_exchange.cuh"
#include "collectives/gpu/kernels/kernels_ll128.cuh"
#ifdef SHK_WITH_NCCL_DEVICE
#include <nccl.h>
#include <nccl_device.h>
#endif

namespace {

/* ---- two-shot: reduce one's part from all, write it to all --------------------------------- */

template <class T, int RANKS, int UNROLL>
__device__ __forceinline__ void two_shot_step(const struct shk_gpu_reduce &args, uint64_t i,
                                              uint64_t stride)
{
    const int ranks = RANKS != 0 ? RANKS : (int)args.ranks;
    Pack<T, uint4> sum[UNROLL];
    uint4 got[RANKS != 0 ? RANKS : 1][UNROLL];

    if (RANKS != 0) {
#pragma unroll
        for (int p = 0; p < ranks; p++)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                got[p][u] = load_vec((const void *)(args.base[p] + args.in + (i + u * stride) * 16));
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            sum[u].set(got[0][u]);
#pragma unroll
            for (int p = 1; p < ranks; p++)
                sum[u].add(got[p][u]);
        }
    } else {
        for (int p = 0; p < ranks; p++) {
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
                got[0][u] = load_vec((const void *)(args.base[p] + args.in + (i + u * stride) * 16));
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                if (p == 0)
                    sum[u].set(got[0][u]);
                else
                    sum[u].add(got[0][u]);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < ranks; p++)
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            store_vec((void *)(args.base[p] + args.out + (i + u * stride) * 16), sum[u].get());
}

template <class T, int RANKS, int UNROLL>
__device__ void two_shot_vectors(const struct shk_gpu_reduce &args, uint64_t first, uint64_t last)
{
    const uint64_t stride = blockDim.x;
    const uint64_t tile = stride * UNROLL;
    uint64_t at = first + blockIdx.x * tile;

    for (; at + tile <= last; at += gridDim.x * tile)
        two_shot_step<T, RANKS, UNROLL>(args, at + threadIdx.x, stride);
    for (uint64_t i = at + threadIdx.x; at < last && i < last; i += stride)
        two_shot_step<T, RANKS, 1>(args, i, 0);
}

template <class T, int RANKS, int UNROLL>
__device__ __forceinline__ void two_shot(const struct shk_gpu_reduce &args)
{
    const uint64_t per = 16 / sizeof(T);
    const uint64_t vectors = ((args.in | args.out) & 15) == 0 ? args.count / per : 0;
    const uint64_t rest = args.count - vectors * per;
    const uint32_t epoch = begin(args);

    if (epoch == 0 || !barrier(args, epoch, false))
        return;
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
    two_shot_vectors<T, RANKS, UNROLL>(args, vectors * args.rank / args.ranks,
                                       vectors * (args.rank + 1) / args.ranks);
    two_shot_elements<T>(args, vectors * per + rest * args.rank / args.ranks,
                         vectors * per + rest * (args.rank + 1) / args.ranks);
    (void)barrier(args, epoch, true);
}

/* ---- multimem: the switch sums one's part and hands it to all -------------------------------- */

template <class T> __device__ __forceinline__ void multimem(const struct shk_gpu_reduce &args)
{
    const int unroll = 4;
    const uint64_t per = 16 / sizeof(T);
    const uint64_t vectors = ((args.in | args.out) & 15) == 0 ? args.count / per : 0;
    const uint64_t rest = args.count - vectors * per;
    const uint64_t last = vectors * (args.rank + 1) / args.ranks;
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    const uint32_t epoch = begin(args);

    if (epoch == 0 || !barrier(args, epoch, false))
        return;
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
    fence_alias();
    for (uint64_t i = vectors * args.rank / args.ranks + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < last; i += unroll * step) {
        uint4 sum[unroll];

#pragma unroll
        for (int u = 0; u < unroll; u++)
            if (i + u * step < last)
                sum[u] = Multi<T>::sum(args.multicast + args.in + (i + u * step) * 16);
#pragma unroll
        for (int u = 0; u < unroll; u++)
            if (i + u * step < last)
                multi_store(args.multicast + args.out + (i + u * step) * 16, sum[u]);
    }
    two_shot_elements<T>(args, vectors * per + rest * args.rank / args.ranks,
                         vectors * per + rest * (args.rank + 1) / args.ranks);
    fence_alias();
    (void)barrier(args, epoch, true);
}

/* ---- one-shot: send all to all, with a flag in every 8 bytes -------------------------------- */

/* Unit of 8 bytes; the last one may be incomplete, and nothing need be aligned beyond T. */
template <class T>
__device__ __forceinline__ uint2 load_unit(const void *in, uint64_t unit, uint64_t count)
{
    const int per = 8 / sizeof(T);
    typename Pack<T, uint2>::Bits bits;

    if (((uint64_t)in & 7) == 0 && (unit + 1) * per <= count)
        return ((const uint2 *)in)[unit];
    bits.word = make_uint2(0, 0);
#pragma unroll
    for (int k = 0; k < per; k++)
        if (unit * per + k < count)
            bits.t[k] = ((const T *)in)[unit * per + k];
    return bits.word;
}

template <class T>
__device__ __forceinline__ void store_unit(void *out, uint64_t unit, uint64_t count, uint2 v)
{
    const int per = 8 / sizeof(T);
    typename Pack<T, uint2>::Bits bits;

    if (((uint64_t)out & 7) == 0 && (unit + 1) * per <= count) {
        ((uint2 *)out)[unit] = v;
        return;
    }
    bits.word = v;
#pragma unroll
    for (int k = 0; k < per; k++)
        if (unit * per + k < count)
            ((T *)out)[unit * per + k] = bits.t[k];
}

__device__ __forceinline__ uint64_t slot_of(const struct shk_gpu_reduce &args, unsigned at,
                                            unsigned from, uint32_t epoch)
{
    return args.base[at] + args.slots + ((epoch & 1) * args.ranks + from) * args.slot_bytes;
}

__device__ __forceinline__ bool poll_unit(const struct shk_gpu_reduce &args, uint64_t slot,
                                          uint64_t unit, uint32_t epoch, unsigned peer, uint2 *v)
{
    u64 start = 0;
    unsigned polls = 0;

    for (;;) {
        ulonglong2 got = load_pair((const void *)(slot + unit * 16));

        if ((uint32_t)(got.x >> 32) == epoch && (uint32_t)(got.y >> 32) == epoch) {
            *v = make_uint2((uint32_t)got.x, (uint32_t)got.y);
            return true;
        }
        if ((++polls & 1023) == 0) {
            u64 now = now_ns();

            start = start == 0 ? now : start;
            if (now - start > args.timeout_ns) {
                give_up(args, SHK_GPU_LATE_DATA, peer);
                return false;
            }
        }
    }
}

template <class T> __device__ __forceinline__ void one_shot(const struct shk_gpu_reduce &args)
{
    const void *in = (const void *)(args.base[args.rank] + args.in);
    void *out = (void *)(args.base[args.rank] + args.out);
    const uint64_t units = (args.count * sizeof(T) + 7) / 8;
    const uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    uint2 mine = make_uint2(0, 0);

    wait_for_stream();
    if (first < units)
        mine = load_unit<T>(in, first, args.count);
    const uint32_t epoch = begin(args);
    const u64 flag = (u64)epoch << 32;

    if (epoch == 0)
        return;
    for (uint64_t i = first; i < units; i += step) {
        uint2 v = i == first ? mine : load_unit<T>(in, i, args.count);

        for (unsigned k = 1; k < args.ranks; k++) {
            unsigned p = args.rank + k < args.ranks ? args.rank + k : args.rank + k - args.ranks;

            store_pair((void *)(slot_of(args, p, args.rank, epoch) + i * 16), flag | v.x,
                       flag | v.y);
        }
    }
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
    for (uint64_t i = first; i < units; i += step) {
        uint2 v = i == first ? mine : load_unit<T>(in, i, args.count);
        Pack<T, uint2> sum;

        /* In the same order on every rank, so that all get the same bits. */
        for (unsigned p = 0; p < args.ranks; p++) {
            uint2 theirs = v;

            if (p != args.rank &&
                !poll_unit(args, slot_of(args, args.rank, p, epoch), i, epoch, p, &theirs))
                return;
            if (p == 0)
                sum.set(theirs);
            else
                sum.add(theirs);
        }
        store_unit<T>(out, i, args.count, sum.get());
    }
}

/* ---- test data ---------------------------------------------------------------------------- */

template <class T> __device__ T test_value(const struct shk_gpu_spec &spec, uint64_t i)
{
    uint32_t h = shk_gpu_hash(i, spec.seed);
    int v = shk_gpu_whole(&spec, h);

    if (spec.type == SHK_GPU_I32)
        return Num<T>::put((typename Num<T>::Acc)v);
    return Num<T>::put((typename Num<T>::Acc)ldexpf((float)v, shk_gpu_power(h)));
}

template <class T> __device__ void fill(T *to, uint64_t count, const struct shk_gpu_spec &spec)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i < count; i += (uint64_t)gridDim.x * blockDim.x)
        to[i] = test_value<T>(spec, i);
}

template <class T> __device__ bool same(T a, T b)
{
    const unsigned char *x = (const unsigned char *)&a;
    const unsigned char *y = (const unsigned char *)&b;

    for (unsigned k = 0; k < sizeof(T); k++)
        if (x[k] != y[k])
            return false;
    return true;
}

template <class T>
__device__ void check(const T *got, uint64_t count, const struct shk_gpu_spec &spec,
                      struct shk_gpu_check *result)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    u64 wrong = 0;
    u64 first = ~0ull;

    for (; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        if (!same(got[i], test_value<T>(spec, i))) {
            first = wrong == 0 ? i : first;
            wrong++;
        }
    }
    if (wrong != 0) {
        atomicAdd(&result->wrong, wrong);
        atomicMin(&result->first, first);
    }
}

} // namespace

#define SHK_KERNELS_OF(name_, type_)                                                               \
    extern "C" __global__ void shk_oneshot_##name_(const __grid_constant__ shk_gpu_reduce args)    \
    {                                                                                              \
        one_shot<type_>(args);                                                                     \
    }                                                                                              \
    extern "C" __global__ void shk_twoshot_##name_##_2(const __grid_constant__ shk_gpu_reduce args) \
    {                                                                                              \
        two_shot<type_, 2, 8>(args);                                                               \
    }                                                                                              \
    extern "C" __global__ void shk_twoshot_##name_##_4(const __grid_constant__ shk_gpu_reduce args) \
    {                                                                                              \
        two_shot<type_, 4, 4>(args);                                                               \
    }                                                                                              \
    extern "C" __global__ void shk_twoshot_##name_##_8(const __grid_constant__ shk_gpu_reduce args) \
    {                                                                                              \
        two_shot<type_, 8, 2>(args);                                                               \
    }                                                                                              \
    extern "C" __global__ void shk_twoshot_##name_##_n(const __grid_constant__ shk_gpu_reduce args) \
    {                                                                                              \
        two_shot<type_, 0, 4>(args);                                                               \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(SHK_GPU_PUSH_THREADS)                             \
        shk_push_##name_##_2(const __grid_constant__ shk_gpu_reduce args)                          \
    {                                                                                              \
        push<type_, 2, 4, 3>(args);                                                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(SHK_GPU_PUSH_THREADS)                             \
        shk_push_##name_##_n(const __grid_constant__ shk_gpu_reduce args)                          \
    {                                                                                              \
        push<type_, 0, 2, 1>(args);                                                                \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(SHK_GPU_EXCHANGE_THREADS)                         \
        shk_exchange_##name_(const __grid_constant__ shk_gpu_reduce args)                          \
    {                                                                                              \
        exchange<type_>(args);                                                                     \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(SHK_GPU_LL128_THREADS, 2)                         \
        shk_ll128_##name_(const __grid_constant__ shk_gpu_reduce args)                             \
    {                                                                                              \
        ll128<type_>(args);                                                                        \
    }                                                                                              \
    extern "C" __global__ void shk_multimem_##name_(const __grid_constant__ shk_gpu_reduce args)   \
    {                                                                                              \
        multimem<type_>(args);                                                                     \
    }                                                                                              \
    extern "C" __global__ void shk_fill_##name_(type_ *to, uint64_t count, shk_gpu_spec spec)      \
    {                                                                                              \
        fill<type_>(to, count, spec);                                                              \
    }                                                                                              \
    extern "C" __global__ void shk_check_##name_(const type_ *got, uint64_t count,                 \
                                                 shk_gpu_spec spec, shk_gpu_check *result)         \
    {                                                                                              \
        check<type_>(got, count, spec, result);                                                    \
    }

SHK_KERNELS_OF(f32, float)
SHK_KERNELS_OF(f16, __half)
SHK_KERNELS_OF(bf16, __nv_bfloat16)
SHK_KERNELS_OF(i32, int)

/* dst = a + b, where dst may be a or b. Vec: 16 bytes of T. */
template <class T, class Vec>
__device__ __forceinline__ void sum_two(T *dst, const T *a, const T *b, uint64_t count)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    uint64_t whole = (((uint64_t)dst | (uint64_t)a | (uint64_t)b) & 15) == 0 ? count / 4 : 0;

    for (uint64_t v = i; v < whole; v += step) {
        Vec x = ((const Vec *)a)[v];
        Vec y = ((const Vec *)b)[v];

        x.x += y.x;
        x.y += y.y;
        x.z += y.z;
        x.w += y.w;
        ((Vec *)dst)[v] = x;
    }
    for (i += whole * 4; i < count; i += step)
        dst[i] = a[i] + b[i];
}

extern "C" __global__ void shk_sum_f32(float *dst, const float *a, const float *b, uint64_t count)
{
    sum_two<float, float4>(dst, a, b, count);
}

extern "C" __global__ void shk_sum_i32(uint32_t *dst, const uint32_t *a, const uint32_t *b,
                                       uint64_t count)
{
    sum_two<uint32_t, uint4>(dst, a, b, count);
}

/* Words that must all hold one value: poison and guard zones. */
extern "C" __global__ void shk_check_words(const uint32_t *got, uint64_t words, uint32_t value,
                                           shk_gpu_check *result)
{
    uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i < words; i += (uint64_t)gridDim.x * blockDim.x) {
        if (got[i] != value) {
            atomicAdd(&result->wrong, 1ull);
            atomicMin(&result->first, (unsigned long long)i);
        }
    }
}

/* Keeps the stream busy: a rank that is late on purpose. */
extern "C" __global__ void shk_delay(uint64_t ns)
{
    u64 start = now_ns();

    while (now_ns() - start < ns)
        ;
}

/* Does the multicast address reach every rank? Sum of the words of all ranks at `from`, and one's own
 * mark to all ranks at `to`. One thread. */
extern "C" __global__ void shk_multicast_probe(uint64_t from, uint64_t to, uint32_t mark, uint32_t *sum)
{
    *sum = multi_sum_word(from);
    multi_store_word(to, mark);
    fence_alias();
}

#ifdef SHK_WITH_NCCL_DEVICE
/* The headers that shk_lsa_pointers was built with: must fit the library, see nccl_window.c. */
extern "C" __device__ const int shk_nccl_headers = NCCL_VERSION_CODE;

/* Where each rank's part of a symmetric window is mapped, for host code: one thread. */
extern "C" __global__ void shk_lsa_pointers(ncclWindow_t window, int ranks, uint64_t *pointers)
{
    for (int p = 0; p < ranks; p++)
        pointers[p] = (uint64_t)ncclGetLsaPointer(window, 0, p);
}
#endif
