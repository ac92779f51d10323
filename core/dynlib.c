#include "core/dynlib.h"

#include "core/isolate.h"
#include "core/strbuf.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shk_dynlib_search_text(char *buf, size_t size)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    snprintf(buf, size, "%s%s%sthe loader's cache and default directories",
             path && *path ? "LD_LIBRARY_PATH=" : "", path && *path ? path : "",
             path && *path ? ", then " : "");
}

bool shk_dynlib_path_of(const void *addr, char *buf, size_t size)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(addr, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name)
        return false;
    const char *name = *map->l_name ? map->l_name : info.dli_fname;
    if (!name || !*name)
        return false;
    snprintf(buf, size, "%s", name);
    return true;
}

/* glibc says so, and only so, when the file itself was not found; any other text means that a file
 * was found but does not load, or that one of its own dependencies is missing. */
static bool dynlib_not_found(const char *name, const char *reason)
{
    size_t len = strlen(name);
    return strncmp(reason, name, len) == 0 &&
           strstr(reason + len, ": cannot open shared object file: No such file") == reason + len;
}

static void *dynlib_try(const struct shk_library *desc, struct shk_error *err, int *rc_p)
{
    const char *forced = desc->env_override ? getenv(desc->env_override) : NULL;
    const char *const only[] = {forced, NULL};
    const char *const *names = forced && *forced ? only : desc->names;
    char where[256];
    shk_dynlib_search_text(where, sizeof where);
    *rc_p = shk_error_set(err, ENOENT, "%s: not found in %s", names[0], where);
    for (; *names; names++) {
        shk_crumb_library(*names);
        shk_crumb_call("dlopen");
        void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
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
