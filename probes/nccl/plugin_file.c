#include "probes/nccl/plugin_file.h"

#include "core/facts/facts.h"
#include "core/text/uses.h"
#include "probes/fabric/libfabric_file.h"
#include "probes/nccl/ncclnet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files in the way that are told of one candidate. */
enum { PLUGIN_MAX_BLOCKED = 4 };

static const char *const owners[] = {[SHK_OWNER_NCCL] = "nccl", [SHK_OWNER_RCCL] = "rccl"};

static json_t *plugin_text(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

struct exports {
    struct shk_nccl_abis abis;
    json_t *wrong; /* [{symbol, size, expected}]: exported, but not what the version says */
};

static int plugin_symbol(const struct shk_elf_symbol *symbol, void *arg)
{
    struct exports *exports = arg;
    enum shk_nccl_abi kind;
    unsigned version;
    if (!shk_nccl_abi_parse(symbol->name, &kind, &version))
        return 0;
    shk_nccl_abis_add(&exports->abis, symbol->name);
    size_t expected = kind == SHK_ABI_NET ? shk_ncclnet_size((int)version) : 0;
    if (!symbol->object || (expected && symbol->size && symbol->size != expected))
        json_array_append_new(exports->wrong,
                              json_pack("{s:o, s:b, s:I, s:I}", "symbol", plugin_text(symbol->name),
                                        "object", symbol->object, "size", (json_int_t)symbol->size,
                                        "expected", (json_int_t)expected));
    return 0;
}

static json_t *plugin_abi_json(const struct shk_nccl_abis *abis)
{
    json_t *abi = json_object();
    for (int k = 0; k < SHK_ABI_COUNT; k++)
        json_object_set_new(abi, shk_nccl_abi_name((enum shk_nccl_abi)k),
                            shk_nccl_abis_json(abis->set[k]));
    return abi;
}

static int plugin_highest(unsigned long long set)
{
    return set ? 63 - __builtin_clzll(set) : 0;
}

static void plugin_exports(struct shk_plugin *p, const struct shk_elf *elf,
                           const struct shk_plugin_scene *scene)
{
    struct exports exports = {.wrong = json_array()};
    shk_elf_each_symbol(elf, plugin_symbol, &exports);
    json_object_set_new(p->row, "abi", plugin_abi_json(&exports.abis));
    unsigned long long have = exports.abis.set[p->kind], common = have;
    if (scene->accepts)
        common &= scene->accepts->set[p->kind];
    json_object_set_new(p->row, "abi_common", shk_nccl_abis_json(common));
    if (json_array_size(exports.wrong))
        json_object_set(p->row, "abi_wrong", exports.wrong);
    json_decref(exports.wrong);
    if (p->kind == SHK_ABI_NET) /* what we can call as well */
        p->version = plugin_highest(common & ((2ull << SHK_NCCLNET_NEWEST) - 1) &
                                    ~((1ull << SHK_NCCLNET_OLDEST) - 1));
    p->usable = common != 0;
}

/* True when the object can be loaded into a process of this machine. */
static bool plugin_machine(struct shk_plugin *p, const struct shk_elf *elf,
                           const struct shk_plugin_scene *scene)
{
    unsigned machine = shk_elf_machine(elf), host = shk_ldsearch_machine(scene->search);
    if (scene->loader)
        host = shk_elf_machine(scene->loader->elf);
    json_object_set_new(p->row, "bits", json_integer(shk_elf_bits(elf)));
    json_object_set_new(p->row, "machine", json_string(shk_elf_machine_name(machine)));
    if (!host || machine == host)
        return true;
    json_object_set_new(p->row, "error",
                        json_sprintf("built for %s, this machine is %s",
                                     shk_elf_machine_name(machine), shk_elf_machine_name(host)));
    return false;
}

/* Symbol versions of libfabric say little to people: its releases do. */
static void plugin_releases(json_t *problems, const struct shk_plugin_scene *scene)
{
    size_t i;
    json_t *problem;
    json_array_foreach(problems, i, problem)
    {
        const char *version = json_string_value(json_object_get(problem, "version"));
        const char *path = json_string_value(json_object_get(problem, "path"));
        const char *built_for = version ? shk_libfabric_releases(version) : NULL;
        char is[32] = "";
        struct shk_elf *elf = NULL;
        if (!built_for || !path)
            continue;
        if (shk_elf_open(&elf, shk_ldsearch_host(scene->search), path, NULL) == 0)
            shk_libfabric_version(elf, is, sizeof is);
        shk_elf_close(elf);
        json_object_set_new(problem, "releases",
                            json_sprintf("built for libfabric %s, but %s is %s", built_for, path,
                                         *is ? is : "of an unknown release"));
    }
}

static int plugin_elf(struct shk_plugin *p, const struct shk_elf *elf, const char *path,
                      const struct shk_plugin_scene *scene, struct shk_error *err)
{
    const char *const *prefixes = shk_variables("prefixes.plugin");
    json_t *needed = NULL, *problems = NULL;
    json_object_set_new(p->row, "soname", plugin_text(shk_elf_soname(elf)));
    json_object_set_new(p->row, "rpath", plugin_text(shk_elf_rpath(elf)));
    json_object_set_new(p->row, "runpath", plugin_text(shk_elf_runpath(elf)));
    json_object_set_new(p->row, "env_names", shk_elf_env_names(elf, prefixes));
    plugin_exports(p, elf, scene);
    if (!plugin_machine(p, elf, scene)) {
        p->usable = false;
        return 0;
    }
    int rc = shk_elfdeps_walk(scene->search, elf, path, scene->loader, &needed, &problems, err);
    if (rc)
        return rc;
    plugin_releases(problems, scene);
    json_object_set_new(p->row, "needed", needed);
    json_object_set_new(p->row, "problems", problems);
    return 0;
}

static int plugin_blocked(const struct shk_ldsearch_hit *hit, enum shk_file_state state,
                          const char *text, void *arg)
{
    json_t *row = json_pack("{s:o, s:s, s:s, s:o}", "path", plugin_text(hit->path), "via", hit->via,
                            "state", shk_file_state_name(state), "text", plugin_text(text));
    json_array_append_new(arg, row);
    return json_array_size(arg) == PLUGIN_MAX_BLOCKED;
}

/* What is there, but cannot be opened: in the way of one that is taken later, or all there is. */
static void plugin_obstacles(struct shk_plugin *p, const struct shk_plugin_scene *scene)
{
    json_t *rows = json_array();
    shk_ldsearch_each_obstacle(scene->search, p->name, scene->loader, plugin_blocked, rows);
    if (json_array_size(rows))
        json_object_set(p->row, "blocked", rows);
    json_decref(rows);
}

/* A search passes over a library for another machine without a word, which users cannot see. */
static void plugin_not_found(struct shk_plugin *p, const struct shk_plugin_scene *scene)
{
    struct shk_ldsearch_hit hit;
    struct shk_elf *elf = NULL;
    char *places = strchr(p->name, '/') ? NULL : shk_ldsearch_places(scene->search);
    if (places)
        json_object_set_new(p->row, "places", plugin_text(places));
    free(places);
    if (shk_ldsearch_passed_over(scene->search, p->name, scene->loader, &hit) != 0)
        return;
    json_object_set_new(p->row, "passed_over", plugin_text(hit.path));
    if (shk_elf_open(&elf, shk_ldsearch_host(scene->search), hit.path, NULL) == 0)
        plugin_machine(p, elf, scene);
    shk_elf_close(elf);
}

/* A file that is taken, and that cannot be read as a library. */
static void plugin_unusable(struct shk_plugin *p, const struct shk_plugin_scene *scene,
                            const char *path, int rc, const char *why)
{
    char text[512];
    enum shk_file_state state =
        shk_file_state(shk_ldsearch_host(scene->search), path, text, sizeof text);
    if (state == SHK_FILE_READABLE)
        json_object_set_new(p->row, "error", plugin_text(why));
    else
        json_object_set_new(p->row, "error", json_sprintf("%s: %s", path, text));
    if (rc == -ENODATA)
        json_object_set_new(p->row, "cut_off", json_true());
}

int shk_plugin_inspect(struct shk_plugin *plugin, const struct shk_plugin_scene *scene,
                       const char *reason, struct shk_error *err)
{
    struct shk_ldsearch_hit hit = {.via = NULL};
    struct shk_elf *elf = NULL;
    struct shk_error why = {""};
    plugin->found = shk_ldsearch_find(scene->search, plugin->name, scene->loader, &hit) == 0;
    plugin->row =
        json_pack("{s:o, s:o, s:s, s:s, s:o, s:b, s:b}", "name", plugin_text(plugin->name), "path",
                  plugin_text(plugin->found ? hit.path : NULL), "kind",
                  shk_nccl_abi_name(plugin->kind), "owner", owners[plugin->owner], "reason",
                  plugin_text(reason), "considered", plugin->considered, "found", plugin->found);
    if (!plugin->row)
        return shk_error_sys(err, ENOMEM, "%s", plugin->name);
    plugin_obstacles(plugin, scene);
    if (!plugin->found) {
        plugin_not_found(plugin, scene);
        return 0;
    }
    json_object_set_new(plugin->row, "via", json_string(hit.via));
    int rc = shk_elf_open(&elf, shk_ldsearch_host(scene->search), hit.path, &why);
    if (rc) {
        plugin_unusable(plugin, scene, hit.path, rc, why.text);
        return 0;
    }
    rc = plugin_elf(plugin, elf, hit.path, scene, err);
    shk_elf_close(elf);
    return rc;
}
