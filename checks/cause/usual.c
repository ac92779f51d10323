/* A few facts, completed with what is usually so where nobody looked. */
#include "checks/cause/usual.h"

#include "checks/base/row.h"
#include "checks/log/log.h"
#include "core/text/uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Gates of checks, and what is so on most nodes: a machine of one's own, outside a container, with
 * a kernel of today. Nothing here is a fault in itself, and no device is made up. */
static const struct {
    const char *key, *text; /* text NULL: absent */
} usual[] = {
    {"host.virt", "none"},         {"host.container", "none"},
    {"host.kernel", "6.8.0"},      {"probe.env.status", "ok"},
    {"kernel.memory_peers", NULL}, {"job.scheduler", NULL},
    {"job.launcher", NULL},        {"job.pmix", NULL},
    {"cuda.error", NULL},          {"nvml.error", NULL},
    {"topology.nccl_file", NULL},  {"plugin.requested", NULL},
    {"gpu.amd.hidden", NULL},
};

/* Kinds of NICs and accelerators: where one was counted, the others are not there. */
static const char *const kinds[] = {"cxi", "efa", "mlx5", "gpu-nvidia", "gpu-amd", "neuron"};
static const char *const counts[] = {"pci.count.cxi",     "pci.count.efa",
                                     "pci.count.mlx5",    "pci.count.gpu-nvidia",
                                     "pci.count.gpu-amd", "pci.count.neuron"};
enum { FIRST_GPU = 3, KINDS = sizeof kinds / sizeof *kinds };

/* Lists of all devices of a kind. */
static const struct {
    const char *list, *kind;
} lists[] = {
    {"gpu.nvidia.devices", "gpu-nvidia"},
    {"gpu.amd.devices", "gpu-amd"},
    {"neuron.devices", "neuron"},
    {"cxi.devices", "cxi"},
};

/* What else shows that there is a device of a kind, beside what only a node with one can have
 * (implied.KIND, imply.c): facts of it that are there, or that somebody looked for (`looked`), and
 * lines of a log. */
static const struct {
    const char *kind, *key;
    bool looked;
} signs[] = {
    {"gpu-nvidia", "kernel.module.nvidia_peermem", true},
    {"gpu-nvidia", "dev.nvidiactl", true},
    {"gpu-nvidia", "dev.nvidia0", true},
    {"gpu-nvidia", "dev.nvidia-uvm", true},
    {"gpu-nvidia", "dev.gdrdrv", true},
    {"gpu-amd", "dev.kfd", true},
    {"neuron", "dev.neuron0", true},
    {"cxi", "dev.cxi0", true},
    {"mlx5", "kernel.module.ib_uverbs", false},
    {"mlx5", "kernel.module.nvidia_peermem", true},
    {"mlx5", "dev.infiniband/uverbs0", true},
    {"mlx5", "dev.infiniband/rdma_cm", true},
    {"mlx5", "verbs.path", true},
    {"mlx5", "verbs.devices", false},
};

static const struct {
    const char *kind, *signature, *provider;
} words[] = {
    {"mlx5", "names-verbs", "verbs"},
    {"mlx5", "names-registration", "psm3"},
};

bool shk_usual_looked(const struct shk_facts *facts, const char *key)
{
    return shk_look(facts, key, NULL) != SHK_LOOK_MISSING;
}

/* Is a NIC (accelerator) of another kind there? */
static bool other_kind(const struct shk_facts *facts, bool nics)
{
    for (size_t i = nics ? 0 : FIRST_GPU; i < (nics ? FIRST_GPU : KINDS); i++)
        if (shk_look(facts, counts[i], NULL) == SHK_LOOK_PRESENT)
            return true;
    return false;
}

/* Does an RDMA device belong to this kind of adapter? */
static bool is_rdma_of(const json_t *device, const char *kind)
{
    const char *name = "", *driver = "";
    (void)shk_look_member_text(device, "name", &name);
    (void)shk_look_member_text(device, "driver", &driver);
    bool efa = strncmp(driver, "efa", 3) == 0 || strncmp(name, "efa_", 4) == 0 ||
               strncmp(name, "rdmap", 5) == 0;
    bool mlx5 = !efa && (strncmp(driver, "mlx5", 4) == 0 || strncmp(name, "mlx5_", 5) == 0);
    return strcmp(kind, "efa") == 0 ? efa : mlx5;
}

static long long count_rdma(const struct shk_facts *facts, const char *kind)
{
    json_t *devices = NULL, *device;
    long long count = 0;
    size_t i;
    if (strcmp(kind, "efa") != 0 && strcmp(kind, "mlx5") != 0)
        return 0;
    (void)shk_look_array(facts, "rdma.devices", &devices);
    json_array_foreach(devices, i, device) count += is_rdma_of(device, kind);
    return count;
}

/* How many of a kind a list has; -1: there is no list of the bus. */
static long long listed(const struct shk_facts *facts, const char *kind)
{
    json_t *devices = NULL, *device;
    size_t i;
    long long count = count_rdma(facts, kind);
    for (i = 0; count == 0 && i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].kind, kind) == 0 &&
            shk_look_array(facts, lists[i].list, &devices) == SHK_LOOK_PRESENT)
            count = (long long)json_array_size(devices);
    if (count > 0)
        return count;
    if (shk_look_array(facts, "pci.devices", &devices) != SHK_LOOK_PRESENT)
        return -1;
    json_array_foreach(devices, i, device)
    {
        const char *text = NULL;
        (void)shk_look_member_text(device, "kind", &text);
        count += text && strcmp(text, kind) == 0;
    }
    return count;
}

static int count_listed(struct shk_facts *all, const struct shk_facts *facts, size_t kind)
{
    long long count = listed(facts, kinds[kind]);
    if (count <= 0 || shk_usual_looked(facts, counts[kind]))
        return 0;
    return shk_facts_int(all, counts[kind], count, NULL, "assumed");
}

/* Of this kind none, where another was counted, or the list of the bus has none. */
static int count_others(struct shk_facts *all, const struct shk_facts *facts, size_t kind)
{
    if (shk_usual_looked(all, counts[kind]))
        return 0;
    if (listed(facts, kinds[kind]) < 0 && !other_kind(all, kind < FIRST_GPU))
        return 0;
    return shk_facts_absent(all, counts[kind], "assumed", "not counted");
}

/* Who made a machine of which the product or the cloud was told: only Amazon names them so. */
static int complete_vendor(struct shk_facts *all)
{
    const char *product = "", *cloud = "";
    (void)shk_look_text(all, "host.product", &product);
    (void)shk_look_text(all, "host.cloud", &cloud);
    const char *size = strchr(product, '.');
    if (shk_usual_looked(all, "host.vendor") ||
        (strcmp(cloud, "aws") != 0 && !(size && strstr(size, "xlarge"))))
        return 0;
    return shk_facts_text(all, "host.vendor", "Amazon EC2", "assumed");
}

struct shk_facts *shk_usual_facts(const struct shk_facts *facts)
{
    struct shk_facts *all = shk_facts_create();
    int rc = all ? shk_facts_merge(all, facts) : -ENOMEM;
    for (size_t i = 0; !rc && i < sizeof usual / sizeof *usual; i++)
        if (!shk_usual_looked(facts, usual[i].key))
            rc = shk_facts_text(all, usual[i].key, usual[i].text, "assumed");
    rc = rc ? rc : complete_vendor(all);
    for (size_t i = 0; !rc && i < KINDS; i++)
        rc = count_listed(all, facts, i);
    for (size_t i = 0; !rc && i < KINDS; i++)
        rc = count_others(all, facts, i);
    if (rc) {
        shk_facts_destroy(all);
        return NULL;
    }
    return all;
}

static bool has_provider(const struct shk_facts *facts, const char *provider)
{
    json_t *list = NULL, *one;
    size_t i, len = provider ? strlen(provider) : 0;
    (void)shk_look_texts(facts, "fabric.providers", &list);
    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(one);
        if (len && strncmp(name, provider, len) == 0 && (!name[len] || name[len] == ';'))
            return true;
    }
    const char *asked = NULL;
    (void)shk_look_env(facts, shk_variable("provider-filter"), &asked);
    return len && asked && strcmp(asked, provider) == 0;
}

static bool has_sign(const struct shk_facts *facts, const char *kind)
{
    char implied[64];
    snprintf(implied, sizeof implied, "implied.%s", kind);
    if (shk_usual_looked(facts, implied))
        return true;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        enum shk_look look = shk_look(facts, signs[i].key, NULL);
        if (strcmp(signs[i].kind, kind) == 0 &&
            (look == SHK_LOOK_PRESENT || (signs[i].looked && look == SHK_LOOK_ABSENT)))
            return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].kind, kind) == 0 &&
            (shk_log_seen(facts, words[i].signature) || has_provider(facts, words[i].provider)))
            return true;
    return false;
}

/* The machines of Amazon have EFA where others have InfiniBand or RoCE. */
static bool is_shown(const struct shk_facts *facts, const char *kind)
{
    const char *vendor = "";
    (void)shk_look_text(facts, "host.vendor", &vendor);
    bool amazon = strncmp(vendor, "Amazon", 6) == 0;
    if (strcmp(kind, "mlx5") == 0)
        return !amazon && has_sign(facts, kind);
    return has_sign(facts, kind) || (amazon && strcmp(kind, "efa") == 0 && has_sign(facts, "mlx5"));
}

/* Do the driver or its library say that there is no GPU? */
static bool lists_none(const struct shk_facts *facts)
{
    static const char *const keys[] = {"gpu.nvidia.devices", "nvml.devices", "cuda.devices"};
    json_t *list = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        enum shk_look look = shk_look_list(facts, keys[i], &list);
        if (look == SHK_LOOK_ABSENT || (look == SHK_LOOK_PRESENT && !json_array_size(list)))
            return true;
    }
    return false;
}

/* Devices that nobody counted are as many as the profile has or the job was given, so that no
 * number is held against them; else one NIC, and of GPUs several: that is what collectives are for.
 */
static int count_shown(struct shk_facts *all, const struct shk_config *config,
                       const char *const *made, size_t count)
{
    const struct shk_profile *profile = shk_profile_detect(config, all, NULL, NULL);
    long long given = 0;
    int rc = 0;
    (void)shk_look_int(all, "job.slurm.gpus_on_node", &given);
    for (size_t i = 0; !rc && i < count; i++) {
        bool gpu = strstr(made[i], "gpu") || strstr(made[i], "neuron");
        long long wanted = gpu ? profile->gpus : profile->nics;
        if (gpu && given > wanted)
            wanted = given;
        if (wanted > 1)
            rc = shk_facts_int(all, made[i], wanted, NULL, "assumed");
    }
    return rc;
}

/* A device of a kind that something shows, though nobody counted it. */
static int show_kinds(struct shk_facts *all, const struct shk_config *config)
{
    const char *made[KINDS + 1];
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; !rc && i < KINDS; i++) {
        if (shk_usual_looked(all, counts[i]) || other_kind(all, i < FIRST_GPU) ||
            !is_shown(all, kinds[i]))
            continue;
        made[count++] = counts[i];
        rc = shk_facts_int(all, counts[i], i < FIRST_GPU ? 1 : 2, NULL, "assumed");
    }
    for (size_t i = 0; !rc && i < KINDS; i++)
        rc = count_others(all, all, i);
    if (!rc && !other_kind(all, false) && !shk_usual_looked(all, counts[FIRST_GPU]) &&
        !lists_none(all)) {
        made[count++] = counts[FIRST_GPU];
        rc = shk_facts_int(all, counts[FIRST_GPU], 2, NULL, "assumed");
    }
    for (size_t i = FIRST_GPU; !rc && i < KINDS; i++)
        rc = count_others(all, all, i);
    return rc ? rc : count_shown(all, config, made, count);
}

static bool is_absent(const struct shk_facts *facts, const char *key)
{
    return shk_look(facts, key, NULL) == SHK_LOOK_ABSENT;
}

/* One module of peer memory is not loaded: nor is the other, nor does the driver do without. */
static int complete_peers(struct shk_facts *all)
{
    static const char *const modules[] = {"kernel.module.nvidia_peermem",
                                          "kernel.module.nv_peer_mem"};
    int rc = 0;
    for (size_t i = 0; !rc && i < 2; i++)
        if (is_absent(all, modules[i]) && !shk_usual_looked(all, modules[1 - i]))
            rc = shk_facts_absent(all, modules[1 - i], "assumed", "not looked for");
    if (!rc && is_absent(all, modules[0]) && !shk_usual_looked(all, "gpu.nvidia.driver"))
        rc = shk_facts_present(all, "gpu.nvidia.driver", json_pack("{s:b}", "open", 0), NULL,
                               "assumed");
    return rc;
}

/* A list as it is completed: a deep copy. */
static json_t *copy_of(const struct shk_facts *facts, const char *key)
{
    json_t *list = NULL;
    if (shk_look_array(facts, key, &list) != SHK_LOOK_PRESENT)
        return NULL;
    return json_deep_copy(list);
}

static void set_missing(json_t *object, const char *name, json_t *value)
{
    if (json_object_get(object, name))
        json_decref(value);
    else
        (void)json_object_set_new(object, name, value);
}

/* Ports of RDMA devices of which only the state was told. */
static int complete_ports(struct shk_facts *all)
{
    json_t *devices = copy_of(all, "rdma.devices"), *device, *port;
    size_t i, k;
    json_array_foreach(devices, i, device)
    {
        json_array_foreach(json_object_get(device, "ports"), k, port)
        {
            set_missing(port, "port", json_integer((json_int_t)k + 1));
            set_missing(port, "link_layer", json_string("InfiniBand"));
        }
    }
    return devices ? shk_facts_present(all, "rdma.devices", devices, NULL, "assumed") : 0;
}

/* The port above a device, which can do what the device can; a device of which only one number of
 * its link was told has the other one as it should be. */
static void complete_link(json_t *devices, json_t *device)
{
    static const char *const pairs[][2] = {{"link_width", "max_link_width"},
                                           {"link_speed", "max_link_speed"}};
    json_t *width = json_object_get(device, "max_link_width");
    json_t *speed = json_object_get(device, "max_link_speed");
    char *above = shk_strf("above %s", shk_member_name(device, "addr"));
    if ((!width && !speed) || json_object_get(device, "parents") || !above) {
        free(above);
        return;
    }
    set_missing(device, "max_link_width", json_integer(16));
    set_missing(device, "max_link_speed", json_integer(16));
    for (size_t i = 0; i < 2; i++)
        set_missing(device, pairs[i][0], json_incref(json_object_get(device, pairs[i][1])));
    set_missing(device, "parents", json_pack("[s]", above));
    (void)json_array_append_new(
        devices, json_pack("{s:s,s:s,s:O,s:O}", "addr", above, "kind", "bridge", "max_link_width",
                           json_object_get(device, "max_link_width"), "max_link_speed",
                           json_object_get(device, "max_link_speed")));
    free(above);
}

static int complete_links(struct shk_facts *all)
{
    json_t *devices = copy_of(all, "pci.devices");
    size_t count = json_array_size(devices);
    for (size_t i = 0; i < count; i++)
        complete_link(devices, json_array_get(devices, i));
    return devices ? shk_facts_present(all, "pci.devices", devices, NULL, "assumed") : 0;
}

/* Who has a fabric uses it between nodes. A node has twice as much memory as /dev/shm may take. */
static int complete_job(struct shk_facts *all)
{
    long long size = 0;
    if (shk_look_int(all, "shm.size", &size) == SHK_LOOK_PRESENT && size > 0 &&
        !shk_usual_looked(all, "host.memory") &&
        shk_facts_int(all, "host.memory", 2 * size, "B", "assumed"))
        return -ENOMEM;
    if (!other_kind(all, true) || shk_usual_looked(all, "job.nodes"))
        return 0;
    return shk_facts_int(all, "job.nodes", 2, NULL, "assumed");
}

/* May the user of host.ids (nobody told: an ordinary one) read and write a node of this mode? */
static int may_use(const struct shk_facts *facts, const json_t *node)
{
    const char *text = NULL;
    json_t *ids = NULL, *groups = NULL;
    long long euid = 1000, gid = -1, owner = 0, group = 0;
    if (shk_look_member_text(node, "mode", &text) != SHK_LOOK_PRESENT)
        return -1;
    (void)shk_look_object(facts, "host.ids", &ids);
    if (shk_look_member_int(ids, "euid", &euid) != SHK_LOOK_PRESENT)
        (void)shk_look_member_int(ids, "uid", &euid);
    (void)shk_look_member_int(ids, "gid", &gid);
    (void)shk_look_member_array(ids, "groups", &groups);
    (void)shk_look_member_int(node, "uid", &owner);
    (void)shk_look_member_int(node, "gid", &group);
    unsigned long mode = strtoul(text, NULL, 8);
    bool member = gid == group;
    for (size_t i = 0; i < json_array_size(groups); i++)
        member |= json_integer_value(json_array_get(groups, i)) == group;
    unsigned shift = euid == owner ? 6 : member ? 3 : 0;
    return euid == 0 || (mode >> shift & 6) == 6;
}

struct nodes {
    struct shk_facts *all;
    json_t *keys;
};

static int note_node(const struct shk_fact *fact, void *arg)
{
    struct nodes *nodes = arg;
    if (fact->state == SHK_FACT_PRESENT && json_is_object(fact->value) &&
        !json_object_get(fact->value, "rw"))
        (void)json_array_append_new(nodes->keys, json_string(fact->key));
    return 0;
}

/* Device nodes of which the mode was told, not what it allows. */
static int complete_nodes(struct shk_facts *all)
{
    struct nodes nodes = {all, json_array()};
    int rc = nodes.keys ? shk_facts_each(all, "dev.", note_node, &nodes) : -ENOMEM;
    for (size_t i = 0; !rc && i < json_array_size(nodes.keys); i++) {
        const char *key = json_string_value(json_array_get(nodes.keys, i));
        json_t *node = NULL;
        (void)shk_look_object(all, key, &node);
        int may = may_use(all, node);
        json_t *copy = may < 0 ? NULL : json_deep_copy(node);
        if (copy && json_object_set_new(copy, "rw", json_boolean(may)) == 0)
            rc = shk_facts_present(all, key, copy, NULL, "assumed");
    }
    json_decref(nodes.keys);
    return rc;
}

struct shk_facts *shk_bold_facts(const struct shk_facts *facts, const struct shk_config *config)
{
    struct shk_facts *all = shk_usual_facts(facts);
    int rc = all ? show_kinds(all, config) : -ENOMEM;
    rc = rc ? rc : complete_peers(all);
    rc = rc ? rc : complete_links(all);
    rc = rc ? rc : complete_job(all);
    rc = rc ? rc : complete_ports(all);
    rc = rc ? rc : complete_nodes(all);
    if (rc) {
        shk_facts_destroy(all);
        return NULL;
    }
    return all;
}

const struct shk_profile *shk_bold_profile(const struct shk_config *config,
                                           const struct shk_facts *all)
{
    static const char *const names[] = {"generic-cxi", "aws-efa", "generic-ib"};
    const struct shk_profile *profile = shk_profile_detect(config, all, NULL, NULL), *other = NULL;
    for (size_t i = 0; !shk_profile_is_rdma(profile) && !other && i < FIRST_GPU; i++)
        if (shk_device_count(all, kinds[i]) > 0)
            other = shk_config_profile(config, names[i]);
    return other ? other : profile;
}
