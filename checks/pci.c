#include "checks/pci.h"

#include <string.h>
#include <strings.h>

static bool kind_is(const json_t *device, const char *const *kinds)
{
    const char *kind = shk_member_text(device, "kind");
    return kind && shk_list_has(kinds, kind);
}

bool shk_pci_is_gpu(const json_t *device)
{
    static const char *const kinds[] = {"gpu-nvidia", "gpu-amd", "gpu-intel", "neuron", NULL};
    return kind_is(device, kinds);
}

bool shk_pci_is_fabric_nic(const json_t *device)
{
    static const char *const kinds[] = {"cxi", "efa", "mlx5", "bnxt", NULL};
    return kind_is(device, kinds);
}

const json_t *shk_pci_find(const struct shk_facts *facts, const char *addr)
{
    size_t i;
    json_t *device;
    json_array_foreach(shk_facts_get_array(facts, "pci.devices"), i, device)
    {
        const char *text = shk_member_text(device, "addr");
        if (text && strcasecmp(text, addr) == 0)
            return device;
    }
    return NULL;
}

/* Adds the parents below `common` (index of it in the list). */
static void add_below(json_t *ports, const json_t *parents, size_t common)
{
    for (size_t i = 0; i < common; i++)
        json_array_append(ports, json_array_get(parents, i));
}

json_t *shk_pci_ports_between(const json_t *a, const json_t *b)
{
    const json_t *up_a = json_object_get(a, "parents"), *up_b = json_object_get(b, "parents");
    for (size_t i = 0; i < json_array_size(up_a); i++)
        for (size_t k = 0; k < json_array_size(up_b); k++)
            if (json_equal(json_array_get(up_a, i), json_array_get(up_b, k))) {
                json_t *ports = json_array();
                add_below(ports, up_a, i);
                add_below(ports, up_b, k);
                return ports;
            }
    return NULL;
}

const char *shk_pci_problem(const json_t *device, const char *member)
{
    return shk_member_text(json_object_get(device, "problems"), member);
}
