/* NVLink and XGMI between GPUs, from the distance matrices of an hwloc topology. */
#include "probes/topology/topology_place.h"

#include <hwloc/distances.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *matrix, *type, *member;
} links_matrices[] = {
    {"NVLinkBandwidth", "nvlink", "bandwidth"},
    {"XGMIBandwidth", "xgmi", "bandwidth"},
    {"XGMIHops", "xgmi", "hops"},
};

/* The GPU that an object of a matrix (a PCI function, or an OS device below one) is; NULL for
 * NVSwitches and the like. */
static hwloc_obj_t links_gpu(hwloc_obj_t obj)
{
    while (obj && obj->type == HWLOC_OBJ_OS_DEVICE)
        obj = obj->parent;
    if (!obj || obj->type != HWLOC_OBJ_PCI_DEVICE ||
        shk_place_kind_of(&obj->attr->pcidev) != SHK_PLACE_GPU)
        return NULL;
    return obj;
}

static void links_address(char *buf, size_t size, hwloc_obj_t obj)
{
    const struct hwloc_pcidev_attr_s *pci = &obj->attr->pcidev;
    snprintf(buf, size, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
}

/* The row of a pair, made when there is none yet. */
static json_t *links_row(json_t *list, hwloc_obj_t a, hwloc_obj_t b, const char *type)
{
    char gpu[32], peer[32];
    size_t i;
    json_t *row;
    links_address(gpu, sizeof gpu, a);
    links_address(peer, sizeof peer, b);
    json_array_foreach(list, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "gpu")), gpu) == 0 &&
            strcmp(json_string_value(json_object_get(row, "peer")), peer) == 0)
            return row;
    }
    row = json_pack("{s:s,s:s,s:s,s:n,s:n}", "gpu", gpu, "peer", peer, "type", type, "bandwidth",
                    "hops");
    json_array_append_new(list, row);
    return row;
}

static void links_matrix(json_t *list, const struct hwloc_distances_s *matrix, const char *type,
                         const char *member)
{
    for (unsigned i = 0; i < matrix->nbobjs; i++) {
        for (unsigned j = i + 1; j < matrix->nbobjs; j++) {
            hwloc_obj_t a = links_gpu(matrix->objs[i]), b = links_gpu(matrix->objs[j]);
            hwloc_uint64_t value = matrix->values[i * matrix->nbobjs + j];
            if (a && b && a != b && value > 0)
                json_object_set_new(links_row(list, a, b, type), member,
                                    json_integer((json_int_t)value));
        }
    }
}

json_t *shk_places_links(const struct shk_places *places)
{
    hwloc_topology_t topo = shk_places_topology(places);
    json_t *list = json_array();
    for (size_t m = 0; m < sizeof links_matrices / sizeof *links_matrices; m++) {
        struct hwloc_distances_s *matrix = NULL;
        unsigned n = 1;
        if (hwloc_distances_get_by_name(topo, links_matrices[m].matrix, &n, &matrix, 0) != 0 ||
            n == 0 || !matrix)
            continue;
        links_matrix(list, matrix, links_matrices[m].type, links_matrices[m].member);
        hwloc_distances_release(topo, matrix);
    }
    return list;
}
