#include "collectives/collective.h"
#include "collectives/fabric/fabric.h"
#include "collectives/gpu/gpu.h"
#include "collectives/other/neuron.h"
#include "collectives/other/nvshmem.h"
#include "collectives/other/shm.h"

static const struct shk_transport *const registry[] = {
    &shk_transport_fabric, &shk_transport_fabric_hmem, &shk_transport_peer,     &shk_transport_lsa,
    &shk_transport_nccl,   &shk_transport_nccl_window, &shk_transport_multimem, &shk_transport_rccl,
    &shk_transport_neuron, &shk_transport_nvshmem,     &shk_transport_shm,
};

const struct shk_transport *const *shk_transports(size_t *count_p)
{
    *count_p = sizeof registry / sizeof registry[0];
    return registry;
}
