/* An all-reduce that came to a standstill although every rank lives: data that TCP sends again and
 * again without an answer tells between which nodes, and whether small packets pass there. */
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct path {
    json_t *owners;
    json_t *stuck; /* "a b" with a < b -> [a, b]: pairs of nodes */
    struct hub_stuck how;
};

static void path_pair(struct path *path, const char *a, const char *b)
{
    bool swap = strcmp(a, b) > 0;
    char *key = shk_strf("%s %s", swap ? b : a, swap ? a : b);

    if (key) {
        (void)json_object_set_new(path->stuck, key,
                                  json_pack("[s, s]", swap ? b : a, swap ? a : b));
    }
    free(key);
}

static void path_row(struct path *path, const char *host, const json_t *row)
{
    const char *to = json_string_value(json_object_get(row, "to"));
    const char *peer = to ? json_string_value(json_object_get(path->owners, to)) : NULL;
    const json_t *answers = json_object_get(row, "answers");
    json_int_t mss = json_integer_value(json_object_get(row, "mss"));

    if (!peer || strcmp(peer, host) == 0 || !json_is_boolean(answers))
        return;
    path_pair(path, host, peer);
    path->how.large += json_is_true(answers);
    path->how.silent += json_is_false(answers);
    path->how.mss = mss > path->how.mss ? mss : path->how.mss;
}

/* In how many of these pairs is the node with one that is in neither list? */
static unsigned path_outside(const json_t *pairs, const json_t *done, const json_t *among,
                             const char *name)
{
    unsigned count = 0;
    const char *key = NULL;
    json_t *pair = NULL;

    json_object_foreach((json_t *)pairs, key, pair)
    {
        for (size_t i = 0; i < 2; i++) {
            const char *other = json_string_value(json_array_get(pair, 1 - i));

            count += strcmp(json_string_value(json_array_get(pair, i)), name) == 0 &&
                     !shk_loss_names(done, other) && !shk_loss_names(among, other);
        }
    }
    return count;
}

/* The nodes of the pairs in which none of `done` is that are in more of them than any other. */
static json_t *path_most(const json_t *pairs, const json_t *done, unsigned *most_p)
{
    json_t *most = json_array();
    const char *key = NULL;
    json_t *pair = NULL;

    *most_p = 0;
    json_object_foreach((json_t *)pairs, key, pair)
    {
        for (size_t i = 0; i < 2; i++) {
            const char *name = json_string_value(json_array_get(pair, i));
            unsigned count = shk_loss_names(done, name) ? 0 : path_outside(pairs, done, NULL, name);

            if (count > *most_p) {
                *most_p = count;
                (void)json_array_clear(most);
            }
            if (count > 0 && count == *most_p && !shk_loss_names(most, name))
                (void)json_array_append_new(most, json_string(name));
        }
    }
    return most;
}

/* Few nodes, one of which is in every pair: those in most pairs first, each in two or more with
 * nodes that are not named. Where that does not tell, all that are alike. */
static json_t *path_common(const json_t *pairs)
{
    json_t *names = json_array();
    bool more = json_object_size(pairs) > 0;

    while (more) {
        unsigned count = 0;
        json_t *most = path_most(pairs, names, &count);
        json_t *sure = json_array();
        json_t *name = NULL;
        size_t i = 0;

        json_array_foreach(most, i, name)
        {
            if (path_outside(pairs, names, most, json_string_value(name)) >= 2)
                (void)json_array_append(sure, name);
        }
        more = json_array_size(sure) > 0;
        (void)json_array_extend(names, more ? sure : most);
        json_decref(most);
        json_decref(sure);
    }
    return names;
}

static void path_names(const json_t *names, char *buf, size_t size)
{
    *buf = '\0';
    for (size_t i = 0; i < json_array_size(names) && i < 4; i++) {
        size_t len = strlen(buf);

        snprintf(buf + len, size - len, "%s%s", i > 0 ? " and " : "",
                 json_string_value(json_array_get(names, i)));
    }
}

static bool path_is_hole(const struct hub_stuck *how)
{
    return how->large > how->silent;
}

static char *path_text(const struct hub_stuck *how, const char *between, const char *who)
{
    return path_is_hole(how)
               ? shk_strf("packets of %lld B %s %s are retransmitted again and again and never "
                          "acknowledged, while small ones are answered: something on the path has "
                          "a smaller MTU and drops the large ones",
                          (long long)how->mss + 40, between, who)
               : shk_strf("data %s %s is retransmitted again and again and never acknowledged, and "
                          "small packets are not answered either: the link or the path is cut",
                          between, who);
}

static const char *path_cause(const struct hub_stuck *how)
{
    return path_is_hole(how) ? "path-mtu" : "node-unreachable";
}

/* Where the run was when it stood still, from what was said before. */
static void path_say(const struct path *path, struct hub_group *group, const json_t *names)
{
    struct shk_crew_result *result = &group->result;
    bool one = json_array_size(names) == 1;
    char who[320];
    char *text = NULL;

    path_names(names, who, sizeof who);
    for (unsigned i = 0; i < group->size && one; i++) {
        if (strcmp(result->ranks[i].host, who) == 0) {
            result->rank = (int)i;
            break;
        }
    }
    result->rank = one ? result->rank : -1;
    result->outcome = SHK_CREW_TIMEOUT;
    result->cause = path_cause(&path->how);
    text = path_text(&path->how, one ? "to and from" : "between", who);
    (void)shk_error_set(&result->reason, ETIMEDOUT, "phase %s: %s", result->phase,
                        text ? text : "data is stuck");
    free(text);
}

json_t *hub_path(struct shk_world *world, struct hub_group *group)
{
    struct path path = {.owners = hub_net_owners(group), .stuck = json_object()};
    json_t *names = NULL;

    for (unsigned i = 0; i < group->size; i++) {
        json_t *rows = json_object_get(json_object_get(group->net[i], "flows"), "rows");
        json_t *row = NULL;
        size_t k = 0;

        json_array_foreach(rows, k, row)
        {
            path_row(&path, group->members[i]->host, row);
        }
    }
    names = path_common(path.stuck);
    if (!world->stuck)
        world->stuck = json_object();
    (void)json_object_update(world->stuck, path.stuck);
    world->stuck_how.large += path.how.large;
    world->stuck_how.silent += path.how.silent;
    if (path.how.mss > world->stuck_how.mss)
        world->stuck_how.mss = path.how.mss;
    if (json_array_size(names) > 0)
        path_say(&path, group, names);
    json_decref(path.owners);
    json_decref(path.stuck);
    if (json_array_size(names) < 2) {
        json_decref(names);
        names = NULL;
    }
    return names;
}

/* Is each of the named nodes, a minority, in two or more pairs with others, and is one of them in
 * every pair? Then all of them are at fault. */
static bool path_all(const json_t *pairs, const json_t *names, size_t nodes)
{
    const char *key = NULL;
    json_t *item = NULL;
    size_t i = 0;

    json_array_foreach((json_t *)names, i, item)
    {
        if (path_outside(pairs, names, NULL, json_string_value(item)) < 2)
            return false;
    }
    json_object_foreach((json_t *)pairs, key, item)
    {
        if (!shk_loss_names(names, json_string_value(json_array_get(item, 0))) &&
            !shk_loss_names(names, json_string_value(json_array_get(item, 1)))) {
            return false;
        }
    }
    return 2 * json_array_size(names) < nodes;
}

char *hub_path_common(const struct shk_world *world, json_t **names_p)
{
    json_t *names = path_common(world->stuck);
    size_t count = json_array_size(names);
    char who[320];

    *names_p = names;
    path_names(names, who, sizeof who);
    return count == 1 || (count > 1 && path_all(world->stuck, names, world->nodes_count))
               ? shk_strf("%s", who)
               : NULL;
}

const char *hub_path_cause(const struct shk_world *world, const char *who, char **text_p)
{
    *text_p = path_text(&world->stuck_how, "to and from", who);
    return path_cause(&world->stuck_how);
}
