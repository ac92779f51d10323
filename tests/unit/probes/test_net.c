#include "hosttree.h"

TREE_SUITE(net);
TREE_SUITE(resolve);

#define PCI "/sys/devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0"

static const char calls[] =
    "{\"ifaddrs\":["
    "{\"name\":\"lo\",\"flags\":[\"up\",\"loopback\",\"running\"],"
    "\"addrs\":[{\"family\":\"inet\",\"addr\":\"127.0.0.1\",\"prefix\":8}]},"
    "{\"name\":\"hsn0\",\"flags\":[\"up\",\"running\"],"
    "\"addrs\":[{\"family\":\"inet\",\"addr\":\"10.1.0.1\",\"prefix\":16}]},"
    "{\"name\":\"veth1\",\"flags\":[],\"addrs\":[]}]}";

static void iface(const char *name, const char *state, const char *speed, const char *device)
{
    char path[256];
    snprintf(path, sizeof path, "/sys/class/net/%s/operstate", name);
    tree_put(path, "%s\n", state);
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", name);
    tree_put(path, "9000\n");
    snprintf(path, sizeof path, "/sys/class/net/%s/type", name);
    tree_put(path, "1\n");
    if (speed) {
        snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
        tree_put(path, "%s\n", speed);
    }
    if (device) {
        snprintf(path, sizeof path, "/sys/class/net/%s/device", name);
        tree_link(path, device);
    }
}

static void healthy(void)
{
    tree_hostcalls(calls);
    tree_dir("/sys/class/net");
    tree_dir(PCI);
    tree_link(PCI "/driver", "../../../../bus/pci/drivers/cxi_ss1");
    iface("hsn0", "up", "200000", "../../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0");
    iface("lo", "unknown", NULL, NULL);
    iface("veth1", "down", "-1", NULL);
    tree_put("/sys/class/net/bonding_masters", "\n");
    tree_put("/proc/sys/net/ipv4/conf/all/rp_filter", "2\n");
    tree_put("/proc/sys/net/ipv4/conf/hsn0/rp_filter", "1\n");
    tree_put("/proc/sys/net/ipv4/conf/hsn0/arp_ignore", "0\n");
    tree_put("/proc/sys/net/ipv4/conf/hsn0/arp_announce", "2\n");
}

Test(net, healthy)
{
    healthy();
    tree_run(&shk_probe_net);
    expect_json(
        "net.ifaces",
        "[{\"name\":\"hsn0\",\"up\":true,\"running\":true,\"loopback\":false,"
        "\"operstate\":\"up\",\"speed_mbps\":200000,\"mtu\":9000,\"type\":1,\"master\":null,"
        "\"driver\":\"cxi_ss1\",\"pci\":\"0000:c1:00.0\",\"virtual\":false,"
        "\"addrs\":[{\"family\":\"inet\",\"addr\":\"10.1.0.1\",\"prefix\":16}],"
        "\"rp_filter\":1,\"arp_ignore\":0,\"arp_announce\":2},"
        "{\"name\":\"lo\",\"up\":true,\"running\":true,\"loopback\":true,"
        "\"operstate\":\"unknown\",\"speed_mbps\":null,\"mtu\":9000,\"type\":1,"
        "\"master\":null,\"driver\":null,\"pci\":null,\"virtual\":true,"
        "\"addrs\":[{\"family\":\"inet\",\"addr\":\"127.0.0.1\",\"prefix\":8}],"
        "\"rp_filter\":null,\"arp_ignore\":null,\"arp_announce\":null},"
        "{\"name\":\"veth1\",\"up\":false,\"running\":false,\"loopback\":false,"
        "\"operstate\":\"down\",\"speed_mbps\":null,\"mtu\":9000,\"type\":1,"
        "\"master\":null,\"driver\":null,\"pci\":null,\"virtual\":true,\"addrs\":[],"
        "\"rp_filter\":null,\"arp_ignore\":null,\"arp_announce\":null}]");
}

/* Minus one is the kernel's word for "no link"; it must never look like a speed. */
Test(net, speeds)
{
    static const struct {
        const char *state, *speed;
        long long want; /* 0: null */
        bool problem;
    } rows[] = {
        {"up", "200000", 200000, false},
        {"up", "-1", 0, false},
        {"up", "0", 0, false},
        {"up", "fast", 0, true},
        {"down", "200000", 200000, false},
        {"down", "fast", 0, false},
        {"up", NULL, 0, false},
        {"up", "99999999999999999999", 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        healthy();
        tree_remove("/sys/class/net/hsn0");
        iface("hsn0", rows[i].state, rows[i].speed,
              "../../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0");
        tree_run(&shk_probe_net);
        json_t *item = tree_item("net.ifaces", "name", "hsn0");
        json_t *speed = json_object_get(item, "speed_mbps");
        cr_expect(rows[i].want ? json_integer_value(speed) == rows[i].want : json_is_null(speed),
                  "row %zu", i);
        cr_expect_eq(json_object_get(item, "problems") != NULL, rows[i].problem, "row %zu", i);
    }
}

Test(net, each_source_may_know_more)
{
    tree_hostcalls("{\"ifaddrs\":[{\"name\":\"eth9\",\"flags\":[\"up\"],\"addrs\":[]}]}");
    iface("eth0", "up", "1000", NULL);
    tree_run(&shk_probe_net);
    json_t *sysfs = tree_item("net.ifaces", "name", "eth0");
    json_t *call = tree_item("net.ifaces", "name", "eth9");
    cr_expect(json_is_null(json_object_get(sysfs, "up")));
    cr_expect_eq(tree_item_int(sysfs, "mtu"), 9000);
    cr_expect(json_is_true(json_object_get(call, "up")));
    cr_expect(json_is_null(json_object_get(call, "virtual")));
    cr_expect(json_is_null(json_object_get(call, "mtu")));
}

Test(net, without_addresses_nothing_is_known)
{
    static const char *const rows[] = {"{}", "{\"ifaddrs\":{}}", "{\"ifaddrs\":\"x\"}"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        healthy();
        tree_hostcalls(rows[i]);
        tree_run(&shk_probe_net);
        expect_failed("net.ifaces", "ifaddrs");
    }
}

Test(net, without_sysfs_the_call_will_do)
{
    tree_hostcalls(calls);
    tree_run(&shk_probe_net);
    cr_expect_eq(json_array_size(tree_value("net.ifaces")), 3);
    cr_expect_str_eq(tree_source("net.ifaces"), "getifaddrs");
}

Test(net, hostile_answers)
{
    tree_hostcalls("{\"ifaddrs\":[1,null,{\"name\":7},{\"flags\":[3]},"
                   "{\"name\":\"a\",\"flags\":\"up\",\"addrs\":\"none\"}]}");
    tree_run(&shk_probe_net);
    cr_expect_eq(json_array_size(tree_value("net.ifaces")), 1);
}

Test(net, device_link_that_leads_nowhere)
{
    healthy();
    tree_link("/sys/class/net/hsn0/device", "../../../devices/gone");
    tree_run(&shk_probe_net);
    json_t *item = tree_item("net.ifaces", "name", "hsn0");
    cr_expect_not_null(json_object_get(json_object_get(item, "problems"), "virtual"));
}

Test(net, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = "/sys/class/net/hsn0/mtu", .key = "net.ifaces", .member = "mtu"},
        {.path = "/sys/class/net/hsn0/operstate",
         .key = "net.ifaces",
         .member = "operstate",
         .any_text = true},
        {.path = "/sys/class/net/hsn0/speed", .key = "net.ifaces", .member = "speed_mbps"},
    };
    healthy();
    tree_expect_damage(&shk_probe_net, victims, sizeof victims / sizeof *victims);
}

Test(net, unreadable_for_this_user)
{
    healthy();
    tree_mode("/sys/class/net/hsn0/mtu", 0);
    tree_run_unprivileged(&shk_probe_net);
    json_t *item = tree_item("net.ifaces", "name", "hsn0");
    cr_expect(json_is_null(json_object_get(item, "mtu")));
    cr_expect_not_null(
        strstr(tree_item_text(json_object_get(item, "problems"), "mtu"), "Permission"));
}

Test(net, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_net);
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "hsn%d", i);
        json_t *item = tree_item("net.ifaces", "name", name);
        cr_expect_eq(tree_item_int(item, "speed_mbps"), 200000);
        cr_expect_str_eq(tree_item_text(item, "driver"), "cxi_ss1");
        cr_expect(json_is_false(json_object_get(item, "virtual")));
        cr_expect_null(json_object_get(item, "problems"));
    }
    tree_end();
    tree_begin();
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_net);
    json_t *docker = tree_item("net.ifaces", "name", "docker0");
    cr_expect(json_is_true(json_object_get(docker, "virtual")));
}

#define LO                                                                                         \
    "{\"name\":\"lo\",\"flags\":[\"up\",\"loopback\"],\"addrs\":[],\"link\":{\"index\":1,"         \
    "\"mtu\":65536,\"type\":772,\"operstate\":\"unknown\"}}"
#define LINK(name, members)                                                                        \
    "{\"name\":\"" name "\",\"flags\":[\"up\",\"running\"],\"addrs\":[],\"link\":{\"type\":1,"     \
    "\"mtu\":1500,\"operstate\":\"up\"," members "}}"
#define ETHERNET                                                                                   \
    "\"driver\":\"mlx5_core\",\"bus\":\"0000:07:00.0\",\"speed_mbps\":400000,\"master\":\"bond0\""

static void net_calls(const char *links)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"ifaddrs\":[" LO ",%s]}", links);
    tree_hostcalls(text);
}

/* hsn0 of sysfs: number 2, MTU 9000, driver cxi_ss1. */
static void net_numbered(const char *mac)
{
    healthy();
    tree_put("/sys/class/net/lo/ifindex", "1\n");
    tree_put("/sys/class/net/hsn0/ifindex", "2\n");
    tree_put("/sys/class/net/veth1/ifindex", "3\n");
    tree_put("/sys/class/net/hsn0/address", "%s\n", mac);
}

/* A /sys of another network namespace is known by its numbers, by its addresses, or by its names;
 * one interface that came or went between two looks is none. */
Test(net, sysfs_of_another_namespace)
{
    static const struct {
        const char *links;
        bool foreign;
    } rows[] = {
        {LINK("hsn0", ETHERNET ",\"index\":2,\"mac\":\"02:00:00:00:00:01\""), false},
        {LINK("hsn0", ETHERNET ",\"index\":2"), false},
        {LINK("hsn0", ETHERNET ",\"index\":2") "," LINK("veth9", "\"index\":9"), false},
        {LINK("hsn0", ETHERNET ",\"index\":7"), true},
        {LINK("hsn0", ETHERNET ",\"index\":2,\"mac\":\"02:00:00:00:00:99\""), true},
        {LINK("eth0", ETHERNET ",\"index\":2"), true},
        {LINK("hsn0", ETHERNET ",\"index\":7") "," LINK("veth1", "\"index\":3"), true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        net_numbered("02:00:00:00:00:01");
        net_calls(rows[i].links);
        tree_run(&shk_probe_net);
        const char *name = strstr(rows[i].links, "eth0") ? "eth0" : "hsn0";
        json_t *item = tree_item("net.ifaces", "name", name);
        cr_expect_eq(tree_item_int(item, "mtu"), 1500, "row %zu: netlink", i);
        cr_expect_str_eq(tree_item_text(item, "master"), "bond0", "row %zu", i);
        cr_expect_str_eq(tree_item_text(item, "driver"), rows[i].foreign ? "mlx5_core" : "cxi_ss1",
                         "row %zu", i);
        cr_expect_str_eq(tree_item_text(item, "pci"),
                         rows[i].foreign ? "0000:07:00.0" : "0000:c1:00.0", "row %zu", i);
        cr_expect_eq(tree_item_int(item, "speed_mbps"), rows[i].foreign ? 400000 : 200000,
                     "row %zu", i);
        cr_expect_eq(strstr(tree_source("net.ifaces"), "another network namespace") != NULL,
                     rows[i].foreign, "row %zu", i);
        cr_expect(json_is_false(json_object_get(item, "virtual")), "row %zu", i);
    }
}

/* Nothing but lo here, and a /sys with the host's interfaces. */
Test(net, loopback_alone)
{
    net_numbered("02:00:00:00:00:01");
    tree_hostcalls("{\"ifaddrs\":[" LO "]}");
    tree_run(&shk_probe_net);
    cr_expect_eq(json_array_size(tree_value("net.ifaces")), 1);
    json_t *lo = tree_item("net.ifaces", "name", "lo");
    cr_expect_eq(tree_item_int(lo, "mtu"), 65536);
    cr_expect(json_is_true(json_object_get(lo, "virtual")));
}

/* What only sysfs has is unread, not virtual and not without a driver. */
Test(net, what_nobody_tells_of_another_namespace)
{
    static const char *const members[] = {"driver", "pci", "virtual"};
    net_numbered("02:00:00:00:00:01");
    net_calls(LINK("hsn0", "\"index\":7") "," LINK("v0", "\"index\":8,\"kind\":\"veth\""));
    tree_run(&shk_probe_net);
    json_t *item = tree_item("net.ifaces", "name", "hsn0");
    json_t *veth = tree_item("net.ifaces", "name", "v0");
    for (size_t i = 0; i < 3; i++) {
        cr_expect(json_is_null(json_object_get(item, members[i])), "%s", members[i]);
        cr_expect_not_null(
            strstr(tree_item_text(json_object_get(item, "problems"), members[i]), "namespace"));
    }
    cr_expect(json_is_true(json_object_get(veth, "virtual")));
    cr_expect_null(json_object_get(veth, "problems"));
}

Test(net, devices_in_another_namespace)
{
    net_numbered("02:00:00:00:00:01");
    net_calls(LINK("hsn0", "\"index\":7"));
    tree_run(&shk_probe_rdma);
    expect_absent("rdma.devices");
    tree_dir("/sys/class/infiniband/mlx5_0/ports/1");
    tree_run(&shk_probe_rdma);
    expect_failed("rdma.devices", "another network namespace");
    net_calls(LINK("hsn0", "\"index\":2"));
    tree_run(&shk_probe_rdma);
    cr_expect_eq(json_array_size(tree_value("rdma.devices")), 1);
}

Test(resolve, answers)
{
    tree_hostcalls("{\"resolve\":{\"hostname\":\"n1\",\"addrs\":[\"10.0.0.1\"],\"error\":null}}");
    tree_run(&shk_probe_resolve);
    expect_json("net.hostname_resolves_to", "[\"10.0.0.1\"]");
    tree_hostcalls("{\"resolve\":{\"hostname\":\"n1\",\"addrs\":[],\"error\":\"Name or service not "
                   "known\"}}");
    tree_run(&shk_probe_resolve);
    expect_failed("net.hostname_resolves_to", "n1: Name or service not known");
    tree_hostcalls("{\"resolve\":{\"hostname\":\"n1\"}}");
    tree_run(&shk_probe_resolve);
    expect_failed("net.hostname_resolves_to", "no addresses");
    tree_hostcalls("{}");
    tree_run(&shk_probe_resolve);
    expect_failed("net.hostname_resolves_to", "not in the capture");
}
