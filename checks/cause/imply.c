/* What a few facts say besides themselves: a GPU's model tells its maker, a variable of the
 * launcher how many nodes there are. Of what is only known to be there, facts implied.* hold how
 * many there are at least (checks/base/condition.c reads them), and the models by whatever list
 * has them. */
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/log/log.h"
#include "core/job/launch.h"
#include "core/text/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Facts that only a node with such a device has: a key, or the beginning of keys that ends in '*'
 * or '.'; `member` of an element, or the text itself, begins with one of `starts`. */
static const struct {
    const char *kind, *key, *member, *starts;
} signs[] = {
    {"gpu-nvidia", "pci.count.gpu-nvidia", NULL, NULL},
    {"gpu-amd", "pci.count.gpu-amd", NULL, NULL},
    {"neuron", "pci.count.neuron", NULL, NULL},
    {"cxi", "pci.count.cxi", NULL, NULL},
    {"efa", "pci.count.efa", NULL, NULL},
    {"mlx5", "pci.count.mlx5", NULL, NULL},
    {"gpu-nvidia", "gpu.nvidia.", NULL, NULL},
    {"gpu-nvidia", "nvml.", NULL, NULL},
    {"gpu-nvidia", "cuda.", NULL, NULL},
    {"gpu-nvidia", "nvidia.", NULL, NULL},
    {"gpu-nvidia", "nccl.", NULL, NULL},
    {"gpu-nvidia", "nvshmem.", NULL, NULL},
    {"gpu-nvidia", "kernel.module.nvidia*", NULL, NULL},
    {"gpu-nvidia", "dev.nvidia*", NULL, NULL},
    {"gpu-nvidia", "pci.count.nvswitch", NULL, NULL},
    {"gpu-amd", "gpu.amd.", NULL, NULL},
    {"gpu-amd", "amdgpu.", NULL, NULL},
    {"gpu-amd", "amdsmi.", NULL, NULL},
    {"gpu-amd", "rocm.", NULL, NULL},
    {"gpu-amd", "rccl.", NULL, NULL},
    {"gpu-amd", "hip.", NULL, NULL},
    {"gpu-amd", "hsa.", NULL, NULL},
    {"gpu-amd", "miopen.", NULL, NULL},
    {"gpu-amd", "kernel.module.amdgpu", NULL, NULL},
    {"gpu-amd", "dev.kfd", NULL, NULL},
    {"neuron", "neuron.", NULL, NULL},
    {"neuron", "kernel.module.neuron", NULL, NULL},
    {"neuron", "dev.neuron*", NULL, NULL},
    {"cxi", "cxi.devices", NULL, NULL},
    {"cxi", "dev.cxi*", NULL, NULL},
    {"cxi", "kernel.module.cxi*", NULL, NULL},
    {"cxi", "fabric.providers", "", "cxi"},
    {"cxi", "net.ifaces", "name", "hsn"},
    {"efa", "kernel.module.efa", NULL, NULL},
    {"efa", "fabric.providers", "", "efa"},
    {"efa", "rdma.devices", "driver", "efa"},
    {"efa", "rdma.devices", "name", "rdmap"},
    {"mlx5", "kernel.module.mlx5*", NULL, NULL},
    {"mlx5", "rdma.devices", "driver", "mlx5"},
    {"mlx5", "rdma.devices", "name", "mlx5"},
};

static const struct {
    const char *kind, *signature;
} lines[] = {
    {"gpu-nvidia", "names-nvidia"}, {"gpu-amd", "names-amd"}, {"neuron", "names-neuron"},
    {"cxi", "names-cxi"},           {"efa", "names-efa"},
};

/* One sign while it is looked for. */
struct sign {
    const char *member, *starts;
    long long count; /* at least so many */
};

static bool begins(const json_t *value, const char *start)
{
    const char *text = json_string_value(value);
    return text && strncmp(text, start, strlen(start)) == 0;
}

static bool counts_devices(const char *key)
{
    return (strncmp(key, "pci.count.", strlen("pci.count.")) == 0 &&
            strcmp(key, "pci.count.nvswitch") != 0) ||
           strstr(key, ".devices") || strcmp(key, "nvml.health") == 0;
}

static int count_sign(const struct shk_fact *fact, void *arg)
{
    struct sign *sign = arg;
    long long count = 0;
    size_t i;
    json_t *item;
    bool list = json_is_array(fact->value);
    if (fact->state != SHK_FACT_PRESENT)
        return 0;
    if (!sign->starts && json_is_integer(fact->value))
        count = json_integer_value(fact->value);
    else if (!sign->starts)
        count = list ? (long long)json_array_size(fact->value) : 1;
    else
        json_array_foreach(fact->value, i, item) count +=
            begins(*sign->member ? json_object_get(item, sign->member) : item, sign->starts);
    /* how many GPUs or cards, only counts and their own lists tell; of the rest, that there is one
     */
    if (count > 1 && !counts_devices(fact->key))
        count = 1;
    sign->count = count > sign->count ? count : sign->count;
    return 0;
}

static int one_sign(struct shk_facts *all, const struct shk_facts *facts, size_t at)
{
    char key[64], prefix[64];
    size_t len = strlen(signs[at].key);
    struct sign sign = {.member = signs[at].member, .starts = signs[at].starts};
    long long known = 0;
    bool many = signs[at].key[len - 1] == '*' || signs[at].key[len - 1] == '.';
    struct shk_fact fact;
    snprintf(prefix, sizeof prefix, "%.*s", (int)(signs[at].key[len - 1] == '*' ? len - 1 : len),
             signs[at].key);
    snprintf(key, sizeof key, "implied.%s", signs[at].kind);
    if (many)
        (void)shk_facts_each(facts, prefix, count_sign, &sign);
    else if (shk_facts_get(facts, prefix, &fact))
        (void)count_sign(&fact, &sign);
    (void)shk_look_int(all, key, &known);
    if (sign.count <= known)
        return 0;
    return shk_facts_int(all, key, sign.count, NULL, "implied");
}

static bool looked(const struct shk_facts *facts, const char *key)
{
    return shk_look(facts, key, NULL) != SHK_LOOK_MISSING;
}

/* The first of the variables that is a number above 0; 0: none. */
static long long number_of(const struct shk_facts *facts, const char *const *names)
{
    for (; names && *names; names++) {
        const char *text = shk_env_get(facts, *names);
        char *end = NULL;
        long long value = text ? strtoll(text, &end, 10) : 0;
        if (end && end != text && *end == '\0' && value > 0)
            return value;
    }
    return 0;
}

static int put_number(struct shk_facts *all, const char *key, long long value)
{
    return value && !looked(all, key) ? shk_facts_int(all, key, value, NULL, "implied") : 0;
}

/* Models of accelerators, from each list that has some: names, and what CUDA and ROCm compile for.
 */
static int put_models(struct shk_facts *all, const struct shk_facts *facts)
{
    static const struct {
        const char *key, *member;
    } lists[] = {{"gpu.nvidia.devices", "model"}, {"nvml.devices", "name"},
                 {"nvml.health", "name"},         {"cuda.devices", "name"},
                 {"gpu.amd.devices", "name"},     {"gpu.amd.devices", "gfx"}};
    json_t *models = json_array(), *list, *item;
    size_t k;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        list = NULL;
        (void)shk_look_array(facts, lists[i].key, &list);
        json_array_foreach(list, k, item)
        {
            const char *text = NULL;
            if (shk_look_member_text(item, lists[i].member, &text) == SHK_LOOK_PRESENT)
                (void)json_array_append_new(models, json_string(text));
        }
    }
    list = NULL;
    (void)shk_look_array(facts, "cuda.devices", &list);
    json_array_foreach(list, k, item)
    {
        long long major = 0, minor = 0;
        if (shk_look_member_int(item, "compute_major", &major) != SHK_LOOK_PRESENT)
            continue;
        (void)shk_look_member_int(item, "compute_minor", &minor);
        (void)json_array_append_new(models, json_sprintf("sm_%d%d", (int)major, (int)minor));
    }
    if (json_array_size(models))
        return shk_facts_present(all, "implied.models", models, NULL, "implied");
    json_decref(models);
    return 0;
}

/* Of a world of ranks and those of one node: how many nodes. */
static int nodes_of_ranks(struct shk_facts *all)
{
    long long ranks = 0, local = 0;
    if (shk_look_int(all, "job.ranks", &ranks) != SHK_LOOK_PRESENT ||
        shk_look_int(all, "job.local_ranks", &local) != SHK_LOOK_PRESENT || local < 1 ||
        ranks % local)
        return 0;
    return put_number(all, "job.nodes", ranks / local);
}

/* What variables of launchers say of the job, the innermost launcher first. */
static int from_launchers(struct shk_facts *all, const struct shk_facts *facts)
{
    int rc = 0;
    const struct shk_launch *launch;
    for (size_t at = 0; !rc && (launch = shk_launch_next(&at)) != NULL;) {
        rc = put_number(all, "job.nodes", number_of(facts, launch->nodes));
        if (!rc)
            rc = put_number(all, "job.ranks", number_of(facts, launch->ranks));
        if (!rc)
            rc = put_number(all, "job.local_ranks", number_of(facts, launch->local_ranks));
    }
    if (!rc)
        rc = put_number(all, "job.nodes", number_of(facts, shk_variables("nodes-of-job")));
    if (!rc)
        rc = put_number(all, "job.local_ranks", number_of(facts, shk_variables("ranks-of-node")));
    return rc ? rc : nodes_of_ranks(all);
}

/* Facts that are a variable's value, as job.slurm.gpu_bind. */
static int from_uses(struct shk_facts *all, const struct shk_facts *facts)
{
    const struct shk_use *use;
    int rc = 0;
    for (size_t at = 0; !rc && (use = shk_use_next("job.slurm.", &at)) != NULL;) {
        const char *value = shk_env_get(facts, use->variables[0]);
        if (!value || looked(all, use->name))
            continue;
        if (use->number)
            rc = put_number(all, use->name, number_of(facts, use->variables));
        else
            rc = shk_facts_text(all, use->name, value, "implied");
    }
    return rc;
}

static int is_probed(const struct shk_fact *fact, void *arg)
{
    (void)arg;
    return strncmp(fact->key, "probe.env.", strlen("probe.env.")) != 0;
}

bool shk_facts_probed(const struct shk_facts *facts)
{
    return shk_facts_each(facts, "probe.", is_probed, NULL) != 0;
}

static struct shk_facts *implied_of(const struct shk_facts *facts, size_t nodes)
{
    struct shk_facts *all = shk_facts_create();
    char key[64];
    int rc = all ? shk_facts_merge(all, facts) : -ENOMEM;
    for (size_t i = 0; !rc && i < sizeof signs / sizeof *signs; i++)
        rc = one_sign(all, facts, i);
    for (size_t i = 0; !rc && shk_log_given(facts) && i < sizeof lines / sizeof *lines; i++) {
        snprintf(key, sizeof key, "implied.%s", lines[i].kind);
        if (shk_log_seen(facts, lines[i].signature) && !looked(all, key))
            rc = shk_facts_int(all, key, 1, NULL, "implied");
    }
    if (!rc)
        rc = put_models(all, facts);
    if (!rc)
        rc = from_launchers(all, facts);
    if (!rc)
        rc = from_uses(all, facts);
    if (!rc && nodes > 1)
        rc = shk_facts_int(all, "implied.nodes", (long long)nodes, NULL, "implied");
    if (rc) {
        shk_facts_destroy(all);
        return NULL;
    }
    return all;
}

struct shk_facts **shk_facts_implied(const struct shk_facts *const *facts, size_t nodes)
{
    struct shk_facts **all = calloc(nodes + 1, sizeof(*all));
    bool failed = !all;
    for (size_t i = 0; all && i < nodes; i++) {
        all[i] = implied_of(facts[i], nodes);
        failed |= !all[i];
    }
    if (!failed)
        return all;
    shk_facts_forget(all, nodes);
    return NULL;
}

void shk_facts_forget(struct shk_facts **all, size_t nodes)
{
    for (size_t i = 0; all && i < nodes; i++)
        shk_facts_destroy(all[i]);
    free(all);
}
