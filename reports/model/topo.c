#include "reports/model/topo.h"
#include "reports/model/nodecount.h"

#include <stdlib.h>
#include <string.h>

static const char *topo_text(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

static long long topo_numa(const json_t *object)
{
    const json_t *numa = json_object_get(object, "numa");
    return json_is_integer(numa) && json_integer_value(numa) >= 0 ? json_integer_value(numa) : -1;
}

static int topo_index(const struct topo_end *ends, size_t count, const char *pci)
{
    for (size_t i = 0; pci && i < count; i++)
        if (strcmp(ends[i].pci, pci) == 0)
            return (int)i;
    return -1;
}

static void topo_note_numa(struct topo *topo, long long numa)
{
    size_t at = 0;
    while (at < topo->numa_count && topo->numa[at] != numa)
        at++;
    if (at < topo->numa_count || topo->numa_count == TOPO_NODES)
        return;
    /* in order; unknown (-1) last */
    for (at = topo->numa_count++;
         at > 0 && numa >= 0 && (topo->numa[at - 1] < 0 || topo->numa[at - 1] > numa); at--)
        topo->numa[at] = topo->numa[at - 1];
    topo->numa[at] = numa;
}

static void topo_read_nics(struct topo *topo)
{
    json_t *nics = shk_facts_get_array(topo->facts, "topology.nics"), *nic;
    bool fabric = false;
    size_t i;
    json_array_foreach(nics, i, nic) fabric |= json_is_true(json_object_get(nic, "fabric"));
    json_array_foreach(nics, i, nic)
    {
        const char *name = topo_text(nic, "name"), *pci = topo_text(nic, "pci");
        if (!name || !pci || topo->nic_count == TOPO_NICS ||
            (fabric && !json_is_true(json_object_get(nic, "fabric"))))
            continue;
        topo->nics[topo->nic_count++] =
            (struct topo_end){.name = name, .pci = pci, .numa = topo_numa(nic), .nic = -1};
        topo_note_numa(topo, topo_numa(nic));
    }
}

static void topo_read_gpus(struct topo *topo)
{
    json_t *gpu;
    size_t i;
    json_t *gpus = shk_facts_get_array(topo->facts, "topology.gpus");
    json_array_foreach(gpus, i, gpu)
    {
        const char *name = topo_text(gpu, "name"), *pci = topo_text(gpu, "pci");
        if (!name || !pci || topo->gpu_count == TOPO_GPUS)
            continue;
        struct topo_end *end = &topo->gpus[topo->gpu_count++];
        *end = (struct topo_end){
            .name = name,
            .pci = pci,
            .numa = topo_numa(gpu),
            .class = topo_text(gpu, "class"),
            .nic = topo_index(topo->nics, topo->nic_count, topo_text(gpu, "nic"))};
        if (end->nic >= 0)
            topo->nics[end->nic].gpus++;
        topo_note_numa(topo, end->numa);
    }
}

static void topo_read_links(struct topo *topo)
{
    bool first = true;
    json_t *pair;
    size_t i;
    json_t *peers = shk_facts_get_array(topo->facts, "topology.peers");
    json_array_foreach(peers, i, pair)
    {
        int a = topo_index(topo->gpus, topo->gpu_count, topo_text(pair, "gpu"));
        int b = topo_index(topo->gpus, topo->gpu_count, topo_text(pair, "peer"));
        const char *class = topo_text(pair, "class");
        if (a < 0 || b < 0 || !class)
            continue;
        topo->links[a][b] = topo->links[b][a] = class;
        if (first)
            topo->common = class;
        else if (topo->common && strcmp(topo->common, class) != 0)
            topo->common = NULL;
        first = false;
    }
}

bool shk_topo_read(struct topo *topo, const struct shk_facts *facts)
{
    *topo = (struct topo){.facts = facts};
    topo_read_nics(topo);
    topo_read_gpus(topo);
    topo_read_links(topo);
    shk_topo_ends(topo);
    return topo->gpu_count > 0;
}

const char *shk_topo_distance(const struct topo *topo, size_t gpu, size_t nic)
{
    json_t *row;
    size_t i;
    json_t *ways = shk_facts_get_array(topo->facts, "topology.gpu_nic");
    json_array_foreach(ways, i, row)
    {
        const char *a = topo_text(row, "gpu"), *b = topo_text(row, "nic");
        if (a && b && strcmp(a, topo->gpus[gpu].pci) == 0 && strcmp(b, topo->nics[nic].pci) == 0)
            return topo_text(row, "class");
    }
    return NULL;
}

bool shk_topo_is_link(const char *class)
{
    return class && (strncmp(class, "NV", 2) == 0 || strcmp(class, "XGMI") == 0);
}

static bool topo_same(const struct shk_facts *a, const struct shk_facts *b)
{
    static const char *const keys[] = {"topology.gpus", "topology.nics", "topology.peers"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *x = shk_facts_get_array(a, keys[i]), *y = shk_facts_get_array(b, keys[i]);
        if ((x || y) && !(x && y && json_equal(x, y)))
            return false;
    }
    return true;
}

/* Is the same broken in both? */
static bool topo_alike(const struct topo *a, const struct topo *b)
{
    bool same = a->gpu_count == b->gpu_count && a->nic_count == b->nic_count;
    for (size_t i = 0; same && i < a->gpu_count; i++)
        same = strcmp(a->gpus[i].wrong, b->gpus[i].wrong) == 0;
    for (size_t i = 0; same && i < a->nic_count; i++)
        same = strcmp(a->nics[i].wrong, b->nics[i].wrong) == 0;
    return same;
}

static bool topo_broken(const struct topo *topo)
{
    bool broken = false;
    for (size_t i = 0; i < topo->gpu_count; i++)
        broken |= *topo->gpus[i].wrong != '\0';
    for (size_t i = 0; i < topo->nic_count; i++)
        broken |= *topo->nics[i].wrong != '\0';
    return broken;
}

/* What two readings of topologies and the nodes that have the first one take. */
struct topo_walk {
    const struct shk_model *model;
    struct topo *topo, *other;
    bool *drawn;
    const char **names;
};

/* The nodes from i on that are drawn as it is; they are drawn then. Returns their folded names. */
static char *topo_alike_of(struct topo_walk *walk, size_t i, size_t *count_p)
{
    const struct shk_report *report = walk->model->report;
    char *names = NULL;
    size_t alike = 0;
    for (size_t k = i; k < report->nodes; k++) {
        if (walk->drawn[k] || (k > i && (!topo_same(report->facts[i], report->facts[k]) ||
                                         !shk_topo_read(walk->other, report->facts[k]) ||
                                         !topo_alike(walk->topo, walk->other))))
            continue;
        walk->drawn[k] = true;
        walk->names[alike++] = walk->model->nodes[k];
    }
    if (shk_names_folded(walk->names, alike, &names, count_p)) {
        free(names);
        return NULL;
    }
    return names;
}

void shk_topo_each(const struct shk_model *model, size_t max,
                   void (*fn)(const struct topo *topo, const char *names, size_t count, void *arg),
                   void *arg)
{
    const struct shk_report *report = model->report;
    struct topo_walk walk = {.model = model,
                             .topo = malloc(2 * sizeof *walk.topo),
                             .drawn = calloc(report->nodes + 1, sizeof *walk.drawn),
                             .names = calloc(report->nodes + 1, sizeof *walk.names)};
    bool ready = walk.topo && walk.drawn && walk.names;
    walk.other = walk.topo ? walk.topo + 1 : NULL;
    for (size_t n = 0; ready && n < 2 * report->nodes && max > 0; n++) {
        size_t i = n % report->nodes, count = 0;
        bool broken_turn = n < report->nodes;
        if (walk.drawn[i] || !shk_topo_read(walk.topo, report->facts[i]) ||
            topo_broken(walk.topo) != broken_turn)
            continue;
        char *names = topo_alike_of(&walk, i, &count);
        fn(walk.topo, names ? names : model->nodes[i], count, arg);
        free(names);
        max--;
    }
    free(walk.topo);
    free(walk.drawn);
    free(walk.names);
}
