/* GPUs, NICs and accelerators on the PCI bus, and the bridges above them. */
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/device/pcidetail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PCI_BUS SHK_PCI_BUS

/* Identifiers: pci.ids for the vendors; Cassini from the HPE driver (cxi_ss1); EFA 0xefa0… from
 * rdma-core; Neuron from the aws-neuronx driver's table (inf1, trn1, inf2, trn2, trn3). */
static const struct pci_kind {
    const char *name;
    unsigned vendor, class_code, class_mask; /* class is 24 bits: base, sub, interface */
    unsigned first, last;                    /* device identifiers; 0, 0: any */
} pci_kinds[] = {
    {.name = "gpu-nvidia", .vendor = 0x10de, .class_code = 0x030000, .class_mask = 0xff0000},
    {.name = "nvswitch", .vendor = 0x10de, .class_code = 0x068000, .class_mask = 0xffff00},
    {.name = "gpu-amd", .vendor = 0x1002, .class_code = 0x030000, .class_mask = 0xff0000},
    {.name = "gpu-amd", .vendor = 0x1002, .class_code = 0x120000, .class_mask = 0xff0000},
    {.name = "gpu-intel", .vendor = 0x8086, .class_code = 0x038000, .class_mask = 0xffff00},
    {.name = "neuron", .vendor = 0x1d0f, .first = 0x7064, .last = 0x7067},
    {.name = "neuron", .vendor = 0x1d0f, .first = 0x7164, .last = 0x7164},
    {.name = "neuron", .vendor = 0x1d0f, .first = 0x7264, .last = 0x7264},
    {.name = "neuron", .vendor = 0x1d0f, .first = 0x7364, .last = 0x7364},
    {.name = "neuron", .vendor = 0x1d0f, .first = 0x7564, .last = 0x7565},
    {.name = "efa", .vendor = 0x1d0f, .first = 0xefa0, .last = 0xefaf},
    {.name = "cxi", .vendor = 0x17db, .first = 0x0501, .last = 0x0501},
    {.name = "cxi", .vendor = 0x1590, .first = 0x0371, .last = 0x0371},
    /* from Connect-IB on; smaller numbers belong to mlx4 */
    {.name = "mlx5",
     .vendor = 0x15b3,
     .class_code = 0x020000,
     .class_mask = 0xff0000,
     .first = 0x1011,
     .last = 0xffff},
    {.name = "bnxt", .vendor = 0x14e4, .class_code = 0x020000, .class_mask = 0xff0000},
    {.name = "ena", .vendor = 0x1d0f, .first = 0xec20, .last = 0xec21},
};

/* Kinds of which the number is a fact. */
static const char *const pci_counted[] = {"gpu-nvidia", "nvswitch", "gpu-amd", "gpu-intel",
                                          "neuron",     "efa",      "cxi",     "mlx5"};

struct pci_id {
    unsigned class_code, vendor, device;
};

static const char *pci_kind_of(const struct pci_id *id)
{
    for (size_t i = 0; i < sizeof pci_kinds / sizeof *pci_kinds; i++) {
        const struct pci_kind *k = &pci_kinds[i];
        if (k->vendor == id->vendor && (id->class_code & k->class_mask) == k->class_code &&
            (!k->last || (id->device >= k->first && id->device <= k->last)))
            return k->name;
    }
    return id->class_code >> 16 == 0x02 ? "nic" : NULL;
}

/* One read for class, vendor and device: "PCI_CLASS=30200\nPCI_ID=10DE:2330\n…". */
static bool pci_id_from_uevent(const struct shk_host *host, const char *addr, struct pci_id *id)
{
    char path[128], *text = NULL;
    unsigned found = 0;
    snprintf(path, sizeof path, PCI_BUS "/%s/uevent", addr);
    if (shk_host_read(host, path, &text, NULL, NULL) != 0)
        return false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "PCI_CLASS=%x", &id->class_code) == 1)
            found |= 1;
        else if (sscanf(line, "PCI_ID=%x:%x", &id->vendor, &id->device) == 2)
            found |= 2;
    }
    free(text);
    return found == 3;
}

static int pci_id_read(const struct shk_host *host, const char *addr, struct pci_id *id,
                       struct shk_error *err)
{
    long long class_code = 0, vendor = 0, device = 0;
    if (pci_id_from_uevent(host, addr, id))
        return 0;
    int rc = shk_host_i64(host, &class_code, err, PCI_BUS "/%s/class", addr);
    if (!rc)
        rc = shk_host_i64(host, &vendor, err, PCI_BUS "/%s/vendor", addr);
    if (!rc)
        rc = shk_host_i64(host, &device, err, PCI_BUS "/%s/device", addr);
    *id = (struct pci_id){(unsigned)class_code, (unsigned)vendor, (unsigned)device};
    return rc;
}

/* Bridges above a function, nearest first, out of the link's target
 * "../../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0". NULL when there is no link to read. */
static json_t *pci_parents(const struct shk_host *host, const char *addr)
{
    char *target = NULL, *save;
    json_t *list = json_array();
    if (shk_host_readlink(host, &target, NULL, PCI_BUS "/%s", addr) != 0) {
        json_decref(list);
        return NULL;
    }
    for (char *part = strtok_r(target, "/", &save); part; part = strtok_r(NULL, "/", &save))
        if (shk_gather_is_pci(part, strlen(part)) && strcmp(part, addr) != 0)
            json_array_insert_new(list, 0, json_string(part));
    free(target);
    return list;
}

static json_t *pci_device(const struct shk_host *host, const char *addr, const struct pci_id *id,
                          const char *kind)
{
    char text[16];
    json_t *dev = json_object(), *parents = pci_parents(host, addr);
    json_object_set_new(dev, "addr", shk_gather_str(addr));
    json_object_set_new(dev, "kind", json_string(kind));
    snprintf(text, sizeof text, "0x%06x", id->class_code & 0xffffff);
    json_object_set_new(dev, "class", json_string(text));
    snprintf(text, sizeof text, "0x%04x", id->vendor & 0xffff);
    json_object_set_new(dev, "vendor", json_string(text));
    snprintf(text, sizeof text, "0x%04x", id->device & 0xffff);
    json_object_set_new(dev, "device", json_string(text));
    json_object_set_new(dev, "vf", json_boolean(shk_host_exists(host, PCI_BUS "/%s/physfn", addr)));
    shk_gather_member_i64(host, dev, "numa", PCI_BUS "/%s/numa_node", addr);
    shk_gather_member_link(host, dev, "driver", PCI_BUS "/%s/driver", addr);
    shk_gather_member_link(host, dev, "iommu_group", PCI_BUS "/%s/iommu_group", addr);
    shk_pci_link(host, dev, addr);
    shk_pci_bars(host, dev, addr);
    shk_pci_aer(host, dev, addr);
    json_object_set_new(dev, "parents", parents ? parents : json_null());
    return dev;
}

static json_t *pci_find(const json_t *devices, const char *addr)
{
    size_t i;
    json_t *dev;
    json_array_foreach(devices, i, dev)
    {
        const char *text = shk_gather_get(dev, "addr");
        if (text && strcmp(text, addr) == 0)
            return dev;
    }
    return NULL;
}

/* Appends the bridges above the devices found so far, each once. */
static void pci_add_bridges(const struct shk_host *host, json_t *devices)
{
    size_t endpoints = json_array_size(devices), j;
    json_t *parent;
    for (size_t i = 0; i < endpoints; i++) {
        json_array_foreach(json_object_get(json_array_get(devices, i), "parents"), j, parent)
        {
            const char *addr = json_string_value(parent);
            struct pci_id id;
            if (pci_find(devices, addr) || pci_id_read(host, addr, &id, NULL) != 0)
                continue;
            json_t *bridge = pci_device(host, addr, &id, "bridge");
            shk_pci_acs(host, bridge, addr);
            json_array_append_new(devices, bridge);
        }
    }
}

static void pci_counts(struct shk_gather *g, const json_t *devices, const char *problem)
{
    for (size_t i = 0; i < sizeof pci_counted / sizeof *pci_counted; i++) {
        char key[64];
        long long count = 0;
        size_t j;
        json_t *dev;
        snprintf(key, sizeof key, "pci.count.%s", pci_counted[i]);
        json_array_foreach(devices, j, dev)
        {
            const char *kind = shk_gather_get(dev, "kind");
            /* virtual functions are not further cards */
            count += strcmp(kind, pci_counted[i]) == 0 && json_is_false(json_object_get(dev, "vf"));
        }
        if (count)
            shk_gather_int(g, key, count, NULL, PCI_BUS);
        else if (*problem)
            shk_gather_failed(g, key, PCI_BUS, "none seen, but %s", problem);
        else
            shk_gather_absent(g, key, PCI_BUS, "none on the PCI bus");
    }
}

static void pci_scan(struct shk_gather *g, char **names)
{
    struct shk_error problem = {.text = ""}, err;
    json_t *devices = json_array();
    for (char **n = names; *n; n++) {
        struct pci_id id = {0};
        if (pci_id_read(g->host, *n, &id, &err) != 0) {
            problem = err;
            continue;
        }
        const char *kind = pci_kind_of(&id);
        if (kind)
            json_array_append_new(devices, pci_device(g->host, *n, &id, kind));
    }
    pci_counts(g, devices, problem.text);
    pci_add_bridges(g->host, devices);
    shk_gather_present(g, "pci.devices", devices, NULL, PCI_BUS);
    if (*problem.text)
        shk_gather_failed(g, "pci.unreadable", PCI_BUS, "%s", problem.text);
    else
        shk_gather_absent(g, "pci.unreadable", PCI_BUS, "every function could be read");
}

static int pci_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why;
    char **names = NULL, key[64];
    int rc = shk_host_list(ctx->host, &names, NULL, &why, PCI_BUS);
    if (rc == 0) {
        pci_scan(&g, names);
    } else {
        shk_gather_unread(&g, "pci.devices", PCI_BUS, "/sys/bus", rc, &why);
        for (size_t i = 0; i < sizeof pci_counted / sizeof *pci_counted; i++) {
            snprintf(key, sizeof key, "pci.count.%s", pci_counted[i]);
            shk_gather_unread(&g, key, PCI_BUS, "/sys/bus", rc, &why);
        }
    }
    shk_host_list_free(names);
    return shk_gather_end(&g, err);
}

static const char *const pci_provides[] = {
    "pci.devices",
    "pci.unreadable",
    "pci.count.gpu-nvidia",
    "pci.count.nvswitch",
    "pci.count.gpu-amd",
    "pci.count.gpu-intel",
    "pci.count.neuron",
    "pci.count.efa",
    "pci.count.cxi",
    "pci.count.mlx5",
    NULL,
};

const struct shk_probe shk_probe_pci = {
    .name = "pci",
    .phase = SHK_PHASE_HOST,
    .doc = "GPUs, NICs and accelerators on the PCI bus, and the bridges above them",
    .provides = pci_provides,
    .deadline_ms = 5000,
    .run = pci_run,
};
