/* Between the stand-in driver and the stand-in NCCL. */
#ifndef SHK_TESTS_FAKES_GPU_DRIVER_H
#define SHK_TESTS_FAKES_GPU_DRIVER_H

#include "collectives/gpu_api.h"
#include "collectives/kernels.h"

/* Runs now, or collects for the graph that is being captured; arg is copied (1 KiB at most). */
int shk_fake_enqueue(void (*run)(void *arg), const void *arg, size_t bytes);

/* What a symmetric window is, in "device" memory. */
struct shk_fake_window {
    gpu_ptr base[SHK_GPU_MAX_RANKS];
};

#endif
