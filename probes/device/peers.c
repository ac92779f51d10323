/* Who reaches whom: joins what hwloc, NVML, CUDA and the amdgpu driver said into one matrix of
 * GPUs, and gives each GPU its nearest NIC. Reads nothing itself. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const peers_provides[] = {"topology.gpus", "topology.nics", "topology.peers",
                                             NULL};

static bool peers_same(const json_t *object, const char *member, const char *text)
{
    const char *value = shk_gather_get(object, member);
    return value && text && strcmp(value, text) == 0;
}

/* The row about a pair, in either order. */
static json_t *peers_find(const json_t *list, const char *a, const char *b)
{
    size_t i;
    json_t *row;
    json_array_foreach(list, i, row)
    {
        if ((peers_same(row, "gpu", a) && peers_same(row, "peer", b)) ||
            (peers_same(row, "gpu", b) && peers_same(row, "peer", a)))
            return row;
    }
    return NULL;
}

static int peers_by_address(const void *a, const void *b)
{
    const char *x = shk_gather_get(*(json_t *const *)a, "pci");
    const char *y = shk_gather_get(*(json_t *const *)b, "pci");
    return strcmp(x ? x : "", y ? y : "");
}

/* Borrowed rows of topology.devices of one kind, by address. *n_p of them; free() the array. */
static json_t **peers_devices(const struct shk_facts *known, const char *kind, size_t *n_p)
{
    json_t *all = shk_facts_get_array(known, "topology.devices"), *row;
    json_t **list = calloc(json_array_size(all) + 1, sizeof *list);
    size_t i, n = 0;
    json_array_foreach(all, i, row)
    {
        if (list && peers_same(row, "kind", kind) && shk_gather_get(row, "pci"))
            list[n++] = row;
    }
    if (list)
        qsort(list, n, sizeof *list, peers_by_address);
    *n_p = n;
    return list;
}

static const char *peers_os_name(const json_t *device, const char *type)
{
    size_t i;
    json_t *os;
    json_array_foreach(json_object_get(device, "os"), i, os)
    {
        if (peers_same(os, "type", type) && shk_gather_get(os, "name"))
            return shk_gather_get(os, "name");
    }
    return NULL;
}

static unsigned peers_id(const json_t *device, const char *member)
{
    const char *text = shk_gather_get(device, member);
    return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

/* NICs that carry collectives: those with an RDMA device, and those known by their identifiers:
 * Cassini (17db, 1590:0371), EFA (1d0f:efa*), Mellanox (15b3). */
static bool peers_is_fabric(const json_t *nic)
{
    unsigned vendor = peers_id(nic, "vendor"), device = peers_id(nic, "device");
    return peers_os_name(nic, "openfabrics") || vendor == 0x17db || vendor == 0x15b3 ||
           (vendor == 0x1590 && device == 0x0371) || (vendor == 0x1d0f && device >> 4 == 0xefa);
}

/* Active NVLinks of a GPU in nvml.devices: to `peer` itself, or (peer NULL) to switches. */
static int peers_nvlinks(const struct shk_facts *known, const char *gpu, const char *peer)
{
    size_t i, j;
    json_t *device, *link;
    int n = 0;
    json_t *devices = shk_facts_get_array(known, "nvml.devices");
    json_array_foreach(devices, i, device)
    {
        if (!peers_same(device, "pci", gpu))
            continue;
        json_array_foreach(json_object_get(device, "links"), j, link)
        {
            bool here = peer ? peers_same(link, "remote", "gpu") && peers_same(link, "pci", peer)
                             : peers_same(link, "remote", "switch");
            n += here && json_is_true(json_object_get(link, "active"));
        }
    }
    return n;
}

/* NVLinks between two GPUs; through switches each GPU reaches every other with all of its links. */
static int peers_nv(const struct shk_facts *known, const char *a, const char *b)
{
    int direct = peers_nvlinks(known, a, b);
    int up_a = peers_nvlinks(known, a, NULL), up_b = peers_nvlinks(known, b, NULL);
    return direct ? direct : up_a < up_b ? up_a : up_b;
}

/* One NVLink of generations 2 to 4 moves 25 GB/s each way, which is what hwloc's matrix holds. */
enum { PEERS_NVLINK_MBS = 25000 };

static json_t *peers_class(const struct shk_facts *known, const char *a, const char *b,
                           const char *pcie)
{
    const json_t *seen = peers_find(shk_facts_get_array(known, "topology.links"), a, b);
    const json_t *kfd = peers_find(shk_facts_get_array(known, "gpu.amd.links"), a, b);
    long long bandwidth = json_integer_value(json_object_get(seen, "bandwidth"));
    int nv = peers_nv(known, a, b);
    if (nv > 0)
        return json_sprintf("NV%d", nv);
    if (peers_same(seen, "type", "nvlink"))
        return bandwidth > 0 && bandwidth % PEERS_NVLINK_MBS == 0
                   ? json_sprintf("NV%lld", bandwidth / PEERS_NVLINK_MBS)
                   : json_string("NV");
    if (peers_same(seen, "type", "xgmi") || peers_same(kfd, "type", "xgmi"))
        return json_string("XGMI");
    return json_string(pcie ? pcie : "SYS");
}

/* What was said of `from` to `to`, else of the pair. */
static const json_t *peers_way(const json_t *list, const char *from, const char *to)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)list, i, row)
    {
        if (peers_same(row, "gpu", from) && peers_same(row, "peer", to))
            return row;
    }
    return peers_find(list, from, to);
}

/* "ok", the reason against it, or NULL when nobody knows. */
static const char *peers_access(const struct shk_facts *known, const char *a, const char *b)
{
    const json_t *nvml = peers_way(shk_facts_get_array(known, "nvml.p2p"), a, b);
    const json_t *cuda = peers_way(shk_facts_get_array(known, "cuda.p2p"), a, b);
    const json_t *kfd = peers_find(shk_facts_get_array(known, "gpu.amd.links"), a, b);
    const char *read = shk_gather_get(nvml, "read"), *write = shk_gather_get(nvml, "write");
    if (read && strcmp(read, "ok") != 0)
        return read;
    if (write && strcmp(write, "ok") != 0)
        return write;
    if (json_is_false(json_object_get(cuda, "access")))
        return "CUDA offers no access";
    if (read || write || json_is_true(json_object_get(cuda, "access")))
        return "ok";
    /* the amdgpu driver lists XGMI neighbours and PCIe peers only when they reach each other */
    if (peers_same(kfd, "type", "xgmi") || json_is_true(json_object_get(kfd, "p2p")) ||
        peers_same(peers_find(shk_facts_get_array(known, "topology.links"), a, b), "type", "xgmi"))
        return "ok";
    return NULL;
}

/* p2p of both ways: the one against it, unknown unless both are known; and which one it is. */
static void peers_put_access(json_t *pair, const struct shk_facts *known, const char *a,
                             const char *b)
{
    const char *there = peers_access(known, a, b), *back = peers_access(known, b, a);
    bool lacks_there = there && strcmp(there, "ok") != 0;
    bool lacks_back = back && strcmp(back, "ok") != 0;
    json_object_set_new(pair, "p2p",
                        shk_gather_str(lacks_there     ? there
                                       : lacks_back    ? back
                                       : there && back ? "ok"
                                                       : NULL));
    if (lacks_there != lacks_back)
        json_object_set_new(pair, "one_way",
                            json_sprintf("%s to %s", lacks_there ? a : b, lacks_there ? b : a));
}

static json_t *peers_matrix(const struct shk_facts *known, json_t **gpus, size_t n)
{
    const json_t *pcie = shk_facts_get_array(known, "topology.gpu_gpu");
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            const char *a = shk_gather_get(gpus[i], "pci"), *b = shk_gather_get(gpus[k], "pci");
            const char *distance = shk_gather_get(peers_find(pcie, a, b), "class");
            json_t *pair =
                json_pack("{s:s,s:s,s:o,s:o}", "gpu", a, "peer", b, "class",
                          peers_class(known, a, b, distance), "pcie", shk_gather_str(distance));
            peers_put_access(pair, known, a, b);
            json_array_append_new(list, pair);
        }
    }
    return list;
}

/* Near first. */
static const char *const peers_order[] = {"PIX", "PXB", "PHB", "NODE", "SYS", NULL};

static int peers_rank(const char *distance)
{
    int rank = 0;
    while (peers_order[rank] && distance && strcmp(peers_order[rank], distance) != 0)
        rank++;
    return distance ? rank : 5;
}

static const char *peers_nic_distance(const struct shk_facts *known, const char *gpu,
                                      const char *nic)
{
    size_t i;
    json_t *row;
    json_t *ways = shk_facts_get_array(known, "topology.gpu_nic");
    json_array_foreach(ways, i, row)
    {
        if (peers_same(row, "gpu", gpu) && peers_same(row, "nic", nic))
            return shk_gather_get(row, "class");
    }
    return NULL;
}

/* The rows of topology.nics that count for GPUs: fabric NICs, or all when there is none. */
static bool peers_counts(const json_t *nics, const json_t *nic)
{
    size_t i;
    json_t *row;
    if (json_is_true(json_object_get(nic, "fabric")))
        return true;
    json_array_foreach(nics, i, row)
    {
        if (json_is_true(json_object_get(row, "fabric")))
            return false;
    }
    return true;
}

/* Fills nics, class and nic of a GPU: all at the least distance, and of those the one with the
 * fewest GPUs so far. */
static void peers_nearest(const struct shk_facts *known, json_t *gpu, json_t *nics)
{
    const char *addr = shk_gather_get(gpu, "pci"), *best = NULL;
    json_t *near = json_array(), *nic, *mine = NULL;
    size_t i;
    json_array_foreach(nics, i, nic)
    {
        const char *to = shk_gather_get(nic, "pci");
        const char *distance = peers_nic_distance(known, addr, to);
        if (!distance || !peers_counts(nics, nic) ||
            (best && peers_rank(distance) > peers_rank(best)))
            continue;
        if (best && peers_rank(distance) < peers_rank(best)) {
            json_array_clear(near);
            mine = NULL;
        }
        best = distance;
        json_array_append_new(near, json_string(to));
        if (!mine || json_array_size(json_object_get(nic, "gpus")) <
                         json_array_size(json_object_get(mine, "gpus")))
            mine = nic;
    }
    json_object_set_new(gpu, "nics", near);
    json_object_set_new(gpu, "class", best ? json_string(best) : json_null());
    json_object_set_new(gpu, "nic", mine ? json_string(shk_gather_get(mine, "pci")) : json_null());
    if (mine)
        json_array_append_new(json_object_get(mine, "gpus"), json_string(addr));
}

static json_t *peers_nic(const json_t *device)
{
    const char *net = peers_os_name(device, "network"), *ib = peers_os_name(device, "openfabrics");
    const char *pci = shk_gather_get(device, "pci");
    json_t *row = json_pack("{s:s,s:b,s:O,s:[]}", "pci", pci, "fabric", peers_is_fabric(device),
                            "numa", json_object_get(device, "numa"), "gpus");
    json_object_set_new(row, "name",
                        net && ib ? json_sprintf("%s (%s)", net, ib)
                                  : shk_gather_str(net  ? net
                                                   : ib ? ib
                                                        : pci));
    return row;
}

static void peers_all(struct shk_gather *g, const struct shk_facts *known)
{
    size_t gpu_count, nic_count;
    json_t **gpu_rows = peers_devices(known, "gpu", &gpu_count);
    json_t **nic_rows = peers_devices(known, "nic", &nic_count);
    json_t *gpus = json_array(), *nics = json_array();
    for (size_t i = 0; nic_rows && i < nic_count; i++)
        json_array_append_new(nics, peers_nic(nic_rows[i]));
    for (size_t i = 0; gpu_rows && i < gpu_count; i++) {
        json_t *row = json_pack("{s:o,s:O,s:O,s:O}", "name", json_sprintf("GPU%zu", i), "pci",
                                json_object_get(gpu_rows[i], "pci"), "numa",
                                json_object_get(gpu_rows[i], "numa"), "cpus",
                                json_object_get(gpu_rows[i], "cpus"));
        peers_nearest(known, row, nics);
        json_array_append_new(gpus, row);
    }
    shk_gather_present(g, "topology.gpus", gpus, NULL, "topology.devices, topology.gpu_nic");
    shk_gather_present(g, "topology.nics", nics, NULL, "topology.devices, topology.gpu_nic");
    shk_gather_present(g, "topology.peers",
                       gpu_rows ? peers_matrix(known, gpu_rows, gpu_count) : NULL, NULL,
                       "topology.gpu_gpu, topology.links, nvml.*, cuda.p2p, gpu.amd.links");
    free(gpu_rows);
    free(nic_rows);
}

/* GPUs of the PCI bus when hwloc shows none: built without PCI, or what it read has no devices. */
static long long peers_hidden(const struct shk_facts *known)
{
    static const char *const counts[] = {"pci.count.gpu-nvidia", "pci.count.gpu-amd"};
    long long hidden = 0;
    size_t shown = 0;
    free(peers_devices(known, "gpu", &shown));
    for (size_t i = 0; !shown && i < sizeof counts / sizeof *counts; i++) {
        struct shk_fact fact;
        if (shk_facts_get(known, counts[i], &fact) && fact.state == SHK_FACT_PRESENT)
            hidden += json_integer_value(fact.value);
    }
    return hidden;
}

static int peers_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_fact fact = {.reason = NULL};
    bool looked = shk_facts_get(ctx->known, "topology.devices", &fact);
    long long hidden = peers_hidden(ctx->known);
    const char *why = looked && fact.reason ? fact.reason : "the topology is not known";
    char text[96];
    if (shk_facts_get_array(ctx->known, "topology.devices") && !hidden) {
        peers_all(&g, ctx->known);
        return shk_gather_end(&g, err);
    }
    snprintf(text, sizeof text, "hwloc shows none of the %lld GPUs on the PCI bus", hidden);
    for (const char *const *key = peers_provides; *key; key++)
        shk_gather_failed(&g, *key, "topology.devices", "%s", hidden ? text : why);
    return shk_gather_end(&g, err);
}

const struct shk_probe shk_probe_peers = {
    .name = "peers",
    .phase = SHK_PHASE_DERIVED,
    .doc = "matrix of GPUs by NVLink, XGMI and PCIe, and the nearest NIC of each",
    .provides = peers_provides,
    .derives = true,
    .run = peers_run,
};
