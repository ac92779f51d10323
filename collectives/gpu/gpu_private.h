/* Inside of the GPU transports. */
#ifndef SHK_COLLECTIVES_GPU_PRIVATE_H
#define SHK_COLLECTIVES_GPU_PRIVATE_H

#include "collectives/gpu/gpu.h"
#include "collectives/gpu/gpu_api.h"
#include "collectives/gpu/gpu_data.h"
#include "collectives/gpu/kernels/kernels.h"
#include "collectives/ranks/crew.h"
#include <jansson.h>

/* Why a transport did not end well; the fact is the name. */
enum gpu_cause {
    GPU_CAUSE_NONE,
    GPU_CAUSE_NA,            /* does not apply here: not a failure */
    GPU_CAUSE_DRIVER,        /* "driver": its library does not load or does not start */
    GPU_CAUSE_MISMATCH,      /* "driver-mismatch": the library and the kernel's part differ */
    GPU_CAUSE_NOT_READY,     /* "driver-not-ready": the system is not initialised (NVSwitch) */
    GPU_CAUSE_BUSY,          /* "gpu-busy": another process has it for itself */
    GPU_CAUSE_ECC,           /* "gpu-memory": an uncorrectable error of its memory */
    GPU_CAUSE_CALL,          /* "gpu-call": a call failed, for no cause that its status tells */
    GPU_CAUSE_DRIVER_OLD,    /* "driver-old": too old for the kernels or the interface */
    GPU_CAUSE_VISIBLE,       /* "visible-devices": CUDA_VISIBLE_DEVICES hides what is there */
    GPU_CAUSE_SAME_GPU,      /* "same-gpu": two ranks on one GPU */
    GPU_CAUSE_NO_PEER,       /* "no-peer-access" */
    GPU_CAUSE_MEMORY,        /* "out-of-memory" */
    GPU_CAUSE_ILLEGAL,       /* "illegal-access" */
    GPU_CAUSE_LATE,          /* "late-peer": a kernel waited for another rank in vain */
    GPU_CAUSE_UNEQUAL,       /* "unequal-buffers" */
    GPU_CAUSE_NCCL,          /* "nccl-error" */
    GPU_CAUSE_NCCL_VERSIONS, /* "nccl-versions": ranks loaded different ones */
    GPU_CAUSE_NO_WINDOW,     /* "no-symmetric-memory" */
    GPU_CAUSE_NO_MULTICAST,  /* "no-multicast": there is some, but it cannot be set up */
    GPU_CAUSE_COUNT
};
extern const char *const gpu_cause_names[GPU_CAUSE_COUNT];

/* Keys of what ranks publish in the job. */
#define GPU_KEY_CAUSE    "gpu.cause"
#define GPU_KEY_PLACE    "gpu.place"
#define GPU_KEY_IDENTITY "gpu.id"
#define GPU_KEY_HEAP     "gpu.heap"
#define GPU_KEY_COPY     "gpu.copy"
#define GPU_KEY_PROOF    "gpu.proof"
#define GPU_KEY_LOG      "gpu.log"
#define GPU_KEY_LIBRARY  "gpu.library"

/* The symmetric heap: offsets are the same on every rank. */
struct gpu_heap {
    size_t bytes;
    size_t control;
    size_t send, recv; /* first byte after a guard */
    size_t area_bytes; /* of send and of recv */
    size_t slots, slot_bytes;
    size_t scratch, scratch_bytes; /* of one source rank; 0: no push kernel */
    size_t stage, stage_bytes;     /* of one of two places; 0: no exchange kernels */
    bool lines;                    /* these are for GPU_LL128, else for GPU_EXCHANGE */
    bool engines;                  /* the scratch is for GPU_ENGINES, too */
};

/* Between areas, and after the last: words of this value. */
#define GPU_GUARD_BYTES ((size_t)4096)
#define GPU_GUARD_WORD  0x5a17c0deU

/* Room beyond the longest message for a start that is off by some elements. */
#define GPU_AREA_SLACK ((size_t)4096)

enum gpu_algorithm {
    GPU_ONESHOT,
    GPU_EXCHANGE,
    GPU_LL128,
    GPU_TWOSHOT,
    GPU_PUSH,
    GPU_MULTIMEM,
    GPU_ENGINES,
    GPU_LIBRARY,
    GPU_ALGORITHM_COUNT
};

struct gpu_op {
    enum shk_gpu_type type;
    size_t count;
    size_t in, out; /* offsets in the heap */
};

struct gpu_run;
struct gpu_rank;

/* gpu_engines.c: what a rank has for all-reduces by copy engines. */
struct gpu_engines {
    void *sums;       /* stream; NULL: none of this is there */
    void *reached;    /* event: what is ahead of the operation is done */
    void *summed[2];  /* events: … half of its own part is */
    uint32_t started; /* operations so far, as the flags count them */
    bool pending;     /* some since the last gpu_settle() */
};

/* How a transport gets memory and reduces. All return 0 or a negative errno with text in err;
 * a failure whose cause is known has been noted with gpu_fail(). */
struct gpu_path {
    const char *name;
    const char *doc;
    enum gpu_vendor vendor;
    bool kernels; /* reduces with our kernels, so cannot do without them */
    bool nccl;
    bool shared;                                              /* ranks may share a GPU */
    int (*open)(struct gpu_rank *g, struct shk_error *err);   /* may be NULL */
    int (*memory)(struct gpu_rank *g, struct shk_error *err); /* fills base[] as far as needed */
    int (*reduce)(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err);
    int (*extra)(struct gpu_rank *g, struct shk_error *err); /* further measurements; may be NULL */
    void (*close)(struct gpu_rank *g);
    /* Ranks that go on with another path of the same kind (gpu_chain.c); NULL: they cannot. leave:
     * as close, but what all paths of this kind use stays. again: instead of open, in a job to
     * which nothing was published yet; the first of a chain needs none. */
    void (*leave)(struct gpu_rank *g);
    int (*again)(struct gpu_rank *g, struct shk_error *err);
    enum gpu_algorithm (*algorithm)(const struct gpu_rank *g, const struct gpu_op *op);
};

extern const struct gpu_path gpu_path_peer;
extern const struct gpu_path gpu_path_lsa;
extern const struct gpu_path gpu_path_nccl;
extern const struct gpu_path gpu_path_nccl_window;
extern const struct gpu_path gpu_path_rccl;
extern const struct gpu_path gpu_path_multimem;

/* One run, in the supervisor; the ranks see a copy. */
struct gpu_run {
    const struct gpu_path *path;
    const struct shk_collective_options *options;
    const struct shk_gpu_tweaks *tweaks;
    uint64_t deadline_ns;
};

/* One rank, in its own process. */
struct gpu_rank {
    const struct gpu_run *run;
    struct shk_job *job;
    unsigned rank, ranks;
    struct gpu_lib gpu;
    int ordinal, device;
    int driver;     /* version */
    bool overlap;   /* launches may be scheduled before the one ahead of them has ended */
    int processors; /* of the smallest GPU of the job, so that all launch the same grid */
    char name[96];
    char pci[32];
    void *stream;
    void *module; /* NULL: no kernels */
    void *reduce[GPU_LIBRARY][SHK_GPU_TYPE_COUNT];
    void *fill[SHK_GPU_TYPE_COUNT];
    void *check[SHK_GPU_TYPE_COUNT];
    void *delay;
    void *sum[SHK_GPU_TYPE_COUNT]; /* of two vectors: float32 and int32 */
    gpu_ptr result;                /* struct shk_gpu_check */
    uint64_t kernel_timeout_ns;
    size_t max_bytes; /* of an operation, on all ranks */
    struct gpu_heap heap;
    gpu_ptr *base;     /* of g->ranks: own at [rank]; others 0 unless mapped */
    gpu_ptr multicast; /* the heaps of all ranks at once; 0 none */
    struct gpu_engines engines;
    bool zeroed; /* own memory has its control block and guards */
    uint32_t seed;
    struct nccl_comm *comm; /* paths over NCCL */
};

/* gpu_device.c: driver, device of this rank, kernels. Checks that the ranks' devices differ. */
int gpu_device_open(struct gpu_rank *g, struct shk_error *err);
json_t *gpu_device_json(const struct shk_job *job);
/* PCI address of that rank's GPU as its driver writes it; false: it has not published one. */
bool gpu_device_pci(const struct shk_job *job, unsigned rank, char *buf, size_t size);
/* Hosts that the ranks said they are on. */
unsigned gpu_device_hosts(const struct shk_job *job);
/* Publishes in g->job what gpu_device_open() did in another one. */
int gpu_device_again(struct gpu_rank *g, struct shk_error *err);

/* Notes the cause (the first one counts) and returns rc. */
int gpu_fail(struct gpu_rank *g, enum gpu_cause cause, int rc);

/* 0, or the driver's error as text with its cause noted. */
int gpu_ok(struct gpu_rank *g, int status, struct shk_error *err, const char *callf, ...)
    SHK_PRINTF(4, 5);

/* gpu_access.c: which GPUs of the ranks reach each other's memory. */
enum gpu_access {
    GPU_ACCESS_UNKNOWN, /* the driver does not show that GPU to this process, or cannot tell */
    GPU_ACCESS_OK,
    GPU_ACCESS_REFUSED, /* the driver offers none */
    GPU_ACCESS_BROKEN   /* it does not refuse, and cannot map */
};
/* What the driver offers from this rank's GPU to that rank's. */
enum gpu_access gpu_access_offered(const struct gpu_rank *g, unsigned peer);
/* Publishes enum gpu_access to each rank, and waits until all have. */
int gpu_access_put(struct gpu_rank *g, const uint8_t ways[SHK_GPU_MAX_RANKS],
                   struct shk_error *err);
/* The same for what the driver offers. Nothing to do with more ranks than our kernels are for. */
int gpu_access_tell(struct gpu_rank *g, struct shk_error *err);
/* Do the links between all ranks hand over lines of 128 bytes whole, as NVLink does? The same on
 * every rank. False, too, where the driver does not show that GPU to this process. */
int gpu_access_lines(struct gpu_rank *g, bool *lines_p, struct shk_error *err);
/* Pairs for which that was published, the same on every rank, and their PCI addresses: all of few,
 * "A, B and C, D" where such groups do not reach each other, "A to B" where only one way lacks. */
unsigned gpu_access_lacking(const struct gpu_rank *g, enum gpu_access what, char *buf, size_t size);

/* gpu_heap.c */
struct gpu_room {
    bool slots;       /* for the one-shot kernel */
    bool lines;       /* the link hands over lines of 128 bytes whole */
    bool engines;     /* ranks can reduce by copy engines */
    size_t push_from; /* the push kernel is for messages of so many bytes; 0: none */
};
void gpu_heap_layout(struct gpu_heap *heap, unsigned ranks, size_t max_bytes,
                     const struct gpu_room *room);
/* Lays out g->heap; own: for our kernels. The same size on every rank, or an error. */
int gpu_heap_plan(struct gpu_rank *g, bool own, struct shk_error *err);
int gpu_heap_prepare(struct gpu_rank *g, struct shk_error *err);
int gpu_heap_guards(struct gpu_rank *g, struct shk_error *err); /* -EILSEQ: damaged */

/* gpu_launch.c */
const void *shk_kernels_image(size_t *len_p); /* NULL: built without a CUDA compiler */
int gpu_kernels_load(struct gpu_rank *g, struct shk_error *err);
size_t gpu_push_from(const struct gpu_rank *g); /* 0: never */
enum gpu_algorithm gpu_kernel_algorithm(const struct gpu_rank *g, const struct gpu_op *op);
int gpu_kernel_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err);
int gpu_kernel_delay(struct gpu_rank *g, unsigned ms, struct shk_error *err);
/* -ETIMEDOUT: that rank did not get there in time (late: enum shk_gpu_error). Fails the job. */
int gpu_late(struct gpu_rank *g, unsigned peer, unsigned late, struct shk_error *err);
/* Waits for the stream; names the peer that a kernel waited for in vain. */
int gpu_wait(struct gpu_rank *g, struct shk_error *err);
int gpu_launch(struct gpu_rank *g, void *function, unsigned blocks, unsigned threads, void **params,
               struct shk_error *err, const char *what);

/* gpu_engines.c: all-reduce of two ranks whose data goes over the link by copy engines alone. */
/* Can every rank do it? The same on every rank. Called once they know each other's GPU. */
int gpu_engines_open(struct gpu_rank *g, bool *can_p, struct shk_error *err);
bool gpu_engines_take(const struct gpu_rank *g, const struct gpu_op *op);
int gpu_engines_reduce(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err);
/* Waits for the stream. Unlike a kernel, a stream that waits for another rank never gives up by
 * itself: where one may, -ETIMEDOUT names that rank. */
int gpu_settle(struct gpu_rank *g, struct shk_error *err);

/* gpu_verify.c: poisons the result's area, then writes this rank's input. Compares the whole
 * result, the bytes around it, and (not in place) that the input is as it was. */
int gpu_put(struct gpu_rank *g, gpu_ptr to, const void *from, size_t bytes, struct shk_error *err);
int gpu_prepare(struct gpu_rank *g, const struct gpu_op *op, struct shk_error *err);
struct gpu_wrong {
    uint64_t wrong; /* elements */
    uint64_t index;
    double expected, got;
    char damage[192]; /* memory outside the result; "" none */
};
int gpu_verify(struct gpu_rank *g, const struct gpu_op *op, struct gpu_wrong *wrong,
               struct shk_error *err);
/* The check itself finds an error that is put there on purpose. */
int gpu_verify_selftest(struct gpu_rank *g, struct shk_error *err);

/* gpu_sweep.c: what one rank measured, in the job's result space. */
#define GPU_ROWS_MAX 64U

struct gpu_row {
    uint64_t bytes, count;
    uint32_t type;
    uint32_t algorithm; /* enum gpu_algorithm */
    uint32_t iterations;
    uint32_t done;
    double time_us, in_place_us, graph_us, p50_us, p99_us; /* 0: not measured */
    uint64_t wrong, in_place_wrong, verified;
};

struct gpu_result {
    uint32_t rows;
    uint32_t cases;       /* of gpu_conform() that were right */
    uint32_t wrong_cases; /* … that were not */
    uint32_t bad;         /* 1: bad_text says what was wrong first */
    uint32_t damaged;     /* 1: memory that is no part of the result was written to */
    /* 16-bit elements at an address that is not a multiple of 4, reduced by a library: told apart,
     * and part of neither wrong_cases nor bad. */
    uint32_t unaligned_cases, unaligned_wrong;
    char unaligned_text[256]; /* the first wrong one */
    char bad_text[400];
    struct gpu_row row[GPU_ROWS_MAX];
};

unsigned gpu_plan(size_t min_bytes, size_t max_bytes, bool brief, struct gpu_row *rows);
int gpu_conform(struct gpu_rank *g, struct gpu_result *result, struct shk_error *err);
int gpu_sweep(struct gpu_rank *g, struct gpu_result *result, struct shk_error *err);
/* One operation on fresh data, verified. in_place: the result replaces the input. */
int gpu_once(struct gpu_rank *g, const struct gpu_op *op, struct gpu_wrong *wrong,
             struct shk_error *err);
int gpu_barrier(struct gpu_rank *g, struct shk_error *err);

/* gpu_time.c */
int gpu_time_row(struct gpu_rank *g, struct gpu_row *row, unsigned rows_left,
                 struct shk_error *err);
/* Up to n operations (a batch at most) on fresh data, one after the other without a wait and in the
 * same place, so that the result can be verified. n: the same on every rank, at least 1. */
int gpu_time_burst(struct gpu_rank *g, const struct gpu_op *op, unsigned n, struct shk_error *err);
int gpu_time_in_place(struct gpu_rank *g, struct gpu_row *row, unsigned rows_left,
                      struct shk_error *err);

/* gpu_run.c: one rank, from its start to the end of its measurement. */
const struct gpu_path *gpu_run_path(const char *name); /* NULL: there is no such transport */
void gpu_run_init(struct gpu_run *run, const struct gpu_path *path,
                  const struct shk_collective_options *options,
                  const struct shk_gpu_tweaks *tweaks);
int gpu_run_check(const struct shk_collective_options *options, struct shk_error *err);
struct gpu_rank gpu_run_rank(const struct gpu_run *run, struct shk_job *job);
int gpu_run_open(struct gpu_rank *g, struct shk_error *err);
int gpu_run_again(struct gpu_rank *g, struct shk_error *err);  /* of ranks that are open */
int gpu_run_opened(struct gpu_rank *g, struct shk_error *err); /* memory, measurement, fence */

/* gpu_facts.c */
int gpu_facts(const struct gpu_run *run, struct shk_facts *facts, const struct shk_job *job,
              const struct shk_crew_result *result, struct shk_error *err);
int gpu_facts_not_run(const struct gpu_run *run, struct shk_facts *facts, const char *status,
                      const char *why, struct shk_error *err);

#endif
