#include "hosttree.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

TREE_SUITE(host);

#define CALLS                                                                                      \
    "{\"uname\":{\"nodename\":\"n1\",\"release\":\"6.1.0\",\"machine\":\"x86_64\"},"               \
    "\"ids\":{\"uid\":7,\"euid\":7,\"gid\":8,\"groups\":[8,44]},"                                  \
    "\"affinity\":[0,1,2,3,8,16,17],"                                                              \
    "\"clock\":{\"synchronised\":true,\"offset_us\":-4,\"maxerror_us\":900,"                       \
    "\"time\":\"2026-11-28T18:49:07Z\"}}"

static void machine(const char *vendor, const char *product, const char *flags)
{
    tree_hostcalls(CALLS);
    tree_dir("/sys/class");
    tree_dir("/proc/self");
    tree_put("/etc/os-release", "NAME=\"Test\"\nPRETTY_NAME=\"Test \\\"OS\\\" 1\"\nID=test\n");
    if (vendor)
        tree_put("/sys/class/dmi/id/sys_vendor", "%s\n", vendor);
    if (product)
        tree_put("/sys/class/dmi/id/product_name", "%s\n", product);
    tree_put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: CPU 9000\nflags\t\t: %s\n\n", flags);
    tree_put("/proc/meminfo", "MemTotal:       1024 kB\nMemAvailable:    512 kB\n");
    tree_put("/sys/devices/system/node/node0/cpulist", "0-3\n");
    tree_put("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\n");
    tree_put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
}

Test(host, healthy)
{
    machine("HPE", "EX235a", "fpu sse");
    tree_run(&shk_probe_host);
    expect_text("host.name", "n1");
    expect_text("host.kernel", "6.1.0");
    expect_text("host.arch", "x86_64");
    expect_text("host.os", "Test \"OS\" 1");
    expect_text("host.os_id", "test");
    expect_absent("host.os_version");
    expect_text("host.vendor", "HPE");
    expect_text("host.product", "EX235a");
    expect_text("host.virt", "none");
    expect_absent("host.cloud");
    expect_text("host.cpu", "CPU 9000");
    expect_text("host.cpu_governor", "performance");
    expect_int("host.memory", 1024 * 1024);
    expect_int("host.memory_available", 512 * 1024);
    expect_json("host.numa", "[{\"node\":0,\"cpus\":\"0-3\",\"memory\":1048576}]");
    expect_text("host.affinity", "0-3,8,16-17");
    expect_json("host.ids", "{\"uid\":7,\"euid\":7,\"gid\":8,\"groups\":[8,44]}");
    expect_json("clock.synchronised", "true");
    expect_int("clock.offset", -4);
    expect_int("clock.max_error", 900);
    expect_text("clock.time", "2026-11-28T18:49:07Z");
}

Test(host, virtual_machines)
{
    static const struct {
        const char *vendor, *product, *flags, *virt, *cloud;
    } rows[] = {
        {"Amazon EC2", "p5.48xlarge", "fpu hypervisor sse", "kvm", "aws"},
        {"Amazon EC2", "c5.metal", "fpu sse", "none", "aws"},
        {"Google", "Google Compute Engine", "hypervisor", "kvm", "gcp"},
        {"Microsoft Corporation", "Virtual Machine", "hypervisor", "hyperv", NULL},
        {"QEMU", "Standard PC", "hypervisor", "kvm", NULL},
        {"VMware, Inc.", "VMware7,1", "hypervisor", "vmware", NULL},
        {"Xen", "HVM domU", "hypervisor", "xen", NULL},
        {"Unheard Of", "Thing", "hypervisor", "other", NULL},
        {"Supermicro", "AS-4124", "fpu hypervisors", "none", NULL},
        /* Hyper-V's host has the vendor, too, and no flag */
        {"Microsoft Corporation", "Virtual Machine", "fpu", "none", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine(rows[i].vendor, rows[i].product, rows[i].flags);
        tree_run(&shk_probe_host);
        expect_text("host.virt", rows[i].virt);
        if (rows[i].cloud)
            expect_text("host.cloud", rows[i].cloud);
        else
            expect_absent("host.cloud");
    }
}

Test(host, azure_by_its_asset_tag)
{
    machine("Microsoft Corporation", "Virtual Machine", "hypervisor");
    tree_put("/sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77\n");
    tree_run(&shk_probe_host);
    expect_text("host.cloud", "azure");
}

Test(host, micro_vm_without_dmi_is_told_by_its_clock)
{
    machine(NULL, NULL, "hypervisor");
    tree_put("/sys/devices/system/clocksource/clocksource0/available_clocksource",
             "tsc kvm-clock \n");
    tree_run(&shk_probe_host);
    expect_text("host.virt", "kvm");
    expect_absent("host.vendor");
    expect_failed("host.cloud", "DMI");
}

Test(host, arm_has_no_flags_line)
{
    machine("NVIDIA", "Grace", "x");
    tree_put("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
    tree_run(&shk_probe_host);
    expect_text("host.virt", "none");
    expect_absent("host.cpu");
}

Test(host, nothing_mounted_is_failed_not_absent)
{
    static const char *const keys[] = {
        "host.name",     "host.vendor",  "host.product",       "host.virt",        "host.cloud",
        "host.cpu",      "host.memory",  "host.numa",          "host.os",          "host.ids",
        "host.affinity", "clock.offset", "clock.synchronised", "host.cpu_governor"};
    tree_run(&shk_probe_host);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        expect_failed(keys[i], "");
}

Test(host, os_release_fallback_and_quotes)
{
    machine("HPE", "x", "fpu");
    tree_remove("/etc/os-release");
    tree_put("/usr/lib/os-release", "ID='single quoted'\nPRETTY_NAME=Plain\nVERSION_ID=\"\"\n");
    tree_run(&shk_probe_host);
    expect_text("host.os", "Plain");
    expect_text("host.os_id", "single quoted");
    expect_absent("host.os_version");
    cr_expect_str_eq(tree_source("host.os"), "/usr/lib/os-release");
}

Test(host, garbage_numbers_are_failed)
{
    static const char *const texts[] = {
        "MemTotal: -5 kB\n",
        "MemTotal: kB\n",
        "MemTotal: 12 MB\n",
        "MemFree: 12 kB\n",
        "MemTotal: 99999999999999999999999 kB\n",
        "MemTotal: 9223372036854775807 kB\n",
    };
    machine("HPE", "x", "fpu");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tree_put("/proc/meminfo", "%s", texts[i]);
        tree_run(&shk_probe_host);
        expect_failed("host.memory", "MemTotal");
    }
}

Test(host, hostile_hostcalls)
{
    machine("HPE", "x", "fpu");
    tree_hostcalls("{\"uname\":[1],\"affinity\":{\"a\":1},\"clock\":\"no\",\"ids\":null}");
    tree_run(&shk_probe_host);
    expect_failed("host.name", "");
    expect_failed("clock.synchronised", "");
}

Test(host, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = "/sys/class/dmi/id/sys_vendor", .key = "host.vendor", .any_text = true},
        {.path = "/sys/class/dmi/id/product_name", .key = "host.product", .any_text = true},
        {.path = "/proc/cpuinfo", .key = "host.cpu", .any_text = true},
        {.path = "/proc/meminfo", .key = "host.memory"},
        {.path = "/etc/os-release", .key = "host.os", .any_text = true},
        {.path = "/sys/devices/system/node/node0/meminfo", .key = "host.numa", .member = "memory"},
        {.path = "/sys/devices/system/node/node0/cpulist",
         .key = "host.numa",
         .member = "cpus",
         .any_text = true},
    };
    machine("HPE", "EX235a", "fpu sse");
    tree_expect_damage(&shk_probe_host, victims, sizeof victims / sizeof *victims);
}

Test(host, unreadable_for_this_user)
{
    machine("HPE", "EX235a", "fpu sse");
    tree_mode("/sys/class/dmi/id/product_name", 0);
    tree_mode("/proc/meminfo", 0);
    tree_run_unprivileged(&shk_probe_host);
    expect_failed("host.product", "Permission denied");
    expect_failed("host.memory", "Permission denied");
    expect_text("host.vendor", "HPE");
}

Test(host, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_host);
    expect_text("host.name", "nid005012");
    expect_text("host.virt", "none");
    expect_text("host.vendor", "HPE");
    expect_text("host.affinity", "49-55");
    cr_expect_eq(json_array_size(tree_value("host.numa")), 4);
}

Test(host, efa_capture)
{
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_host);
    expect_text("host.product", "p5.48xlarge");
    expect_text("host.cloud", "aws");
    expect_text("host.virt", "kvm");
}

static volatile bool rename_stop;

static void *rename_loop(void *arg)
{
    const char *const *names = arg;
    while (!rename_stop)
        if (rename(names[0], names[1]) != 0 || rename(names[1], names[0]) != 0)
            break;
    return NULL;
}

/* The kernel gives up walks through ".." while anything anywhere is renamed. */
Test(host, renames_elsewhere_do_not_disturb)
{
    char a[] = "/tmp/shk-rename-XXXXXX", b[64];
    int fd = mkstemp(a);
    cr_assert_geq(fd, 0);
    close(fd);
    snprintf(b, sizeof b, "%s-b", a);
    char *names[] = {a, b};
    pthread_t thread;
    tree_copy_capture("slingshot-amd");
    cr_assert_eq(pthread_create(&thread, NULL, rename_loop, names), 0);
    for (int i = 0; i < 40; i++) {
        tree_run(&shk_probe_host);
        expect_text("host.vendor", "HPE");
        expect_text("host.product", "HPE Cray EX235a");
    }
    rename_stop = true;
    pthread_join(thread, NULL);
    unlink(a);
}
