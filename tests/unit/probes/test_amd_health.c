#include "hosttree.h"

TREE_SUITE(amd_health);

#define GPU "/sys/bus/pci/devices/0000:c1:00.0"

static void healthy(void)
{
    tree_dir("/sys/bus/pci/drivers/amdgpu/0000:c1:00.0");
    tree_put("/sys/bus/pci/drivers/amdgpu/new_id", "%s", "");
    tree_put(GPU "/vbios_version", "113-M3000100-102\n");
    tree_put(GPU "/current_compute_partition", "SPX\n");
    tree_put(GPU "/current_memory_partition", "NPS1\n");
    tree_put(GPU "/pcie_replay_count", "7\n");
    tree_put(GPU "/ras/features", "feature mask: 0x5\n");
    tree_put(GPU "/ras/umc_err_count", "ue: 0\nce: 3\nde: 0\n");
    tree_put(GPU "/ras/gpu_vram_bad_pages",
             "0x00000001 : 0x00001000 : R\n0x00000002 : 0x00001000 : P\n");
    tree_put(GPU "/hwmon/hwmon4/temp2_input", "52000\n");
    tree_put(GPU "/hwmon/hwmon4/temp2_label", "junction\n");
    tree_put(GPU "/hwmon/hwmon4/temp2_crit", "100000\n");
    tree_put(GPU "/hwmon/hwmon4/temp3_input", "45000\n");
    tree_put(GPU "/hwmon/hwmon4/temp3_label", "mem\n");
    tree_put(GPU "/hwmon/hwmon4/power1_cap", "550000000\n");
    tree_put(GPU "/hwmon/hwmon4/power1_cap_default", "750000000\n");
}

#define FACT(umc, pages)                                                                           \
    "[{\"pci\":\"0000:c1:00.0\",\"vbios\":\"113-M3000100-102\",\"compute_partition\":\"SPX\","     \
    "\"memory_partition\":\"NPS1\",\"pcie_replays\":7,\"ras\":{\"umc\":" umc                       \
    "},\"bad_pages\":" pages ",\"temperatures\":[{\"sensor\":\"junction\",\"now\":52,"             \
    "\"limit\":100},{\"sensor\":\"mem\",\"now\":45,\"limit\":null}],\"power_limit\":550000,"       \
    "\"power_default\":750000}]"

Test(amd_health, healthy)
{
    healthy();
    tree_run(&shk_probe_amd_health);
    expect_json("amdgpu.health", FACT("{\"ue\":0,\"ce\":3,\"de\":0}",
                                      "{\"reserved\":1,\"pending\":1,\"failed\":0}"));
}

Test(amd_health, faults)
{
    healthy();
    tree_put(GPU "/ras/umc_err_count", "ue: 2\nce: 3\n");
    tree_put(GPU "/ras/gpu_vram_bad_pages", "0x00000001 : 0x00001000 : F\n");
    tree_run(&shk_probe_amd_health);
    expect_json("amdgpu.health",
                FACT("{\"ue\":2,\"ce\":3}", "{\"reserved\":0,\"pending\":0,\"failed\":1}"));
}

/* What the driver does not offer is null; what has another form is a problem. */
Test(amd_health, unread)
{
    tree_dir("/sys/bus/pci/drivers/amdgpu/0000:c1:00.0");
    tree_put(GPU "/ras/umc_err_count", "who knows\n");
    tree_run(&shk_probe_amd_health);
    json_t *gpu = tree_item("amdgpu.health", "pci", "0000:c1:00.0");
    cr_assert(json_is_null(json_object_get(gpu, "vbios")));
    cr_assert(json_is_null(json_object_get(gpu, "bad_pages")));
    cr_assert(json_is_null(json_object_get(gpu, "ras")));
    cr_assert(json_is_null(json_object_get(gpu, "temperatures")));
    cr_assert(json_is_null(json_object_get(gpu, "power_limit")));
    json_t *problems = json_object_get(gpu, "problems");
    cr_assert_eq(json_object_size(problems), 1);
    cr_assert_not_null(json_object_get(problems, "ras"));
}

Test(amd_health, none)
{
    tree_dir("/sys/bus/pci/devices");
    tree_run(&shk_probe_amd_health);
    expect_absent("amdgpu.health");
    tree_dir("/sys/bus/pci/drivers/amdgpu");
    tree_run(&shk_probe_amd_health);
    expect_absent("amdgpu.health");
}

/* Before: errors that were counted, lines that were logged. */
Test(amd_health, history)
{
    tree_put("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "12\n");
    tree_put("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "0\n");
    tree_put("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent", "99\n");
    tree_put("/dev/kmsg", "4,11,2000000,-;mlx5_core 0000:9b:00.0 ens3: Link down\n"
                          "4,12,9000000,-;mlx5_core 0000:9b:00.0 ens3: Link down\n");
    tree_run(&shk_probe_history);
    expect_json("counters.totals",
                "{\"read\":[\"mlx5_0/1\"],\"errors\":{\"mlx5_0/1\":{\"symbol_error\":12}},"
                "\"unread\":{}}");
    expect_json("kernel.log.events",
                "[{\"scope\":\"0000:9b:00.0\",\"class\":\"network\",\"counter\":\"link down\","
                "\"kind\":\"event\",\"count\":2,\"first_s\":2,\"last_s\":9,\"line\":\"mlx5_core "
                "0000:9b:00.0 ens3: "
                "Link down\"}]");
    tree_remove("/dev/kmsg");
    tree_put("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "many\n");
    tree_run(&shk_probe_history);
    expect_failed("kernel.log.events", "kmsg");
    cr_assert_eq(json_object_size(json_object_get(tree_value("counters.totals"), "unread")), 1);
    tree_remove("/sys/class/infiniband/mlx5_0");
    tree_run(&shk_probe_history);
    expect_absent("counters.totals");
}
