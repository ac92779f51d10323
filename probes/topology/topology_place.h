/* Accelerators and NICs of an hwloc topology: where they sit and how far apart. */
#ifndef SHK_PROBES_TOPOLOGY_PLACE_H
#define SHK_PROBES_TOPOLOGY_PLACE_H

#include "core/text/error.h"

#include <hwloc.h>
#include <jansson.h>

enum shk_place_kind { SHK_PLACE_GPU, SHK_PLACE_NIC, SHK_PLACE_NEITHER };

struct shk_places;

/* topo must outlive the result. Fails only when out of memory. */
int shk_places_find(struct shk_places **places_p, hwloc_topology_t topo,
                    struct shk_error *err) SHK_MUST_CHECK;
void shk_places_destroy(struct shk_places *places);
hwloc_topology_t shk_places_topology(const struct shk_places *places); /* as given */

/* [{kind: "gpu"|"nic", pci, vendor, device, class, vendor_name, model, os: [{name, type}], numa,
 *   cpus}]: numa null when the device belongs to no single node. NULL: out of memory. */
json_t *shk_places_devices(const struct shk_places *places);

/* Pairs of each GPU with each device of the other kind (or with each later GPU):
 * [{gpu, nic|peer, class}], addresses and one of, in the terms of nvidia-smi topo:
 *   PIX   under one PCIe switch or bridge
 *   PXB   several PCIe switches, without the host bridge
 *   PHB   the same host bridge (root complex)
 *   NODE  different host bridges of one NUMA node
 *   SYS   different NUMA nodes */
json_t *shk_places_pairs(const struct shk_places *places, enum shk_place_kind other);

/* Links between GPUs that hwloc has as distances ("NVLinkBandwidth", "XGMIBandwidth", "XGMIHops"),
 * live only with its plugins, but in most captured XML files: [{gpu, peer, type: "nvlink"|"xgmi",
 * bandwidth: MB/s one way or null, hops: or null}], each pair once. */
json_t *shk_places_links(const struct shk_places *places);

/* Kind by PCI class and vendor. Accelerators of AWS (Neuron) count as GPUs here. */
enum shk_place_kind shk_place_kind_of(const struct hwloc_pcidev_attr_s *pci);

#endif
