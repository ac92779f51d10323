/* What kind of fabric, accelerator and surroundings the evidence shows: a guess at a cause that
 * cannot be there is dropped, one that fits comes before one that only might, and a line that is
 * printed elsewhere, too, is no more than a guess where its usual cause cannot be. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"

#include <stdlib.h>
#include <string.h>

enum {
    FITS = 6,    /* added to guesses that fit what the evidence shows */
    UNSHOWN = 48 /* at most, where nothing shows that the cause can be there: not likely */
};

enum group { FABRIC, LINK, GPU, PLACE, GROUPS };

static const struct {
    const char *name; /* as in only-on of a diagnosis */
    enum group group;
    const char *condition;    /* on facts: it is there */
    const char *refuted;      /* on facts: it is not; NULL: where another one of the group is */
    const char *signature;    /* a line that names it */
    const char *libraries[4]; /* that run nowhere else */
} worlds[] = {
    {"efa", FABRIC, "efa>0", NULL, "names-efa", {"efa"}},
    {"cxi", FABRIC, "cxi>0", NULL, "names-cxi", {"cxi"}},
    {"verbs", FABRIC, "mlx5>0", NULL, "names-verbs", {0}},
    {"opa", FABRIC, NULL, NULL, "names-opa", {0}},
    {"ib", LINK, NULL, NULL, "names-ib", {0}},
    {"roce", LINK, NULL, NULL, "names-roce", {0}},
    {"nvidia", GPU, "gpu=nvidia", NULL, "names-nvidia", {"cuda", "fabric-manager", "nvshmem"}},
    {"amd", GPU, "gpu=amd", NULL, "names-amd", {"hip", "miopen"}},
    {"neuron", GPU, "gpu=neuron", NULL, "names-neuron", {"neuron"}},
    {"container", PLACE, "container", "host.container=none", "names-container", {"container"}},
};
enum { WORLDS = sizeof worlds / sizeof *worlds };

struct shown {
    bool there[WORLDS], not_there[WORLDS];
};

static bool any_node(const char *condition, const struct shk_facts *const *facts, size_t nodes)
{
    for (size_t i = 0; condition && i < nodes; i++)
        if (shk_condition_holds(condition, facts[i]) == 1)
            return true;
    return false;
}

/* Has a port of the RDMA devices the link layer of this world? */
static bool any_layer(const char *world, const struct shk_facts *const *facts, size_t nodes)
{
    bool ib = strcmp(world, "ib") == 0, roce = strcmp(world, "roce") == 0;
    const char *layer = ib ? "InfiniBand" : roce ? "Ethernet" : NULL;
    json_t *devices, *device, *port;
    size_t i, k;
    for (size_t n = 0; layer && n < nodes; n++) {
        devices = NULL;
        (void)shk_look_array(facts[n], "rdma.devices", &devices);
        json_array_foreach(devices, i, device)
        {
            json_array_foreach(json_object_get(device, "ports"), k, port)
            {
                const char *text = NULL;
                (void)shk_look_member_text(port, "link_layer", &text);
                if (text && strcmp(text, layer) == 0)
                    return true;
            }
        }
    }
    return false;
}

static bool library_speaks(const struct shk_config *config, const struct shk_facts *facts,
                           const char *const *libraries)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    for (size_t i = 0; *libraries && i < count; i++)
        for (const char *const *lib = libraries; *lib; lib++)
            if (strcmp(sigs[i].library, *lib) == 0 && shk_log_seen(facts, sigs[i].id))
                return true;
    return false;
}

/* The name of a container (the first 12 digits of its id) or of a pod of a training job. */
static bool names_container(const char *node)
{
    static const char *const pods[] = {"-worker-", "-launcher-", "-master-", "-replica-"};
    if (strlen(node) == 12 && strspn(node, "0123456789abcdef") == 12)
        return true;
    for (size_t i = 0; i < sizeof pods / sizeof *pods; i++) {
        const char *at = strstr(node, pods[i]);
        at = at ? at + strlen(pods[i]) : NULL;
        if (at && *at && at[strspn(at, "0123456789")] == '\0')
            return true;
    }
    return false;
}

static bool any_container(const json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const char *node = json_string_value(json_array_get(nodes, i));
        if (node && names_container(node))
            return true;
    }
    return false;
}

/* Do processes in containers speak? By the names of their nodes. */
static bool containers_speak(const struct shk_config *config, const struct shk_facts *facts)
{
    size_t count;
    const struct shk_signature *sigs = shk_config_signatures(config, &count);
    for (size_t i = 0; i < count; i++)
        if (any_container(json_object_get(shk_log_seen(facts, sigs[i].id), "nodes")))
            return true;
    return false;
}

/* Where no line and no port says which link layer it is, RDMA devices may have either. */
static void settle_links(struct shown *shown, bool known)
{
    size_t verbs = 0;
    while (strcmp(worlds[verbs].name, "verbs") != 0)
        verbs++;
    for (size_t w = 0; w < WORLDS; w++) {
        if (worlds[w].group != LINK)
            continue;
        shown->there[w] = known ? shown->there[w] : shown->there[verbs];
        shown->not_there[w] |= shown->not_there[verbs];
    }
}

static struct shown look(const struct shk_config *config, const struct shk_facts *const *facts,
                         size_t nodes)
{
    struct shown shown = {0};
    bool groups[GROUPS] = {0}, logs = nodes && shk_log_given(facts[0]);
    for (size_t w = 0; w < WORLDS; w++) {
        shown.there[w] = any_node(worlds[w].condition, facts, nodes) ||
                         any_layer(worlds[w].name, facts, nodes) ||
                         (logs && (shk_log_seen(facts[0], worlds[w].signature) ||
                                   library_speaks(config, facts[0], worlds[w].libraries)));
        if (logs && worlds[w].group == PLACE)
            shown.there[w] |= containers_speak(config, facts[0]);
        groups[worlds[w].group] |= shown.there[w];
    }
    for (size_t w = 0; w < WORLDS; w++)
        shown.not_there[w] =
            !shown.there[w] && (worlds[w].group == PLACE ? any_node(worlds[w].refuted, facts, nodes)
                                                         : groups[worlds[w].group]);
    settle_links(&shown, groups[LINK]);
    return shown;
}

/* 1: the evidence shows a place where the cause can occur, -1: it shows others only, 0: neither. */
static int fits(const struct shown *shown, const struct shk_diagnosis *entry)
{
    bool there = false, gone = entry && entry->only_on;
    for (size_t w = 0; entry && entry->only_on && w < WORLDS; w++) {
        if (!shk_list_has(entry->only_on, worlds[w].name))
            continue;
        there |= shown->there[w];
        gone &= shown->not_there[w];
    }
    return there ? 1 : gone ? -1 : 0;
}

/* Can it be in a container only, or on one kind of link only? Lines of a library or driver name
 * their fabric and their GPU themselves, these they do not. */
static bool needs_shown(const struct shk_diagnosis *entry)
{
    bool any = false, other = false;
    for (size_t w = 0; entry && entry->only_on && w < WORLDS; w++) {
        bool place = worlds[w].group == PLACE || worlds[w].group == LINK;
        bool named = shk_list_has(entry->only_on, worlds[w].name);
        any |= named && place;
        other |= named && !place;
    }
    return any && !other;
}

void shk_clues_in_context(struct shk_clues *clues, const struct shk_config *config,
                          const struct shk_facts *const *facts, size_t nodes)
{
    const struct shown shown = look(config, facts, nodes);
    size_t kept = 0;
    for (size_t i = 0; i < clues->count; i++) {
        struct shk_clue clue = clues->items[i];
        bool guess = clue.weight > 0 && !clue.specific;
        bool line = clue.weight > 0 && clue.seen;
        const struct shk_diagnosis *entry = shk_config_diagnosis(config, clue.key);
        int fit = guess || line ? fits(&shown, entry) : 0;
        if (fit < 0 && guess) {
            free(clue.text);
            continue;
        }
        if (fit < 0) {
            clue.specific = false;
            clue.weight /= 2;
        } else if (guess && fit > 0 && clue.weight < UNSHOWN) {
            clue.weight = clue.weight + FITS < UNSHOWN ? clue.weight + FITS : UNSHOWN;
        } else if (fit == 0 && line && clue.weight > UNSHOWN && needs_shown(entry)) {
            clue.weight = UNSHOWN;
        }
        clues->items[kept++] = clue;
    }
    clues->count = kept;
}
