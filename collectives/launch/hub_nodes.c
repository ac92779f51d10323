#include "collectives/launch/world_private.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One node's ranks among themselves. */
struct nodes_part {
    const char *node;
    struct hub_group *group; /* NULL: none of its ranks is there */
    struct shk_facts *facts;
    const char *status; /* of facts */
    double busbw;       /* best; 0 none */
    json_int_t bytes;   /* of the message that had it */
};

/* The ranks that are idle, node after node; those of node i are [start[i], start[i + 1]). */
struct nodes_ranks {
    struct hub_member **members;
    unsigned *start;
};

static size_t nodes_index(const struct shk_world *world, const struct hub_member *member)
{
    const json_t *known = json_object_get(world->nodes_known, member->host);

    return known && member->state == MEMBER_IDLE ? (size_t)json_integer_value(known)
                                                 : world->nodes_count;
}

/* -ENOMEM; free both arrays in either case. */
static int nodes_sort(const struct shk_world *world, struct nodes_ranks *ranks)
{
    size_t count = world->nodes_count;
    unsigned *next = calloc(count + 2, sizeof *next);

    ranks->members = calloc(world->size + 1, sizeof(struct hub_member *));
    ranks->start = calloc(count + 2, sizeof *ranks->start);
    if (!next || !ranks->members || !ranks->start) {
        free(next);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < world->size; i++)
        ranks->start[nodes_index(world, &world->members[i]) + 1]++;
    for (size_t node = 0; node <= count; node++) {
        ranks->start[node + 1] += ranks->start[node];
        next[node] = ranks->start[node];
    }
    for (unsigned i = 0; i < world->size; i++)
        ranks->members[next[nodes_index(world, &world->members[i])]++] = &world->members[i];
    free(next);
    return 0;
}

static const char *nodes_text(const struct nodes_part *part, const struct shk_transport *transport,
                              const char *member)
{
    char key[96];

    snprintf(key, sizeof key, "collective.%s.%s", transport->name, member);
    return shk_facts_get_text(part->facts, key);
}

static void nodes_best(struct nodes_part *part, const struct shk_transport *transport)
{
    const json_t *row = NULL;
    char key[96];
    size_t i = 0;

    snprintf(key, sizeof key, "collective.%s.sizes", transport->name);
    json_t *list = shk_facts_get_array(part->facts, key);
    json_array_foreach(list, i, row)
    {
        double busbw = json_number_value(json_object_get(row, "busbw"));

        if (busbw > part->busbw) {
            part->busbw = busbw;
            part->bytes = json_integer_value(json_object_get(row, "bytes"));
        }
    }
}

static int nodes_judge(struct nodes_part *part, const struct shk_transport *transport,
                       const struct shk_collective_options *options, struct shk_error *err)
{
    int rc = 0;

    part->facts = shk_facts_create();
    rc = part->facts
             ? transport->facts(part->group->job, &part->group->result, options, part->facts, err)
             : shk_error_set(err, ENOMEM, "out of memory");
    if (rc == 0) {
        part->status = nodes_text(part, transport, "status");
        nodes_best(part, transport);
    }
    return rc;
}

/* How much a node's outcome says about the job: failures before what passed, which comes before
 * what does not apply. */
static int nodes_weight(const struct nodes_part *part)
{
    static const char *const order[] = {"na",     "ok",      "starved", "wrong",
                                        "failed", "timeout", "crashed"};
    int last = (int)(sizeof order / sizeof order[0]) - 1;
    int i = 0;

    /* One that says nothing is no better than a crash. */
    while (i < last && (!part->status || strcmp(part->status, order[i]) != 0))
        i++;
    return i;
}

/* The first of those that failed worst, or the slowest. */
static const struct nodes_part *nodes_worst(const struct nodes_part *parts, size_t count)
{
    const struct nodes_part *worst = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct nodes_part *part = &parts[i];
        int more = 0;

        if (!part->facts)
            continue;
        more = worst ? nodes_weight(part) - nodes_weight(worst) : 1;
        if (more > 0 || (more == 0 && part->busbw < worst->busbw))
            worst = part;
    }
    return worst;
}

static json_t *nodes_row(const struct nodes_part *part, const struct shk_transport *transport)
{
    const char *reason = nodes_text(part, transport, "reason");
    json_t *row = json_pack("{s:s, s:s, s:i, s:f, s:I}", "node", part->node, "status",
                            part->status ? part->status : "failed", "ranks", (int)part->group->size,
                            "busbw", part->busbw, "bytes", part->bytes);

    if (row && reason)
        (void)json_object_set_new(row, "reason", shk_json_text(reason, strlen(reason)));
    return row;
}

/* collective.<t>.<member>, a list by node, of all nodes together. */
static int nodes_lists(const struct nodes_part *parts, size_t count,
                       const struct shk_transport *transport, const char *member,
                       struct shk_facts *facts)
{
    json_t *all = json_array();
    char key[96];

    snprintf(key, sizeof key, "collective.%s.%s", transport->name, member);
    for (size_t i = 0; i < count; i++) {
        json_t *list = parts[i].facts ? shk_facts_get_array(parts[i].facts, key) : NULL;

        if (list)
            (void)json_array_extend(all, list);
    }
    if (json_array_size(all) > 0)
        return shk_facts_present(facts, key, all, NULL, "ranks of each node");
    json_decref(all);
    return 0;
}

/* collective.<t>.by_node, and .nodes: those that ended as the worst did. */
static int nodes_tell(const struct nodes_part *parts, size_t count, const struct nodes_part *worst,
                      const struct shk_transport *transport, struct shk_facts *facts)
{
    json_t *rows = json_array();
    json_t *names = json_array();
    char key[96];
    int rc = 0;

    for (size_t i = 0; i < count; i++) {
        if (!parts[i].facts)
            continue;
        (void)json_array_append_new(rows, nodes_row(&parts[i], transport));
        if (nodes_weight(&parts[i]) == nodes_weight(worst))
            (void)json_array_append_new(names, json_string(parts[i].node));
    }
    snprintf(key, sizeof key, "collective.%s.by_node", transport->name);
    rc = shk_facts_present(facts, key, rows, NULL, "ranks of each node");
    if (!worst->status || (strcmp(worst->status, "ok") != 0 && strcmp(worst->status, "na") != 0)) {
        snprintf(key, sizeof key, "collective.%s.nodes", transport->name);
        rc = rc == 0 ? shk_facts_present(facts, key, json_incref(names), NULL, "ranks of each node")
                     : rc;
    }
    json_decref(names);
    return rc;
}

static int nodes_finish(struct shk_world *world, struct nodes_part *parts, size_t count,
                        const struct shk_transport *transport,
                        const struct shk_collective_options *options, struct shk_facts *facts,
                        struct shk_error *err)
{
    struct hub_group **groups = calloc(count, sizeof *groups);
    const struct nodes_part *worst = NULL;
    int rc = groups ? 0 : shk_error_set(err, ENOMEM, "out of memory");

    for (size_t i = 0; i < count && rc == 0; i++)
        groups[i] = parts[i].group;
    if (rc == 0)
        hub_groups_finish(world, groups, count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (parts[i].group)
            hub_moved_add(world, parts[i].group, "all-reduce");
        rc = parts[i].group ? nodes_judge(&parts[i], transport, options, err) : 0;
    }
    free(groups);
    worst = rc == 0 ? nodes_worst(parts, count) : NULL;
    if (rc == 0 && !worst)
        return shk_error_set(err, ESRCH, "no rank is there");
    if (rc == 0 && (shk_facts_merge(facts, worst->facts) < 0 ||
                    nodes_tell(parts, count, worst, transport, facts) < 0 ||
                    nodes_lists(parts, count, transport, "copies", facts) < 0 ||
                    nodes_lists(parts, count, transport, "stress", facts) < 0 ||
                    hub_moved_facts(world, transport, facts) < 0)) {
        rc = shk_error_set(err, ENOMEM, "out of memory");
    }
    return rc;
}

int hub_nodes_measure(struct shk_world *world, const struct shk_transport *transport,
                      const struct shk_collective_options *options, struct shk_facts *facts,
                      struct shk_error *err)
{
    size_t count = world->nodes_count;
    struct nodes_part *parts = calloc(count + 1, sizeof *parts);
    struct shk_collective_options how = *options;
    struct nodes_ranks ranks = {0};
    int rc =
        nodes_sort(world, &ranks) == 0 && parts ? 0 : shk_error_set(err, ENOMEM, "out of memory");

    for (size_t i = 0; i < count && rc == 0; i++) {
        parts[i].node = world->nodes[i].name;
        if (ranks.start[i + 1] == ranks.start[i])
            continue;
        parts[i].group = hub_group_start(world, &ranks.members[ranks.start[i]],
                                         ranks.start[i + 1] - ranks.start[i], transport, &how, err);
        rc = !parts[i].group ? -ENOMEM : 0;
        how.progress = NULL; /* the first node's speaks for all */
    }
    if (rc == 0)
        rc = nodes_finish(world, parts, count, transport, options, facts, err);
    for (size_t i = 0; parts && i < count; i++) {
        hub_group_free(parts[i].group);
        shk_facts_destroy(parts[i].facts);
    }
    free(parts);
    free(ranks.members);
    free(ranks.start);
    return rc;
}
