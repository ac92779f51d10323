/* What several checks ask about the node, the job and the active profile. */
#include "checks/base/coded.h"
#include "core/facts/factdiff.h"
#include "core/redact/redact.h"
#include "core/text/nameset.h"
#include "core/text/uses.h"

#include <stdlib.h>
#include <string.h>

/* Providers that move data with a NIC which reads user memory, so that memory must be locked, and
 * the kind of that NIC in pci.count.*. */
static const struct {
    const char *provider, *kind;
} rdma_providers[] = {{"cxi", "cxi"},   {"efa", "efa"}, {"verbs", "mlx5"},
                      {"psm3", "mlx5"}, {"opx", NULL},  {"usnic", NULL}};

/* Kinds of pci.count.* and the list that the driver offers, if any. */
static const struct {
    const char *kind, *list;
} device_lists[] = {
    {"gpu-nvidia", "gpu.nvidia.devices"},
    {"gpu-amd", "gpu.amd.devices"},
    {"neuron", "neuron.devices"},
    {"cxi", "cxi.devices"},
};

bool shk_env_file_wins(const struct shk_facts *facts, const char *name)
{
    const char *version = NULL;
    if (!shk_variable_has("prefixes.nvshmem", name))
        return false;
    return shk_look_text(facts, "nvshmem.version", &version) != SHK_LOOK_PRESENT ||
           shk_version_cmp(version, "3.6") >= 0;
}

bool shk_env_withheld(const char *value)
{
    return strcmp(value, SHK_REDACTED) == 0;
}

bool shk_env_own(const struct shk_config *config, const char *name)
{
    size_t count;
    const struct shk_diff_rule *rules = shk_config_diff(config, &count), *own;
    const struct shk_setting *setting = shk_config_setting(config, name);
    char *path = shk_strf("env.%s", name);
    own = path ? shk_diff_aside_rule(rules, count, path) : NULL;
    free(path);
    if (!own || !own->part || !setting || setting->severity == SHK_SEV_NONE)
        return own != NULL;
    return setting->grammar.type == SHK_VALUE_PATH || setting->grammar.type == SHK_VALUE_PATHS;
}

/* One of the two places: the environment or a file. */
static enum shk_look look_place(const struct shk_facts *facts, const char *place, const char *name,
                                const char **value_p)
{
    char *key = shk_strf("%s%s", place, name);
    const char *value = NULL;
    enum shk_look look = key ? shk_look_text(facts, key, &value) : SHK_LOOK_FAILED;
    free(key);
    if (look == SHK_LOOK_PRESENT && shk_env_withheld(value))
        return SHK_LOOK_FAILED;
    if (look == SHK_LOOK_PRESENT)
        *value_p = value;
    return look;
}

/* Was this variable among those that were looked for? Facts of versions that did not say so had
 * every name of the built-in catalogue (config NULL: taken for granted). */
static bool looked_for(const struct shk_facts *facts, const struct shk_config *config,
                       const char *name)
{
    json_t *record = NULL;
    if (shk_look_object(facts, "environment.looked_for", &record) == SHK_LOOK_PRESENT)
        return shk_name_json_covers(record, name);
    return !config || shk_config_name_is_builtin(config, name);
}

static enum shk_look look_variable(const struct shk_facts *facts, const struct shk_config *config,
                                   const char *name, const char **value_p)
{
    static const char *const places[] = {"env.", "env.file."};
    bool file_first = shk_env_file_wins(facts, name);
    bool absent = false;
    for (size_t i = 0; i < 2; i++) {
        enum shk_look look = look_place(facts, places[file_first ? 1 - i : i], name, value_p);
        if (look == SHK_LOOK_PRESENT || look == SHK_LOOK_FAILED)
            return look;
        absent |= look == SHK_LOOK_ABSENT;
    }
    absent = absent || (shk_env_known(facts) && looked_for(facts, config, name));
    return absent ? SHK_LOOK_ABSENT : SHK_LOOK_MISSING;
}

enum shk_look shk_look_env(const struct shk_facts *facts, const char *name, const char **value_p)
{
    return look_variable(facts, NULL, name, value_p);
}

enum shk_look shk_look_setting(const struct shk_check_context *ctx, const char *name,
                               const char **value_p)
{
    return look_variable(ctx->facts, ctx->config, name, value_p);
}

const char *shk_env_get(const struct shk_facts *facts, const char *name)
{
    const char *value = NULL;
    return shk_look_env(facts, name, &value) == SHK_LOOK_PRESENT ? value : NULL;
}

bool shk_env_known(const struct shk_facts *facts)
{
    const char *status = NULL;
    return shk_look_text(facts, "probe.env.status", &status) == SHK_LOOK_PRESENT &&
           strcmp(status, "ok") == 0;
}

static long long list_count(const struct shk_facts *facts, const char *key)
{
    json_t *list = NULL;
    switch (shk_look_array(facts, key, &list)) {
    case SHK_LOOK_PRESENT: return (long long)json_array_size(list);
    case SHK_LOOK_ABSENT: return 0;
    default: return -1;
    }
}

long long shk_device_count(const struct shk_facts *facts, const char *kind)
{
    char *key = shk_strf("pci.count.%s", kind);
    long long count = -1;
    if (key) {
        (void)shk_look_int(facts, key, &count);
        if (count < 0 && shk_look(facts, key, NULL) == SHK_LOOK_ABSENT)
            count = 0;
    }
    free(key);
    for (size_t i = 0; count < 0 && i < sizeof(device_lists) / sizeof(device_lists[0]); i++) {
        long long listed =
            strcmp(device_lists[i].kind, kind) == 0 ? list_count(facts, device_lists[i].list) : -1;
        if (listed > 0) /* a driver that lists none says nothing of the bus */
            count = listed;
    }
    return count;
}

long long shk_job_nodes(const struct shk_facts *facts)
{
    const char *launcher = NULL;
    long long nodes = -1;
    if (shk_look_text(facts, "job.launcher", &launcher) == SHK_LOOK_PRESENT &&
        strcmp(launcher, "local") == 0)
        return 1;
    (void)shk_look_int(facts, "job.nodes", &nodes);
    return nodes > 0 ? nodes : -1;
}

const struct shk_profile_setting *shk_profile_line(const struct shk_check_context *ctx,
                                                   const char *name, int *holds_p)
{
    const struct shk_profile *profile = ctx->profile;
    const struct shk_profile_setting *maybe = NULL;
    for (size_t i = 0; i < profile->settings_count; i++) {
        const struct shk_profile_setting *line = &profile->settings[i];
        if (strcmp(line->name, name) != 0)
            continue;
        int holds = shk_condition_holds(line->condition, ctx->facts);
        if (holds == 1) {
            if (holds_p)
                *holds_p = 1;
            return line;
        }
        if (holds < 0 && !maybe)
            maybe = line;
    }
    if (maybe && holds_p)
        *holds_p = -1;
    return maybe;
}

bool shk_profile_wants_provider(const struct shk_profile *profile, const char *provider)
{
    return shk_list_has(profile->providers, provider);
}

/* InfiniBand and RoCE sites need no libfabric: their profile is known by its hardware. */
static bool known_by_verbs(const struct shk_profile *profile)
{
    for (size_t i = 0; i < profile->signals_count; i++)
        if (strcmp(profile->signals[i].fact, "pci.count.mlx5") == 0 ||
            strcmp(profile->signals[i].fact, "rdma.devices") == 0)
            return true;
    return false;
}

static bool rdma_kind(const struct shk_profile *profile, const char **kind_p)
{
    for (const char *const *p = profile->providers; p && *p; p++) {
        size_t len = strcspn(*p, ";");
        for (size_t i = 0; i < sizeof(rdma_providers) / sizeof(rdma_providers[0]); i++) {
            const char *name = rdma_providers[i].provider;
            if (strlen(name) == len && strncmp(*p, name, len) == 0) {
                *kind_p = rdma_providers[i].kind;
                return true;
            }
        }
    }
    *kind_p = known_by_verbs(profile) ? "mlx5" : NULL;
    return *kind_p != NULL;
}

bool shk_profile_is_rdma(const struct shk_profile *profile)
{
    const char *kind;
    return rdma_kind(profile, &kind);
}

const char *shk_profile_nic_kind(const struct shk_profile *profile)
{
    const char *kind;
    return rdma_kind(profile, &kind) ? kind : NULL;
}

long long shk_gpu_count(const struct shk_facts *facts)
{
    static const char *const kinds[] = {"gpu-nvidia", "gpu-amd", "neuron"};
    long long total = 0;
    bool unknown = false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        long long count = shk_device_count(facts, kinds[i]);
        if (count > 0)
            total += count;
        unknown |= count < 0;
    }
    return total == 0 && unknown ? -1 : total;
}

const char *shk_container(const struct shk_facts *facts)
{
    const char *container = NULL;
    (void)shk_look_text(facts, "host.container", &container);
    return container && strcmp(container, "none") != 0 ? container : NULL;
}
