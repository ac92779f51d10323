/* What nodes of one job have different values of, by their facts. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/fabric/fabric.h"
#include "checks/log/log.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Weights of EFA between subnets, and of interfaces of one subnet, and of one name, with different
 * MTUs. */
enum { SUBNETS = 62, MTUS = 60, MTUS_BY_NAME = 38 };

struct between {
    struct shk_clues *clues;
    const struct shk_config *config;
    const struct shk_facts *const *facts;
    size_t nodes;
};

static const char *node_name(const struct between *b, size_t i)
{
    const char *name = NULL;
    (void)shk_look_text(b->facts[i], "host.name", &name);
    return name ? name : i ? "another node" : "the first node";
}

/* The first node that is known to have another value than node `from`, or nodes. */
static size_t other_node(const struct between *b, const char *name, size_t from,
                         const char **value_p)
{
    const char *mine = NULL, *theirs;
    if (shk_look_env(b->facts[from], name, &mine) != SHK_LOOK_PRESENT)
        return b->nodes;
    for (size_t i = 0; i < b->nodes; i++) {
        theirs = NULL;
        enum shk_look look = shk_look_env(b->facts[i], name, &theirs);
        bool other =
            look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && strcmp(mine, theirs) != 0);
        if (i == from || !other)
            continue;
        *value_p = theirs;
        return i;
    }
    return b->nodes;
}

static int one_setting(const struct shk_fact *fact, void *arg)
{
    const struct between *b = ((void **)arg)[0];
    size_t from = *(const size_t *)((void **)arg)[1];
    const char *name = fact->key + strlen("env."), *theirs = NULL, *mine = NULL;
    int weight = 0;
    const char *key = shk_clue_variable(b->config, name, &weight);
    size_t other = key ? other_node(b, name, from, &theirs) : b->nodes;
    if (other == b->nodes || (theirs && other < from))
        return 0;
    (void)shk_look_env(b->facts[from], name, &mine);
    shk_clue_add(b->clues, key, weight, weight >= 60,
                 theirs ? shk_strf("%s is \"%s\" on %s and \"%s\" on %s", name, mine,
                                   node_name(b, from), theirs, node_name(b, other))
                        : shk_strf("%s is \"%s\" on %s and not set on %s", name, mine,
                                   node_name(b, from), node_name(b, other)));
    return 0;
}

/* IPv4 network of an interface; false: none, or not known. */
static bool network_of(const json_t *iface, uint32_t *net_p, int *bits_p)
{
    json_t *addr;
    size_t k;
    json_array_foreach(json_object_get(iface, "addrs"), k, addr)
    {
        const char *text = NULL;
        long long bits = 0;
        struct in_addr in;
        if (shk_look_member_text(addr, "addr", &text) != SHK_LOOK_PRESENT ||
            shk_look_member_int(addr, "prefix", &bits) != SHK_LOOK_PRESENT || bits < 1 ||
            bits > 31 || inet_pton(AF_INET, text, &in) != 1)
            continue;
        *net_p = ntohl(in.s_addr) >> (32 - bits);
        *bits_p = (int)bits;
        return true;
    }
    return false;
}

/* Of the interface with that name. */
static bool subnet(const struct shk_facts *facts, const char *name, uint32_t *net_p, int *bits_p)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    (void)shk_look_array(facts, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        if (strcmp(shk_member_name(iface, "name"), name) == 0 && network_of(iface, net_p, bits_p))
            return true;
    }
    return false;
}

/* One that reaches other nodes; link-local addresses are of no subnet. */
struct reach {
    const char *name;
    uint32_t net;
    int bits;
    long long mtu;
};

static bool reaches(const json_t *iface, struct reach *r)
{
    r->name = shk_member_name(iface, "name");
    return !json_is_true(json_object_get(iface, "loopback")) &&
           !json_is_true(json_object_get(iface, "virtual")) &&
           shk_look_member_int(iface, "mtu", &r->mtu) == SHK_LOOK_PRESENT &&
           network_of(iface, &r->net, &r->bits) && !(r->bits == 16 && r->net == (169u << 8 | 254));
}

/* The interface of another node in the same subnet that has another MTU; not where one fits. */
static bool other_mtu(const struct shk_facts *facts, const struct reach *mine, struct reach *other)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    bool found = false;
    (void)shk_look_array(facts, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        struct reach r;
        if (!reaches(iface, &r) || r.bits != mine->bits || r.net != mine->net)
            continue;
        if (r.mtu == mine->mtu)
            return false;
        *other = r;
        found = true;
    }
    return found;
}

/* Within one subnet nothing tells the sender that a packet is too large for the receiver. */
static void mtus(const struct between *b)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    struct reach mine, other;
    (void)shk_look_array(b->facts[0], "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        if (!reaches(iface, &mine))
            continue;
        for (size_t n = 1; n < b->nodes; n++)
            if (other_mtu(b->facts[n], &mine, &other)) {
                shk_clue_add(b->clues, "mtu-mismatch", MTUS, true,
                             shk_strf("MTU %lld of %s on %s and %lld of %s on %s, in one subnet",
                                      mine.mtu, mine.name, node_name(b, 0), other.mtu, other.name,
                                      node_name(b, n)));
                return;
            }
    }
}

/* MTU of the interface of that name; -1: not told. */
static long long mtu_of(const struct shk_facts *facts, const char *name)
{
    json_t *ifaces = NULL, *iface;
    long long mtu = -1;
    size_t i;
    (void)shk_look_array(facts, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        if (strcmp(shk_member_name(iface, "name"), name) == 0)
            (void)shk_look_member_int(iface, "mtu", &mtu);
    }
    return mtu;
}

/* Interfaces of one name with different MTUs, where nobody told their addresses: of one network, as
 * far as is known. */
static void mtus_by_name(const struct between *b)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    (void)shk_look_array(b->facts[0], "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        const char *name = shk_member_name(iface, "name");
        long long mine = mtu_of(b->facts[0], name);
        if (mine < 0 || json_object_get(iface, "addrs") || strcmp(name, "lo") == 0)
            continue;
        for (size_t n = 1; n < b->nodes; n++) {
            long long other = mtu_of(b->facts[n], name);
            if (other < 0 || other == mine)
                continue;
            shk_clue_add(b->clues, "mtu-mismatch", MTUS_BY_NAME, false,
                         shk_strf("MTU %lld of %s on %s, and %lld on %s", mine, name,
                                  node_name(b, 0), other, node_name(b, n)));
            return;
        }
    }
}

/* Counted, else as libfabric offers it or the log names it. */
static bool has_efa(const struct between *b, size_t n)
{
    long long count = shk_device_count(b->facts[n], "efa");
    return count > 0 ||
           (count < 0 && (shk_provider_state(b->facts[n], "efa", 3) == SHK_PROVIDER_USABLE ||
                          shk_log_seen(b->facts[0], "names-efa")));
}

/* EFA traffic stays within one subnet: is a named interface in another one on another node? */
static void subnets(const struct between *b)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    for (size_t n = 0; n < b->nodes; n++)
        if (!has_efa(b, n))
            return;
    (void)shk_look_array(b->facts[0], "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        const char *name = shk_member_name(iface, "name");
        bool odd = json_is_true(json_object_get(iface, "loopback")) ||
                   json_is_true(json_object_get(iface, "virtual"));
        uint32_t mine, theirs;
        int bits, other;
        if (odd || !subnet(b->facts[0], name, &mine, &bits))
            continue;
        for (size_t n = 1; n < b->nodes; n++)
            if (subnet(b->facts[n], name, &theirs, &other) && (bits != other || mine != theirs)) {
                shk_clue_add(b->clues, "efa-nodes-different-subnets", SUBNETS, true,
                             shk_strf("%s of %s and of %s are in different subnets", name,
                                      node_name(b, 0), node_name(b, n)));
                return;
            }
    }
}

void shk_clues_between_nodes(struct shk_clues *clues, const struct shk_config *config,
                             const struct shk_facts *const *facts, size_t nodes)
{
    struct between b = {clues, config, facts, nodes};
    for (size_t i = 0; nodes > 1 && i < nodes; i++) {
        void *arg[] = {&b, &i};
        (void)shk_facts_each(facts[i], "env.", one_setting, arg);
    }
    if (nodes > 1) {
        subnets(&b);
        mtus(&b);
        mtus_by_name(&b);
    }
}

void shk_clues_of_alike(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *const *facts, size_t nodes)
{
    const struct shk_facts **of = calloc(nodes + 1, sizeof(*of));
    char **hardware = calloc(nodes + 1, sizeof(*hardware));
    bool any = false;
    for (size_t i = 0; hardware && i < nodes; i++)
        any |= (hardware[i] = shk_kind_hardware(facts[i])) != NULL;
    for (size_t i = 0; of && hardware && i < nodes; i++) {
        size_t count = 0, before = 0;
        while (before < i &&
               (!hardware[i] || !hardware[before] || strcmp(hardware[before], hardware[i]) != 0))
            before++;
        if (before < i || (any ? !hardware[i] : i > 0))
            continue; /* its kind has been seen, or it goes with each of them */
        for (size_t k = 0; k < nodes; k++)
            if (!hardware[i] || !hardware[k] || strcmp(hardware[i], hardware[k]) == 0)
                of[count++] = facts[k];
        shk_clues_from_rules(clues, config, of, count);
        shk_clues_between_nodes(clues, config, of, count);
    }
    clues->failed |= !of || !hardware;
    for (size_t i = 0; hardware && i < nodes; i++)
        free(hardware[i]);
    free(hardware);
    free(of);
}
