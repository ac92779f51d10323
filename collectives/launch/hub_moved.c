/* Counters of the nodes' hardware that moved during the runs of one transport. */
#include "collectives/launch/world_private.h"
#include "core/job/moved.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The entry about runs of that name; made when there is none. */
static json_t *moved_entry(struct shk_world *world, const char *what)
{
    json_t *entry = NULL;
    size_t i = 0;

    if (!world->moved)
        world->moved = json_array();
    json_array_foreach(world->moved, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "what"));

        if (name && strcmp(name, what) == 0)
            return entry;
    }
    entry = json_pack("{s:s, s:[], s:i, s:{}}", "what", what, "nodes", "quiet", 0, "devices");
    (void)json_array_append_new(world->moved, entry);
    return entry;
}

/* How many scopes of each class a quiet node has. */
static void moved_devices(json_t *devices, const json_t *counters, const json_t *part)
{
    json_t *scope = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(part, "read"), i, scope)
    {
        const json_t *class =
            json_object_get(json_object_get(counters, "classes"), json_string_value(scope));
        const char *name = class ? json_string_value(class) : "network";
        json_int_t was = json_integer_value(json_object_get(devices, name));

        (void)json_object_set_new(devices, name, json_integer(was + 1));
    }
}

static void moved_member(json_t *entry, const char *host, json_t *counters, bool all)
{
    json_t *part = all ? json_copy(counters) : shk_moved_part(counters, false);
    json_int_t quiet = json_integer_value(json_object_get(entry, "quiet"));

    if (shk_moved_quiet(part)) {
        (void)json_object_set_new(entry, "quiet", json_integer(quiet + 1));
        moved_devices(json_object_get(entry, "devices"), counters, part);
        json_decref(part);
        return;
    }
    (void)json_object_set_new(part, "classes", json_incref(json_object_get(counters, "classes")));
    (void)json_object_set_new(part, "node", json_string(host));
    (void)json_array_append_new(json_object_get(entry, "nodes"), part);
}

void hub_moved_add(struct shk_world *world, const struct hub_group *group, const char *what)
{
    bool apart = false;

    for (unsigned i = 0; i < group->size; i++)
        apart = apart || strcmp(group->members[i]->host, group->members[0]->host) != 0;
    for (unsigned i = 0; i < group->size; i++) {
        json_t *counters = json_object_get(group->net[i], "counters");

        if (json_is_object(counters))
            moved_member(moved_entry(world, what), group->members[i]->host, counters, !apart);
    }
}

int hub_moved_facts(struct shk_world *world, const struct shk_transport *transport,
                    struct shk_facts *facts)
{
    json_t *moved = world->moved;

    world->moved = NULL;
    return hub_counters_fact(transport, "moved", moved, "counters before and after, on each node",
                             facts);
}
