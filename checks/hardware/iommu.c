/* Does the IOMMU stand between GPUs and those that they exchange data with? */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"
#include "core/text/strbuf.h"

#include <string.h>

enum mode { MODE_OFF, MODE_IDENTITY, MODE_TRANSLATES, MODE_MIXED, MODE_UNTOLD };

static bool is_translated(const char *type)
{
    return strncmp(type, "DMA", 3) == 0;
}

static enum mode mode_of(const struct shk_facts *facts, const char **text_p)
{
    bool enabled = true;
    const char *mode = NULL;
    enum shk_look told = shk_look_text(facts, "kernel.iommu.mode", &mode);
    if (shk_look_bool(facts, "kernel.iommu.enabled", &enabled) == SHK_LOOK_PRESENT && !enabled)
        return MODE_OFF;
    if (told != SHK_LOOK_PRESENT)
        return MODE_UNTOLD;
    *text_p = mode;
    return strcmp(mode, "none") == 0       ? MODE_OFF
           : strcmp(mode, "identity") == 0 ? MODE_IDENTITY
           : is_translated(mode)           ? MODE_TRANSLATES
                                           : MODE_MIXED;
}

/* Type of the IOMMU group that holds a PCI address; NULL when it was not read, or none does. */
static const char *group_type(const json_t *groups, const char *addr)
{
    size_t i;
    json_t *group, *devices = NULL;
    json_array_foreach((json_t *)groups, i, group)
    {
        const char *type = NULL;
        if (shk_look_member_array(group, "devices", &devices) == SHK_LOOK_PRESENT &&
            shk_array_has(devices, addr, true) &&
            shk_look_member_text(group, "type", &type) == SHK_LOOK_PRESENT)
            return type;
    }
    return NULL;
}

/* The groups of GPUs and fabric NICs. */
struct groups {
    struct shk_tally tally;
    const char *type, *device; /* of the first that translates; borrowed */
};

static void judge_groups(struct shk_row *row, struct groups *groups)
{
    json_t *list = NULL, *device;
    size_t i;
    (void)shk_look_array(row->ctx->facts, "kernel.iommu.groups", &list);
    json_t *all = shk_read_pci_devices(row);
    json_array_foreach(all, i, device)
    {
        const char *addr = shk_member_name(device, "addr");
        enum shk_pci_role role = shk_read_pci_role(row, device);
        const char *type = group_type(list, addr);
        if (role == SHK_PCI_OTHER)
            continue;
        if (role == SHK_PCI_UNTOLD || !type) {
            shk_tally_unread(&groups->tally, "%s", addr);
        } else if (is_translated(type)) {
            shk_tally_bad(&groups->tally, "%s", addr);
            groups->type = groups->type ? groups->type : type;
            groups->device = groups->device ? groups->device : addr;
        } else {
            shk_tally_good(&groups->tally);
        }
    }
}

static bool asked_passthrough(const struct shk_facts *facts)
{
    const char *line = NULL;
    return shk_look_text(facts, "kernel.cmdline", &line) == SHK_LOOK_PRESENT &&
           (shk_has_word(line, "iommu=pt", ",") || shk_has_word(line, "iommu.passthrough=1", ",") ||
            shk_has_word(line, "amd_iommu=off", ",") ||
            shk_has_word(line, "intel_iommu=off", ",") || shk_has_word(line, "iommu=off", ","));
}

/* Does any pair of GPUs exchange data over PCIe? */
static bool gpus_meet(struct shk_row *row)
{
    json_t *devices = NULL, *a, *b;
    size_t i, k;
    bool untold;
    (void)shk_look_array(row->ctx->facts, "pci.devices", &devices);
    json_array_foreach(devices, i, a)
    {
        json_array_foreach(devices, k, b)
        {
            if (k > i && shk_pci_is_gpu(a) && shk_pci_is_gpu(b) &&
                shk_read_pci_pair(row, a, b, &untold) && !untold)
                return true;
        }
    }
    return false;
}

static void translates(struct shk_row *row, bool amd, const char *type, const char *device)
{
    bool asked = asked_passthrough(row->ctx->facts);
    shk_row_verdict(row, amd ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = "iommu-not-passthrough";
    shk_row_text(&row->observed, "%s%s%s", type, device ? ", device " : "", device ? device : "");
    shk_row_text(&row->expected, "identity (pass-through), or IOMMU off");
    shk_row_text(&row->why, "%s%s",
                 asked ? "the command line requests pass-through, but the groups translate: " : "",
                 amd ? "ROCm programs on several GPUs, or with a NIC, hang when the IOMMU "
                       "translates their peer-to-peer transfers"
                     : "GPUs and NICs reach each other's memory through the IOMMU, slowly or not "
                       "at all");
    shk_row_fix(row, "iommu-passthrough", NULL);
}

static void no_party(struct shk_findings *findings, struct shk_row *row, bool several)
{
    shk_row_na(findings, row,
               several ? "it translates, but these GPUs exchange nothing over PCIe: they have "
                         "NVLink, or no peer access at all"
                       : "it translates, but there is no second GPU and no NIC that reads GPU "
                         "memory");
}

static void judge_translating(struct shk_findings *findings, struct shk_row *row, const char *type,
                              const char *device)
{
    bool guest = false;
    enum shk_look virt = shk_read_guest(row, &guest);
    if (guest) {
        shk_row_na(findings, row, "a virtual machine: the host decides");
        return;
    }
    enum shk_pci_party party = shk_read_pci_party(row);
    long long amd = shk_read_pci_count(row, "gpu-amd");
    bool meet = party == SHK_PARTY_NIC || (party == SHK_PARTY_GPUS && (amd > 1 || gpus_meet(row)));
    if (!meet) {
        no_party(findings, row, party == SHK_PARTY_GPUS);
        return;
    }
    if (virt == SHK_LOOK_PRESENT && amd >= 0)
        translates(row, amd > 0, type, device);
    shk_row_end(findings, row);
}

/* The groups of the devices that matter decide where all of them are known, else what the kernel
 * says of all groups. */
static void judge(struct shk_findings *findings, struct shk_row *row)
{
    struct groups groups = {.tally = SHK_TALLY_INIT};
    const char *text = NULL;
    enum mode mode = mode_of(row->ctx->facts, &text);
    struct shk_row look = {.ctx = row->ctx};
    judge_groups(mode == MODE_OFF || mode == MODE_IDENTITY || mode == MODE_TRANSLATES ? &look : row,
                 &groups);
    bool whole = !groups.tally.unread && groups.tally.good + groups.tally.bad;
    free(look.unread_why);
    if (mode != MODE_UNTOLD)
        shk_row_was_read(row);
    if (groups.tally.bad || (mode == MODE_TRANSLATES && !whole)) {
        judge_translating(findings, row, groups.type ? groups.type : text, groups.device);
    } else if (mode == MODE_OFF || mode == MODE_IDENTITY || whole) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, mode == MODE_OFF ? "IOMMU off" : "identity");
        shk_row_end(findings, row);
    } else {
        if (groups.tally.unread)
            (void)shk_tally_judge(&groups.tally, row, SHK_WARN, SHK_EFFECT, "kernel.iommu.groups",
                                  "groups of GPUs and NICs");
        (void)shk_read_text(row, "kernel.iommu.mode", &text);
        shk_row_text(&row->why, "what the IOMMU does was not read");
        shk_row_end(findings, row);
    }
    shk_tally_free(&groups.tally);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_iommu, "amd_iommu, iommu=pt");
    row.fact = "kernel.iommu.mode, kernel.iommu.groups, kernel.cmdline";
    row.source = "ROCm/rccl:src/init.cc; ROCm documentation: troubleshooting, application hangs on "
                 "multi-GPU systems; NVIDIA/nccl:docs/userguide/source/troubleshooting.rst";
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    judge(findings, &row);
}

const struct shk_check shk_check_iommu = {
    .id = "kernel.iommu",
    .diagnosis = "iommu-not-passthrough",
    .family = "kernel",
    .title = "The IOMMU does not translate between GPUs and NICs",
    .eval = eval,
    .doc = "Facts: kernel.iommu.{enabled, mode, groups}, pci.devices, pci.count.*, rdma.devices, "
           "topology.peers, host.virt; for the text kernel.cmdline.\n"
           "The effective type of the groups that hold GPUs and fabric NICs decides, not the "
           "command line. Translating is FAIL with AMD GPUs (ROCm's own troubleshooting: programs "
           "on several GPUs hang without iommu=pt) and WARN otherwise. n/a in virtual machines, "
           "without GPUs, and where nothing could take the way: one GPU without a NIC that reads "
           "its memory, or NVIDIA GPUs joined by NVLink alone or without peer access.",
};
