#include "probes/fabric/libfabric_dl.h"

#include "core/facts/facts.h"
#include "core/text/strbuf.h"
#include "probes/library/elfdeps.h"

#include <stdlib.h>
#include <string.h>

struct dl {
    const struct shk_ldsearch *search;
    const struct shk_libcopy *chosen;
    json_t *rows;
};

static int dl_entry(const struct shk_elf_symbol *symbol, void *arg)
{
    bool *found = arg;
    *found = *found || strcmp(symbol->name, "fi_prov_ini") == 0;
    return *found;
}

/* Why libfabric cannot use the file; NULL when it can. */
static json_t *dl_problem(const struct dl *dl, const char *path)
{
    struct shk_elf *elf = NULL;
    struct shk_error why = {""};
    json_t *needed = NULL, *problems = NULL, *text = NULL;
    struct shk_ldsearch_asker asker = {.elf = NULL};
    bool entry = false;
    if (dl->chosen && dl->chosen->elf)
        asker = (struct shk_ldsearch_asker){.elf = dl->chosen->elf, .path = dl->chosen->path};
    if (shk_elf_open(&elf, shk_ldsearch_host(dl->search), path, &why) != 0)
        return shk_json_text(why.text, strlen(why.text));
    shk_elf_each_symbol(elf, dl_entry, &entry);
    if (!entry)
        text = json_string("exports no fi_prov_ini: no provider of libfabric");
    else if (shk_elfdeps_walk(dl->search, elf, path, asker.elf ? &asker : NULL, &needed, &problems,
                              NULL) == 0)
        text = json_incref(json_object_get(json_array_get(problems, 0), "text"));
    json_decref(needed);
    json_decref(problems);
    shk_elf_close(elf);
    return text;
}

static int dl_file(const char *path, void *arg)
{
    static const char head[] = "lib", tail[] = "-fi.so";
    struct dl *dl = arg;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t n = strlen(base), i;
    json_t *row;
    if (n < sizeof head + sizeof tail - 1 || strncmp(base, head, 3) != 0 ||
        strcmp(base + n - 6, tail) != 0)
        return 0;
    json_array_foreach(dl->rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "path")), path) == 0)
            return 0;
    }
    json_t *problem = dl_problem(dl, path);
    json_array_append_new(dl->rows,
                          json_pack("{s:o, s:o, s:o}", "name", shk_json_text(base + 3, n - 9),
                                    "path", shk_json_text(path, strlen(path)), "problem",
                                    problem ? problem : json_null()));
    return 0;
}

static void dl_dir(struct dl *dl, const char *dir, size_t len)
{
    char *pattern = len && *dir == '/' ? shk_strf("%.*s/lib*-fi.so", (int)len, dir) : NULL;
    if (pattern)
        shk_host_glob(shk_ldsearch_host(dl->search), pattern, dl_file, dl);
    free(pattern);
}

/* Built-in names that a libfabric configured for plug-ins asks the loader for. */
static void dl_default(struct dl *dl)
{
    static const char *const names[] = {"efa", "cxi", "verbs", "psm2", "psm3", "opx", "ucx", "tcp"};
    const char *slash = dl->chosen ? strrchr(dl->chosen->path, '/') : NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct shk_ldsearch_hit hit;
        char *name = shk_strf("lib%s-fi.so", names[i]);
        if (name && shk_ldsearch_find(dl->search, name, NULL, &hit) == 0)
            dl_file(hit.path, dl);
        free(name);
    }
    char *own = slash
                    ? shk_strf("%.*s/libfabric", (int)(slash - dl->chosen->path), dl->chosen->path)
                    : NULL;
    if (own)
        dl_dir(dl, own, strlen(own));
    free(own);
}

json_t *shk_libfabric_dl(const struct shk_ldsearch *search, const char *provider_path,
                         const struct shk_libcopy *chosen)
{
    struct dl dl = {.search = search, .chosen = chosen, .rows = json_array()};
    const char *list = provider_path ? provider_path : "";
    bool dirs = false;
    if (!dl.rows)
        return NULL;
    for (const char *p = list + (*list == '@'); *p;) {
        size_t n = strcspn(p, ":");
        char *file = *p == '+' && n > 1 ? shk_strf("%.*s", (int)n - 1, p + 1) : NULL;
        dirs = dirs || *p != '+';
        if (file && shk_host_exists(shk_ldsearch_host(search), "%s", file))
            dl_file(file, &dl);
        else if (*p != '+')
            dl_dir(&dl, p, n);
        free(file);
        p += n + (p[n] == ':');
    }
    if (!dirs)
        dl_default(&dl);
    return dl.rows;
}
