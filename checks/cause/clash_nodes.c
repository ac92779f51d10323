/* Facts of two nodes that cannot both be so, in one job. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/value/grammar.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>

enum { WRONG = 72, SAME_RANK = 47, RELEASES = 48, FEWER = 47 };

static const char *text_of(const struct shk_facts *facts, const char *key)
{
    const char *text = NULL;
    return shk_look_text(facts, key, &text) == SHK_LOOK_PRESENT ? text : NULL;
}

/* The number of a process or node, which no other one has. */
static void numbers(struct shk_clues *clues, const struct shk_facts *a, const struct shk_facts *b)
{
    const char *mine = text_of(a, "host.name"), *theirs = text_of(b, "host.name");
    if (mine && theirs && strcmp(mine, theirs) == 0)
        return;
    for (const char *const *name = shk_variables("own-number"); *name; name++) {
        const char *here = shk_env_get(a, *name), *there = shk_env_get(b, *name);
        if (here && there && *here && strcmp(here, there) == 0)
            shk_clue_add(clues, "duplicate-rank", SAME_RANK, true,
                         shk_strf("%s is %s on two nodes", *name, here));
    }
}

static bool has_iface(const struct shk_facts *facts, const char *name, size_t len, bool *told_p)
{
    json_t *ifaces = NULL, *iface;
    size_t i;
    *told_p = shk_look_array(facts, "net.ifaces", &ifaces) == SHK_LOOK_PRESENT;
    json_array_foreach(ifaces, i, iface)
    {
        if (strncmp(shk_member_name(iface, "name"), name, len) == 0)
            return true;
    }
    return false;
}

struct pair {
    struct shk_clues *clues;
    const struct shk_config *config;
    const struct shk_facts *a, *b;
};

/* A list of interfaces of which one node has one, and the other none. */
static int one_list(const struct shk_fact *fact, void *arg)
{
    const struct pair *pair = arg;
    const char *name = fact->key + strlen("env."), *start;
    const struct shk_setting *setting = shk_config_setting(pair->config, name);
    const char *value = shk_env_get(pair->a, name), *other = shk_env_get(pair->b, name);
    bool here = false, there = false, told_a = false, told_b = false;
    size_t len;
    if (!setting || setting->grammar.type != SHK_VALUE_INTERFACES || !value || !other ||
        strcmp(value, other) != 0 || *value == '^')
        return 0;
    for (const char *at = value + (*value == '='); shk_grammar_item(&at, ',', &start, &len);) {
        here |= len && has_iface(pair->a, start, len, &told_a);
        there |= len && has_iface(pair->b, start, len, &told_b);
    }
    if (told_a && told_b && here != there)
        shk_clue_add(pair->clues, "socket-ifname-differs-across-nodes", WRONG, true,
                     shk_strf("%s=%s names an interface of one node that another does not have",
                              name, value));
    return 0;
}

/* The same list of both nodes, and one is longer. */
static void fewer_gpus(struct shk_clues *clues, const struct shk_facts *a,
                       const struct shk_facts *b)
{
    static const char *const keys[] = {"gpu.nvidia.devices", "gpu.amd.devices", "neuron.devices",
                                       "nvml.devices"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *one = NULL, *other = NULL;
        if (shk_look_array(a, keys[i], &one) != SHK_LOOK_PRESENT ||
            shk_look_array(b, keys[i], &other) != SHK_LOOK_PRESENT)
            continue;
        size_t here = json_array_size(one), there = json_array_size(other);
        if (here && there && here != there) {
            shk_clue_add(clues, "gpu-count-low", FEWER, true,
                         shk_strf("one node has %zu GPUs or accelerators, another %zu",
                                  here < there ? here : there, here < there ? there : here));
            return;
        }
    }
}

void shk_clues_clash_between(struct shk_clues *clues, const struct shk_config *config,
                             const struct shk_facts *a, const struct shk_facts *b)
{
    struct pair pair = {clues, config, a, b};
    numbers(clues, a, b);
    fewer_gpus(clues, a, b);
    (void)shk_facts_each(a, "env.", one_list, &pair);
}

void shk_clues_clash_of_slurm(struct shk_clues *clues, const struct shk_facts *const *facts,
                              size_t nodes)
{
    const char *first = NULL;
    for (size_t n = 0; n < nodes; n++) {
        json_t *list = NULL, *node;
        size_t i;
        (void)shk_look_array(facts[n], "slurm.nodes", &list);
        json_array_foreach(list, i, node)
        {
            const char *version = NULL;
            (void)shk_look_member_text(node, "slurm", &version);
            size_t len = version ? strcspn(version, ".") : 0;
            len += version && version[len] ? 1 + strcspn(version + len + 1, ".-") : 0;
            if (version && first && strncmp(first, version, len) != 0) {
                shk_clue_add(clues, "slurm-versions-differ", RELEASES, true,
                             shk_strf("slurmd is %s and %s", first, version));
                return;
            }
            first = first ? first : version;
        }
    }
}
