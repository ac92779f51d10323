#include "hosttree.h"

TREE_SUITE(kernel);
TREE_SUITE(iommu);
TREE_SUITE(container);

#define RELEASE "6.1.0-test"
#define CALLS   "{\"uname\":{\"nodename\":\"n1\",\"release\":\"" RELEASE "\",\"machine\":\"x86_64\"}}"

static void kernel(void)
{
    tree_hostcalls(CALLS);
    tree_dir("/proc/self");
    tree_put("/proc/cmdline", "root=/dev/sda1 iommu=pt quiet\n");
    tree_put("/proc/modules",
             "nvidia_uvm 6672384 4 - Live 0x0000000000000000 (OE)\n"
             "nvidia 56770560 135 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)\n"
             "mlx5_ib 1 0 - Loading 0x0\n");
    tree_put("/sys/module/nvidia/version", "535.183.01\n");
    tree_put("/sys/module/ib_core/parameters/x", "1\n");
    tree_put("/lib/modules/" RELEASE "/modules.builtin",
             "kernel/drivers/misc/xpmem.ko\nkernel/drivers/net/mlx5-core.ko\n"
             "kernel/drivers/gpu/not_amdgpu.ko\n");
    tree_put("/boot/config-" RELEASE,
             "# head\nCONFIG_USERFAULTFD=y\n# CONFIG_PCI_P2PDMA is not set\nCONFIG_HSA_AMD=m\n");
    tree_put("/proc/sys/kernel/numa_balancing", "1\n");
    tree_put("/proc/sys/kernel/shmmax", "18446744073692774399\n");
    tree_put("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n");
    tree_put("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n");
    tree_put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    tree_dir("/sys/kernel/mm/memory_peers/nv_mem");
}

Test(kernel, healthy)
{
    kernel();
    tree_run(&shk_probe_kernel);
    expect_text("kernel.cmdline", "root=/dev/sda1 iommu=pt quiet");
    expect_json("kernel.module.nvidia",
                "{\"version\":\"535.183.01\",\"refcount\":135,\"state\":\"live\"}");
    expect_json("kernel.module.nvidia_uvm", "{\"version\":null,\"refcount\":4,\"state\":\"live\"}");
    expect_json("kernel.module.mlx5_ib", "{\"version\":null,\"refcount\":0,\"state\":\"loading\"}");
    expect_json("kernel.module.ib_core",
                "{\"version\":null,\"refcount\":null,\"state\":\"builtin\"}");
    expect_json("kernel.module.xpmem",
                "{\"version\":null,\"refcount\":null,\"state\":\"builtin\"}");
    expect_json("kernel.module.mlx5_core",
                "{\"version\":null,\"refcount\":null,\"state\":\"builtin\"}");
    expect_absent("kernel.module.amdgpu");
    cr_expect_str_eq(tree_reason("kernel.module.amdgpu"), "not loaded, not built in");
    expect_absent("kernel.module.nvidia_peermem");
    expect_int("sysctl.kernel.numa_balancing", 1);
    expect_text("sysctl.kernel.shmmax", "18446744073692774399");
    expect_text("sysctl.net.ipv4.ip_local_port_range", "32768 60999");
    expect_text("sysctl.net.ipv4.ip_local_reserved_ports", "");
    expect_absent("sysctl.vm.unprivileged_userfaultfd");
    expect_text("kernel.thp", "madvise");
    expect_absent("kernel.thp_defrag");
    expect_json(
        "kernel.config",
        "{\"USERFAULTFD\":\"y\",\"PCI_P2PDMA\":\"n\",\"HSA_AMD\":\"m\",\"HSA_AMD_P2P\":null,"
        "\"DMABUF_MOVE_NOTIFY\":null,\"IOMMU_DEFAULT_PASSTHROUGH\":null}");
    expect_json("kernel.memory_peers", "[\"nv_mem\"]");
}

/* Absent needs a source that would have said so. */
Test(kernel, modules_without_their_list)
{
    static const struct {
        const char *name;
        bool self, sysfs; /* /proc and /sys/module are there */
        int state;        /* of a module that is nowhere */
        const char *reason;
    } rows[] = {
        {"neither", false, false, SHK_FACT_FAILED, "No such file"},
        {"sysfs knows all that is loaded", false, true, SHK_FACT_ABSENT, "not loaded"},
        {"a kernel without modules", true, false, SHK_FACT_ABSENT, "no loadable modules"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/proc");
        tree_remove("/sys");
        tree_hostcalls(CALLS);
        if (rows[i].self)
            tree_dir("/proc/self");
        if (rows[i].sysfs)
            tree_put("/sys/module/efa/initstate", "live\n");
        tree_run(&shk_probe_kernel);
        cr_expect_eq(tree_state("kernel.module.nvidia"), rows[i].state, "%s", rows[i].name);
        cr_expect_not_null(strstr(tree_reason("kernel.module.nvidia"), rows[i].reason), "%s: %s",
                           rows[i].name, tree_reason("kernel.module.nvidia"));
    }
    tree_put("/sys/module/efa/initstate", "live\n");
    tree_put("/sys/module/efa/refcnt", "3\n");
    tree_run(&shk_probe_kernel);
    expect_json("kernel.module.efa", "{\"version\":null,\"refcount\":3,\"state\":\"live\"}");
}

Test(kernel, list_cut_short)
{
    kernel();
    tree_put("/proc/modules", "efa 172032 0 - Live 0x0\nnvidia 567");
    tree_run(&shk_probe_kernel);
    json_t *module = tree_value("kernel.module.nvidia");
    cr_expect(json_is_null(json_object_get(module, "state")));
    cr_expect(json_is_null(json_object_get(module, "refcount")));
    cr_expect_not_null(json_object_get(module, "problems"));
    expect_json("kernel.module.efa", "{\"version\":null,\"refcount\":0,\"state\":\"live\"}");
}

Test(kernel, names_are_not_prefixes)
{
    kernel();
    tree_remove("/sys/module/nvidia");
    tree_put("/proc/modules", "nvidia_drm 1 0 - Live 0x0\nefa_nv_peermem 1 0 - Live 0x0\n");
    tree_run(&shk_probe_kernel);
    expect_absent("kernel.module.nvidia");
    expect_absent("kernel.module.efa");
    cr_expect_eq(tree_state("kernel.module.efa_nv_peermem"), SHK_FACT_PRESENT);
}

Test(kernel, nothing_mounted_is_failed)
{
    tree_run(&shk_probe_kernel);
    expect_failed("kernel.cmdline", "/proc");
    expect_failed("kernel.thp", "/sys");
    expect_failed("sysctl.vm.overcommit_memory", "/proc/sys");
    expect_failed("kernel.config", "release");
}

Test(kernel, hostile_release)
{
    kernel();
    tree_hostcalls("{\"uname\":{\"release\":\"../../etc\"}}");
    tree_run(&shk_probe_kernel);
    expect_failed("kernel.config", "release");
}

Test(kernel, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = "/proc/cmdline", .key = "kernel.cmdline", .any_text = true},
        {.path = "/proc/sys/kernel/numa_balancing",
         .key = "sysctl.kernel.numa_balancing",
         .any_text = true},
        {.path = "/sys/kernel/mm/transparent_hugepage/enabled", .key = "kernel.thp"},
        {.path = "/boot/config-" RELEASE, .key = "kernel.config", .any_text = true},
        {.path = "/sys/module/nvidia/version",
         .key = "kernel.module.nvidia",
         .member = "version",
         .any_text = true},
    };
    kernel();
    tree_expect_damage(&shk_probe_kernel, victims, sizeof victims / sizeof *victims);
}

Test(kernel, unreadable_for_this_user)
{
    kernel();
    tree_mode("/proc/cmdline", 0);
    tree_mode("/proc/sys/kernel/numa_balancing", 0);
    tree_run_unprivileged(&shk_probe_kernel);
    expect_failed("kernel.cmdline", "Permission denied");
    expect_failed("sysctl.kernel.numa_balancing", "Permission denied");
}

Test(kernel, captures)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_kernel);
    cr_expect_eq(tree_state("kernel.module.cxi_ss1"), SHK_FACT_PRESENT);
    cr_expect_eq(tree_state("kernel.module.amdgpu"), SHK_FACT_PRESENT);
    expect_absent("kernel.module.efa");
    expect_int("sysctl.vm.unprivileged_userfaultfd", 1);
    tree_end();
    tree_begin();
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_kernel);
    cr_expect_eq(tree_state("kernel.module.efa"), SHK_FACT_PRESENT);
    expect_absent("kernel.module.nvidia_peermem");
}

static void group(int number, const char *type, const char *device)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/kernel/iommu_groups/%d/type", number);
    if (type)
        tree_put(path, "%s\n", type);
    snprintf(path, sizeof path, "/sys/kernel/iommu_groups/%d/devices/%s", number, device);
    tree_link(path, "../../../../nowhere");
}

Test(iommu, modes)
{
    static const struct {
        const char *types[3];
        const char *mode; /* NULL: failed */
    } rows[] = {
        {{"identity", "identity", "identity"}, "identity"},
        {{"DMA", "DMA", "DMA"}, "DMA"},
        {{"DMA-FQ", "DMA-FQ", "DMA-FQ"}, "DMA-FQ"},
        {{"identity", "DMA", "identity"}, "mixed"},
        {{"identity", "", "identity"}, NULL},
        {{"identity", NULL, "identity"}, NULL},
        {{"DMA", NULL, "identity"}, "mixed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_remove("/sys");
        tree_dir("/sys/kernel/mm");
        for (int j = 0; j < 3; j++)
            group(j, rows[i].types[j], "0000:01:00.0");
        tree_run(&shk_probe_iommu);
        expect_json("kernel.iommu.enabled", "true");
        if (rows[i].mode)
            expect_text("kernel.iommu.mode", rows[i].mode);
        else
            expect_failed("kernel.iommu.mode", "group 1");
        cr_expect_eq(json_array_size(tree_value("kernel.iommu.groups")), 3);
    }
}

Test(iommu, tables_of_the_firmware)
{
    tree_put("/sys/firmware/acpi/tables/DMAR", "secret\n");
    tree_put("/sys/firmware/acpi/tables/DSDT", "secret\n");
    tree_run(&shk_probe_iommu);
    expect_json("kernel.iommu.acpi", "[\"DMAR\"]");
    tree_remove("/sys/firmware/acpi");
    tree_run(&shk_probe_iommu);
    expect_absent("kernel.iommu.acpi");
    tree_remove("/sys/firmware");
    tree_run(&shk_probe_iommu);
    expect_failed("kernel.iommu.acpi", "/sys/firmware");
}

Test(iommu, groups_name_their_devices)
{
    group(10, "identity", "0000:c1:00.0");
    group(2, "DMA", "0000:c2:00.0");
    tree_run(&shk_probe_iommu);
    expect_json("kernel.iommu.groups",
                "[{\"group\":2,\"type\":\"DMA\",\"devices\":[\"0000:c2:00.0\"]},"
                "{\"group\":10,\"type\":\"identity\",\"devices\":[\"0000:c1:00.0\"]}]");
}

Test(iommu, off_and_unsupported_and_unknown)
{
    tree_dir("/sys/kernel/mm");
    tree_dir("/sys/kernel/iommu_groups");
    tree_run(&shk_probe_iommu);
    expect_json("kernel.iommu.enabled", "false");
    expect_text("kernel.iommu.mode", "none");
    tree_remove("/sys/kernel/iommu_groups");
    tree_run(&shk_probe_iommu);
    expect_json("kernel.iommu.enabled", "false");
    expect_text("kernel.iommu.mode", "none");
    expect_absent("kernel.iommu.groups");
    tree_remove("/sys/kernel/mm");
    tree_run(&shk_probe_iommu);
    expect_failed("kernel.iommu.enabled", "No such file");
    expect_failed("kernel.iommu.mode", "");
    expect_failed("kernel.iommu.groups", "");
    tree_put("/sys/kernel/iommu_groups", "a file\n");
    tree_dir("/sys/kernel/mm");
    tree_run(&shk_probe_iommu);
    expect_failed("kernel.iommu.enabled", "Not a directory");
}

Test(iommu, unreadable_group)
{
    tree_dir("/sys/kernel/mm");
    group(0, "identity", "0000:01:00.0");
    group(1, "identity", "0000:02:00.0");
    tree_mode("/sys/kernel/iommu_groups/1/type", 0);
    tree_run_unprivileged(&shk_probe_iommu);
    expect_json("kernel.iommu.enabled", "true");
    expect_failed("kernel.iommu.mode", "Permission denied");
    tree_mode("/sys/kernel/iommu_groups", 0);
    tree_run_unprivileged(&shk_probe_iommu);
    expect_failed("kernel.iommu.enabled", "Permission denied");
    tree_mode("/sys/kernel/iommu_groups", 0755);
}

Test(iommu, command_line)
{
    tree_dir("/proc/self");
    tree_put("/proc/cmdline",
             "a=b intel_iommu=on,sm_on iommu=off iommu=pt amd_iommux=1 iommu.strict=0\n");
    tree_run(&shk_probe_iommu);
    expect_json("kernel.iommu.cmdline",
                "{\"intel_iommu\":\"on,sm_on\",\"iommu\":\"pt\",\"iommu.strict\":\"0\"}");
    tree_remove("/proc/cmdline");
    tree_run(&shk_probe_iommu);
    expect_absent("kernel.iommu.cmdline");
}

Test(iommu, damaged_files)
{
    static const struct tree_victim victims[] = {
        {.path = "/sys/kernel/iommu_groups/0/type",
         .key = "kernel.iommu.groups",
         .member = "type",
         .any_text = true},
    };
    tree_dir("/sys/kernel/mm");
    group(0, "identity", "0000:01:00.0");
    tree_expect_damage(&shk_probe_iommu, victims, 1);
}

Test(iommu, one_group_made_to_translate)
{
    tree_copy_capture("slingshot-amd");
    tree_run(&shk_probe_iommu);
    expect_text("kernel.iommu.mode", "identity");
    cr_expect_eq(json_array_size(tree_value("kernel.iommu.hardware")), 4);
    tree_put("/sys/kernel/iommu_groups/13/type", "DMA-FQ\n");
    tree_run(&shk_probe_iommu);
    expect_text("kernel.iommu.mode", "mixed");
}

Test(iommu, virtual_machine_without)
{
    tree_copy_capture("efa-no-provider");
    tree_run(&shk_probe_iommu);
    expect_text("kernel.iommu.mode", "none");
    expect_json("kernel.iommu.enabled", "false");
}

Test(container, kinds)
{
    static const struct {
        const char *file, *calls, *cgroup, *root, *kind;
    } rows[] = {
        {.cgroup = "0::/user.slice/user-0.slice", .kind = "none"},
        {.file = "/.dockerenv", .cgroup = "0::/", .kind = "docker"},
        {.file = "/run/.containerenv", .cgroup = "0::/", .kind = "podman"},
        {.file = "/.singularity.d/runscript", .cgroup = "0::/x", .kind = "apptainer"},
        {.calls = "{\"environ\":{\"APPTAINER_NAME\":\"x.sif\"}}",
         .cgroup = "0::/x",
         .kind = "apptainer"},
        {.calls = "{\"environ\":{\"SINGULARITY_NAME\":\"\"}}", .cgroup = "0::/x", .kind = "none"},
        {.calls = "{\"environ\":{\"container\":\"podman\"}}", .cgroup = "0::/x", .kind = "podman"},
        {.calls = "{\"environ\":{\"container\":\"oci\"}}", .cgroup = "0::/x", .kind = "other"},
        {.cgroup = "12:pids:/docker/0123456789abcdef", .kind = "docker"},
        {.cgroup = "0::/system.slice/docker-0123.scope", .kind = "docker"},
        {.cgroup = "0::/kubepods.slice/pod1", .kind = "kubernetes"},
        {.cgroup = "0::/machine.slice/libpod-0123.scope", .kind = "podman"},
        {.cgroup = "0::/x",
         .kind = "enroot",
         .root = "30 1 0:40 /home/u/.local/share/enroot/pyxis_1 / rw - xfs /dev/sda rw\n"},
        {.cgroup = "0::/x",
         .kind = "none",
         .root = "30 1 0:40 / / rw - xfs /dev/sda rw\n31 30 0:41 /a/enroot/b /mnt rw - xfs x rw\n"},
        {.cgroup = "0::/",
         .kind = "containerd", /* ctr, in a cgroup namespace */
         .root = "76 50 0:40 / / rw,relatime - overlay overlay rw,lowerdir="
                 "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/2/fs\n"},
        {.file = "/.dockerenv",
         .cgroup = "0::/",
         .kind = "docker", /* with containerd's store of images */
         .root = "76 50 0:40 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/"
                 "containerd/daemon/io.containerd.snapshotter.v1.overlayfs/snapshots/2/fs\n"},
        /* a Slurm job in an image that docker built: the runtime that runs it counts */
        {.file = "/.dockerenv",
         .calls = "{\"environ\":{\"APPTAINER_NAME\":\"x.sif\"}}",
         .cgroup = "0::/x",
         .kind = "apptainer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tree_end();
        tree_begin();
        if (rows[i].file)
            tree_put(rows[i].file, "x\n");
        if (rows[i].calls)
            tree_hostcalls(rows[i].calls);
        tree_put("/proc/self/cgroup", "%s\n", rows[i].cgroup);
        if (rows[i].root)
            tree_put("/proc/self/mountinfo", "%s", rows[i].root);
        tree_run(&shk_probe_container);
        expect_text("host.container", rows[i].kind);
    }
}

Test(container, unknown_without_cgroups)
{
    tree_run(&shk_probe_container);
    expect_failed("host.container", "/proc/self/cgroup");
    tree_fifo("/proc/self/cgroup");
    tree_run(&shk_probe_container);
    expect_failed("host.container", "not a regular file");
}
