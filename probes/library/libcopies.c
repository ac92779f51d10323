#include "probes/library/libcopies.h"

#include "core/text/strbuf.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node with more copies of one library than this has no use for a longer list. */
enum { LIBCOPIES_MAX = 64 };

struct gather {
    const struct shk_ldsearch *search;
    struct shk_libcopies *out;
    dev_t dev[LIBCOPIES_MAX];
    ino_t ino[LIBCOPIES_MAX];
    bool loader_done;
    bool nomem;
};

static int glob_walk(const struct shk_host *host, const char *done, const char *rest,
                     int (*fn)(const char *path, void *arg), void *arg);

/* Expands one component with a '*' against a directory. */
static int glob_component(const struct shk_host *host, const char *dir, const char *part,
                          const char *rest, int (*fn)(const char *path, void *arg), void *arg)
{
    char **names = NULL;
    int rc = 0;
    if (shk_host_list(host, &names, NULL, NULL, "%s", *dir ? dir : "/") != 0)
        return 0;
    for (char **name = names; *name && !rc; name++) {
        if (fnmatch(part, *name, FNM_PERIOD) != 0)
            continue;
        char *path = shk_strf("%s/%s", dir, *name);
        rc = path ? glob_walk(host, path, rest, fn, arg) : 0;
        free(path);
    }
    shk_host_list_free(names);
    return rc;
}

static int glob_walk(const struct shk_host *host, const char *done, const char *rest,
                     int (*fn)(const char *path, void *arg), void *arg)
{
    while (*rest == '/')
        rest++;
    if (!*rest)
        return shk_host_exists(host, "%s", done) ? fn(done, arg) : 0;
    size_t len = strcspn(rest, "/");
    char *part = shk_strf("%.*s", (int)len, rest);
    int rc = 0;
    if (part && strchr(part, '*')) {
        rc = glob_component(host, done, part, rest + len, fn, arg);
    } else if (part) {
        char *path = shk_strf("%s/%s", done, part);
        rc = path ? glob_walk(host, path, rest + len, fn, arg) : 0;
        free(path);
    }
    free(part);
    return rc;
}

int shk_host_glob(const struct shk_host *host, const char *pattern,
                  int (*fn)(const char *path, void *arg), void *arg)
{
    return glob_walk(host, "", pattern, fn, arg);
}

static bool libcopies_seen(struct gather *g, const char *path)
{
    struct stat st;
    if (shk_host_stat(shk_ldsearch_host(g->search), path, &st) != 0 || !S_ISREG(st.st_mode))
        return true;
    for (size_t i = 0; i < g->out->count; i++) {
        if (g->dev[i] == st.st_dev && g->ino[i] == st.st_ino)
            return true;
    }
    g->dev[g->out->count] = st.st_dev;
    g->ino[g->out->count] = st.st_ino;
    return false;
}

static int libcopies_add(struct gather *g, const char *path, const char *via)
{
    struct shk_error err = {""};
    if (g->out->count == LIBCOPIES_MAX)
        return 1;
    if (libcopies_seen(g, path))
        return 0;
    struct shk_libcopy *copy = &g->out->list[g->out->count];
    *copy = (struct shk_libcopy){.path = strdup(path), .via = via};
    if (shk_elf_open(&copy->elf, shk_ldsearch_host(g->search), path, &err) != 0)
        copy->problem = strdup(err.text);
    g->out->count++;
    g->nomem |= !copy->path || (!copy->elf && !copy->problem);
    return g->nomem;
}

static int libcopies_hit(const struct shk_ldsearch_hit *hit, void *arg)
{
    struct gather *g = arg;
    int rc = libcopies_add(g, hit->path, hit->via);
    if (!g->loader_done && g->out->count)
        g->out->list[0].loader = true;
    g->loader_done = true;
    return rc;
}

static int libcopies_dir(const char *path, void *arg)
{
    return libcopies_add(arg, path, "directory");
}

int shk_libcopies_find(struct shk_libcopies *copies_p, const struct shk_ldsearch *search,
                       const char *soname, const char *const *dirs, struct shk_error *err)
{
    struct shk_libcopies out = {.list = calloc(LIBCOPIES_MAX, sizeof *out.list)};
    struct gather g = {.search = search, .out = &out, .nomem = !out.list};
    if (!g.nomem)
        shk_ldsearch_each(search, soname, libcopies_hit, &g);
    for (; dirs && *dirs && !g.nomem; dirs++) {
        char *pattern = shk_strf("%s/%s", *dirs, soname);
        g.nomem = !pattern;
        if (pattern)
            shk_host_glob(shk_ldsearch_host(search), pattern, libcopies_dir, &g);
        free(pattern);
    }
    if (g.nomem) {
        shk_libcopies_free(&out);
        return shk_error_sys(err, ENOMEM, "%s", soname);
    }
    *copies_p = out;
    return 0;
}

void shk_libcopies_free(struct shk_libcopies *copies)
{
    for (size_t i = 0; copies && i < copies->count; i++) {
        shk_elf_close(copies->list[i].elf);
        free(copies->list[i].path);
        free(copies->list[i].problem);
    }
    if (copies) {
        free(copies->list);
        *copies = (struct shk_libcopies){0};
    }
}

const struct shk_libcopy *shk_libcopies_chosen(const struct shk_libcopies *copies)
{
    for (size_t i = 0; i < copies->count; i++) {
        if (copies->list[i].loader)
            return &copies->list[i];
    }
    for (size_t i = 0; i < copies->count; i++) {
        if (copies->list[i].elf)
            return &copies->list[i];
    }
    return NULL;
}
