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
