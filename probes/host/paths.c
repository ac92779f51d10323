/* Paths that variables name: whether they exist, and on which file system. A probe of its own,
 * because looking at a dead network mount can hang. */
#include "core/redact/redact.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *paths_kind(mode_t mode)
{
    return S_ISDIR(mode) ? "dir" : S_ISREG(mode) ? "file" : "other";
}

/* exists: true, false, or null with a reason when that cannot be told. */
static void paths_look(const struct shk_host *host, json_t *object, const char *path)
{
    struct stat st;
    int rc = shk_host_stat(host, path, &st);
    bool gone = rc == -ENOENT || rc == -ENOTDIR;
    json_object_set_new(object, "exists", rc && !gone ? json_null() : json_boolean(rc == 0));
    json_object_set_new(object, "kind", rc ? json_null() : json_string(paths_kind(st.st_mode)));
    if (rc && !gone)
        shk_gather_member_problem(object, "exists", strerror(-rc));
}

/* File system of the path, or of the nearest directory above that exists. */
static void paths_fs(const struct shk_host *host, json_t *object, const char *path)
{
    struct shk_error err;
    json_t *fs = NULL;
    int rc = shk_hostcall_fs(host, path, &fs, &err);
    json_t *type = rc ? NULL : json_object_get(fs, "type");
    json_object_set_new(object, "type", type ? json_incref(type) : json_null());
    if (rc)
        shk_gather_member_problem(object, "type", err.text);
    json_decref(fs);
}

/* Search paths: entries that are empty or relative mean the working directory, whatever that is. */
static json_t *paths_entries(const struct shk_host *host, const char *value)
{
    json_t *entries = json_array();
    for (const char *p = value; p; p = strchr(p, ':') ? strchr(p, ':') + 1 : NULL) {
        char *path = strndup(p, strcspn(p, ":"));
        json_t *entry = json_object();
        json_object_set_new(entry, "path", shk_gather_str(path));
        if (path && *path == '/')
            paths_look(host, entry, path);
        else
            json_object_set_new(entry, "exists", json_null());
        json_array_append_new(entries, entry);
        free(path);
    }
    return entries;
}

static bool paths_is_list(const char *name, const char *value)
{
    for (const char *const *v = shk_variables("path-list"); *v; v++) {
        size_t n = strlen(*v), len = strlen(name);
        if (len >= n && strcmp(name + len - n, *v) == 0)
            return true;
    }
    return *value == '/' && strstr(value, ":/");
}

static void paths_variable(struct shk_gather *g, const char *name, const char *value)
{
    char key[256];
    const char *why;
    struct shk_name_match match;
    bool list = value && paths_is_list(name, value);
    if (!value || (*value != '/' && !list) || !*value || !shk_name_ok(name) ||
        !shk_name_classify(g->names, name, &match) || shk_redact_value(name, value, &why) ||
        !shk_gather_key(key, sizeof key, "path.", name))
        return;
    json_t *object = json_object();
    if (list) {
        json_object_set_new(object, "entries", paths_entries(g->host, value));
    } else {
        paths_look(g->host, object, value);
        paths_fs(g->host, object, value);
    }
    shk_gather_present(g, key, object, NULL, "environment");
}

static int paths_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why;
    json_t *all = NULL, *value;
    const char *name;
    int rc = shk_hostcall(ctx->host, SHK_CALL_ENVIRON, &all, &why);
    json_object_foreach(all, name, value) paths_variable(&g, name, json_string_value(value));
    json_decref(all);
    return rc ? shk_error_set(err, -rc, "%s", why.text) : shk_gather_end(&g, err);
}

static const char *const paths_provides[] = {"path.", NULL};

const struct shk_probe shk_probe_paths = {
    .name = "paths",
    .phase = SHK_PHASE_HOST,
    .doc = "paths that variables name: whether they exist, and on which file system",
    .provides = paths_provides,
    .deadline_ms = 3000,
    .apart = true,
    .files = true,
    .run = paths_run,
};
