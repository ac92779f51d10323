#include "core/run/dynlib.h"

#include "core/host/trust.h"
#include "core/run/isolate.h"
#include "core/text/strbuf.h"
#include "core/text/uses.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void shk_dynlib_search_text(char *buf, size_t size)
{
    const char *variable = shk_variable("loader-path"), *path = getenv(variable);
    bool set = path && *path;
    snprintf(buf, size, "%s%s%s%sthe loader's cache and default directories", set ? variable : "",
             set ? "=" : "", set ? path : "", set ? ", then " : "");
}

static bool dynlib_guarded;

void shk_dynlib_guard(bool on)
{
    dynlib_guarded = on;
}

/* In a user namespace (rootless containers) root is an ordinary user, and the host's root is
 * somebody without a name. */
static bool dynlib_is_host_root(void)
{
    unsigned inside = 1, outside = 1, count = 0;
    FILE *f = geteuid() == 0 ? fopen("/proc/self/uid_map", "re") : NULL;
    if (!f)
        return geteuid() == 0;
    bool read = fscanf(f, "%u %u %u", &inside, &outside, &count) == 3;
    fclose(f);
    return !read || (inside == 0 && outside == 0 && count == UINT_MAX);
}

static const char dynlib_refusal[] = "root loads no library that others can change";

/* Lists of the environment that lead to further code. */
static int dynlib_trust(const struct shk_use *use, struct shk_error *err)
{
    struct shk_error why;
    for (const char *const *v = use->variables; *v; v++) {
        const char *value = getenv(*v);
        if (!value || (use->bare && !strchr(value, '/')))
            continue;
        if (shk_trust_list(value, use->separators ? use->separators : "", &why) != 0)
            return shk_error_set(err, EPERM, "%s: %s; %s", *v, why.text, dynlib_refusal);
    }
    return 0;
}

static int dynlib_trust_lists(const struct shk_use *(*next)(const char *prefix, size_t *at),
                              const char *base, struct shk_error *err)
{
    size_t at = 0;
    for (const struct shk_use *use; (use = next("code-path.", &at));)
        if ((!use->library || strncmp(base, use->library, strlen(use->library)) == 0) &&
            dynlib_trust(use, err) != 0)
            return -EPERM;
    return 0;
}

int shk_dynlib_permitted(const char *name, struct shk_error *err)
{
    struct shk_error why;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    if (!dynlib_guarded || !dynlib_is_host_root())
        return 0;
    if (slash && shk_trust_path(name, &why) != 0)
        return shk_error_set(err, EPERM, "%s: %s; %s", name, why.text, dynlib_refusal);
    /* a configuration, which a user may have named, can add lists but take none away */
    int rc = dynlib_trust_lists(shk_use_next_own, base, err);
    return rc ? rc : dynlib_trust_lists(shk_use_next, base, err);
}

/* glibc says so, and only so, when the file itself was not found; any other text means that a file
 * was found but does not load, or that one of its own dependencies is missing. */
static bool dynlib_not_found(const char *name, const char *reason)
{
    size_t len = strlen(name);
    return strncmp(reason, name, len) == 0 &&
           strstr(reason + len, ": cannot open shared object file: No such file") == reason + len;
}

void *shk_dynlib_load(const char *name)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT};
    struct sigaction were[sizeof fatal / sizeof fatal[0]];
    size_t n = sizeof fatal / sizeof fatal[0];
    for (size_t i = 0; i < n; i++)
        sigaction(fatal[i], NULL, &were[i]);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < n; i++)
        sigaction(fatal[i], &were[i], NULL);
    return handle;
}

static void *dynlib_try(const struct shk_library *desc, struct shk_error *err, int *rc_p)
{
    const char *forced = desc->env_override ? getenv(desc->env_override) : NULL;
    const char *const only[] = {forced, NULL};
    const char *const *names = forced && *forced ? only : desc->names;
    char where[256];
    shk_dynlib_search_text(where, sizeof where);
    const char *first = names[0];
    for (; *names; names++) {
        *rc_p = shk_dynlib_permitted(*names, err);
        if (*rc_p)
            return NULL;
        shk_crumb_library(*names);
        shk_crumb_call("dlopen");
        void *handle = shk_dynlib_load(*names);
        if (handle)
            return handle;
        const char *reason = dlerror();
        if (!reason)
            reason = "no reason given";
        if (!dynlib_not_found(*names, reason)) {
            *rc_p = shk_error_set(err, ENOEXEC, "%s does not load: %s", *names, reason);
            return NULL;
        }
    }
    *rc_p = shk_error_set(err, ENOENT, "%s: not found in %s", first, where);
    return NULL;
}

static int dynlib_resolve(struct shk_dynlib *lib, const struct shk_library *desc, void *ops,
                          struct shk_error *err)
{
    for (const struct shk_symbol *s = desc->symbols; s && s->name; s++) {
        void *address = dlsym(lib->handle, s->name);
        if (!address && !s->optional)
            return shk_error_set(err, ENOSYS, "%s: has no symbol %s%s%s", lib->path, s->name,
                                 s->since ? ", which came with version " : "",
                                 s->since ? s->since : "");
        memcpy((char *)ops + s->offset, &address, sizeof address);
    }
    return 0;
}

int shk_dynlib_open(struct shk_dynlib *lib, const struct shk_library *desc, void *ops,
                    struct shk_error *err)
{
    struct shk_dynlib opened = {0};
    int rc;
    opened.handle = dynlib_try(desc, err, &rc);
    if (!opened.handle)
        return rc;
    struct link_map *map = NULL;
    if (dlinfo(opened.handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name)
        snprintf(opened.path, sizeof opened.path, "%s", map->l_name);
    rc = dynlib_resolve(&opened, desc, ops, err);
    if (rc) {
        dlclose(opened.handle);
        return rc;
    }
    shk_crumb_library(opened.path);
    *lib = opened;
    return 0;
}

void shk_dynlib_close(struct shk_dynlib *lib, bool really)
{
    if (lib->handle && really)
        dlclose(lib->handle);
    *lib = (struct shk_dynlib){0};
}
