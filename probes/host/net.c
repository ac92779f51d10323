/* Network interfaces: addresses and link state from the kernel (netlink), driver and place from
 * sysfs when that shows the network namespace of this process. */
#include "core/host/netns.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NET_CLASS "/sys/class/net"
#define NET_CONF  "/proc/sys/net/ipv4/conf"

static bool net_has_flag(const json_t *answer, const char *flag)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(answer, "flags"), i, item)
    {
        const char *text = json_string_value(item);
        if (text && strcmp(text, flag) == 0)
            return true;
    }
    return false;
}

static const json_t *net_find(const json_t *answers, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(answers, i, item)
    {
        const char *text = shk_gather_get(item, "name");
        if (text && strcmp(text, name) == 0)
            return item;
    }
    return NULL;
}

/* The kernel answers "Invalid argument" or -1 for links that are down and for virtual ones: that
 * is "no speed", not a problem. */
static void net_speed(const struct shk_host *host, json_t *iface, const char *name, bool quiet)
{
    long long mbps = -1;
    char path[320];
    struct shk_error err;
    snprintf(path, sizeof path, NET_CLASS "/%s/speed", name);
    int rc = shk_host_i64(host, &mbps, &err, "%s", path);
    bool missing = rc == -ENOENT && shk_gather_missing(host, path, NET_CLASS);
    if (rc && !missing && !quiet)
        shk_gather_member_problem(iface, "speed_mbps", err.text);
    json_object_set_new(iface, "speed_mbps",
                        rc == 0 && mbps > 0 ? json_integer(mbps) : json_null());
}

/* What netlink tells, else sysfs. */
static void net_state(const struct shk_host *host, json_t *iface, const char *name,
                      const json_t *link)
{
    static const char *const members[] = {"operstate", "mtu", "type", "master"};
    for (size_t i = 0; link && i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(link, members[i]);
        json_object_set_new(iface, members[i], value ? json_incref(value) : json_null());
    }
    if (link)
        return;
    shk_gather_member_text(host, iface, "operstate", NET_CLASS "/%s/operstate", name);
    shk_gather_member_i64(host, iface, "mtu", NET_CLASS "/%s/mtu", name);
    shk_gather_member_i64(host, iface, "type", NET_CLASS "/%s/type", name);
    shk_gather_member_link(host, iface, "master", NET_CLASS "/%s/master", name);
}

static void net_from_sysfs(const struct shk_host *host, json_t *iface, const char *name)
{
    struct shk_error err;
    char *state = NULL;
    bool virtual = !shk_host_exists(host, NET_CLASS "/%s/device", name);
    shk_gather_member_link(host, iface, "driver", NET_CLASS "/%s/device/driver", name);
    shk_gather_member_pci(host, iface, "pci", NET_CLASS "/%s", name);
    /* a link that leads nowhere is a broken device, not a virtual interface */
    if (virtual && shk_host_readlink(host, &state, &err, NET_CLASS "/%s/device", name) == 0)
        shk_gather_member_problem(iface, "virtual", "the device link leads nowhere");
    free(state);
    json_object_set_new(iface, "virtual", json_boolean(virtual));
    const char *operstate = shk_gather_get(iface, "operstate");
    net_speed(host, iface, name, virtual || !operstate || strcmp(operstate, "up") != 0);
}

/* Without a /sys of this network namespace: ethtool has the driver and, as "bus", the function. */
static void net_from_link(json_t *iface, const json_t *link)
{
    const char *bus = shk_gather_get(link, "bus"), *driver = shk_gather_get(link, "driver");
    json_t *speed = json_object_get(link, "speed_mbps");
    bool loopback = json_is_true(json_object_get(iface, "loopback"));
    bool virtual = loopback || shk_gather_get(link, "kind");
    bool device = !virtual && bus && *bus;
    json_object_set_new(iface, "driver", device ? shk_gather_str(driver) : json_null());
    json_object_set_new(iface, "pci",
                        device && shk_gather_is_pci(bus, strlen(bus)) ? shk_gather_str(bus)
                                                                      : json_null());
    json_object_set_new(iface, "virtual", virtual || device ? json_boolean(virtual) : json_null());
    json_object_set_new(iface, "speed_mbps", speed ? json_incref(speed) : json_null());
    static const char *const members[] = {"driver", "pci", "virtual"};
    for (size_t i = 0; !virtual && !device && i < sizeof members / sizeof *members; i++)
        shk_gather_member_problem(iface, members[i], SHK_NETNS_FOREIGN);
}

/* What the kernel does with addresses of this interface; it takes the larger of this value and that
 * of conf/all (ip-sysctl.rst). */
static void net_sysctls(const struct shk_host *host, json_t *iface, const char *name)
{
    static const char *const members[] = {"rp_filter", "arp_ignore", "arp_announce"};
    bool there = shk_host_exists(host, NET_CONF "/all");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        shk_gather_member_i64(host, iface, members[i], NET_CONF "/%s/%s", name, members[i]);
        if (!there && json_is_null(json_object_get(iface, members[i])))
            shk_gather_member_problem(iface, members[i], NET_CONF " is not there");
    }
}

static json_t *net_iface(const struct shk_host *host, const char *name, const json_t *answer,
                         bool sysfs)
{
    static const char *const names[] = {"operstate", "mtu", "type",    "master",
                                        "driver",    "pci", "virtual", "speed_mbps"};
    json_t *iface = json_object(), *addrs = json_object_get(answer, "addrs");
    const json_t *link = json_object_get(answer, "link");
    link = json_is_object(link) ? link : NULL;
    json_object_set_new(iface, "name", shk_gather_str(name));
    json_object_set_new(iface, "up",
                        answer ? json_boolean(net_has_flag(answer, "up")) : json_null());
    json_object_set_new(iface, "loopback",
                        answer ? json_boolean(net_has_flag(answer, "loopback")) : json_null());
    json_object_set_new(iface, "running",
                        answer ? json_boolean(net_has_flag(answer, "running")) : json_null());
    json_object_set_new(iface, "addrs", addrs ? json_deep_copy(addrs) : json_array());
    for (size_t i = 0; !sysfs && i < sizeof names / sizeof *names; i++)
        json_object_set_new(iface, names[i], json_null());
    if (sysfs || link)
        net_state(host, iface, name, link);
    if (sysfs)
        net_from_sysfs(host, iface, name);
    else if (link)
        net_from_link(iface, link);
    net_sysctls(host, iface, name);
    return iface;
}

/* Interfaces that both sources know, then those that only one of them does. */
static json_t *net_join(const struct shk_host *host, const json_t *answers, char **names)
{
    json_t *list = json_array(), *answer;
    size_t i;
    for (char **n = names; n && *n; n++) {
        /* bonding_masters and the like are files among the interfaces */
        if (shk_host_exists(host, NET_CLASS "/%s/mtu", *n) || net_find(answers, *n))
            json_array_append_new(list, net_iface(host, *n, net_find(answers, *n), true));
    }
    json_array_foreach(answers, i, answer)
    {
        const char *name = shk_gather_get(answer, "name");
        if (name && !net_find(list, name))
            json_array_append_new(list, net_iface(host, name, answer, false));
    }
    return list;
}

static int net_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why_call, why_list;
    json_t *answers = NULL;
    char **names = NULL;
    int call = shk_hostcall(ctx->host, SHK_CALL_IFADDRS, &answers, &why_call);
    int list = shk_host_list(ctx->host, &names, NULL, &why_list, NET_CLASS);
    if (!call && !json_is_array(answers))
        call = shk_error_set(&why_call, EINVAL, "ifaddrs: not an array");
    if (call && list) {
        shk_gather_failed(&g, "net.ifaces", NET_CLASS, "%s; %s", why_call.text, why_list.text);
    } else if (call) {
        /* without addresses a check could take an interface for unusable */
        shk_gather_failed(&g, "net.ifaces", "getifaddrs", "%s", why_call.text);
    } else {
        bool foreign = !list && shk_netns_differs(ctx->host, answers, names);
        shk_gather_present(&g, "net.ifaces", net_join(ctx->host, answers, foreign ? NULL : names),
                           NULL,
                           list      ? "getifaddrs"
                           : foreign ? "netlink, ethtool; " SHK_NETNS_FOREIGN
                                     : NET_CLASS);
    }
    json_decref(answers);
    shk_host_list_free(names);
    return shk_gather_end(&g, err);
}

static const char *const net_provides[] = {"net.ifaces", NULL};

const struct shk_probe shk_probe_net = {
    .name = "net",
    .phase = SHK_PHASE_HOST,
    .doc = "network interfaces: state, speed, addresses, driver",
    .provides = net_provides,
    .deadline_ms = 5000,
    .run = net_run,
};
