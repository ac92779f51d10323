#include "hosttree.h"

TREE_SUITE(rdma);

#define IB   "/sys/class/infiniband/mlx5_0"
#define PORT IB "/ports/1"
#define CXI  "/sys/devices/pci0000:c4/0000:c4:01.1/0000:c5:00.0"

static void healthy(void)
{
    tree_put(IB "/node_type", "1: CA\n");
    tree_put(IB "/fw_ver", "28.39.1002\n");
    tree_put(PORT "/state", "4: ACTIVE\n");
    tree_put(PORT "/phys_state", "5: LinkUp\n");
    tree_put(PORT "/link_layer", "Ethernet\n");
    tree_put(PORT "/rate", "400 Gb/sec (4X NDR)\n");
    tree_put(PORT "/gids/0", "fe80:0000:0000:0000:0000:00ff:fe00:0001\n");
    tree_put(PORT "/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
    tree_put(PORT "/gids/2", "fd93:0000:0000:0000:0000:0000:0000:0001\n");
    tree_put(PORT "/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n");
    tree_put(PORT "/gid_attrs/types/0", "RoCE v2\n");
    tree_put(PORT "/gid_attrs/types/1", "RoCE v1\n");
    tree_put("/sys/devices/pci0000:00/0000:18:00.0/numa_node", "0\n");
    tree_link("/sys/devices/pci0000:00/0000:18:00.0/driver", "../../../bus/pci/drivers/mlx5_core");
    tree_link(IB "/device", "../../../devices/pci0000:00/0000:18:00.0");
    tree_put("/sys/class/infiniband_verbs/uverbs7/ibdev", "mlx5_0\n");
    tree_put("/sys/class/infiniband_verbs/abi_version", "6\n");
}

Test(rdma, healthy)
{
    healthy();
    tree_run(&shk_probe_rdma);
    expect_json(
        "rdma.devices",
        "[{\"name\":\"mlx5_0\",\"driver\":\"mlx5_core\",\"pci\":\"0000:18:00.0\",\"numa\":0,"
        "\"fw\":\"28.39.1002\",\"node_type\":\"CA\",\"uverbs\":\"uverbs7\",\"ports\":[{"
        "\"port\":1,\"state\":\"ACTIVE\",\"phys_state\":\"LinkUp\","
        "\"link_layer\":\"Ethernet\",\"rate\":400.0,\"gids\":["
        "{\"index\":0,\"family\":\"link-local\",\"type\":\"RoCE v2\"},"
        "{\"index\":1,\"family\":\"ipv4\",\"type\":\"RoCE v1\"},"
        "{\"index\":2,\"family\":\"ipv6\",\"type\":null}]}]}]");
    expect_absent("cxi.devices");
}

Test(rdma, none_against_not_known)
{
    tree_run(&shk_probe_rdma);
    expect_failed("rdma.devices", "/sys/class");
    expect_failed("cxi.devices", "/sys/class");
    tree_dir("/sys/class");
    tree_run(&shk_probe_rdma);
    expect_absent("rdma.devices");
    expect_absent("cxi.devices");
    tree_dir("/sys/class/infiniband");
    tree_dir("/sys/class/cxi");
    tree_run(&shk_probe_rdma);
    expect_absent("rdma.devices");
    expect_absent("cxi.devices");
    tree_link("/sys/class/cxi", "gone");
    tree_fifo("/sys/class/infiniband");
    tree_run(&shk_probe_rdma);
    expect_failed("rdma.devices", "Not a directory");
    expect_failed("cxi.devices", "No such file");
}

Test(rdma, states_and_rates)
{
    static const struct {
        const char *state, *rate, *want_state;
        double want_rate; /* 0: null */
    } rows[] = {
        {"1: DOWN", "10 Gb/sec (4X SDR)", "DOWN", 10},
        {"2: INIT", "2.5 Gb/sec (1X SDR)", "INIT", 2.5},
        {"ACTIVE", "fast", "ACTIVE", 0},
        {"4:ACTIVE", "100 Mb/sec", "ACTIVE", 0},
        {"4: ", "100", "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        healthy();
        tree_put(PORT "/state", "%s\n", rows[i].state);
        tree_put(PORT "/rate", "%s\n", rows[i].rate);
        tree_run(&shk_probe_rdma);
        json_t *device = tree_item("rdma.devices", "name", "mlx5_0");
        json_t *port = json_array_get(json_object_get(device, "ports"), 0);
        json_t *rate = json_object_get(port, "rate");
        cr_expect_str_eq(tree_item_text(port, "state"), rows[i].want_state);
        cr_expect(rows[i].want_rate > 0 ? json_real_value(rate) == rows[i].want_rate
                                        : json_is_null(rate),
                  "%s", rows[i].rate);
    }
}

Test(rdma, device_without_ports)
{
    healthy();
    tree_remove(IB "/ports");
    tree_run(&shk_probe_rdma);
    json_t *device = tree_item("rdma.devices", "name", "mlx5_0");
    cr_expect_not_null(json_object_get(json_object_get(device, "problems"), "ports"));
}

static void cassini(bool second)
{
    tree_dir(CXI "/net/hsn0");
    tree_put(CXI "/numa_node", "3\n");
    tree_put(CXI "/properties/nid", "0x1a40\n");
    tree_put(CXI "/properties/hpc_mtu", "9216\n");
    tree_put(second ? CXI "/port/0/link/state" : CXI "/port/link", "%s\n",
             second ? "running" : "up");
    tree_put(second ? CXI "/port/0/link/speed" : CXI "/port/speed", "%s\n",
             second ? "ck400G" : "BS_200G");
    tree_link(CXI "/cxi/cxi0/device", "../../../0000:c5:00.0");
    tree_link("/sys/class/cxi/cxi0", "../../devices/pci0000:c4/0000:c4:01.1/0000:c5:00.0/cxi/cxi0");
}

Test(rdma, both_generations_of_cassini)
{
    cassini(false);
    tree_run(&shk_probe_rdma);
    expect_json("cxi.devices",
                "[{\"name\":\"cxi0\",\"pci\":\"0000:c5:00.0\",\"numa\":3,\"netdev\":\"hsn0\","
                "\"link_state\":\"up\",\"link_speed\":\"BS_200G\",\"nid\":\"0x1a40\","
                "\"mtu\":\"9216\"}]");
    tree_remove("/sys");
    cassini(true);
    tree_run(&shk_probe_rdma);
    json_t *device = tree_item("cxi.devices", "name", "cxi0");
    cr_expect_str_eq(tree_item_text(device, "link_state"), "running");
    cr_expect_str_eq(tree_item_text(device, "link_speed"), "ck400G");
}

Test(rdma, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = IB "/fw_ver", .key = "rdma.devices", .member = "fw", .any_text = true},
        {.path = "/sys/devices/pci0000:00/0000:18:00.0/numa_node",
         .key = "rdma.devices",
         .member = "numa"},
        {.path = CXI "/port/link", .key = "cxi.devices", .member = "link_state", .any_text = true},
    };
    healthy();
    cassini(false);
    tree_expect_damage(&shk_probe_rdma, victims, sizeof victims / sizeof *victims);
}

Test(rdma, damaged_port_files)
{
    static const char *const files[] = {"state", "rate", "link_layer"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        healthy();
        snprintf(path, sizeof path, PORT "/%s", files[i]);
        tree_fifo(path);
        tree_run(&shk_probe_rdma);
        json_t *device = tree_item("rdma.devices", "name", "mlx5_0");
        json_t *port = json_array_get(json_object_get(device, "ports"), 0);
        cr_expect(json_is_null(json_object_get(port, files[i])), "%s", files[i]);
        cr_expect_not_null(json_object_get(json_object_get(port, "problems"), files[i]));
    }
}

Test(rdma, unreadable_for_this_user)
{
    healthy();
    tree_mode("/sys/class/infiniband", 0);
    tree_run_unprivileged(&shk_probe_rdma);
    expect_failed("rdma.devices", "Permission denied");
    tree_mode("/sys/class/infiniband", 0755);
}

Test(rdma, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_rdma);
    expect_absent("rdma.devices");
    cr_expect_eq(json_array_size(tree_value("cxi.devices")), 4);
    cr_expect_str_eq(tree_item_text(tree_item("cxi.devices", "name", "cxi3"), "netdev"), "hsn3");
    tree_put("/sys/devices/pci0000:c4/0000:c4:01.1/0000:c5:00.0/port/link", "down\n");
    tree_run(&shk_probe_rdma);
    cr_expect_str_eq(tree_item_text(tree_item("cxi.devices", "name", "cxi0"), "link_state"),
                     "down");
}

Test(rdma, efa_capture)
{
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_rdma);
    cr_expect_eq(json_array_size(tree_value("rdma.devices")), 32);
    json_t *device = tree_item("rdma.devices", "name", "rdmap79s0");
    cr_expect_str_eq(tree_item_text(device, "driver"), "efa");
    cr_expect_str_eq(tree_item_text(device, "uverbs"), "uverbs0");
    cr_expect_str_eq(tree_item_text(device, "pci"), "0000:4f:00.0");
}
