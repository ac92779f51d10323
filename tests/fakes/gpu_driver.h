/* Between the stand-in driver and the stand-in NCCL. */
#ifndef SHK_TESTS_FAKES_GPU_DRIVER_H
#define SHK_TESTS_FAKES_GPU_DRIVER_H

#include "collectives/gpu/gpu_api.h"
#include "collectives/gpu/kernels/kernels.h"

#ifdef HIP
#define CALL(cuda_, hip_) hip_
#else
#define CALL(cuda_, hip_) cuda_
#endif

enum { SUCCESS = 0, INVALID = 1, NO_MEMORY = 2 };

int CALL(cuMemAlloc_v2, hipMalloc)(gpu_ptr *at, size_t bytes);
int CALL(cuMemFree_v2, hipFree)(gpu_ptr at);
int CALL(cuMemcpyHtoD_v2, hipMemcpyHtoD)(gpu_ptr to, const void *from, size_t bytes);
int CALL(cuIpcGetMemHandle, hipIpcGetMemHandle)(struct gpu_ipc *ipc, gpu_ptr at);
int CALL(cuIpcOpenMemHandle_v2, hipIpcOpenMemHandle)(gpu_ptr *at, struct gpu_ipc ipc,
                                                     unsigned flags);

/* SHK_FAKE_FAULT is this one. */
int shk_fake_faulty(const char *fault);

/* What every later call returns, as after an illegal access; 0: nothing happened. */
extern int shk_fake_failed;

/* A stream waits for what never came (gpu_streams.c): nothing that follows is done. */
extern int shk_fake_stuck;

uint64_t shk_fake_now_ns(void);

/* Runs now, or collects for the graph that is being captured; arg is copied (1 KiB at most). */
int shk_fake_enqueue(void (*run)(void *arg), const void *arg, size_t bytes);

/* Memory that was mapped by handle, for calls that take an address. */
int shk_fake_block(gpu_ptr at, size_t bytes);
void shk_fake_unblock(gpu_ptr at);

/* What a multicast address stands for: the place in each rank's memory. Number of ranks; 0: that is
 * an illegal access. libcuda only. */
unsigned shk_fake_multicast(gpu_ptr at, unsigned char **member);

/* Is the pair of GPUs, by their numbers on the bus, on the list in that variable? gpu_peers.c */
int shk_fake_pair(const char *variable, int from, int to);

/* The GPU of this process, by its number on the bus. */
int shk_fake_bus(void);

/* What a symmetric window is, in "device" memory. */
struct shk_fake_window {
    gpu_ptr base[64];
};

#endif
