/* Where GPUs and NICs sit: NUMA nodes, and the window into GPU memory. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"

#include <string.h>

struct places {
    struct shk_tally tally;
    unsigned devices;
    json_t *lost; /* addresses of those without a node */
};

static void read_places(struct shk_row *row, struct places *places)
{
    json_t *devices = shk_read_pci_devices(row), *device;
    size_t i;
    json_array_foreach(devices, i, device)
    {
        const char *addr = shk_member_name(device, "addr");
        enum shk_pci_role role = shk_read_pci_role(row, device);
        long long numa = 0;
        if (role != SHK_PCI_GPU && role != SHK_PCI_FABRIC_NIC)
            continue;
        places->devices++;
        if (shk_look_member_int(device, "numa", &numa) != SHK_LOOK_PRESENT) {
            shk_tally_unread(&places->tally, "%s", addr);
        } else if (numa < 0) {
            shk_tally_bad(&places->tally, "%s", addr);
            json_array_append_new(places->lost, json_string(addr));
        } else {
            shk_tally_good(&places->tally);
        }
    }
}

static void no_place(struct shk_row *row, const struct places *places, size_t nodes)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    bool guest = false, alone = places->devices == 1;
    (void)shk_read_guest(row, &guest);
    shk_strbuf_array(&names, places->lost, 4);
    shk_row_verdict(row, alone ? SHK_NOTE : SHK_WARN, SHK_EFFECT);
    if (!alone)
        row->diagnosis = guest ? "vm-topology-missing" : "nic-numa-unknown";
    shk_row_text(&row->observed, "-1 for %s", shk_strbuf_text(&names));
    shk_row_text(&row->expected, "one of %zu nodes", nodes);
    shk_row_text(&row->why, "the firmware does not say where %s",
                 alone ? "it is; there is no other device to be near to"
                       : "they are, so libraries take them for far away or near by chance");
    shk_row_fix(row, guest ? "topology-guest" : "topology-host", NULL);
    shk_strbuf_free(&names);
}

static void eval_numa(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_pci_numa, "NUMA nodes of devices");
    json_t *nodes = NULL;
    row.fact = "pci.devices, host.numa";
    enum shk_look look = shk_read_array(&row, "host.numa", &nodes);
    if (look == SHK_LOOK_PRESENT && !json_array_size(nodes))
        shk_row_lacks(&row, "host.numa", "host.numa names no NUMA node");
    if (look == SHK_LOOK_ABSENT || (nodes && json_array_size(nodes) < 2)) {
        shk_row_na(findings, &row, "one NUMA node");
        return;
    }
    struct places places = {.tally = SHK_TALLY_INIT, .lost = json_array()};
    read_places(&row, &places);
    if (!shk_tally_judge(&places.tally, &row, SHK_WARN, SHK_EFFECT, "pci.devices", "devices")) {
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    } else {
        if (places.tally.bad && nodes)
            no_place(&row, &places, json_array_size(nodes));
        else if (places.tally.bad)
            shk_row_verdict(&row, SHK_UNKNOWN, SHK_NOT_COVERED);
        else if (places.tally.good)
            shk_row_text(&row.observed, "known for %u devices", places.tally.good);
        shk_row_end(findings, &row);
    }
    shk_tally_free(&places.tally);
    json_decref(places.lost);
}

const struct shk_check shk_check_pci_numa = {
    .id = "pci.numa",
    .family = "kernel",
    .title = "The NUMA node of GPUs and NICs is known",
    .eval = eval_numa,
    .doc = "Facts: pci.devices[].numa, host.numa.\n"
           "-1 on a node with several NUMA nodes is WARN, a note for the only device; n/a with one "
           "NUMA node.",
};

/* Bytes of memory of the GPU at addr, as the driver or NVML has it. */
static bool gpu_memory(const struct shk_facts *facts, const char *kind, const char *addr,
                       long long *memory_p)
{
    const char *list = strcmp(kind, "gpu-amd") == 0 ? "gpu.amd.devices" : "nvml.devices";
    json_t *gpus = NULL, *gpu;
    size_t i;
    (void)shk_look_array(facts, list, &gpus);
    json_array_foreach(gpus, i, gpu)
    {
        if (strcmp(shk_member_name(gpu, "pci"), addr) == 0)
            return shk_look_member_int(gpu, "memory", memory_p) == SHK_LOOK_PRESENT &&
                   *memory_p > 0;
    }
    return false;
}

static long long largest_bar(const json_t *device)
{
    long long largest = 0;
    json_t *bars = NULL, *bar;
    size_t i;
    (void)shk_look_member_numbers(device, "bars", &bars);
    json_array_foreach(bars, i, bar)
    {
        if (json_integer_value(bar) > largest)
            largest = json_integer_value(bar);
    }
    return largest;
}

struct windows {
    struct shk_tally tally;
    bool amd;         /* one of the partly visible is AMD's */
    const char *addr; /* of the first of those */
    long long bar, memory;
};

static void look_through(struct shk_row *row, const json_t *device, struct windows *w)
{
    const char *addr = shk_member_name(device, "addr"), *kind = shk_member_name(device, "kind");
    long long bar = largest_bar(device), memory = 0;
    if (!gpu_memory(row->ctx->facts, kind, addr, &memory) || !bar) {
        shk_tally_unread(&w->tally, "%s", addr);
    } else if (bar >= memory) {
        shk_tally_good(&w->tally);
    } else {
        shk_tally_bad(&w->tally, "%s", addr);
        w->amd |= strcmp(kind, "gpu-amd") == 0;
        w->addr = addr;
        w->bar = bar;
        w->memory = memory;
    }
}

/* NVIDIA GPUs map buffers on demand; peers of AMD GPUs see what the window shows. */
static void small_window(struct shk_findings *findings, struct shk_row *row,
                         const struct windows *w)
{
    char *bar = shk_bytes_text(w->bar), *memory = shk_bytes_text(w->memory);
    enum shk_pci_party party = w->amd ? shk_read_pci_party(row) : SHK_PARTY_NONE;
    shk_row_text(&row->observed, "%s at %s", bar ? bar : "", w->addr);
    if (!w->amd) {
        shk_row_na(findings, row,
                   "the window is smaller than the %s of memory, as on GPUs for inference: enough "
                   "for NCCL's buffers, not to register all memory with a NIC",
                   memory ? memory : "");
    } else {
        bool alone = party == SHK_PARTY_NONE || party == SHK_PARTY_UNTOLD;
        shk_row_verdict(row, alone ? SHK_NOTE : SHK_WARN, SHK_EFFECT);
        shk_row_text(&row->expected, "%s, all of the memory", memory ? memory : "");
        shk_row_text(&row->why, alone ? "no other GPU or NIC is here to look through the window"
                                      : "peers and NICs reach only what the window shows, so ROCm "
                                        "offers no peer access to this GPU");
        shk_row_fix(row, "large-bar", NULL);
        shk_row_end(findings, row);
    }
    free(bar);
    free(memory);
}

static void eval_bar(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_gpu_bar, "gpu-bar1-size");
    struct windows w = {.tally = SHK_TALLY_INIT};
    json_t *devices = shk_read_pci_devices(&row), *device;
    size_t i;
    row.fact = "pci.devices, gpu.amd.devices, nvml.devices";
    row.source = "docs.nvidia.com: GPUDirect RDMA; ROCm/ROCK-Kernel-Driver: amdgpu_device.c";
    json_array_foreach(devices, i, device)
    {
        enum shk_pci_role role = shk_read_pci_role(&row, device);
        if (role == SHK_PCI_GPU && strcmp(shk_member_name(device, "kind"), "neuron") != 0)
            look_through(&row, device, &w);
    }
    if (!shk_tally_judge(&w.tally, &row, SHK_WARN, SHK_EFFECT, "pci.devices", "GPUs")) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (w.tally.bad) {
        small_window(findings, &row, &w);
    } else {
        if (w.tally.good)
            shk_row_text(&row.observed, "%u GPUs show all of their memory", w.tally.good);
        shk_row_end(findings, &row);
    }
    shk_tally_free(&w.tally);
}

const struct shk_check shk_check_gpu_bar = {
    .id = "gpu.bar",
    .family = "kernel",
    .title = "The PCIe BAR exposes all of the GPU memory",
    .eval = eval_bar,
    .doc = "Facts: pci.devices[].bars, gpu.amd.devices[].memory, nvml.devices[].memory.\n"
           "The largest base address register smaller than the memory is WARN for AMD GPUs, whose "
           "peer access needs it (the kernel calls the opposite \"large BAR\"), a note where "
           "there is no peer; NVIDIA GPUs map buffers on demand: n/a.",
};
