#include "hosttree.h"

TREE_SUITE(cpufreq);
TREE_SUITE(nvservices);

#define POLICY(n) "/sys/devices/system/cpu/cpufreq/policy" n

Test(cpufreq, every_policy_counts)
{
    tree_put(POLICY("0") "/scaling_governor", "performance\n");
    tree_put(POLICY("0") "/scaling_driver", "acpi-cpufreq\n");
    tree_put(POLICY("1") "/scaling_governor", "powersave\n");
    tree_put(POLICY("1") "/scaling_driver", "acpi-cpufreq\n");
    tree_put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    tree_run(&shk_probe_cpufreq);
    expect_json("host.cpufreq.governors", "{\"performance\":1,\"powersave\":1}");
    expect_json("host.cpufreq.drivers", "{\"acpi-cpufreq\":2}");
}

Test(cpufreq, none_against_not_seen)
{
    tree_run(&shk_probe_cpufreq);
    expect_failed("host.cpufreq.governors", "/sys/devices/system/cpu");
    tree_dir("/sys/devices/system/cpu");
    tree_run(&shk_probe_cpufreq);
    expect_absent("host.cpufreq.governors");
    tree_dir("/sys/devices/system/cpu/cpufreq");
    tree_run(&shk_probe_cpufreq);
    expect_absent("host.cpufreq.drivers");
}

Test(cpufreq, damaged_files)
{
    static const struct tree_victim victims[] = {{.path = POLICY("0") "/scaling_governor",
                                                  .key = "host.cpufreq.governors",
                                                  .any_text = true}};
    tree_put(POLICY("0") "/scaling_governor", "performance\n");
    tree_expect_damage(&shk_probe_cpufreq, victims, 1);
    tree_put(POLICY("1") "/scaling_governor", "\n");
    tree_run(&shk_probe_cpufreq);
    expect_failed("host.cpufreq.governors", "empty");
}

/* The probe runs after those that know about containers; here it gets that as a fact. */
static void run_in(const char *container)
{
    struct shk_facts *known = shk_facts_create();
    if (container)
        cr_assert_eq(shk_facts_text(known, "host.container", container, "test"), 0);
    tree_run_known(&shk_probe_nvservices, known);
    shk_facts_destroy(known);
}

static void services(void)
{
    tree_put("/proc/1/comm", "systemd\n");
    tree_put("/proc/77/comm", "nv-fabricmanage\n");
    tree_put("/proc/self/comm", "nvidia-imex\n"); /* no process of its own */
    tree_put("/var/log/fabricmanager.log",
             "[Jan 1] [INFO] [tid 1] Fabric Manager version is : 535.54.03\n"
             "[Jan 2] [INFO] [tid 1] Fabric Manager version is : 550.54.15\nready\n");
    tree_put("/etc/nvidia-imex/nodes_config.cfg", "# domain\n10.0.0.1\n\n10.0.0.2\n");
    tree_put("/proc/driver/nvidia/params", "ResmanDebugLevel: 4294967295\nEnableStreamMemOPs: 0\n"
                                           "RegistryDwords: \"PeerMappingOverride=1;\"\n");
}

Test(nvservices, healthy)
{
    services();
    run_in("none");
    expect_json("nvidia.fabricmanager.running", "true");
    expect_json("nvidia.imex.running", "false");
    expect_text("nvidia.fabricmanager.version", "550.54.15");
    expect_int("nvidia.imex.nodes", 2);
    expect_json("nvidia.params", "{\"EnableStreamMemOPs\":\"0\",\"RegistryDwords\":"
                                 "\"\\\"PeerMappingOverride=1;\\\"\"}");
}

Test(nvservices, what_cannot_be_seen_is_not_stopped)
{
    services();
    run_in("docker");
    expect_json("nvidia.fabricmanager.running", "true");
    expect_failed("nvidia.imex.running", "container");
    run_in(NULL);
    expect_failed("nvidia.imex.running", "container");
    tree_remove("/proc/1/comm");
    run_in("none");
    expect_failed("nvidia.imex.running", "hidden");
    tree_remove("/proc/77");
    tree_remove("/proc/1");
    run_in("none");
    expect_failed("nvidia.fabricmanager.running", "no process");
    tree_remove("/proc");
    run_in("none");
    expect_failed("nvidia.fabricmanager.running", "/proc");
}

Test(nvservices, files_that_are_not_there)
{
    services();
    tree_remove("/var/log/fabricmanager.log");
    tree_remove("/etc/nvidia-imex");
    tree_remove("/proc/driver/nvidia/params");
    run_in("none");
    expect_absent("nvidia.fabricmanager.version");
    expect_absent("nvidia.imex.nodes");
    expect_absent("nvidia.params");
    tree_put("/var/log/fabricmanager.log", "nothing of interest\n");
    run_in("none");
    expect_absent("nvidia.fabricmanager.version");
    tree_remove("/var/log");
    run_in("none");
    expect_failed("nvidia.fabricmanager.version", "/var/log");
}
