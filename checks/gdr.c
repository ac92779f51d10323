/* How NICs get at GPU memory: a peer-memory module, or dma-buf of the kernel and the driver. */
#include "checks/coded.h"

#include <string.h>

/* dma-buf for RDMA and GPU memory came with Linux 5.12 (torvalds/linux, commit bfe3911a9107). */
static const char dmabuf_kernel[] = "5.12";

static const struct {
    const char *nic, *modules[3], *registers[3];
} peers[] = {
    {"mlx5", {"nvidia_peermem", "nv_peer_mem"}, {"nv_mem", "nv_mem_nc"}},
    {"efa", {"efa_nv_peermem"}, {NULL}},
};

static enum shk_look look_module(const struct shk_facts *facts, const char *const *modules)
{
    enum shk_look best = SHK_LOOK_MISSING;
    for (; *modules; modules++) {
        char *key = shk_strf("kernel.module.%s", *modules);
        enum shk_look look = key ? shk_look(facts, key, NULL) : SHK_LOOK_MISSING;
        free(key);
        if (look == SHK_LOOK_PRESENT)
            return look;
        if (look == SHK_LOOK_ABSENT || best == SHK_LOOK_MISSING)
            best = look;
    }
    return best;
}

/* Loaded, but the RDMA stack does not know of it: the list of clients is there without it. */
static bool unregistered(const struct shk_facts *facts, size_t peer)
{
    const json_t *clients = shk_facts_get_array(facts, "kernel.memory_peers");
    if (!clients || !peers[peer].registers[0])
        return false;
    for (const char *const *name = peers[peer].registers; *name; name++)
        if (shk_array_has(clients, *name, false))
            return false;
    return true;
}

static void no_module(const struct shk_check_context *ctx, struct shk_row *row, size_t peer)
{
    const char *kernel = shk_facts_get_text(ctx->facts, "host.kernel");
    const json_t *driver = shk_facts_get_object(ctx->facts, "gpu.nvidia.driver");
    bool closed = driver && !shk_member_bool(driver, "open", true);
    if (kernel && shk_version_cmp(kernel, dmabuf_kernel) >= 0 && !closed) {
        shk_row_verdict(row, SHK_PASS, driver ? SHK_EFFECT : SHK_DECLARED);
        shk_row_text(&row->observed, "not loaded, kernel %s has dma-buf", kernel);
        shk_row_text(&row->why, "the open kernel modules of the driver use dma-buf instead");
        return;
    }
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "peermem-missing";
    shk_row_text(&row->observed, "not loaded");
    shk_row_text(&row->why,
                 "without it NICs cannot read GPU memory, since %s: every message is copied "
                 "through the host",
                 closed ? "the closed kernel modules of the driver offer no dma-buf"
                        : "this kernel has no dma-buf for it");
    shk_row_text(&row->fix, "modprobe %s", peers[peer].modules[0]);
}

static void one_peer(const struct shk_check_context *ctx, struct shk_findings *findings,
                     size_t peer)
{
    struct shk_row row = shk_row_start(&shk_check_peermem, peers[peer].modules[0]);
    row.fact = "kernel.module.*, kernel.memory_peers, host.kernel, gpu.nvidia.driver";
    row.source = "NVIDIA/nccl:src/transport/net_ib/gdr.cc";
    enum shk_look look = look_module(ctx->facts, peers[peer].modules);
    if (look == SHK_LOOK_PRESENT && unregistered(ctx->facts, peer)) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = "peermem-not-registered";
        shk_row_text(&row.observed, "loaded, but no client of the RDMA stack");
        shk_row_text(&row.expected, "%s in /sys/kernel/mm/memory_peers", peers[peer].registers[0]);
        shk_row_text(&row.why, "it was loaded before the RDMA stack, or built against another one");
        shk_row_text(&row.fix, "modprobe -r %s\nmodprobe %s", peers[peer].modules[0],
                     peers[peer].modules[0]);
    } else if (look == SHK_LOOK_PRESENT) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "loaded");
    } else if (look != SHK_LOOK_ABSENT) {
        char *key = shk_strf("kernel.module.%s", peers[peer].modules[0]);
        shk_row_unread(findings, &row, ctx->facts, key ? key : "kernel.module");
        free(key);
        return;
    } else {
        no_module(ctx, &row, peer);
    }
    shk_row_end(findings, &row);
}

static void eval_peermem(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    bool any = false;
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (shk_device_count(ctx->facts, "gpu-nvidia") <= 0 ||
            shk_device_count(ctx->facts, peers[i].nic) <= 0)
            continue;
        any = true;
        one_peer(ctx, findings, i);
    }
    if (!any) {
        struct shk_row row = shk_row_start(&shk_check_peermem, peers[0].modules[0]);
        shk_row_na(findings, &row, "needs NVIDIA GPUs and mlx5 or EFA adapters");
    }
}

const struct shk_check shk_check_peermem = {
    .id = "kernel.peermem",
    .family = "kernel",
    .title = "InfiniBand, RoCE and EFA adapters can read NVIDIA GPU memory",
    .eval = eval_peermem,
    .doc = "Facts: kernel.module.{nvidia_peermem, nv_peer_mem, efa_nv_peermem}, "
           "kernel.memory_peers, gpu.nvidia.driver, host.kernel, pci.count.*.\n"
           "The peer-memory module, or dma-buf (Linux 5.12 and later with the open driver "
           "modules), must be there; neither is FAIL. A module that the RDMA stack does not list "
           "as its client is WARN.",
};

static void eval_dmabuf(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_dmabuf, "CONFIG_PCI_P2PDMA");
    const json_t *config = shk_facts_get_object(ctx->facts, "kernel.config");
    const char *p2p = shk_member_text(config, "PCI_P2PDMA");
    const char *move = shk_member_text(config, "DMABUF_MOVE_NOTIFY");
    const json_t *clients = shk_facts_get_array(ctx->facts, "kernel.memory_peers");
    long long verbs = shk_device_count(ctx->facts, "mlx5");
    row.fact = "kernel.config, kernel.memory_peers";
    row.source = "ROCm/rccl:src/misc/rocmwrap.cc";
    if (shk_device_count(ctx->facts, "gpu-amd") <= 0 || verbs <= 0) {
        shk_row_na(findings, &row, "needs AMD GPUs and mlx5 adapters");
    } else if (shk_array_has(clients, "amdkfd", false)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "peer memory of amdkfd is registered");
        shk_row_end(findings, &row);
    } else if (!config) {
        shk_row_unread(findings, &row, ctx->facts, "kernel.config");
    } else {
        bool both = p2p && move && *p2p == 'y' && *move == 'y';
        shk_row_verdict(&row, both ? SHK_PASS : SHK_WARN, both ? SHK_DECLARED : SHK_EFFECT);
        shk_row_text(&row.observed, "PCI_P2PDMA=%s, DMABUF_MOVE_NOTIFY=%s", p2p ? p2p : "n",
                     move ? move : "n");
        if (!both) {
            row.diagnosis = "peermem-missing";
            shk_row_text(&row.expected, "y, y");
            shk_row_text(&row.why, "RCCL has no dma-buf with this kernel, and no peer memory is "
                                   "registered: messages are copied through the host");
            shk_row_text(&row.fix, "use a kernel with both options, or the amdgpu-dkms driver");
        }
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_dmabuf = {
    .id = "kernel.dmabuf",
    .family = "kernel",
    .title = "InfiniBand and RoCE adapters can read AMD GPU memory",
    .eval = eval_dmabuf,
    .doc = "Facts: kernel.memory_peers, kernel.config, pci.count.*.\n"
           "Peer memory of amdkfd, or a kernel with PCI_P2PDMA and DMABUF_MOVE_NOTIFY, must be "
           "there; neither is WARN.",
};
