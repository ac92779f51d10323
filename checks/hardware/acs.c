/* Access Control Services on the switches between GPUs and their peers. */
#include "checks/base/remedy.h"
#include "checks/hardware/pci.h"

#include <string.h>

/* Control register of the capability (PCI Express Base Specification, 7.7.11.3): bits that send a
 * request or completion between two ports of a switch up to the root instead. */
static const struct {
    unsigned bit;
    const char *name;
} redirects[] = {{0x04, "ReqRedir"}, {0x08, "CmpltRedir"}, {0x20, "EgressCtrl"}};

enum { REDIRECT_MASK = 0x04 | 0x08 | 0x20 };

struct acs {
    struct shk_row *row;
    unsigned pairs, redirected, unread;
    json_t *ports;   /* that redirect: each once, text */
    char *first;     /* the first pair that is redirected */
    const char *why; /* a register was not read */
};

enum port { PORT_FREE, PORT_REDIRECTS, PORT_UNKNOWN };

static enum port port_state(struct acs *acs, const char *addr)
{
    const json_t *bridge = shk_pci_find(acs->row->ctx->facts, addr);
    json_t *capability = NULL;
    long long control = 0;
    enum shk_look look = shk_look_member(bridge, "acs", &capability);
    if (json_is_false(capability))
        return PORT_FREE;
    if (shk_look_member_int(capability, "control", &control) == SHK_LOOK_PRESENT)
        return control & REDIRECT_MASK ? PORT_REDIRECTS : PORT_FREE;
    if (!acs->why)
        acs->why = look == SHK_LOOK_FAILED ? shk_member_problem(bridge, "acs")
                                           : "a bridge between them was not read";
    return PORT_UNKNOWN;
}

/* Adds the ports between that redirect; PORT_FREE when all are read and none does. */
static enum port ports_state(struct acs *acs, const json_t *ports)
{
    enum port state = PORT_FREE;
    size_t i;
    json_t *port;
    json_array_foreach((json_t *)ports, i, port)
    {
        const char *addr = json_string_value(port);
        enum port one = addr ? port_state(acs, addr) : PORT_UNKNOWN;
        if (one == PORT_REDIRECTS && !shk_array_has(acs->ports, addr, false))
            json_array_append(acs->ports, port);
        if (one == PORT_REDIRECTS || (one == PORT_UNKNOWN && state == PORT_FREE))
            state = one;
    }
    return state;
}

static void judge_pair(struct acs *acs, const json_t *a, const json_t *b)
{
    json_t *ports = shk_pci_ports_between(a, b);
    bool untold = false;
    if (!ports || !shk_read_pci_pair(acs->row, a, b, &untold)) {
        json_decref(ports);
        return;
    }
    acs->pairs++;
    enum port state = untold ? PORT_UNKNOWN : ports_state(acs, ports);
    acs->unread += state == PORT_UNKNOWN;
    acs->redirected += state == PORT_REDIRECTS;
    if (state == PORT_REDIRECTS && !acs->first)
        acs->first = shk_strf("%s and %s", shk_member_name(a, "addr"), shk_member_name(b, "addr"));
    json_decref(ports);
}

static void judge_pairs(struct acs *acs)
{
    json_t *devices = shk_read_pci_devices(acs->row), *a, *b;
    size_t i, k;
    json_array_foreach(devices, i, a)
    {
        json_t *parents = NULL;
        enum shk_pci_role role = shk_read_pci_role(acs->row, a);
        if (role == SHK_PCI_GPU || role == SHK_PCI_FABRIC_NIC)
            (void)shk_read_told_array(acs->row, "pci.devices", a, "parents", &parents);
        if (role != SHK_PCI_GPU)
            continue;
        json_array_foreach(devices, k, b) if (shk_pci_is_fabric_nic(b) ||
                                              (k > i && shk_pci_is_gpu(b))) judge_pair(acs, a, b);
    }
}

static void redirected(struct shk_row *row, const struct acs *acs)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT, ports = SHK_STRBUF_INIT;
    size_t i;
    json_t *port;
    shk_strbuf_puts(&seen, "on at ");
    shk_strbuf_array(&seen, acs->ports, 4);
    json_array_foreach(acs->ports, i, port)
        shk_strbuf_printf(&ports, "%s%s", ports.len ? " " : "", json_string_value(port));
    const json_t *bridge =
        shk_pci_find(row->ctx->facts, json_string_value(json_array_get(acs->ports, 0)));
    long long control = 0;
    (void)shk_look_member_int(json_object_get(bridge, "acs"), "control", &control);
    shk_strbuf_puts(&seen, " (");
    for (size_t r = 0, n = 0; r < sizeof redirects / sizeof *redirects; r++)
        if (control & redirects[r].bit)
            shk_strbuf_printf(&seen, "%s%s", n++ ? " " : "", redirects[r].name);
    shk_strbuf_puts(&seen, ")");
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = "acs-enabled";
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&seen));
    shk_row_text(&row->expected, "off on the switch ports between GPUs and NICs");
    shk_row_text(&row->why,
                 "%u of %u device pairs below a common switch are routed through the root complex, "
                 "as %s: half "
                 "the bandwidth, or hanging transfers",
                 acs->redirected, acs->pairs, acs->first ? acs->first : "the first one");
    shk_row_fix(row, "acs-off", "ports", shk_strbuf_text(&ports), NULL);
    shk_strbuf_free(&seen);
    shk_strbuf_free(&ports);
}

static void judge(struct shk_findings *findings, struct shk_row *row, struct acs *acs)
{
    bool guest = false;
    if (!acs->pairs) {
        shk_row_na(
            findings, row,
            "no GPU shares a PCIe switch with a NIC or with a GPU that it reaches over PCIe");
        return;
    }
    enum shk_look virt = shk_read_guest(row, &guest);
    if (guest) {
        shk_row_na(findings, row, "a virtual machine: the host decides");
        return;
    }
    if (acs->unread)
        shk_row_lacks(row, "pci.devices",
                      "%u of %u pairs could not be checked: %s; run once as root, outside "
                      "containers",
                      acs->unread, acs->pairs, acs->why ? acs->why : "topology.peers was not read");
    if (acs->redirected && virt == SHK_LOOK_PRESENT) {
        redirected(row, acs);
    } else {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "no redirection between %u pairs", acs->pairs);
    }
    shk_row_end(findings, row);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_acs, "pcie-acs");
    row.fact = "pci.devices";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting/gpu_troubleshooting.rst";
    if (shk_read_gpu_count(&row) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
        return;
    }
    struct acs acs = {.row = &row, .ports = json_array()};
    judge_pairs(&acs);
    judge(findings, &row, &acs);
    free(acs.first);
    json_decref(acs.ports);
}

const struct shk_check shk_check_acs = {
    .id = "pci.acs",
    .diagnosis = "acs-enabled",
    .family = "kernel",
    .title = "PCIe switches let GPUs and NICs communicate directly",
    .eval = eval,
    .doc =
        "Facts: pci.devices[].{parents, acs}, topology.peers, host.virt.\n"
        "For each GPU and each fabric NIC or other GPU below a common switch, GPUs only when they "
        "have peer access and no NVLink or XGMI (topology.peers): a port between "
        "them whose ACS control register redirects requests (0x04) or completions (0x08) or "
        "controls egress (0x20) is FAIL. The register is in the extended configuration space, "
        "which only root reads: otherwise unknown. n/a without such pairs and in virtual "
        "machines.",
};
