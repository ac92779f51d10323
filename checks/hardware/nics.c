/* NICs of the profile's fabric: how many, and their links. */
#include "checks/base/remedy.h"
#include "checks/base/tally.h"
#include "checks/job/named.h"
#include "checks/value/grammar.h"

#include "checks/base/coded.h"
#include "core/text/uses.h"

#include <string.h>
#include <strings.h>

static const char *kind_words(const char *kind)
{
    static const char *const words[][2] = {
        {"cxi", "Slingshot NICs"}, {"efa", "EFA interfaces"}, {"mlx5", "RDMA NICs"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], kind) == 0)
            return words[i][1];
    return kind;
}

static bool is_of_kind(const json_t *device, const char *kind)
{
    const char *driver = NULL;
    if (shk_look_member_text(device, "driver", &driver) != SHK_LOOK_PRESENT)
        return true;
    bool efa = strncmp(driver, "efa", 3) == 0;
    return strcmp(kind, "efa") == 0 ? efa : !efa;
}

/* RDMA NICs are of several makers: what counts is what the verbs show, or the bus. */
static long long count_verbs(struct shk_row *row, long long bus, long long wanted)
{
    json_t *list = NULL, *device;
    size_t i;
    long long count = 0;
    if (bus >= wanted) {
        (void)shk_look_array(row->ctx->facts, "rdma.devices", &list);
    } else if (shk_read_array(row, "rdma.devices", &list) > SHK_LOOK_ABSENT) {
        return bus;
    }
    json_t *mine = json_array();
    json_array_foreach(list, i, device)
    {
        if (is_of_kind(device, "mlx5"))
            (void)json_array_append(mine, device);
    }
    count = (long long)shk_list_distinct(mine, "name");
    if ((size_t)count < json_array_size(mine))
        shk_row_lacks(row, "rdma.devices", "one device is listed twice");
    json_decref(mine);
    return count > bus ? count : bus;
}

static long long count_nics(struct shk_row *row, const char *kind, long long wanted)
{
    if (strcmp(kind, "mlx5") != 0) {
        long long there = -1;
        const char *key = strcmp(kind, "cxi") == 0 ? "pci.count.cxi" : "pci.count.efa";
        return shk_read_int(row, key, &there) == SHK_LOOK_ABSENT ? 0 : there;
    }
    long long bus = shk_device_count(row->ctx->facts, kind);
    long long count = count_verbs(row, bus, wanted);
    if (count < wanted && bus < 0)
        (void)shk_read_device_count(row, kind);
    else if (count >= wanted)
        shk_row_was_read(row);
    return count;
}

static void say_few(struct shk_row *row, const char *kind, long long count)
{
    bool efa = strcmp(kind, "efa") == 0;
    shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
    row->diagnosis = efa     ? (count ? "efa-nic-count-low" : "efa-provider-absent")
                     : count ? "nic-count-low"
                             : "nic-none";
    shk_row_text(&row->why, count ? "bandwidth falls with every NIC that is missing"
                                  : "the profile is for nodes with this fabric, and none of its "
                                    "NICs is here");
    shk_row_fix(row, count ? "nic-missing" : "other-node", NULL);
}

static void eval_count(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nic_count, "NICs");
    const char *kind = shk_profile_nic_kind(ctx->profile);
    int wanted = ctx->profile->nics;
    row.fact = "pci.count.*";
    shk_read_profile(&row);
    row.required = ctx->profile_asked ? SHK_ASKED : 1;
    if (!kind || wanted <= 0) {
        row.required = ctx->profile_doubt != NULL;
        shk_row_na(findings, &row, "profile %s does not say how many", ctx->profile->name);
        return;
    }
    long long count = count_nics(&row, kind, wanted);
    if (count >= 0 && count < wanted && !shk_profile_sized(&row, "rdma.devices")) {
        shk_row_na(findings, &row, "the number of profile %s is for other hardware",
                   ctx->profile->name);
        return;
    }
    if (count >= 0 && wanted > 1)
        shk_row_text(&row.observed, "%lld of %d %s", count, wanted, kind_words(kind));
    else if (count >= 0)
        shk_row_text(&row.observed, "%lld %s", count, kind_words(kind));
    shk_row_text(&row.expected, wanted > 1 ? "%d" : "at least %d", wanted);
    if (count >= wanted)
        shk_row_verdict(&row, SHK_PASS, SHK_EFFECT);
    else if (count >= 0 && !shk_row_lacking(&row))
        say_few(&row, kind, count);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nic_count = {
    .id = "nic.count",
    .diagnosis = "nic-count-low",
    .family = "devices",
    .title = "As many NICs as the profile expects",
    .eval = eval_count,
    .doc = "Facts: pci.count.{cxi, efa, mlx5}, rdma.devices.\n"
           "Fewer than the profile's number is FAIL. RDMA NICs of other makers than Mellanox are "
           "counted by the verbs devices.",
};

/* Ports of the fabric's NICs. A port is needed unless NCCL_IB_HCA leaves it out. */
struct links {
    const char *hca; /* NCCL_IB_HCA; NULL: not set */
    unsigned up, down, unread, spare_down;
    unsigned ib, ib_init; /* InfiniBand ports, and those that wait for a subnet manager */
    struct shk_strbuf names, spare_names;
};

/* Does an item of NCCL_IB_HCA ("mlx5_0", "mlx5_0:1") stand for this port? Prefixes, unless the list
 * begins with '='. */
static bool item_names(const char *item, size_t len, bool exact, const char *name, long long port)
{
    const char *colon = memchr(item, ':', len);
    size_t name_len = colon ? (size_t)(colon - item) : len;
    if (colon && port >= 0 && strtoll(colon + 1, NULL, 10) != port)
        return false;
    return strncmp(item, name, name_len) == 0 && (!exact || strlen(name) == name_len);
}

static bool is_needed(const struct links *links, const char *name, long long port)
{
    bool excludes, exact, named = false;
    const char *start;
    size_t len;
    if (!links->hca || !*links->hca)
        return true;
    const char *list = shk_grammar_list_body(links->hca, &excludes, &exact);
    while (shk_grammar_item(&list, ',', &start, &len))
        named |= len && item_names(start, len, exact, name, port);
    return named != excludes;
}

static void add_name(struct shk_strbuf *names, const char *name, long long port, const char *state)
{
    if (names->len > 160)
        return;
    shk_strbuf_printf(names, "%s%s", names->len ? ", " : "", name);
    if (port >= 0)
        shk_strbuf_printf(names, " port %lld", port);
    shk_strbuf_printf(names, " (%s)", state);
}

/* Are all interfaces of the device's function up without carrier? rdma_rxe calls the port of such
 * a one active (Linux 6.1, rxe_net.c: NETDEV_UP). */
static bool has_no_carrier(const struct shk_facts *facts, const json_t *device)
{
    json_t *ifaces = NULL, *iface;
    const char *pci = NULL, *at = NULL;
    size_t i, dead = 0, others = 0;
    if (shk_look_member_text(device, "pci", &pci) == SHK_LOOK_PRESENT)
        (void)shk_look_array(facts, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        bool up = false, running = true;
        if (shk_look_member_text(iface, "pci", &at) != SHK_LOOK_PRESENT || strcmp(at, pci) != 0)
            continue;
        bool told = shk_look_member_bool(iface, "up", &up) == SHK_LOOK_PRESENT &&
                    shk_look_member_bool(iface, "running", &running) == SHK_LOOK_PRESENT;
        dead += told && up && !running;
        others += !told || !up || running;
    }
    return dead && !others;
}

static void note_port(struct links *links, const char *name, const json_t *port, bool no_carrier)
{
    const char *state = NULL, *layer = NULL;
    long long number = -1;
    (void)shk_look_member_int(port, "port", &number);
    (void)shk_look_member_text(port, "link_layer", &layer);
    bool needed = is_needed(links, name, number);
    if (shk_look_member_text(port, "state", &state) != SHK_LOOK_PRESENT) {
        links->unread += needed;
        return;
    }
    bool up = strcasestr(state, "active") != NULL, ib = layer && strcmp(layer, "InfiniBand") == 0;
    if (up && no_carrier && layer && strcmp(layer, "Ethernet") == 0) {
        up = false;
        state = "its interface has no carrier";
    }
    links->ib += ib && needed;
    links->ib_init += ib && needed && strcasestr(state, "init") != NULL;
    links->up += up && needed;
    links->down += !up && needed;
    links->spare_down += !up && !needed;
    if (!up)
        add_name(needed ? &links->names : &links->spare_names, name, number, state);
}

static void note_device(struct shk_row *row, struct links *links, const json_t *device)
{
    json_t *ports = NULL, *port;
    size_t i;
    const char *name = NULL;
    if (shk_read_member_text(row, "rdma.devices", device, "name", &name) != SHK_LOOK_PRESENT ||
        shk_read_member_array(row, "rdma.devices", device, "ports", &ports) != SHK_LOOK_PRESENT)
        return;
    bool no_carrier = has_no_carrier(row->ctx->facts, device);
    json_array_foreach(ports, i, port) note_port(links, name, port, no_carrier);
    if (!json_array_size(ports)) /* each device has one */
        shk_row_lacks(row, "rdma.devices", "no port of %s was read", name);
}

/* Fewer ports than the profile has NICs, or than NCCL_IB_HCA names, cost bandwidth: NCCL takes
 * those that are active. Others are not used. */
static void judge_down(struct shk_row *row, const struct links *links)
{
    const struct shk_profile *profile = row->ctx->profile;
    bool excludes = links->hca && *links->hca == '^';
    bool named = links->hca && *links->hca && !excludes && links->down;
    bool few = profile->nics > 1 && links->up + links->unread < (unsigned)profile->nics &&
               shk_profile_sized(row, "rdma.devices") > 0;
    shk_row_text(&row->expected, "all that are used up");
    if (links->ib && links->ib_init == links->ib) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "ib-no-subnet-manager";
        shk_row_text(&row->why, "all InfiniBand ports have a link, and wait for a subnet manager");
        shk_row_fix(row, "subnet-manager", NULL);
        return;
    }
    enum shk_verdict verdict = !links->up && !links->unread ? SHK_FAIL
                               : named || few               ? SHK_WARN
                                                            : SHK_NOTE;
    shk_row_verdict(row, verdict, SHK_EFFECT);
    const char *names = shk_strbuf_text(links->down ? &links->names : &links->spare_names);
    if (verdict == SHK_NOTE) {
        shk_row_text(&row->why, "not up, and not needed: %s", names);
        return;
    }
    row->diagnosis = "nic-port-down";
    shk_row_text(&row->why, "down: %s; %s%s", names,
                 verdict != SHK_FAIL && named ? shk_variable("nccl-hca") : "",
                 verdict == SHK_FAIL ? "no port is left"
                 : named             ? " names it"
                                     : "the profile counts on it");
    shk_row_fix(row, "port-check", NULL);
}

/* Each Slingshot and EFA function has a device once its driver serves it; an adapter of other
 * makers may be a plain Ethernet card. With fewer devices than functions nothing tells the state of
 * the others: the driver lost them, or the list is not whole. A container may be shown some only.
 */
static void judge_served(struct shk_row *row, const char *kind, long long devices)
{
    const char *container = NULL;
    long long bus = strcmp(kind, "mlx5") == 0 ? 0 : shk_read_device_count(row, kind);
    if (bus <= devices)
        return;
    (void)shk_look_text(row->ctx->facts, "host.container", &container);
    if (row->verdict == SHK_PASS && container && strcmp(container, "none") != 0) {
        shk_row_verdict(row, SHK_NOTE, SHK_EFFECT);
        shk_row_text(&row->why, "%lld of %lld on the bus are shown in this container", devices,
                     bus);
    } else {
        shk_row_lacks(row, row->fact,
                      "%lld of %lld on the bus have a device: the driver has lost the others, or "
                      "they were not listed",
                      devices, bus);
    }
}

static void say_no_device(struct shk_row *row, const char *kind)
{
    long long bus = shk_read_device_count(row, kind);
    if (bus > 0) {
        shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
        row->diagnosis = "nic-driver-failed";
        shk_row_text(&row->observed, "none of %lld on the bus has a driver", bus);
        shk_row_fix(row, "load-module", "module",
                    strcmp(kind, "cxi") == 0   ? "cxi_ss1"
                    : strcmp(kind, "efa") == 0 ? "efa"
                                               : "mlx5_ib",
                    NULL);
    } else if (bus == 0) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "no NIC of this fabric is here");
    }
}

static void judge_verbs(struct shk_row *row, const char *kind)
{
    struct links links = {.names = SHK_STRBUF_INIT, .spare_names = SHK_STRBUF_INIT};
    json_t *list = NULL, *device;
    size_t i, devices = 0;
    enum shk_look look = shk_read_array(row, "rdma.devices", &list);
    (void)shk_look_env(row->ctx->facts, shk_variable("nccl-hca"), &links.hca);
    json_array_foreach(list, i, device)
    {
        if (!is_of_kind(device, kind))
            continue;
        devices++;
        note_device(row, &links, device);
    }
    if (links.unread)
        shk_row_lacks(row, "rdma.devices", "the state of %u of %u ports could not be read",
                      links.unread, links.unread + links.up + links.down);
    if (!devices && look <= SHK_LOOK_ABSENT) {
        say_no_device(row, kind);
    } else if (devices) {
        shk_row_text(&row->observed, "%u up, %u down", links.up, links.down + links.spare_down);
        shk_row_text(&row->expected, "all up");
        if (links.down || links.spare_down) {
            (void)shk_read_env(row, shk_variable("nccl-hca"), &links.hca);
            judge_down(row, &links);
        } else if (links.up) {
            shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        }
        judge_served(row, kind, (long long)devices);
    }
    shk_strbuf_free(&links.names);
    shk_strbuf_free(&links.spare_names);
}

static void judge_cxi(struct shk_row *row)
{
    struct shk_tally tally = SHK_TALLY_INIT;
    json_t *list = NULL, *device;
    size_t i;
    enum shk_look look = shk_read_array(row, "cxi.devices", &list);
    json_array_foreach(list, i, device)
    {
        const char *state = NULL, *name = shk_member_name(device, "name");
        if (shk_look_member_text(device, "link_state", &state) != SHK_LOOK_PRESENT)
            shk_tally_unread(&tally, "%s", name);
        else if (strcasecmp(state, "up") == 0 || strcasecmp(state, "running") == 0)
            shk_tally_good(&tally);
        else
            shk_tally_bad(&tally, "%s (%s)", name, state);
    }
    if (shk_tally_judge(&tally, row, SHK_FAIL, SHK_EFFECT, "cxi.devices", "links")) {
        shk_row_text(&row->observed, "%u up, %u down", tally.good, tally.bad);
        shk_row_text(&row->expected, "all up");
    } else if (look <= SHK_LOOK_ABSENT) {
        say_no_device(row, "cxi");
    }
    if (tally.bad) {
        row->diagnosis = "cxi-link-down";
        shk_row_text(&row->why, "down: %s", shk_strbuf_text(&tally.bad_names));
        shk_row_fix(row, "link-repair", NULL);
    }
    if (json_array_size(list))
        judge_served(row, "cxi", (long long)json_array_size(list));
    if (shk_list_distinct(list, "name") < json_array_size(list))
        shk_row_lacks(row, "cxi.devices", "one device is listed twice");
    shk_tally_free(&tally);
}

static void eval_link(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nic_link, "NIC links");
    const char *kind = shk_profile_nic_kind(ctx->profile);
    row.fact = "rdma.devices, cxi.devices";
    shk_read_profile(&row);
    if (!kind) {
        row.required = ctx->profile_doubt != NULL;
        shk_row_na(findings, &row, "profile %s needs no RDMA NIC", ctx->profile->name);
        return;
    }
    row.required = 1;
    if (strcmp(kind, "cxi") == 0)
        judge_cxi(&row);
    else
        judge_verbs(&row, kind);
    shk_row_end(findings, &row);
}

const struct shk_check shk_check_nic_link = {
    .id = "nic.link",
    .diagnosis = "nic-port-down",
    .family = "devices",
    .title = "The links of the fabric's NICs are up",
    .eval = eval_link,
    .doc = "Facts: rdma.devices[].ports[].{state, link_layer}, cxi.devices[].link_state, "
           "pci.count.*, net.ifaces[].{up, running}, env.{nccl-hca}.\n"
           "A Slingshot link that is not up is FAIL. With fewer Slingshot or EFA devices than the "
           "bus has functions the row is UNKNOWN, in a container a note. Of InfiniBand and "
           "Ethernet ports "
           "NCCL takes "
           "those that are active: one that is down is WARN when fewer are left than the profile "
           "has, or when {nccl-hca} names it, FAIL when none is left, else a note. All InfiniBand "
           "ports in INIT: no subnet manager.",
};
