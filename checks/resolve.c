#include "checks/resolve.h"
#include "checks/grammar.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Masks of GPUs, and whose indices they hold. */
static const struct {
    const char *name, *kind;
    bool ranges;
} masks[] = {
    {"CUDA_VISIBLE_DEVICES", "gpu-nvidia", false},
    {"ROCR_VISIBLE_DEVICES", "gpu-amd", false},
    {"HIP_VISIBLE_DEVICES", "gpu-amd", false},
    {"GPU_DEVICE_ORDINAL", "gpu-amd", false},
};

/* File systems that many nodes share, as /proc/self/mountinfo names them. SQLite and lock files do
 * badly there. */
static const char *const shared_fs[] = {
    "lustre",     "nfs",   "nfs4",   "gpfs",     "beegfs", "ceph",      "cifs",
    "smb3",       "panfs", "wekafs", "orangefs", "afs",    "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "dvs",   "daos",   NULL};

/* Directories that must be local to the node, and why. */
static const struct {
    const char *name, *why, *diagnosis;
} node_local[] = {
    {"MIOPEN_USER_DB_PATH", "its SQLite database locks up there", "miopen-cache-shared-fs"},
    {"MIOPEN_CUSTOM_CACHE_DIR", "its kernel cache locks up there", "miopen-cache-shared-fs"},
    {"CUDA_CACHE_PATH", "every rank of the job compiles into it at once", NULL},
    {"TRITON_CACHE_DIR", "every rank of the job compiles into it at once", NULL},
    {"TRITON_HOME", "every rank of the job compiles into it at once", NULL},
};

static bool resolve_devices(const struct shk_check_context *ctx, const struct shk_setting *setting,
                            const char *value, struct shk_row *row)
{
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
        if (strcmp(masks[i].name, setting->name) == 0)
            kind = masks[i].kind;
    if (!kind)
        return false;
    const char *range = strchr(value, '-');
    if (range && range != value && isdigit((unsigned char)range[-1]) && !strpbrk(value, "GgMm")) {
        shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
        shk_row_text(&row->why, "ranges are not understood here: write every index, with commas");
        row->diagnosis = "visible-devices-mismatch";
        return true;
    }
    long long count = shk_device_count(ctx->facts, kind);
    /* HIP takes CUDA's name when its own is not set. */
    if (count <= 0 && strcmp(kind, "gpu-nvidia") == 0 &&
        shk_device_count(ctx->facts, "gpu-amd") > 0)
        count = shk_device_count(ctx->facts, "gpu-amd");
    if (count <= 0)
        return false;
    const char *start;
    size_t len;
    while (shk_grammar_item(&value, ',', &start, &len)) {
        char *end;
        long index = strtol(start, &end, 10);
        if (end != start && (*end == ',' || *end == '\0') && index >= count) {
            shk_row_verdict(row, SHK_FAIL, SHK_EFFECT);
            row->diagnosis = "visible-devices-mismatch";
            row->fact = "pci.devices";
            shk_row_text(&row->why,
                         "there is no GPU %ld: this node has %lld, numbered from 0; it and all "
                         "that follows in the list is hidden",
                         index, count);
            return true;
        }
    }
    shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    return true;
}

static bool is_shared(const char *type)
{
    return type && shk_list_has(shared_fs, type);
}

static bool resolve_local(const struct shk_setting *setting, const json_t *path, const char *value,
                          struct shk_row *row)
{
    const char *type = shk_member_text(path, "type");
    if (!type)
        type = shk_member_text(path, "fs");
    if (!type)
        type = shk_member_text(json_object_get(path, "fs"), "type");
    for (size_t i = 0; i < sizeof(node_local) / sizeof(node_local[0]); i++) {
        if (strcmp(node_local[i].name, setting->name) != 0)
            continue;
        if (!type)
            return false;
        if (!is_shared(type)) {
            shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
            shk_row_text(&row->observed, "%s (on %s, local to the node)", value, type);
            return true;
        }
        shk_row_verdict(row, setting->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN,
                        SHK_EFFECT);
        row->diagnosis = node_local[i].diagnosis;
        shk_row_text(&row->observed, "%s (on %s)", value, type);
        shk_row_text(&row->expected, "a directory local to the node");
        shk_row_text(&row->why, "%s is shared between nodes: %s", type, node_local[i].why);
        return true;
    }
    return false;
}

static bool resolve_path(const struct shk_check_context *ctx, const struct shk_setting *setting,
                         const char *value, struct shk_row *row)
{
    char *key = shk_strf("path.%s", setting->name);
    struct shk_fact fact;
    bool decided = false;
    if (key && shk_look(ctx->facts, key, &fact) == SHK_LOOK_PRESENT && json_is_object(fact.value)) {
        const json_t *exists = json_object_get(fact.value, "exists");
        if (setting->grammar.must_exist && json_is_false(exists)) {
            shk_row_verdict(row, setting->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN,
                            SHK_EFFECT);
            shk_row_text(&row->why, "%s does not exist on this node", value);
            decided = true;
        } else {
            decided = resolve_local(setting, fact.value, value, row);
            if (!decided && setting->grammar.must_exist && json_is_true(exists)) {
                shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
                decided = true;
            }
        }
    }
    free(key);
    return decided;
}

/* path.<NAME> of a search path: [{path, exists}], or {entries: [...]}. */
static bool resolve_paths(const struct shk_check_context *ctx, const struct shk_setting *setting,
                          struct shk_row *row)
{
    char *key = shk_strf("path.%s", setting->name);
    struct shk_fact fact;
    struct shk_strbuf gone = SHK_STRBUF_INIT;
    size_t i, missing = 0, known = 0;
    json_t *entry;
    if (key && shk_look(ctx->facts, key, &fact) == SHK_LOOK_PRESENT) {
        const json_t *entries =
            json_is_array(fact.value) ? fact.value : json_object_get(fact.value, "entries");
        json_array_foreach((json_t *)entries, i, entry)
        {
            const char *path = shk_member_text(entry, "path");
            known += json_is_boolean(json_object_get(entry, "exists"));
            if (path && json_is_false(json_object_get(entry, "exists"))) {
                missing++;
                if (gone.len < 160)
                    shk_strbuf_printf(&gone, "%s%s", gone.len ? ", " : "", path);
            }
        }
    }
    free(key);
    if (missing) {
        /* The loader passes over them; what is not found for that reason has a row of its own. */
        shk_row_verdict(row, SHK_WARN, SHK_EFFECT);
        shk_row_text(&row->why, "%s do%s not exist on this node", shk_strbuf_text(&gone),
                     missing == 1 ? "es" : "");
    } else if (known) {
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
    }
    shk_strbuf_free(&gone);
    return known > 0;
}

bool shk_resolve(const struct shk_check_context *ctx, const struct shk_setting *setting,
                 const char *value, struct shk_row *row)
{
    if (strcmp(setting->name, "NCCL_NET") == 0)
        return shk_resolve_network(ctx, value, row);
    if (!*value)
        return false;
    if (shk_resolve_special(ctx, setting->name, value, row))
        return true;
    const char *ifname = strstr(setting->name, "_SOCKET_IFNAME");
    if (setting->grammar.type == SHK_VALUE_LIST && ifname && !ifname[strlen("_SOCKET_IFNAME")])
        return shk_resolve_interfaces(ctx, setting, value, row);
    switch (setting->grammar.type) {
    case SHK_VALUE_INTERFACES: return shk_resolve_interfaces(ctx, setting, value, row);
    case SHK_VALUE_HCAS: return shk_resolve_hcas(ctx, setting, value, row);
    case SHK_VALUE_DEVICES: return resolve_devices(ctx, setting, value, row);
    case SHK_VALUE_PATH: return resolve_path(ctx, setting, value, row);
    case SHK_VALUE_PATHS: return resolve_paths(ctx, setting, row);
    default: return false;
    }
}
