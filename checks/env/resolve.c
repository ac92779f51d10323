#include "checks/env/resolve.h"
#include "checks/fabric/fabric.h"
#include "checks/value/grammar.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* File systems that many nodes share, as /proc/self/mountinfo names them. SQLite and lock files do
 * badly there. */
static const char *const shared_fs[] = {
    "lustre",     "nfs",   "nfs4",   "gpfs",     "beegfs",   "ceph",      "cifs",
    "smb3",       "panfs", "wekafs", "orangefs", "afs",      "glusterfs", "fuse.glusterfs",
    "fuse.sshfs", "dvs",   "daos",   "pvfs2",    "fhgfs",    "fuse.ceph", "fuse.ceph-fuse",
    "ocfs2",      "gfs2",  "smbfs",  "quobyte",  "lizardfs", "coda",      "9p",
    NULL};
/* And those that are of one node only. Any other may be either. */
static const char *const local_fs[] = {"ext2",     "ext3",     "ext4",   "xfs",      "btrfs",
                                       "tmpfs",    "ramfs",    "zfs",    "f2fs",     "jfs",
                                       "bcachefs", "overlay",  "rootfs", "vfat",     "exfat",
                                       "ntfs",     "reiserfs", "aufs",   "squashfs", NULL};

/* The driver's list alone does not tell how many there should be to number. */
static bool bus_was_read(struct shk_row *row, const char *kind)
{
    char *key = shk_strf("pci.count.%s", kind);
    long long count = 0;
    enum shk_look look = key ? shk_look_int(row->ctx->facts, key, &count) : SHK_LOOK_FAILED;
    free(key);
    if (look == SHK_LOOK_FAILED || look == SHK_LOOK_MISSING)
        shk_row_lacks(row, "pci.count.*", "how many GPUs the bus has was not read");
    return look == SHK_LOOK_PRESENT || look == SHK_LOOK_ABSENT;
}

/* GPUs that a mask of this kind numbers: 0 none, -1 not known. */
static long long mask_count(struct shk_row *row, const char *kind)
{
    long long count = shk_read_device_count(row, kind);
    if (count > 0 && !bus_was_read(row, kind))
        return count;
    /* HIP takes CUDA's name when its own is not set. */
    return count == 0 && strcmp(kind, "gpu-nvidia") == 0 ? shk_read_device_count(row, "gpu-amd")
                                                         : count;
}

static bool resolve_devices(const struct shk_setting *setting, const char *value,
                            struct shk_row *row)
{
    if (!setting->mask)
        return false;
    const char *kind = setting->mask == SHK_MASK_NVIDIA ? "gpu-nvidia" : "gpu-amd";
    const char *range = strchr(value, '-');
    if (range && range != value && isdigit((unsigned char)range[-1]) && !strpbrk(value, "GgMm")) {
        shk_row_verdict(row, SHK_FAIL, SHK_DECLARED);
        shk_row_text(&row->why, "ranges are not understood here: write every index, with commas");
        row->diagnosis = "visible-devices-mismatch";
        return true;
    }
    long long count = mask_count(row, kind);
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

/* A directory that must be local to the node: on what file system is it? */
static bool resolve_local(const struct shk_setting *setting, const char *key, const json_t *path,
                          const char *value, struct shk_row *row)
{
    const char *type = NULL;
    if (!setting->node_local ||
        shk_read_member_text(row, key, path, "type", &type) != SHK_LOOK_PRESENT)
        return false;
    if (!shk_list_has(shared_fs, type)) {
        bool local = shk_list_has(local_fs, type);
        shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
        shk_row_text(&row->observed, "%s (on %s%s)", value, type,
                     local ? ", local to the node" : "");
        if (!local)
            shk_row_lacks(row, key, "whether other nodes share %s is unknown", type);
        return true;
    }
    shk_row_verdict(row, setting->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    row->diagnosis = setting->missed;
    shk_row_text(&row->observed, "%s (on %s)", value, type);
    shk_row_text(&row->expected, "a directory local to the node");
    shk_row_text(&row->why, "%s is shared between nodes: %s", type, setting->node_local);
    return true;
}

/* A path that should not be so: what is wrong with it. */
static void bad_path(const struct shk_setting *setting, const char *value, const char *wrong,
                     struct shk_row *row)
{
    shk_row_verdict(row, setting->severity >= SHK_SEV_PERF_MAJOR ? SHK_FAIL : SHK_WARN, SHK_EFFECT);
    shk_row_text(&row->why, "%s %s", value, wrong);
}

/* Something is there, and no directory, where a directory must be. */
static bool is_no_directory(const struct shk_setting *setting, const char *key, const json_t *path,
                            struct shk_row *row)
{
    bool exists = false;
    const char *kind = NULL;
    return setting->grammar.directory &&
           shk_look_member_bool(path, "exists", &exists) == SHK_LOOK_PRESENT && exists &&
           shk_read_member_text(row, key, path, "kind", &kind) == SHK_LOOK_PRESENT &&
           strcmp(kind, "dir") != 0;
}

static bool resolve_path(const struct shk_setting *setting, const char *value, struct shk_row *row)
{
    char *key = shk_strf("path.%s", setting->name);
    json_t *path = NULL;
    bool exists = true, decided = false;
    bool asks = setting->grammar.must_exist || setting->node_local ||
                (setting->grammar.directory && key &&
                 shk_look_object(row->ctx->facts, key, &path) == SHK_LOOK_PRESENT);
    if (key && asks && shk_read_object(row, key, &path) == SHK_LOOK_PRESENT) {
        bool looked = setting->grammar.must_exist &&
                      shk_read_member_bool(row, key, path, "exists", &exists) == SHK_LOOK_PRESENT;
        if (!exists) {
            bad_path(setting, value, "does not exist on this node", row);
            decided = true;
        } else if (is_no_directory(setting, key, path, row)) {
            bad_path(setting, value, "is no directory", row);
            decided = true;
        } else if (resolve_local(setting, key, path, value, row)) {
            decided = true;
        } else if (looked) {
            shk_row_verdict(row, SHK_PASS, SHK_EFFECT);
            decided = true;
        }
    }
    if (shk_row_lacking(row) && row->fact)
        snprintf(row->unread_key, sizeof row->unread_key, "%s", row->fact);
    free(key);
    return decided;
}

/* path.<NAME> of a search path: {entries: [{path, exists}]}. */
static bool resolve_paths(const struct shk_setting *setting, struct shk_row *row)
{
    char *key = shk_strf("path.%s", setting->name);
    json_t *path = NULL, *entries = NULL, *entry;
    struct shk_strbuf gone = SHK_STRBUF_INIT;
    size_t i, missing = 0, known = 0;
    if (key && shk_read_object(row, key, &path) == SHK_LOOK_PRESENT)
        (void)shk_read_member_array(row, key, path, "entries", &entries);
    json_array_foreach(entries, i, entry)
    {
        bool exists = true;
        if (shk_read_member_bool(row, key, entry, "exists", &exists) != SHK_LOOK_PRESENT)
            continue;
        known++;
        missing += !exists;
        if (!exists && gone.len < 160)
            shk_strbuf_printf(&gone, "%s%s", gone.len ? ", " : "", shk_member_name(entry, "path"));
    }
    if (shk_row_lacking(row) && row->fact)
        snprintf(row->unread_key, sizeof row->unread_key, "%s", row->fact);
    free(key);
    if (missing) {
        /* The loader passes over them; what is not found for that reason has a row of its own. */
        shk_row_verdict(row, setting->severity >= SHK_SEV_FATAL ? SHK_WARN : SHK_NOTE, SHK_EFFECT);
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
    if (setting->rule == SHK_RULE_NETWORK)
        return shk_resolve_network(ctx, value, row);
    if (!*value)
        return false;
    if (shk_resolve_special(ctx, setting, value, row))
        return true;
    if (setting->rule == SHK_RULE_INTERFACES)
        return shk_resolve_interfaces(ctx, setting, value, row);
    switch (setting->grammar.type) {
    case SHK_VALUE_INTERFACES: return shk_resolve_interfaces(ctx, setting, value, row);
    case SHK_VALUE_HCAS: return shk_resolve_hcas(ctx, setting, value, row);
    case SHK_VALUE_DEVICES: return resolve_devices(setting, value, row);
    case SHK_VALUE_PATH: return resolve_path(setting, value, row);
    case SHK_VALUE_PATHS: return resolve_paths(setting, row);
    default: return false;
    }
}
