#include "hosttree.h"

TREE_SUITE(devices);
TREE_SUITE(accelerators);

static const char calls[] =
    "{\"ids\":{\"uid\":1000,\"euid\":1000,\"gid\":1000,\"groups\":[44,1000]},\"nodes\":{"
    "\"/dev/kfd\":{\"mode\":\"0660\",\"uid\":0,\"gid\":44},"
    "\"/dev/dri/renderD128\":{\"mode\":\"0660\",\"uid\":0,\"gid\":110},"
    "\"/dev/nvidia0\":{\"mode\":\"0666\",\"uid\":0,\"gid\":0},"
    "\"/dev/shm\":{\"mode\":\"041777\",\"uid\":0,\"gid\":0}}}";

Test(devices, permissions)
{
    tree_hostcalls(calls);
    tree_put("/dev/kfd", "%s", "");
    tree_put("/dev/dri/renderD128", "%s", "");
    tree_put("/dev/nvidia0", "%s", "");
    tree_put("/dev/shm/.keep", "%s", "");
    tree_run(&shk_probe_devices);
    expect_json("dev.kfd",
                "{\"type\":\"char\",\"mode\":\"0660\",\"uid\":0,\"gid\":44,\"rw\":true}");
    expect_json("dev.dri/renderD128",
                "{\"type\":\"char\",\"mode\":\"0660\",\"uid\":0,\"gid\":110,\"rw\":false}");
    expect_json("dev.nvidia0",
                "{\"type\":\"char\",\"mode\":\"0666\",\"uid\":0,\"gid\":0,\"rw\":true}");
    expect_json("dev.shm", "{\"type\":\"dir\",\"mode\":\"1777\",\"uid\":0,\"gid\":0,\"rw\":true}");
    expect_absent("dev.gdrdrv");
    expect_absent("dev.nvidiactl");
    expect_absent("dev.cxi0");
    expect_absent("dev.infiniband/uverbs0");
    expect_absent("dev.nvidia-caps-imex-channels/channel0");
}

Test(devices, families)
{
    static const char *const nodes[] = {
        "cxi0",
        "cxi11",
        "neuron3",
        "nvidia7",
        "nvidia-nvswitch2",
        "infiniband/uverbs31",
        "nvidia-caps-imex-channels/channel0",
        "dri/renderD135",
    };
    static const char *const others[] = {"nvidia-modeset",   "cxi", "cxia", "neuron0x", "dri/card0",
                                         "infiniband/issm0", "sda"};
    char path[128], key[128];
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        snprintf(path, sizeof path, "/dev/%s", nodes[i]);
        tree_put(path, "%s", "");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "/dev/%s", others[i]);
        tree_put(path, "%s", "");
    }
    tree_run(&shk_probe_devices);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        snprintf(key, sizeof key, "dev.%s", nodes[i]);
        cr_expect_eq(tree_state(key), SHK_FACT_PRESENT, "%s", key);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(key, sizeof key, "dev.%s", others[i]);
        cr_expect_eq(tree_state(key), TREE_NOTHING, "%s", key);
    }
    /* cxi0 is there, so nothing is said to be absent */
    cr_expect_eq(tree_state("dev.nvidia0"), TREE_NOTHING);
}

Test(devices, without_dev)
{
    tree_run(&shk_probe_devices);
    expect_failed("dev.kfd", "/dev");
    expect_failed("dev.nvidia0", "/dev");
    expect_failed("dev.infiniband/uverbs0", "/dev");
    cr_expect_eq(json_object_size(tree_value("dev.listed")), 0);
}

Test(devices, dangling_and_odd_nodes)
{
    tree_link("/dev/kfd", "gone");
    tree_fifo("/dev/gdrdrv");
    tree_put("/dev/nvidiactl", "%s", "a file that a container left here\n");
    tree_link("/dev/knem", "knem"); /* a link to itself */
    tree_run(&shk_probe_devices);
    expect_failed("dev.kfd", "No such file");
    expect_failed("dev.knem", "Too many levels");
    cr_expect_str_eq(tree_item_text(tree_value("dev.gdrdrv"), "type"), "fifo");
    cr_expect_str_eq(tree_item_text(tree_value("dev.nvidiactl"), "type"), "file");
}

Test(devices, unreadable_for_this_user)
{
    tree_put("/dev/infiniband/uverbs0", "%s", "");
    tree_put("/dev/dri/renderD128", "%s", "");
    tree_mode("/dev/infiniband", 0);
    tree_run_unprivileged(&shk_probe_devices);
    expect_failed("dev.infiniband/uverbs0", "Permission denied");
    expect_failed("dev.infiniband/rdma_cm", "Permission denied");
    tree_mode("/dev/infiniband", 0755);
}

/* The live answer is that of the effective ids: root may, others may not. */
Test(devices, live_access)
{
    struct shk_host *host;
    struct shk_facts *facts = shk_facts_create();
    cr_assert_eq(shk_host_open(&host, NULL, NULL), 0);
    struct shk_probe_context ctx = {.host = host, .facts = facts, .executes = true};
    cr_assert_eq(shk_probe_devices.run(&ctx, NULL), 0);
    struct shk_fact fact;
    cr_expect(shk_facts_get(facts, "dev.kfd", &fact));
    cr_expect_neq(fact.state, SHK_FACT_FAILED);
    shk_facts_destroy(facts);
    shk_host_close(host);
}

static void expect_cxi_listed(const char *names)
{
    char *text = json_dumps(json_object_get(tree_value("dev.listed"), "cxi"), JSON_COMPACT);
    cr_expect_str_eq(text, names);
    free(text);
}

Test(devices, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_devices);
    cr_expect(json_is_true(json_object_get(tree_value("dev.kfd"), "rw")));
    cr_expect(json_is_true(json_object_get(tree_value("dev.cxi3"), "rw")));
    cr_expect(json_is_true(json_object_get(tree_value("dev.dri/renderD135"), "rw")));
    expect_absent("dev.nvidia0");
    expect_cxi_listed("[\"cxi0\",\"cxi1\",\"cxi2\",\"cxi3\"]");
    tree_remove("/dev/cxi2");
    tree_run(&shk_probe_devices);
    cr_expect_eq(tree_state("dev.cxi2"), TREE_NOTHING);
    expect_cxi_listed("[\"cxi0\",\"cxi1\",\"cxi3\"]");
    cr_expect_eq(json_array_size(json_object_get(tree_value("dev.listed"), "nvidia")), 0);
}

#define NVIDIA "/proc/driver/nvidia"
#define KFD    "/sys/class/kfd/kfd/topology/nodes"

static void nvidia(void)
{
    tree_dir("/proc/self");
    tree_put(NVIDIA "/version",
             "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  "
             "Release Build  (x)\nGCC version:  gcc 12\n");
    tree_put(NVIDIA "/gpus/0000:53:00.0/information",
             "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nGPU UUID: \t "
             "GPU-3a51c0de-77aa-4b1c-9d3e-0a1b2c3d4e00\nDevice Minor: \t 2\nGPU Excluded:\t No\n");
}

Test(accelerators, nvidia)
{
    nvidia();
    tree_run(&shk_probe_accelerators);
    expect_json("gpu.nvidia.driver", "{\"version\":\"550.54.15\",\"open\":true}");
    expect_json("gpu.nvidia.devices",
                "[{\"pci\":\"0000:53:00.0\",\"model\":\"NVIDIA H100 80GB HBM3\",\"minor\":2,"
                "\"uuid\":\"GPU-3a51c0de-77aa-4b1c-9d3e-0a1b2c3d4e00\",\"excluded\":\"No\"}]");
    tree_put(NVIDIA "/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Wed\n");
    tree_run(&shk_probe_accelerators);
    expect_json("gpu.nvidia.driver", "{\"version\":\"535.183.01\",\"open\":false}");
    tree_put(NVIDIA "/version", "something else\n");
    tree_run(&shk_probe_accelerators);
    expect_failed("gpu.nvidia.driver", "no version");
    tree_remove(NVIDIA "/gpus/0000:53:00.0");
    tree_run(&shk_probe_accelerators);
    expect_absent("gpu.nvidia.devices");
    cr_expect_not_null(strstr(tree_reason("gpu.nvidia.devices"), "no GPU"));
}

Test(accelerators, none_against_not_known)
{
    static const char *const keys[] = {"gpu.nvidia.driver", "gpu.nvidia.devices", "gpu.amd.devices",
                                       "neuron.devices", "rocm.version"};
    tree_run(&shk_probe_accelerators);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        expect_failed(keys[i], "");
    tree_dir("/proc/self");
    tree_dir("/sys/class");
    tree_dir("/opt");
    tree_run(&shk_probe_accelerators);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        expect_absent(keys[i]);
}

static void kfd_node(int node, const char *gpu_id, const char *properties)
{
    char path[128];
    snprintf(path, sizeof path, KFD "/%d/gpu_id", node);
    tree_put(path, "%s\n", gpu_id);
    snprintf(path, sizeof path, KFD "/%d/name", node);
    tree_put(path, "aldebaran\n");
    snprintf(path, sizeof path, KFD "/%d/properties", node);
    tree_put(path, "%s", properties);
    snprintf(path, sizeof path, KFD "/%d/mem_banks/0/properties", node);
    tree_put(path, "heap_type 1\nsize_in_bytes 68702699520\n");
}

#define PROPERTIES                                                                                 \
    "simd_count 440\ngfx_target_version 90010\nvendor_id 4098\nlocation_id 49408\ndomain 0\n"      \
    "drm_render_minor 128\n"

Test(accelerators, amd)
{
    kfd_node(0, "0", "cpu_cores_count 64\n");
    kfd_node(1, "20001", PROPERTIES);
    tree_run(&shk_probe_accelerators);
    expect_json("gpu.amd.devices",
                "[{\"node\":1,\"gpu_id\":20001,\"name\":\"aldebaran\",\"gfx\":\"gfx90a\","
                "\"pci\":\"0000:c1:00.0\",\"render_minor\":128,\"simd_count\":440,"
                "\"memory\":68702699520}]");
    expect_absent("gpu.amd.hidden");
}

Test(accelerators, gfx_names)
{
    static const struct {
        const char *version, *gfx;
    } rows[] = {
        {"90010", "gfx90a"}, {"90402", "gfx942"}, {"110000", "gfx1100"},
        {"90006", "gfx906"}, {"0", "(null)"},     {"x", "(null)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        snprintf(text, sizeof text, "gfx_target_version %s\n", rows[i].version);
        kfd_node(1, "5", text);
        tree_run(&shk_probe_accelerators);
        json_t *gpu = json_array_get(tree_value("gpu.amd.devices"), 0);
        cr_expect_str_eq(tree_item_text(gpu, "gfx"), rows[i].gfx, "%s", rows[i].version);
        cr_expect(json_is_null(json_object_get(gpu, "pci")));
    }
}

/* A job that was given one GPU of two: the other one's node answers EPERM. */
Test(accelerators, amd_hidden_by_the_device_group)
{
    kfd_node(0, "0", "cpu_cores_count 64\n");
    kfd_node(1, "20001", PROPERTIES);
    kfd_node(2, "20002", PROPERTIES);
    tree_mode(KFD "/2/gpu_id", 0);
    tree_run_unprivileged(&shk_probe_accelerators);
    cr_expect_eq(json_array_size(tree_value("gpu.amd.devices")), 1);
    cr_expect_eq(tree_item_int(tree_value("gpu.amd.hidden"), "nodes"), 1);
    tree_mode(KFD "/1/properties", 0);
    tree_run_unprivileged(&shk_probe_accelerators);
    expect_failed("gpu.amd.devices", "Permission denied");
    cr_expect_eq(tree_item_int(tree_value("gpu.amd.hidden"), "nodes"), 2);
}

Test(accelerators, only_processors)
{
    kfd_node(0, "0", "cpu_cores_count 64\n");
    tree_run(&shk_probe_accelerators);
    expect_absent("gpu.amd.devices");
}

Test(accelerators, rocm)
{
    tree_put("/opt/rocm/.info/version", "6.0.3-131\n");
    tree_run(&shk_probe_accelerators);
    expect_text("rocm.version", "6.0.3-131");
    tree_hostcalls("{\"environ\":{\"ROCM_PATH\":\"/opt/rocm-6.2\"}}");
    tree_run(&shk_probe_accelerators);
    expect_absent("rocm.version");
    tree_put("/opt/rocm-6.2/.info/version", "6.2.0\n");
    tree_run(&shk_probe_accelerators);
    expect_text("rocm.version", "6.2.0");
}

Test(accelerators, neuron)
{
    tree_put("/sys/class/neuron_device/neuron0/core_count", "2\n");
    tree_put("/sys/class/neuron_device/neuron0/connected_devices", "12, 3, 4, 1\n");
    tree_put("/sys/class/neuron_device/neuron0/info/architecture/arch_type", "NCv2\n");
    tree_put("/sys/class/neuron_device/neuron0/info/architecture/device_name", "Trainium1\n");
    tree_put("/sys/class/neuron_device/neuron0/info/architecture/instance_type", "Trn1\n");
    tree_run(&shk_probe_accelerators);
    expect_json("neuron.devices",
                "[{\"name\":\"neuron0\",\"core_count\":2,\"connected\":\"12, 3, 4, 1\","
                "\"arch\":\"NCv2\",\"model\":\"Trainium1\",\"instance\":\"Trn1\"}]");
}

Test(accelerators, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = NVIDIA "/version", .key = "gpu.nvidia.driver"},
        {.path = KFD "/1/gpu_id", .key = "gpu.amd.devices"},
        {.path = KFD "/1/properties", .key = "gpu.amd.devices", .any_text = true},
        {.path = "/opt/rocm/.info/version", .key = "rocm.version", .any_text = true},
        {.path = "/sys/class/neuron_device/neuron0/core_count",
         .key = "neuron.devices",
         .member = "core_count"},
    };
    nvidia();
    kfd_node(1, "20001", PROPERTIES);
    tree_put("/opt/rocm/.info/version", "6.0.3\n");
    tree_put("/sys/class/neuron_device/neuron0/core_count", "2\n");
    tree_expect_damage(&shk_probe_accelerators, victims, sizeof victims / sizeof *victims);
}

Test(accelerators, damaged_information_names_the_gpu)
{
    nvidia();
    tree_fifo(NVIDIA "/gpus/0000:53:00.0/information");
    tree_run(&shk_probe_accelerators);
    json_t *gpu = tree_item("gpu.nvidia.devices", "pci", "0000:53:00.0");
    cr_expect(json_is_null(json_object_get(gpu, "model")));
    cr_expect_not_null(json_object_get(json_object_get(gpu, "problems"), "information"));
    tree_put(NVIDIA "/gpus/0000:53:00.0/information", "Mod");
    tree_run(&shk_probe_accelerators);
    gpu = tree_item("gpu.nvidia.devices", "pci", "0000:53:00.0");
    cr_expect_not_null(json_object_get(json_object_get(gpu, "problems"), "information"));
}

Test(accelerators, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_accelerators);
    cr_expect_eq(json_array_size(tree_value("gpu.amd.devices")), 8);
    cr_expect_str_eq(tree_item_text(tree_item("gpu.amd.devices", "pci", "0000:de:00.0"), "gfx"),
                     "gfx90a");
    expect_absent("gpu.nvidia.devices");
    tree_end();
    tree_begin();
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_accelerators);
    cr_expect_eq(json_array_size(tree_value("gpu.nvidia.devices")), 8);
    expect_absent("gpu.amd.devices");
}
