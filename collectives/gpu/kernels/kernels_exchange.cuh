/* Inside of kernels.cu: exchange. Two ranks send each other all of their input, and each adds up its own result. */
#ifndef SHK_COLLECTIVES_KERNELS_EXCHANGE_H
#define SHK_COLLECTIVES_KERNELS_EXCHANGE_H

#include "collectives/gpu/kernels/kernels_push.cuh"

namespace
{

/* Where the other rank's input comes to. There are two such places, by turns: whoever writes to one has heard from
 * the launch after the one that read it last, so that no launch waits at its start or end. */
__device__ __forceinline__ uint64_t stage_of(const struct shk_gpu_reduce &args, unsigned at,
                                             uint32_t epoch)
{
    return args.base[at] + args.stage + (epoch & 1) * args.stage_bytes;
}

/* Vectors [at, at + tile), and in the first block the elements that are no whole vector; then `mark`. */
template <class T, int UNROLL>
__device__ __forceinline__ void exchange_send(const struct shk_gpu_reduce &args, uint64_t at,
                                              uint64_t vectors, uint64_t to, uint64_t mark)
{
    const uint64_t in = args.base[args.rank] + args.in;
    const uint64_t rest = vectors * (16 / sizeof(T)) + threadIdx.x;
    uint4 v[UNROLL];

#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        uint64_t i = at + threadIdx.x + u * blockDim.x;

        if (i < vectors)
            v[u] = load_vec((const void *)(in + i * 16));
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        uint64_t i = at + threadIdx.x + u * blockDim.x;

        if (i < vectors)
            store_vec((void *)(to + i * 16), v[u]);
    }
    if (at == 0 && rest < args.count)
        ((T *)to)[rest] = ((const T *)in)[rest];
    __syncthreads();
    if (threadIdx.x == 0) {
        uint64_t *flag = &control_of(args, 1 - args.rank)->pushed[blockIdx.x][args.rank];

        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(mark) : "memory");
    }
}

/* In the order of the ranks, so that both get the same bits. */
template <class T, int UNROLL>
__device__ __forceinline__ void exchange_sum(const struct shk_gpu_reduce &args, uint64_t at,
                                             uint64_t vectors, uint64_t from)
{
    const uint64_t own = args.base[args.rank] + args.in;
    const uint64_t out = args.base[args.rank] + args.out;
    const uint64_t a = args.rank == 0 ? own : from, b = args.rank == 0 ? from : own;
    const uint64_t rest = vectors * (16 / sizeof(T)) + threadIdx.x;
    uint4 x[UNROLL], y[UNROLL];

#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        uint64_t i = at + threadIdx.x + u * blockDim.x;

        if (i < vectors) {
            x[u] = load_vec((const void *)(a + i * 16));
            y[u] = load_vec((const void *)(b + i * 16));
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        uint64_t i = at + threadIdx.x + u * blockDim.x;

        if (i < vectors) {
            Pack<T, uint4> sum;

            sum.set(x[u]);
            sum.add(y[u]);
            store_vec((void *)(out + i * 16), sum.get());
        }
    }
    if (at == 0 && rest < args.count)
        ((T *)out)[rest] =
            Num<T>::put(Num<T>::get(((const T *)a)[rest]) + Num<T>::get(((const T *)b)[rest]));
}

template <class T, int UNROLL>
__device__ __forceinline__ void exchange_tiles(const struct shk_gpu_reduce &args, uint64_t vectors)
{
    const uint64_t tile = (uint64_t)blockDim.x * UNROLL;
    const uint64_t step = gridDim.x * tile;
    const uint32_t epoch = begin(args);
    const uint64_t first = blockIdx.x * tile;
    uint64_t mark = (uint64_t)epoch << 32;

    if (epoch == 0)
        return;
    for (uint64_t at = first; at < vectors; at += step)
        exchange_send<T, UNROLL>(args, at, vectors, stage_of(args, 1 - args.rank, epoch), ++mark);
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
    mark = (uint64_t)epoch << 32;
    for (uint64_t at = first; at < vectors; at += step) {
        if (!push_wait<2>(args, ++mark))
            return;
        exchange_sum<T, UNROLL>(args, at, vectors, stage_of(args, args.rank, epoch));
    }
}

template <class T> __device__ __forceinline__ void exchange(const struct shk_gpu_reduce &args)
{
    const uint64_t vectors = args.count * sizeof(T) / 16;

    if (vectors <= (uint64_t)gridDim.x * blockDim.x * 2)
        exchange_tiles<T, 2>(args, vectors);
    else
        exchange_tiles<T, 4>(args, vectors);
}

} // namespace

#endif
