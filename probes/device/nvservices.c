/* Services that NVSwitch and multi-node NVLink need, as processes, files and module parameters
 * show them; no vendor library is asked. */
#include "core/text/strbuf.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* comm holds 15 characters of the name. */
static const struct {
    const char *key, *comm, *name;
} nvservices_daemons[] = {
    {"nvidia.fabricmanager.running", "nv-fabricmanage", "nv-fabricmanager"},
    {"nvidia.imex.running", "nvidia-imex", "nvidia-imex"},
    {"nvidia.persistenced.running", "nvidia-persiste", "nvidia-persistenced"},
};

static bool nvservices_is_pid(const char *name)
{
    return *name && name[strspn(name, "0123456789")] == '\0';
}

struct nvservices_seen {
    bool found[sizeof nvservices_daemons / sizeof *nvservices_daemons];
    bool init; /* process 1, which belongs to root: so nobody's processes are hidden */
    bool any;
};

static void nvservices_look(const struct shk_host *host, char **names, struct nvservices_seen *seen)
{
    for (char **n = names; *n; n++) {
        char *line = NULL;
        if (!nvservices_is_pid(*n) || shk_host_line(host, &line, NULL, "/proc/%s/comm", *n) != 0)
            continue;
        seen->any = true;
        seen->init |= strcmp(*n, "1") == 0;
        for (size_t i = 0; i < sizeof nvservices_daemons / sizeof *nvservices_daemons; i++)
            seen->found[i] |= strcmp(line, nvservices_daemons[i].comm) == 0;
        free(line);
    }
}

static void nvservices_running(struct shk_gather *g, const char *container)
{
    struct shk_error err;
    struct nvservices_seen seen = {0};
    char **names = NULL;
    int rc = shk_host_list(g->host, &names, NULL, &err, "/proc");
    if (!rc)
        nvservices_look(g->host, names, &seen);
    shk_host_list_free(names);
    for (size_t i = 0; i < sizeof nvservices_daemons / sizeof *nvservices_daemons; i++) {
        const char *key = nvservices_daemons[i].key, *name = nvservices_daemons[i].name;
        if (rc)
            shk_gather_failed(g, key, "/proc", "%s", err.text);
        else if (seen.found[i])
            shk_gather_present(g, key, json_true(), NULL, "/proc");
        else if (!seen.any)
            shk_gather_failed(g, key, "/proc", "no process can be seen here");
        else if (!container || strcmp(container, "none") != 0)
            shk_gather_failed(g, key, "/proc",
                              "no %s among the processes of this container, and those of the host "
                              "are out of sight",
                              name);
        else if (!seen.init)
            shk_gather_failed(g, key, "/proc", "processes of other users are hidden here");
        else
            shk_gather_present(g, key, json_false(), NULL, "/proc");
    }
}

/* "[…] [INFO] [tid 1] Fabric Manager version is : 535.161.08": the last one counts. */
static void nvservices_version(struct shk_gather *g)
{
    static const char path[] = "/var/log/fabricmanager.log", key[] = "nvidia.fabricmanager.version";
    static const char mark[] = "Fabric Manager version is";
    struct shk_error err;
    char *text = NULL;
    const char *last = NULL;
    int rc = shk_host_read(g->host, path, &text, NULL, &err);
    for (const char *p = text; p && (p = strstr(p, mark)); p += sizeof mark - 1)
        last = p + sizeof mark - 1;
    size_t n = last ? strspn(last, " :") : 0;
    size_t len = last ? strspn(last + n, "0123456789.") : 0;
    if (rc)
        shk_gather_unread(g, key, path, "/var/log", rc, &err);
    else if (!len)
        shk_gather_absent(g, key, path, "%s names no version", path);
    else
        shk_gather_present(g, key, shk_json_text(last + n, len), NULL, path);
    free(text);
}

/* Members of the domain: lines that are neither empty nor comments. */
static void nvservices_imex_nodes(struct shk_gather *g)
{
    static const char path[] = "/etc/nvidia-imex/nodes_config.cfg", key[] = "nvidia.imex.nodes";
    char *save, *text = shk_gather_file(g, key, path, "/etc");
    long long nodes = 0;
    if (!text)
        return;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *word = shk_trim(line);
        nodes += *word && *word != '#';
    }
    shk_gather_int(g, key, nodes, NULL, path);
    free(text);
}

/* "Name: value" lines; those that decide how GPUs meet peers and NICs. */
static void nvservices_params(struct shk_gather *g)
{
    static const char path[] = "/proc/driver/nvidia/params", key[] = "nvidia.params";
    static const char *const names[] = {"EnableStreamMemOPs",        "RegistryDwords",
                                        "EnableResizableBar",        "DmaRemapPeerMmio",
                                        "GrdmaPciTopoCheckOverride", "ImexChannelCount"};
    char *save, *text = shk_gather_file(g, key, path, "/proc/self");
    if (!text)
        return;
    json_t *params = json_object();
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *colon = strchr(line, ':');
        if (!colon)
            continue;
        *colon = '\0';
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(line, names[i]) == 0)
                json_object_set_new(params, names[i], shk_gather_str(shk_trim(colon + 1)));
    }
    shk_gather_present(g, key, params, NULL, path);
    free(text);
}

static int nvservices_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    nvservices_running(&g, shk_facts_get_text(ctx->known, "host.container"));
    nvservices_version(&g);
    nvservices_imex_nodes(&g);
    nvservices_params(&g);
    return shk_gather_end(&g, err);
}

static const char *const nvservices_provides[] = {
    "nvidia.fabricmanager.running",
    "nvidia.fabricmanager.version",
    "nvidia.imex.running",
    "nvidia.imex.nodes",
    "nvidia.persistenced.running",
    "nvidia.params",
    NULL,
};

const struct shk_probe shk_probe_nvservices = {
    .name = "nvservices",
    .phase = SHK_PHASE_LIBRARY, /* knows whether this is a container */
    .doc = "Fabric Manager, IMEX and parameters of the NVIDIA driver, from processes and files",
    .provides = nvservices_provides,
    .deadline_ms = 5000,
    .run = nvservices_run,
};
