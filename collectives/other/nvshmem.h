/* NVSHMEM on the GPUs of a node: does the library start, hand out symmetric memory, reach the
 * memory of all PEs, and put?
 *
 * One PE per GPU, as many as ranks are asked for, in processes of their own with a deadline:
 * NVSHMEM ends the process when its start fails. PEs meet by NVSHMEM's own unique id, so no
 * launcher is needed. Multicast and remote transports are turned off (NVSHMEM_DISABLE_NVLS,
 * NVSHMEM_REMOTE_TRANSPORT). Never run on a GPU so far: the library of NVSHMEM 3.8.0 was loaded and
 * started without one, and said so.
 *
 * Facts, beside status, reason, rank, phase, library, version, ranks of collective.h:
 *   collective.nvshmem.self    one line: what the PEs did
 *   collective.nvshmem.sizes   [{bytes, type, redop: "put", time_us, wrong}]: nvshmem_putmem and
 *                              nvshmem_quiet from symmetric memory to that of the next PE, by all
 *                              PEs at once; the slowest one's mean; wrong: bytes that did not
 *                              arrive, of all PEs
 *   collective.nvshmem.output  the end of what a PE printed, when it did not end well */
#ifndef SHK_COLLECTIVES_NVSHMEM_H
#define SHK_COLLECTIVES_NVSHMEM_H

#include "collectives/collective.h"

/* What tests may change; zeroed for the real thing. */
struct shk_nvshmem_tweaks {
    const char *const *names;        /* instead of libnvshmem_host.so.3 */
    const char *const *driver_names; /* instead of libcuda.so.1 */
};

/* Runs it with tweaks (may be NULL). */
int shk_nvshmem_run(const struct shk_collective_options *options,
                    const struct shk_nvshmem_tweaks *tweaks, struct shk_facts *facts,
                    struct shk_error *err) SHK_MUST_CHECK;

extern const struct shk_transport shk_transport_nvshmem;

#endif
