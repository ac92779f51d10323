/* Device memory of this rank's GPU as memory of a symmetric heap. */
#ifndef SHK_COLLECTIVES_GPU_MEMORY_H
#define SHK_COLLECTIVES_GPU_MEMORY_H

#include "collectives/algorithm/memory.h"
#include "collectives/gpu/gpu.h"

struct shk_gpu_memory {
    struct shk_memory memory; /* first */
    bool hip;                 /* an AMD GPU by HIP, else an NVIDIA GPU by CUDA */
    int device;               /* ordinal, as this process counts them */
    bool kernels;             /* sums are made on the GPU; else on the host, through copies */
    bool flushes;             /* writes of other devices are waited for before they are read */
    const char *driver;       /* path of its library */
};

/* Opens the driver and chooses the GPU by the rank within the node; ranks may share one. Every rank
 * of the job must call it. When it fails, the cause is published as by the GPU transports; "na"
 * when there is no GPU or no driver. tweaks may be NULL. It lives until the process ends. */
int shk_gpu_memory_open(struct shk_gpu_memory **memory_p, struct shk_job *job,
                        const struct shk_gpu_tweaks *tweaks, struct shk_error *err) SHK_MUST_CHECK;

/* [{rank, ordinal, name, pci, host, driver}] of the ranks that got that far. */
json_t *shk_gpu_memory_devices(const struct shk_job *job);

#endif
