/* Links, errors and windows of GPUs and NICs on the PCI bus. */
#include "checks/pci.h"

#include <string.h>

struct links {
    const struct shk_facts *facts;
    struct shk_findings *findings;
    unsigned good, bad, unknown, idle;
    json_t *seen; /* lower ends of links that were judged */
};

static double speed_of(const json_t *device, const char *member)
{
    const json_t *value = json_object_get(device, member);
    return json_is_number(value) ? json_number_value(value) : 0;
}

static void link_row(struct links *links, const json_t *lower, const json_t *upper,
                     const char *what)
{
    const char *addr = shk_member_text(lower, "addr");
    long long width = shk_member_int(lower, "link_width", 0);
    long long most = shk_member_int(lower, "max_link_width", 0);
    long long most_up = shk_member_int(upper, "max_link_width", 0);
    double speed = speed_of(lower, "link_speed"), max = speed_of(lower, "max_link_speed");
    double max_up = speed_of(upper, "max_link_speed");
    if (most_up && most_up < most)
        most = most_up;
    if (max_up > 0 && max_up < max)
        max = max_up;
    /* drivers lower the speed of an idle GPU's link, never its width */
    bool narrow = width < most, slow = speed < max && !shk_pci_is_gpu(lower);
    links->idle += speed < max && shk_pci_is_gpu(lower);
    if (!narrow && !slow) {
        links->good++;
        return;
    }
    links->bad++;
    char *setting = shk_strf("PCIe link of %s", addr);
    struct shk_row row = shk_row_start(&shk_check_pci_link, setting ? setting : "PCIe link");
    row.fact = "pci.devices";
    shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
    if (narrow)
        shk_row_text(&row.observed, "x%lld at %g GT/s (%s)", width, speed, what);
    else
        shk_row_text(&row.observed, "%g GT/s, x%lld (%s)", speed, width, what);
    shk_row_text(&row.expected, narrow ? "x%lld" : "x%lld at %g GT/s", most, max);
    shk_row_text(&row.why, "both ends of the link can do more: a bad contact, a wrong slot or a "
                           "setting of the firmware; the slowest link holds up every ring");
    shk_row_text(&row.fix, "drain the node, reseat the card and look at lspci -vv -s %s", addr);
    shk_row_end(links->findings, &row);
    free(setting);
}

static void one_link(struct links *links, const json_t *lower, const char *what)
{
    const json_t *parents = json_object_get(lower, "parents");
    const char *addr = shk_member_text(lower, "addr");
    const char *up = json_string_value(json_array_get(parents, 0));
    if (!addr || shk_array_has(links->seen, addr, false))
        return;
    json_array_append_new(links->seen, json_string(addr));
    if (shk_member_int(lower, "link_width", 0) > 0 &&
        shk_member_int(lower, "max_link_width", 0) > 0)
        link_row(links, lower, up ? shk_pci_find(links->facts, up) : NULL, what);
    else if (up)
        links->unknown++;
}

/* A link joins a device to the port above it; that port and its switch's upstream port have none
 * between them. So every second step up from an endpoint is a lower end. */
static void links_of(struct links *links, const json_t *device)
{
    const char *kind = shk_member_text(device, "kind");
    const json_t *parents = json_object_get(device, "parents");
    one_link(links, device, kind ? kind : "device");
    for (size_t i = 1; i + 1 < json_array_size(parents); i += 2) {
        const char *addr = json_string_value(json_array_get(parents, i));
        const json_t *bridge = addr ? shk_pci_find(links->facts, addr) : NULL;
        char *what = shk_strf("switch above %s", shk_member_text(device, "addr"));
        if (bridge)
            one_link(links, bridge, what ? what : "switch");
        free(what);
    }
}

static void eval_link(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct links links = {.facts = ctx->facts, .findings = findings, .seen = json_array()};
    json_t *devices = shk_facts_get_array(ctx->facts, "pci.devices"), *device;
    size_t i, count = 0;
    struct shk_row row = shk_row_start(&shk_check_pci_link, "PCIe links");
    row.fact = "pci.devices";
    json_array_foreach(devices, i, device)
    {
        if (!shk_pci_is_gpu(device) && !shk_pci_is_fabric_nic(device))
            continue;
        count++;
        if (!shk_is_guest(ctx->facts) && !shk_member_bool(device, "vf", false))
            links_of(&links, device);
    }
    if (!devices && shk_gpu_count(ctx->facts) != 0) {
        shk_row_unread(findings, &row, ctx->facts, "pci.devices");
    } else if (!count) {
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    } else if (shk_is_guest(ctx->facts)) {
        shk_row_na(findings, &row, "a virtual machine shows made-up links");
    } else if (links.good && !links.bad) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "%u at full width%s", links.good,
                     links.idle ? ", speed of idle GPUs not judged" : " and speed");
        if (links.unknown)
            shk_row_text(&row.why, "%u more do not say", links.unknown);
        shk_row_end(findings, &row);
    } else if (!links.bad) {
        shk_row_text(&row.why, links.unknown ? "the kernel does not show the links"
                                             : "no link between the devices and the root");
        shk_row_end(findings, &row);
    }
    json_decref(links.seen);
}

const struct shk_check shk_check_pci_link = {
    .id = "pci.link",
    .family = "kernel",
    .title = "PCIe links of GPUs, NICs and the switches above them run at full width and speed",
    .eval = eval_link,
    .doc = "Facts: pci.devices[].{link_width, max_link_width, link_speed, max_link_speed, "
           "parents}, host.virt.\n"
           "What both ends of a link can do is expected. Fewer lanes are WARN; a lower speed is "
           "WARN, except for the link of a GPU, which drivers slow down when it is idle. n/a in "
           "virtual machines.",
};

/* Uncorrectable errors that are no trouble of the link: a request that nobody supports, which the
 * scan of the bus at boot makes. */
static bool harmless(const char *name)
{
    return strcmp(name, "UnsupReq") == 0;
}

static void add_errors(struct shk_strbuf *out, const json_t *counts, const char *kind)
{
    const char *name;
    json_t *count;
    json_object_foreach((json_t *)counts, name, count)
    {
        if (!harmless(name) && json_integer_value(count) > 0)
            shk_strbuf_printf(out, "%s%lld %s %s", out->len ? ", " : "",
                              (long long)json_integer_value(count), kind, name);
    }
}

static bool error_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                      const json_t *device)
{
    const json_t *aer = json_object_get(device, "aer");
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    (void)ctx;
    add_errors(&seen, json_object_get(aer, "fatal"), "fatal");
    add_errors(&seen, json_object_get(aer, "nonfatal"), "non-fatal");
    bool bad = seen.len > 0;
    if (bad) {
        char *setting = shk_strf("PCIe errors of %s", shk_member_text(device, "addr"));
        struct shk_row row = shk_row_start(&shk_check_pci_errors, setting ? setting : "errors");
        row.fact = "pci.devices";
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row.observed, "%s", shk_strbuf_text(&seen));
        shk_row_text(&row.expected, "none");
        shk_row_text(&row.why, "counted since boot: transfers were lost or damaged");
        shk_row_text(&row.fix, "look for AER lines in dmesg, drain the node and have the card and "
                               "its slot checked");
        shk_row_end(findings, &row);
        free(setting);
    }
    shk_strbuf_free(&seen);
    return bad;
}

static void eval_errors(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_start(&shk_check_pci_errors, "PCIe errors");
    json_t *devices = shk_facts_get_array(ctx->facts, "pci.devices"), *device;
    size_t i, counted = 0, bad = 0, all = 0;
    row.fact = "pci.devices";
    row.source = "torvalds/linux:Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats";
    json_array_foreach(devices, i, device)
    {
        all += shk_pci_is_gpu(device) || shk_pci_is_fabric_nic(device);
        if (!json_is_object(json_object_get(device, "aer")))
            continue;
        counted++;
        bad += error_row(ctx, findings, device);
    }
    if (!devices && shk_gpu_count(ctx->facts) != 0) {
        shk_row_unread(findings, &row, ctx->facts, "pci.devices");
    } else if (!all) {
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    } else if (!counted) {
        shk_row_na(findings, &row, "the kernel counts no errors of these devices");
    } else if (!bad) {
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row.observed, "none at %zu functions since boot", counted);
        shk_row_end(findings, &row);
    }
}

const struct shk_check shk_check_pci_errors = {
    .id = "pci.errors",
    .family = "kernel",
    .title = "No uncorrectable PCIe errors since boot",
    .eval = eval_errors,
    .doc = "Fact: pci.devices[].aer.\n"
           "Any fatal or non-fatal error of a GPU, a NIC or a bridge above is WARN, except "
           "UnsupReq, which the scan of the bus leaves behind. Correctable errors are not judged: "
           "no source gives a rate that is too high.",
};
