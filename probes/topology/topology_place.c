#include "probes/topology/topology_place.h"

#include "core/facts/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds for hostile topologies; the largest real nodes have 16 GPUs and 32 NICs (SR-IOV more). */
enum { PLACES_MAX = 256, PLACES_MAX_DEPTH = 64 };

struct shk_places {
    hwloc_topology_t topo;
    hwloc_obj_t devices[PLACES_MAX];
    enum shk_place_kind kinds[PLACES_MAX];
    size_t count;
};

/* PCI class codes: base class and subclass as the PCI Code and ID Assignment Specification has
 * them; device ids of Neuron from the aws-neuron driver. */
enum {
    PCI_BASE_NETWORK = 0x02,
    PCI_BASE_DISPLAY = 0x03,
    PCI_BASE_ACCELERATOR = 0x12,
    VENDOR_NVIDIA = 0x10de,
    VENDOR_AMD = 0x1002,
    VENDOR_INTEL = 0x8086,
    VENDOR_AMAZON = 0x1d0f,
};

static bool place_is_neuron(const struct hwloc_pcidev_attr_s *pci)
{
    static const unsigned short ids[] = {0x7064, 0x7065, 0x7066, 0x7067,
                                         0x7164, 0x7264, 0x7364, 0x7564};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (pci->vendor_id == VENDOR_AMAZON && pci->device_id == ids[i])
            return true;
    }
    return false;
}

enum shk_place_kind shk_place_kind_of(const struct hwloc_pcidev_attr_s *pci)
{
    unsigned base = pci->class_id >> 8;
    bool display = base == PCI_BASE_DISPLAY || base == PCI_BASE_ACCELERATOR;
    if (base == PCI_BASE_NETWORK)
        return SHK_PLACE_NIC;
    if (place_is_neuron(pci))
        return SHK_PLACE_GPU;
    /* display controllers of other vendors are the board's console */
    if (display && (pci->vendor_id == VENDOR_NVIDIA || pci->vendor_id == VENDOR_AMD))
        return SHK_PLACE_GPU;
    if (pci->vendor_id == VENDOR_INTEL && pci->class_id == 0x0380)
        return SHK_PLACE_GPU;
    return SHK_PLACE_NEITHER;
}

int shk_places_find(struct shk_places **places_p, hwloc_topology_t topo, struct shk_error *err)
{
    struct shk_places *places = calloc(1, sizeof *places);
    if (!places)
        return shk_error_sys(err, ENOMEM, "topology");
    places->topo = topo;
    for (hwloc_obj_t obj = NULL;
         (obj = hwloc_get_next_pcidev(topo, obj)) && places->count < PLACES_MAX;) {
        enum shk_place_kind kind = shk_place_kind_of(&obj->attr->pcidev);
        if (kind == SHK_PLACE_NEITHER)
            continue;
        places->devices[places->count] = obj;
        places->kinds[places->count++] = kind;
    }
    *places_p = places;
    return 0;
}

void shk_places_destroy(struct shk_places *places)
{
    free(places);
}

hwloc_topology_t shk_places_topology(const struct shk_places *places)
{
    return places->topo;
}

static json_t *place_address(hwloc_obj_t obj)
{
    const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
    return json_sprintf("%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
}

/* XML is hostile: a name may hold anything. */
static void place_text(json_t *row, const char *key, const char *text)
{
    if (text && *text)
        json_object_set_new(row, key, shk_json_text(text, strlen(text)));
}

static json_t *place_os_devices(hwloc_obj_t obj)
{
    static const char *const types[] = {
        [HWLOC_OBJ_OSDEV_BLOCK] = "block",     [HWLOC_OBJ_OSDEV_GPU] = "gpu",
        [HWLOC_OBJ_OSDEV_NETWORK] = "network", [HWLOC_OBJ_OSDEV_OPENFABRICS] = "openfabrics",
        [HWLOC_OBJ_OSDEV_DMA] = "dma",         [HWLOC_OBJ_OSDEV_COPROC] = "coprocessor",
    };
    json_t *list = json_array();
    for (hwloc_obj_t child = obj->io_first_child; child; child = child->next_sibling) {
        if (child->type != HWLOC_OBJ_OS_DEVICE)
            continue;
        unsigned type = (unsigned)child->attr->osdev.type;
        json_t *row = json_object();
        place_text(row, "name", child->name);
        place_text(row, "type", type < sizeof types / sizeof types[0] ? types[type] : "other");
        json_array_append_new(list, row);
    }
    return list;
}

/* The one NUMA node that a device belongs to, NULL when there is none or are several. */
static hwloc_obj_t place_numa(const struct shk_places *places, hwloc_obj_t obj)
{
    hwloc_obj_t where = hwloc_get_non_io_ancestor_obj(places->topo, obj);
    if (!where || !where->nodeset || hwloc_bitmap_weight(where->nodeset) != 1)
        return NULL;
    return hwloc_get_numanode_obj_by_os_index(places->topo,
                                              (unsigned)hwloc_bitmap_first(where->nodeset));
}

static json_t *place_cpus(const struct shk_places *places, hwloc_obj_t obj)
{
    hwloc_obj_t where = hwloc_get_non_io_ancestor_obj(places->topo, obj);
    char *text = NULL;
    if (!where || !where->cpuset || hwloc_bitmap_list_asprintf(&text, where->cpuset) < 0)
        return json_null();
    json_t *value = json_string(text);
    free(text);
    return value;
}

json_t *shk_places_devices(const struct shk_places *places)
{
    json_t *list = json_array();
    for (size_t i = 0; i < places->count; i++) {
        hwloc_obj_t obj = places->devices[i], numa = place_numa(places, obj);
        const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
        json_t *row = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
                                places->kinds[i] == SHK_PLACE_GPU ? "gpu" : "nic", "pci",
                                place_address(obj), "class", json_sprintf("0x%04x", pci->class_id),
                                "vendor", json_sprintf("0x%04x", pci->vendor_id), "device",
                                json_sprintf("0x%04x", pci->device_id), "os", place_os_devices(obj),
                                "cpus", place_cpus(places, obj));
        json_object_set_new(row, "numa", numa ? json_integer(numa->os_index) : json_null());
        place_text(row, "vendor_name", hwloc_obj_get_info_by_name(obj, "PCIVendor"));
        place_text(row, "model", hwloc_obj_get_info_by_name(obj, "PCIDevice"));
        json_array_append_new(list, row);
    }
    return list;
}

/* Objects from a device up to the root, the device first. */
static size_t place_chain(hwloc_obj_t obj, hwloc_obj_t chain[PLACES_MAX_DEPTH])
{
    size_t n = 0;
    for (; obj && n < PLACES_MAX_DEPTH; obj = obj->parent)
        chain[n++] = obj;
    return n;
}

static bool place_is_bridge(hwloc_obj_t obj, hwloc_obj_bridge_type_t upstream)
{
    return obj->type == HWLOC_OBJ_BRIDGE && obj->attr->bridge.upstream_type == upstream;
}

static const char *place_distance(const struct shk_places *places, hwloc_obj_t a, hwloc_obj_t b)
{
    hwloc_obj_t up_a[PLACES_MAX_DEPTH], up_b[PLACES_MAX_DEPTH];
    size_t na = place_chain(a, up_a), nb = place_chain(b, up_b), i, k = 0;
    for (i = 0; i < na; i++) {
        for (k = 0; k < nb && up_a[i] != up_b[k]; k++)
            ;
        if (k < nb)
            break;
    }
    if (i == na)
        return "SYS";
    hwloc_obj_t common = up_a[i];
    if (place_is_bridge(common, HWLOC_OBJ_BRIDGE_PCI))
        /* i, k count the steps up: 1 is directly below, 2 below one downstream port */
        return i <= 2 && k <= 2 ? "PIX" : "PXB";
    if (place_is_bridge(common, HWLOC_OBJ_BRIDGE_HOST))
        return "PHB";
    hwloc_obj_t numa_a = place_numa(places, a);
    return numa_a && numa_a == place_numa(places, b) ? "NODE" : "SYS";
}

json_t *shk_places_pairs(const struct shk_places *places, enum shk_place_kind other)
{
    const char *name = other == SHK_PLACE_GPU ? "peer" : "nic";
    json_t *list = json_array();
    for (size_t g = 0; g < places->count; g++) {
        if (places->kinds[g] != SHK_PLACE_GPU)
            continue;
        for (size_t o = other == SHK_PLACE_GPU ? g + 1 : 0; o < places->count; o++) {
            if (places->kinds[o] != other)
                continue;
            hwloc_obj_t a = places->devices[g], b = places->devices[o];
            json_array_append_new(list, json_pack("{s:o, s:o, s:s}", "gpu", place_address(a), name,
                                                  place_address(b), "class",
                                                  place_distance(places, a, b)));
        }
    }
    return list;
}
