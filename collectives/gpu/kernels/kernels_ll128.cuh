/* Inside of kernels.cu: exchange of two ranks with a flag in every 128 bytes. Only where the link hands over whole lines
 * that a warp has stored, as NVLink does (NCCL's LL128 protocol rests on the same): a line is there when its flag is, so
 * nothing is fenced, and a warp waits for no more than the lines that it adds up. CUDA C++. */
#ifndef SHK_COLLECTIVES_KERNELS_LL128_H
#define SHK_COLLECTIVES_KERNELS_LL128_H

#include "collectives/gpu/kernels/kernels_exchange.cuh"

namespace
{

/* A warp's step is two rows of 32 times 16 bytes, 8 lines. The last of every 8 threads stores a flag in place of the second
 * half of its 16 bytes: it has one vector of the data, half of it in either row, and the other threads have two. */
struct Lines {
    uint4 v[2];
};

/* Vectors of the data that the first row holds, and of this thread in the second. */
__device__ __forceinline__ uint64_t second_row(unsigned lane)
{
    return 32 + lane - lane / 8;
}

__device__ __forceinline__ u64 low_half(uint4 v)
{
    return (u64)v.y << 32 | v.x;
}

__device__ __forceinline__ u64 high_half(uint4 v)
{
    return (u64)v.w << 32 | v.z;
}

__device__ __forceinline__ uint4 vector_of(u64 low, u64 high)
{
    return make_uint4((uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32));
}

/* The last vector of a message may be incomplete: what is not there is 0. */
template <class T>
__device__ __forceinline__ uint4 load_message(uint64_t in, uint64_t i, uint64_t count)
{
    const int per = 16 / sizeof(T);
    typename Pack<T, uint4>::Bits bits;

    if ((i + 1) * per <= count)
        return load_vec((const void *)(in + i * 16));
    bits.word = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < per; k++)
        if (i * per + k < count)
            bits.t[k] = ((const T *)in)[i * per + k];
    return bits.word;
}

template <class T>
__device__ __forceinline__ void store_message(uint64_t out, uint64_t i, uint64_t count, uint4 v)
{
    const int per = 16 / sizeof(T);
    typename Pack<T, uint4>::Bits bits;

    if ((i + 1) * per <= count) {
        store_vec((void *)(out + i * 16), v);
        return;
    }
    bits.word = v;
#pragma unroll
    for (int k = 0; k < per; k++)
        if (i * per + k < count)
            ((T *)out)[i * per + k] = bits.t[k];
}

template <class T>
__device__ __forceinline__ Lines ll128_load(uint64_t in, uint64_t at, uint64_t count)
{
    const unsigned lane = threadIdx.x % 32;
    Lines own;

    own.v[0] = load_message<T>(in, at + lane, count);
    own.v[1] = lane % 8 != 7 ? load_message<T>(in, at + second_row(lane), count) : own.v[0];
    return own;
}

__device__ __forceinline__ void ll128_send(const Lines &own, uint64_t to, u64 mark)
{
    const unsigned lane = threadIdx.x % 32;
    const bool flags = lane % 8 == 7;

    store_pair((void *)(to + lane * 16), low_half(own.v[0]), flags ? mark : high_half(own.v[0]));
    store_pair((void *)(to + (32 + lane) * 16), flags ? high_half(own.v[0]) : low_half(own.v[1]),
               flags ? mark : high_half(own.v[1]));
}

/* Is anything to be waited for in vain? All threads of the warp. */
__device__ __forceinline__ bool ll128_late(const struct shk_gpu_reduce &args, u64 *start)
{
    const u64 now = now_ns();

    *start = *start == 0 ? now : *start;
    if (!__any_sync(0xffffffffu, now - *start > args.timeout_ns))
        return false;
    if (threadIdx.x % 32 == 0)
        give_up(args, SHK_GPU_LATE_DATA, 1 - args.rank);
    return true;
}

__device__ __forceinline__ bool ll128_receive(const struct shk_gpu_reduce &args, uint64_t from, u64 mark,
                                              Lines *theirs)
{
    const unsigned lane = threadIdx.x % 32;
    const bool flags = lane % 8 == 7;
    u64 start = 0;
    unsigned polls = 0;

    for (;;) {
        const ulonglong2 a = load_pair((const void *)(from + lane * 16));
        const ulonglong2 b = load_pair((const void *)(from + (32 + lane) * 16));

        if (!__any_sync(0xffffffffu, flags && (a.y != mark || b.y != mark))) {
            theirs->v[0] = vector_of(a.x, flags ? b.x : a.y);
            theirs->v[1] = vector_of(b.x, b.y);
            return true;
        }
        if ((++polls & 1023) == 0 && ll128_late(args, &start))
            return false;
    }
}

/* In the order of the ranks, so that both get the same bits. */
template <class T> __device__ __forceinline__ uint4 ll128_sum(unsigned rank, uint4 own, uint4 theirs)
{
    Pack<T, uint4> sum;

    sum.set(rank == 0 ? own : theirs);
    sum.add(rank == 0 ? theirs : own);
    return sum.get();
}

template <class T>
__device__ __forceinline__ bool ll128_finish(const struct shk_gpu_reduce &args, const Lines &own, uint64_t at,
                                             uint64_t from, u64 mark)
{
    const uint64_t out = args.base[args.rank] + args.out;
    const unsigned lane = threadIdx.x % 32;
    Lines theirs;

    if (!ll128_receive(args, from, mark, &theirs))
        return false;
    store_message<T>(out, at + lane, args.count, ll128_sum<T>(args.rank, own.v[0], theirs.v[0]));
    if (lane % 8 != 7) {
        store_message<T>(out, at + second_row(lane), args.count,
                         ll128_sum<T>(args.rank, own.v[1], theirs.v[1]));
    }
    return true;
}

/* Each warp has its next step under way while it waits for one. There are two places for what comes, by turns, as with
 * exchange (stage_of). Neighbouring steps are those of different processors, which share what is little. */
template <class T> __device__ __forceinline__ void ll128(const struct shk_gpu_reduce &args)
{
    const uint64_t in = args.base[args.rank] + args.in;
    const uint64_t vectors = (args.count * sizeof(T) + 15) / 16;
    const uint64_t steps = (vectors + SHK_GPU_LL128_VECTORS - 1) / SHK_GPU_LL128_VECTORS;
    const uint64_t stride = (uint64_t)gridDim.x * (blockDim.x / 32);
    uint64_t step = (uint64_t)(threadIdx.x / 32) * gridDim.x + blockIdx.x;
    Lines own;

    wait_for_stream();
    if (step < steps)
        own = ll128_load<T>(in, step * SHK_GPU_LL128_VECTORS, args.count);
    const uint32_t epoch = begin(args);
    const u64 mark = (u64)epoch << 32 | epoch;
    const uint64_t to = stage_of(args, 1 - args.rank, epoch);
    const uint64_t from = stage_of(args, args.rank, epoch);

    if (epoch == 0)
        return;
    if (step < steps)
        ll128_send(own, to + step * SHK_GPU_LL128_BYTES, mark);
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
    for (; step < steps; step += stride) {
        Lines next;

        if (step + stride < steps) {
            next = ll128_load<T>(in, (step + stride) * SHK_GPU_LL128_VECTORS, args.count);
            ll128_send(next, to + (step + stride) * SHK_GPU_LL128_BYTES, mark);
        }
        if (!ll128_finish<T>(args, own, step * SHK_GPU_LL128_VECTORS, from + step * SHK_GPU_LL128_BYTES,
                             mark)) {
            return;
        }
        own = next;
    }
}

} // namespace

#endif
