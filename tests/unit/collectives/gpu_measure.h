/* For shk_layers_run(): GPU transports in local ranks with tweaks, which arg points to; the others
 * as they are. */
#ifndef SHK_TESTS_GPU_MEASURE_H
#define SHK_TESTS_GPU_MEASURE_H

#include "collectives/fabric/fabric.h"
#include "collectives/gpu/gpu.h"

static inline int gpu_measure(const struct shk_transport *transport,
                              const struct shk_collective_options *options, struct shk_facts *facts,
                              void *arg, struct shk_error *err)
{
    return transport == &shk_transport_fabric_hmem
               ? transport->run(options, facts, err)
               : shk_gpu_run(transport, options, arg, facts, err);
}

static inline int gpu_measure_chain(const struct shk_gpu_chain *chain,
                                    const struct shk_collective_options *options,
                                    struct shk_facts *facts, void *arg,
                                    struct shk_gpu_chain_result *result, struct shk_error *err)
{
    return shk_gpu_chain_run(chain, options, arg, facts, result, err);
}

#endif
