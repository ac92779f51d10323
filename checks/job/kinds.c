/* Which nodes may be compared with each other? */
#include "checks/base/row.h"
#include "core/text/order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* So many nodes with one number of GPUs make a single node with fewer the odd one. */
enum { KINDS_MAJORITY = 3 };

struct kind_node {
    const struct shk_profile *profile;
    char *hardware; /* makers and models; NULL: not read */
    long long gpus;
    size_t weight;
    size_t kind; /* 1 + number, 0: none yet */
};

/* Adds the texts of a member of a list, sorted, each once. */
static void kind_models(struct shk_strbuf *sb, const struct shk_facts *facts, const char *key,
                        const char *member)
{
    json_t *list = NULL, *device;
    size_t i, count = 0;
    if (shk_look_array(facts, key, &list) != SHK_LOOK_PRESENT)
        return;
    const char **names = calloc(json_array_size(list) + 1, sizeof *names);
    json_array_foreach(list, i, device)
    {
        const char *name = NULL;
        if (names && shk_look_member_text(device, member, &name) == SHK_LOOK_PRESENT &&
            !shk_list_has(names, name))
            names[count++] = name;
    }
    if (count > 1)
        qsort(names, count, sizeof *names, shk_order_text);
    for (i = 0; i < count; i++)
        shk_strbuf_printf(sb, " %s,", names[i]);
    free(names);
}

/* NULL when a count was not read. */
static char *kind_hardware(const struct shk_facts *facts, long long *gpus_p)
{
    static const char *const nics[] = {"efa", "cxi", "mlx5"};
    static const struct {
        const char *kind, *list, *model;
    } gpus[] = {{"gpu-nvidia", "gpu.nvidia.devices", "model"},
                {"gpu-amd", "gpu.amd.devices", "gfx"},
                {"neuron", "neuron.devices", "model"},
                {"gpu-intel", NULL, NULL}};
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    bool unread = false;
    *gpus_p = 0;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        long long count = shk_device_count(facts, gpus[i].kind);
        unread |= count < 0 && gpus[i].list;
        if (count <= 0)
            continue;
        *gpus_p += count;
        shk_strbuf_printf(&sb, "%s:", gpus[i].kind);
        if (gpus[i].list)
            kind_models(&sb, facts, gpus[i].list, gpus[i].model);
    }
    for (size_t i = 0; i < sizeof nics / sizeof *nics; i++) {
        long long count = shk_device_count(facts, nics[i]);
        unread |= count < 0;
        if (count > 0)
            shk_strbuf_printf(&sb, "%s ", nics[i]);
    }
    if (!sb.len)
        shk_strbuf_puts(&sb, "nothing");
    if (!unread)
        return shk_strbuf_take(&sb);
    shk_strbuf_free(&sb);
    return NULL;
}

static bool kind_same(const struct kind_node *a, const struct kind_node *b)
{
    return a->profile == b->profile && a->hardware && b->hardware &&
           strcmp(a->hardware, b->hardware) == 0;
}

/* How many nodes are like this one, with the same number of GPUs? */
static size_t kind_like(const struct kind_node *nodes, size_t count, const struct kind_node *node)
{
    size_t weight = 0;
    for (size_t i = 0; i < count; i++)
        if (kind_same(&nodes[i], node) && nodes[i].gpus == node->gpus)
            weight += nodes[i].weight;
    return weight;
}

/* The node whose kind this one belongs to, though it is not just like it; NULL: none. */
static const struct kind_node *kind_host(const struct kind_node *nodes, size_t count,
                                         const struct kind_node *node)
{
    const struct kind_node *best = NULL;
    size_t most = 0;
    bool single = node->hardware && kind_like(nodes, count, node) == 1;
    for (size_t i = 0; i < count; i++) {
        const struct kind_node *other = &nodes[i];
        bool lost = single && kind_same(other, node) && other->gpus > node->gpus;
        if (other->profile != node->profile || !other->hardware || (node->hardware && !lost))
            continue;
        size_t weight = kind_like(nodes, count, other);
        if (weight > most && (!lost || weight >= KINDS_MAJORITY)) {
            best = other;
            most = weight;
        }
    }
    return best;
}

/* The first node of the same kind before or after this one; itself: a kind of its own. */
static size_t kind_leader(const struct kind_node *nodes, size_t count, size_t at)
{
    const struct kind_node *node = kind_host(nodes, count, &nodes[at]);
    node = node ? node : &nodes[at];
    for (size_t i = 0; i < count; i++) {
        bool unread = !node->hardware && !nodes[i].hardware && nodes[i].profile == node->profile;
        if (unread || (kind_same(&nodes[i], node) && nodes[i].gpus == node->gpus))
            return i;
    }
    return at;
}

static void kind_number(struct kind_node *nodes, size_t count, size_t *kinds_p, size_t *total_p)
{
    for (size_t i = 0; i < count; i++) {
        struct kind_node *leader = &nodes[kind_leader(nodes, count, i)];
        if (!leader->kind)
            leader->kind = ++*total_p;
        kinds_p[i] = leader->kind - 1;
    }
}

char *shk_kind_hardware(const struct shk_facts *facts)
{
    long long gpus = 0;
    return kind_hardware(facts, &gpus);
}

int shk_checks_kinds(const struct shk_facts *const *facts,
                     const struct shk_profile *const *profiles, const size_t *weights, size_t nodes,
                     size_t *kinds_p)
{
    struct kind_node *all = calloc(nodes + 1, sizeof *all);
    size_t total = 0;
    if (!all)
        return -ENOMEM;
    for (size_t i = 0; i < nodes; i++) {
        all[i].profile = profiles[i];
        all[i].weight = weights ? weights[i] : 1;
        all[i].hardware = kind_hardware(facts[i], &all[i].gpus);
    }
    kind_number(all, nodes, kinds_p, &total);
    for (size_t i = 0; i < nodes; i++)
        free(all[i].hardware);
    free(all);
    return (int)total;
}
