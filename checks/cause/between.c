/* What nodes of one job have different values of, by their facts. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* Weight of EFA between subnets. */
enum { SUBNETS = 62 };

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

/* IPv4 network of the interface with that name; false: none, or not known. */
static bool subnet(const struct shk_facts *facts, const char *name, uint32_t *net_p, int *bits_p)
{
    json_t *ifaces = NULL, *iface, *addr;
    size_t i, k;
    (void)shk_look_array(facts, "net.ifaces", &ifaces);
    json_array_foreach(ifaces, i, iface)
    {
        if (strcmp(shk_member_name(iface, "name"), name) != 0)
            continue;
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
    }
    return false;
}

/* EFA traffic stays within one subnet: is a named interface in another one on another node? */
static void subnets(const struct between *b)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    for (size_t n = 0; n < b->nodes; n++)
        if (shk_device_count(b->facts[n], "efa") <= 0)
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
    if (nodes > 1)
        subnets(&b);
}
