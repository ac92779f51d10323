#include "core/host/hostcall_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

static json_t *ifaddrs_flags(unsigned flags)
{
    static const struct {
        unsigned bit;
        const char *name;
    } rows[] = {
        {IFF_UP, "up"},
        {IFF_LOOPBACK, "loopback"},
        {IFF_RUNNING, "running"},
        {IFF_POINTOPOINT, "pointopoint"},
        {IFF_BROADCAST, "broadcast"},
        {IFF_MULTICAST, "multicast"},
    };
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (flags & rows[i].bit)
            json_array_append_new(list, json_string(rows[i].name));
    return list;
}

static int ifaddrs_prefix(const void *mask, size_t bytes)
{
    int bits = 0;
    for (size_t i = 0; i < bytes; i++)
        bits += __builtin_popcount(((const unsigned char *)mask)[i]);
    return bits;
}

static json_t *ifaddrs_addr(const struct ifaddrs *ifa)
{
    char text[INET6_ADDRSTRLEN];
    if (ifa->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const struct sockaddr_in *)ifa->ifa_addr;
        const struct sockaddr_in *m = (const struct sockaddr_in *)ifa->ifa_netmask;
        inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
        return json_pack("{s:s,s:s,s:i}", "family", "inet", "addr", text, "prefix",
                         m ? ifaddrs_prefix(&m->sin_addr, 4) : 32);
    }
    const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)ifa->ifa_addr;
    const struct sockaddr_in6 *m = (const struct sockaddr_in6 *)ifa->ifa_netmask;
    inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
    return json_pack("{s:s,s:s,s:i,s:i}", "family", "inet6", "addr", text, "prefix",
                     m ? ifaddrs_prefix(&m->sin6_addr, 16) : 128, "scope", (int)a->sin6_scope_id);
}

static void ifaddrs_links(json_t *list)
{
    json_t *links = NULL, *entry;
    size_t i;
    if (shk_netlink_links(&links) == 0) {
        json_array_foreach(list, i, entry)
        {
            json_t *link =
                json_object_get(links, json_string_value(json_object_get(entry, "name")));
            if (link)
                json_object_set(entry, "link", link);
        }
    }
    json_decref(links);
}

int shk_hostcall_ifaddrs(json_t **value_p)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    json_t *by_name = json_object(), *list = json_array();
    for (struct ifaddrs *ifa = all; ifa; ifa = ifa->ifa_next) {
        json_t *entry = json_object_get(by_name, ifa->ifa_name);
        if (!entry) {
            entry = json_pack("{s:s,s:o,s:[]}", "name", ifa->ifa_name, "flags",
                              ifaddrs_flags(ifa->ifa_flags), "addrs");
            json_object_set(by_name, ifa->ifa_name, entry);
            json_array_append_new(list, entry);
        }
        int family = ifa->ifa_addr ? ifa->ifa_addr->sa_family : AF_UNSPEC;
        if (family == AF_INET || family == AF_INET6)
            json_array_append_new(json_object_get(entry, "addrs"), ifaddrs_addr(ifa));
    }
    freeifaddrs(all);
    json_decref(by_name);
    ifaddrs_links(list);
    *value_p = list;
    return 0;
}

int shk_hostcall_resolve(json_t **value_p)
{
    char name[256] = "";
    if (gethostname(name, sizeof name - 1) != 0)
        return -errno;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(name, NULL, &hints, &list);
    json_t *addrs = json_array();
    for (struct addrinfo *ai = rc ? NULL : list; ai; ai = ai->ai_next) {
        char text[INET6_ADDRSTRLEN];
        const void *a = ai->ai_family == AF_INET
                            ? (const void *)&((struct sockaddr_in *)ai->ai_addr)->sin_addr
                            : (const void *)&((struct sockaddr_in6 *)ai->ai_addr)->sin6_addr;
        if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
            continue;
        json_array_append_new(addrs, json_string(inet_ntop(ai->ai_family, a, text, sizeof text)));
    }
    if (!rc)
        freeaddrinfo(list);
    *value_p = json_pack("{s:s,s:o,s:o}", "hostname", name, "addrs", addrs, "error",
                         rc ? json_string(gai_strerror(rc)) : json_null());
    return 0;
}
