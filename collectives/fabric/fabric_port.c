/* Ports and addresses (GIDs) of the kernel's RDMA devices: which one an endpoint uses, and why
 * none can be used. */
#include "collectives/fabric/fabric_verbs.h"
#include "core/facts/facts.h"
#include "core/text/uses.h"
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_CLASS "/sys/class/infiniband"
#define PORT_NODES "/sys/class/infiniband_verbs"

/* The tables of large cards have 255 entries; the kernel lists all, most of them empty. */
#define PORT_GIDS 256

/* Ranks in the evidence: more would hide the rest of it. */
#define PORT_LINES 8U

#define GID_BYTES 16U
#define GID_TEXT  48U

/* struct sockaddr_ib of the kernel's include/uapi/rdma/ib_user_sa.h: the GID is at byte 8. */
#define SOCKADDR_IB_GID 8U

static const unsigned char gid_v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Reads "fe80:0000:…" at an index; false when there is none or it is empty. */
static bool port_gid(const struct shk_host *host, const char *device, unsigned port, unsigned index,
                     unsigned char *gid)
{
    static const unsigned char empty[GID_BYTES];
    char *line = NULL;
    bool ok = shk_host_line(host, &line, NULL, PORT_CLASS "/%s/ports/%u/gids/%u", device, port,
                            index) == 0 &&
              inet_pton(AF_INET6, line, gid) == 1 && memcmp(gid, empty, GID_BYTES) != 0;

    free(line);
    return ok;
}

static bool port_gid_type(const struct shk_host *host, const char *device, unsigned port,
                          unsigned index, char *buf, size_t size)
{
    char *line = NULL;
    bool ok = shk_host_line(host, &line, NULL, PORT_CLASS "/%s/ports/%u/gid_attrs/types/%u", device,
                            port, index) == 0;

    if (ok)
        snprintf(buf, size, "%s", line);
    free(line);
    return ok;
}

static bool port_line_has(const struct shk_host *host, const char *device, unsigned port,
                          const char *file, const char *text)
{
    char *line = NULL;
    bool has =
        shk_host_line(host, &line, NULL, PORT_CLASS "/%s/ports/%u/%s", device, port, file) == 0 &&
        strstr(line, text);

    free(line);
    return has;
}

/* The GID in an endpoint's own address. */
static bool port_gid_of(const struct fi_info *info, const unsigned char *addr, size_t len,
                        unsigned char *gid)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    switch (info->addr_format) {
    case FI_SOCKADDR_IN:
        if (len < sizeof in)
            return false;
        memcpy(&in, addr, sizeof in);
        memcpy(gid, gid_v4, sizeof gid_v4);
        memcpy(gid + sizeof gid_v4, &in.sin_addr, GID_BYTES - sizeof gid_v4);
        return true;
    case FI_SOCKADDR_IN6:
        if (len < sizeof in6)
            return false;
        memcpy(&in6, addr, sizeof in6);
        memcpy(gid, &in6.sin6_addr, GID_BYTES);
        return true;
    case FI_SOCKADDR_IB:
        if (len < SOCKADDR_IB_GID + GID_BYTES)
            return false;
        memcpy(gid, addr + SOCKADDR_IB_GID, GID_BYTES);
        return true;
    case FI_ADDR_IB_UD: /* begins with the GID: libfabric's prov/verbs/src/ofi_verbs_priv.h */
        if (len < GID_BYTES)
            return false;
        memcpy(gid, addr, GID_BYTES);
        return true;
    default: return false;
    }
}

/* Port and index of this GID, of several the one of RoCE v2, which is what the connection manager
 * takes; false when the table has it nowhere. */
static bool port_find(const struct shk_host *host, const char *device, const unsigned char *want,
                      unsigned *port_p, unsigned *index_p)
{
    unsigned char gid[GID_BYTES];
    char type[32];
    bool found = false;

    for (unsigned port = 1;
         !found && shk_host_exists(host, PORT_CLASS "/%s/ports/%u", device, port); port++) {
        for (unsigned index = 0; index < PORT_GIDS; index++) {
            bool v2 = false;

            if (!port_gid(host, device, port, index, gid) || memcmp(gid, want, GID_BYTES) != 0)
                continue;
            v2 = port_gid_type(host, device, port, index, type, sizeof(type)) &&
                 strcmp(type, "RoCE v2") == 0;
            if (!found || v2) {
                *port_p = port;
                *index_p = index;
            }
            found = true;
            if (v2)
                break;
        }
    }
    return found;
}

/* "rxe0-dgram" and "mlx5_0-xrc" are devices with something behind the name. */
static bool port_name(const struct shk_host *host, const char *domain, char *buf, size_t size)
{
    char *dash = NULL;

    snprintf(buf, size, "%s", domain ? domain : "");
    if (*buf == '\0' || strchr(buf, '/'))
        return false;
    if (shk_host_exists(host, PORT_CLASS "/%s", buf))
        return true;
    dash = strrchr(buf, '-');
    if (!dash || dash == buf)
        return false;
    *dash = '\0';
    return shk_host_exists(host, PORT_CLASS "/%s", buf);
}

static void port_set(json_t *row, const char *key, const char *text)
{
    (void)json_object_set_new(row, key, shk_json_text(text, strlen(text)));
}

json_t *fabric_port(const struct shk_host *host, const struct fi_info *info, const void *addr,
                    size_t len)
{
    unsigned char gid[GID_BYTES];
    char device[64];
    char text[GID_TEXT];
    char *layer = NULL;
    unsigned port = 1;
    unsigned index = 0;
    bool known = false;
    json_t *row = NULL;

    if (!host || !port_name(host, info->domain_attr->name, device, sizeof device) ||
        !port_gid_of(info, addr, len, gid)) {
        return NULL;
    }
    row = json_object();
    port_set(row, "device", device);
    known = port_find(host, device, gid, &port, &index);
    (void)inet_ntop(AF_INET6, gid, text, sizeof text);
    port_set(row, known ? "gid" : "address", text); /* iWARP's GIDs are made of other things */
    if (known) {
        (void)json_object_set_new(row, "index", json_integer(index));
        if (port_gid_type(host, device, port, index, text, sizeof text))
            port_set(row, "type", text);
    }
    (void)json_object_set_new(row, "port", json_integer(port));
    if (shk_host_line(host, &layer, NULL, PORT_CLASS "/%s/ports/%u/link_layer", device, port) ==
        0) {
        port_set(row, "link_layer", layer);
        free(layer);
    }
    if (info->nic && info->nic->link_attr && info->nic->link_attr->mtu != 0)
        (void)json_object_set_new(row, "mtu", json_integer((json_int_t)info->nic->link_attr->mtu));
    return row;
}

/* "rank 0: rxe0 port 1, GID 1 ::ffff:10.0.0.1 (RoCE v2), MTU 1024" */
static bool port_line(const json_t *row, char *buf, size_t size)
{
    const char *device = NULL;
    const char *gid = json_string_value(json_object_get(row, "gid"));
    const char *address = json_string_value(json_object_get(row, "address"));
    const char *type = json_string_value(json_object_get(row, "type"));
    json_int_t mtu = json_integer_value(json_object_get(row, "mtu"));
    json_t *index = json_object_get(row, "index");
    json_int_t rank = 0;
    json_int_t port = 0;
    char number[24] = "";
    char more[64] = "";

    if (json_unpack((json_t *)row, "{s:s, s:I, s:I}", "device", &device, "rank", &rank, "port",
                    &port) != 0 ||
        (!gid && !address)) {
        return false;
    }
    if (json_is_integer(index))
        snprintf(number, sizeof number, " %lld", (long long)json_integer_value(index));
    if (mtu > 0)
        snprintf(more, sizeof more, ", MTU %lld", (long long)mtu);
    snprintf(buf, size, "rank %lld: %s port %lld, %s%s %s%s%s%s%s", (long long)rank, device,
             (long long)port, gid ? "GID" : "address", number, gid ? gid : address,
             type ? " (" : "", type ? type : "", type ? ")" : "", more);
    return true;
}

void fabric_ports_evidence(const json_t *rows, void (*line)(json_t *lines, const char *text),
                           json_t *lines)
{
    size_t i = 0;
    json_t *row = NULL;
    char text[256];

    json_array_foreach(rows, i, row)
    {
        if (i == PORT_LINES) {
            snprintf(text, sizeof text, "and %zu ranks more (see ports in the JSON)",
                     json_array_size(rows) - i);
            line(lines, text);
            return;
        }
        if (port_line(row, text, sizeof text))
            line(lines, text);
    }
}

/* Index of the first RoCE v2 address that was made of an IPv4 address; -1: none. */
static int port_v4_index(const struct shk_host *host, const char *device)
{
    unsigned char gid[GID_BYTES];
    char type[32];

    for (unsigned index = 0; index < PORT_GIDS; index++) {
        if (port_gid(host, device, 1, index, gid) && memcmp(gid, gid_v4, sizeof gid_v4) == 0 &&
            port_gid_type(host, device, 1, index, type, sizeof(type)) &&
            strcmp(type, "RoCE v2") == 0) {
            return (int)index;
        }
    }
    return -1;
}

void fabric_gid_choose(const struct shk_host *host, const char *provider)
{
    const char *wanted = provider ? provider : getenv(shk_variable("provider-filter"));
    char **names = NULL;
    size_t count = 0;
    int same = -1;
    char number[16];

    if (!wanted || !strstr(wanted, "ofi_rxd") || getenv(shk_variable("verbs-gid")) ||
        !fabric_wants_verbs(provider, false) ||
        shk_host_list(host, &names, &count, NULL, PORT_CLASS) != 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        int index = port_line_has(host, names[i], 1, "link_layer", "Ethernet")
                        ? port_v4_index(host, names[i])
                        : -1;

        if (index < 0 || (i > 0 && index != same)) {
            same = -1;
            break;
        }
        same = index;
    }
    shk_host_list_free(names);
    if (same > 0) {
        snprintf(number, sizeof number, "%d", same);
        (void)setenv(shk_variable("verbs-gid"), number, 1);
    }
}

/* "eth0", the interface of a device's first address. */
static bool port_interface(const struct shk_host *host, const char *device, char *buf, size_t size)
{
    char *line = NULL;
    bool known =
        shk_host_line(host, &line, NULL, PORT_CLASS "/%s/ports/1/gid_attrs/ndevs/0", device) == 0 &&
        *line != '\0';

    if (known)
        snprintf(buf, size, "%s", line);
    free(line);
    return known;
}

bool fabric_port_has_ip(const struct shk_host *host, const char *domain, char *buf, size_t size)
{
    struct ifaddrs *list = NULL;
    const struct ifaddrs *at = NULL;
    char device[64];
    char interface[64];
    bool has = false;

    if (!port_name(host, domain, device, sizeof device) ||
        !port_interface(host, device, interface, sizeof interface) || getifaddrs(&list) != 0) {
        return true;
    }
    for (at = list; at && !has; at = at->ifa_next) {
        has = strcmp(at->ifa_name, interface) == 0 && at->ifa_addr &&
              (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
    }
    freeifaddrs(list);
    snprintf(buf, size, "%s of %s", interface, device);
    return has;
}

/* "uverbs0" of a device. */
static bool blocked_node(const struct shk_host *host, const char *device, char *buf, size_t size)
{
    char **names = NULL;
    size_t count = 0;
    bool found = false;

    if (shk_host_list(host, &names, &count, NULL, PORT_NODES) != 0)
        return false;
    for (size_t i = 0; i < count && !found; i++) {
        char *line = NULL;

        found = shk_host_line(host, &line, NULL, PORT_NODES "/%s/ibdev", names[i]) == 0 &&
                strcmp(line, device) == 0;
        if (found)
            snprintf(buf, size, "/dev/infiniband/%s", names[i]);
        free(line);
    }
    shk_host_list_free(names);
    return found;
}

/* A device node that this process cannot open. */
static const char *blocked_open(const struct shk_host *host, const char *path, const char *device,
                                char *buf, size_t size)
{
    struct stat st;
    int rc = shk_host_access_rw(host, path);

    if (rc == -ENOENT) {
        snprintf(buf, size, "%s of %s is not there", path, device);
        return "verbs-no-node";
    }
    if (rc == -EACCES || rc == -EPERM) {
        if (shk_host_stat(host, path, &st) == 0) {
            snprintf(buf, size, "no permission to open %s of %s (mode %04o, owner %u, group %u)",
                     path, device, (unsigned)st.st_mode & 07777U, st.st_uid, st.st_gid);
        } else {
            snprintf(buf, size, "no permission to open %s of %s", path, device);
        }
        return "verbs-permission";
    }
    return NULL;
}

static const char *blocked_port(const struct shk_host *host, const char *device, char *buf,
                                size_t size)
{
    unsigned char gid[GID_BYTES];
    unsigned port = 0;
    char interface[64];
    bool active = false;

    for (port = 1; shk_host_exists(host, PORT_CLASS "/%s/ports/%u", device, port); port++) {
        if (!port_line_has(host, device, port, "state", "ACTIVE"))
            continue;
        active = true;
        for (unsigned index = 0; index < PORT_GIDS; index++) {
            if (port_gid(host, device, port, index, gid))
                return NULL;
        }
    }
    if (port == 1) {
        return NULL; /* nothing could be read */
    }
    if (active) {
        snprintf(buf, size, "%s has no address (GID): its interface has no IP address", device);
        return "verbs-no-gid";
    }
    if (port_interface(host, device, interface, sizeof interface))
        snprintf(buf, size, "%s has no active port: its interface %s is down", device, interface);
    else
        snprintf(buf, size, "%s has no active port", device);
    return "verbs-port-down";
}

const char *fabric_verbs_blocked(const struct shk_host *host, char *buf, size_t size)
{
    char **names = NULL;
    const char *first = NULL;
    size_t count = 0;
    int rc = 0;

    rc = shk_host_list(host, &names, &count, NULL, PORT_CLASS);
    if (rc == -ENOENT || (rc == 0 && count == 0)) {
        snprintf(buf, size, "the kernel has no RDMA device (" PORT_CLASS ")");
        first = "verbs-no-device";
    }
    if (rc != 0)
        return first;
    for (size_t i = 0; i < count; i++) {
        char node[64];
        char text[160] = "";
        const char *cause = blocked_node(host, names[i], node, sizeof node)
                                ? blocked_open(host, node, names[i], text, sizeof text)
                                : NULL;

        cause = cause ? cause : blocked_port(host, names[i], text, sizeof text);
        if (!cause) { /* one that can be used: the reason is another one */
            first = NULL;
            break;
        }
        if (!first) {
            first = cause;
            snprintf(buf, size, "%s", text);
        }
    }
    shk_host_list_free(names);
    return first;
}
