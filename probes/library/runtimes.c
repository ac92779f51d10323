/* Which variables the other libraries read, told from their files alone: NVSHMEM with its modules,
 * libcxi, the runtimes of HSA, HIP and Neuron, MIOpen. */
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"

#include "core/text/strbuf.h"
#include "probes/library/libcopies.h"
#include "probes/library/nccl_strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const rocm_dirs[] = {"/opt/rocm*/lib", "/opt/rocm*/lib64", NULL};
static const char *const neuron_dirs[] = {"/opt/aws/neuron/lib", NULL};
static const char *const cxi_dirs[] = {"/opt/cray/pe/lib64", "/opt/cray/libcxi/*/lib64", NULL};
static const char *const nvshmem_dirs[] = {
    "/usr/lib/*/nvshmem/*",
    "/usr/local/nvshmem*/lib",
    "/opt/nvshmem*/lib",
    "/opt/nvidia/hpc_sdk/*/*/comm_libs/nvshmem/lib",
    "/usr/local/lib/python3*/site-packages/nvidia/nvshmem/lib",
    "/usr/local/lib/python3*/dist-packages/nvidia/nvshmem/lib",
    NULL,
};

static const struct runtimes_kind {
    const char *key;        /* of the facts */
    const char *sonames[3]; /* the first that is found */
    const char *use;        /* variables begin so */
    const char *const *dirs;
    const char *version;    /* text before the version among the strings; NULL: none */
    const char *modules[3]; /* patterns beside the library that read variables as well */
    bool bare;              /* names stand in the file without the prefix */
} runtimes_kinds[] = {
    {.key = "nvshmem",
     .sonames = {"libnvshmem_host.so.3", "libnvshmem_host.so.2"},
     .use = "prefixes.nvshmem",
     .dirs = nvshmem_dirs,
     .version = "NVSHMEM v",
     .modules = {"nvshmem_transport_*.so*", "nvshmem_bootstrap_*.so*"},
     .bare = true},
    {.key = "libcxi", .sonames = {"libcxi.so.1"}, .use = "prefixes.libcxi", .dirs = cxi_dirs},
    {.key = "hsa", .sonames = {"libhsa-runtime64.so.1"}, .use = "prefixes.hsa", .dirs = rocm_dirs},
    {.key = "hip",
     .sonames = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
     .use = "prefixes.hip",
     .dirs = rocm_dirs},
    {.key = "miopen", .sonames = {"libMIOpen.so.1"}, .use = "prefixes.miopen", .dirs = rocm_dirs},
    {.key = "neuron", .sonames = {"libnrt.so.1"}, .use = "prefixes.neuron", .dirs = neuron_dirs},
};

struct runtimes_scan {
    const struct runtimes_kind *kind;
    json_t *names; /* object: name → true */
    char version[32];
    size_t modules;
};

/* NVSHMEM puts its prefix in front of DEBUG at run time (env_defs_internal.h). Single words are
 * mostly those of enumerations, except for these. */
static bool runtimes_is_bare_name(const char *text, size_t len)
{
    static const char *const single[] = {"BOOTSTRAP", "DEBUG", "INFO", "VERSION"};
    if (!isupper((unsigned char)*text) || text[len - 1] == '_' || len > 60 ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != len ||
        strncmp(text, "NVSHMEM", 7) == 0)
        return false;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        if (strcmp(text, single[i]) == 0)
            return true;
    return strchr(text, '_') != NULL;
}

static int runtimes_string(const char *text, size_t len, void *arg)
{
    struct runtimes_scan *scan = arg;
    const char *start = scan->kind->version;
    size_t skip = start ? strlen(start) : 0;
    if (scan->kind->bare && runtimes_is_bare_name(text, len)) {
        char *name = shk_strf("%s%s", shk_variable(scan->kind->use), text);
        if (name)
            json_object_set_new(scan->names, name, json_true());
        free(name);
    }
    if (start && !*scan->version && strncmp(text, start, skip) == 0 &&
        isdigit((unsigned char)text[skip]) && strspn(text + skip, "0123456789.") == len - skip &&
        len - skip < sizeof scan->version)
        memcpy(scan->version, text + skip, len - skip + 1);
    return 0;
}

static void runtimes_scan_elf(struct runtimes_scan *scan, const struct shk_elf *elf)
{
    size_t i;
    json_t *name, *names = shk_elf_env_names(elf, shk_variables(scan->kind->use));
    json_array_foreach(names, i, name)
        json_object_set_new(scan->names, json_string_value(name), json_true());
    json_decref(names);
    if (scan->kind->version || scan->kind->bare)
        shk_elf_each_string(elf, 4, runtimes_string, scan);
}

struct runtimes_module {
    struct runtimes_scan *scan;
    const struct shk_host *host;
};

static int runtimes_module(const char *path, void *arg)
{
    struct runtimes_module *m = arg;
    struct shk_elf *elf = NULL;
    if (shk_elf_open(&elf, m->host, path, NULL) == 0) {
        runtimes_scan_elf(m->scan, elf);
        m->scan->modules++;
    }
    shk_elf_close(elf);
    return 0;
}

static void runtimes_modules(struct runtimes_scan *scan, const struct shk_host *host,
                             const char *path)
{
    struct runtimes_module m = {.scan = scan, .host = host};
    int dir = (int)(strrchr(path, '/') - path);
    for (const char *const *p = scan->kind->modules; p < scan->kind->modules + 3 && *p; p++) {
        char *pattern = shk_strf("%.*s/%s", dir, path, *p);
        if (pattern)
            shk_host_glob(host, pattern, runtimes_module, &m);
        free(pattern);
    }
}

static const char *runtimes_key(char buf[64], const struct runtimes_kind *kind, const char *name)
{
    snprintf(buf, 64, "%s.%s", kind->key, name);
    return buf;
}

static json_t *runtimes_sorted(const json_t *names)
{
    char *text = json_dumps(names, JSON_SORT_KEYS | JSON_COMPACT);
    json_t *sorted = text ? json_loads(text, 0, NULL) : NULL, *list = json_array(), *value;
    const char *name;
    json_object_foreach(sorted, name, value) json_array_append_new(list, json_string(name));
    json_decref(sorted);
    free(text);
    return list;
}

/* The version in the name of the file that the soname leads to: libamdhip64.so.6.4.43484. A number
 * without a dot is that of the interface. */
static void runtimes_named(struct runtimes_scan *scan, const struct shk_host *host,
                           const char *path)
{
    enum { LINKS = 4 }; /* soname, the file itself, two for alternatives */
    char *at = strdup(path), *target = NULL;
    for (int i = 0; at && i < LINKS && shk_host_readlink(host, &target, NULL, "%s", at) == 0; i++) {
        const char *slash = strrchr(at, '/');
        char *next =
            *target == '/' ? strdup(target) : shk_strf("%.*s/%s", (int)(slash - at), at, target);
        free(at);
        free(target);
        at = next;
    }
    const char *tail = at ? strstr(at, ".so.") : NULL;
    tail = tail ? tail + strlen(".so.") : "";
    size_t len = strlen(tail);
    if (strchr(tail, '.') && strspn(tail, "0123456789.") == len && len < sizeof scan->version)
        memcpy(scan->version, tail, len + 1);
    free(at);
}

static void runtimes_found(struct shk_gather *g, const struct runtimes_kind *kind,
                           const struct shk_libcopy *copy)
{
    struct runtimes_scan scan = {.kind = kind, .names = json_object()};
    char key[64];
    shk_gather_present(g, runtimes_key(key, kind, "path"),
                       shk_json_text(copy->path, strlen(copy->path)), NULL, copy->path);
    if (copy->elf)
        runtimes_scan_elf(&scan, copy->elf);
    if (copy->elf)
        runtimes_modules(&scan, g->host, copy->path);
    runtimes_key(key, kind, "env_names");
    if (!copy->elf)
        shk_gather_failed(g, key, copy->path, "%s", copy->problem ? copy->problem : "not read");
    else if (!json_object_size(scan.names) || (kind->modules[0] && !scan.modules))
        shk_gather_failed(g, key, copy->path,
                          kind->modules[0] ? "its modules are not beside it"
                                           : "no names among the strings of the library");
    else
        shk_gather_present(g, key, runtimes_sorted(scan.names), NULL, copy->path);
    runtimes_key(key, kind, "version");
    if (!*scan.version && !kind->version)
        runtimes_named(&scan, g->host, copy->path);
    if (*scan.version)
        shk_gather_text(g, key, scan.version, copy->path);
    else
        shk_gather_failed(g, key, copy->path, "the file does not tell its version");
    json_decref(scan.names);
}

static void runtimes_missing(struct shk_gather *g, const struct runtimes_kind *kind,
                             const struct shk_ldsearch *search)
{
    static const char *const keys[] = {"path", "env_names", "version"};
    bool complete = shk_ldsearch_complete(search);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[64];
        runtimes_key(key, kind, keys[i]);
        if (complete)
            shk_gather_absent(g, key, kind->sonames[0], "not found where the loader looks");
        else
            shk_gather_failed(g, key, kind->sonames[0], "the capture holds no such library");
    }
}

static int runtimes_one(struct shk_gather *g, const struct runtimes_kind *kind,
                        const struct shk_ldsearch *search, struct shk_error *err)
{
    for (size_t i = 0; i < 3 && kind->sonames[i]; i++) {
        struct shk_libcopies copies = {0};
        int rc = shk_libcopies_find(&copies, search, kind->sonames[i], kind->dirs, err);
        const struct shk_libcopy *copy = rc ? NULL : shk_libcopies_chosen(&copies);
        if (!copy && !rc && copies.count)
            copy = &copies.list[0];
        if (copy)
            runtimes_found(g, kind, copy);
        shk_libcopies_free(&copies);
        if (rc || copy)
            return rc;
    }
    runtimes_missing(g, kind, search);
    return 0;
}

static int runtimes_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_ldsearch *search = NULL;
    int rc = shk_ldsearch_create(&search, ctx->host, err);
    for (size_t i = 0; i < sizeof runtimes_kinds / sizeof *runtimes_kinds && !rc; i++)
        rc = runtimes_one(&g, &runtimes_kinds[i], search, err);
    shk_ldsearch_destroy(search);
    int written = shk_gather_end(&g, err);
    return rc ? rc : written;
}

static const char *const runtimes_provides[] = {
    "nvshmem.path", "nvshmem.env_names", "nvshmem.version",
    "libcxi.path",  "libcxi.env_names",  "libcxi.version",
    "hsa.path",     "hsa.env_names",     "hsa.version",
    "hip.path",     "hip.env_names",     "hip.version",
    "miopen.path",  "miopen.env_names",  "miopen.version",
    "neuron.path",  "neuron.env_names",  "neuron.version",
    NULL,
};

const struct shk_probe shk_probe_runtimes = {
    .name = "runtimes",
    .phase = SHK_PHASE_LIBRARY,
    .doc = "NVSHMEM, libcxi, HSA, HIP, MIOpen and Neuron libraries: variables they read",
    .provides = runtimes_provides,
    .deadline_ms = 5000,
    .apart = true,
    .files = true,
    .run = runtimes_run,
};
