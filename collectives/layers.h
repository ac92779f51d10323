/* The transports on the GPUs of a node from the bottom up: peer (with the rate of plain copies),
 * lsa, nccl, nccl-window, with three ranks or more multimem; rccl where AMD GPUs are. The first
 * that fails is the suspect. */
#ifndef SHK_COLLECTIVES_LAYERS_H
#define SHK_COLLECTIVES_LAYERS_H

#include "collectives/collective.h"

struct shk_gpu_tweaks; /* collectives/gpu.h, NULL for the real thing */

/* Runs each that applies and writes its collective.<t>.* facts. Where no rank finds a GPU to use,
 * peer's facts say why, and the other transports on GPUs have none. After one that hung or crashed
 * those above it are not run ("na"): the GPUs are not to be trusted then. An error only when facts
 * could not be written. */
int shk_layers_run(const struct shk_collective_options *options,
                   const struct shk_gpu_tweaks *tweaks, struct shk_facts *facts,
                   struct shk_error *err) SHK_MUST_CHECK;

/* After shk_layers_run(): 1 when the fabric's all-reduce on GPU memory is to be run as well, on all
 * ranks of the job; 0 when no rank found a GPU, or one of the transports on GPUs hung or crashed
 * (fabric-hmem is then "na"). */
int shk_layers_want_hmem(struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

#endif
