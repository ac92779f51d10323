/* What the kernel brings for GPUs and NICs. */
#include "checks/base/remedy.h"
#include "checks/hardware/pci.h"

#include <string.h>

/* Modules by the hardware that needs them; the first that is loaded will do. */
static const struct need {
    const char *kind, *modules[3], *package;
} module_needs[] = {
    {"gpu-nvidia", {"nvidia"}, "the NVIDIA driver"},
    {"gpu-amd", {"amdgpu"}, "the amdgpu driver"},
    {"neuron", {"neuron"}, "aws-neuronx-dkms"},
    {"cxi", {"cxi_ss1", "cxi_core"}, "the Slingshot host software"},
    {"efa", {"efa"}, "the EFA installer"},
    {"mlx5", {"mlx5_core"}, "the mlx5 driver"},
};

static bool driver_bound(const struct shk_facts *facts, const struct need *need)
{
    json_t *devices = NULL, *device;
    size_t i;
    (void)shk_look_array(facts, "pci.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        const char *bound = NULL;
        if (shk_look_member_text(device, "driver", &bound) == SHK_LOOK_PRESENT &&
            shk_list_has(need->modules, bound))
            return true;
    }
    return false;
}

/* A driver may be built in: then devices are bound to it, and there may be no module. */
static bool driver_shows(const struct shk_facts *facts, const struct need *need)
{
    bool loaded = driver_bound(facts, need);
    for (size_t i = 0; !loaded && i < 3 && need->modules[i]; i++) {
        char *key = shk_strf("kernel.module.%s", need->modules[i]);
        loaded = key && shk_look(facts, key, NULL) == SHK_LOOK_PRESENT;
        free(key);
    }
    return loaded;
}

bool shk_driver_seen(const struct shk_facts *facts, const char *kind)
{
    for (size_t i = 0; i < sizeof module_needs / sizeof *module_needs; i++)
        if (strcmp(module_needs[i].kind, kind) == 0)
            return driver_shows(facts, &module_needs[i]);
    return false;
}

static bool driver_loaded(struct shk_row *row, const struct need *need)
{
    bool loaded = driver_shows(row->ctx->facts, need);
    if (loaded)
        shk_row_was_read(row);
    return loaded;
}

/* Whatever a driver could be seen by and was not read is remembered. */
static void read_modules(struct shk_row *row, const struct need *need)
{
    json_t *devices = shk_read_pci_devices(row), *device;
    size_t i;
    for (size_t m = 0; m < 3 && need->modules[m]; m++) {
        char *key = shk_strf("kernel.module.%s", need->modules[m]);
        struct shk_fact fact = {.reason = NULL};
        if (!key || shk_look(row->ctx->facts, key, &fact) != SHK_LOOK_ABSENT)
            shk_row_lacks(row, "kernel.module.*", "whether %s is loaded was not read: %s",
                          need->modules[m], fact.reason ? fact.reason : "nothing looked");
        free(key);
    }
    json_array_foreach(devices, i, device)
    {
        const char *bound = NULL;
        if (shk_look_member_text(device, "driver", &bound) == SHK_LOOK_FAILED)
            shk_row_lacks(row, "pci.devices", "the driver of %s was not read",
                          shk_member_name(device, "addr"));
    }
}

bool shk_module_forbidden(const struct shk_facts *facts, const char *module)
{
    static const char option[] = "module_blacklist=";
    const char *line = NULL;
    size_t len = strlen(module);
    (void)shk_look_text(facts, "kernel.cmdline", &line);
    for (const char *word = line; word && (word = strstr(word, option));) {
        bool whole = word == line || word[-1] == ' ';
        word += sizeof option - 1;
        for (const char *name = word; whole && *name && *name != ' ';) {
            size_t n = strcspn(name, ", ");
            if (n == len && strncmp(name, module, n) == 0)
                return true;
            name += n + (name[n] == ',');
        }
    }
    return false;
}

static void not_loaded(struct shk_row *row, const struct need *need)
{
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "accelerator-driver-missing";
    if (strcmp(need->kind, "efa") == 0)
        row->diagnosis = "efa-device-open-failure";
    else if (strcmp(need->kind, "cxi") == 0)
        row->diagnosis = "cxi-provider-absent";
    shk_row_text(&row->observed, "not loaded");
    if (shk_module_forbidden(row->ctx->facts, need->modules[0])) {
        shk_row_text(&row->why,
                     "the device is on the bus, but the kernel was booted with an option "
                     "(module_blacklist) by which it refuses to load this driver");
        shk_row_fix(row, "allow-module", "module", need->modules[0], NULL);
        return;
    }
    shk_row_text(&row->why, "the device is on the bus, but no driver drives it");
    shk_row_fix(row, "load-module-of", "module", need->modules[0], "package", need->package, NULL);
}

static void module_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct need *need)
{
    char *setting = shk_strf("module %s", need->modules[0]);
    struct shk_row row =
        shk_row_begin(ctx, &shk_check_modules, setting ? setting : need->modules[0]);
    row.fact = "kernel.module.*";
    if (shk_read_pci_count(&row, need->kind) >= 0) {
        bool loaded = driver_loaded(&row, need);
        if (loaded) {
            shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
            shk_row_text(&row.observed, "loaded");
        } else {
            read_modules(&row, need);
            if (!shk_row_lacking(&row))
                not_loaded(&row, need);
        }
    }
    shk_row_end(findings, &row);
    free(setting);
}

/* What the bus shows needs a driver, whatever the profile says. Facts that do not speak of a kind
 * at all make no row; a driver that is loaded does. */
static bool may_be_here(const struct shk_check_context *ctx, const struct need *need)
{
    struct shk_row quiet = {.ctx = ctx};
    char *key = shk_strf("pci.count.%s", need->kind);
    long long count = shk_read_pci_count(&quiet, need->kind);
    bool failed = key && shk_look(ctx->facts, key, NULL) == SHK_LOOK_FAILED;
    free(quiet.unread_why);
    free(key);
    return count > 0 || (count < 0 && (failed || driver_shows(ctx->facts, need)));
}

static void eval_modules(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    for (size_t i = 0; i < sizeof module_needs / sizeof *module_needs; i++)
        if (may_be_here(ctx, &module_needs[i]))
            module_row(ctx, findings, &module_needs[i]);
}

const struct shk_check shk_check_modules = {
    .id = "kernel.module",
    .diagnosis = "accelerator-driver-missing",
    .family = "kernel",
    .title = "GPUs and NICs on the bus have their kernel module loaded",
    .eval = eval_modules,
    .doc = "Facts: pci.count.*, kernel.module.<name>, pci.devices[].driver (for drivers that are "
           "built in), for the text kernel.cmdline.\nA device without driver is FAIL.",
};

/* Is the processor NVIDIA's Grace (Neoverse V2 with NVIDIA GPUs)? */
static enum shk_look read_grace(struct shk_row *row, bool *grace_p)
{
    const char *cpu = NULL, *arch = NULL;
    enum shk_look look = shk_read_text(row, "host.arch", &arch);
    if (look != SHK_LOOK_PRESENT || strcmp(arch, "aarch64") != 0)
        return look;
    look = shk_read_text(row, "host.cpu", &cpu);
    *grace_p = look == SHK_LOOK_PRESENT && (strstr(cpu, "Grace") || strstr(cpu, "Neoverse-V2"));
    return look;
}

static void balances(struct shk_row *row)
{
    bool grace = false;
    long long amd = shk_read_pci_count(row, "gpu-amd");
    if (amd <= 0)
        (void)read_grace(row, &grace);
    row->diagnosis = "numa-balancing-enabled";
    shk_row_text(&row->expected, "0");
    shk_row_fix(row, "numa-balancing-off", NULL);
    if (amd > 0) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row->why, "moving pages under running GPUs gives jitter: RCCL warns of it, "
                                "too");
    } else if (grace) {
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        row->source = "NVIDIA Grace CPU Benchmarking Guide: Platform Configuration";
        shk_row_text(&row->why, "the kernel unmaps and moves pages that GPUs work on: NVIDIA's "
                                "guide for Grace wants it off");
    } else {
        shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        row->diagnosis = NULL;
        shk_row_text(&row->why, "the kernel's default on several NUMA nodes; RCCL and NVIDIA's "
                                "guide for Grace want it off, nobody does for these GPUs");
    }
}

static void eval_numa(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    static const char key[] = "sysctl.kernel.numa_balancing";
    struct shk_row row = shk_row_begin(ctx, &shk_check_numa_balancing, "kernel.numa_balancing");
    long long value = -1;
    row.fact = key;
    row.source = "ROCm/rccl:src/init.cc";
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    enum shk_look look = shk_read_int(&row, key, &value);
    if (look == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "this kernel has no NUMA balancing");
        return;
    }
    if (look == SHK_LOOK_PRESENT && value < 0)
        shk_row_lacks(&row, key, "%s has an unexpected form", key);
    if (value >= 0)
        shk_row_text(&row.observed, "%lld", value);
    if (value > 0)
        balances(&row);
    else if (value == 0)
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_numa_balancing = {
    .id = "kernel.numa_balancing",
    .family = "kernel",
    .title = "Automatic NUMA balancing is off on GPU nodes",
    .eval = eval_numa,
    .doc = "Facts: sysctl.kernel.numa_balancing, pci.count.gpu-amd, host.arch, host.cpu.\n"
           "On is WARN with AMD GPUs (RCCL warns of it itself) and on Grace (NVIDIA's "
           "benchmarking guide: numa_balancing=disable). On other nodes with GPUs it is a note: it "
           "is the kernel's default, and no source asks for another value.",
};
