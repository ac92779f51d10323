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
