/* Kernel settings that break sockets or memory of large jobs. */
#include "checks/base/coded.h"
#include "checks/base/read.h"

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
    const char *names[64];
    size_t count;
};

/* The interface that is in the same network already; NULL: none, and this one is added. */
static const char *same_network(struct networks *known, unsigned long long net, const char *name)
{
    for (size_t k = 0; net && k < known->count; k++)
        if (known->seen[k] == net && strcmp(known->names[k], name) != 0)
            return known->names[k];
    if (net && known->count < sizeof known->seen / sizeof *known->seen) {
        known->seen[known->count] = net;
        known->names[known->count++] = name;
    }
    return NULL;
}

/* Do two interfaces of this node have addresses in one network? Names of the first two. */
static bool share_network(struct shk_row *row, const char **a_p, const char **b_p)
{
    struct networks known = {.count = 0};
    json_t *ifaces = NULL, *iface, *addrs, *addr;
    size_t i, j;
    (void)shk_read_array(row, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        bool up = false, loopback = false;
        addrs = NULL;
        (void)shk_read_told_bool(row, "net.ifaces", iface, "up", &up);
        if (shk_look_member_bool(iface, "loopback", &loopback) == SHK_LOOK_FAILED)
            shk_row_lacks(row, "net.ifaces", "whether an interface is a loopback was not read");
        if (!up || loopback)
            continue;
        (void)shk_read_told_array(row, "net.ifaces", iface, "addrs", &addrs);
        json_array_foreach(addrs, j, addr)
        {
            const char *name = shk_member_name(iface, "name");
            const char *other = same_network(&known, network_of(row, addr), name);
            if (!other)
                continue;
            *a_p = other;
            *b_p = name;
            return true;
        }
    }
    return false;
}

static bool strict_filter(struct shk_row *row, long long value)
{
    const char *a, *b;
    if (value != 1 || !share_network(row, &a, &b))
        return false;
    shk_row_text(&row->expected, "2 (loose) or 0");
    shk_row_text(&row->why,
                 "%s and %s are in one network: an answer that would leave by the other one makes "
                 "the kernel drop the packet, and connections time out",
                 a, b);
    shk_row_text(&row->fix, "sysctl -w net.ipv4.conf.all.rp_filter=2");
    return true;
}

static bool never_overcommit(struct shk_row *row, long long value)
{
    if (value != 2 || shk_read_gpu_count(row) <= 0)
        return false;
    shk_row_text(&row->expected, "0 or 1");
    shk_row_text(&row->why, "GPU runtimes reserve far more address space than they use, and are "
                            "refused");
    shk_row_text(&row->fix, "sysctl -w vm.overcommit_memory=0");
    return true;
}

/* The kernel's default (DEFAULT_MAX_MAP_COUNT, USHRT_MAX - 5). */
static bool few_mappings(struct shk_row *row, long long value)
{
    if (value >= 65530)
        return false;
    shk_row_text(&row->expected, "at least the default, 65530");
    shk_row_text(&row->why, "registered buffers take a mapping each: Cannot allocate memory");
    shk_row_text(&row->fix, "sysctl -w vm.max_map_count=1048576");
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
    shk_row_text(&row->fix, "sysctl -w net.core.somaxconn=%lld",
                 ranks > SOMAXCONN_DEFAULT ? ranks : SOMAXCONN_DEFAULT);
    return true;
}

static bool reclaims_locally(struct shk_row *row, long long value)
{
    if (!value || shk_read_gpu_count(row) <= 0)
        return false;
    shk_row_text(&row->expected, "0");
    shk_row_text(&row->why, "the kernel throws out file pages instead of using memory of another "
                            "node: allocations stall");
    shk_row_text(&row->fix, "sysctl -w vm.zone_reclaim_mode=0");
    return true;
}

static const struct sysctl_rule rules[] = {
    {"net.ipv4.conf.all.rp_filter", strict_filter,
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
            shk_row_text(&all.observed, "%u looked at", good);
        shk_row_end(findings, &all);
    } else {
        shk_row_na(findings, &all, "this kernel has none of them");
    }
    free(all.unread_why);
}

const struct shk_check shk_check_sysctl = {
    .id = "kernel.sysctl",
    .family = "kernel",
    .title = "Kernel settings suit sockets and memory of large jobs",
    .eval = eval,
    .doc = "Facts: sysctl.{net.ipv4.conf.all.rp_filter, net.core.somaxconn, vm.overcommit_memory, "
           "vm.max_map_count, vm.zone_reclaim_mode}, net.ifaces, job.ranks.\n"
           "WARN: rp_filter 1 with two interfaces in one network; somaxconn below the number of "
           "ranks; overcommit_memory 2 or zone_reclaim_mode above 0 with GPUs; max_map_count below "
           "the kernel's default.",
};
