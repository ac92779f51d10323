/* Kernel settings that break sockets or memory of large jobs. */
#include "checks/base/coded.h"
#include "checks/base/read.h"
#include "checks/base/remedy.h"

#include <string.h>

struct sysctl_rule {
    const char *name;
    /* Is `value` bad here? Fills expected, why and fix when it is. What was not read for it is
     * remembered for the row. */
    bool (*bad)(struct shk_row *row, long long value);
    const char *source;
};

static unsigned long long network_of(struct shk_row *row, const json_t *addr)
{
    unsigned a, b, c, d;
    long long prefix = -1;
    const char *text = NULL, *family = NULL;
    if (!shk_read_told_text(row, "net.ifaces", addr, "family", &family) ||
        strcmp(family, "inet") != 0 ||
        !shk_read_told_text(row, "net.ifaces", addr, "addr", &text) ||
        !shk_read_told_int(row, "net.ifaces", addr, "prefix", &prefix) || prefix < 1 ||
        prefix > 31 || sscanf(text, "%3u.%3u.%3u.%3u", &a, &b, &c, &d) != 4)
        return 0;
    unsigned long long bits = a << 24 | b << 16 | c << 8 | d;
    return (bits >> (32 - prefix) << 6) | (unsigned)prefix;
}

struct networks {
    unsigned long long seen[64];
    const json_t *ifaces[64];
    size_t count;
};

/* The interface that is in the same network already; NULL: none, and this one is added. */
static const json_t *same_network(struct networks *known, unsigned long long net,
                                  const json_t *iface)
{
    for (size_t k = 0; net && k < known->count; k++)
        if (known->seen[k] == net && known->ifaces[k] != iface)
            return known->ifaces[k];
    if (net && known->count < sizeof known->seen / sizeof *known->seen) {
        known->seen[known->count] = net;
        known->ifaces[known->count++] = iface;
    }
    return NULL;
}

/* Is the interface up and no loopback? */
static bool is_used(struct shk_row *row, const json_t *iface)
{
    bool up = false, loopback = false;
    (void)shk_read_told_bool(row, "net.ifaces", iface, "up", &up);
    if (shk_look_member_bool(iface, "loopback", &loopback) == SHK_LOOK_FAILED)
        shk_row_lacks(row, "net.ifaces", "whether an interface is a loopback was not read");
    return up && !loopback;
}

/* Calls `judge` for two interfaces of this node that have addresses in one network, until it says
 * true. */
static bool for_pairs(struct shk_row *row, long long all,
                      bool (*judge)(struct shk_row *row, long long all, const json_t *a,
                                    const json_t *b))
{
    struct networks known = {.count = 0};
    json_t *ifaces = NULL, *iface, *addrs, *addr;
    size_t i, j;
    (void)shk_read_array(row, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        addrs = NULL;
        if (!is_used(row, iface))
            continue;
        (void)shk_read_told_array(row, "net.ifaces", iface, "addrs", &addrs);
        json_array_foreach(addrs, j, addr)
        {
            const json_t *other = same_network(&known, network_of(row, addr), iface);
            if (other && judge(row, all, other, iface))
                return true;
        }
    }
    return false;
}

/* What is in effect at an interface: the larger of its own value and that of all (ip-sysctl.rst).
 * -1: its own was not read, and it could change that. */
static long long in_effect(struct shk_row *row, const json_t *iface, const char *name,
                           long long all)
{
    long long own = 0;
    enum shk_look look = shk_read_member_int(row, "net.ifaces", iface, name, &own);
    if (look == SHK_LOOK_ABSENT)
        own = 0; /* no IPv4 settings of its own */
    else if (look != SHK_LOOK_PRESENT)
        return -1;
    return own > all ? own : all;
}

static bool pair_filters(struct shk_row *row, long long all, const json_t *a, const json_t *b)
{
    const json_t *strict = in_effect(row, a, "rp_filter", all) == 1   ? a
                           : in_effect(row, b, "rp_filter", all) == 1 ? b
                                                                      : NULL;
    if (!strict)
        return false;
    shk_row_text(&row->observed, "1 in effect at %s", shk_member_name(strict, "name"));
    shk_row_text(&row->expected, "2 (loose) or 0");
    shk_row_text(&row->why,
                 "%s and %s are in one network: an answer that would leave by the other one makes "
                 "the kernel drop the packet, and connections time out",
                 shk_member_name(a, "name"), shk_member_name(b, "name"));
    shk_row_fix(row, "rp-filter", NULL);
    return true;
}

/* 2 is the largest: with that no interface filters strictly. */
static bool strict_filter(struct shk_row *row, long long value)
{
    return value < 2 && for_pairs(row, value, pair_filters);
}

/* Does the interface sit on the function of an RDMA device that speaks Ethernet? */
static bool carries_roce(struct shk_row *row, const json_t *iface)
{
    json_t *devices = NULL, *device, *ports, *port;
    const char *at = NULL, *pci = NULL, *layer = NULL;
    size_t i, j;
    if (shk_read_member_text(row, "net.ifaces", iface, "pci", &at) != SHK_LOOK_PRESENT)
        return false;
    (void)shk_read_array(row, "rdma.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        ports = NULL;
        if (shk_read_member_text(row, "rdma.devices", device, "pci", &pci) != SHK_LOOK_PRESENT ||
            strcmp(pci, at) != 0 ||
            !shk_read_told_array(row, "rdma.devices", device, "ports", &ports))
            continue;
        json_array_foreach(ports, j, port)
        {
            if (shk_read_told_text(row, "rdma.devices", port, "link_layer", &layer) &&
                strcmp(layer, "Ethernet") == 0)
                return true;
        }
    }
    return false;
}

static bool pair_answers(struct shk_row *row, long long all, const json_t *a, const json_t *b)
{
    const json_t *any = in_effect(row, a, "arp_ignore", all) == 0   ? a
                        : in_effect(row, b, "arp_ignore", all) == 0 ? b
                                                                    : NULL;
    if (!any || !carries_roce(row, a) || !carries_roce(row, b))
        return false;
    shk_row_text(&row->observed, "0 in effect at %s", shk_member_name(any, "name"));
    shk_row_text(&row->expected, "1 or 2");
    shk_row_text(&row->why,
                 "%s and %s are RoCE ports in one network, and either answers ARP for the address "
                 "of the other: packets then reach the port that does not have the queue pair and "
                 "are dropped",
                 shk_member_name(a, "name"), shk_member_name(b, "name"));
    shk_row_fix(row, "arp", NULL);
    return true;
}

static bool answers_for_others(struct shk_row *row, long long value)
{
    return value == 0 && for_pairs(row, value, pair_answers);
}

static bool never_overcommit(struct shk_row *row, long long value)
{
    if (value != 2 || shk_read_gpu_count(row) <= 0)
        return false;
    shk_row_text(&row->expected, "0 or 1");
    shk_row_text(&row->why, "GPU runtimes reserve far more address space than they use, and are "
                            "refused");
    shk_row_fix(row, "overcommit", NULL);
    return true;
}

/* The kernel's default (DEFAULT_MAX_MAP_COUNT, USHRT_MAX - 5). */
static bool few_mappings(struct shk_row *row, long long value)
{
    if (value >= 65530)
        return false;
    shk_row_text(&row->expected, "at least the default, 65530");
    shk_row_text(&row->why, "registered buffers take a mapping each: Cannot allocate memory");
    shk_row_fix(row, "map-count", NULL);
    return true;
}

/* The kernel's default since Linux 5.4: with that, facts that do not speak of ranks will do. */
enum { SOMAXCONN_DEFAULT = 4096 };

static bool short_queue(struct shk_row *row, long long value)
{
    long long ranks = 0;
    enum shk_look look = shk_look_int(row->ctx->facts, "job.ranks", &ranks);
    if (look != SHK_LOOK_MISSING || value < SOMAXCONN_DEFAULT)
        (void)shk_read_int(row, "job.ranks", &ranks);
    if (value >= ranks)
        return false;
    shk_row_text(&row->expected, "at least the number of ranks, %lld", ranks);
    shk_row_text(&row->why, "all ranks connect to rank 0 at once, and the kernel drops those that "
                            "do not fit into the queue");
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%lld", ranks > SOMAXCONN_DEFAULT ? ranks : SOMAXCONN_DEFAULT);
    shk_row_fix(row, "somaxconn", "ranks", wanted, NULL);
    return true;
}

static bool reclaims_locally(struct shk_row *row, long long value)
{
    if (!value || shk_read_gpu_count(row) <= 0)
        return false;
    shk_row_text(&row->expected, "0");
    shk_row_text(&row->why, "the kernel throws out file pages instead of using memory of another "
                            "node: allocations stall");
    shk_row_fix(row, "zone-reclaim", NULL);
    return true;
}

static const struct sysctl_rule rules[] = {
    {"net.ipv4.conf.all.rp_filter", strict_filter,
     "torvalds/linux:Documentation/networking/ip-sysctl.rst"},
    {"net.ipv4.conf.all.arp_ignore", answers_for_others,
     "torvalds/linux:Documentation/networking/ip-sysctl.rst"},
    {"net.core.somaxconn", short_queue, "torvalds/linux:Documentation/networking/ip-sysctl.rst"},
    {"vm.overcommit_memory", never_overcommit,
     "torvalds/linux:Documentation/admin-guide/sysctl/vm.rst"},
    {"vm.max_map_count", few_mappings, "torvalds/linux:Documentation/admin-guide/sysctl/vm.rst"},
    {"vm.zone_reclaim_mode", reclaims_locally,
     "torvalds/linux:Documentation/admin-guide/sysctl/vm.rst"},
};

/* Judges one rule: a row of its own when it is bad, else what was not read goes to `all`. True:
 * there is such a setting and it is good. */
static bool judge_rule(const struct shk_check_context *ctx, struct shk_findings *findings,
                       const struct sysctl_rule *rule, struct shk_row *all, unsigned *bad_p)
{
    char *key = shk_strf("sysctl.%s", rule->name);
    struct shk_row row = shk_row_begin(ctx, &shk_check_sysctl, rule->name);
    long long value = 0;
    enum shk_look look = key ? shk_read_int(&row, key, &value) : SHK_LOOK_FAILED;
    bool bad = look == SHK_LOOK_PRESENT && rule->bad(&row, value);
    row.fact = key;
    row.source = rule->source;
    if (bad) {
        ++*bad_p;
        shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
        if (!row.observed)
            shk_row_text(&row.observed, "%lld", value);
        shk_row_end(findings, &row);
    } else if (shk_row_lacking(&row)) {
        shk_row_lacks(all, "sysctl.*", "%s", row.unread_why ? row.unread_why : rule->name);
    } else {
        shk_row_was_read(all);
    }
    free(row.unread_why);
    free(key);
    return look == SHK_LOOK_PRESENT && !bad;
}

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row all = shk_row_begin(ctx, &shk_check_sysctl, "sysctls");
    unsigned good = 0, bad = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        good += judge_rule(ctx, findings, &rules[i], &all, &bad);
    all.fact = "sysctl.*";
    if (bad && !shk_row_lacking(&all)) {
        /* the bad ones have rows of their own */
    } else if (good || shk_row_lacking(&all)) {
        shk_row_verdict(&all, SHK_PASS, SHK_EFFECT);
        if (good)
            shk_row_text(&all.observed, "%u checked", good);
        shk_row_end(findings, &all);
    } else {
        shk_row_na(findings, &all, "this kernel has none of them");
    }
    free(all.unread_why);
}

const struct shk_check shk_check_sysctl = {
    .id = "kernel.sysctl",
    .family = "kernel",
    .title = "Kernel settings suit the sockets and memory of large jobs",
    .eval = eval,
    .doc =
        "Facts: sysctl.{net.ipv4.conf.all.{rp_filter, arp_ignore}, net.core.somaxconn, "
        "vm.overcommit_memory, vm.max_map_count, vm.zone_reclaim_mode}, net.ifaces[].{rp_filter, "
        "arp_ignore}, rdma.devices, job.ranks.\n"
        "WARN: rp_filter 1 in effect at one of two interfaces in one network, arp_ignore 0 when "
        "both are RoCE ports (in effect is the larger of the interface's value and that of "
        "all); somaxconn below the number of ranks; overcommit_memory 2 or zone_reclaim_mode above "
        "0 with GPUs; max_map_count below "
        "the kernel's default.",
};
