/* Inside of kernels.cu: memory model, arithmetic and barriers of the kernels. CUDA C++. */
#ifndef SHK_COLLECTIVES_KERNELS_COMMON_H
#define SHK_COLLECTIVES_KERNELS_COMMON_H

#include "collectives/gpu/kernels/kernels.h"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace
{

typedef unsigned long long u64;

/* ---- memory model ------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t load_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

__device__ __forceinline__ void store_release(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* Each 64-bit half is one scalar access, so data and flag within it arrive together. */
__device__ __forceinline__ ulonglong2 load_pair(const void *p)
{
    ulonglong2 v;
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(v.x), "=l"(v.y)
                 : "l"(p)
                 : "memory");
    return v;
}

__device__ __forceinline__ void store_pair(void *p, u64 x, u64 y)
{
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(x), "l"(y)
                 : "memory");
}

/* Data of the operation: read once, so kept out of the first-level cache. */
__device__ __forceinline__ uint4 load_vec(const void *p)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

__device__ __forceinline__ void store_vec(void *p, uint4 v)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

__device__ __forceinline__ u64 now_ns()
{
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

/* ---- arithmetic --------------------------------------------------------------------------- */

template <class T> struct Num;
template <> struct Num<float> {
    typedef float Acc;
    static __device__ float get(float v)
    {
        return v;
    }
    static __device__ float put(float v)
    {
        return v;
    }
};
template <> struct Num<__half> {
    typedef float Acc;
    static __device__ float get(__half v)
    {
        return __half2float(v);
    }
    static __device__ __half put(float v)
    {
        return __float2half_rn(v);
    }
};
template <> struct Num<__nv_bfloat16> {
    typedef float Acc;
    static __device__ float get(__nv_bfloat16 v)
    {
        return __bfloat162float(v);
    }
    static __device__ __nv_bfloat16 put(float v)
    {
        return __float2bfloat16_rn(v);
    }
};
template <> struct Num<int> {
    typedef unsigned Acc; /* wraps */
    static __device__ unsigned get(int v)
    {
        return (unsigned)v;
    }
    static __device__ int put(unsigned v)
    {
        return (int)v;
    }
};

/* A word of elements of T, and their sum. */
template <class T, class Word> struct Pack {
    static const int N = sizeof(Word) / sizeof(T);
    union Bits {
        Word word;
        T t[N];
        __device__ Bits()
        {
        }
    };
    typename Num<T>::Acc acc[N];

    __device__ __forceinline__ void set(Word w)
    {
        Bits b;
        b.word = w;
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[k] = Num<T>::get(b.t[k]);
    }
    __device__ __forceinline__ void add(Word w)
    {
        Bits b;
        b.word = w;
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[k] += Num<T>::get(b.t[k]);
    }
    __device__ __forceinline__ Word get() const
    {
        Bits b;
#pragma unroll
        for (int k = 0; k < N; k++)
            b.t[k] = Num<T>::put(acc[k]);
        return b.word;
    }
};

/* ---- multicast: one address for the same place in every rank's memory ---------------------- */

/* Sums of 16 bytes by the switch. The type that multimem.ld_reduce has for whole numbers is scalar.
 * The build for older GPUs traps: the host does not start these there. */
template <class T> struct Multi;

#if __CUDA_ARCH__ >= 900
#define SHK_MULTI_SUM(type_, op_)                                                                  \
    template <> struct Multi<type_> {                                                              \
        static __device__ __forceinline__ uint4 sum(uint64_t at)                                   \
        {                                                                                          \
            uint4 v;                                                                               \
            asm volatile("multimem.ld_reduce.relaxed.sys.global.add" op_ " {%0, %1, %2, %3}, [%4];" \
                         : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)                              \
                         : "l"(at)                                                                 \
                         : "memory");                                                              \
            return v;                                                                              \
        }                                                                                          \
    };
SHK_MULTI_SUM(float, ".v4.f32")
SHK_MULTI_SUM(__half, ".acc::f32.v4.f16x2")
SHK_MULTI_SUM(__nv_bfloat16, ".acc::f32.v4.bf16x2")
#undef SHK_MULTI_SUM

__device__ __forceinline__ uint32_t multi_sum_word(uint64_t at)
{
    uint32_t v;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];"
                 : "=r"(v)
                 : "l"(at)
                 : "memory");
    return v;
}

template <> struct Multi<int> {
    static __device__ __forceinline__ uint4 sum(uint64_t at)
    {
        return make_uint4(multi_sum_word(at), multi_sum_word(at + 4), multi_sum_word(at + 8),
                          multi_sum_word(at + 12));
    }
};

__device__ __forceinline__ void multi_store_word(uint64_t at, uint32_t v)
{
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}

__device__ __forceinline__ void multi_store(uint64_t at, uint4 v)
{
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
#else
template <class T> struct Multi {
    static __device__ uint4 sum(uint64_t)
    {
        __trap();
        return make_uint4(0, 0, 0, 0);
    }
};

__device__ uint32_t multi_sum_word(uint64_t)
{
    __trap();
    return 0;
}

__device__ void multi_store_word(uint64_t, uint32_t)
{
    __trap();
}

__device__ void multi_store(uint64_t, uint4)
{
    __trap();
}
#endif

/* Orders what goes through the multicast address and what goes through the memory's own. */
__device__ __forceinline__ void fence_alias()
{
    asm volatile("fence.proxy.alias;" ::: "memory");
}

/* ---- synchronisation ---------------------------------------------------------------------- */

__device__ __forceinline__ struct shk_gpu_control *control_of(const struct shk_gpu_reduce &args,
                                                              unsigned rank)
{
    return (struct shk_gpu_control *)(args.base[rank] + args.control);
}

__device__ void give_up(const struct shk_gpu_reduce &args, uint32_t why, uint32_t peer)
{
    struct shk_gpu_control *mine = control_of(args, args.rank);

    if (atomicCAS(&mine->error, (uint32_t)SHK_GPU_OK, why) == SHK_GPU_OK) {
        mine->error_peer = peer;
        mine->error_block = blockIdx.x;
    }
}

/* A launch may be scheduled while the kernel before it in the stream is still running (GPU_ATTRIBUTE_OVERLAP): nothing that
 * this one wrote may be read before. Lets the next launch in at once. */
__device__ __forceinline__ void wait_for_stream()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Epoch of this launch, the same in every thread of the block; 0 when an earlier launch failed. */
__device__ __forceinline__ uint32_t begin(const struct shk_gpu_reduce &args)
{
    __shared__ uint32_t shared_epoch;
    const struct shk_gpu_control *mine = control_of(args, args.rank);

    wait_for_stream();
    if (threadIdx.x == 0) {
        const volatile uint32_t *p = &mine->epoch;
        uint32_t epoch = p[0];

        shared_epoch = p[1] == SHK_GPU_OK ? shk_gpu_next_epoch(epoch) : 0;
    }
    __syncthreads();
    return shared_epoch;
}

/* After begin() in every thread: the last block to come here moves the epoch on. Called by one
 * thread of each block, while others work. */
__device__ __forceinline__ void count_launch(const struct shk_gpu_reduce &args, uint32_t epoch)
{
    struct shk_gpu_control *mine = control_of(args, args.rank);

    if (atomicInc(&mine->ticket, gridDim.x - 1) == gridDim.x - 1) {
        __threadfence();
        *(volatile uint32_t *)&mine->epoch = epoch;
    }
}

__device__ __forceinline__ bool wait_flag(const struct shk_gpu_reduce &args, const uint32_t *flag,
                                          uint32_t epoch, uint32_t why, uint32_t peer)
{
    u64 start = 0;
    unsigned polls = 0;

    while ((int)(load_acquire(flag) - epoch) < 0) {
        if ((++polls & 1023) == 0) {
            u64 now = now_ns();

            start = start == 0 ? now : start;
            if (now - start > args.timeout_ns) {
                give_up(args, why, peer);
                return false;
            }
        }
    }
    return true;
}

/* All ranks' blocks of this index have come here; what they wrote before is readable. */
__device__ __forceinline__ bool barrier(const struct shk_gpu_reduce &args, uint32_t epoch, bool end)
{
    unsigned peer = threadIdx.x;
    bool ok = true;

    __syncthreads();
    if (peer < args.ranks && peer != args.rank) {
        struct shk_gpu_control *theirs = control_of(args, peer);
        struct shk_gpu_control *mine = control_of(args, args.rank);
        uint32_t *to =
            end ? &theirs->end[blockIdx.x][args.rank] : &theirs->start[blockIdx.x][args.rank];
        uint32_t *from = end ? &mine->end[blockIdx.x][peer] : &mine->start[blockIdx.x][peer];

        store_release(to, epoch);
        ok = wait_flag(args, from, epoch, end ? SHK_GPU_LATE_END : SHK_GPU_LATE_START, peer);
    }
    return __syncthreads_and(ok);
}

} // namespace

#endif
