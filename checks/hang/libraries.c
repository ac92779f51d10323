/* Do all ranks have the same libraries loaded? */
#include "checks/hang/hang_private.h"
#include "core/facts/factdiff.h"

#include <stdlib.h>
#include <string.h>

enum { LIBRARIES_MOST = 64 };

const struct hang_library hang_library_known[HANG_LIBRARIES] = {
    {"libnccl", "nccl.version", "nccl.path"},
    {"librccl", "rccl.version", "rccl.path"},
    {"libfabric", "fabric.version", "fabric.path"}};

/* "libnccl" of "/opt/lib/libnccl.so.2.28.9" */
static char *libraries_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".so");
    return shk_strf("%.*s", (int)(end ? (size_t)(end - name) : strlen(name)), name);
}

static json_t *libraries_entry(json_t *all, const char *stem)
{
    size_t i;
    json_t *item;
    json_array_foreach(all, i, item)
    {
        if (strcmp(hang_text(item, "library"), stem) == 0)
            return item;
    }
    item = json_pack("{s:s,s:[]}", "library", stem, "versions");
    json_array_append_new(all, item);
    return item;
}

/* The same build: by the linker's fingerprint where both were read, else by the path. */
static bool libraries_same(const json_t *version, const char *path, const char *id)
{
    const char *other = hang_text(version, "build_id");
    return id && other ? strcmp(id, other) == 0 : strcmp(hang_text(version, "path"), path) == 0;
}

static json_t *libraries_version(json_t *versions, const char *path, const json_t *item)
{
    size_t i;
    json_t *version = NULL;
    const char *id = hang_text(item, "build_id"), *number = hang_text(item, "version");
    json_array_foreach(versions, i, version)
    {
        if (libraries_same(version, path, id))
            break;
    }
    if (i == json_array_size(versions)) {
        version = json_pack("{s:s,s:[]}", "path", path, "ranks");
        json_array_append_new(versions, version);
    }
    if (id && !hang_text(version, "build_id"))
        json_object_set_new(version, "build_id", json_string(id));
    if (number && !hang_text(version, "version"))
        json_object_set_new(version, "version", json_string(number));
    return version;
}

/* A rank counts once for a version, whatever symbolic links it came by. */
static void libraries_mark(json_t *version, json_t *number, json_t *had)
{
    size_t i;
    json_t *other;
    json_array_foreach(had, i, other)
    {
        if (other == version) {
            json_decref(number);
            return;
        }
    }
    json_array_append(had, version);
    json_array_append_new(json_object_get(version, "ranks"), number);
}

/* One file of a rank: "path" of older documents, or {path, version, build_id}. */
static void libraries_add(json_t *all, const struct hang_place *place, const json_t *item,
                          json_t *had)
{
    const char *path = json_is_string(item) ? json_string_value(item) : hang_text(item, "path");
    char *stem = path ? libraries_stem(path) : NULL;
    json_t *library = stem ? libraries_entry(all, stem) : NULL;
    if (library) {
        json_t *version = libraries_version(json_object_get(library, "versions"), path, item);
        libraries_mark(version, hang_rank_json(place), had);
    }
    if (library && json_is_true(json_object_get(item, "replaced"))) {
        if (!json_object_get(library, "replaced"))
            json_object_set_new(library, "replaced", json_array());
        json_array_append_new(json_object_get(library, "replaced"), hang_rank_json(place));
    }
    free(stem);
}

static void libraries_of(json_t *all, const struct hang_place *place)
{
    size_t i;
    json_t *item, *had = json_array();
    const json_t *list = json_object_get(place->rank, "versions");
    json_array_foreach(list ? list : json_object_get(place->rank, "libraries"), i, item)
    {
        if (i < LIBRARIES_MOST)
            libraries_add(all, place, item, had);
    }
    json_decref(had);
}

/* Do all ranks that have the library have all of its files? Two of one stem in every rank (libmpi
 * and a compatible libmpi of a tool) are no difference between ranks. */
static bool libraries_differ(const json_t *library)
{
    const json_t *versions = json_object_get(library, "versions");
    const json_t *first = json_object_get(json_array_get(versions, 0), "ranks");
    for (size_t i = 1; i < json_array_size(versions); i++)
        if (!json_equal(first, json_object_get(json_array_get(versions, i), "ranks")))
            return true;
    return false;
}

static const char *libraries_fact(const char *library)
{
    for (size_t i = 0; i < HANG_LIBRARIES; i++)
        if (strcmp(hang_library_known[i].library, library) == 0)
            return hang_library_known[i].version;
    return NULL;
}

/* Different numbers of a library whose ranks must have the same one: what the catalogue says. */
static void libraries_explain(const struct hang_case *c, json_t *library)
{
    size_t i, count;
    json_t *version;
    const char *first = NULL, *fact = libraries_fact(hang_text(library, "library"));
    bool differ = false;
    json_array_foreach(json_object_get(library, "versions"), i, version)
    {
        const char *number = hang_text(version, "version");
        differ |= first && number && strcmp(first, number) != 0;
        first = first ? first : number;
    }
    const struct shk_diff_rule *rules = shk_config_diff(c->config, &count),
                               *rule =
                                   fact && differ ? shk_diff_agree_rule(rules, count, fact) : NULL;
    if (!rule)
        return;
    json_object_set_new(library, "why", json_string(rule->why));
    if (rule->diagnosis)
        json_object_set_new(library, "diagnosis", json_string(rule->diagnosis));
}

json_t *hang_libraries(const struct hang_case *c)
{
    json_t *all = json_array(), *list = json_array(), *library;
    size_t i;
    for (i = 0; i < c->count; i++)
        libraries_of(all, &c->places[i]);
    json_array_foreach(all, i, library)
    {
        bool several = json_array_size(json_object_get(library, "versions")) > 1;
        bool differ = libraries_differ(library);
        bool twice = several && libraries_fact(hang_text(library, "library"));
        if (!differ && !twice && !json_object_get(library, "replaced"))
            continue;
        json_object_set_new(library, "differs", json_boolean(differ));
        libraries_explain(c, library);
        json_array_append(list, library);
    }
    json_decref(all);
    return list;
}

const char *hang_library_version(const json_t *rank, const char *library, const char **path_p)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(rank, "versions"), i, item)
    {
        const char *path = hang_text(item, "path"), *version = hang_text(item, "version");
        char *stem = path && version ? libraries_stem(path) : NULL;
        bool same = stem && strcmp(stem, library) == 0;
        free(stem);
        if (same) {
            *path_p = path;
            return version;
        }
    }
    return NULL;
}
