/* GPU transports: verified all-reduce in device memory, one process per GPU.
 *
 *   nccl         ncclAllReduce as frameworks call it
 *   nccl-window  the same on symmetric windows
 *   lsa          own kernels through the pointers of a symmetric window
 *   peer         own kernels through CUDA IPC, without NCCL
 *   multimem     the switches of NVLink add up, through multicast memory (NVLS). Not run, and no
 *                multicast function of the driver looked up, where NCCL_NVLS_ENABLE is 0 or a GPU
 *                does not have it. Has never run on real hardware.
 *   rccl         ncclAllReduce of RCCL, on HIP
 *
 * Facts beside those of collective.h:
 *   collective.<t>.cause      why it did not end well, one of the names in gpu_cause_names, or
 *                             "gpu-missing": some ranks find no GPU, others do
 *   collective.<t>.by_node    [{node, status, ranks, busbw, bytes, reason}]: transports within a
 *                             node, of ranks that a launcher started; the other facts are those of
 *                             the node where it went worst, or was slowest
 *   collective.<t>.devices    [{rank, ordinal, name, pci, host, driver}]
 *   collective.<t>.cases      int: combinations of type, count, offset and place verified before
 *                             the sweep
 *   collective.<t>.unaligned  {wrong, cases, text}: library transports only, cases of 16-bit data
 *                             with 2 or more elements at an address that is not a multiple of 4;
 *                             they do not make the status "wrong". text: the first one, "" none
 *   collective.<t>.copy       {one_way_gbs, both_ways_gbs}: peer copy rate (peer only)
 *   collective.<t>.copies     [{node, gpus, pairs}]: copies between host and GPU, within a GPU and
 *                             between all pairs (peer only; see gpu_copies.h)
 *   collective.<t>.proof      what NCCL's log says of the path, see nccl_log.h; multimem:
 *                             {multicast, devices, bytes, granularity, via}, after sums and stores
 *                             through the address were seen to reach every rank
 *   collective.<t>.log        first lines of that log about settings, network and warnings
 *   collective.<t>.shared     {status, reason}: how it ended in ranks that other transports had
 *                             used before, where it then ended well in ranks of its own
 * Members of sizes[] beyond those of the fabric transport: in_place_us, in_place_wrong, graph_us,
 * p50_us, p99_us. time_us is per operation, launched into a stream one after the other. */
#ifndef SHK_COLLECTIVES_GPU_H
#define SHK_COLLECTIVES_GPU_H

#include "collectives/collective.h"
#include "collectives/ranks/job.h"

/* Which rank comes late to each operation, to test the barriers of the kernels. */
enum shk_gpu_arrival {
    SHK_ARRIVE_TOGETHER,
    SHK_ARRIVE_DELAYED, /* the host launches late */
    SHK_ARRIVE_BLOCKED, /* launched in time into a stream that is busy */
};

/* What tests may change; zeroed for the real thing. */
struct shk_gpu_tweaks {
    const char *const *driver_names; /* instead of libcuda.so.1, libamdhip64.so */
    const char *const *nccl_names;   /* instead of libnccl.so.2, librccl.so.1 */
    const void *image;               /* instead of the embedded kernels */
    bool hip;                        /* driver_names are of HIP: for fabric-hmem */
    unsigned kernel_timeout_ms; /* a kernel gives up waiting for a peer; 0: from the deadline */
    size_t push_from;     /* push kernel for messages from so many bytes on, any number of ranks; 0:
                             as measured */
    size_t engines_from;  /* copy engines for messages from so many bytes on; 0: as measured */
    uint32_t first_epoch; /* launches that are taken to have been done before */
    unsigned copies_shift; /* copies and load are of 2^-this of their sizes */
    enum shk_gpu_arrival arrival;
    unsigned late_rank;
    unsigned late_ms;
    /* Called by each rank at the start of a phase; may kill, stop, hang. */
    void (*at_phase)(struct shk_job *job, enum shk_phase phase, void *arg);
    /* After each operation, before it is verified: `at` is host memory that holds the result's
     * first `bytes` bytes, copied back to the device after the call. */
    void (*tamper)(struct shk_job *job, void *at, size_t bytes, void *arg);
    void *arg;
};

/* Runs one of the transports below in ranks of this process, with tweaks (may be NULL). */
int shk_gpu_run(const struct shk_transport *transport, const struct shk_collective_options *options,
                const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts,
                struct shk_error *err) SHK_MUST_CHECK;

/* Transports one after the other in one set of ranks, those over NCCL over one communicator: to
 * open the GPUs, to initialize NCCL and to connect the ranks takes longer than a brief run. */
#define SHK_GPU_CHAIN_MAX 4U
struct shk_gpu_chain {
    const struct shk_transport *const *transports;
    unsigned count;
    /* The transport's facts are written, the next one begins when this returns. May be NULL. */
    int (*ended)(unsigned index, void *arg, struct shk_error *err);
    void *arg;
};

/* How a transport ended in ranks that others had used before; "" nothing is to be said. */
struct shk_gpu_trouble {
    char status[16];
    char reason[512];
};

struct shk_gpu_chain_result {
    unsigned done; /* of so many, from the first, there are facts; those left have yet to be run */
    bool first_only; /* the first did not end well, and ended() was not called for it */
    struct shk_gpu_trouble trouble; /* of the one after these */
};

/* Each has the facts that it would have in ranks of its own: memory, results and the part of NCCL's
 * log that proves its path are its own, and so is its deadline. When the first does not end well,
 * that is its result: nothing was before it. A transport that does not end well after others has
 * none, and is to be run again with ranks of its own, which tell whose fault it is. After a wrong
 * result the ranks end, too. done 0: nothing was run (not a brief run, or not such transports), or
 * nothing can be told of it. */
int shk_gpu_chain_run(const struct shk_gpu_chain *chain,
                      const struct shk_collective_options *options,
                      const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts,
                      struct shk_gpu_chain_result *result, struct shk_error *err) SHK_MUST_CHECK;

/* How the library did each size, from a second run whose log says so: a line per operation would
 * have cost time in the first, whose facts these are. Nothing when the transport reduces without
 * NCCL's or RCCL's collectives, the run was brief or did not end well. */
int shk_gpu_prove(const struct shk_transport *transport,
                  const struct shk_collective_options *options, const struct shk_measure *measure,
                  struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

extern const struct shk_transport shk_transport_peer;
extern const struct shk_transport shk_transport_lsa;
extern const struct shk_transport shk_transport_nccl;
extern const struct shk_transport shk_transport_nccl_window;
extern const struct shk_transport shk_transport_rccl;
extern const struct shk_transport shk_transport_multimem;

#endif
