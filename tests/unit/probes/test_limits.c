#include "hosttree.h"

TREE_SUITE(limits);
TREE_SUITE(cgroup);

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB"

static void healthy(void)
{
    tree_hostcalls(
        "{\"rlimits\":{\"memlock\":{\"soft\":-1,\"hard\":-1},"
        "\"nofile\":{\"soft\":1024,\"hard\":4096},\"stack\":{\"soft\":8388608,\"hard\":-1}},"
        "\"shmfs\":{\"size\":67108864,\"free\":1000,\"type\":\"0x1021994\"},"
        "\"pagesize\":4096}");
    tree_put(POOL "/nr_hugepages", "10\n");
    tree_put(POOL "/free_hugepages", "4\n");
    tree_put(POOL "/resv_hugepages", "1\n");
    tree_put(POOL "/nr_overcommit_hugepages", "0\n");
}

Test(limits, healthy)
{
    healthy();
    tree_run(&shk_probe_limits);
    expect_json("limits.memlock", "{\"soft\":-1,\"hard\":-1}");
    expect_json("limits.nofile", "{\"soft\":1024,\"hard\":4096}");
    expect_failed("limits.nproc", "");
    expect_int("shm.size", 67108864);
    expect_int("shm.free", 1000);
    expect_text("shm.type", "0x1021994");
    expect_int("limits.pagesize", 4096);
    expect_json("hugepages.sizes", "[2048]");
    expect_json("hugepages.2048", "{\"total\":10,\"free\":4,\"reserved\":1,\"overcommit\":0}");
}

Test(limits, nothing_asked_nothing_known)
{
    tree_run(&shk_probe_limits);
    expect_failed("limits.memlock", "not in the capture");
    expect_failed("shm.size", "not in the capture");
    expect_failed("hugepages.sizes", "/sys/kernel/mm");
    expect_failed("limits.pagesize", "");
}

Test(limits, kernel_without_huge_pages)
{
    tree_dir("/sys/kernel/mm");
    tree_run(&shk_probe_limits);
    expect_absent("hugepages.sizes");
}

Test(limits, hostile_answers)
{
    static const char *const rows[] = {
        "{\"rlimits\":[],\"shmfs\":7}",
        "{\"rlimits\":{\"memlock\":\"unlimited\"},\"shmfs\":{\"size\":null}}",
        "{\"rlimits\":{\"memlock\":{\"soft\":\"8\",\"hard\":8}},\"shmfs\":{\"size\":[1]}}",
        "{\"rlimits\":{\"memlock\":{\"soft\":8}},\"shmfs\":{}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_hostcalls(rows[i]);
        tree_run(&shk_probe_limits);
        expect_failed("limits.memlock", "");
        expect_failed("shm.size", "");
    }
}

Test(limits, odd_directories_are_no_pools)
{
    healthy();
    tree_put("/sys/kernel/mm/hugepages/hugepages-xkB/nr_hugepages", "1\n");
    tree_put("/sys/kernel/mm/hugepages/hugepages-12MB/nr_hugepages", "1\n");
    tree_put("/sys/kernel/mm/hugepages/hugepages--4kB/nr_hugepages", "1\n");
    tree_put("/sys/kernel/mm/hugepages/other", "1\n");
    tree_run(&shk_probe_limits);
    expect_json("hugepages.sizes", "[2048]");
}

Test(limits, pool_without_total)
{
    healthy();
    tree_remove(POOL "/nr_hugepages");
    tree_run(&shk_probe_limits);
    expect_failed("hugepages.2048", "nr_hugepages");
}

Test(limits, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = POOL "/nr_hugepages", .key = "hugepages.2048"},
        {.path = POOL "/free_hugepages", .key = "hugepages.2048", .member = "free"},
    };
    healthy();
    tree_expect_damage(&shk_probe_limits, victims, sizeof victims / sizeof *victims);
}

Test(limits, unreadable_for_this_user)
{
    healthy();
    tree_mode(POOL "/nr_hugepages", 0);
    tree_run_unprivileged(&shk_probe_limits);
    expect_failed("hugepages.2048", "Permission denied");
}

Test(limits, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_limits);
    expect_json("limits.memlock", "{\"soft\":-1,\"hard\":-1}");
    expect_int("shm.size", 270306701312);
    tree_end();
    tree_begin();
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_limits);
    expect_json("hugepages.2048",
                "{\"total\":21122,\"free\":21122,\"reserved\":0,\"overcommit\":0}");
}

#define V2_MOUNT "30 24 0:25 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"

Test(cgroup, the_tightest_ancestor_counts)
{
    static const struct {
        const char *name, *leaf, *middle, *top;
        long long want;
    } rows[] = {
        {"no limit", "max", "max", "max", -1},
        {"own", "100", "max", "200", 100},
        {"parent", "max", "50", "max", 50},
        {"top", "70", "60", "10", 10},
        {"only the leaf has one", "5", NULL, NULL, 5},
        {"zero is a limit", "0", "max", "7", 0},
    };
    tree_put("/proc/self/cgroup", "0::/a/b/c\n");
    tree_put("/proc/self/mountinfo", "22 1 0:1 / / rw - ext4 x rw\n" V2_MOUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/sys/fs/cgroup");
        tree_put("/sys/fs/cgroup/a/b/c/memory.max", "%s\n", rows[i].leaf);
        if (rows[i].middle)
            tree_put("/sys/fs/cgroup/a/b/memory.max", "%s\n", rows[i].middle);
        if (rows[i].top)
            tree_put("/sys/fs/cgroup/a/memory.max", "%s\n", rows[i].top);
        tree_run(&shk_probe_cgroup);
        cr_log_info("%s", rows[i].name);
        expect_int("cgroup.memory.max", rows[i].want);
        expect_int("cgroup.version", 2);
        expect_absent("cgroup.pids.max");
    }
}

Test(cgroup, version_one)
{
    tree_put("/proc/self/cgroup", "9:pids:/\n4:cpuset,memory:/slurm/job_1\n0::/\n");
    tree_put("/proc/self/mountinfo",
             "34 31 0:31 / /sys/fs/cgroup/mem rw - cgroup cgroup rw,cpuset,memory\n"
             "35 31 0:32 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/mem/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put("/sys/fs/cgroup/mem/slurm/memory.limit_in_bytes", "1048576\n");
    tree_put("/sys/fs/cgroup/mem/slurm/job_1/cpuset.effective_cpus", "0-3\n");
    tree_run(&shk_probe_cgroup);
    expect_int("cgroup.version", 1);
    expect_int("cgroup.memory.max", 1048576);
    expect_text("cgroup.cpuset.cpus", "0-3");
    cr_expect_str_eq(tree_source("cgroup.memory.max"),
                     "/sys/fs/cgroup/mem/slurm/memory.limit_in_bytes");
    /* the hierarchy exists, but is not mounted: not "no limit" */
    expect_failed("cgroup.pids.max", "not mounted");
}

Test(cgroup, quota_of_processors)
{
    static const struct {
        const char *leaf, *top;
        long long want;
    } rows[] = {
        {"max 100000", "max 100000", -1},    {"400000 100000", "max 100000", 4000},
        {"max 100000", "50000 100000", 500}, {"1600000 200000", "100000 100000", 1000},
        {"250000 100000", NULL, 2500},
    };
    static const char *const odd[] = {"",      "x",         "100",
                                      "100 0", "-5 100000", "9223372036854775807 1"};
    tree_put("/proc/self/cgroup", "0::/a/b\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/sys/fs/cgroup");
        tree_put("/sys/fs/cgroup/a/b/cpu.max", "%s\n", rows[i].leaf);
        if (rows[i].top)
            tree_put("/sys/fs/cgroup/a/cpu.max", "%s\n", rows[i].top);
        tree_run(&shk_probe_cgroup);
        expect_int("cgroup.cpu.max", rows[i].want);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        tree_put("/sys/fs/cgroup/a/b/cpu.max", "%s\n", odd[i]);
        tree_run(&shk_probe_cgroup);
        expect_failed("cgroup.cpu.max", "cpu.max");
    }
    tree_remove("/sys/fs/cgroup");
    tree_put("/sys/fs/cgroup/a/b/memory.max", "1\n");
    tree_run(&shk_probe_cgroup);
    expect_absent("cgroup.cpu.max");
}

Test(cgroup, quota_of_version_one)
{
    static const char leaf[] = "/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us";
    tree_put("/proc/self/cgroup", "4:cpu,cpuacct:/pod\n0::/\n");
    tree_put("/proc/self/mountinfo",
             "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    tree_put(leaf, "-1\n");
    tree_put("/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
    tree_run(&shk_probe_cgroup);
    expect_int("cgroup.cpu.max", -1);
    tree_put(leaf, "350000\n");
    tree_run(&shk_probe_cgroup);
    expect_int("cgroup.cpu.max", 3500);
    tree_remove("/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us");
    tree_run(&shk_probe_cgroup);
    expect_failed("cgroup.cpu.max", "cpu.cfs_period_us");
}

Test(cgroup, container_sees_its_own_root)
{
    tree_put("/proc/self/cgroup", "0::/docker/abc/inner\n");
    tree_put("/proc/self/mountinfo",
             "30 24 0:25 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put("/sys/fs/cgroup/inner/memory.max", "4096\n");
    tree_run(&shk_probe_cgroup);
    expect_int("cgroup.memory.max", 4096);
}

Test(cgroup, out_of_sight_is_failed)
{
    static const char *const groups[] = {"0::/../other\n", "0::/elsewhere\n"};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        tree_put("/proc/self/cgroup", "%s", groups[i]);
        tree_put("/proc/self/mountinfo", V2_MOUNT);
        tree_put("/sys/fs/cgroup/a/memory.max", "1\n");
        tree_run(&shk_probe_cgroup);
        expect_failed("cgroup.memory.max", "not visible");
    }
}

Test(cgroup, killed_for_memory)
{
    static const struct {
        const char *group, *path, *text;
        long long want; /* -1: absent */
    } rows[] = {
        {"0::/a/b\n", "/sys/fs/cgroup/a/b/memory.events", "low 0\noom 4\noom_kill 3\n", 3},
        {"0::/a/b\n", "/sys/fs/cgroup/a/b/memory.events", "oom 4\noom_kill 0\n", 0},
        {"0::/a/b\n", "/sys/fs/cgroup/a/b/memory.events", "oom 4\n", -1},
        {"0::/a/b\n", "/sys/fs/cgroup/a/memory.events", "oom_kill 9\n", -1},
        {"0::/scope/job_12/step_0/user\n", "/sys/fs/cgroup/scope/job_12/memory.events",
         "oom_kill 2\n", 2},
        {"0::/scope/job_x/step_0\n", "/sys/fs/cgroup/scope/job_x/memory.events", "oom_kill 2\n",
         -1},
        {"4:memory:/a\n", "/sys/fs/cgroup/mem/a/memory.oom_control",
         "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", 5},
        {"0::/\n", "/sys/fs/cgroup/memory.stat", "oom_kill 1\n", -1},
    };
    tree_put("/proc/self/mountinfo",
             V2_MOUNT "34 31 0:31 / /sys/fs/cgroup/mem rw - cgroup cgroup rw,memory\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/sys/fs/cgroup");
        tree_put("/proc/self/cgroup", "%s", rows[i].group);
        tree_dir("/sys/fs/cgroup/a/b");
        tree_dir("/sys/fs/cgroup/mem/a");
        tree_dir("/sys/fs/cgroup/scope/job_12/step_0/user");
        tree_dir("/sys/fs/cgroup/scope/job_x/step_0");
        tree_put(rows[i].path, "%s", rows[i].text);
        tree_run(&shk_probe_cgroup);
        cr_log_info("row %zu", i);
        if (rows[i].want < 0)
            expect_absent("cgroup.memory.oom_kills");
        else
            expect_int("cgroup.memory.oom_kills", rows[i].want);
    }
}

Test(cgroup, garbage)
{
    static const char *const texts[] = {"garbage\n", "\n", ":\n", "::\n", "0:\n", "0::relative\n"};
    tree_put("/proc/self/mountinfo", " - \n - cgroup2 \n1 2 3 - cgroup2 x y\n\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tree_put("/proc/self/cgroup", "%s", texts[i]);
        tree_run(&shk_probe_cgroup);
        expect_absent("cgroup.memory.max");
        expect_absent("cgroup.version");
    }
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_run(&shk_probe_cgroup);
    expect_failed("cgroup.memory.max", "not mounted");
}

Test(cgroup, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = "/sys/fs/cgroup/a/memory.max", .key = "cgroup.memory.max"},
        {.path = "/sys/fs/cgroup/a/memory.events",
         .key = "cgroup.memory.oom_kills",
         .any_text = true},
        {.path = "/sys/fs/cgroup/a/cpuset.cpus.effective",
         .key = "cgroup.cpuset.cpus",
         .any_text = true},
    };
    tree_put("/proc/self/cgroup", "0::/a\n");
    tree_put("/sys/fs/cgroup/a/memory.events", "oom_kill 0\n");
    tree_put("/proc/self/mountinfo", V2_MOUNT);
    tree_put("/sys/fs/cgroup/a/memory.max", "77\n");
    tree_put("/sys/fs/cgroup/a/cpuset.cpus.effective", "0-1\n");
    tree_expect_damage(&shk_probe_cgroup, victims, sizeof victims / sizeof *victims);
}

Test(cgroup, lists_unreadable)
{
    tree_run(&shk_probe_cgroup);
    expect_failed("cgroup.version", "/proc/self/cgroup");
    expect_failed("cgroup.memory.max", "/proc/self/cgroup");
}

Test(cgroup, capture_has_a_job_limit)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_cgroup);
    expect_int("cgroup.memory.max", 515396075520);
    expect_int("cgroup.pids.max", -1);
    expect_text("cgroup.cpuset.cpus", "49-55");
}
