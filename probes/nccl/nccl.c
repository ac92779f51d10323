/* The NCCL and RCCL libraries on this host, told from their files alone: nothing is loaded. */
#include "probes/base/registry.h"

#include "core/host/hostcall.h"
#include "core/text/strbuf.h"
#include "probes/library/elfdeps.h"
#include "probes/library/libcopies.h"
#include "probes/library/nccl_strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where installers put the library beside the loader's own directories: toolkit trees, HPC SDK and
 * ROCm. Python environments are added from the environment. */
static const char *const nccl_dirs[] = {
    "/usr/local/cuda*/lib64",
    "/usr/local/cuda*/lib",
    "/usr/local/cuda*/targets/*/lib",
    "/usr/local/nccl*/lib",
    "/opt/nccl*/lib",
    "/opt/nccl*/build/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nccl/lib",
    NULL,
};
static const char *const rccl_dirs[] = {
    "/opt/rocm*/lib", "/opt/rocm*/lib64", "/opt/rocm*/rccl/lib", "/opt/rccl*/lib", NULL,
};

struct nccl_kind {
    const char *prefix; /* of the fact keys */
    const char *soname;
    const char *const *dirs;
};

static const struct nccl_kind nccl_kinds[] = {
    {.prefix = "nccl", .soname = "libnccl.so.2", .dirs = nccl_dirs},
    {.prefix = "rccl", .soname = "librccl.so.1", .dirs = rccl_dirs},
};

enum { NCCL_MAX_DIRS = 128 };

struct nccl_dirs {
    char *list[NCCL_MAX_DIRS + 1]; /* NULL-terminated */
    size_t count;
    bool nomem;
};

static void nccl_dirs_add(struct nccl_dirs *dirs, char *dir)
{
    if (dir && dirs->count < NCCL_MAX_DIRS)
        dirs->list[dirs->count++] = dir;
    else
        free(dir);
    dirs->nomem |= !dir;
}

/* Site packages of a Python environment: the wheels bring their own copy, frameworks another. */
static void nccl_dirs_python(struct nccl_dirs *dirs, const char *site)
{
    static const char *const below[] = {"nvidia/nccl/lib", "torch/lib", "_rocm_sdk_core/lib"};
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        nccl_dirs_add(dirs, shk_strf("%s/%s", site, below[i]));
}

static void nccl_dirs_from_env(struct nccl_dirs *dirs, const struct shk_host *host)
{
    static const char *const prefixes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < 2; i++) {
        const char *prefix = shk_host_getenv(host, prefixes[i]);
        if (!prefix || prefix[0] != '/')
            continue;
        char *site = shk_strf("%s/lib/python3*/site-packages", prefix);
        nccl_dirs_add(dirs, shk_strf("%s/lib", prefix));
        if (site)
            nccl_dirs_python(dirs, site);
        dirs->nomem |= !site;
        free(site);
    }
    const char *path = shk_host_getenv(host, "PYTHONPATH");
    for (const char *p = path; p && *p; p += strcspn(p, ":"), p += *p == ':') {
        char *site = *p == '/' ? shk_strf("%.*s", (int)strcspn(p, ":"), p) : NULL;
        if (site)
            nccl_dirs_python(dirs, site);
        free(site);
    }
}

/* The copy of an active Python environment: a framework there finds it by its own RPATH, whatever
 * the loader gives to others. */
static bool nccl_is_python(const struct shk_host *host, const char *path)
{
    static const char *const prefixes[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const char *prefix = shk_host_getenv(host, prefixes[i]);
        size_t n = prefix ? strlen(prefix) : 0;
        if (n > 1 && strncmp(path, prefix, n) == 0 && strstr(path + n, "/site-packages/"))
            return true;
    }
    return false;
}

/* What the loader would miss when it takes this copy, as text; NULL: nothing. A capture does not
 * hold the libraries that are needed. */
static json_t *nccl_copy_lacks(const struct shk_libcopy *copy, const struct shk_ldsearch *search)
{
    json_t *needed = NULL, *problems = NULL, *text = NULL;
    if (copy->loader && copy->elf && shk_ldsearch_complete(search) &&
        shk_elfdeps_walk(search, copy->elf, copy->path, NULL, &needed, &problems, NULL) == 0)
        text = json_incref(json_object_get(json_array_get(problems, 0), "text"));
    json_decref(needed);
    json_decref(problems);
    return text;
}

static json_t *nccl_copy_json(const struct shk_libcopy *copy, const struct shk_host *host,
                              const struct shk_ldsearch *search)
{
    struct shk_nccl_strings strings = {0};
    json_t *row =
        json_pack("{s:o, s:s, s:b}", "path", shk_json_text(copy->path, strlen(copy->path)), "via",
                  copy->via, "loader", copy->loader);
    if (copy->elf && row && shk_nccl_strings_read(&strings, copy->elf, NULL) == 0) {
        if (*strings.version)
            json_object_set_new(row, "version", json_string(strings.version));
        if (*strings.built_for)
            json_object_set_new(row, "built_for", json_string(strings.built_for));
        if (json_array_size(strings.env_names) && nccl_is_python(host, copy->path) && !copy->loader)
            json_object_set(row, "env_names", strings.env_names);
    } else if (copy->problem) {
        json_object_set_new(row, "error", shk_json_text(copy->problem, strlen(copy->problem)));
    }
    json_t *lacks = nccl_copy_lacks(copy, search);
    if (lacks)
        json_object_set_new(row, "lacks", lacks);
    shk_nccl_strings_free(&strings);
    return row;
}

struct nccl_writer {
    struct shk_facts *facts;
    const char *prefix, *source;
    int rc; /* first failure of a write */
};

static const char *nccl_key(char buf[64], const struct nccl_writer *w, const char *name)
{
    snprintf(buf, 64, "%s.%s", w->prefix, name);
    return buf;
}

static void nccl_write(struct nccl_writer *w, const char *name, json_t *value)
{
    char key[64];
    int rc = shk_facts_present(w->facts, nccl_key(key, w, name), value, NULL, w->source);
    if (rc && !w->rc)
        w->rc = rc;
}

static void nccl_fail(struct nccl_writer *w, const char *name, const char *reason)
{
    char key[64];
    int rc = shk_facts_failed(w->facts, nccl_key(key, w, name), w->source, "%s", reason);
    if (rc && !w->rc)
        w->rc = rc;
}

static void nccl_absent(struct nccl_writer *w, const char *name, const char *reason)
{
    char key[64];
    int rc = shk_facts_absent(w->facts, nccl_key(key, w, name), w->source, "%s", reason);
    if (rc && !w->rc)
        w->rc = rc;
}

/* ABI versions: a library without any such string tells nothing, which is not "accepts none". */
static void nccl_write_abis(struct nccl_writer *w, const struct shk_nccl_strings *strings)
{
    bool any = false;
    for (int k = 0; k < SHK_ABI_COUNT; k++)
        any |= strings->accepts.set[k] != 0;
    for (int k = 0; k < SHK_ABI_COUNT; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s_abi", shk_nccl_abi_name((enum shk_nccl_abi)k));
        if (any)
            nccl_write(w, name, shk_nccl_abis_json(strings->accepts.set[k]));
        else
            nccl_fail(w, name, "no plugin symbol names among the strings of the library");
    }
}

static void nccl_write_strings(struct nccl_writer *w, struct shk_nccl_strings *strings)
{
    if (*strings->version)
        nccl_write(w, "version", json_string(strings->version));
    else
        nccl_fail(w, "version", "no version text among the strings of the library");
    if (*strings->built_for)
        nccl_write(w, "built_for", json_string(strings->built_for));
    nccl_write_abis(w, strings);
    nccl_write(w, "env_names", json_incref(strings->env_names));
    nccl_write(w, "plugin_names", json_incref(strings->plugin_names));
    nccl_write(w, "static_plugin", json_boolean(strings->static_plugin));
}

static const char *const nccl_chosen_keys[] = {"version", "env_names", "net_abi"};

static int nccl_write_chosen(struct nccl_writer *w, const struct shk_libcopy *chosen,
                             struct shk_error *err)
{
    struct shk_nccl_strings strings = {0};
    w->source = chosen->path;
    nccl_write(w, "path", shk_json_text(chosen->path, strlen(chosen->path)));
    nccl_write(w, "via", json_string(chosen->via));
    nccl_write(w, "loader", json_boolean(chosen->loader));
    int rc = chosen->elf ? shk_nccl_strings_read(&strings, chosen->elf, err) : 0;
    if (!chosen->elf) {
        for (size_t i = 0; i < sizeof nccl_chosen_keys / sizeof nccl_chosen_keys[0]; i++)
            nccl_fail(w, nccl_chosen_keys[i], chosen->problem);
    } else if (!rc) {
        nccl_write_strings(w, &strings);
    }
    shk_nccl_strings_free(&strings);
    return rc;
}

static void nccl_write_missing(struct nccl_writer *w, bool complete, const char *places)
{
    char *reason = shk_strf("not found in %s", places);
    for (size_t i = 0; i < sizeof nccl_chosen_keys / sizeof nccl_chosen_keys[0]; i++) {
        if (complete)
            nccl_absent(w, nccl_chosen_keys[i], "library not found");
        else
            nccl_fail(w, nccl_chosen_keys[i], "the capture holds no such library");
    }
    if (complete)
        nccl_absent(w, "path", reason ? reason : places);
    else
        nccl_fail(w, "path", "the capture holds no such library");
    free(reason);
}

static int nccl_one(struct shk_probe_context *ctx, const struct nccl_kind *kind,
                    const struct shk_ldsearch *search, struct shk_error *err)
{
    struct nccl_dirs dirs = {.nomem = false};
    struct shk_libcopies copies = {0};
    struct nccl_writer w = {.facts = ctx->facts, .prefix = kind->prefix, .source = kind->soname};
    char *places = shk_ldsearch_places(search);
    int rc;
    for (const char *const *d = kind->dirs; *d; d++)
        nccl_dirs_add(&dirs, strdup(*d));
    nccl_dirs_from_env(&dirs, ctx->host);
    if (dirs.nomem || !places) {
        rc = shk_error_sys(err, ENOMEM, "%s", kind->soname);
        goto out;
    }
    rc = shk_libcopies_find(&copies, search, kind->soname, (const char *const *)dirs.list, err);
    if (rc)
        goto out;
    json_t *rows = json_array();
    for (size_t i = 0; i < copies.count; i++)
        w.rc |= json_array_append_new(rows, nccl_copy_json(&copies.list[i], ctx->host, search))
                    ? -ENOMEM
                    : 0;
    if (copies.count || shk_ldsearch_complete(search)) {
        nccl_write(&w, "copies", rows);
    } else {
        json_decref(rows);
        nccl_fail(&w, "copies", "the capture holds no such library");
    }
    const struct shk_libcopy *chosen = shk_libcopies_chosen(&copies);
    if (chosen) {
        rc = nccl_write_chosen(&w, chosen, err);
    } else {
        nccl_write_missing(&w, shk_ldsearch_complete(search), places);
    }
    if (!rc && w.rc)
        rc = shk_error_sys(err, -w.rc, "facts of %s", kind->soname);
out:
    shk_libcopies_free(&copies);
    for (size_t i = 0; i < dirs.count; i++)
        free(dirs.list[i]);
    free(places);
    return rc;
}

static int nccl_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_ldsearch *search = NULL;
    int rc = shk_ldsearch_create(&search, ctx->host, err);
    for (size_t i = 0; i < sizeof nccl_kinds / sizeof nccl_kinds[0] && !rc; i++)
        rc = nccl_one(ctx, &nccl_kinds[i], search, err);
    shk_ldsearch_destroy(search);
    return rc;
}

static const char *const nccl_provides[] = {
    "nccl.path",    "nccl.version", "nccl.copies",  "nccl.env_names", "nccl.net_abi",
    "nccl.",        "rccl.path",    "rccl.version", "rccl.copies",    "rccl.env_names",
    "rccl.net_abi", "rccl.",        NULL,
};

const struct shk_probe shk_probe_nccl = {
    .name = "nccl",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "NCCL and RCCL libraries: version, plugin ABI versions, variables they read",
    .provides = nccl_provides,
    .deadline_ms = 5000,
    .apart = true,
    .files = true,
    .run = nccl_run,
};
