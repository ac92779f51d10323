/* What this process may use: resource limits, /dev/shm, huge pages. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool limits_valid(const json_t *limit)
{
    return json_is_integer(json_object_get(limit, "soft")) &&
           json_is_integer(json_object_get(limit, "hard"));
}

static void limits_resources(struct shk_gather *g)
{
    static const struct {
        const char *key, *member, *unit;
    } rows[] = {
        {"limits.memlock", "memlock", "B"}, {"limits.nofile", "nofile", NULL},
        {"limits.stack", "stack", "B"},     {"limits.as", "as", "B"},
        {"limits.core", "core", "B"},       {"limits.nproc", "nproc", NULL},
    };
    struct shk_error err;
    json_t *all = NULL;
    int rc = shk_hostcall(g->host, SHK_CALL_RLIMITS, &all, &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *limit = rc ? NULL : json_object_get(all, rows[i].member);
        if (limits_valid(limit))
            shk_gather_present(g, rows[i].key, json_incref(limit), rows[i].unit, "getrlimit");
        else
            shk_gather_failed(g, rows[i].key, "getrlimit", "%s",
                              rc ? err.text : "no soft and hard limit in the answer");
    }
    json_decref(all);
}

static void limits_shm(struct shk_gather *g)
{
    static const struct {
        const char *key, *member, *unit;
    } rows[] = {
        {"shm.size", "size", "B"},
        {"shm.free", "free", "B"},
        {"shm.type", "type", NULL},
    };
    struct shk_error err;
    json_t *fs = NULL;
    int rc = shk_hostcall(g->host, SHK_CALL_SHMFS, &fs, &err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = rc ? NULL : json_object_get(fs, rows[i].member);
        if (json_is_integer(value) || json_is_string(value))
            shk_gather_present(g, rows[i].key, json_incref(value), rows[i].unit, "/dev/shm");
        else if (rc == -ENOENT)
            shk_gather_absent(g, rows[i].key, "/dev/shm", "/dev/shm does not exist");
        else
            shk_gather_failed(g, rows[i].key, "/dev/shm", "%s",
                              rc ? err.text : "not in the answer");
    }
    json_decref(fs);
}

static void limits_pool(struct shk_gather *g, long kib)
{
    static const struct {
        const char *member, *file;
    } rows[] = {
        {"total", "nr_hugepages"},
        {"free", "free_hugepages"},
        {"reserved", "resv_hugepages"},
        {"overcommit", "nr_overcommit_hugepages"},
    };
    char key[32], dir[80];
    json_t *pool = json_object();
    snprintf(key, sizeof key, "hugepages.%ld", kib);
    snprintf(dir, sizeof dir, "/sys/kernel/mm/hugepages/hugepages-%ldkB", kib);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        shk_gather_member_i64(g->host, pool, rows[i].member, "%s/%s", dir, rows[i].file);
    if (json_is_integer(json_object_get(pool, "total"))) {
        shk_gather_present(g, key, pool, NULL, dir);
        return;
    }
    const char *why = shk_gather_get(json_object_get(pool, "problems"), "total");
    shk_gather_failed(g, key, dir, "%s", why ? why : "nr_hugepages does not exist");
    json_decref(pool);
}

/* One fact per page size that the kernel offers, and the list of sizes (kB). */
static void limits_hugepages(struct shk_gather *g)
{
    static const char path[] = "/sys/kernel/mm/hugepages";
    char **names = shk_gather_names(g, "hugepages.sizes", path, "/sys/kernel/mm");
    if (!names)
        return;
    json_t *sizes = json_array();
    for (char **n = names; *n; n++) {
        char *end;
        long kib = strncmp(*n, "hugepages-", 10) == 0 ? strtol(*n + 10, &end, 10) : 0;
        if (kib <= 0 || strcmp(end, "kB") != 0)
            continue;
        json_array_append_new(sizes, json_integer(kib));
        limits_pool(g, kib);
    }
    shk_host_list_free(names);
    shk_gather_present(g, "hugepages.sizes", sizes, "kB", path);
}

static int limits_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    limits_resources(&g);
    limits_shm(&g);
    limits_hugepages(&g);
    json_t *page = shk_gather_hostcall(&g, SHK_CALL_PAGESIZE, "limits.pagesize");
    if (page)
        shk_gather_present(&g, "limits.pagesize", page, "B", "sysconf");
    return shk_gather_end(&g, err);
}

static const char *const limits_provides[] = {
    "limits.memlock",  "limits.nofile", "limits.stack", "limits.as", "limits.core",
    "limits.nproc",    "shm.size",      "shm.free",     "shm.type",  "limits.pagesize",
    "hugepages.sizes", "hugepages.",    NULL,
};

const struct shk_probe shk_probe_limits = {
    .name = "limits",
    .phase = SHK_PHASE_HOST,
    .doc = "resource limits, /dev/shm, huge pages",
    .provides = limits_provides,
    .deadline_ms = 5000,
    .run = limits_run,
};
