#include "hosttree.h"

TREE_SUITE(upkeep);

#define CLOCK "/sys/devices/system/clocksource/clocksource0"

static void healthy(void)
{
    tree_put(CLOCK "/current_clocksource", "tsc\n");
    tree_put(CLOCK "/available_clocksource", "tsc hpet acpi_pm\n");
    tree_put("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
                                     "23 22 0:40 / /scratch rw shared:1 - lustre mgs@tcp:/fs rw\n"
                                     "24 22 0:41 / /home ro - nfs4 server:/home ro\n");
    tree_dir("/dev/shm");
    tree_put("/dev/shm/nccl-abc", "12345");
}

Test(upkeep, healthy)
{
    healthy();
    tree_run(&shk_probe_upkeep);
    expect_text("clock.source", "tsc");
    expect_json("mounts.remote", "[{\"mount\":\"/scratch\",\"type\":\"lustre\",\"answers\":null},"
                                 "{\"mount\":\"/home\",\"type\":\"nfs4\",\"answers\":null}]");
    expect_absent("munge.socket");
    cr_assert_eq(json_integer_value(json_object_get(tree_value("shm.files"), "count")), 1);
    cr_assert_str_eq(json_string_value(json_object_get(tree_value("shm.files"), "largest")),
                     "nccl-abc");
}

Test(upkeep, not_there)
{
    tree_dir("/sys/devices/system");
    tree_dir("/dev");
    tree_run(&shk_probe_upkeep);
    expect_absent("clock.source");
    expect_absent("shm.files");
    expect_failed("mounts.remote", "");
}

/* A capture has files, no sockets. */
Test(upkeep, munge)
{
    healthy();
    tree_dir("/run/munge");
    tree_run(&shk_probe_upkeep);
    expect_failed("munge.socket", "capture");
}
