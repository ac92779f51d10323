/* Which node or pair is at fault, when an all-reduce over all of them does not say: all-reduces
 * between two ranks of different nodes, half as many at once as there are nodes. */
#include "collectives/world_private.h"
#include <stdlib.h>
#include <string.h>

/* Rounds of pairs: each node meets this many others at most. */
#define PAIRS_ROUNDS 3U

/* Enough to connect and exchange some messages, also on a crowded machine. */
#define PAIRS_DEADLINE_MS 5000U
#define PAIRS_BYTES       ((size_t)65536)

/* A node is slow when even its best pair takes longer than the median of the nodes' best by this
 * many median absolute deviations, and by half of the median: times include opening the library. */
#define PAIRS_DEVIATIONS 5.0

struct pairs_node {
    struct hub_member *member;
    unsigned tried, failed;
    double best_ms; /* 0: none passed */
};

struct pairs {
    struct pairs_node *nodes;
    unsigned count;
    json_t *rows; /* [{a, b, ok, ms, reason}] */
};

static int pairs_collect(struct shk_world *world, struct pairs *pairs)
{
    size_t i = 0;

    pairs->nodes = calloc(world->nodes_count + 1, sizeof(*pairs->nodes));
    for (i = 0; pairs->nodes != NULL && i < world->nodes_count; i++) {
        unsigned leader = world->nodes[i].leader;

        if (leader < world->size && world->members[leader].state == MEMBER_IDLE) {
            pairs->nodes[pairs->count++].member = &world->members[leader];
        }
    }
    pairs->rows = json_array();
    return pairs->nodes != NULL && pairs->rows != NULL ? 0 : -1;
}

static void pairs_note(struct pairs *pairs, const struct hub_group *group, unsigned a, unsigned b)
{
    bool ok = group->result.outcome == SHK_CREW_OK;
    double ms = (double)(group->over_ns - group->crew.start_ns) / 1e6;
    struct pairs_node *two[2] = {&pairs->nodes[a], &pairs->nodes[b]};
    unsigned i = 0;

    for (i = 0; i < 2; i++) {
        two[i]->tried++;
        two[i]->failed += !ok;
        if (ok && (two[i]->best_ms == 0 || ms < two[i]->best_ms)) {
            two[i]->best_ms = ms;
        }
    }
    (void)json_array_append_new(pairs->rows,
                                json_pack("{s:s, s:s, s:b, s:f, s:s}", "a", two[0]->member->host,
                                          "b", two[1]->member->host, "ok", ok, "ms", ms, "reason",
                                          group->result.reason.text));
}

/* One round: node i with the one `step` further on, those first that have met nobody in it. */
static void pairs_round(struct shk_world *world, struct pairs *pairs, unsigned step,
                        const struct shk_transport *transport,
                        const struct shk_collective_options *options)
{
    struct hub_group **groups = calloc(pairs->count, sizeof(*groups));
    unsigned(*ends)[2] = calloc(pairs->count, sizeof(*ends));
    bool *busy = calloc(pairs->count, sizeof(*busy));
    size_t count = 0;
    size_t i = 0;

    for (i = 0; groups != NULL && ends != NULL && busy != NULL && i < pairs->count; i++) {
        unsigned other = (unsigned)((i + step) % pairs->count);
        struct hub_member *two[2] = {pairs->nodes[i].member, pairs->nodes[other].member};

        if (busy[i] || busy[other] || other == i || two[0]->state != MEMBER_IDLE ||
            two[1]->state != MEMBER_IDLE) {
            continue;
        }
        busy[i] = busy[other] = true;
        ends[count][0] = (unsigned)i;
        ends[count][1] = other;
        groups[count] = hub_group_start(world, two, 2, transport, options, NULL);
        count += groups[count] != NULL;
    }
    hub_groups_finish(world, groups, count);
    for (i = 0; i < count; i++) {
        pairs_note(pairs, groups[i], ends[i][0], ends[i][1]);
        hub_group_free(groups[i]);
    }
    free(groups);
    free(ends);
    free(busy);
}

static int pairs_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double pairs_median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), pairs_compare);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Above this a node's best time is slow; 0: too few nodes to tell. */
static double pairs_limit(const struct pairs *pairs)
{
    double *values = calloc(pairs->count, sizeof(*values));
    double median = 0;
    double deviation = 0;
    unsigned n = 0;
    unsigned i = 0;

    for (i = 0; values != NULL && i < pairs->count; i++) {
        if (pairs->nodes[i].best_ms > 0) {
            values[n++] = pairs->nodes[i].best_ms;
        }
    }
    if (n < 3) {
        free(values);
        return 0;
    }
    median = pairs_median(values, n);
    for (i = 0; i < n; i++) {
        values[i] = values[i] > median ? values[i] - median : median - values[i];
    }
    deviation = PAIRS_DEVIATIONS * pairs_median(values, n);
    free(values);
    return median + (deviation > median / 2 ? deviation : median / 2);
}

/* Nodes at fault: those whose every pair failed while others' passed, else the slow ones; else the
 * two ends of the only pair that failed. */
static json_t *pairs_blame(const struct pairs *pairs, const char **how_p)
{
    json_t *names = json_array();
    double limit = pairs_limit(pairs);
    unsigned bad = 0;
    unsigned slow = 0;
    unsigned good = 0;
    unsigned some = 0;
    unsigned i = 0;

    for (i = 0; i < pairs->count; i++) {
        const struct pairs_node *node = &pairs->nodes[i];

        bad += node->tried > 0 && node->failed == node->tried;
        good += node->tried > node->failed;
        some += node->failed > 0;
        slow += limit > 0 && node->best_ms > limit;
    }
    *how_p = good == 0  ? NULL
             : bad > 0  ? "no other node can work with it"
             : some > 0 ? "fails in a pair, works with others"
             : slow > 0 ? "slower than the others in every pair"
                        : NULL;
    for (i = 0; i < pairs->count && *how_p != NULL; i++) {
        const struct pairs_node *node = &pairs->nodes[i];

        if (bad > 0    ? node->tried > 0 && node->failed == node->tried
            : some > 0 ? node->failed > 0
                       : node->best_ms > limit) {
            (void)json_array_append_new(names, json_string(node->member->host));
        }
    }
    return names;
}

int hub_pairs(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, json_t **nodes_p, json_t **rows_p,
              const char **how_p)
{
    struct shk_collective_options small = *options;
    struct pairs pairs = {0};
    unsigned step = 0;

    small.progress = NULL;
    small.min_bytes = PAIRS_BYTES;
    small.max_bytes = PAIRS_BYTES;
    small.deadline_ms =
        options->deadline_ms < PAIRS_DEADLINE_MS ? options->deadline_ms : PAIRS_DEADLINE_MS;
    *how_p = NULL;
    *nodes_p = NULL;
    if (pairs_collect(world, &pairs) < 0) {
        free(pairs.nodes);
        json_decref(pairs.rows);
        return -1;
    }
    for (step = 1; step <= PAIRS_ROUNDS && step < pairs.count; step++) {
        world_say(world, "pairs of nodes, round %u", step);
        pairs_round(world, &pairs, step, transport, &small);
    }
    if (pairs.count % 2 != 0 && pairs.count > 1) {
        /* The node that was left over in every round. */
        pairs_round(world, &pairs, pairs.count - 1, transport, &small);
    }
    *nodes_p = pairs_blame(&pairs, how_p);
    *rows_p = pairs.rows;
    free(pairs.nodes);
    return 0;
}
