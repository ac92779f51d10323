/* Which node or pair is at fault, when an all-reduce over all of them does not say: all-reduces
 * between the first ranks of two nodes, half as many at once as there are nodes. */
#include "collectives/algorithm/pairs.h"
#include "collectives/launch/world_private.h"
#include <stdlib.h>
#include <string.h>

#define PAIRS_BYTES ((size_t)65536)

struct pairs_node {
    struct hub_member *member;
    unsigned tried, failed;
};

struct pairs {
    struct pairs_node *nodes;
    unsigned count;
    json_t *rows; /* [{a, b, ok, ms, reason}] */
};

unsigned hub_leaders(struct shk_world *world, struct hub_member **leaders)
{
    unsigned count = 0;
    size_t i = 0;

    for (i = 0; i < world->nodes_count; i++) {
        unsigned leader = world->nodes[i].leader;

        if (leader < world->size && world->members[leader].state == MEMBER_IDLE) {
            leaders[count++] = &world->members[leader];
        }
    }
    return count;
}

static int pairs_collect(struct shk_world *world, struct pairs *pairs)
{
    struct hub_member **leaders = calloc(world->nodes_count + 1, sizeof(*leaders));
    unsigned i = 0;

    pairs->nodes = calloc(world->nodes_count + 1, sizeof(*pairs->nodes));
    pairs->rows = json_array();
    if (leaders == NULL || pairs->nodes == NULL || pairs->rows == NULL) {
        free(leaders);
        return -1;
    }
    pairs->count = hub_leaders(world, leaders);
    for (i = 0; i < pairs->count; i++) {
        pairs->nodes[i].member = leaders[i];
    }
    free(leaders);
    return 0;
}

static void pairs_note(struct pairs *pairs, struct hub_group *group, bool ok, unsigned a,
                       unsigned b)
{
    double ms = (double)(group->over_ns - group->crew.start_ns) / 1e6;
    struct pairs_node *two[2] = {&pairs->nodes[a], &pairs->nodes[b]};
    unsigned i = 0;

    for (i = 0; i < 2; i++) {
        two[i]->tried++;
        two[i]->failed += !ok;
    }
    (void)json_array_append_new(pairs->rows,
                                json_pack("{s:s, s:s, s:b, s:f, s:s}", "a", two[0]->member->host,
                                          "b", two[1]->member->host, "ok", ok, "ms", ms, "reason",
                                          group->result.reason.text));
}

static void pairs_round(struct shk_world *world, struct pairs *pairs, unsigned round,
                        const struct shk_transport *transport,
                        const struct shk_collective_options *options)
{
    struct hub_group **groups = calloc(pairs->count, sizeof(*groups));
    unsigned *first = calloc(pairs->count, sizeof(*first));
    size_t count = 0;
    size_t i = 0;

    for (i = 0; groups != NULL && first != NULL && i < pairs->count; i++) {
        unsigned other = shk_pairs_partner(pairs->count, round, (unsigned)i);
        struct hub_member *two[2] = {pairs->nodes[i].member, pairs->nodes[other].member};

        if (other > i && two[0]->state == MEMBER_IDLE && two[1]->state == MEMBER_IDLE) {
            first[count] = (unsigned)i;
            groups[count] = hub_group_start(world, two, 2, transport, options, NULL);
            if (groups[count] != NULL) {
                groups[count++]->hasty = true;
            }
        }
    }
    hub_groups_finish(world, groups, count);
    for (i = 0; i < count; i++) {
        pairs_note(pairs, groups[i], !hub_group_failed(groups[i], transport, options), first[i],
                   shk_pairs_partner(pairs->count, round, first[i]));
        hub_group_free(groups[i]);
    }
    free(groups);
    free(first);
}

/* Nodes at fault: those whose every pair failed while others' passed, else the two ends of pairs
 * that failed. */
static json_t *pairs_blame(const struct pairs *pairs, const char **how_p)
{
    json_t *names = json_array();
    unsigned bad = 0;
    unsigned good = 0;
    unsigned some = 0;
    unsigned i = 0;

    for (i = 0; i < pairs->count; i++) {
        const struct pairs_node *node = &pairs->nodes[i];

        bad += node->tried > 0 && node->failed == node->tried;
        good += node->tried > node->failed;
        some += node->failed > 0;
    }
    *how_p = good == 0  ? NULL
             : bad > 0  ? "no other node can work with it"
             : some > 0 ? "fails in a pair, works with others"
                        : NULL;
    for (i = 0; i < pairs->count && *how_p != NULL; i++) {
        const struct pairs_node *node = &pairs->nodes[i];

        if (bad > 0 ? node->tried > 0 && node->failed == node->tried : node->failed > 0) {
            (void)json_array_append_new(names, json_string(node->member->host));
        }
    }
    return names;
}

int hub_pairs(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, uint64_t end_ns,
              struct hub_pairs *found)
{
    struct shk_collective_options small = *options;
    struct pairs pairs = {0};
    unsigned round = 0;

    small.progress = NULL;
    small.min_bytes = PAIRS_BYTES;
    small.max_bytes = PAIRS_BYTES;
    *found = (struct hub_pairs){0};
    if (pairs_collect(world, &pairs) < 0) {
        free(pairs.nodes);
        json_decref(pairs.rows);
        return -1;
    }
    for (round = 0; round < shk_pairs_rounds(pairs.count) &&
                    shk_job_now_ns() + small.deadline_ms * 1000000ULL < end_ns;
         round++) {
        world_say(world, "pairs of nodes, round %u", round + 1);
        pairs_round(world, &pairs, round, transport, &small);
    }
    found->rounds = round;
    found->nodes = pairs_blame(&pairs, &found->how);
    found->rows = pairs.rows;
    free(pairs.nodes);
    return found->nodes != NULL ? 0 : -1;
}
