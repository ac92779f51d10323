/* Limits that control groups put on this process. They apply all the way up: what counts is the
 * tightest of the group's own limit and those of its ancestors. */
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Where one hierarchy is mounted, and our group below that. */
struct cgroup_place {
    char mount[256];
    char path[512]; /* starts with '/'; "/" is the top of the mount */
};

struct cgroup_texts {
    char *groups; /* /proc/self/cgroup */
    char *mounts; /* /proc/self/mountinfo */
};

static bool cgroup_has_item(const char *list, size_t len, const char *item)
{
    size_t n = strlen(item);
    for (const char *p = list; p < list + len;) {
        size_t word = strcspn(p, ",: \n");
        if (word == n && memcmp(p, item, n) == 0)
            return true;
        p += word + 1;
    }
    return false;
}

/* Our group in a hierarchy: line "ID:controllers:path"; controller NULL is version 2 ("0::path").
 */
static bool cgroup_find_path(const char *groups, const char *controller, char *buf, size_t size)
{
    for (const char *line = groups; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        size_t len = (size_t)(path - names - 1);
        if (controller ? !cgroup_has_item(names + 1, len, controller)
                       : len != 0 || strncmp(line, "0:", 2) != 0)
            continue;
        int n = snprintf(buf, size, "%.*s", (int)strcspn(path + 1, "\n"), path + 1);
        return n > 0 && (size_t)n < size && buf[0] == '/';
    }
    return false;
}

/* "ID PARENT DEV ROOT MOUNT … - TYPE SOURCE OPTIONS"; cuts a copy of the line. */
static bool cgroup_match_mount(char *line, const char *controller, char **root, char **mount)
{
    char *dash = strstr(line, " - "), *save;
    char *type = dash ? dash + 3 : NULL, *options = NULL;
    if (!type || strncmp(type, controller ? "cgroup " : "cgroup2 ", controller ? 7 : 8) != 0)
        return false;
    options = strrchr(type, ' ') + 1;
    if (controller && !cgroup_has_item(options, strlen(options), controller))
        return false;
    *dash = '\0';
    *root = *mount = NULL;
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; field && i < 5; i++, field = strtok_r(NULL, " ", &save)) {
        if (i == 3)
            *root = field;
        else if (i == 4)
            *mount = field;
    }
    return *mount != NULL;
}

/* Inside a container the mount shows only part of the tree: its root is cut off our path. */
static void cgroup_relative(char *path, const char *root)
{
    size_t n = strlen(root);
    if (strcmp(root, "/") == 0 || strncmp(path, root, n) != 0 || (path[n] && path[n] != '/'))
        return;
    memmove(path, path[n] ? path + n : "/", path[n] ? strlen(path + n) + 1 : 2);
}

static bool cgroup_find_mount(const char *mounts, const char *controller,
                              struct cgroup_place *place)
{
    for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *copy = strndup(line, strcspn(line, "\n")), *root, *mount;
        bool hit = copy && cgroup_match_mount(copy, controller, &root, &mount) &&
                   strlen(mount) < sizeof place->mount;
        if (hit) {
            strcpy(place->mount, mount);
            cgroup_relative(place->path, root);
        }
        free(copy);
        if (hit)
            return true;
    }
    return false;
}

/* Where the hierarchy of a controller (NULL: version 2) shows our group. -ENOENT: this process is
 * in no such hierarchy; other errors: it is, but what it says is out of sight. */
static int cgroup_find(const struct shk_host *host, const struct cgroup_texts *texts,
                       const char *controller, struct cgroup_place *place, struct shk_error *err)
{
    const char *name = controller ? controller : "version 2";
    if (!cgroup_find_path(texts->groups, controller, place->path, sizeof place->path))
        return -ENOENT;
    if (!cgroup_find_mount(texts->mounts, controller, place))
        return shk_error_set(err, ENXIO, "the %s control groups are not mounted here", name);
    if (strncmp(place->path, "/..", 3) == 0 ||
        !shk_host_exists(host, "%s%s", place->mount, place->path))
        return shk_error_set(err, EXDEV, "our %s control group %s is not visible below %s", name,
                             place->path, place->mount);
    return 0;
}

/* A limit file: a number, or "max". Version 1 writes "no limit" as a number near 2^63. */
static int cgroup_read_limit(const struct shk_host *host, const char *path, long long *value_p,
                             struct shk_error *err)
{
    char *line = NULL, *end;
    int rc = shk_host_line(host, &line, err, "%s", path);
    if (rc)
        return rc;
    errno = 0;
    long long value = strtoll(line, &end, 10);
    if (strcmp(line, "max") == 0)
        *value_p = -1;
    else if (errno || end == line || *end || value < 0)
        rc = shk_error_set(err, EINVAL, "%s: not a limit: '%.40s'", path, line);
    else
        *value_p = value >= LLONG_MAX - (1 << 20) ? -1 : value;
    free(line);
    return rc;
}

/* Thousandths of a processor, as Kubernetes counts them: "QUOTA PERIOD" of cpu.max in microseconds;
 * version 1 has two files, the quota is -1 where there is none. */
static int cgroup_read_quota(const struct shk_host *host, const char *path, long long *value_p,
                             struct shk_error *err)
{
    static const char quota_v1[] = "cpu.cfs_quota_us";
    char *line = NULL, *other = NULL;
    long long quota = -1, period = 0;
    size_t stem = strlen(path) - (sizeof quota_v1 - 1);
    bool v1 = strlen(path) > sizeof quota_v1 && strcmp(path + stem, quota_v1) == 0;
    int rc = shk_host_line(host, &line, err, "%s", path);
    if (!rc && v1 && shk_host_line(host, &other, NULL, "%.*scpu.cfs_period_us", (int)stem, path))
        rc = shk_error_set(err, EINVAL, "%s: its cpu.cfs_period_us could not be read", path);
    bool read =
        !rc && (v1 ? sscanf(line, "%lld", &quota) == 1 && sscanf(other, "%lld", &period) == 1
                   : strncmp(line, "max ", 4) == 0 ||
                         (sscanf(line, "%lld %lld", &quota, &period) == 2 && quota >= 0));
    if (read && quota >= 0 && (period <= 0 || quota > LLONG_MAX / 1000))
        read = false;
    if (read)
        *value_p = quota < 0 ? -1 : quota * 1000 / period;
    else if (!rc)
        rc = shk_error_set(err, EINVAL, "%s: not a quota: '%.40s'", path, line);
    free(line);
    free(other);
    return rc;
}

static void cgroup_path(char *buf, size_t size, const struct cgroup_place *place, const char *group,
                        const char *file)
{
    snprintf(buf, size, "%s%s/%s", place->mount, strcmp(group, "/") == 0 ? "" : group, file);
}

/* Cuts the last component; false at the top. */
static bool cgroup_parent(char *group)
{
    char *slash = strrchr(group, '/');
    if (!slash || strcmp(group, "/") == 0)
        return false;
    slash[slash == group] = '\0';
    return true;
}

struct cgroup_row {
    const char *key, *controller, *file_v1, *file_v2, *unit;
    int (*read)(const struct shk_host *, const char *path, long long *value_p,
                struct shk_error *); /* NULL: a text */
};

/* The tightest limit from our group up. The top of version 2 has no limit files: not an error. */
static void cgroup_limit(struct shk_gather *g, const struct cgroup_row *row,
                         const struct cgroup_place *place, const char *file)
{
    const char *key = row->key;
    char group[512], path[1024], tightest[1024] = "";
    long long limit = -1;
    size_t seen = 0;
    memcpy(group, place->path, sizeof group);
    do {
        struct shk_error err;
        long long value = -1;
        cgroup_path(path, sizeof path, place, group, file);
        int rc = row->read(g->host, path, &value, &err);
        if (rc && !(rc == -ENOENT && shk_gather_missing(g->host, path, place->mount))) {
            shk_gather_failed(g, key, path, "%s", err.text);
            return;
        }
        seen += rc == 0;
        if (value >= 0 && (limit < 0 || value < limit)) {
            limit = value;
            memcpy(tightest, path, sizeof tightest);
        }
    } while (cgroup_parent(group));
    cgroup_path(path, sizeof path, place, place->path, file);
    if (seen)
        shk_gather_int(g, key, limit, row->unit, *tightest ? tightest : path);
    else
        shk_gather_absent(g, key, path, "no %s from this group up", file);
}

/* Cuts the group after "job_123", so that what other steps of a job of Slurm met counts, too. */
static void cgroup_of_job(char *group)
{
    for (char *p = strstr(group, "/job_"); p; p = strstr(p + 1, "/job_")) {
        size_t digits = strspn(p + 5, "0123456789");
        if (digits && (p[5 + digits] == '/' || !p[5 + digits])) {
            p[5 + digits] = '\0';
            return;
        }
    }
}

/* "oom_kill 3" of memory.events; version 1 has it in memory.oom_control. -1: no such line. */
static long long cgroup_kills(const char *text)
{
    long long kills = -1;
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "oom_kill %lld", &kills) == 1)
            return kills;
    }
    return -1;
}

/* Processes that were killed for memory. The top has no such file: nothing counts there. */
static void cgroup_oom_kills(struct shk_gather *g, const struct cgroup_texts *texts)
{
    static const char key[] = "cgroup.memory.oom_kills";
    struct cgroup_place place;
    struct shk_error err;
    char path[1024], *text = NULL;
    const char *file = "memory.oom_control";
    int rc = cgroup_find(g->host, texts, "memory", &place, &err);
    if (rc == -ENOENT) {
        rc = cgroup_find(g->host, texts, NULL, &place, &err);
        file = "memory.events";
    }
    if (rc) {
        if (rc == -ENOENT)
            shk_gather_absent(g, key, "/proc/self/cgroup", "this process is in no control group");
        else
            shk_gather_failed(g, key, "/proc/self/cgroup", "%s", err.text);
        return;
    }
    cgroup_of_job(place.path);
    cgroup_path(path, sizeof path, &place, place.path, file);
    rc = shk_host_read(g->host, path, &text, NULL, &err);
    long long kills = rc ? -1 : cgroup_kills(text);
    if (rc)
        shk_gather_unread(g, key, path, place.mount, rc, &err);
    else if (kills < 0)
        shk_gather_absent(g, key, path, "%s counts no kills", path);
    else
        shk_gather_int(g, key, kills, NULL, path);
    free(text);
}

static const struct cgroup_row cgroup_rows[] = {
    {.key = "cgroup.memory.max",
     .controller = "memory",
     .file_v1 = "memory.limit_in_bytes",
     .file_v2 = "memory.max",
     .unit = "B",
     .read = cgroup_read_limit},
    {.key = "cgroup.pids.max",
     .controller = "pids",
     .file_v1 = "pids.max",
     .file_v2 = "pids.max",
     .read = cgroup_read_limit},
    {.key = "cgroup.cpu.max",
     .controller = "cpu",
     .file_v1 = "cpu.cfs_quota_us",
     .file_v2 = "cpu.max",
     .read = cgroup_read_quota},
    {.key = "cgroup.cpuset.cpus",
     .controller = "cpuset",
     .file_v1 = "cpuset.effective_cpus",
     .file_v2 = "cpuset.cpus.effective"},
    {.key = "cgroup.cpuset.mems",
     .controller = "cpuset",
     .file_v1 = "cpuset.effective_mems",
     .file_v2 = "cpuset.mems.effective"},
};

static void cgroup_row(struct shk_gather *g, const struct cgroup_texts *texts, size_t i)
{
    struct cgroup_place place;
    struct shk_error err;
    char path[1024];
    const char *key = cgroup_rows[i].key, *file = cgroup_rows[i].file_v1;
    /* A controller sits in exactly one hierarchy: version 1 when it is named there. */
    int rc = cgroup_find(g->host, texts, cgroup_rows[i].controller, &place, &err);
    if (rc == -ENOENT) {
        rc = cgroup_find(g->host, texts, NULL, &place, &err);
        file = cgroup_rows[i].file_v2;
    }
    if (rc == -ENOENT) {
        shk_gather_absent(g, key, "/proc/self/cgroup", "this process is in no %s control group",
                          cgroup_rows[i].controller);
    } else if (rc) {
        shk_gather_failed(g, key, "/proc/self/cgroup", "%s", err.text);
    } else if (!cgroup_rows[i].read) {
        cgroup_path(path, sizeof path, &place, place.path, file);
        shk_gather_line(g, key, path, place.mount);
    } else {
        cgroup_limit(g, &cgroup_rows[i], &place, file);
    }
}

static void cgroup_version(struct shk_gather *g, const struct cgroup_texts *texts)
{
    static const char path[] = "/proc/self/cgroup";
    char buf[512];
    if (cgroup_find_path(texts->groups, "memory", buf, sizeof buf) ||
        cgroup_find_path(texts->groups, "cpuset", buf, sizeof buf))
        shk_gather_int(g, "cgroup.version", 1, NULL, path);
    else if (cgroup_find_path(texts->groups, NULL, buf, sizeof buf))
        shk_gather_int(g, "cgroup.version", 2, NULL, path);
    else
        shk_gather_absent(g, "cgroup.version", path, "this process is in no control group");
}

static const char *const cgroup_provides[] = {
    "cgroup.version",     "cgroup.memory.max",  "cgroup.pids.max",         "cgroup.cpu.max",
    "cgroup.cpuset.cpus", "cgroup.cpuset.mems", "cgroup.memory.oom_kills", NULL,
};

static int cgroup_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct cgroup_texts texts = {0};
    struct shk_error why;
    int rc = shk_host_read(ctx->host, "/proc/self/cgroup", &texts.groups, NULL, &why);
    if (!rc)
        rc = shk_host_read(ctx->host, "/proc/self/mountinfo", &texts.mounts, NULL, &why);
    if (rc) {
        for (const char *const *key = cgroup_provides; *key; key++)
            shk_gather_failed(&g, *key, "/proc/self/cgroup", "%s", why.text);
    } else {
        cgroup_version(&g, &texts);
        for (size_t i = 0; i < sizeof cgroup_rows / sizeof *cgroup_rows; i++)
            cgroup_row(&g, &texts, i);
        cgroup_oom_kills(&g, &texts);
    }
    free(texts.groups);
    free(texts.mounts);
    return shk_gather_end(&g, err);
}

const struct shk_probe shk_probe_cgroup = {
    .name = "cgroup",
    .phase = SHK_PHASE_HOST,
    .doc = "control group limits: memory, processes, processors; processes killed for memory",
    .provides = cgroup_provides,
    .deadline_ms = 5000,
    .run = cgroup_run,
};
