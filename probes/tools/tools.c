/* Results that other tools left on this node: read, and not repeated. */
#include "probes/tools/results.h"

#include "core/text/stamp.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char tools_key[] = "tools.results";

/* Larger files are logs of something else. */
enum { TOOLS_BYTES = 4 << 20, TOOLS_FILES = 64 };

/* Where the tools put what they say; the last one is for what a site keeps of the others (dcgmi
 * diag -j, cxi_healthcheck, rvs). With a suffix: files of that folder. */
static const struct {
    const char *path, *suffix;
} places[] = {
    {"/var/tmp/ibdiagnet2/ibdiagnet2.log", NULL},
    {"/var/lib/node_exporter/textfile_collector", ".prom"},
    {"/var/lib/node_exporter", ".prom"},
    {"/var/lib/prometheus/node-exporter", ".prom"},
    {"/var/lib/shakedown/results", ""},
};

struct tools {
    struct shk_gather *g;
    json_t *list;
    size_t files;
};

static void tools_unread(struct tools *t, const char *path, const char *why)
{
    json_t *entry =
        json_pack("{s:o, s:n, s:n, s:n, s:n, s:n, s:o}", "id", shk_gather_str(path), "tool", "test",
                  "where", "result", "text", "file", shk_gather_str(path));
    shk_gather_member_problem(entry, "result", why);
    json_array_append_new(t->list, entry);
}

static void tools_file(struct tools *t, const char *path, bool log)
{
    struct stat st;
    struct shk_error err = {""};
    char *text = NULL, stamp[SHK_STAMP];
    size_t len = 0, first = json_array_size(t->list);
    int rc = shk_host_stat(t->g->host, path, &st);
    if (rc && rc != -ENOENT)
        tools_unread(t, path, strerror(-rc));
    if (rc)
        return;
    if (!S_ISREG(st.st_mode) || t->files > TOOLS_FILES)
        return;
    if (t->files++ == TOOLS_FILES || st.st_size > TOOLS_BYTES) {
        tools_unread(t, path, st.st_size > TOOLS_BYTES ? "larger than 4 MiB" : "too many files");
        return;
    }
    if (shk_host_read(t->g->host, path, &text, &len, &err)) {
        tools_unread(t, path, err.text);
        return;
    }
    (void)shk_results_read(t->list, text, len);
    /* what is not of these tools is passed over, but not a result that is cut */
    if (json_array_size(t->list) == first && (log || text[strspn(text, " \t\r\n")] == '{'))
        tools_unread(t, path, "cut, or of no tool that is known");
    free(text);
    shk_stamp(stamp, st.st_mtime);
    for (size_t i = first; i < json_array_size(t->list); i++) {
        json_t *entry = json_array_get(t->list, i);
        json_object_set_new(entry, "file", shk_gather_str(path));
        json_object_set_new(entry, "modified", json_string(stamp));
        json_object_set_new(entry, "age_h", json_integer((time(NULL) - st.st_mtime) / 3600));
    }
}

static void tools_folder(struct tools *t, const char *dir, const char *suffix)
{
    char **names = NULL, path[512];
    struct shk_error err = {""};
    int rc = shk_host_list(t->g->host, &names, NULL, &err, "%s", dir);
    if (rc && rc != -ENOENT && rc != -ENOTDIR)
        tools_unread(t, dir, err.text);
    for (char **n = names; n && *n; n++) {
        size_t len = strlen(*n), tail = strlen(suffix);
        snprintf(path, sizeof path, "%s/%.255s", dir, *n);
        if (len > tail && strcmp(*n + len - tail, suffix) == 0)
            tools_file(t, path, false);
    }
    shk_host_list_free(names);
}

static int tools_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct tools t = {.g = &g, .list = json_array()};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!shk_host_exists(ctx->host, "%s", places[i].path))
            continue;
        if (places[i].suffix)
            tools_folder(&t, places[i].path, places[i].suffix);
        else
            tools_file(&t, places[i].path, true);
    }
    if (json_array_size(t.list))
        shk_gather_present(&g, tools_key, json_incref(t.list), NULL, "/var");
    else
        shk_gather_absent(&g, tools_key, "/var", "no tool left results where they are looked for");
    json_decref(t.list);
    return shk_gather_end(&g, err);
}

static const char *const tools_provides[] = {tools_key, NULL};

const struct shk_probe shk_probe_tools = {
    .name = "tools",
    .phase = SHK_PHASE_HOST,
    .doc = "what dcgmi diag, ibdiagnet, cxi_healthcheck, rvs and node_exporter's textfiles came to",
    .provides = tools_provides,
    .deadline_ms = 3000,
    .run = tools_run,
};
