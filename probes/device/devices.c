/* Device nodes that GPU and fabric libraries open, and whether this process may. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes that are looked for by name, so that their absence is a fact. */
static const char *const devices_named[] = {
    "shm",    "kfd",  "nvidiactl", "nvidia-uvm",         "gdrdrv",
    "kdreg2", "knem", "xpmem",     "infiniband/rdma_cm", "userfaultfd",
};

/* Numbered families: every member is a fact; when there is none, `first` is an absent one. */
static const struct {
    const char *dir;    /* below /dev; "" is /dev itself */
    const char *prefix; /* followed by a number */
    const char *first;
} devices_families[] = {
    {"", "nvidia", "nvidia0"},
    {"", "nvidia-nvswitch", "nvidia-nvswitch0"},
    {"", "nvidia-fs", "nvidia-fs0"},
    {"", "cxi", "cxi0"},
    {"", "neuron", "neuron0"},
    {"dri", "renderD", "dri/renderD128"},
    {"infiniband", "uverbs", "infiniband/uverbs0"},
    {"nvidia-caps-imex-channels", "channel", "nvidia-caps-imex-channels/channel0"},
};

static const char *devices_type(mode_t mode)
{
    static const struct {
        mode_t type;
        const char *name;
    } rows[] = {
        {S_IFCHR, "char"},  {S_IFDIR, "dir"},  {S_IFREG, "file"},
        {S_IFBLK, "block"}, {S_IFIFO, "fifo"}, {S_IFSOCK, "socket"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((mode & S_IFMT) == rows[i].type)
            return rows[i].name;
    return "other";
}

static void devices_node(struct shk_gather *g, const char *name)
{
    char key[256], path[256], mode[8];
    struct stat st;
    if (!shk_gather_key(key, sizeof key, "dev.", name))
        return;
    snprintf(path, sizeof path, "/dev/%s", name);
    int rc = shk_host_stat(g->host, path, &st);
    if (rc == -ENOENT && shk_gather_missing(g->host, path, "/dev")) {
        shk_gather_absent(g, key, path, "%s does not exist", path);
        return;
    }
    if (rc) {
        shk_gather_failed(g, key, path, "%s: %s", path, strerror(-rc));
        return;
    }
    rc = shk_host_access_rw(g->host, path);
    snprintf(mode, sizeof mode, "%04o", (unsigned)(st.st_mode & 07777));
    json_t *node =
        json_pack("{s:s,s:s,s:I,s:I,s:b}", "type", devices_type(st.st_mode), "mode", mode, "uid",
                  (json_int_t)st.st_uid, "gid", (json_int_t)st.st_gid, "rw", rc == 0);
    if (node && rc && rc != -EACCES)
        json_object_set_new(node, "error", shk_gather_str(strerror(-rc)));
    shk_gather_present(g, key, node, NULL, path);
}

static bool devices_is_member(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    const char *digits = name + n;
    return strncmp(name, prefix, n) == 0 && *digits && digits[strspn(digits, "0123456789")] == '\0';
}

/* `listed` gets the names of each family whose folder was listed, so that a member without a fact
 * is known not to be there. */
static void devices_family(struct shk_gather *g, size_t family, json_t *listed)
{
    const char *dir = devices_families[family].dir, *first = devices_families[family].first;
    char path[64], node[320], key[96];
    json_t *members = json_array();
    char **names = NULL;
    struct shk_error err;
    size_t found = 0;
    snprintf(path, sizeof path, "/dev%s%s", *dir ? "/" : "", dir);
    int rc = shk_host_list(g->host, &names, NULL, &err, "%s", path);
    for (char **n = names; n && *n; n++) {
        if (!devices_is_member(*n, devices_families[family].prefix))
            continue;
        snprintf(node, sizeof node, "%s%s%s", dir, *dir ? "/" : "", *n);
        devices_node(g, node);
        json_array_append_new(members, shk_gather_str(node));
        found++;
    }
    shk_host_list_free(names);
    snprintf(key, sizeof key, "%s%s%s", dir, *dir ? "/" : "", devices_families[family].prefix);
    if (!rc)
        json_object_set(listed, key, members);
    json_decref(members);
    snprintf(key, sizeof key, "dev.%s", first);
    if (rc)
        shk_gather_unread(g, key, path, "/dev", rc, &err);
    else if (!found)
        shk_gather_absent(g, key, path, "no %s%s%s* in /dev", dir, *dir ? "/" : "",
                          devices_families[family].prefix);
}

static int devices_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    json_t *listed = json_object();
    for (size_t i = 0; i < sizeof devices_named / sizeof *devices_named; i++)
        devices_node(&g, devices_named[i]);
    for (size_t i = 0; i < sizeof devices_families / sizeof *devices_families; i++)
        devices_family(&g, i, listed);
    shk_gather_present(&g, "dev.listed", listed, NULL, "/dev");
    return shk_gather_end(&g, err);
}

static const char *const devices_provides[] = {"dev.shm",
                                               "dev.kfd",
                                               "dev.nvidiactl",
                                               "dev.nvidia-uvm",
                                               "dev.gdrdrv",
                                               "dev.kdreg2",
                                               "dev.knem",
                                               "dev.xpmem",
                                               "dev.infiniband/rdma_cm",
                                               "dev.userfaultfd",
                                               "dev.listed",
                                               "dev.",
                                               NULL};

const struct shk_probe shk_probe_devices = {
    .name = "devices",
    .phase = SHK_PHASE_HOST,
    .doc = "device nodes of GPUs and fabrics, and whether this process may open them",
    .provides = devices_provides,
    .deadline_ms = 5000,
    .run = devices_run,
};
