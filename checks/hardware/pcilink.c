/* Links, errors and windows of GPUs and NICs on the PCI bus. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/hardware/pci.h"

#include <string.h>

/* Is the port part of an AMD graphics card, which has a switch of its own? (0x1002: its makers,
 * ports of the processor have 0x1022.) Drivers slow its link down like that of the GPU. */
static bool is_part_of_card(const json_t *bridge)
{
    const char *vendor = NULL;
    return shk_look_member_text(bridge, "vendor", &vendor) == SHK_LOOK_PRESENT &&
           strcmp(vendor, "0x1002") == 0;
}

struct links {
    struct shk_row *row; /* of all links together */
    struct shk_findings *findings;
    unsigned good, bad, idle;
    struct shk_strbuf noted; /* narrow ones of a plain board */
    struct shk_tally tally;
    json_t *seen; /* lower ends of links that were judged */
    bool plain;   /* no fabric NIC, and the GPUs have links of one width: the board is like that */
};

struct link {
    const json_t *lower;
    const char *addr, *what;
    long long width, most;
    double speed, max;
    bool sleeps; /* drivers lower its speed when nothing runs */
};

/* Nothing is above, and the kernel tells no number of a link: the device has none. */
static bool has_none(const json_t *lower)
{
    static const char *const numbers[] = {"link_width", "max_link_width", "link_speed",
                                          "max_link_speed"};
    json_t *parents = NULL, *value = NULL;
    bool none = shk_look_member_array(lower, "parents", &parents) == SHK_LOOK_PRESENT &&
                !json_array_size(parents);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        enum shk_look look = shk_look_member(lower, numbers[i], &value);
        none &= look == SHK_LOOK_ABSENT || look == SHK_LOOK_MISSING;
    }
    return none;
}

/* The port above; NULL: not read. */
static const json_t *upper_end(const struct shk_facts *facts, const json_t *lower)
{
    json_t *parents = NULL;
    (void)shk_look_member_array(lower, "parents", &parents);
    const char *up = json_string_value(json_array_get(parents, 0));
    return up ? shk_pci_find(facts, up) : NULL;
}

/* What the link does and what both ends can do. False: a number that decides was not read. The
 * upper end decides only when the lower one could do more. */
static bool read_link(const struct shk_facts *facts, struct link *link)
{
    long long most_up = 0;
    double max_up = 0;
    const json_t *upper = upper_end(facts, link->lower);
    (void)shk_look_member_int(link->lower, "link_width", &link->width);
    (void)shk_look_member_int(link->lower, "max_link_width", &link->most);
    (void)shk_look_member_number(link->lower, "link_speed", &link->speed);
    (void)shk_look_member_number(link->lower, "max_link_speed", &link->max);
    (void)shk_look_member_int(upper, "max_link_width", &most_up);
    (void)shk_look_member_number(upper, "max_link_speed", &max_up);
    bool read = link->width > 0 && link->most > 0 && link->speed > 0 && link->max > 0;
    if (link->width < link->most)
        read &= most_up > 0;
    if (link->speed < link->max && !link->sleeps)
        read &= max_up > 0;
    if (most_up > 0 && most_up < link->most)
        link->most = most_up;
    if (max_up > 0 && max_up < link->max)
        link->max = max_up;
    return read;
}

static void link_row(struct links *links, const struct link *link, bool narrow)
{
    char *setting = shk_strf("PCIe link of %s", link->addr);
    struct shk_row row =
        shk_row_begin(links->row->ctx, &shk_check_pci_link, setting ? setting : "PCIe link");
    row.fact = "pci.devices";
    shk_row_was_read(&row);
    shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
    if (narrow)
        shk_row_text(&row.observed, "x%lld at %g GT/s (%s)", link->width, link->speed, link->what);
    else
        shk_row_text(&row.observed, "%g GT/s, x%lld (%s)", link->speed, link->width, link->what);
    shk_row_text(&row.expected, narrow ? "x%lld" : "x%lld at %g GT/s", link->most, link->max);
    shk_row_text(&row.why, "both ends of the link can do more: a bad contact, a wrong slot or a "
                           "setting of the firmware; the slowest link holds up every ring");
    shk_row_fix(&row, "pci-link", "device", link->addr, NULL);
    shk_row_end(links->findings, &row);
    free(setting);
}

static void one_link(struct links *links, struct link *link)
{
    link->addr = shk_member_name(link->lower, "addr");
    if (shk_array_has(links->seen, link->addr, false))
        return;
    json_array_append_new(links->seen, json_string(link->addr));
    if (!read_link(links->row->ctx->facts, link)) {
        if (!has_none(link->lower))
            shk_tally_unread(&links->tally, "%s", link->addr);
        return;
    }
    bool narrow = link->width < link->most, lower = link->speed < link->max;
    bool slow = lower && !link->sleeps;
    links->idle += lower && link->sleeps;
    if (!narrow && !slow) {
        links->good++;
        return;
    }
    if (links->plain && narrow) {
        shk_strbuf_printf(&links->noted, "%sx%lld of x%lld at %s", links->noted.len ? ", " : "",
                          link->width, link->most, link->addr);
        return;
    }
    links->bad++;
    link_row(links, link, narrow);
}

/* A link joins a device to the port above it; that port and its switch's upstream port have none
 * between them. So every second step up from an endpoint is a lower end. */
static void links_of(struct links *links, const json_t *device)
{
    const struct shk_facts *facts = links->row->ctx->facts;
    json_t *parents = NULL;
    const char *kind = NULL;
    (void)shk_look_member_text(device, "kind", &kind);
    (void)shk_look_member_array(device, "parents", &parents);
    struct link own = {
        .lower = device, .what = kind ? kind : "device", .sleeps = shk_pci_is_gpu(device)};
    one_link(links, &own);
    for (size_t i = 1; i + 1 < json_array_size(parents); i += 2) {
        const char *addr = json_string_value(json_array_get(parents, i));
        const json_t *bridge = addr ? shk_pci_find(facts, addr) : NULL;
        char *what = shk_strf("switch above %s", shk_member_name(device, "addr"));
        struct link up = {
            .lower = bridge, .what = what ? what : "switch", .sleeps = is_part_of_card(bridge)};
        if (bridge)
            one_link(links, &up);
        else if (addr)
            shk_tally_unread(&links->tally, "%s", addr);
        free(what);
    }
}

/* Workstations share lanes between slots: their GPUs are all alike, and no NIC waits for them. */
static bool board_is_like_that(json_t *devices)
{
    long long common = 0, width = 0;
    size_t i;
    json_t *device;
    json_array_foreach(devices, i, device)
    {
        if (shk_pci_is_fabric_nic(device))
            return false;
        if (!shk_pci_is_gpu(device) ||
            shk_look_member_int(device, "link_width", &width) != SHK_LOOK_PRESENT)
            continue;
        if (common && width != common)
            return false;
        common = width;
    }
    return true;
}

static size_t judge_devices(struct links *links, bool guest)
{
    json_t *devices = shk_read_pci_devices(links->row), *device;
    size_t i, count = 0;
    links->plain = board_is_like_that(devices);
    json_array_foreach(devices, i, device)
    {
        bool virtual = false;
        enum shk_pci_role role = shk_read_pci_role(links->row, device);
        if (role != SHK_PCI_GPU && role != SHK_PCI_FABRIC_NIC)
            continue;
        count++;
        if (shk_look_member_bool(device, "vf", &virtual) == SHK_LOOK_FAILED)
            shk_tally_unread(&links->tally, "%s", shk_member_name(device, "addr"));
        else if (!guest && !virtual)
            links_of(links, device);
    }
    return count;
}

/* The row of all links together, that of the bad ones apart. */
static void sum_links(struct shk_findings *findings, struct shk_row *row, struct links *links)
{
    bool noted = links->noted.len > 0;
    links->tally.good = links->good;
    bool any = shk_tally_judge(&links->tally, row, SHK_WARN, SHK_EFFECT, "pci.devices", "links");
    if (links->bad && !links->tally.unread)
        return; /* they have rows of their own */
    if (!any && !noted) {
        shk_row_na(findings, row, "the devices hang on no PCIe link that the kernel shows");
        return;
    }
    if (noted) {
        shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        shk_row_text(&row->observed, "%s", shk_strbuf_text(&links->noted));
        shk_row_text(&row->why, "every GPU here has this width, and there is no fabric NIC: most "
                                "likely the board shares its lanes between slots");
    } else if (links->good) {
        shk_row_text(&row->observed, "%u at full width%s", links->good,
                     links->idle ? ", speed of idle GPUs not judged" : " and speed");
    }
    shk_row_end(findings, row);
}

static void eval_link(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_pci_link, "PCIe links");
    struct links links = {.row = &row,
                          .findings = findings,
                          .seen = json_array(),
                          .noted = SHK_STRBUF_INIT,
                          .tally = SHK_TALLY_INIT};
    bool guest = false, bare = shk_read_guest(&row, &guest) == SHK_LOOK_PRESENT && !guest;
    row.fact = "pci.devices";
    size_t count = judge_devices(&links, !bare);
    if (!count)
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    else if (guest)
        shk_row_na(findings, &row, "a virtual machine shows made-up links");
    else
        sum_links(findings, &row, &links);
    free(row.unread_why);
    json_decref(links.seen);
    shk_strbuf_free(&links.noted);
    shk_tally_free(&links.tally);
}

const struct shk_check shk_check_pci_link = {
    .id = "pci.link",
    .diagnosis = "pcie-link-degraded",
    .family = "kernel",
    .title = "PCIe links of GPUs, NICs and the switches above them run at full width and speed",
    .eval = eval_link,
    .doc = "Facts: pci.devices[].{link_width, max_link_width, link_speed, max_link_speed, "
           "parents}, host.virt.\n"
           "What both ends of a link can do is expected. Fewer lanes are WARN; a lower speed is "
           "WARN, except for the link of a GPU (and of the switch on an AMD card), which drivers "
           "slow down when it is idle. A note where there is no fabric NIC and all GPUs have the "
           "same width: then the board shares its lanes. A link of which a number was not read is "
           "UNKNOWN. n/a in virtual machines.",
};

/* Uncorrectable errors that are no trouble of the link: a request that nobody supports, which the
 * scan of the bus at boot makes. */
static bool harmless(const char *name)
{
    return strcmp(name, "UnsupReq") == 0;
}

/* Adds the errors of one severity. False: they were not read. */
static bool add_errors(struct shk_strbuf *out, const json_t *aer, const char *severity,
                       const char *word)
{
    const char *name;
    json_t *count, *counts = NULL;
    if (shk_look_member_object(aer, severity, &counts) != SHK_LOOK_PRESENT)
        return false;
    bool whole = true;
    json_object_foreach(counts, name, count)
    {
        long long n = 0;
        whole &= shk_look_member_int(counts, name, &n) == SHK_LOOK_PRESENT;
        if (!harmless(name) && n > 0)
            shk_strbuf_printf(out, "%s%lld %s %s", out->len ? ", " : "", n, word, name);
    }
    return whole;
}

static void error_row(const struct shk_check_context *ctx, struct shk_findings *findings,
                      const char *addr, const char *seen)
{
    char *setting = shk_strf("PCIe errors of %s", addr);
    struct shk_row row = shk_row_begin(ctx, &shk_check_pci_errors, setting ? setting : "errors");
    row.fact = "pci.devices";
    shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
    shk_row_text(&row.observed, "%s", seen);
    shk_row_text(&row.expected, "none");
    shk_row_text(&row.why, "counted since boot: transfers were lost or damaged");
    shk_row_fix(&row, "pci-errors", NULL);
    shk_row_end(findings, &row);
    free(setting);
}

static void judge_errors(struct shk_findings *findings, struct shk_row *all,
                         struct shk_tally *tally, const json_t *device)
{
    const char *addr = shk_member_name(device, "addr");
    struct shk_strbuf seen = SHK_STRBUF_INIT;
    json_t *aer = NULL;
    if (shk_look_member_object(device, "aer", &aer) == SHK_LOOK_ABSENT)
        return; /* the kernel counts none of this device */
    bool whole = add_errors(&seen, aer, "fatal", "fatal");
    whole &= add_errors(&seen, aer, "nonfatal", "non-fatal");
    if (seen.len) {
        shk_tally_bad(tally, "%s", addr);
        error_row(all->ctx, findings, addr, shk_strbuf_text(&seen));
    } else if (!whole) {
        shk_tally_unread(tally, "%s", addr);
    } else {
        shk_tally_good(tally);
    }
    shk_strbuf_free(&seen);
}

/* Do the facts speak of errors at all? */
static bool speaks_of_errors(json_t *devices)
{
    json_t *device, *aer;
    size_t i;
    json_array_foreach(devices, i, device)
    {
        if (shk_look_member(device, "aer", &aer) != SHK_LOOK_MISSING)
            return true;
    }
    return false;
}

/* Bridges above GPUs and fabric NICs, text. */
static json_t *bridges_above(json_t *devices)
{
    json_t *above = json_array(), *device, *parents = NULL;
    size_t i;
    json_array_foreach(devices, i, device)
    {
        if ((shk_pci_is_gpu(device) || shk_pci_is_fabric_nic(device)) &&
            shk_look_member_array(device, "parents", &parents) == SHK_LOOK_PRESENT)
            json_array_extend(above, parents);
    }
    return above;
}

static void eval_errors(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_pci_errors, "PCIe errors");
    struct shk_tally tally = SHK_TALLY_INIT;
    json_t *devices = shk_read_pci_devices(&row), *above = bridges_above(devices), *device;
    bool spoken = speaks_of_errors(devices);
    size_t i, all = 0;
    row.fact = "pci.devices";
    row.source = "torvalds/linux:Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats";
    json_array_foreach(devices, i, device)
    {
        enum shk_pci_role role = shk_read_pci_role(&row, device);
        bool endpoint = role == SHK_PCI_GPU || role == SHK_PCI_FABRIC_NIC;
        all += endpoint;
        if (!spoken)
            continue;
        if (endpoint || shk_array_has(above, shk_member_name(device, "addr"), true))
            judge_errors(findings, &row, &tally, device);
    }
    if (!all) {
        shk_row_na(findings, &row, "no GPU or fabric NIC on this node");
    } else if (!shk_tally_judge(&tally, &row, SHK_WARN, SHK_EFFECT, "pci.devices", "functions")) {
        shk_row_na(findings, &row, "the kernel counts no errors of these devices");
    } else if (!tally.bad || tally.unread) {
        if (tally.bad)
            shk_row_verdict(&row, SHK_UNKNOWN, SHK_NOT_COVERED);
        if (tally.good)
            shk_row_text(&row.observed, "none at %u functions since boot", tally.good);
        shk_row_end(findings, &row);
    }
    free(row.unread_why);
    shk_tally_free(&tally);
    json_decref(above);
}

const struct shk_check shk_check_pci_errors = {
    .id = "pci.errors",
    .family = "kernel",
    .title = "No uncorrectable PCIe errors since boot",
    .eval = eval_errors,
    .doc = "Fact: pci.devices[].aer.\n"
           "Any fatal or non-fatal error of a GPU, a fabric NIC or a bridge above is WARN, except "
           "UnsupReq, which the scan of the bus leaves behind. Correctable errors are not judged: "
           "no source gives a rate that is too high.",
};
