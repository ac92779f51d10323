/* An all-reduce that came to a standstill although every rank lives: data that TCP sends again and
 * again without an answer tells between which nodes, and whether small packets pass there. */
#include "collectives/world_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct path {
    const struct hub_group *group;
    json_t *owners;
    json_t *stuck;   /* "a b" with a < b -> true: pairs of nodes */
    json_t *count;   /* node -> number of its pairs */
    unsigned large;  /* rows where a small packet was answered, */
    unsigned silent; /* and where none was */
    json_int_t mss;  /* largest segment that is stuck */
};

static void path_pair(struct path *path, const char *a, const char *b)
{
    const char *first = strcmp(a, b) < 0 ? a : b;
    char *key = shk_strf("%s %s", first, first == a ? b : a);

    if (key != NULL && json_object_get(path->stuck, key) == NULL) {
        (void)json_object_set_new(path->stuck, key, json_true());
        (void)json_object_set_new(
            path->count, a, json_integer(json_integer_value(json_object_get(path->count, a)) + 1));
        (void)json_object_set_new(
            path->count, b, json_integer(json_integer_value(json_object_get(path->count, b)) + 1));
    }
    free(key);
}

static void path_row(struct path *path, const char *host, const json_t *row)
{
    const char *to = json_string_value(json_object_get(row, "to"));
    const char *peer = to != NULL ? json_string_value(json_object_get(path->owners, to)) : NULL;
    const json_t *answers = json_object_get(row, "answers");
    json_int_t mss = json_integer_value(json_object_get(row, "mss"));

    if (peer == NULL || strcmp(peer, host) == 0 || !json_is_boolean(answers)) {
        return;
    }
    path_pair(path, host, peer);
    path->large += json_is_true(answers);
    path->silent += json_is_false(answers);
    path->mss = mss > path->mss ? mss : path->mss;
}

/* Nodes in more of the stuck pairs than any other: one, or all that are alike. */
static json_t *path_common(const struct path *path)
{
    json_t *names = json_array();
    json_int_t most = 0;
    const char *host = NULL;
    json_t *count = NULL;

    json_object_foreach(path->count, host, count)
    {
        most = json_integer_value(count) > most ? json_integer_value(count) : most;
    }
    json_object_foreach(path->count, host, count)
    {
        if (json_integer_value(count) == most) {
            (void)json_array_append_new(names, json_string(host));
        }
    }
    return names;
}

static void path_names(const json_t *names, char *buf, size_t size)
{
    size_t i = 0;

    *buf = '\0';
    for (i = 0; i < json_array_size(names) && i < 4; i++) {
        size_t len = strlen(buf);

        snprintf(buf + len, size - len, "%s%s", i > 0 ? " and " : "",
                 json_string_value(json_array_get(names, i)));
    }
}

/* Where the run was when it stood still, from what was said before. */
static void path_say(struct path *path, struct hub_group *group, const json_t *names)
{
    struct shk_crew_result *result = &group->result;
    bool hole = path->large > path->silent;
    bool one = json_array_size(names) == 1;
    const char *who = one ? "to and from" : "between";
    char text[320];
    unsigned i = 0;

    path_names(names, text, sizeof(text));
    for (i = 0; i < group->size && one; i++) {
        if (strcmp(result->ranks[i].host, text) == 0) {
            result->rank = (int)i;
            break;
        }
    }
    result->rank = one ? result->rank : -1;
    result->cause = hole ? "path-mtu" : "node-unreachable";
    if (hole) {
        (void)shk_error_set(&result->reason, ETIMEDOUT,
                            "phase %s: packets of %lld B %s %s are sent again and again and never "
                            "acknowledged, small ones are answered: something on the way has a "
                            "smaller MTU and drops the large ones",
                            result->phase, (long long)path->mss + 40, who, text);
    } else {
        (void)shk_error_set(&result->reason, ETIMEDOUT,
                            "phase %s: data %s %s is sent again and again and never acknowledged, "
                            "and no small packet is answered there either: the link or the way is "
                            "cut",
                            result->phase, who, text);
    }
}

json_t *hub_path(struct hub_group *group)
{
    struct path path = {.group = group,
                        .owners = hub_net_owners(group),
                        .stuck = json_object(),
                        .count = json_object()};
    json_t *names = NULL;
    unsigned i = 0;

    for (i = 0; i < group->size; i++) {
        json_t *rows = json_object_get(json_object_get(group->net[i], "flows"), "rows");
        json_t *row = NULL;
        size_t k = 0;

        json_array_foreach(rows, k, row)
        {
            path_row(&path, group->members[i]->host, row);
        }
    }
    names = path_common(&path);
    if (json_array_size(names) > 0) {
        path_say(&path, group, names);
    }
    json_decref(path.owners);
    json_decref(path.stuck);
    json_decref(path.count);
    if (json_array_size(names) < 2) {
        json_decref(names);
        names = NULL;
    }
    return names;
}
