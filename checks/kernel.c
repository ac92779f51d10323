#include "checks/pci.h"

#include <string.h>

/* What an IOMMU gets between: GPUs and fabric NICs; in facts without kinds display, accelerator,
 * network and processor classes. */
static bool is_peer(const json_t *device)
{
    const char *class = shk_member_text(device, "class");
    if (shk_member_text(device, "kind"))
        return shk_pci_is_gpu(device) || shk_pci_is_fabric_nic(device);
    if (!class)
        return false;
    unsigned long code = strtoul(class, NULL, 16);
    unsigned base = code > 0xffff ? code >> 16 : code >> 8;
    return base == 0x03 || base == 0x12 || base == 0x02 || base == 0x0b;
}

/* Type of the IOMMU group that holds a PCI address. */
static const char *group_type(const json_t *groups, const char *addr)
{
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)groups, i,
                       group) if (shk_array_has(json_object_get(group, "devices"), addr,
                                                true)) return shk_member_text(group, "type");
    return NULL;
}

static bool is_translated(const char *type)
{
    return type && strncmp(type, "DMA", 3) == 0;
}

/* First GPU or NIC whose group translates; NULL when none does. *known_p: at least one group of
 * such a device was seen. */
static const char *translated_device(const struct shk_facts *facts, bool *known_p)
{
    const json_t *groups = shk_facts_get_array(facts, "kernel.iommu.groups");
    const char *found = NULL;
    size_t i;
    json_t *device;
    *known_p = false;
    json_array_foreach(shk_facts_get_array(facts, "pci.devices"), i, device)
    {
        const char *addr = shk_member_text(device, "addr");
        if (!addr || !is_peer(device))
            continue;
        const char *type = group_type(groups, addr);
        *known_p |= type != NULL;
        if (!found && is_translated(type))
            found = addr;
    }
    return found;
}

static bool cmdline_has(const struct shk_facts *facts, const char *word)
{
    const char *p = shk_facts_get_text(facts, "kernel.cmdline");
    size_t len = strlen(word);
    while (p && (p = strstr(p, word))) {
        bool starts = true, ends = p[len] == '\0' || p[len] == ' ' || p[len] == ',';
        if (p != shk_facts_get_text(facts, "kernel.cmdline"))
            starts = p[-1] == ' ';
        if (starts && ends)
            return true;
        p += len;
    }
    return false;
}

static bool asked_passthrough(const struct shk_facts *facts)
{
    return cmdline_has(facts, "iommu=pt") || cmdline_has(facts, "iommu.passthrough=1") ||
           cmdline_has(facts, "amd_iommu=off") || cmdline_has(facts, "intel_iommu=off") ||
           cmdline_has(facts, "iommu=off");
}

static void iommu_translating(const struct shk_check_context *ctx, struct shk_row *row,
                              const char *device)
{
    bool amd = shk_device_count(ctx->facts, "gpu-amd") > 0;
    const char *mode = shk_facts_get_text(ctx->facts, "kernel.iommu.mode");
    shk_row_verdict(row, amd ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "iommu-not-passthrough";
    shk_row_text(&row->observed, "%s%s%s", mode ? mode : "translating", device ? ", device " : "",
                 device ? device : "");
    shk_row_text(&row->expected, "identity (pass-through), or IOMMU off");
    shk_row_text(&row->why,
                 "%sGPUs and NICs reach each other's memory through the IOMMU, slowly "
                 "or not at all",
                 asked_passthrough(ctx->facts)
                     ? "the command line asks for pass-through, but the groups translate: "
                     : "");
    shk_row_text(&row->fix, "add iommu=pt to the kernel command line and reboot");
}

static void eval_iommu(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_iommu, "amd_iommu, iommu=pt");
    row.fact = "kernel.iommu.mode, kernel.iommu.groups, kernel.cmdline";
    row.source = "ROCm/rccl:src/init.cc; NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (shk_gpu_count(ctx->facts) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    struct shk_fact fact;
    bool known;
    const char *mode = shk_facts_get_text(ctx->facts, "kernel.iommu.mode");
    const char *device = translated_device(ctx->facts, &known);
    enum shk_look enabled = shk_look(ctx->facts, "kernel.iommu.enabled", &fact);
    if ((enabled == SHK_LOOK_PRESENT && json_is_false(fact.value)) ||
        (mode && strcmp(mode, "none") == 0)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "IOMMU off");
    } else if (mode && strcmp(mode, "identity") == 0) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "identity");
    } else if (known && !device) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%s, but identity for GPUs and NICs", mode ? mode : "mixed");
    } else if (device || is_translated(mode)) {
        if (shk_is_guest(ctx->facts)) {
            shk_row_na(findings, &row, "a virtual machine: the host decides");
            return;
        }
        iommu_translating(ctx, &row, device);
    } else if (!mode && enabled != SHK_LOOK_PRESENT && asked_passthrough(ctx->facts)) {
        shk_row_verdict(&row, SHK_PASS, SHK_DECLARED);
        shk_row_text(&row.observed, "on the command line");
    } else {
        shk_row_unread(findings, &row, ctx->facts, "kernel.iommu.mode");
        return;
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_iommu = {
    .id = "kernel.iommu",
    .family = "kernel",
    .title = "The IOMMU does not translate between GPUs and NICs",
    .eval = eval_iommu,
    .doc = "Facts: kernel.iommu.{enabled, mode, groups}, pci.devices, kernel.cmdline, host.virt.\n"
           "The effective type of the groups that hold GPUs and NICs decides, not the command "
           "line. Translating is FAIL with AMD GPUs (RCCL asks for iommu=pt in a warning of its "
           "own) and WARN otherwise; n/a in a virtual machine and without GPUs.",
};

static bool driver_bound(const struct shk_facts *facts, const char *driver)
{
    size_t i;
    json_t *device;
    json_array_foreach(shk_facts_get_array(facts, "pci.devices"), i, device)
    {
        const char *bound = shk_member_text(device, "driver");
        if (bound && strcmp(bound, driver) == 0)
            return true;
    }
    return false;
}

/* Modules by the hardware that needs them; the first that is loaded will do. */
static const struct {
    const char *kind, *modules[3], *package;
} module_needs[] = {
    {"gpu-nvidia", {"nvidia"}, "the NVIDIA driver"},
    {"gpu-amd", {"amdgpu"}, "the amdgpu driver"},
    {"neuron", {"neuron"}, "aws-neuronx-dkms"},
    {"cxi", {"cxi_ss1", "cxi_core"}, "the Slingshot host software"},
    {"efa", {"efa"}, "the EFA installer"},
    {"mlx5", {"mlx5_core"}, "the mlx5 driver"},
};

static enum shk_look module_look(const struct shk_facts *facts, const char *module)
{
    char *key = shk_strf("kernel.module.%s", module);
    enum shk_look look = key ? shk_look(facts, key, NULL) : SHK_LOOK_MISSING;
    free(key);
    return look;
}

static void module_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       size_t need)
{
    const char *const *modules = module_needs[need].modules;
    char *setting = shk_strf("module %s", modules[0]);
    struct shk_row row = shk_row_start(&shk_check_modules, setting ? setting : modules[0]);
    bool absent = false;
    row.fact = "kernel.module.*";
    for (size_t i = 0; i < 3 && modules[i]; i++) {
        enum shk_look look = module_look(ctx->facts, modules[i]);
        if (look == SHK_LOOK_PRESENT || driver_bound(ctx->facts, modules[i])) {
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
            shk_row_text(&row.observed, "%s is loaded", modules[i]);
            shk_row_end(findings, &row);
            free(setting);
            return;
        }
        absent |= look == SHK_LOOK_ABSENT;
    }
    if (absent) {
        shk_row_verdict(&row, SHK_FAIL, SHK_EFFECT);
        row.diagnosis = "accelerator-driver-missing";
        if (strcmp(module_needs[need].kind, "efa") == 0)
            row.diagnosis = "efa-device-open-failure";
        else if (strcmp(module_needs[need].kind, "cxi") == 0)
            row.diagnosis = "cxi-provider-absent";
        shk_row_text(&row.observed, "not loaded");
        shk_row_text(&row.why, "the device is on the bus, but no driver drives it");
        shk_row_text(&row.fix, "load %s (%s)", modules[0], module_needs[need].package);
        shk_row_end(findings, &row);
    } else {
        shk_row_unread(findings, &row, ctx->facts, "kernel.module");
    }
    free(setting);
}

static void eval_modules(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof(module_needs) / sizeof(module_needs[0]); i++) {
        /* What the bus shows needs a driver, whatever the profile says. */
        char *key = shk_strf("pci.count.%s", module_needs[i].kind);
        if (key && shk_facts_get_int(ctx->facts, key, 0) > 0)
            module_row(ctx, findings, i);
        free(key);
    }
}

const struct shk_check shk_check_modules = {
    .id = "kernel.module",
    .family = "kernel",
    .title = "GPUs and NICs on the bus have their kernel module",
    .eval = eval_modules,
    .doc = "Facts: pci.count.*, kernel.module.<name>, pci.devices[].driver (for drivers that are "
           "built in).\nA device without driver is FAIL.",
};

static void eval_numa(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "sysctl.kernel.numa_balancing";
    struct shk_row row = shk_row_start(&shk_check_numa_balancing, "kernel.numa_balancing");
    row.fact = key;
    row.source = "ROCm/rccl:src/init.cc";
    if (shk_gpu_count(ctx->facts) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    struct shk_fact fact;
    enum shk_look look = shk_look(ctx->facts, key, &fact);
    const char *text = look == SHK_LOOK_PRESENT ? json_string_value(fact.value) : NULL;
    long long value = text ? strtoll(text, NULL, 10) : shk_facts_get_int(ctx->facts, key, -1);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this kernel has no NUMA balancing");
        return;
    }
    if (value < 0) {
        shk_row_unread(findings, &row, ctx->facts, key);
        return;
    }
    shk_row_text(&row.observed, "%lld", value);
    shk_row_verdict(&row, value ? SHK_WARN : SHK_PASS, SHK_EFFECT);
    if (value) {
        row.diagnosis = "numa-balancing-enabled";
        shk_row_text(&row.expected, "0");
        shk_row_text(&row.why, "moving pages under running GPUs gives jitter");
        shk_row_text(&row.fix, "sysctl -w kernel.numa_balancing=0");
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_numa_balancing = {
    .id = "kernel.numa_balancing",
    .family = "kernel",
    .title = "Automatic NUMA balancing is off on GPU nodes",
    .eval = eval_numa,
    .doc = "Fact: sysctl.kernel.numa_balancing.\nOn is WARN with GPUs: RCCL warns of it itself.",
};
