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
    unsigned (*failed)[2]; /* pairs of nodes */
    size_t failed_count;
    enum shk_phase hang; /* see hub_group_late() */
    json_t *rows;        /* [{a, b, ok, ms, reason}] */
};

/* One pair after the other is tried like this. */
struct pairs_trial {
    struct shk_world *world;
    const struct shk_transport *transport;
    struct shk_collective_options options;
    uint64_t end_ns;
};

unsigned hub_leaders(struct shk_world *world, struct hub_member **leaders)
{
    unsigned count = 0;

    for (size_t i = 0; i < world->nodes_count; i++) {
        unsigned leader = world->nodes[i].leader;

        if (leader < world->size && world->members[leader].state == MEMBER_IDLE)
            leaders[count++] = &world->members[leader];
    }
    return count;
}

static int pairs_collect(struct shk_world *world, struct pairs *pairs)
{
    struct hub_member **leaders = calloc(world->nodes_count + 1, sizeof *leaders);
    size_t most = (world->nodes_count + 1) * (SHK_PAIRS_ROUNDS + 1);

    pairs->failed = calloc(most, sizeof *pairs->failed);
    pairs->nodes = calloc(world->nodes_count + 1, sizeof *pairs->nodes);
    pairs->rows = json_array();
    if (!leaders || !pairs->nodes || !pairs->rows || !pairs->failed) {
        free(leaders);
        return -1;
    }
    pairs->count = hub_leaders(world, leaders);
    for (unsigned i = 0; i < pairs->count; i++)
        pairs->nodes[i].member = leaders[i];
    free(leaders);
    return 0;
}

/* One that is late says nothing. */
static void pairs_note(struct pairs *pairs, struct hub_group *group, bool ok, unsigned a,
                       unsigned b)
{
    double ms = (double)(group->over_ns - group->crew.start_ns) / 1e6;
    struct pairs_node *two[2] = {&pairs->nodes[a], &pairs->nodes[b]};
    bool late = !ok && hub_group_late(group, pairs->hang);

    for (unsigned i = 0; i < 2 && !late; i++) {
        two[i]->tried++;
        two[i]->failed += !ok;
    }
    if (!ok && !late) {
        pairs->failed[pairs->failed_count][0] = a;
        pairs->failed[pairs->failed_count++][1] = b;
    }
    (void)json_array_append_new(pairs->rows,
                                json_pack("{s:s, s:s, s:b, s:f, s:s}", "a", two[0]->member->host,
                                          "b", two[1]->member->host, "ok", ok, "ms", ms, "reason",
                                          group->result.reason.text));
}

static struct hub_group *pairs_start(const struct pairs_trial *trial, struct pairs *pairs,
                                     unsigned a, unsigned b)
{
    struct hub_member *two[2] = {pairs->nodes[a].member, pairs->nodes[b].member};
    struct hub_group *group = NULL;

    if (two[0]->state != MEMBER_IDLE || two[1]->state != MEMBER_IDLE)
        return NULL;
    group = hub_group_start(trial->world, two, 2, trial->transport, &trial->options, NULL);
    if (group)
        group->hasty = true;
    return group;
}

/* A pair whose time ran out beside the others: by itself, with twice the time. */
static void pairs_again(const struct pairs_trial *trial, struct pairs *pairs,
                        struct hub_group **group_p, unsigned a, unsigned b)
{
    struct pairs_trial longer = *trial;
    struct hub_group *group = NULL;

    longer.options.deadline_ms *= 2;
    if (!hub_group_late(*group_p, pairs->hang) ||
        shk_job_now_ns() + longer.options.deadline_ms * 1000000ULL > trial->end_ns) {
        return;
    }
    group = pairs_start(&longer, pairs, a, b);
    if (group) {
        hub_groups_finish(trial->world, &group, 1);
        hub_group_free(*group_p);
        *group_p = group;
    }
}

/* Pairs (first, other) at once. */
static void pairs_run(const struct pairs_trial *trial, struct pairs *pairs,
                      unsigned (*const two)[2], unsigned count)
{
    struct hub_group **groups = calloc(count + 1, sizeof *groups);

    for (unsigned i = 0; groups && i < count; i++)
        groups[i] = pairs_start(trial, pairs, two[i][0], two[i][1]);
    if (groups)
        hub_groups_finish(trial->world, groups, count);
    for (unsigned i = 0; groups && i < count; i++) {
        if (groups[i]) {
            pairs_again(trial, pairs, &groups[i], two[i][0], two[i][1]);
            pairs_note(pairs, groups[i],
                       !hub_group_failed(groups[i], trial->transport, &trial->options), two[i][0],
                       two[i][1]);
            hub_group_free(groups[i]);
        }
    }
    free(groups);
}

static void pairs_round(const struct pairs_trial *trial, struct pairs *pairs, unsigned round)
{
    unsigned(*two)[2] = calloc(pairs->count + 1, sizeof *two);
    unsigned count = 0;

    for (unsigned i = 0; two && i < pairs->count; i++) {
        unsigned other = shk_pairs_partner(pairs->count, round, i);

        if (other > i) {
            two[count][0] = i;
            two[count++][1] = other;
        }
    }
    if (two)
        pairs_run(trial, pairs, two, count);
    free(two);
}

static bool pairs_works(const struct pairs *pairs, unsigned node)
{
    return pairs->nodes[node].tried > pairs->nodes[node].failed;
}

/* Never worked, also not with one that works with others: what fails only with nodes that fail
 * everywhere may be as good as any. */
static bool pairs_bad(const struct pairs *pairs, unsigned node)
{
    if (pairs_works(pairs, node))
        return false;
    for (size_t i = 0; i < pairs->failed_count; i++) {
        const unsigned *two = pairs->failed[i];

        if ((two[0] == node && pairs_works(pairs, two[1])) ||
            (two[1] == node && pairs_works(pairs, two[0]))) {
            return true;
        }
    }
    return false;
}

/* Nodes that met only such as fail everywhere: each with one that works. */
static void pairs_round_open(const struct pairs_trial *trial, struct pairs *pairs)
{
    unsigned(*two)[2] = calloc(pairs->count + 1, sizeof *two);
    unsigned with = 0;
    unsigned count = 0;

    for (unsigned i = 0; two && i < pairs->count; i++) {
        if (pairs_works(pairs, i) || pairs_bad(pairs, i))
            continue;
        while (with < pairs->count && !pairs_works(pairs, with))
            with++;
        if (with < pairs->count) {
            two[count][0] = i;
            two[count++][1] = with++;
        }
    }
    if (count > 0) {
        world_say(trial->world, "pairs of nodes, those that are open");
        pairs_run(trial, pairs, two, count);
    }
    free(two);
}

/* Nodes at fault: those whose every pair failed while others' passed, else the two ends of pairs
 * that failed. */
static json_t *pairs_blame(const struct pairs *pairs, const char **how_p)
{
    json_t *names = json_array();
    unsigned bad = 0;
    unsigned some = 0;

    for (unsigned i = 0; i < pairs->count; i++) {
        bad += pairs_bad(pairs, i);
        some += pairs_works(pairs, i) && pairs->nodes[i].failed > 0;
    }
    *how_p = bad > 0    ? "cannot work with any other node"
             : some > 0 ? "fail with each other, work with other nodes"
                        : NULL;
    for (unsigned i = 0; i < pairs->count && *how_p != NULL; i++) {
        const struct pairs_node *node = &pairs->nodes[i];

        if (bad > 0 ? pairs_bad(pairs, i) : pairs_works(pairs, i) && node->failed > 0)
            (void)json_array_append_new(names, json_string(node->member->host));
    }
    return names;
}

int hub_pairs(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, enum shk_phase hang, uint64_t end_ns,
              struct hub_pairs *found)
{
    struct pairs_trial trial = {world, transport, *options, end_ns};
    struct pairs pairs = {.hang = hang};
    unsigned round = 0;

    trial.options.progress = NULL;
    trial.options.min_bytes = PAIRS_BYTES;
    trial.options.max_bytes = PAIRS_BYTES;
    *found = (struct hub_pairs){0};
    if (pairs_collect(world, &pairs) < 0) {
        free(pairs.nodes);
        free(pairs.failed);
        json_decref(pairs.rows);
        return -1;
    }
    for (round = 0; round < shk_pairs_rounds(pairs.count) &&
                    shk_job_now_ns() + trial.options.deadline_ms * 1000000ULL < end_ns;
         round++) {
        world_say(world, "pairs of nodes, round %u", round + 1);
        pairs_round(&trial, &pairs, round);
    }
    if (shk_job_now_ns() + trial.options.deadline_ms * 1000000ULL < end_ns)
        pairs_round_open(&trial, &pairs);
    found->rounds = round;
    found->nodes = pairs_blame(&pairs, &found->how);
    found->rows = pairs.rows;
    free(pairs.nodes);
    free(pairs.failed);
    return found->nodes ? 0 : -1;
}
