/* What host code and GPU kernels agree on: layout of the control block, kernel arguments, test
 * data. Plain C that nvcc reads too. */
#ifndef SHK_COLLECTIVES_KERNELS_H
#define SHK_COLLECTIVES_KERNELS_H

#include <stdint.h>

#ifdef __CUDACC__
#define SHK_BOTH __host__ __device__ static inline
#else
#define SHK_BOTH static inline
#endif

/* GPUs that can reach each other by load and store, in one node. */
#define SHK_GPU_MAX_RANKS 16

/* Blocks of one launch: flags are kept per block. */
#define SHK_GPU_MAX_BLOCKS 512

/* Largest message of the one-shot kernel: its slots take 4 times that per rank and peer (8 bytes of
 * data travel with 8 bytes of flags, and there are two sets). */
#define SHK_GPU_ONESHOT_MAX 1048576

/* Threads of a block of the push kernels, which are compiled for no more. */
#define SHK_GPU_PUSH_THREADS 1024

/* Threads of a block of the exchange kernels, and their longest message. */
#define SHK_GPU_EXCHANGE_THREADS 512
#define SHK_GPU_EXCHANGE_MAX     (4 << 20)

/* The same of exchange in lines of 128 bytes, 120 of them data: a pair of rows of a warp is 60
 * vectors of 16 bytes. */
#define SHK_GPU_LL128_THREADS 512
#define SHK_GPU_LL128_MAX     (16 << 20)
#define SHK_GPU_LL128_VECTORS 60
#define SHK_GPU_LL128_BYTES   1024

/* Copy engines: how far an operation got. A rank's part is sent, and its sum sent back, in halves.
 */
enum shk_gpu_copied {
    SHK_GPU_COPIED_FIRST,
    SHK_GPU_COPIED_SECOND,
    SHK_GPU_COPIED_SUM,
    SHK_GPU_COPIED_COUNT
};

enum shk_gpu_type { SHK_GPU_F32, SHK_GPU_F16, SHK_GPU_BF16, SHK_GPU_I32, SHK_GPU_TYPE_COUNT };

/* Why a kernel gave up; in shk_gpu_control.error. */
enum shk_gpu_error {
    SHK_GPU_OK,
    SHK_GPU_LATE_START, /* a peer did not start the operation in time */
    SHK_GPU_LATE_DATA,  /* … did not send its data */
    SHK_GPU_LATE_END    /* … did not finish it */
};

/* Number of the launch after `epoch`, the same on every rank. Never 0, which kernels take for "gave
 * up"; and odd after even for ever, because one-shot changes its set of slots by that. */
SHK_BOTH uint32_t shk_gpu_next_epoch(uint32_t epoch)
{
    return epoch == 0xffffffffU ? 2 : epoch + 1;
}

/* One per rank, in its heap; zeroed before the first launch and never again. Peers write only to
 * flags. The epoch counts launches: it is kept here rather than given by the host so that a
 * replayed graph counts too. */
struct shk_gpu_control {
    uint32_t epoch; /* launches completed */
    uint32_t error; /* enum shk_gpu_error; later launches return at once */
    uint32_t error_peer;
    uint32_t error_block;
    uint32_t ticket; /* blocks of this launch that have read the epoch */
    uint32_t pad[59];
    uint32_t start[SHK_GPU_MAX_BLOCKS][SHK_GPU_MAX_RANKS]; /* by block and writing rank */
    uint32_t end[SHK_GPU_MAX_BLOCKS][SHK_GPU_MAX_RANKS];
    /* Push: epoch in the upper half, tiles sent so far in the lower, which 2^32 tiles would fill.
     */
    uint64_t pushed[SHK_GPU_MAX_BLOCKS][SHK_GPU_MAX_RANKS];
    uint32_t copied[SHK_GPU_COPIED_COUNT]; /* gpu_engines.c: the other rank's operation that got so
                                              far */
};

/* Arguments of the all-reduce kernels. Offsets count from each rank's base. */
struct shk_gpu_reduce {
    uint64_t base[SHK_GPU_MAX_RANKS]; /* every rank's heap, as this GPU sees it */
    uint64_t in, out;                 /* offsets of the first element */
    uint64_t control;                 /* offset of struct shk_gpu_control */
    uint64_t slots;                   /* offset of the one-shot slots */
    uint64_t slot_bytes;              /* of one source rank in one set */
    uint64_t scratch;                 /* offset of the push kernel's scratch */
    uint64_t scratch_bytes;           /* of one source rank: a rank's part of the longest message */
    uint64_t stage;                   /* offset of the exchange kernels' two places */
    uint64_t stage_bytes;             /* of one of them */
    uint64_t multicast;               /* the multimem kernel: all ranks' heaps at once, else 0 */
    uint64_t count;                   /* elements */
    uint64_t timeout_ns;
    uint32_t rank, ranks;
};

/* Exact test data; see shk_gpu_spec_for(). */
struct shk_gpu_spec {
    uint32_t type; /* enum shk_gpu_type */
    uint32_t mask_a, mask_b;
    uint32_t seed;
    uint32_t copies; /* of a */
    uint32_t weight; /* of b */
};

struct shk_gpu_check {
    unsigned long long wrong;
    unsigned long long first; /* index of the first wrong element; ~0 none */
};

SHK_BOTH uint32_t shk_gpu_hash(uint64_t i, uint32_t seed)
{
    uint32_t h =
        ((uint32_t)i ^ (uint32_t)(i >> 32) * 0x27d4eb2fu) * 0x9e3779b1u + seed * 0x85ebca77u;

    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 13;
}

/* The whole number of element i before scaling. */
SHK_BOTH int32_t shk_gpu_whole(const struct shk_gpu_spec *spec, uint32_t h)
{
    uint32_t a = h & spec->mask_a;
    uint32_t b = (h >> 10 & spec->mask_b) + 1;
    int32_t v = (int32_t)(spec->copies * a + spec->weight * b);

    return h >> 31 ? -v : v;
}

/* Power of two of element i as a float exponent, -4 … 3. */
SHK_BOTH int shk_gpu_power(uint32_t h)
{
    return (int)(h >> 20 & 7) - 4;
}

#endif
