/* Where GPUs and NICs sit: NUMA nodes, and the window into GPU memory. */
#include "checks/pci.h"

#include <string.h>

static void eval_numa(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_pci_numa, "NUMA nodes of devices");
    json_t *devices = shk_facts_get_array(ctx->facts, "pci.devices"), *device;
    json_t *nodes = shk_facts_get_array(ctx->facts, "host.numa");
    json_t *lost = json_array();
    size_t i, count = 0, unread = 0;
    row.fact = "pci.devices, host.numa";
    json_array_foreach(devices, i, device)
    {
        const json_t *numa = json_object_get(device, "numa");
        if (!shk_pci_is_gpu(device) && !shk_pci_is_fabric_nic(device))
            continue;
        count++;
        unread += !json_is_integer(numa);
        if (json_is_integer(numa) && json_integer_value(numa) < 0)
            json_array_append(lost, json_object_get(device, "addr"));
    }
    if (!devices && shk_gpu_count(ctx->facts) != 0) {
        shk_row_unread(findings, &row, ctx->facts, "pci.devices");
    } else if (!count) {
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    } else if (nodes && json_array_size(nodes) < 2) {
        shk_row_na(findings, &row, "one NUMA node");
    } else if (!nodes) {
        shk_row_unread(findings, &row, ctx->facts, "host.numa");
    } else if (json_array_size(lost)) {
        struct shk_strbuf names = SHK_STRBUF_INIT;
        shk_strbuf_array(&names, lost, 4);
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = shk_is_guest(ctx->facts) ? "vm-topology-missing" : "nic-numa-unknown";
        shk_row_text(&row.observed, "-1 for %s", shk_strbuf_text(&names));
        shk_row_text(&row.expected, "one of %zu nodes", json_array_size(nodes));
        shk_row_text(&row.why, "the firmware does not say where they are, so libraries take them "
                               "for far away or near by chance");
        shk_row_text(&row.fix, shk_is_guest(ctx->facts)
                                   ? "set NCCL_TOPO_FILE to the file that the provider gives"
                                   : "update the firmware, or set NCCL_TOPO_FILE");
        shk_strbuf_free(&names);
        shk_row_end(findings, &row);
    } else if (unread) {
        shk_row_text(&row.why, "%zu of %zu devices do not tell their NUMA node", unread, count);
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "known for %zu devices", count);
        shk_row_end(findings, &row);
    }
    json_decref(lost);
}

const struct shk_check shk_check_pci_numa = {
    .id = "pci.numa",
    .family = "kernel",
    .title = "GPUs and NICs know their NUMA node",
    .eval = eval_numa,
    .doc = "Facts: pci.devices[].numa, host.numa.\n"
           "-1 on a node with several NUMA nodes is WARN; n/a with one.",
};

/* Bytes of memory of the GPU at addr, as the driver or NVML has it; 0 not known. */
static long long gpu_memory(const struct shk_facts *facts, const char *addr)
{
    static const char *const lists[] = {"gpu.amd.devices", "nvml.devices"};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        size_t i;
        json_t *gpu;
        json_array_foreach(shk_facts_get_array(facts, lists[l]), i, gpu)
        {
            const char *pci = shk_member_text(gpu, "pci");
            if (pci && strcmp(pci, addr) == 0)
                return shk_member_int(gpu, "memory", 0);
        }
    }
    return 0;
}

static long long largest_bar(const json_t *device)
{
    long long largest = 0;
    size_t i;
    json_t *bar;
    json_array_foreach(json_object_get(device, "bars"), i, bar)
    {
        if (json_integer_value(bar) > largest)
            largest = json_integer_value(bar);
    }
    return largest;
}

struct windows {
    unsigned whole, partly, unknown;
    bool amd; /* one of the partly visible is AMD's */
    const char *addr;
    long long bar, memory;
};

static void look_through(const struct shk_facts *facts, const json_t *device, struct windows *w)
{
    const char *addr = shk_member_text(device, "addr"), *kind = shk_member_text(device, "kind");
    long long bar = largest_bar(device), memory = addr ? gpu_memory(facts, addr) : 0;
    if (!bar || !memory) {
        w->unknown++;
    } else if (bar >= memory) {
        w->whole++;
    } else {
        w->partly++;
        w->amd |= kind && strcmp(kind, "gpu-amd") == 0;
        w->addr = addr;
        w->bar = bar;
        w->memory = memory;
    }
}

static void eval_bar(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_gpu_bar, "gpu-bar1-size");
    struct windows w = {0};
    size_t i;
    json_t *device;
    row.fact = "pci.devices, gpu.amd.devices, nvml.devices";
    row.source = "docs.nvidia.com: GPUDirect RDMA; ROCm/ROCK-Kernel-Driver: amdgpu_device.c";
    json_array_foreach(shk_facts_get_array(ctx->facts, "pci.devices"), i,
                       device) if (shk_pci_is_gpu(device) &&
                                   strcmp(shk_member_text(device, "kind"), "neuron") != 0)
        look_through(ctx->facts, device, &w);
    char *bar = shk_bytes_text(w.bar), *memory = shk_bytes_text(w.memory);
    if (w.partly)
        shk_row_text(&row.observed, "%s at %s", bar ? bar : "", w.addr);
    if (!w.whole && !w.partly && !w.unknown) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (w.partly && w.amd) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.expected, "%s, all of the memory", memory ? memory : "");
        shk_row_text(&row.why, "peers and NICs reach only what the window shows, so ROCm offers "
                               "no peer access to this GPU");
        shk_row_text(&row.fix, "switch on \"Above 4G decoding\" and \"Resizable BAR\" in the "
                               "firmware");
        shk_row_end(findings, &row);
    } else if (w.partly) {
        shk_row_na(findings, &row,
                   "the window is smaller than the %s of memory, as on GPUs for inference: enough "
                   "for NCCL's buffers, not to register all memory with a NIC",
                   memory ? memory : "");
    } else if (w.whole) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%u GPUs show all of their memory", w.whole);
        if (w.unknown)
            shk_row_text(&row.why, "%u more do not say", w.unknown);
        shk_row_end(findings, &row);
    } else {
        shk_row_text(&row.why, "size of the window or of the memory is not known");
        shk_row_end(findings, &row);
    }
    free(bar);
    free(memory);
}

const struct shk_check shk_check_gpu_bar = {
    .id = "gpu.bar",
    .family = "kernel",
    .title = "The PCIe window shows all memory of the GPUs",
    .eval = eval_bar,
    .doc = "Facts: pci.devices[].bars, gpu.amd.devices[].memory, nvml.devices[].memory.\n"
           "The largest base address register smaller than the memory is WARN for AMD GPUs, whose "
           "peer access needs it (the kernel calls the opposite \"large BAR\"); NVIDIA GPUs map "
           "buffers on demand: n/a.",
};
