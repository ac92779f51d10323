/* Kernel settings that break sockets or memory of large jobs. */
#include "checks/coded.h"

#include <string.h>

struct sysctl_rule {
    const char *name;
    /* Is `value` bad here? Fills expected, why and fix when it is. */
    bool (*bad)(const struct shk_facts *facts, long long value, struct shk_row *row);
    const char *source;
};

static unsigned long long network_of(const json_t *addr)
{
    unsigned a, b, c, d;
    const char *text = shk_member_text(addr, "addr"), *family = shk_member_text(addr, "family");
    long long prefix = shk_member_int(addr, "prefix", -1);
    if (!text || !family || strcmp(family, "inet") != 0 || prefix < 1 || prefix > 31 ||
        sscanf(text, "%3u.%3u.%3u.%3u", &a, &b, &c, &d) != 4)
        return 0;
    unsigned long long bits = a << 24 | b << 16 | c << 8 | d;
    return (bits >> (32 - prefix) << 6) | (unsigned)prefix;
}

/* Do two interfaces of this node have addresses in one network? Names of the first two. */
static bool share_network(const struct shk_facts *facts, const char **a_p, const char **b_p)
{
    unsigned long long seen[64];
    const char *names[64];
    size_t n = 0, i, j;
    json_t *iface, *addr;
    json_array_foreach(shk_facts_get_array(facts, "net.ifaces"), i, iface)
    {
        if (shk_member_bool(iface, "loopback", false) || !shk_member_bool(iface, "up", false))
            continue;
        json_array_foreach(json_object_get(iface, "addrs"), j, addr)
        {
            unsigned long long net = network_of(addr);
            const char *name = shk_member_text(iface, "name");
            for (size_t k = 0; net && k < n; k++)
                if (seen[k] == net && name && strcmp(names[k], name) != 0) {
                    *a_p = names[k];
                    *b_p = name;
                    return true;
                }
            if (net && name && n < sizeof seen / sizeof *seen) {
                seen[n] = net;
                names[n++] = name;
            }
        }
    }
    return false;
}

static bool strict_filter(const struct shk_facts *facts, long long value, struct shk_row *row)
{
    const char *a, *b;
    if (value != 1 || !share_network(facts, &a, &b))
        return false;
    shk_row_text(&row->expected, "2 (loose) or 0");
    shk_row_text(&row->why,
                 "%s and %s are in one network: an answer that would leave by the other one makes "
                 "the kernel drop the packet, and connections time out",
                 a, b);
    shk_row_text(&row->fix, "sysctl -w net.ipv4.conf.all.rp_filter=2");
    return true;
}

static bool never_overcommit(const struct shk_facts *facts, long long value, struct shk_row *row)
{
    if (value != 2 || shk_gpu_count(facts) <= 0)
        return false;
    shk_row_text(&row->expected, "0 or 1");
    shk_row_text(&row->why, "GPU runtimes reserve far more address space than they use, and are "
                            "refused");
    shk_row_text(&row->fix, "sysctl -w vm.overcommit_memory=0");
    return true;
}

/* The kernel's default (DEFAULT_MAX_MAP_COUNT, USHRT_MAX - 5). */
static bool few_mappings(const struct shk_facts *facts, long long value, struct shk_row *row)
{
    (void)facts;
    if (value >= 65530)
        return false;
    shk_row_text(&row->expected, "at least the default, 65530");
    shk_row_text(&row->why, "registered buffers take a mapping each: Cannot allocate memory");
    shk_row_text(&row->fix, "sysctl -w vm.max_map_count=1048576");
    return true;
}

static bool short_queue(const struct shk_facts *facts, long long value, struct shk_row *row)
{
    long long ranks = shk_facts_get_int(facts, "job.ranks", -1);
    if (value >= ranks)
        return false;
    shk_row_text(&row->expected, "at least the number of ranks, %lld", ranks);
    shk_row_text(&row->why, "all ranks connect to rank 0 at once, and the kernel drops those that "
                            "do not fit into the queue");
    shk_row_text(&row->fix, "sysctl -w net.core.somaxconn=%lld", ranks > 4096 ? ranks : 4096);
    return true;
}

static bool reclaims_locally(const struct shk_facts *facts, long long value, struct shk_row *row)
{
    if (!value || shk_gpu_count(facts) <= 0)
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

static void eval(const struct shk_check_context *ctx, struct shk_findings *findings)
{
    struct shk_row all = shk_row_start(&shk_check_sysctl, "sysctls");
    unsigned good = 0, bad = 0;
    const char *unread = NULL;
    char *unread_key = NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char *key = shk_strf("sysctl.%s", rules[i].name);
        struct shk_row row = shk_row_start(&shk_check_sysctl, rules[i].name);
        struct shk_fact fact;
        enum shk_look look = key ? shk_look(ctx->facts, key, &fact) : SHK_LOOK_MISSING;
        bool known = look == SHK_LOOK_PRESENT && json_is_integer(fact.value);
        row.fact = key;
        row.source = rules[i].source;
        if (known && rules[i].bad(ctx->facts, json_integer_value(fact.value), &row)) {
            bad++;
            shk_row_verdict(&row, SHK_WARN, SHK_EFFECT);
            shk_row_text(&row.observed, "%lld", (long long)json_integer_value(fact.value));
            shk_row_end(findings, &row);
        } else {
            good += known;
            if (!known && look != SHK_LOOK_ABSENT && !unread) {
                unread = rules[i].name;
                unread_key = key;
                key = NULL;
            }
        }
        free(key);
    }
    all.fact = "sysctl.*";
    if (!bad && unread) {
        shk_row_unread(findings, &all, ctx->facts, unread_key ? unread_key : "sysctl");
    } else if (!bad && good) {
        shk_row_verdict(&all, SHK_PASS, SHK_EFFECT);
        shk_row_text(&all.observed, "%u looked at", good);
        shk_row_end(findings, &all);
    } else if (!bad) {
        shk_row_na(findings, &all, "this kernel has none of them");
    }
    free(unread_key);
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
