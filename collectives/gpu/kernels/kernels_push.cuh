/* Inside of kernels.cu: push, and what it shares with the other kernels that move data by stores. CUDA C++. */
#ifndef SHK_COLLECTIVES_KERNELS_PUSH_H
#define SHK_COLLECTIVES_KERNELS_PUSH_H

#include "collectives/gpu/kernels/kernels_common.cuh"

namespace
{

/* Elements [first, last) one by one, for what is not 16-byte aligned. */
template <class T>
__device__ void two_shot_elements(const struct shk_gpu_reduce &args, uint64_t first, uint64_t last)
{
    uint64_t i = first + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (; i < last; i += (uint64_t)gridDim.x * blockDim.x) {
        typename Num<T>::Acc acc = Num<T>::get(((const T *)(args.base[0] + args.in))[i]);

        for (unsigned p = 1; p < args.ranks; p++)
            acc += Num<T>::get(((const T *)(args.base[p] + args.in))[i]);
        for (unsigned p = 0; p < args.ranks; p++)
            ((T *)(args.base[p] + args.out))[i] = Num<T>::put(acc);
    }
}

/* ---- push: send each rank its part, send back one's own part summed; no reads of others -------- */

__device__ __forceinline__ uint64_t scratch_of(const struct shk_gpu_reduce &args, unsigned at,
                                               unsigned from)
{
    return args.base[at] + args.scratch + (from < at ? from : from - 1) * args.scratch_bytes;
}

__device__ __forceinline__ bool wait_pushed(const struct shk_gpu_reduce &args, const uint64_t *flag,
                                            uint64_t want, unsigned peer)
{
    u64 start = 0;
    unsigned polls = 0;

    for (;;) {
        u64 have;

        asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(have) : "l"(flag) : "memory");
        if ((long long)(have - want) >= 0)
            return true;
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

/* Vectors [at, at + tile) of every other rank's part; then `mark` for them. */
template <int RANKS, int UNROLL>
__device__ __forceinline__ void push_send(const struct shk_gpu_reduce &args, uint64_t at,
                                          uint64_t part, uint64_t vectors, uint64_t mark)
{
    const unsigned ranks = RANKS != 0 ? RANKS : args.ranks;

    for (unsigned k = 1; k < ranks; k++) {
        const unsigned p = args.rank + k < ranks ? args.rank + k : args.rank + k - ranks;
        const uint64_t first = p * part;
        const uint64_t to = scratch_of(args, p, args.rank);
        uint4 v[UNROLL];

#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            uint64_t i = at + threadIdx.x + u * blockDim.x;

            if (i < part && first + i < vectors)
                v[u] = load_vec((const void *)(args.base[args.rank] + args.in + (first + i) * 16));
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            uint64_t i = at + threadIdx.x + u * blockDim.x;

            if (i < part && first + i < vectors)
                store_vec((void *)(to + i * 16), v[u]);
        }
    }
    __syncthreads();
    if (threadIdx.x < ranks && threadIdx.x != args.rank) {
        uint64_t *to = &control_of(args, threadIdx.x)->pushed[blockIdx.x][args.rank];

        asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(mark) : "memory");
    }
}

template <int RANKS>
__device__ __forceinline__ bool push_wait(const struct shk_gpu_reduce &args, uint64_t mark)
{
    const unsigned ranks = RANKS != 0 ? RANKS : args.ranks;
    const unsigned peer = threadIdx.x;
    bool ok = true;

    if (peer < ranks && peer != args.rank)
        ok = wait_pushed(args, &control_of(args, args.rank)->pushed[blockIdx.x][peer], mark, peer);
    return __syncthreads_and(ok);
}

/* Vectors [at, at + tile) of one's own part: sum in the order of ranks, to all. A rank's data of
 * these vectors has come, so it has started, and needs neither its input nor its result there. */
template <class T, int RANKS, int UNROLL>
__device__ __forceinline__ void push_reduce(const struct shk_gpu_reduce &args, uint64_t at,
                                            uint64_t part, uint64_t vectors)
{
    const unsigned ranks = RANKS != 0 ? RANKS : args.ranks;
    const uint64_t first = args.rank * part;
    const uint64_t own = args.base[args.rank] + args.in + first * 16;
    Pack<T, uint4> sum[UNROLL];

#pragma unroll
    for (unsigned p = 0; p < ranks; p++) {
        const uint64_t from = p == args.rank ? own : scratch_of(args, args.rank, p);

#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            uint64_t i = at + threadIdx.x + u * blockDim.x;

            if (i < part && first + i < vectors) {
                uint4 v = load_vec((const void *)(from + i * 16));

                if (p == 0)
                    sum[u].set(v);
                else
                    sum[u].add(v);
            }
        }
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        uint64_t i = at + threadIdx.x + u * blockDim.x;

        if (i < part && first + i < vectors) {
            const uint4 v = sum[u].get();

            for (unsigned p = 0; p < ranks; p++)
                store_vec((void *)(args.base[p] + args.out + (first + i) * 16), v);
        }
    }
}

/* AHEAD: tiles under way while one is waited for; each has a place of its own in the scratch.
 * No barrier at the start. The one at the end frees the scratch: a launch starts after all blocks
 * of the last one, each of which met every rank's block of its index there. */
template <class T, int RANKS, int UNROLL, int AHEAD>
__device__ __forceinline__ void push(const struct shk_gpu_reduce &args)
{
    const uint64_t per = 16 / sizeof(T);
    const unsigned ranks = RANKS != 0 ? RANKS : args.ranks;
    const uint64_t vectors = ((args.in | args.out) & 15) == 0 ? args.count / per : 0;
    const uint64_t part = (vectors + ranks - 1) / ranks;
    const uint64_t tile = (uint64_t)blockDim.x * UNROLL;
    const uint64_t step = gridDim.x * tile;
    const uint32_t epoch = begin(args);
    uint64_t mark = (uint64_t)epoch << 32;
    uint64_t at = blockIdx.x * tile;

    if (epoch == 0)
        return;
    if (threadIdx.x == blockDim.x - 1)
        count_launch(args, epoch);
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
        if (at + k * step < part)
            push_send<RANKS, UNROLL>(args, at + k * step, part, vectors, mark + 1 + k);
    for (; at < part; at += step) {
        mark++;
        if (at + AHEAD * step < part)
            push_send<RANKS, UNROLL>(args, at + AHEAD * step, part, vectors, mark + AHEAD);
        if (!push_wait<RANKS>(args, mark))
            return;
        push_reduce<T, RANKS, UNROLL>(args, at, part, vectors);
    }
    if (vectors * per < args.count) { /* reads others, so they must have started */
        const uint64_t rest = args.count - vectors * per;

        if (!barrier(args, epoch, false))
            return;
        two_shot_elements<T>(args, vectors * per + rest * args.rank / ranks,
                             vectors * per + rest * (args.rank + 1) / ranks);
    }
    (void)barrier(args, epoch, true);
}

} // namespace

#endif
