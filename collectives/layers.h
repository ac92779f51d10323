/* The transports on the GPUs of a node from the bottom up: peer (with the rate of plain copies),
 * lsa, nccl, nccl-window, with three ranks or more multimem; rccl where AMD GPUs are. The first
 * that fails is the suspect. */
#ifndef SHK_COLLECTIVES_LAYERS_H
#define SHK_COLLECTIVES_LAYERS_H

#include "collectives/collective.h"

/* Runs one transport, and again for what the log of its library proves. measure NULL: local ranks.
 */
int shk_layer_run(const struct shk_transport *transport,
                  const struct shk_collective_options *options, const struct shk_measure *measure,
                  struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

/* Runs each that applies and writes its collective.<t>.* facts. Where no
 * rank finds a GPU to use, peer's facts say why, and the other transports on GPUs have none. After
 * one that hung or crashed those above it are not run ("na"), and neither is fabric-hmem, which
 * comes last: the GPUs are not to be trusted then. An error only when facts could not be written.
 */
int shk_layers_run(const struct shk_collective_options *options, const struct shk_measure *measure,
                   struct shk_facts *facts, struct shk_error *err) SHK_MUST_CHECK;

#endif
