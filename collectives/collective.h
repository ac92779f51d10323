/* Collectives: active measurements that produce facts, never verdicts.
 *
 * A transport runs one verified all-reduce sweep between the ranks of a job and describes the
 * outcome as collective.<transport>.* facts. */
#ifndef SHK_COLLECTIVES_COLLECTIVE_H
#define SHK_COLLECTIVES_COLLECTIVE_H

#include "core/facts/facts.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Network devices that the fabric all-reduce uses side by side, at most. */
#define SHK_RAILS_MAX 8U

struct shk_collective_options {
    unsigned ranks;   /* local ranks; at least 1 */
    size_t min_bytes; /* per rank message, power-of-two steps; at least 4 */
    size_t max_bytes;
    size_t
        large_bytes; /* GPUs with memory to spare go on to this size in a brief run; 0: none do */
    unsigned deadline_ms; /* for the whole collective, start to result */
    bool brief;           /* fewer sizes, repeats and cases: a preflight rather than a benchmark */
    bool pairs; /* no all-reduce: pairs of ranks, see pairs.h (a transport's work() only) */
    bool proof; /* nothing timed: the library's log shows how it does each size (GPUs only) */
    const char *provider; /* only this libfabric provider; NULL: libfabric's own choice */
    unsigned stress_ms;   /* load on all GPUs after the measurement (peer only); 0: none */
    unsigned rails; /* network devices to use side by side; 0: SHK_RAILS_MAX, 1: the first only */
    void (*progress)(const char *text, void *arg); /* may be NULL */
    void *progress_arg;
    /* Reads the counters of this node; may be NULL. For ranks of this host; of others, see world.h.
     */
    const struct shk_counters_source *counters; /* collectives/counters/counters.h */
    struct shk_counters_kept *kept;             /* there, too; may be NULL */
};

struct shk_job;
struct shk_crew_result;
struct shk_transport;

/* Who measures: ranks of this process, or those that a launcher started. Writes
 * collective.<name>.*, as shk_transport's run(). */
struct shk_gpu_chain;
struct shk_gpu_chain_result;
struct shk_measure {
    int (*run)(const struct shk_transport *transport, const struct shk_collective_options *options,
               struct shk_facts *facts, void *arg, struct shk_error *err);
    void *arg;
    /* Several in one set of ranks (gpu.h); NULL: always ranks of their own. */
    int (*chain)(const struct shk_gpu_chain *chain, const struct shk_collective_options *options,
                 struct shk_facts *facts, void *arg, struct shk_gpu_chain_result *result,
                 struct shk_error *err);
};

struct shk_transport {
    const char *name; /* "fabric", "fabric-hmem", "nccl", "peer", "lsa", "multimem", "shm" */
    const char *doc;
    /* Writes collective.<name>.*; an error is returned only when not even those could be written.
     */
    int (*run)(const struct shk_collective_options *options, struct shk_facts *facts,
               struct shk_error *err);

    /* The same in parts, for ranks on many hosts (world.h). NULL: local ranks only.
     * work: one rank of the job, in a process of its own. result_bytes: what it leaves in
     * shk_job_result(). facts: collective.<name>.* of all ranks. */
    int (*work)(struct shk_job *job, const struct shk_collective_options *options,
                struct shk_error *err);
    size_t result_bytes;
    bool within_node; /* its ranks share a node: every node does it, at the same time */
    bool pairs;       /* work() knows options->pairs */
    bool per_gpu;     /* a rank is for a GPU */
    int (*facts)(const struct shk_job *job, struct shk_crew_result *result,
                 const struct shk_collective_options *options, struct shk_facts *facts,
                 struct shk_error *err);
};

const struct shk_transport *const *shk_transports(size_t *count_p);

/* GPUs that the driver (libcuda.so.1, else libamdhip64.so) shows to this process; 0 when it cannot
 * be told. facts: what this process found on this node, NULL: nothing. Where they do not have the
 * number (cuda.devices), the driver is asked in a process of its own. */
unsigned shk_gpus_visible(const struct shk_facts *facts);

/* Facts of a transport:
 *   collective.<t>.status      "ok" | "wrong" | "failed" | "timeout" | "crashed" | "na" |
 *                              "starved" (no processor time before its deadline: not known)
 *   collective.<t>.reason      one line, absent when ok; names rank and phase
 *   collective.<t>.rank        int, the rank to blame, when one can be named
 *   collective.<t>.phase       where it stopped: "start" "open" "register" "exchange" "warmup"
 *                              "allreduce 1048576 B" "verify" "teardown"
 *   collective.<t>.ranks       int
 *   collective.<t>.provider    provider chosen; .fabric, .domain, .endpoint too
 *   collective.<t>.library     path of the library that did it, .version
 *   collective.<t>.algorithm   per size in sizes[]
 *   collective.<t>.sizes       [{bytes, count, type, redop, algorithm, iterations, time_us, algbw,
 *                              busbw, wrong, efficiency}]; GB/s (10^9), busbw = algbw * 2(n-1)/n;
 *                              efficiency: busbw by the roofline, where there is one
 *   collective.<t>.roofline    {latency_us, sizes: [{bytes, bandwidth}]} of plain puts between the
 *                              same ranks (fabric and shm)
 *   collective.<t>.hmem        fabric: {status: "offered" or "na", reason}, is there FI_HMEM?
 *                              fabric-hmem: what it was asked for and does, see docs/facts.md
 *   collective.<t>.rails       [{domain, status, reason, bandwidth, …}], see docs/facts.md (fabric
 *                              only)
 *   collective.<t>.ports       [{rank, device, port, gid, …}] over RDMA, see docs/facts.md
 *   collective.<t>.evidence    [text]: what proves the path
 *   collective.<t>.ranks_state [{rank, pid, host, phase, status}] */

#endif
