/* How NICs get at GPU memory: a peer-memory module, or dma-buf of the kernel and the driver. */
#include "checks/base/remedy.h"
#include "checks/hardware/pci.h"

#include <string.h>

/* dma-buf for RDMA and GPU memory came with Linux 5.12 (torvalds/linux, commit bfe3911a9107). */
static const char dmabuf_kernel[] = "5.12";

/* NVIDIA/nccl: pull request 682 (2.13), which names open kernel modules of 515.43 or later, too. */
static const char dmabuf_nccl[] = "2.13";

static const struct peer {
    const char *nic, *modules[3], *registers[3];
} peers[] = {
    {"mlx5", {"nvidia_peermem", "nv_peer_mem"}, {"nv_mem", "nv_mem_nc"}},
    {"efa", {"efa_nv_peermem"}, {NULL}},
};

/* Is one of the modules loaded? What was not read is remembered when none is seen. */
static bool read_loaded(struct shk_row *row, const struct peer *peer)
{
    for (int remember = 0; remember < 2; remember++)
        for (const char *const *module = peer->modules; *module; module++) {
            struct shk_fact fact = {.reason = NULL};
            char *key = shk_strf("kernel.module.%s", *module);
            enum shk_look look = key ? shk_look(row->ctx->facts, key, &fact) : SHK_LOOK_MISSING;
            free(key);
            if (look == SHK_LOOK_PRESENT)
                return true;
            if (remember && look != SHK_LOOK_ABSENT)
                shk_row_lacks(row, "kernel.module.*", "whether %s is loaded was not read: %s",
                              *module, fact.reason ? fact.reason : "nothing looked");
        }
    shk_row_was_read(row);
    return false;
}

/* Loaded, but the RDMA stack does not know of it: the list of clients is there without it. */
static bool unregistered(struct shk_row *row, const struct peer *peer)
{
    json_t *clients = NULL;
    if (!peer->registers[0] ||
        shk_read_texts(row, "kernel.memory_peers", &clients) != SHK_LOOK_PRESENT)
        return false;
    for (const char *const *name = peer->registers; *name; name++)
        if (shk_array_has(clients, *name, false))
            return false;
    return true;
}

/* Neither module nor dma-buf. Where nothing needs RDMA it costs nothing. */
static void no_way(const struct shk_check_context *ctx, struct shk_row *row,
                   const struct peer *peer, const char *whyf, const char *arg)
{
    bool rdma = shk_profile_is_rdma(ctx->profile);
    char *why = shk_strf(whyf, arg);
    shk_read_profile(row);
    shk_row_verdict(row, rdma ? SHK_FAIL : SHK_NOTE, SHK_EFFECT);
    row->diagnosis = rdma ? "peermem-missing" : NULL;
    shk_row_text(&row->observed, "not loaded");
    shk_row_text(&row->why,
                 "without it NICs cannot read GPU memory, since %s: every message %s copied "
                 "through the host",
                 why ? why : "", rdma ? "is" : "to another node would be");
    shk_row_fix(row, "load-module", "module", peer->modules[0], NULL);
    free(why);
}

/* Does the driver export dma-buf? CUDA's own word, else by the kind of its kernel modules: open
 * ones from 515 on do, closed ones do not. 1, 0, -1 (remembered as not read). */
static int driver_exports(struct shk_row *row)
{
    json_t *devices = NULL, *device, *driver = NULL;
    size_t i;
    long long has = 0;
    bool open = true;
    unsigned yes = 0, no = 0;
    (void)shk_look_array(row->ctx->facts, "cuda.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        if (shk_look_member_int(device, "dmabuf", &has) != SHK_LOOK_PRESENT)
            continue;
        yes += has == 1;
        no += has == 0;
    }
    if (yes || no)
        return no == 0;
    if (shk_read_object(row, "gpu.nvidia.driver", &driver) == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "gpu.nvidia.driver", "the GPU driver is not loaded");
    return shk_read_told_bool(row, "gpu.nvidia.driver", driver, "open", &open) ? open : -1;
}

/* Red Hat takes the RDMA stack of later kernels into the 4.18 of its release 8; which of its
 * updates have dma-buf cannot be told from the number. */
static bool is_mixed(const char *kernel)
{
    return shk_version_cmp(kernel, "4.18") >= 0 && strstr(kernel, ".el8");
}

/* The IB transport of NCCL itself; a net plugin is told by its own library. */
static bool nccl_lacks(struct shk_row *row, const struct peer *peer, const char **version_p)
{
    return strcmp(peer->nic, "mlx5") == 0 &&
           shk_look_text(row->ctx->facts, "nccl.version", version_p) == SHK_LOOK_PRESENT &&
           shk_version_cmp(*version_p, dmabuf_nccl) < 0;
}

static void no_module(const struct shk_check_context *ctx, struct shk_row *row,
                      const struct peer *peer)
{
    const char *kernel = NULL, *version = NULL;
    bool told = shk_read_text(row, "host.kernel", &kernel) == SHK_LOOK_PRESENT;
    bool old = told && shk_version_cmp(kernel, dmabuf_kernel) < 0;
    if (old && !is_mixed(kernel)) {
        no_way(ctx, row, peer, "this kernel has no dma-buf for it%s", "");
        return;
    }
    if (nccl_lacks(row, peer, &version)) {
        no_way(ctx, row, peer, "NCCL %s does not know dma-buf yet", version);
        return;
    }
    int exports = driver_exports(row);
    if (exports == 0) {
        no_way(ctx, row, peer, "the driver offers no dma-buf, as its closed kernel modules%s", "");
        return;
    }
    if (old)
        shk_row_lacks(row, "host.kernel",
                      "whether kernel %s, whose RDMA stack is newer than its number, has dma-buf "
                      "unknown: NCCL's log says GDRDMA where it is used",
                      kernel);
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    shk_row_text(&row->observed, "not loaded, kernel %s has dma-buf", kernel ? kernel : "");
    shk_row_text(&row->why, "the driver offers dma-buf, which takes its place");
}

static void one_peer(const struct shk_check_context *ctx, struct shk_findings *findings,
                     const struct peer *peer)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_peermem, peer->modules[0]);
    row.fact = "kernel.module.*, kernel.memory_peers, host.kernel, cuda.devices, gpu.nvidia.driver";
    row.source = "NVIDIA/nccl:src/transport/net_ib/gdr.cc";
    (void)shk_read_pci_count(&row, "gpu-nvidia");
    (void)shk_read_pci_count(&row, peer->nic);
    bool loaded = read_loaded(&row, peer);
    if (loaded && unregistered(&row, peer)) {
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        row.diagnosis = "peermem-not-registered";
        shk_row_text(&row.observed, "loaded, but no client of the RDMA stack");
        shk_row_text(&row.expected, "%s in /sys/kernel/mm/memory_peers", peer->registers[0]);
        shk_row_text(&row.why, "it was loaded before the RDMA stack, or built against another one");
        shk_row_fix(&row, "reload-module", "module", peer->modules[0], NULL);
    } else if (loaded) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "loaded");
    } else if (!shk_row_lacking(&row)) {
        no_module(ctx, &row, peer);
    }
    shk_row_end(findings, &row);
}

/* Is there hardware that this is for, as the bus or what is loaded shows, or may there be? */
static bool peer_due(struct shk_row *none, const struct peer *peer, long long gpus)
{
    const struct shk_facts *facts = none->ctx->facts;
    struct shk_row quiet = {.ctx = none->ctx};
    long long nics = shk_read_pci_count(gpus > 0 ? none : &quiet, peer->nic);
    char *key = shk_strf("pci.count.%s", peer->nic);
    bool loaded = read_loaded(&quiet, peer);
    bool failed = key && shk_look(facts, key, NULL) == SHK_LOOK_FAILED;
    bool hidden = shk_look(facts, "pci.count.gpu-nvidia", NULL) == SHK_LOOK_FAILED;
    bool gpu = gpus > 0 || (gpus < 0 && (loaded || hidden || shk_driver_seen(facts, "gpu-nvidia")));
    free(quiet.unread_why);
    free(key);
    return gpu &&
           (nics > 0 || (nics < 0 && (loaded || failed || shk_driver_seen(facts, peer->nic))));
}

static void eval_peermem(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row none = shk_row_begin(ctx, &shk_check_peermem, peers[0].modules[0]);
    bool any = false;
    long long gpus = shk_read_pci_count(&none, "gpu-nvidia");
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        if (!peer_due(&none, &peers[i], gpus))
            continue;
        any = true;
        one_peer(ctx, findings, &peers[i]);
    }
    if (!any)
        shk_row_na(findings, &none, "needs NVIDIA GPUs and mlx5 or EFA adapters");
    free(none.unread_why);
}

const struct shk_check shk_check_peermem = {
    .id = "kernel.peermem",
    .diagnosis = "peermem-missing",
    .family = "kernel",
    .title = "InfiniBand, RoCE and EFA adapters can read NVIDIA GPU memory",
    .eval = eval_peermem,
    .doc = "Facts: kernel.module.{nvidia_peermem, nv_peer_mem, efa_nv_peermem}, "
           "kernel.memory_peers, cuda.devices[].dmabuf, gpu.nvidia.driver, host.kernel, "
           "nccl.version, pci.count.*.\n"
           "The peer-memory module, or dma-buf (Linux 5.12 and later; a driver that exports it, by "
           "CUDA's word or by its open kernel modules; for mlx5 NCCL 2.13 and later), must be "
           "there; neither is FAIL, on profiles without RDMA a note. Kernels 4.18 of Red Hat 8 "
           "may have it: UNKNOWN. A module that the RDMA stack does not list as its client is "
           "WARN.",
};

/* 1: built in (y), 0: not, -1: not known. What the configuration does not mention (absent) is not
 * known: another spelling, or a file of another kernel. */
static int option(struct shk_row *row, const json_t *config, const char *name, const char **value_p)
{
    enum shk_look look = shk_read_member_text(row, "kernel.config", config, name, value_p);
    if (look == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "kernel.config", "the kernel's configuration does not mention %s", name);
    return look == SHK_LOOK_PRESENT ? **value_p == 'y' : -1;
}

static void no_dmabuf(const struct shk_check_context *ctx, struct shk_row *row)
{
    bool rdma = shk_profile_is_rdma(ctx->profile);
    shk_read_profile(row);
    shk_row_verdict(row, rdma ? SHK_WARN : SHK_NOTE, SHK_EFFECT);
    row->diagnosis = rdma ? "peermem-missing" : NULL;
    shk_row_text(&row->expected, "y, y");
    shk_row_text(&row->why, "RCCL has no dma-buf with this kernel, and no peer memory is "
                            "registered: messages are copied through the host");
    shk_row_fix(row, "dmabuf-kernel", NULL);
}

static void judge_config(const struct shk_check_context *ctx, struct shk_row *row)
{
    json_t *config = NULL;
    const char *p2p = "not known", *move = "not known";
    if (shk_read_object(row, "kernel.config", &config) == SHK_LOOK_ABSENT)
        shk_row_lacks(row, "kernel.config", "the kernel's configuration cannot be read");
    if (!config)
        return;
    int has_p2p = option(row, config, "PCI_P2PDMA", &p2p);
    int has_move = option(row, config, "DMABUF_MOVE_NOTIFY", &move);
    shk_row_text(&row->observed, "PCI_P2PDMA=%s, DMABUF_MOVE_NOTIFY=%s", p2p, move);
    if (has_p2p == 0 || has_move == 0)
        no_dmabuf(ctx, row);
    else
        shk_row_verdict(row, SHK_PASS, SHK_DECLARED);
}

static void eval_dmabuf(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_dmabuf, "CONFIG_PCI_P2PDMA");
    json_t *clients = NULL;
    row.fact = "kernel.config, kernel.memory_peers";
    row.source = "ROCm/rccl:src/misc/rocmwrap.cc";
    long long gpus = shk_read_pci_count(&row, "gpu-amd");
    if (gpus == 0 || shk_read_pci_count(&row, "mlx5") <= 0) {
        shk_row_na(findings, &row, "needs AMD GPUs and mlx5 adapters");
        return;
    }
    enum shk_look look = shk_read_texts(&row, "kernel.memory_peers", &clients);
    if (shk_array_has(clients, "amdkfd", false)) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "peer memory of amdkfd is registered");
    } else if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT) {
        judge_config(ctx, &row);
    }
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_dmabuf = {
    .id = "kernel.dmabuf",
    .diagnosis = "dmabuf-kernel-config",
    .family = "kernel",
    .title = "InfiniBand and RoCE adapters can read AMD GPU memory",
    .eval = eval_dmabuf,
    .doc = "Facts: kernel.memory_peers, kernel.config, pci.count.*.\n"
           "Peer memory of amdkfd, or a kernel with PCI_P2PDMA and DMABUF_MOVE_NOTIFY, must be "
           "there; neither is WARN, on profiles without RDMA a note. An option that the "
           "configuration does not mention is UNKNOWN.",
};
