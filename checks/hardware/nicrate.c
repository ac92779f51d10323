/* NICs of one kind on one node run at one rate and put as much into a packet. */
#include "checks/base/coded.h"
#include "checks/base/remedy.h"
#include "checks/base/tally.h"

#include <string.h>
#include <strings.h>

/* Fewer ports than this have no majority. */
enum { RATE_MIN = 3 };

struct rate_port {
    char *group; /* ports that are built alike */
    char *name, *rate;
    double gbps; /* 0: only the text is known */
};

struct rates {
    struct rate_port *ports;
    size_t count, size;
    struct shk_tally tally;
};

static void add_port(struct rates *rates, char *group, char *name, char *rate, double gbps)
{
    if (rates->count == rates->size) {
        size_t size = rates->size ? 2 * rates->size : 16;
        struct rate_port *more = realloc(rates->ports, size * sizeof *more);
        if (more) {
            rates->ports = more;
            rates->size = size;
        }
    }
    if (rates->count < rates->size && group && name && rate) {
        rates->ports[rates->count++] = (struct rate_port){group, name, rate, gbps};
        return;
    }
    free(group);
    free(name);
    free(rate);
}

/* The chip at an address, as vendors number them; "" when it is not known. */
static const char *chip_at(const struct shk_facts *facts, const json_t *nic)
{
    json_t *list = NULL, *device;
    const char *pci = NULL, *addr, *chip;
    size_t i;
    if (shk_look_member_text(nic, "pci", &pci) != SHK_LOOK_PRESENT ||
        shk_look_array(facts, "pci.devices", &list) != SHK_LOOK_PRESENT)
        return "";
    json_array_foreach(list, i, device)
    {
        if (shk_look_member_text(device, "addr", &addr) == SHK_LOOK_PRESENT &&
            strcmp(addr, pci) == 0 &&
            shk_look_member_text(device, "device", &chip) == SHK_LOOK_PRESENT)
            return chip;
    }
    return "";
}

static void note_port(struct rates *rates, const struct shk_facts *facts, const json_t *nic,
                      const json_t *port)
{
    const char *name = shk_member_name(nic, "name"), *state = NULL, *layer = NULL;
    double rate = 0;
    enum shk_look look = shk_look_member_text(port, "state", &state);
    if (look == SHK_LOOK_PRESENT && !strcasestr(state, "active"))
        return;
    if (look == SHK_LOOK_PRESENT &&
        shk_look_member_number(port, "rate", &rate) == SHK_LOOK_PRESENT && rate > 0 &&
        shk_look_member_text(port, "link_layer", &layer) == SHK_LOOK_PRESENT)
        add_port(rates, shk_strf("%s %s", layer, chip_at(facts, nic)), strdup(name),
                 shk_strf("%g Gb/s", rate), rate);
    else
        shk_tally_unread(&rates->tally, "%s", name);
}

static void read_verbs(struct shk_row *row, struct rates *rates)
{
    json_t *list = NULL, *device, *ports, *port;
    size_t i, k;
    (void)shk_read_array(row, "rdma.devices", &list);
    json_array_foreach(list, i, device)
    {
        ports = NULL;
        (void)shk_read_member_array(row, "rdma.devices", device, "ports", &ports);
        json_array_foreach(ports, k, port) note_port(rates, row->ctx->facts, device, port);
    }
}

static void read_cxi(struct shk_row *row, struct rates *rates)
{
    json_t *list = NULL, *device;
    size_t i;
    (void)shk_read_array(row, "cxi.devices", &list);
    json_array_foreach(list, i, device)
    {
        const char *name = shk_member_name(device, "name"), *speed = NULL, *state = NULL;
        enum shk_look look = shk_look_member_text(device, "link_state", &state);
        if (look == SHK_LOOK_PRESENT && strcasecmp(state, "up") && strcasecmp(state, "running"))
            continue;
        if (look == SHK_LOOK_PRESENT &&
            shk_look_member_text(device, "link_speed", &speed) == SHK_LOOK_PRESENT)
            add_port(rates, strdup("Slingshot"), strdup(name), strdup(speed), 0);
        else
            shk_tally_unread(&rates->tally, "%s", name);
    }
}

static size_t same(const struct rates *rates, const struct rate_port *port, bool rate)
{
    size_t count = 0;
    for (size_t i = 0; i < rates->count; i++)
        count += strcmp(rates->ports[i].group, port->group) == 0 &&
                 (!rate || strcmp(rates->ports[i].rate, port->rate) == 0);
    return count;
}

/* The rate that more than half of the ports like this one have; NULL: none has. */
static const struct rate_port *usual(const struct rates *rates, const struct rate_port *port)
{
    size_t all = same(rates, port, false);
    for (size_t i = 0; i < rates->count && all >= RATE_MIN; i++)
        if (strcmp(rates->ports[i].group, port->group) == 0 &&
            same(rates, &rates->ports[i], true) * 2 > all)
            return &rates->ports[i];
    return NULL;
}

/* One port that is slower than its siblings has a bad lane or cable. Several at one lower rate are
 * another network: storage, for example. */
static const struct rate_port *judge_ports(struct rates *rates)
{
    const struct rate_port *common = NULL;
    for (size_t i = 0; i < rates->count; i++) {
        const struct rate_port *port = &rates->ports[i], *most = usual(rates, port);
        bool slow = most && strcmp(most->rate, port->rate) != 0 && port->gbps <= most->gbps;
        if (slow && same(rates, port, true) == 1) {
            shk_tally_bad(&rates->tally, "%s %s", port->name, port->rate);
            common = most;
        } else {
            shk_tally_good(&rates->tally);
        }
    }
    return common;
}

static void say_rates(struct shk_row *row, const struct rates *rates)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    for (size_t i = 0; i < rates->count; i++) {
        size_t k = 0, count = 0;
        while (strcmp(rates->ports[k].rate, rates->ports[i].rate) != 0)
            k++;
        if (k < i)
            continue;
        for (; k < rates->count; k++)
            count += strcmp(rates->ports[k].rate, rates->ports[i].rate) == 0;
        shk_strbuf_printf(&text, "%s%zu at %s", text.len ? ", " : "", count, rates->ports[i].rate);
    }
    shk_row_text(&row->observed, "%s", shk_strbuf_text(&text));
    shk_strbuf_free(&text);
}

static void judge(struct shk_row *row, struct rates *rates, const char *fact)
{
    const struct rate_port *common = judge_ports(rates);
    if (!shk_tally_judge(&rates->tally, row, SHK_WARN, SHK_EFFECT, fact, "rates")) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "no link is up");
        return;
    }
    say_rates(row, rates);
    if (!common)
        return;
    row->diagnosis = "nic-port-slow";
    shk_row_text(&row->expected, "%s, as the other NICs of its type", common->rate);
    shk_row_text(&row->why, "slower than its siblings: %s",
                 shk_strbuf_text(&rates->tally.bad_names));
    shk_row_fix(row, strcmp(fact, "cxi.devices") == 0 ? "nic-cxi-rate" : "nic-rate", NULL);
}

static void free_rates(struct rates *rates)
{
    for (size_t i = 0; i < rates->count; i++) {
        free(rates->ports[i].group);
        free(rates->ports[i].name);
        free(rates->ports[i].rate);
    }
    free(rates->ports);
    shk_tally_free(&rates->tally);
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nic_rate, "NIC link rates");
    const char *kind = shk_profile_nic_kind(ctx->profile);
    struct rates rates = {.tally = SHK_TALLY_INIT};
    shk_read_profile(&row);
    row.fact = kind && strcmp(kind, "cxi") == 0 ? "cxi.devices" : "rdma.devices";
    if (!kind) {
        shk_row_verdict(&row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row.why, "profile %s needs no RDMA NIC", ctx->profile->name);
    } else {
        if (strcmp(kind, "cxi") == 0)
            read_cxi(&row, &rates);
        else
            read_verbs(&row, &rates);
        judge(&row, &rates, row.fact);
    }
    shk_row_end(findings, &row);
    free_rates(&rates);
}

const struct shk_check shk_check_nic_rate = {
    .id = "nic.rate",
    .family = "devices",
    .title = "NICs of the same type run at the same rate",
    .eval = eval,
    .doc = "Facts: rdma.devices[].ports[].{state, rate, link_layer}, cxi.devices[].link_speed, "
           "pci.devices[].device.\n"
           "Of ports of one chip and one link layer, one that is slower than more than half of the "
           "others is WARN. Several at one lower rate are another network.",
};

/* What libibverbs says of that port; NULL: nothing. */
static const json_t *mtu_of(json_t *verbs, const char *name, const json_t *port)
{
    json_t *device, *ports, *one;
    long long number = 0, its = 0;
    size_t i, k;
    if (shk_look_member_int(port, "port", &number) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(verbs, i, device)
    {
        ports = NULL;
        if (strcmp(shk_member_name(device, "name"), name) != 0)
            continue;
        (void)shk_look_member_objects(device, "ports", &ports);
        json_array_foreach(ports, k, one)
        {
            if (shk_look_member_int(one, "port", &its) == SHK_LOOK_PRESENT && its == number)
                return one;
        }
    }
    return NULL;
}

/* Over Ethernet a node may have ports of one kind for jobs and for storage: those next to a GPU are
 * compared with each other. NULL: not known. */
static const char *mtu_use(struct shk_row *row, const json_t *nic, const char *layer)
{
    json_t *nics = NULL, *one, *gpus = NULL;
    const char *pci = NULL, *its = NULL;
    size_t i;
    if (strcmp(layer, "Ethernet") != 0)
        return "";
    enum shk_look look = shk_read_array(row, "topology.nics", &nics);
    if (!shk_look_told(look) || shk_look_member_text(nic, "pci", &pci) != SHK_LOOK_PRESENT)
        return NULL;
    json_array_foreach(nics, i, one)
    {
        if (shk_look_member_text(one, "pci", &its) != SHK_LOOK_PRESENT || strcmp(its, pci) != 0)
            continue;
        if (shk_look_member_texts(one, "gpus", &gpus) != SHK_LOOK_PRESENT)
            return NULL;
        return json_array_size(gpus) ? " of a GPU" : "";
    }
    return "";
}

/* *less_p: how many could put more into a packet than they do. */
static void mtu_port(struct rates *rates, struct shk_row *row, const json_t *nic,
                     const json_t *port, const json_t *told, unsigned *less_p)
{
    const char *name = shk_member_name(nic, "name"), *state = NULL, *layer = NULL, *use = NULL;
    long long mtu = 0, most = 0;
    double rate = 0;
    enum shk_look look = shk_look_member_text(port, "state", &state);
    if (look == SHK_LOOK_PRESENT && !strcasestr(state, "active"))
        return;
    if (look == SHK_LOOK_PRESENT &&
        shk_look_member_number(port, "rate", &rate) == SHK_LOOK_PRESENT &&
        shk_look_member_text(port, "link_layer", &layer) == SHK_LOOK_PRESENT)
        use = mtu_use(row, nic, layer);
    if (!use || shk_look_member_int(told, "mtu", &mtu) != SHK_LOOK_PRESENT ||
        shk_look_member_int(told, "mtu_max", &most) != SHK_LOOK_PRESENT) {
        shk_tally_unread(&rates->tally, "%s", name);
        return;
    }
    *less_p += mtu < most;
    add_port(rates, shk_strf("%s %s %g%s", layer, chip_at(row->ctx->facts, nic), rate, use),
             strdup(name), shk_strf("%lld B", mtu), (double)mtu);
}

static void judge_mtu(struct shk_row *row, struct rates *rates, unsigned less)
{
    const struct rate_port *common = judge_ports(rates);
    enum shk_verdict verdict = common ? SHK_WARN : SHK_NOTE;
    if (!common && less && !rates->tally.unread) {
        shk_row_verdict(row, verdict, SHK_EFFECT);
    } else if (!shk_tally_judge(&rates->tally, row, verdict, SHK_EFFECT, "verbs.devices", "MTUs")) {
        shk_row_verdict(row, SHK_NA, SHK_NOT_COVERED);
        shk_row_text(&row->why, "no port is active");
        return;
    }
    say_rates(row, rates);
    if (!common && !less)
        return;
    row->diagnosis = common ? "mtu-mismatch" : NULL;
    shk_row_text(&row->expected, "%s", common ? common->rate : "what the ports can do at most");
    if (common)
        shk_row_text(&row->why,
                     "a connection has the smaller MTU of its two ends: more packets, and "
                     "more work, for the same data: %s",
                     shk_strbuf_text(&rates->tally.bad_names));
    else
        shk_row_text(&row->why, "%u of %zu ports could put more into a packet", less, rates->count);
    shk_row_fix(row, "rdma-mtu", NULL);
}

static void eval_mtu(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row row = shk_row_begin(ctx, &shk_check_nic_mtu, "RDMA MTU");
    struct rates rates = {.tally = SHK_TALLY_INIT};
    json_t *list = NULL, *verbs = NULL, *device, *ports, *port;
    unsigned less = 0;
    size_t i, k;
    row.fact = "verbs.devices, rdma.devices";
    row.source =
        "rdma-core: ibv_query_port(3); torvalds/linux:include/rdma/ib_addr.h, iboe_get_mtu; "
        "NVIDIA/nccl:src/transport/net_ib.cc, path_mtu";
    if (shk_read_array(&row, "rdma.devices", &list) == SHK_LOOK_ABSENT) {
        shk_row_na(findings, &row, "no RDMA device on this node");
        return;
    }
    (void)shk_read_array(&row, "verbs.devices", &verbs);
    json_array_foreach(list, i, device)
    {
        ports = NULL;
        (void)shk_read_member_array(&row, "rdma.devices", device, "ports", &ports);
        json_array_foreach(ports, k, port)
            mtu_port(&rates, &row, device, port,
                     mtu_of(verbs, shk_member_name(device, "name"), port), &less);
    }
    judge_mtu(&row, &rates, less);
    shk_row_end(findings, &row);
    free_rates(&rates);
}

const struct shk_check shk_check_nic_mtu = {
    .id = "nic.mtu",
    .family = "devices",
    .title = "Ports of the same type use the same RDMA MTU, the largest",
    .eval = eval_mtu,
    .doc =
        "Facts: verbs.devices[].ports[].{mtu, mtu_max}, rdma.devices[].ports[].{state, rate, "
        "link_layer}, pci.devices[].device.\n"
        "Of active ports of one chip, link layer and rate, one whose MTU is smaller than that of "
        "more than half of the others is WARN (over Ethernet, of those next to a GPU, and of the "
        "others). A smaller one than the port can have is a note: "
        "over Ethernet it follows from the MTU of the interface, over InfiniBand from the "
        "subnet manager.",
};
