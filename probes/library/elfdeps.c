#include "probes/library/elfdeps.h"

#include "core/facts/facts.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A plugin with CUDA and libfabric pulls in some thirty objects. */
enum { ELFDEPS_MAX = 256 };

struct object {
    char *name; /* as asked for */
    char *path; /* NULL: not found */
    struct shk_elf *elf;
    bool own_elf;
    struct shk_ldsearch_asker asker;
};

struct walk {
    const struct shk_ldsearch *search;
    struct object objects[ELFDEPS_MAX];
    size_t count;
    json_t *needed, *problems;
    bool nomem;
};

static json_t *elfdeps_text(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

static void elfdeps_append(struct walk *w, json_t *list, json_t *row)
{
    w->nomem |= !row || json_array_append_new(list, row) != 0;
}

static struct object *elfdeps_known(struct walk *w, const char *name)
{
    for (size_t i = 1; i < w->count; i++) {
        const struct object *o = &w->objects[i];
        const char *soname = o->elf ? shk_elf_soname(o->elf) : NULL;
        if (strcmp(o->name, name) == 0 || (soname && strcmp(soname, name) == 0))
            return &w->objects[i];
    }
    return NULL;
}

static void elfdeps_problem(struct walk *w, const char *kind, const struct object *by,
                            const char *library, const struct object *found, const char *version,
                            const char *provides, char *text)
{
    w->nomem |= !text;
    json_t *row =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "kind", kind, "by", elfdeps_text(by->path),
                  "library", elfdeps_text(library), "path",
                  elfdeps_text(found ? found->path : NULL), "version", elfdeps_text(version),
                  "provides", elfdeps_text(provides), "text", elfdeps_text(text));
    elfdeps_append(w, w->problems, row);
    free(text);
}

static int elfdeps_first_obstacle(const struct shk_ldsearch_hit *hit, enum shk_file_state state,
                                  const char *text, void *arg)
{
    char **text_p = arg;
    (void)state;
    *text_p = shk_strf("%s: %s", hit->path, text);
    return 1;
}

/* "… needs X, but /p/X: a link to Y, which does not exist", or where it was looked for in vain. */
static void elfdeps_missing(struct walk *w, const struct object *by, const char *name)
{
    char *obstacle = NULL, *places = shk_ldsearch_places(w->search);
    shk_ldsearch_each_obstacle(w->search, name, &by->asker, elfdeps_first_obstacle, &obstacle);
    if (obstacle)
        elfdeps_problem(w, "missing", by, name, NULL, NULL, NULL,
                        shk_strf("%s needs %s, but %s", by->path, name, obstacle));
    else
        elfdeps_problem(w, "missing", by, name, NULL, NULL, NULL,
                        shk_strf("%s needs %s, which is not in the search path (%s)", by->path,
                                 name, places ? places : "no memory to name it"));
    free(obstacle);
    free(places);
}

/* A library that is found and is none. */
static void elfdeps_invalid(struct walk *w, const struct object *by, const char *name,
                            const struct object *o, const char *why)
{
    char text[512];
    enum shk_file_state state =
        shk_file_state(shk_ldsearch_host(w->search), o->path, text, sizeof text);
    if (state == SHK_FILE_READABLE)
        elfdeps_problem(w, "invalid", by, name, o, NULL, NULL,
                        shk_strf("%s needs %s, but %s", by->path, name, why));
    else
        elfdeps_problem(w, "invalid", by, name, o, NULL, NULL,
                        shk_strf("%s needs %s, but %s is %s", by->path, name, o->path, text));
}

static void elfdeps_need(struct walk *w, size_t asker, const char *name)
{
    struct object *by = &w->objects[asker];
    struct shk_ldsearch_hit hit;
    struct shk_error err = {""};
    if (elfdeps_known(w, name) || w->count == ELFDEPS_MAX)
        return;
    struct object *o = &w->objects[w->count++];
    bool found = shk_ldsearch_find(w->search, name, &by->asker, &hit) == 0;
    *o = (struct object){.name = strdup(name), .path = found ? strdup(hit.path) : NULL};
    w->nomem |= !o->name || (found && !o->path);
    json_t *row = json_pack("{s:o, s:o, s:o}", "name", elfdeps_text(name), "path",
                            elfdeps_text(o->path), "via", elfdeps_text(found ? hit.via : NULL));
    if (row && asker)
        json_object_set_new(row, "by", elfdeps_text(by->path));
    elfdeps_append(w, w->needed, row);
    if (!found) {
        elfdeps_missing(w, by, name);
    } else if (shk_elf_open(&o->elf, shk_ldsearch_host(w->search), hit.path, &err) != 0) {
        elfdeps_invalid(w, by, name, o, err.text);
    } else {
        o->own_elf = true;
        o->asker =
            (struct shk_ldsearch_asker){.elf = o->elf, .path = o->path, .loader = &by->asker};
    }
}

struct version_walk {
    struct walk *w;
    size_t asker;
};

static int elfdeps_version(const char *library, const char *version, bool weak, void *arg)
{
    struct version_walk *v = arg;
    const struct object *by = &v->w->objects[v->asker], *o = elfdeps_known(v->w, library);
    if (weak || !o || !o->elf || !shk_elf_has_version_defs(o->elf) ||
        shk_elf_defines_version(o->elf, version))
        return 0;
    const char *highest = shk_elf_highest_version(o->elf, version);
    elfdeps_problem(v->w, "version", by, library, o, version, highest,
                    shk_strf("%s needs symbol version %s of %s, but %s provides %s%s", by->path,
                             version, library, o->path, highest ? "at most " : "none of these",
                             highest ? highest : ""));
    return 0;
}

static void elfdeps_free(struct walk *w)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->objects[i].own_elf)
            shk_elf_close(w->objects[i].elf);
        free(w->objects[i].name);
        free(w->objects[i].path);
    }
    json_decref(w->needed);
    json_decref(w->problems);
    free(w);
}

int shk_elfdeps_walk(const struct shk_ldsearch *search, const struct shk_elf *elf, const char *path,
                     const struct shk_ldsearch_asker *loader, json_t **needed_p,
                     json_t **problems_p, struct shk_error *err)
{
    struct walk *w = calloc(1, sizeof *w);
    if (!w)
        return shk_error_sys(err, ENOMEM, "%s", path);
    w->search = search;
    w->needed = json_array();
    w->problems = json_array();
    /* the API does not modify the object; the list holds closable ones too */
    struct object *root = &w->objects[w->count++];
    *root = (struct object){
        .name = strdup(path), .path = strdup(path), .elf = (struct shk_elf *)(uintptr_t)elf};
    root->asker = (struct shk_ldsearch_asker){.elf = elf, .path = root->path, .loader = loader};
    w->nomem = !w->needed || !w->problems || !root->name || !root->path;
    for (size_t i = 0; i < w->count && !w->nomem; i++) {
        if (!w->objects[i].elf)
            continue;
        for (size_t k = 0; k < shk_elf_needed_count(w->objects[i].elf); k++)
            elfdeps_need(w, i, shk_elf_needed(w->objects[i].elf, k));
    }
    for (size_t i = 0; i < w->count && !w->nomem; i++) {
        struct version_walk v = {.w = w, .asker = i};
        if (w->objects[i].elf)
            shk_elf_each_version_need(w->objects[i].elf, elfdeps_version, &v);
    }
    int rc = w->nomem ? shk_error_sys(err, ENOMEM, "%s", path) : 0;
    if (!rc) {
        *needed_p = json_incref(w->needed);
        *problems_p = json_incref(w->problems);
    }
    elfdeps_free(w);
    return rc;
}
