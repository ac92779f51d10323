/* Slow nodes and slow pairs of nodes: what their first ranks measure in one run, two at a time. */
#include "collectives/algorithm/outlier.h"
#include "collectives/algorithm/pairs.h"
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* Rows of single pairs in the facts: a job of 22 nodes in full. */
#define SPEED_ROWS 64U

/* More outliers than this are named by the first of them. */
#define SPEED_SLOW 32U

enum speed_metric {
    SPEED_LATENCY,   /* the fastest ping-pong */
    SPEED_BANDWIDTH, /* the median */
    SPEED_MEAN,      /* over all parts of a run: what stalls now and then */
    SPEED_METRICS
};

struct speed_pair {
    unsigned a, b;
    double cost[SPEED_METRICS]; /* us; ns per byte, twice: lower is better, 0 is not known */
    double wait[SPEED_METRICS]; /* of that the ranks may have waited for a CPU: not the network's */
};

/* A node (b is a) or a pair that is slow. */
struct speed_slow {
    unsigned a, b;
    enum speed_metric metric;
    double cost, median;
};

struct speed {
    struct hub_member **nodes;
    unsigned count;
    struct speed_pair *pairs;
    unsigned pairs_count;
    double *best, *calm, *rest; /* room for values of nodes (calm: without waits), of pairs */
    struct shk_outlier of_pairs[SPEED_METRICS];
    struct speed_slow slow[SPEED_SLOW];
    unsigned slow_count;
    struct shk_error why; /* not measured */
};

/* What both ends of a pair measured in a round, in one part or (SPEED_MEAN) in all of them. */
static void speed_fill(struct speed_pair *pair, const struct shk_pairs_result *mine,
                       const struct shk_pairs_result *other, unsigned round, unsigned part)
{
    double slower = mine->round[part][round].bandwidth < other->round[part][round].bandwidth
                        ? mine->round[part][round].bandwidth
                        : other->round[part][round].bandwidth;
    double mean = mine->round[part][round].mean_us > other->round[part][round].mean_us
                      ? mine->round[part][round].mean_us
                      : other->round[part][round].mean_us;
    double put_wait = mine->round[part][round].put_wait_us > other->round[part][round].put_wait_us
                          ? mine->round[part][round].put_wait_us
                          : other->round[part][round].put_wait_us;

    put_wait = put_wait * 1000 / (double)SHK_PAIRS_BYTES;
    /* The rank that began the ping-pong has timed all of it. */
    pair->cost[SPEED_LATENCY] = mine->round[part][round].latency_us;
    pair->wait[SPEED_LATENCY] =
        mine->round[part][round].ping_wait_us + other->round[part][round].ping_wait_us;
    pair->cost[SPEED_BANDWIDTH] = slower > 0 ? 1 / slower : 0;
    pair->wait[SPEED_BANDWIDTH] = put_wait;
    pair->cost[SPEED_MEAN] += mean * 1000 / (double)SHK_PAIRS_BYTES / SHK_PAIRS_PARTS;
    pair->wait[SPEED_MEAN] += put_wait / SHK_PAIRS_PARTS;
}

/* One part of what the ranks measured; the means are those of the run. */
static void speed_take(struct speed *speed, const struct hub_group *group, unsigned part)
{
    unsigned round = 0;
    unsigned i = 0;

    speed->pairs_count = 0;
    for (round = 0; round < shk_pairs_rounds(speed->count); round++) {
        for (i = 0; i < speed->count; i++) {
            unsigned peer = shk_pairs_partner(speed->count, round, i);
            const struct shk_pairs_result *mine = shk_job_result(group->job, i);
            const struct shk_pairs_result *other = shk_job_result(group->job, peer);
            struct speed_pair pair = {.a = i, .b = peer};
            unsigned k = 0;

            if (peer > i && mine->done && other->done) {
                for (k = 1; k <= SHK_PAIRS_PARTS; k++) {
                    speed_fill(&pair, mine, other, round, (part + k) % SHK_PAIRS_PARTS);
                }
                speed->pairs[speed->pairs_count++] = pair;
            }
        }
    }
}

static bool speed_node_slow(const struct speed *speed, enum speed_metric metric, unsigned node)
{
    unsigned i = 0;

    for (i = 0; i < speed->slow_count; i++) {
        const struct speed_slow *slow = &speed->slow[i];

        if (slow->a == slow->b && slow->a == node && slow->metric == metric) {
            return true;
        }
    }
    return false;
}

static void speed_add(struct speed *speed, enum speed_metric metric, unsigned a, unsigned b,
                      double cost, double median)
{
    if (speed->slow_count < SPEED_SLOW) {
        speed->slow[speed->slow_count++] =
            (struct speed_slow){.a = a, .b = b, .metric = metric, .cost = cost, .median = median};
    }
}

/* Without the time for which the ranks waited for a CPU. While the network is slow they poll and
 * give up the CPU to others, so of the time of a large message it is never more than a half. */
static double speed_calm(const struct speed_pair *pair, enum speed_metric metric)
{
    double most = metric == SPEED_LATENCY ? pair->cost[metric] : pair->cost[metric] / 2;
    double wait = pair->wait[metric] < most ? pair->wait[metric] : most;

    return pair->cost[metric] > wait ? pair->cost[metric] - wait : DBL_MIN;
}

/* A node is as good as its best pair; a pair counts only where its ends are not slow by
 * themselves. */
static bool speed_judge(struct speed *speed, enum speed_metric metric)
{
    struct shk_outlier nodes;
    unsigned i = 0;

    memset(speed->best, 0, speed->count * sizeof(*speed->best));
    memset(speed->calm, 0, speed->count * sizeof(*speed->calm));
    for (i = 0; i < speed->pairs_count; i++) {
        const struct speed_pair *pair = &speed->pairs[i];
        double calm = speed_calm(pair, metric);
        unsigned two[2] = {pair->a, pair->b};
        unsigned k = 0;

        for (k = 0; k < 2 && pair->cost[metric] > 0; k++) {
            if (speed->best[two[k]] <= 0 || pair->cost[metric] < speed->best[two[k]]) {
                speed->best[two[k]] = pair->cost[metric];
            }
            if (speed->calm[two[k]] <= 0 || calm < speed->calm[two[k]]) {
                speed->calm[two[k]] = calm;
            }
        }
    }
    if (!shk_outlier_of(speed->best, speed->count, &nodes)) {
        return false;
    }
    for (i = 0; i < speed->count; i++) {
        if (nodes.limit > 0 && speed->calm[i] > nodes.limit) {
            speed_add(speed, metric, i, i, speed->best[i], nodes.median);
        }
    }
    for (i = 0; i < speed->pairs_count; i++) {
        const struct speed_pair *pair = &speed->pairs[i];
        bool counts =
            !speed_node_slow(speed, metric, pair->a) && !speed_node_slow(speed, metric, pair->b);

        speed->rest[i] = counts ? pair->cost[metric] : 0;
    }
    if (!shk_outlier_of(speed->rest, speed->pairs_count, &speed->of_pairs[metric])) {
        return false;
    }
    for (i = 0; i < speed->pairs_count; i++) {
        const struct shk_outlier *o = &speed->of_pairs[metric];

        if (o->limit > 0 && speed->rest[i] > 0 && speed_calm(&speed->pairs[i], metric) > o->limit) {
            speed_add(speed, metric, speed->pairs[i].a, speed->pairs[i].b, speed->rest[i],
                      o->median);
        }
    }
    return true;
}

/* Keeps what was slow before as well: what passes by does not come every time. */
static void speed_confirm(struct speed *speed, const struct speed_slow *before, unsigned count)
{
    unsigned kept = 0;
    unsigned i = 0;
    unsigned k = 0;

    for (i = 0; i < speed->slow_count; i++) {
        const struct speed_slow *slow = &speed->slow[i];

        for (k = 0; k < count; k++) {
            if (before[k].a == slow->a && before[k].b == slow->b &&
                before[k].metric == slow->metric) {
                speed->slow[kept++] = *slow;
                break;
            }
        }
    }
    speed->slow_count = kept;
}

/* What is slow in every part of one run. */
static bool speed_judge_all(struct speed *speed, const struct hub_group *group)
{
    struct speed_slow before[SPEED_SLOW];
    unsigned count = 0;
    unsigned part = 0;

    for (part = 0; part < SHK_PAIRS_PARTS; part++) {
        memcpy(before, speed->slow, sizeof(before));
        count = speed->slow_count;
        speed->slow_count = 0;
        speed_take(speed, group, part);
        if (!speed_judge(speed, SPEED_LATENCY) || !speed_judge(speed, SPEED_BANDWIDTH)) {
            (void)shk_error_set(&speed->why, ENOMEM, "out of memory");
            return false;
        }
        if (part > 0) {
            speed_confirm(speed, before, count);
        }
    }
    if (!speed_judge(speed, SPEED_MEAN)) {
        (void)shk_error_set(&speed->why, ENOMEM, "out of memory");
        return false;
    }
    return true;
}

static bool speed_run(struct shk_world *world, struct speed *speed,
                      const struct shk_transport *transport,
                      const struct shk_collective_options *options)
{
    struct shk_collective_options how = *options;
    struct hub_group *group = NULL;

    how.pairs = true;
    how.progress = NULL;
    how.min_bytes = how.max_bytes = SHK_PAIRS_BYTES;
    world_say(world, "speed of pairs of nodes");
    group = hub_group_start(world, speed->nodes, speed->count, transport, &how, &speed->why);
    if (group == NULL) {
        return false;
    }
    hub_groups_finish(world, &group, 1);
    hub_net_add(world, group, "pairs");
    if (group->result.outcome != SHK_CREW_OK) {
        speed->why = group->result.reason;
    } else {
        (void)speed_judge_all(speed, group);
    }
    hub_group_free(group);
    return speed->why.text[0] == '\0';
}

/* Packets were lost so far: whether by chance shows when it is measured again. */
static bool speed_lossy(const struct shk_world *world)
{
    struct shk_loss loss;
    bool lossy = false;

    if (shk_loss_of(world->net, &loss) == 0) {
        lossy = json_array_size(loss.nodes) > 0 || json_array_size(loss.rest) > 0;
        shk_loss_clear(&loss);
    }
    return lossy;
}

static bool speed_measure(struct shk_world *world, struct speed *speed,
                          const struct shk_transport *transport,
                          const struct shk_collective_options *options, uint64_t end_ns)
{
    struct speed_slow before[SPEED_SLOW];
    unsigned count = 0;

    if (!speed_run(world, speed, transport, options)) {
        return false;
    }
    count = speed->slow_count;
    memcpy(before, speed->slow, sizeof(before));
    if (count == 0 && !speed_lossy(world)) {
        return true;
    }
    if (shk_job_now_ns() + options->deadline_ms * 1000000ULL > end_ns) {
        (void)shk_error_set(&speed->why, ETIMEDOUT,
                            "no time was left to measure again what seemed slow");
        return false;
    }
    if (!speed_run(world, speed, transport, options)) {
        return false;
    }
    speed_confirm(speed, before, count);
    return true;
}

static double speed_show(enum speed_metric metric, double cost)
{
    return metric == SPEED_BANDWIDTH && cost > 0 ? 1 / cost
           : metric == SPEED_MEAN                ? cost * (double)SHK_PAIRS_BYTES / 1e6
                                                 : cost;
}

static json_t *speed_spread(const struct speed *speed, enum speed_metric metric)
{
    const struct shk_outlier *o = &speed->of_pairs[metric];

    /* To first order the spread of 1/x is that of x by the square of the median. */
    return json_pack("{s:f, s:f}", "median", speed_show(metric, o->median), "mad",
                     metric == SPEED_BANDWIDTH && o->median > 0 ? o->mad / (o->median * o->median)
                                                                : speed_show(metric, o->mad));
}

static json_t *speed_rows(const struct speed *speed)
{
    json_t *rows = json_array();
    unsigned i = 0;

    for (i = 0; i < speed->pairs_count && i < SPEED_ROWS; i++) {
        const struct speed_pair *pair = &speed->pairs[i];

        (void)json_array_append_new(
            rows, json_pack("{s:s, s:s, s:f, s:f, s:f}", "a", speed->nodes[pair->a]->host, "b",
                            speed->nodes[pair->b]->host, "latency_us", pair->cost[SPEED_LATENCY],
                            "bandwidth", speed_show(SPEED_BANDWIDTH, pair->cost[SPEED_BANDWIDTH]),
                            "mean_ms", speed_show(SPEED_MEAN, pair->cost[SPEED_MEAN])));
    }
    return rows;
}

static void speed_name(json_t *names, const char *name)
{
    if (!shk_loss_names(names, name)) {
        (void)json_array_append_new(names, json_string(name));
    }
}

static json_t *speed_json(const struct speed *speed, const struct hub_speed *found)
{
    static const char *const names_of[SPEED_METRICS] = {"latency_us", "bandwidth", "mean_ms"};
    json_t *slow = json_array();
    unsigned i = 0;

    for (i = 0; i < speed->slow_count; i++) {
        const struct speed_slow *s = &speed->slow[i];
        const char *a = speed->nodes[s->a]->host;
        json_t *nodes = json_pack("[s]", a);

        speed_name(s->a == s->b ? found->nodes : found->ends, a);
        if (s->a != s->b) {
            (void)json_array_append_new(nodes, json_string(speed->nodes[s->b]->host));
            speed_name(found->ends, speed->nodes[s->b]->host);
        }
        (void)json_array_append_new(slow, json_pack("{s:o, s:s, s:f, s:f}", "nodes", nodes, "what",
                                                    names_of[s->metric], "value",
                                                    speed_show(s->metric, s->cost), "median",
                                                    speed_show(s->metric, s->median)));
    }
    return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "nodes", (int)speed->count, "pairs",
                     (int)speed->pairs_count, "latency_us", speed_spread(speed, SPEED_LATENCY),
                     "bandwidth", speed_spread(speed, SPEED_BANDWIDTH), "mean_ms",
                     speed_spread(speed, SPEED_MEAN), "slow", slow, "rows", speed_rows(speed));
}

int hub_speed(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, uint64_t end_ns,
              struct hub_speed *found)
{
    size_t most = (world->nodes_count + 1) * SHK_PAIRS_ROUNDS;
    struct speed speed = {
        .nodes = calloc(world->nodes_count + 1, sizeof(*speed.nodes)),
        .pairs = calloc(most, sizeof(*speed.pairs)),
        .best = calloc(world->nodes_count + 1, sizeof(*speed.best)),
        .calm = calloc(world->nodes_count + 1, sizeof(*speed.calm)),
        .rest = calloc(most, sizeof(*speed.rest)),
    };
    int rc = -1;

    *found = (struct hub_speed){.nodes = json_array(), .ends = json_array()};
    if (speed.nodes != NULL && speed.pairs != NULL && speed.best != NULL && speed.calm != NULL &&
        speed.rest != NULL && found->nodes != NULL && found->ends != NULL) {
        speed.count = hub_leaders(world, speed.nodes);
        rc = 0;
    }
    if (rc == 0 && speed.count < SHK_OUTLIER_MIN) {
        rc = 0; /* two nodes: neither is the odd one */
    } else if (rc == 0 && speed_measure(world, &speed, transport, options, end_ns)) {
        found->summary = speed_json(&speed, found);
    } else if (rc == 0) {
        found->why = speed.why;
    }
    free(speed.nodes);
    free(speed.pairs);
    free(speed.best);
    free(speed.calm);
    free(speed.rest);
    return rc;
}

void hub_speed_clear(struct hub_speed *found)
{
    json_decref(found->summary);
    json_decref(found->nodes);
    json_decref(found->ends);
    *found = (struct hub_speed){0};
}
