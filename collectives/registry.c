#include "collectives/collective.h"
#include "collectives/fabric.h"

static const struct shk_transport *const registry[] = {
    &shk_transport_fabric,
};

const struct shk_transport *const *shk_transports(size_t *count_p)
{
    *count_p = sizeof(registry) / sizeof(registry[0]);
    return registry;
}
