/* Access Control Services on the switches between GPUs and their peers. */
#include "checks/pci.h"

#include <string.h>

/* Control register of the capability (PCI Express Base Specification, 7.7.11.3): bits that send a
 * request or completion between two ports of a switch up to the root instead. */
static const struct {
    unsigned bit;
    const char *name;
} redirects[] = {{0x04, "ReqRedir"}, {0x08, "CmpltRedir"}, {0x20, "EgressCtrl"}};

enum { REDIRECT_MASK = 0x04 | 0x08 | 0x20 };

struct acs {
    const struct shk_facts *facts;
    unsigned pairs, redirected, unknown;
    json_t *ports; /* that redirect: each once, text */
    char *first;   /* the first pair that is redirected */
    const char *why;
};

enum port { PORT_FREE, PORT_REDIRECTS, PORT_UNKNOWN };

static enum port port_state(struct acs *acs, const char *addr)
{
    const json_t *bridge = shk_pci_find(acs->facts, addr);
    const json_t *control = json_object_get(json_object_get(bridge, "acs"), "control");
    if (json_is_false(json_object_get(bridge, "acs")))
        return PORT_FREE;
    if (json_is_integer(control))
        return json_integer_value(control) & REDIRECT_MASK ? PORT_REDIRECTS : PORT_FREE;
    if (!acs->why)
        acs->why = shk_pci_problem(bridge, "acs");
    return PORT_UNKNOWN;
}

static void judge_pair(struct acs *acs, const json_t *a, const json_t *b)
{
    json_t *ports = shk_pci_ports_between(a, b), *port;
    size_t i;
    bool unknown = false, redirects_here = false;
    if (!ports)
        return;
    acs->pairs++;
    json_array_foreach(ports, i, port)
    {
        const char *addr = json_string_value(port);
        enum port state = addr ? port_state(acs, addr) : PORT_UNKNOWN;
        unknown |= state == PORT_UNKNOWN;
        if (state != PORT_REDIRECTS)
            continue;
        redirects_here = true;
        if (!shk_array_has(acs->ports, addr, false))
            json_array_append(acs->ports, port);
    }
    acs->redirected += redirects_here;
    acs->unknown += unknown && !redirects_here;
    if (redirects_here && !acs->first)
        acs->first = shk_strf("%s and %s", shk_member_text(a, "addr"), shk_member_text(b, "addr"));
    json_decref(ports);
}

static void judge_pairs(struct acs *acs)
{
    json_t *devices = shk_facts_get_array(acs->facts, "pci.devices"), *a, *b;
    size_t i, k;
    json_array_foreach(devices, i, a)
    {
        if (!shk_pci_is_gpu(a))
            continue;
        json_array_foreach(devices, k, b) if (shk_pci_is_fabric_nic(b) ||
                                              (k > i && shk_pci_is_gpu(b))) judge_pair(acs, a, b);
    }
}

static void redirected(struct shk_row *row, const struct acs *acs)
{
    struct shk_strbuf seen = SHK_STRBUF_INIT, fix = SHK_STRBUF_INIT;
    size_t i;
    json_t *port;
    shk_strbuf_puts(&seen, "on at ");
    shk_strbuf_array(&seen, acs->ports, 4);
    json_array_foreach(acs->ports, i, port) shk_strbuf_printf(
        &fix, "%ssetpci -s %s ECAP_ACS+6.w=0000", fix.len ? "\n" : "", json_string_value(port));
    const json_t *bridge =
        shk_pci_find(acs->facts, json_string_value(json_array_get(acs->ports, 0)));
    long long control = shk_member_int(json_object_get(bridge, "acs"), "control", 0);
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
                 "%u of %u pairs below a common switch go up to the root instead, as %s: half of "
                 "the bandwidth, or transfers that hang",
                 acs->redirected, acs->pairs, acs->first ? acs->first : "the first one");
    shk_row_text(&row->fix, "%s\nswitch ACS off in the firmware to keep it so",
                 shk_strbuf_text(&fix));
    shk_strbuf_free(&seen);
    shk_strbuf_free(&fix);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_acs, "pcie-acs");
    struct acs acs = {.facts = ctx->facts, .ports = json_array()};
    row.fact = "pci.devices";
    row.source = "NVIDIA/nccl:docs/userguide/source/troubleshooting/gpu_troubleshooting.rst";
    judge_pairs(&acs);
    if (shk_gpu_count(ctx->facts) == 0) {
        shk_row_na(findings, &row, "no GPU on this node");
    } else if (!shk_facts_get_array(ctx->facts, "pci.devices")) {
        shk_row_unread(findings, &row, ctx->facts, "pci.devices");
    } else if (!acs.pairs) {
        shk_row_na(findings, &row, "no GPU shares a PCIe switch with a NIC or another GPU");
    } else if (shk_is_guest(ctx->facts)) {
        shk_row_na(findings, &row, "a virtual machine: the host decides");
    } else if (acs.redirected) {
        redirected(&row, &acs);
        shk_row_end(findings, &row);
    } else if (acs.unknown) {
        shk_row_text(&row.why, "%u of %u pairs could not be looked at: %s", acs.unknown, acs.pairs,
                     acs.why ? acs.why : "a bridge between them was not read");
        shk_row_text(&row.fix, "run once as root, outside of containers");
        shk_row_end(findings, &row);
    } else {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "no redirection between %u pairs", acs.pairs);
        shk_row_end(findings, &row);
    }
    free(acs.first);
    json_decref(acs.ports);
}

const struct shk_check shk_check_acs = {
    .id = "pci.acs",
    .family = "kernel",
    .title = "Switches let GPUs and NICs talk directly",
    .eval = eval,
    .doc = "Facts: pci.devices[].{parents, acs}, host.virt.\n"
           "For each GPU and each fabric NIC or other GPU below a common switch: a port between "
           "them whose ACS control register redirects requests (0x04) or completions (0x08) or "
           "controls egress (0x20) is FAIL. The register is in the extended configuration space, "
           "which only root reads: otherwise unknown. n/a without such pairs and in virtual "
           "machines.",
};
