/* Facts that contradict each other: versions that belong together and differ, more ranks than
 * there is room for, names of nodes that are the same. Nothing here needs more than what is told.
 */
#include "checks/base/coded.h"
#include "checks/base/row.h"
#include "checks/cause/clue.h"
#include "checks/job/collective_why.h"
#include "checks/value/makers.h"
#include "core/text/cpulist.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Weights: what a run says itself, what cannot be so on a healthy node, what is a cause now and
 * then, and what many nodes have without harm. */
enum { TOLD = 76, WRONG = 66, UNLIKE = 56, ODD = 47, USUAL = 42 };

static void clash(struct shk_clues *clues, const char *key, int weight, char *text)
{
    shk_clue_add(clues, key, weight, weight >= UNLIKE, text);
}

static const char *text_of(const struct shk_facts *facts, const char *key)
{
    const char *text = NULL;
    return shk_look_text(facts, key, &text) == SHK_LOOK_PRESENT ? text : NULL;
}

static const char *member_of(const struct shk_facts *facts, const char *key, const char *member)
{
    json_t *object = NULL;
    const char *text = NULL;
    if (shk_look_object(facts, key, &object) == SHK_LOOK_PRESENT)
        (void)shk_look_member_text(object, member, &text);
    return text;
}

/* The version of the driver that is loaded. */
static const char *driver_of(const struct shk_facts *facts)
{
    const char *version = member_of(facts, "gpu.nvidia.driver", "version");
    version = version ? version : member_of(facts, "kernel.module.nvidia", "version");
    return version ? version : text_of(facts, "nvml.driver");
}

/* "550.54.14" of ".../libcuda.so.550.54.14"; NULL: the name has no version of a driver. */
static const char *version_in_name(const char *path)
{
    const char *so = path ? strstr(path, ".so.") : NULL;
    return so && isdigit((unsigned char)so[4]) && isdigit((unsigned char)so[5]) &&
                   isdigit((unsigned char)so[6]) && so[7] == '.'
               ? so + 4
               : NULL;
}

static void libraries_of_driver(struct shk_clues *clues, const struct shk_facts *facts)
{
    static const struct {
        const char *path, *error;
    } libraries[] = {{"cuda.path", "cuda.error"}, {"nvml.path", "nvml.error"}};
    const char *driver = driver_of(facts);
    const char *manager = text_of(facts, "nvidia.fabricmanager.version");
    if (!driver)
        return;
    if (manager && strcmp(manager, driver) != 0)
        clash(clues, "fabric-manager-version-mismatch", WRONG,
              shk_strf("the Fabric Manager is %s, the driver %s", manager, driver));
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        const char *path = text_of(facts, libraries[i].path);
        const char *version = version_in_name(path);
        bool works = shk_look(facts, libraries[i].error, NULL) == SHK_LOOK_ABSENT;
        if (!version || works || strcmp(version, driver) == 0)
            continue;
        clash(clues,
              strstr(path, "/compat/") ? "cuda-compat-driver-loaded"
                                       : "driver-runtime-version-mismatch",
              UNLIKE, shk_strf("%s, and the loaded module is %s", path, driver));
    }
}

/* "5.7" of "/opt/rocm-5.7.0/lib/…" or of "5.7.0-98"; false: there is none. */
static bool release_of(const char *text, bool path, char *out, size_t size)
{
    const char *at = path && text ? strstr(text, "/rocm-") : text;
    size_t len = 0, dots = 0;
    if (!at)
        return false;
    at += path ? strlen("/rocm-") : 0;
    while ((isdigit((unsigned char)at[len]) || (at[len] == '.' && dots < 1)) && len + 1 < size) {
        dots += at[len] == '.';
        len++;
    }
    if (!dots || !isdigit((unsigned char)at[0]))
        return false;
    snprintf(out, size, "%.*s", (int)len, at);
    return true;
}

static void releases_of_rocm(struct shk_clues *clues, const struct shk_facts *facts)
{
    static const struct {
        const char *key;
        bool path;
    } places[] = {{"rocm.version", false}, {"hip.path", true},     {"hsa.path", true},
                  {"rccl.path", true},     {"hip.version", false}, {"miopen.path", true}};
    const char *first = NULL;
    char have[16], other[16];
    const char *hip = text_of(facts, "hip.path"), *so = hip ? strstr(hip, "libamdhip64.so.") : NULL;
    const char *rocm = text_of(facts, "rocm.version");
    so = so ? so + strlen("libamdhip64.so.") : NULL;
    if (so && rocm && atoi(so) > 0 && atoi(rocm) > 0 && atoi(so) != atoi(rocm)) {
        clash(clues, "rocm-version-mismatch", UNLIKE,
              shk_strf("%s is of another ROCm than %s", hip, rocm));
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *text = text_of(facts, places[i].key);
        if (!release_of(text, places[i].path, first ? other : have, sizeof have))
            continue;
        bool major = strcmp(places[i].key, "hip.version") == 0; /* its minor is one of its own */
        if (first && (major ? atoi(have) != atoi(other) : strcmp(have, other) != 0)) {
            clash(clues, "rocm-version-mismatch", UNLIKE,
                  shk_strf("%s is of ROCm %s, %s of %s", first, have, places[i].key, other));
            return;
        }
        first = first ? first : places[i].key;
    }
}

/* Copies of a library, of which the loader takes the first it finds. */
static void copies_of_nccl(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *copies = NULL, *copy;
    const char *first = NULL, *version = NULL;
    size_t i;
    (void)shk_look_array(facts, "nccl.copies", &copies);
    json_array_foreach(copies, i, copy)
    {
        version = NULL;
        (void)shk_look_member_text(copy, "version", &version);
        if (version && first && strcmp(version, first) != 0) {
            clash(clues, "libnccl-wrong-version-loaded", USUAL,
                  shk_strf("copies of NCCL %s and %s are here", first, version));
            return;
        }
        first = first ? first : version;
    }
}

/* The largest number in a text; -1: it has none. */
static long long largest(const char *text)
{
    long long most = -1;
    for (const char *p = text; *p; p++) {
        char *end = NULL;
        if (!isdigit((unsigned char)*p))
            continue;
        long long value = strtoll(p, &end, 10);
        most = value > most ? value : most;
        p = end - 1;
    }
    return most;
}

static void room_for_ranks(struct shk_clues *clues, const struct shk_facts *facts)
{
    long long ranks = 0, quota = -1;
    const char *list = text_of(facts, "host.affinity");
    long long cpus = shk_cpulist_count(list);
    for (const char *const *name = shk_variables("thread-binding"); cpus && *name; name++) {
        const char *value = shk_env_get(facts, *name);
        if (value && largest(value) > shk_cpulist_last(list))
            clash(clues, "cpu-binding-outside", ODD,
                  shk_strf("%s=%s, and this process may use %s", *name, value, list));
    }
    if (shk_look_int(facts, "job.local_ranks", &ranks) != SHK_LOOK_PRESENT || ranks < 2)
        return;
    bool own = shk_look(facts, "job.local_rank", NULL) == SHK_LOOK_PRESENT; /* of one rank */
    if (cpus && cpus < ranks && !own)
        clash(clues, "ranks-share-processors", USUAL,
              shk_strf("%lld ranks, and this process may use %s", ranks, list));
    if (shk_look_int(facts, "cgroup.cpu.max", &quota) == SHK_LOOK_PRESENT && quota > 0 &&
        quota < ranks * 1000)
        clash(clues, "ranks-share-processors", UNLIKE,
              shk_strf("%lld ranks, and a quota of %lld thousandths of a processor", ranks, quota));
}

static size_t items(const char *list)
{
    size_t count = *list != '\0';
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* A mask of two GPUs for four ranks is the same for all of them; one of a single GPU may be each
 * rank's own. */
static void masks(struct shk_clues *clues, const struct shk_config *config,
                  const struct shk_facts *facts)
{
    static const enum shk_mask order[] = {SHK_MASK_NVIDIA, SHK_MASK_AMD_FIRST, SHK_MASK_AMD,
                                          SHK_MASK_NONE};
    const struct shk_masks all = shk_masks(config, order);
    long long ranks = 0, gpus = shk_gpu_count(facts);
    bool own = shk_look(facts, "job.local_rank", NULL) == SHK_LOOK_PRESENT; /* of one rank */
    bool library = text_of(facts, "nccl.version") || text_of(facts, "rccl.version");
    if (shk_look_int(facts, "job.local_ranks", &ranks) != SHK_LOOK_PRESENT || ranks < 2)
        return;
    for (const char *const *name = all.names; *name; name++) {
        const char *value = shk_env_get(facts, *name);
        long long named = value && isdigit((unsigned char)*value) ? (long long)items(value) : 0;
        if (!named || named >= ranks || (named == 1 && own))
            continue;
        clash(clues, named > 1 ? "visible-devices-mismatch" : "duplicate-gpu",
              named > 1 ? UNLIKE : USUAL,
              shk_strf("%lld ranks on this node, and %s=%s", ranks, *name, value));
    }
    if (library && gpus > 0 && ranks > gpus)
        clash(clues, "duplicate-gpu", ODD,
              shk_strf("%lld ranks on this node, and %lld accelerators", ranks, gpus));
}

/* "8" of "gpu:h100:8(S:0-1)", of all kinds of GPU together; -1: it names none. */
static long long gres_count(const char *gres)
{
    long long total = -1;
    for (const char *p = gres ? strstr(gres, "gpu") : NULL; p; p = strstr(p + 1, "gpu")) {
        const char *colon = p + strcspn(p, ":,");
        while (*colon == ':' && !isdigit((unsigned char)colon[1]))
            colon += 1 + strcspn(colon + 1, ":,(");
        if (*colon == ':')
            total = (total < 0 ? 0 : total) + strtoll(colon + 1, NULL, 10);
    }
    return total;
}

/* A number in a mask beyond the accelerators that a list names: the list may be a part. */
static void mask_beyond(struct shk_clues *clues, const struct shk_config *config,
                        const struct shk_facts *facts)
{
    static const struct {
        const char *kind;
        enum shk_mask order[2];
    } makers[] = {{"implied.gpu-nvidia", {SHK_MASK_NVIDIA, SHK_MASK_NONE}},
                  {"implied.gpu-amd", {SHK_MASK_AMD_FIRST, SHK_MASK_NONE}}};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        const struct shk_masks all = shk_masks(config, makers[i].order);
        const char *value = all.names[0] ? shk_env_get(facts, all.names[0]) : NULL;
        long long gpus = 0;
        if (value && value[strspn(value, "0123456789,")] == '\0' &&
            shk_look_int(facts, makers[i].kind, &gpus) == SHK_LOOK_PRESENT && gpus > 1 &&
            largest(value) >= gpus)
            clash(clues, "visible-devices-mismatch", ODD,
                  shk_strf("%s=%s, and %lld accelerators are known", all.names[0], value, gpus));
    }
}

/* Ranks by node that are not the same number everywhere. */
static void layout(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *nodes = NULL, *node;
    size_t i, first = 0;
    bool nvshmem = text_of(facts, "nvshmem.version") || text_of(facts, "nvshmem.path");
    (void)shk_look_array(facts, "job.layout", &nodes);
    json_array_foreach(nodes, i, node)
    {
        size_t ranks = json_array_size(json_object_get(node, "ranks"));
        if (i && ranks != first) {
            clash(clues, "uneven-ranks-per-node", nvshmem ? UNLIKE : USUAL,
                  shk_strf("%zu ranks on one node and %zu on another", first, ranks));
            return;
        }
        first = ranks;
    }
}

/* Credentials of munge are valid for 300 s (munge(7)). */
static void clocks(struct shk_clues *clues, const struct shk_facts *facts)
{
    enum { MUNGE_S = 300 };
    json_t *nodes = NULL, *node;
    size_t i;
    (void)shk_look_array(facts, "job.clocks", &nodes);
    json_array_foreach(nodes, i, node)
    {
        long long offset = 0;
        if (shk_look_member_int(node, "offset_us", &offset) == SHK_LOOK_PRESENT &&
            llabs(offset) / 1000000 >= MUNGE_S)
            clash(clues, "clock-skew", WRONG,
                  shk_strf("the clock of %s is off by %lld s", shk_member_name(node, "node"),
                           offset / 1000000));
    }
}

struct opening {
    struct shk_clues *clues;
    const json_t *ids;
};

static bool in_group(const json_t *ids, long long gid)
{
    json_t *groups = NULL, *group;
    size_t i;
    long long own = -1;
    (void)shk_look_member_int(ids, "gid", &own);
    (void)shk_look_member_array(ids, "groups", &groups);
    json_array_foreach(groups, i, group)
    {
        if (json_integer_value(group) == gid)
            return true;
    }
    return own == gid;
}

/* Mode and owner where nothing says whether it can be opened. */
static int one_node(const struct shk_fact *fact, void *arg)
{
    static const char *const gpus[] = {"dev.kfd", "dev.nvidia", "dev.dri/", "dev.neuron"};
    const struct opening *o = arg;
    const char *mode = NULL;
    long long uid = -1, owner = -1, gid = -1;
    bool rw = false, gpu = false;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        gpu |= strncmp(fact->key, gpus[i], strlen(gpus[i])) == 0;
    if (!gpu || fact->state != SHK_FACT_PRESENT ||
        shk_look_member_bool(fact->value, "rw", &rw) == SHK_LOOK_PRESENT ||
        shk_look_member_text(fact->value, "mode", &mode) != SHK_LOOK_PRESENT ||
        shk_look_member_int(fact->value, "gid", &gid) != SHK_LOOK_PRESENT ||
        shk_look_member_int(o->ids, "uid", &uid) != SHK_LOOK_PRESENT)
        return 0;
    (void)shk_look_member_int(fact->value, "uid", &owner);
    long bits = strtol(mode, NULL, 8);
    bool may = uid == 0 || (bits & 06) == 06 || (uid == owner && (bits & 0600) == 0600) ||
               (in_group(o->ids, gid) && (bits & 060) == 060);
    if (!may)
        clash(o->clues, "gpu-device-permission", UNLIKE,
              shk_strf("/dev/%s has mode %s and group %lld, which this process is not in",
                       fact->key + strlen("dev."), mode, gid));
    return 0;
}

static void slurm_and_bus(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *nodes = NULL, *node;
    const char *host = text_of(facts, "host.name");
    long long gpus = shk_gpu_count(facts);
    size_t i;
    (void)shk_look_array(facts, "slurm.nodes", &nodes);
    json_array_foreach(nodes, i, node)
    {
        const char *name = NULL, *gres = NULL;
        (void)shk_look_member_text(node, "name", &name);
        (void)shk_look_member_text(node, "gres", &gres);
        long long wanted = gres_count(gres);
        bool here = host && name ? strcmp(host, name) == 0 : json_array_size(nodes) == 1;
        if (here && gpus > 0 && wanted > gpus)
            clash(clues, "gpu-count-low", UNLIKE,
                  shk_strf("Slurm knows %s, and %lld GPUs are on the bus", gres, gpus));
    }
}

/* Where nobody looked whether GPUs are hidden, the driver's shorter list is a guess. One that has
 * less than half of them is what somebody stated of a longer one. */
static void list_and_bus(struct shk_clues *clues, const struct shk_facts *facts)
{
    static const char *const lists[][3] = {
        {"gpu.amd.devices", "pci.count.gpu-amd", "gpu.amd.hidden"},
        {"nvml.devices", "pci.count.gpu-nvidia", "nvml.lost"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        json_t *list = NULL;
        long long bus = 0;
        if (shk_look(facts, lists[i][2], NULL) != SHK_LOOK_MISSING ||
            shk_look_int(facts, lists[i][1], &bus) != SHK_LOOK_PRESENT ||
            shk_look_array(facts, lists[i][0], &list) != SHK_LOOK_PRESENT)
            continue;
        long long count = (long long)json_array_size(list);
        if (count && count < bus && 2 * count >= bus)
            clash(clues, "gpu-lost-by-driver", ODD,
                  shk_strf("%lld of %lld GPUs on the bus are in the driver's list", count, bus));
    }
}

/* A process that is to use several GPUs and may not run near one of them. */
static void far_gpus(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *gpus = NULL, *gpu;
    long long ranks = 0;
    size_t i;
    const char *list = text_of(facts, "host.affinity");
    if (!list || shk_look_int(facts, "job.local_ranks", &ranks) != SHK_LOOK_PRESENT || ranks != 1)
        return;
    (void)shk_look_array(facts, "topology.gpus", &gpus);
    json_array_foreach(gpus, i, gpu)
    {
        const char *near = NULL;
        if (shk_look_member_text(gpu, "cpus", &near) == SHK_LOOK_PRESENT && *near &&
            !shk_cpulist_meet(near, list)) {
            clash(clues, "cpu-binding-outside", ODD,
                  shk_strf("one process for %zu GPUs may use %s, and one of them is at %s",
                           json_array_size(gpus), list, near));
            return;
        }
    }
}

/* NVIDIA's memory is behind its second window, AMD's behind its first. */
static void windows(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *devices = NULL, *device;
    size_t i;
    (void)shk_look_array(facts, "pci.devices", &devices);
    json_array_foreach(devices, i, device)
    {
        json_t *bars = NULL;
        const char *kind = NULL;
        (void)shk_look_member_text(device, "kind", &kind);
        size_t at = kind && strcmp(kind, "gpu-nvidia") == 0 ? 1 : 0;
        if (!kind || strncmp(kind, "gpu-", 4) != 0 ||
            shk_look_member_numbers(device, "bars", &bars) != SHK_LOOK_PRESENT ||
            json_array_size(bars) <= at)
            continue;
        if (json_integer_value(json_array_get(bars, at)) == 0)
            clash(clues, "pci-bar-unassigned", WRONG,
                  shk_strf("%s has no window for its memory", shk_member_name(device, "addr")));
    }
}

static void users_of_gpus(struct shk_clues *clues, const struct shk_facts *facts)
{
    json_t *ids = NULL, *gpus = NULL, *gpu, *list, *process;
    size_t i, k;
    long long mine = -1, uid;
    if (shk_look_object(facts, "host.ids", &ids) != SHK_LOOK_PRESENT ||
        shk_look_member_int(ids, "uid", &mine) != SHK_LOOK_PRESENT || mine == 0)
        return;
    (void)shk_look_array(facts, "nvml.health", &gpus);
    json_array_foreach(gpus, i, gpu)
    {
        list = NULL;
        (void)shk_look_member_array(gpu, "processes", &list);
        json_array_foreach(list, k, process)
        {
            if (shk_look_member_int(process, "uid", &uid) != SHK_LOOK_PRESENT || uid == mine)
                continue;
            clash(clues, "gpu-shared", ODD,
                  shk_strf("a process of user %lld is on a GPU, and this is user %lld", uid, mine));
            return;
        }
    }
}

struct overriding {
    struct shk_clues *clues;
    const struct shk_config *config;
};

static int one_of_file(const struct shk_fact *fact, void *arg)
{
    struct overriding *o = arg;
    const char *name = fact->key + strlen("env.file.");
    const struct shk_setting *setting = shk_config_setting(o->config, name);
    const char *value = fact->state == SHK_FACT_PRESENT ? json_string_value(fact->value) : NULL;
    if (setting && value && setting->severity != SHK_SEV_NONE)
        clash(o->clues, "nccl-conf-file-override", USUAL,
              shk_strf("%s=%s comes from a file of the library", name, value));
    return 0;
}

/* Why a collective failed, as its own run said. */
static int one_cause(const struct shk_fact *fact, void *arg)
{
    struct shk_clues *clues = arg;
    const char *dot = strrchr(fact->key, '.');
    const char *cause = fact->state == SHK_FACT_PRESENT ? json_string_value(fact->value) : NULL;
    const char *key = strcmp(dot, ".cause") == 0 ? shk_collective_cause_key(cause) : NULL;
    if (key)
        clash(clues, key, TOLD, shk_strf("%s is %s", fact->key, cause));
    return 0;
}

static void on_node(struct shk_clues *clues, const struct shk_config *config,
                    const struct shk_facts *facts)
{
    struct overriding o = {clues, config};
    json_t *ids = NULL;
    struct opening opening = {clues, NULL};
    libraries_of_driver(clues, facts);
    releases_of_rocm(clues, facts);
    copies_of_nccl(clues, facts);
    room_for_ranks(clues, facts);
    masks(clues, config, facts);
    mask_beyond(clues, config, facts);
    layout(clues, facts);
    clocks(clues, facts);
    slurm_and_bus(clues, facts);
    list_and_bus(clues, facts);
    far_gpus(clues, facts);
    windows(clues, facts);
    users_of_gpus(clues, facts);
    (void)shk_facts_each(facts, "collective.", one_cause, clues);
    (void)shk_facts_each(facts, "env.file.", one_of_file, &o);
    if (shk_look_object(facts, "host.ids", &ids) == SHK_LOOK_PRESENT) {
        opening.ids = ids;
        (void)shk_facts_each(facts, "dev.", one_node, &opening);
    }
}

enum { FEW = 64 }; /* nodes that a person states facts of */

void shk_clues_from_clashes(struct shk_clues *clues, const struct shk_config *config,
                            const struct shk_facts *const *facts, size_t nodes)
{
    for (size_t i = 0; i < nodes; i++)
        if (!shk_facts_probed(facts[i]))
            on_node(clues, config, facts[i]);
    for (size_t i = 0; i + 1 < nodes && i < FEW && !shk_facts_probed(facts[i]); i++)
        for (size_t k = i + 1; k < nodes && k < FEW; k++)
            shk_clues_clash_between(clues, config, facts[i], facts[k]);
    shk_clues_clash_of_slurm(clues, facts, nodes);
}
