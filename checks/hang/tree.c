/* The stacks of all ranks merged, as LLNL's STAT shows them: ranks that are in the same functions
 * share a branch. */
#include "checks/hang/hang_private.h"

#include <stdlib.h>
#include <string.h>

enum { TREE_DEPTH = 64 };

struct tree_node {
    const char *function, *library;
    struct tree_node *children, *next;
    size_t *places; /* indices */
    size_t count, room;
};

static struct tree_node *tree_child(struct tree_node *node, const char *function,
                                    const char *library)
{
    struct tree_node **link = &node->children;
    for (; *link; link = &(*link)->next)
        if (strcmp((*link)->function, function) == 0 && strcmp((*link)->library, library) == 0)
            return *link;
    *link = calloc(1, sizeof **link);
    if (*link) {
        (*link)->function = function;
        (*link)->library = library;
    }
    return *link;
}

static bool tree_mark(struct tree_node *node, size_t place)
{
    if (node->count == node->room) {
        size_t room = node->room ? 2 * node->room : 8;
        size_t *more = realloc(node->places, room * sizeof *more);
        if (!more)
            return false;
        node->places = more;
        node->room = room;
    }
    node->places[node->count++] = place;
    return true;
}

static const char *tree_function(const json_t *frame)
{
    const char *function = hang_text(frame, "function");
    return function ? function : "?";
}

/* What begins every program tells nothing. */
static bool tree_begins(const json_t *frame)
{
    const char *name = hang_text(frame, "function"), *library = hang_text(frame, "library");
    return (name && (strcmp(name, "_start") == 0 || strncmp(name, "__libc_start", 12) == 0)) ||
           (!name && library && strncmp(library, "libc.so", 7) == 0);
}

static void tree_add(struct tree_node *root, const struct hang_place *place, size_t index)
{
    size_t i;
    const json_t *frame, *frames = json_object_get(place->thread, "frames");
    struct tree_node *node = root;
    bool begins = true;
    json_array_foreach(frames, i, frame)
    {
        const char *library = hang_text(frame, "library");
        begins = begins && tree_begins(frame);
        if (begins)
            continue;
        node =
            i < TREE_DEPTH ? tree_child(node, tree_function(frame), library ? library : "") : NULL;
        if (!node || !tree_mark(node, index))
            return;
    }
}

static json_t *tree_ranks(const struct hang_case *c, const struct tree_node *node)
{
    json_t *ranks = json_array();
    for (size_t i = 0; i < node->count; i++) {
        const struct hang_place *place = &c->places[node->places[i]];
        json_array_append_new(ranks, place->number < 0 ? json_sprintf("process %ld", place->process)
                                                       : json_integer(place->number));
    }
    return ranks;
}

static json_t *tree_json(const struct hang_case *c, const struct tree_node *first)
{
    json_t *list = json_array();
    for (const struct tree_node *node = first; node; node = node->next) {
        json_t *frames = json_array();
        const struct tree_node *last = node;
        for (;; last = last->children) {
            json_array_append_new(
                frames, *last->library ? json_sprintf("%s (%s)", last->function, last->library)
                                       : json_string(last->function));
            if (!last->children || last->children->next || last->children->count != last->count)
                break;
        }
        json_array_append_new(list, json_pack("{s:o,s:o,s:o}", "frames", frames, "ranks",
                                              tree_ranks(c, node), "children",
                                              tree_json(c, last->children)));
    }
    return list;
}

static void tree_free(struct tree_node *node)
{
    while (node) {
        struct tree_node *next = node->next;
        tree_free(node->children);
        free(node->places);
        free(node);
        node = next;
    }
}

json_t *hang_tree(const struct hang_case *c)
{
    struct tree_node root = {0};
    for (size_t i = 0; i < c->count; i++)
        tree_add(&root, &c->places[i], i);
    json_t *json = tree_json(c, root.children);
    tree_free(root.children);
    return json;
}

/* "libnccl" of "/opt/lib/libnccl.so.2.28.9" */
static char *libraries_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *end = strstr(name, ".so");
    return shk_strf("%.*s", (int)(end ? (size_t)(end - name) : strlen(name)), name);
}

/* The element of an array of objects whose member has the text; a new one when there is none. */
static json_t *libraries_entry(json_t *array, const char *member, const char *text,
                               const char *list)
{
    size_t i;
    json_t *item;
    json_array_foreach(array, i, item)
    {
        const char *has = hang_text(item, member);
        if (has && strcmp(has, text) == 0)
            return item;
    }
    item = json_pack("{s:s,s:[]}", member, text, list);
    json_array_append_new(array, item);
    return item;
}

static void libraries_add(json_t *all, const struct hang_place *place)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(place->rank, "libraries"), i, item)
    {
        const char *path = json_string_value(item);
        char *stem = path ? libraries_stem(path) : NULL;
        if (!stem || i >= 64) {
            free(stem);
            continue;
        }
        json_t *library = libraries_entry(all, "library", stem, "versions");
        json_t *version =
            libraries_entry(json_object_get(library, "versions"), "path", path, "ranks");
        json_array_append_new(json_object_get(version, "ranks"),
                              place->number < 0 ? json_null() : json_integer(place->number));
        free(stem);
    }
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

json_t *hang_libraries(const struct hang_case *c)
{
    json_t *all = json_array(), *list = json_array(), *library;
    size_t i;
    for (i = 0; i < c->count; i++)
        libraries_add(all, &c->places[i]);
    json_array_foreach(all, i, library)
    {
        if (libraries_differ(library))
            json_array_append(list, library);
    }
    json_decref(all);
    return list;
}
