#include "checks/hardware/pci.h"

#include <string.h>
#include <strings.h>

static enum shk_pci_role role_of_class(const json_t *device)
{
    const char *class = NULL;
    if (shk_look_member_text(device, "class", &class) != SHK_LOOK_PRESENT)
        return SHK_PCI_UNTOLD;
    unsigned long code = strtoul(class, NULL, 16);
    unsigned long base = code > 0xffff ? code >> 16 : code >> 8;
    return base == 0x03 || base == 0x12 ? SHK_PCI_GPU
           : base == 0x06               ? SHK_PCI_OTHER
                                        : SHK_PCI_UNTOLD;
}

static enum shk_pci_role role_of(const json_t *device)
{
    static const char *const gpus[] = {"gpu-nvidia", "gpu-amd", "gpu-intel", "neuron", NULL};
    static const char *const nics[] = {"cxi", "efa", "mlx5", "bnxt", NULL};
    const char *kind = NULL;
    enum shk_look look = shk_look_member_text(device, "kind", &kind);
    if (look == SHK_LOOK_MISSING)
        return role_of_class(device);
    return look != SHK_LOOK_PRESENT   ? SHK_PCI_UNTOLD
           : shk_list_has(gpus, kind) ? SHK_PCI_GPU
           : shk_list_has(nics, kind) ? SHK_PCI_FABRIC_NIC
                                      : SHK_PCI_OTHER;
}

bool shk_pci_is_gpu(const json_t *device)
{
    return role_of(device) == SHK_PCI_GPU;
}

bool shk_pci_is_fabric_nic(const json_t *device)
{
    return role_of(device) == SHK_PCI_FABRIC_NIC;
}

enum shk_pci_role shk_read_pci_role(struct shk_row *row, const json_t *device)
{
    enum shk_pci_role role = role_of(device);
    if (role == SHK_PCI_UNTOLD)
        shk_row_lacks(row, "pci.devices", "what the device at %s is was not read",
                      shk_member_name(device, "addr"));
    else
        shk_row_was_read(row);
    return role;
}

json_t *shk_read_pci_devices(struct shk_row *row)
{
    json_t *devices = NULL;
    struct shk_fact rest;
    size_t i;
    json_t *device;
    const char *addr;
    if (shk_read_array(row, "pci.devices", &devices) == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "pci.devices", "the devices on the bus were not read");
    json_array_foreach(devices, i, device)
    {
        if (shk_look_member_text(device, "addr", &addr) != SHK_LOOK_PRESENT)
            shk_row_lacks(row, "pci.devices", "the address of a device was not read");
    }
    if (shk_look(row->ctx->facts, "pci.unreadable", &rest) == SHK_LOOK_FAILED)
        shk_row_lacks(row, "pci.unreadable", "a device on the bus could not be read: %s",
                      rest.reason ? rest.reason : "no reason given");
    return devices;
}

static bool is_virtual(const json_t *device)
{
    bool vf = false;
    return shk_look_member_bool(device, "vf", &vf) == SHK_LOOK_PRESENT && vf;
}

/* Of the list of all functions; -1 when it was not read as a whole. */
static long long count_listed(const struct shk_facts *facts, const char *kind)
{
    json_t *devices = NULL, *device;
    long long count = 0;
    bool whole = shk_look(facts, "pci.unreadable", NULL) != SHK_LOOK_FAILED;
    size_t i;
    if (shk_look_array(facts, "pci.devices", &devices) != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(devices, i, device)
    {
        const char *is = NULL;
        if (shk_look_member_text(device, "kind", &is) != SHK_LOOK_PRESENT)
            whole = false;
        else
            count += strcmp(is, kind) == 0 && !is_virtual(device);
    }
    return whole || count ? count : -1;
}

long long shk_read_pci_count(struct shk_row *row, const char *kind)
{
    char *key = shk_strf("pci.count.%s", kind);
    long long count = -1;
    enum shk_look look = key ? shk_look_int(row->ctx->facts, key, &count) : SHK_LOOK_FAILED;
    free(key);
    if (look == SHK_LOOK_ABSENT)
        count = 0;
    if (count < 0)
        count = count_listed(row->ctx->facts, kind);
    if (count < 0)
        return shk_read_device_count(row, kind);
    shk_row_was_read(row);
    return count;
}

/* Adapters that may be plain Ethernet cards count when they offer an RDMA device. */
static enum shk_pci_party rdma_party(struct shk_row *row)
{
    json_t *devices = NULL, *list = NULL, *device;
    size_t i;
    bool adapter = false;
    json_t *all = shk_read_pci_devices(row);
    json_array_foreach(all, i, device)
    {
        const char *kind = NULL;
        if (shk_read_pci_role(row, device) == SHK_PCI_FABRIC_NIC &&
            shk_look_member_text(device, "kind", &kind) == SHK_LOOK_PRESENT)
            adapter |= strcmp(kind, "mlx5") == 0 || strcmp(kind, "bnxt") == 0;
    }
    if (shk_look_array(row->ctx->facts, "pci.devices", &list) != SHK_LOOK_PRESENT)
        return SHK_PARTY_UNTOLD;
    if (!adapter)
        return shk_row_lacking(row) ? SHK_PARTY_UNTOLD : SHK_PARTY_NONE;
    enum shk_look look = shk_read_array(row, "rdma.devices", &devices);
    if (look != SHK_LOOK_PRESENT && look != SHK_LOOK_ABSENT)
        return SHK_PARTY_UNTOLD;
    return json_array_size(devices) ? SHK_PARTY_NIC : SHK_PARTY_NONE;
}

/* Are the two GPUs of a maker of different models? So is a graphics unit in the processor beside a
 * card, and nothing exchanges data between these. */
static bool models_differ(const struct shk_facts *facts, const char *kind)
{
    json_t *devices = NULL, *device;
    const char *first = NULL;
    size_t i;
    (void)shk_look_array(facts, "pci.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        const char *is = NULL, *model = NULL;
        if (shk_look_member_text(device, "kind", &is) != SHK_LOOK_PRESENT || strcmp(is, kind) != 0)
            continue;
        if (shk_look_member_text(device, "device", &model) != SHK_LOOK_PRESENT)
            return false;
        if (first && strcmp(first, model) != 0)
            return true;
        first = model;
    }
    return false;
}

static bool is_counted(const struct shk_facts *facts, const char *kind)
{
    char *key = shk_strf("pci.count.%s", kind);
    long long count;
    enum shk_look look = key ? shk_look_int(facts, key, &count) : SHK_LOOK_FAILED;
    free(key);
    return look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT;
}

/* GPUs of one maker, of whom the node has most; -1: a maker's were not read, and none has two. */
static long long gpus_together(struct shk_row *row)
{
    static const char *const kinds[] = {"gpu-nvidia", "gpu-amd", "neuron"};
    long long most = 0;
    bool untold = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        long long count = shk_read_pci_count(row, kinds[i]);
        if (!is_counted(row->ctx->facts, kinds[i]))
            shk_row_lacks(row, "pci.count.*", "how many %s devices the bus has was not read",
                          kinds[i]);
        if (count == 2 && models_differ(row->ctx->facts, kinds[i]))
            count = 1;
        most = count > most ? count : most;
        untold |= count < 0;
    }
    return most < 2 && untold ? -1 : most;
}

enum shk_pci_party shk_read_pci_party(struct shk_row *row)
{
    static const char *const nics[] = {"cxi", "efa"};
    for (size_t i = 0; i < sizeof nics / sizeof *nics; i++)
        if (shk_device_count(row->ctx->facts, nics[i]) > 0)
            return SHK_PARTY_NIC;
    long long gpus = gpus_together(row);
    enum shk_pci_party rdma = rdma_party(row);
    if (rdma == SHK_PARTY_NIC)
        return rdma;
    if (gpus > 1)
        return SHK_PARTY_GPUS;
    return gpus < 0 ? SHK_PARTY_UNTOLD : rdma;
}

/* The entry of topology.peers about two addresses; NULL: none. */
static const json_t *peers_of(const json_t *pairs, const char *a, const char *b)
{
    size_t i;
    json_t *pair;
    json_array_foreach((json_t *)pairs, i, pair)
    {
        const char *gpu = shk_member_name(pair, "gpu"), *peer = shk_member_name(pair, "peer");
        if ((strcasecmp(gpu, a) == 0 && strcasecmp(peer, b) == 0) ||
            (strcasecmp(gpu, b) == 0 && strcasecmp(peer, a) == 0))
            return pair;
    }
    return NULL;
}

bool shk_read_pci_pair(struct shk_row *row, const json_t *gpu, const json_t *other, bool *untold_p)
{
    json_t *pairs = NULL;
    const char *class = NULL, *p2p = NULL;
    *untold_p = false;
    if (!shk_pci_is_gpu(other))
        return true;
    (void)shk_look_array(row->ctx->facts, "topology.peers", &pairs);
    const json_t *pair =
        peers_of(pairs, shk_member_name(gpu, "addr"), shk_member_name(other, "addr"));
    bool joined = shk_look_member_text(pair, "class", &class) == SHK_LOOK_PRESENT &&
                  (strncmp(class, "NV", 2) == 0 || strcmp(class, "XGMI") == 0);
    bool told = shk_look_member_text(pair, "p2p", &p2p) == SHK_LOOK_PRESENT;
    if (joined || (told && strcmp(p2p, "ok") != 0))
        return false;
    if (told && class)
        return true;
    *untold_p = true;
    shk_row_lacks(row, "topology.peers",
                  "whether the GPUs at %s and %s have peer access was not read",
                  shk_member_name(gpu, "addr"), shk_member_name(other, "addr"));
    return true;
}

const json_t *shk_pci_find(const struct shk_facts *facts, const char *addr)
{
    size_t i;
    json_t *device, *devices = NULL;
    (void)shk_look_array(facts, "pci.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        if (strcasecmp(shk_member_name(device, "addr"), addr) == 0)
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
