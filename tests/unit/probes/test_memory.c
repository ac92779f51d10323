#include "hosttree.h"
#include "probes/base/registry.h"

TREE_SUITE(memory);

#define MC "/sys/devices/system/edac/mc"

static void healthy(void)
{
    tree_put("/proc/meminfo", "MemTotal: 100 kB\nHardwareCorrupted:     0 kB\n");
    tree_put("/proc/interrupts",
             "           CPU0       CPU1\n NMI:   3   4   Non-maskable interrupts\n"
             " MCE:          0          0   Machine check exceptions\n");
    tree_put(MC "/mc0/ce_count", "2\n");
    tree_put(MC "/mc0/ue_count", "0\n");
    tree_put(MC "/power/control", "auto\n");
    tree_dir("/proc/self");
}

Test(memory, healthy)
{
    healthy();
    tree_run(&shk_probe_memory);
    expect_int("memory.corrupted", 0);
    expect_int("memory.machine_checks", 0);
    expect_json("memory.controllers", "[{\"name\":\"mc0\",\"corrected\":2,\"uncorrected\":0}]");
}

Test(memory, errors)
{
    healthy();
    tree_put("/proc/meminfo", "HardwareCorrupted:     8 kB\n");
    tree_put("/proc/interrupts", " MCE:   1   2   Machine check exceptions\n MCP: 7 7 polls\n");
    tree_put(MC "/mc0/ue_count", "1\n");
    tree_run(&shk_probe_memory);
    expect_int("memory.corrupted", 8192);
    expect_int("memory.machine_checks", 3);
    cr_expect_eq(tree_item_int(tree_item("memory.controllers", "name", "mc0"), "uncorrected"), 1);
}

/* Another processor, another kernel, no driver: there is nothing that counts. */
Test(memory, nothing_counts)
{
    tree_dir("/proc/self");
    tree_dir("/sys/devices/system");
    tree_put("/proc/meminfo", "MemTotal: 100 kB\n");
    tree_put("/proc/interrupts", "           CPU0\n  1:  4  GICv3\n");
    tree_run(&shk_probe_memory);
    expect_absent("memory.corrupted");
    expect_absent("memory.machine_checks");
    expect_absent("memory.controllers");
}

Test(memory, not_there_is_failed)
{
    tree_run(&shk_probe_memory);
    expect_failed("memory.corrupted", "");
    expect_failed("memory.machine_checks", "");
    expect_failed("memory.controllers", "");
}

Test(memory, damaged_files)
{
    healthy();
    tree_put("/proc/meminfo", "HardwareCorrupted: many\n");
    tree_put("/proc/interrupts", " MCE: -3  Machine check exceptions\n");
    tree_put(MC "/mc0/ue_count", "none\n");
    tree_run(&shk_probe_memory);
    expect_failed("memory.corrupted", "no size");
    expect_failed("memory.machine_checks", "no counts");
    json_t *item = tree_item("memory.controllers", "name", "mc0");
    cr_expect(json_is_null(json_object_get(item, "uncorrected")));
    cr_expect_not_null(json_object_get(item, "problems"));
}
