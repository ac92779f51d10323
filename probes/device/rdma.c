/* RDMA devices: verbs devices with their ports, and Slingshot (CXI) devices. */
#include "core/host/netns.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RDMA_CLASS  "/sys/class/infiniband"
#define VERBS_CLASS "/sys/class/infiniband_verbs"
#define CXI_CLASS   "/sys/class/cxi"

/* "4: ACTIVE" and "1: CA" carry a number and a name: the name. */
static void rdma_member_named(const struct shk_host *host, json_t *object, const char *name,
                              const char *path)
{
    shk_gather_member_text(host, object, name, "%s", path);
    const char *text = shk_gather_get(object, name);
    const char *colon = text ? strchr(text, ':') : NULL;
    if (colon)
        json_object_set_new(object, name, shk_gather_str(colon + 1 + strspn(colon + 1, " ")));
}

/* "200 Gb/sec (4X HDR)" → 200. */
static void rdma_member_rate(const struct shk_host *host, json_t *port, const char *path)
{
    shk_gather_member_text(host, port, "rate", "%s", path);
    const char *text = shk_gather_get(port, "rate");
    char *end = NULL;
    double rate = text ? strtod(text, &end) : 0;
    bool known = text && end != text && strncmp(end, " Gb/sec", 7) == 0;
    if (text && !known)
        shk_gather_member_problem(port, "rate", "not a rate in Gb/sec");
    json_object_set_new(port, "rate", known ? json_real(rate) : json_null());
}

enum { RDMA_GIDS = 16 }; /* of up to 256; every address has its entries among the first */

static const char *rdma_gid_family(const char *gid)
{
    if (strncmp(gid, "0000:0000:0000:0000:0000:ffff:", 30) == 0)
        return "ipv4";
    return strncmp(gid, "fe80:", 5) == 0 ? "link-local" : "ipv6";
}

/* Which GID indices are in use, with type and address family (not the addresses). */
static json_t *rdma_gids(const struct shk_host *host, const char *device, const char *port)
{
    json_t *list = json_array();
    for (int i = 0; i < RDMA_GIDS; i++) {
        char *gid = NULL, *type = NULL;
        int rc =
            shk_host_line(host, &gid, NULL, RDMA_CLASS "/%s/ports/%s/gids/%d", device, port, i);
        if (rc == 0 && strspn(gid, "0:") != strlen(gid)) {
            json_t *entry = json_object();
            json_object_set_new(entry, "index", json_integer(i));
            json_object_set_new(entry, "family", json_string(rdma_gid_family(gid)));
            if (shk_host_line(host, &type, NULL, RDMA_CLASS "/%s/ports/%s/gid_attrs/types/%d",
                              device, port, i) != 0)
                type = NULL;
            json_object_set_new(entry, "type", shk_gather_str(type));
            json_array_append_new(list, entry);
        }
        free(gid);
        free(type);
        if (rc)
            break;
    }
    return list;
}

static json_t *rdma_port(const struct shk_host *host, const char *device, const char *name)
{
    static const struct {
        const char *member, *file;
    } rows[] = {
        {"state", "state"},
        {"phys_state", "phys_state"},
        {"link_layer", "link_layer"},
    };
    char path[256];
    json_t *port = json_object();
    json_object_set_new(port, "port", json_integer(strtol(name, NULL, 10)));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(path, sizeof path, RDMA_CLASS "/%s/ports/%s/%s", device, name, rows[i].file);
        rdma_member_named(host, port, rows[i].member, path);
    }
    snprintf(path, sizeof path, RDMA_CLASS "/%s/ports/%s/rate", device, name);
    rdma_member_rate(host, port, path);
    json_object_set_new(port, "gids", rdma_gids(host, device, name));
    return port;
}

static json_t *rdma_ports(const struct shk_host *host, json_t *device, const char *name)
{
    char **names = NULL;
    struct shk_error err;
    json_t *ports = json_array();
    if (shk_host_list(host, &names, NULL, &err, RDMA_CLASS "/%s/ports", name) != 0)
        shk_gather_member_problem(device, "ports", err.text);
    for (char **n = names; n && *n; n++)
        json_array_append_new(ports, rdma_port(host, name, *n));
    shk_host_list_free(names);
    return ports;
}

/* {"mlx5_0": "uverbs0", …} */
static json_t *rdma_uverbs(const struct shk_host *host)
{
    char **names = NULL;
    json_t *map = json_object();
    if (shk_host_list(host, &names, NULL, NULL, VERBS_CLASS) != 0)
        return map;
    for (char **n = names; *n; n++) {
        char *device = NULL;
        if (strncmp(*n, "uverbs", 6) == 0 &&
            shk_host_line(host, &device, NULL, VERBS_CLASS "/%s/ibdev", *n) == 0 && *device)
            json_object_set_new(map, device, shk_gather_str(*n));
        free(device);
    }
    shk_host_list_free(names);
    return map;
}

static json_t *rdma_device(const struct shk_host *host, const char *name, const json_t *uverbs)
{
    char path[256];
    json_t *device = json_object(), *node = json_object_get(uverbs, name);
    json_object_set_new(device, "name", shk_gather_str(name));
    shk_gather_member_link(host, device, "driver", RDMA_CLASS "/%s/device/driver", name);
    shk_gather_member_pci(host, device, "pci", RDMA_CLASS "/%s", name);
    shk_gather_member_i64(host, device, "numa", RDMA_CLASS "/%s/device/numa_node", name);
    shk_gather_member_text(host, device, "fw", RDMA_CLASS "/%s/fw_ver", name);
    snprintf(path, sizeof path, RDMA_CLASS "/%s/node_type", name);
    rdma_member_named(host, device, "node_type", path);
    json_object_set_new(device, "uverbs", node ? json_incref(node) : json_null());
    json_object_set_new(device, "ports", rdma_ports(host, device, name));
    return device;
}

static void rdma_verbs(struct shk_gather *g)
{
    char **names = shk_gather_names(g, "rdma.devices", RDMA_CLASS, "/sys/class");
    if (!names)
        return;
    /* devices may belong to one network namespace, and their GIDs always do (man rdma-system) */
    if (shk_netns_foreign(g->host)) {
        shk_gather_failed(g, "rdma.devices", RDMA_CLASS, "%s", SHK_NETNS_FOREIGN);
        shk_host_list_free(names);
        return;
    }
    json_t *uverbs = rdma_uverbs(g->host), *list = json_array();
    for (char **n = names; *n; n++)
        json_array_append_new(list, rdma_device(g->host, *n, uverbs));
    if (json_array_size(list) > 0) {
        shk_gather_present(g, "rdma.devices", list, NULL, RDMA_CLASS);
    } else {
        shk_gather_absent(g, "rdma.devices", RDMA_CLASS, "RDMA is there, but no device");
        json_decref(list);
    }
    json_decref(uverbs);
    shk_host_list_free(names);
}

/* The network interface on the same PCI function. */
static json_t *rdma_cxi_netdev(const struct shk_host *host, json_t *device, const char *name)
{
    char **names = NULL;
    json_t *netdev = NULL;
    if (shk_netns_foreign(host))
        shk_gather_member_problem(device, "netdev", SHK_NETNS_FOREIGN);
    else if (shk_host_list(host, &names, NULL, NULL, CXI_CLASS "/%s/device/net", name) == 0 &&
             *names)
        netdev = shk_gather_str(*names);
    shk_host_list_free(names);
    return netdev ? netdev : json_null();
}

/* Cassini 1 has the port's attributes in device/port, Cassini 2 in device/port/0/link. */
static json_t *rdma_cxi_device(const struct shk_host *host, const char *name)
{
    static const char *const layouts[][2] = {{"port/link", "port/speed"},
                                             {"port/0/link/state", "port/0/link/speed"}};
    json_t *device = json_object();
    bool second = shk_host_exists(host, CXI_CLASS "/%s/device/port/0", name);
    json_object_set_new(device, "name", shk_gather_str(name));
    shk_gather_member_pci(host, device, "pci", CXI_CLASS "/%s", name);
    shk_gather_member_i64(host, device, "numa", CXI_CLASS "/%s/device/numa_node", name);
    json_object_set_new(device, "netdev", rdma_cxi_netdev(host, device, name));
    shk_gather_member_text(host, device, "link_state", CXI_CLASS "/%s/device/%s", name,
                           layouts[second][0]);
    shk_gather_member_text(host, device, "link_speed", CXI_CLASS "/%s/device/%s", name,
                           layouts[second][1]);
    shk_gather_member_text(host, device, "nid", CXI_CLASS "/%s/device/properties/nid", name);
    shk_gather_member_text(host, device, "mtu", CXI_CLASS "/%s/device/properties/hpc_mtu", name);
    return device;
}

static void rdma_cxi(struct shk_gather *g)
{
    char **names = shk_gather_names(g, "cxi.devices", CXI_CLASS, "/sys/class");
    if (!names)
        return;
    json_t *list = json_array();
    for (char **n = names; *n; n++)
        if (strncmp(*n, "cxi", 3) == 0)
            json_array_append_new(list, rdma_cxi_device(g->host, *n));
    shk_host_list_free(names);
    shk_gather_some(g, "cxi.devices", list, CXI_CLASS, "the driver is there, but no device");
}

static int rdma_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    rdma_verbs(&g);
    rdma_cxi(&g);
    return shk_gather_end(&g, err);
}

static const char *const rdma_provides[] = {"rdma.devices", "cxi.devices", NULL};

const struct shk_probe shk_probe_rdma = {
    .name = "rdma",
    .phase = SHK_PHASE_HOST,
    .doc = "verbs devices and their ports, Slingshot devices",
    .provides = rdma_provides,
    .deadline_ms = 5000,
    .run = rdma_run,
};
