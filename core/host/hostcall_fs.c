#include "core/host/host_private.h"
#include "core/host/hostcall.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* mountinfo escapes space, tab, newline and backslash as \ooo. */
static void fs_unescape(char *s)
{
    char *out = s;
    while (*s) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
            *out++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
            s += 4;
        } else {
            *out++ = *s++;
        }
    }
    *out = '\0';
}

struct fs_mount {
    char *point, *type, *options;
};

/* "36 35 98:0 /root /mnt opts optional… - type source superopts"; cuts line in place. */
static bool fs_parse(char *line, struct fs_mount *m)
{
    char *save, *field = strtok_r(line, " ", &save);
    for (int i = 0; field && i < 6; i++, field = strtok_r(NULL, " ", &save)) {
        if (i == 4)
            m->point = field;
        else if (i == 5)
            m->options = field;
    }
    while (field && strcmp(field, "-") != 0)
        field = strtok_r(NULL, " ", &save);
    m->type = field ? strtok_r(NULL, " ", &save) : NULL;
    if (!m->type)
        return false;
    fs_unescape(m->point);
    return true;
}

static bool fs_below(const char *path, const char *point)
{
    size_t n = strlen(point);
    if (strcmp(point, "/") == 0)
        return true;
    return strncmp(path, point, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Longest existing prefix of path, in place. */
static bool fs_existing(const struct shk_host *host, char *path)
{
    while (!shk_host_exists(host, "%s", path)) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path)
            return slash == path;
        *slash = '\0';
    }
    return true;
}

/* autofs: systemd waits so for binfmt_misc on nearly every host. */
static bool fs_local(const struct fs_mount *m)
{
    static const char *const types[] = {
        "ext2",       "ext3",     "ext4",      "xfs",     "btrfs",       "zfs",    "f2fs",
        "vfat",       "iso9660",  "squashfs",  "erofs",   "overlay",     "tmpfs",  "ramfs",
        "rootfs",     "devtmpfs", "devpts",    "proc",    "sysfs",       "cgroup", "cgroup2",
        "securityfs", "debugfs",  "tracefs",   "pstore",  "bpf",         "mqueue", "hugetlbfs",
        "configfs",   "efivarfs", "selinuxfs", "fusectl", "binfmt_misc", "nsfs",   "nfsd",
        "rpc_pipefs", NULL};
    if (strcmp(m->type, "autofs") == 0)
        return fs_below(m->point, "/proc");
    for (const char *const *t = types; *t; t++)
        if (strcmp(*t, m->type) == 0)
            return true;
    return false;
}

bool shk_host_mounts_local(const struct shk_host *host)
{
    struct shk_error err;
    char *text = NULL, *save;
    if (shk_host_read(host, "/proc/self/mountinfo", &text, NULL, &err))
        return false;
    size_t seen = 0;
    bool local = true;
    for (char *line = strtok_r(text, "\n", &save); line && local;
         line = strtok_r(NULL, "\n", &save), seen++) {
        struct fs_mount m = {0};
        local = fs_parse(line, &m) && fs_local(&m);
    }
    free(text);
    return local && seen > 0;
}

int shk_hostcall_fs(const struct shk_host *host, const char *path, json_t **value_p,
                    struct shk_error *err)
{
    char *probe = strdup(path), *text = NULL;
    json_t *best = NULL;
    size_t best_len = 0;
    int rc = 0;
    if (!probe) {
        rc = shk_error_sys(err, ENOMEM, "%s", path);
        goto out;
    }
    if (path[0] != '/' || !fs_existing(host, probe)) {
        rc = shk_error_set(err, ENOENT, "%s: no such file or directory", path);
        goto out;
    }
    rc = shk_host_read(host, "/proc/self/mountinfo", &text, NULL, err);
    if (rc)
        goto out;
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct fs_mount m = {0};
        /* a later mount on the same point hides the earlier one */
        if (!fs_parse(line, &m) || !fs_below(probe, m.point) || strlen(m.point) < best_len)
            continue;
        best_len = strlen(m.point);
        json_decref(best);
        best = json_pack("{s:s,s:s,s:s}", "type", m.type, "mount", m.point, "options", m.options);
    }
    if (!best) {
        rc = shk_error_set(err, ENOENT, "%s: no mount found in /proc/self/mountinfo", path);
        goto out;
    }
    struct statvfs v;
    if (host->live && statvfs(probe, &v) == 0) {
        json_object_set_new(best, "size", json_integer((json_int_t)(v.f_blocks * v.f_frsize)));
        json_object_set_new(best, "free", json_integer((json_int_t)(v.f_bavail * v.f_frsize)));
    }
    *value_p = best;
    best = NULL;
out:
    json_decref(best);
    free(text);
    free(probe);
    return rc;
}
