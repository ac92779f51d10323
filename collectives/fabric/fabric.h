/* Transports "fabric" and "fabric-hmem": all-reduce on host memory and on GPU memory over
 * libfabric's one-sided operations. */
#ifndef SHK_COLLECTIVES_FABRIC_H
#define SHK_COLLECTIVES_FABRIC_H

#include "collectives/algorithm/wire.h"
#include "collectives/collective.h"
#include "core/run/dynlib.h"

struct shk_gpu_tweaks; /* gpu.h */

/* How a target learns that a put is readable. */
enum shk_fabric_notify {
    SHK_NOTIFY_AUTO,     /* the first of the following that the provider can do */
    SHK_NOTIFY_CQ_DATA,  /* fi_writedata: the event at the target follows the data */
    SHK_NOTIFY_DELIVERY, /* fi_writemsg with FI_DELIVERY_COMPLETE, then a message */
};

/* What tests may change; zeroed for the real thing. */
struct shk_fabric_tweaks {
    const char *const *library_names; /* instead of libfabric.so.1 */
    const char *const *verbs_names;   /* instead of libibverbs.so.1 */
    enum shk_fabric_notify notify;
    void (*tamper)(struct shk_wire *wire, size_t bytes, void *arg); /* see shk_sweep_options */
    void *tamper_arg;
    /* Called by each rank at the start of a phase; may kill, stop, hang. */
    void (*at_phase)(struct shk_job *job, enum shk_phase phase, void *arg);
    void *at_phase_arg;
    /* Of connected endpoints (fabric_direct.c): 1 + rank that has none; 1 + rank that accepts none.
     */
    unsigned no_direct, deaf_direct;
    const struct shk_gpu_tweaks *gpu; /* fabric-hmem: driver and kernels */
};

/* shk_transport_fabric.run with tweaks (may be NULL). */
int shk_fabric_run(const struct shk_collective_options *options,
                   const struct shk_fabric_tweaks *tweaks, struct shk_facts *facts,
                   struct shk_error *err) SHK_MUST_CHECK;

/* The same for fabric-hmem. */
int shk_fabric_hmem_run(const struct shk_collective_options *options,
                        const struct shk_fabric_tweaks *tweaks, struct shk_facts *facts,
                        struct shk_error *err) SHK_MUST_CHECK;

/* Can it be told that fabric-hmem does not apply, before any GPU is opened? Asks libfabric (names:
 * instead of libfabric.so.1; NULL) in a child, beside what the caller does next: does a provider
 * offer FI_HMEM, and was the library built for CUDA, or ROCm (hip)? options is borrowed. NULL: not
 * begun. */
struct shk_hmem_early;
struct shk_hmem_early *shk_hmem_early_begin(const struct shk_collective_options *options,
                                            const char *const *names, bool hip);
/* Waits for the answer and frees it (NULL is fine). True: why says what is not there, in the words
 * of a rank. False: it is there, or it cannot be told: the ranks will find out. */
bool shk_hmem_early_end(struct shk_hmem_early *early, char *why, size_t size) SHK_MUST_CHECK;

extern const struct shk_transport shk_transport_fabric;
extern const struct shk_transport shk_transport_fabric_hmem;

#endif
