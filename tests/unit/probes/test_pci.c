#include "hosttree.h"

#include <stdlib.h>

TREE_SUITE(pci);

#define PORT "/sys/devices/pci0000:c0/0000:c0:01.1"
#define GPU  PORT "/0000:c1:00.0"

static void function(const char *parent, const char *addr, const char *uevent)
{
    char path[256], target[256];
    snprintf(path, sizeof path, "%s/%s/uevent", parent, addr);
    tree_put(path, "%s", uevent);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s", addr);
    snprintf(target, sizeof target, "../../..%s/%s", parent + strlen("/sys"), addr);
    tree_link(path, target);
}

static void healthy(void)
{
    function("/sys/devices/pci0000:c0", "0000:c0:01.1", "PCI_CLASS=60400\nPCI_ID=1022:14BF\n");
    function(PORT, "0000:c1:00.0", "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:7408\n");
    tree_put(GPU "/numa_node", "3\n");
    tree_put(GPU "/current_link_speed", "16.0 GT/s PCIe\n");
    tree_put(GPU "/current_link_width", "8\n");
    tree_put(GPU "/max_link_speed", "16.0 GT/s PCIe\n");
    tree_put(GPU "/max_link_width", "16\n");
    tree_link(GPU "/driver", "../../../../bus/pci/drivers/amdgpu");
    tree_link(GPU "/iommu_group", "../../../../kernel/iommu_groups/11");
}

Test(pci, healthy)
{
    healthy();
    tree_run(&shk_probe_pci);
    json_t *gpu = tree_item("pci.devices", "addr", "0000:c1:00.0");
    json_t *want = json_loads(
        "{\"addr\":\"0000:c1:00.0\",\"kind\":\"gpu-amd\",\"class\":\"0x038000\","
        "\"vendor\":\"0x1002\",\"device\":\"0x7408\",\"vf\":false,\"numa\":3,\"driver\":\"amdgpu\","
        "\"iommu_group\":\"11\",\"link_speed\":16.0,\"link_width\":8,\"max_link_speed\":16.0,"
        "\"max_link_width\":16,\"parents\":[\"0000:c0:01.1\"],\"bars\":null,\"aer\":null}",
        0, NULL);
    cr_expect(json_equal(gpu, want));
    json_decref(want);
    json_t *bridge = tree_item("pci.devices", "addr", "0000:c0:01.1");
    cr_expect_str_eq(tree_item_text(bridge, "kind"), "bridge");
    cr_expect(json_is_null(json_object_get(bridge, "acs")));
    expect_int("pci.count.gpu-amd", 1);
    expect_absent("pci.count.gpu-nvidia");
    expect_absent("pci.count.cxi");
    expect_absent("pci.unreadable");
}

Test(pci, kinds)
{
    static const struct {
        const char *uevent, *kind; /* NULL: not listed */
    } rows[] = {
        {"PCI_CLASS=30200\nPCI_ID=10DE:2330\n", "gpu-nvidia"},
        {"PCI_CLASS=68000\nPCI_ID=10DE:22A3\n", "nvswitch"},
        {"PCI_CLASS=40300\nPCI_ID=10DE:22BD\n", NULL}, /* audio function of a card */
        {"PCI_CLASS=38000\nPCI_ID=1002:7408\n", "gpu-amd"},
        {"PCI_CLASS=120000\nPCI_ID=1002:74A1\n", "gpu-amd"},
        {"PCI_CLASS=30000\nPCI_ID=1A03:2000\n", NULL}, /* the BMC's display */
        {"PCI_CLASS=38000\nPCI_ID=8086:0BD5\n", "gpu-intel"},
        {"PCI_CLASS=30000\nPCI_ID=8086:3E98\n", NULL},
        {"PCI_CLASS=88000\nPCI_ID=1D0F:7164\n", "neuron"},
        {"PCI_CLASS=88000\nPCI_ID=1D0F:7364\n", "neuron"},
        {"PCI_CLASS=88000\nPCI_ID=1D0F:7068\n", NULL},
        {"PCI_CLASS=20000\nPCI_ID=1D0F:EFA0\n", "efa"},
        {"PCI_CLASS=20000\nPCI_ID=1D0F:EFA4\n", "efa"},
        {"PCI_CLASS=20000\nPCI_ID=1D0F:EC20\n", "ena"},
        {"PCI_CLASS=20000\nPCI_ID=17DB:0501\n", "cxi"},
        {"PCI_CLASS=20000\nPCI_ID=1590:0371\n", "cxi"},
        {"PCI_CLASS=20700\nPCI_ID=15B3:1021\n", "mlx5"},
        {"PCI_CLASS=20000\nPCI_ID=15B3:1007\n", "nic"}, /* ConnectX-3 */
        {"PCI_CLASS=20000\nPCI_ID=14E4:1750\n", "bnxt"},
        {"PCI_CLASS=20000\nPCI_ID=1AF4:1041\n", "nic"},
        {"PCI_CLASS=10802\nPCI_ID=144D:A80A\n", NULL},
        {"PCI_CLASS=60400\nPCI_ID=1022:14BF\n", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/sys");
        function("/sys/devices/pci0000:00", "0000:00:02.0", rows[i].uevent);
        tree_run(&shk_probe_pci);
        json_t *list = tree_value("pci.devices");
        const char *kind = tree_item_text(json_array_get(list, 0), "kind");
        cr_expect_eq(json_array_size(list), rows[i].kind ? 1u : 0u, "%s", rows[i].uevent);
        cr_expect_str_eq(kind, rows[i].kind ? rows[i].kind : "(null)", "%s", rows[i].uevent);
    }
}

Test(pci, attribute_files_when_uevent_is_short)
{
    tree_put("/sys/bus/pci/devices/0000:01:00.0/uevent", "DRIVER=nvidia\nPCI_CLA");
    tree_put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    tree_put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    tree_put("/sys/bus/pci/devices/0000:01:00.0/device", "0x2330\n");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.gpu-nvidia", 1);
    json_t *gpu = tree_item("pci.devices", "addr", "0000:01:00.0");
    cr_expect(json_is_null(json_object_get(gpu, "parents")));
    cr_expect(json_is_null(json_object_get(gpu, "numa")));
}

/* A function that cannot be read could be anything: then none seen is not none. */
Test(pci, unreadable_function)
{
    healthy();
    tree_dir("/sys/bus/pci/devices/0000:05:00.0");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.gpu-amd", 1);
    expect_failed("pci.count.cxi", "0000:05:00.0");
    expect_failed("pci.unreadable", "0000:05:00.0");
}

Test(pci, no_bus_against_no_sysfs)
{
    tree_run(&shk_probe_pci);
    expect_failed("pci.devices", "/sys/bus");
    expect_failed("pci.count.gpu-amd", "/sys/bus");
    tree_dir("/sys/bus");
    tree_run(&shk_probe_pci);
    expect_absent("pci.devices");
    expect_absent("pci.count.gpu-amd");
    tree_put("/sys/bus/pci/devices", "a file\n");
    tree_run(&shk_probe_pci);
    expect_failed("pci.devices", "Not a directory");
}

Test(pci, links)
{
    static const struct {
        const char *speed, *width;
        double want_speed; /* 0: null */
        long long want_width;
        bool problem;
    } rows[] = {
        {"32.0 GT/s PCIe", "16", 32.0, 16, false},
        {"2.5 GT/s PCIe", "1", 2.5, 1, false},
        {"Unknown", "0", 0, 0, false},
        {"Unknown speed", "255", 0, 0, false},
        {"fast", "wide", 0, 0, true},
        {"-5 GT/s", "-1", 0, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        healthy();
        tree_put(GPU "/current_link_speed", "%s\n", rows[i].speed);
        tree_put(GPU "/current_link_width", "%s\n", rows[i].width);
        tree_run(&shk_probe_pci);
        json_t *gpu = tree_item("pci.devices", "addr", "0000:c1:00.0");
        json_t *speed = json_object_get(gpu, "link_speed"),
               *width = json_object_get(gpu, "link_width");
        cr_expect(rows[i].want_speed > 0 ? json_real_value(speed) == rows[i].want_speed
                                         : json_is_null(speed),
                  "%s", rows[i].speed);
        cr_expect(rows[i].want_width ? json_integer_value(width) == rows[i].want_width
                                     : json_is_null(width),
                  "%s", rows[i].width);
        cr_expect_eq(json_object_get(gpu, "problems") != NULL, rows[i].problem, "%s",
                     rows[i].speed);
    }
}

Test(pci, virtual_functions_are_no_cards)
{
    function("/sys/devices/pci0000:00", "0000:00:02.0", "PCI_CLASS=20000\nPCI_ID=15B3:101D\n");
    function("/sys/devices/pci0000:00", "0000:00:02.1", "PCI_CLASS=20000\nPCI_ID=15B3:101E\n");
    tree_link("/sys/devices/pci0000:00/0000:00:02.1/physfn", "../0000:00:02.0");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.mlx5", 1);
    cr_expect(
        json_is_true(json_object_get(tree_item("pci.devices", "addr", "0000:00:02.1"), "vf")));
}

static void put_config(const unsigned char *config, size_t len)
{
    tree_put_bytes(PORT "/config", config, len);
}

static const json_t *acs(void)
{
    tree_run(&shk_probe_pci);
    return json_object_get(tree_item("pci.devices", "addr", "0000:c0:01.1"), "acs");
}

Test(pci, access_control_services)
{
    unsigned char config[4096] = {0};
    healthy();
    put_config(config, 64); /* what an unprivileged process gets */
    cr_expect(json_is_null(acs()));
    put_config(config, 256);
    cr_expect(json_is_null(acs()));
    put_config(config, sizeof config);
    cr_expect(json_is_false(acs()));
    /* the list at 0x34 begins with PCI Express (0x10): only then are there extended ones */
    config[0x06] = 0x10;
    config[0x34] = 0x40;
    config[0x40] = 0x10;
    /* 0x100: AER (1), next 0x148: ACS (0xd) with control 0x1d, end */
    config[0x100] = 0x01;
    config[0x102] = 0x02;
    config[0x103] = 0x14;
    config[0x102] |= 0x80;
    config[0x148] = 0x0d;
    config[0x14a] = 0x01;
    config[0x14e] = 0x1d;
    put_config(config, sizeof config);
    cr_expect_eq(json_integer_value(json_object_get(acs(), "control")), 0x1d);
    /* a ring of capabilities must end, too */
    memset(config + 0x100, 0, sizeof config - 0x100);
    config[0x100] = 0x01;
    config[0x102] = 0x01;
    config[0x103] = 0x10;
    put_config(config, sizeof config);
    cr_expect(json_is_false(acs()));
    /* and one that points behind the end */
    config[0x102] = 0xc1;
    config[0x103] = 0xff;
    put_config(config, 0x110);
    cr_expect(json_is_false(acs()));
}

Test(pci, windows)
{
    healthy();
    tree_put(GPU "/resource", "0x00001e0000000000 0x00001e0fffffffff 0x000000000014220c\n"
                              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                              "0x00000000f8500000 0x00000000f857ffff 0x0000000000040200\n"
                              "0x00000000f8580000 0x00000000f859ffff 0x0000000000046200\n");
    tree_run(&shk_probe_pci);
    json_t *gpu = tree_item("pci.devices", "addr", "0000:c1:00.0");
    json_t *want = json_pack("[I,i,i,i,i,i]", (json_int_t)64 << 30, 0, 0, 0, 0, 512 << 10);
    cr_expect(json_equal(json_object_get(gpu, "bars"), want));
    json_decref(want);
    tree_put(GPU "/resource", "0x1000 0x0fff 0x0\n");
    tree_run(&shk_probe_pci);
    gpu = tree_item("pci.devices", "addr", "0000:c1:00.0");
    cr_expect(json_is_null(json_object_get(gpu, "bars")));
    cr_expect_not_null(json_object_get(json_object_get(gpu, "problems"), "bars"));
}

Test(pci, error_counters)
{
    healthy();
    tree_put(GPU "/aer_dev_correctable", "RxErr 2\nBadTLP 0\nTOTAL_ERR_COR 2\n");
    tree_put(GPU "/aer_dev_nonfatal", "Undefined 0\nCmpltTO 3\nTOTAL_ERR_NONFATAL 3\n");
    tree_put(GPU "/aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 0\n");
    tree_run(&shk_probe_pci);
    json_t *gpu = tree_item("pci.devices", "addr", "0000:c1:00.0");
    json_t *want = json_pack("{s:{s:i},s:{s:i},s:{}}", "correctable", "RxErr", 2, "nonfatal",
                             "CmpltTO", 3, "fatal");
    cr_expect(json_equal(json_object_get(gpu, "aer"), want));
    json_decref(want);
}

Test(pci, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = GPU "/numa_node", .key = "pci.devices", .member = "numa"},
        {.path = GPU "/current_link_speed", .key = "pci.devices", .member = "link_speed"},
        {.path = GPU "/max_link_width", .key = "pci.devices", .member = "max_link_width"},
        {.path = GPU "/resource", .key = "pci.devices", .member = "bars"},
        {.path = GPU "/aer_dev_fatal", .key = "pci.devices", .member = "aer"},
    };
    healthy();
    tree_put(GPU "/resource", "0x0 0xff 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n0x0 0x0 0x0\n"
                              "0x0 0x0 0x0\n");
    tree_put(GPU "/aer_dev_correctable", "RxErr 0\n");
    tree_put(GPU "/aer_dev_nonfatal", "CmpltTO 0\n");
    tree_put(GPU "/aer_dev_fatal", "DLP 0\n");
    tree_expect_damage(&shk_probe_pci, victims, sizeof victims / sizeof *victims);
}

Test(pci, unreadable_for_this_user)
{
    healthy();
    tree_mode(GPU "/uevent", 0);
    tree_run_unprivileged(&shk_probe_pci);
    expect_failed("pci.count.gpu-amd", "0000:c1:00.0");
    tree_mode("/sys/bus/pci", 0);
    tree_run_unprivileged(&shk_probe_pci);
    expect_failed("pci.devices", "Permission denied");
    tree_mode("/sys/bus/pci", 0755);
}

Test(pci, hostile_names)
{
    tree_link("/sys/bus/pci/devices/0000:c1:00.0", "../../../x/0000:c0:01.1/0000:c0:01.1/y/zz");
    tree_put("/sys/bus/pci/devices/not an address/uevent", "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
    tree_put("/sys/bus/pci/devices/\xff\xfe/uevent", "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.gpu-nvidia", 2);
}

Test(pci, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.gpu-amd", 8);
    expect_int("pci.count.cxi", 4);
    expect_absent("pci.count.efa");
    tree_put("/sys/devices/pci0000:c4/0000:c4:07.1/0000:c6:00.0/current_link_width", "8\n");
    tree_run(&shk_probe_pci);
    json_t *gpu = tree_item("pci.devices", "addr", "0000:c6:00.0");
    cr_expect_eq(tree_item_int(gpu, "link_width"), 8);
    cr_expect_eq(tree_item_int(gpu, "max_link_width"), 16);
}

Test(pci, efa_capture)
{
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_pci);
    expect_int("pci.count.gpu-nvidia", 8);
    expect_int("pci.count.efa", 32);
    expect_int("pci.count.nvswitch", 4);
    expect_absent("pci.count.cxi");
}
