/* How fast pairs of nodes are: what their first ranks measure in one run, two at a time. Which of
 * them are slow is judged elsewhere (core/job/pairspeed.h); what may be is measured again. */
#include "collectives/algorithm/pairs.h"
#include "collectives/launch/world_private.h"
#include "core/job/loss.h"
#include "core/job/outlier.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What seemed slow once is measured once more. */
#define SPEED_RUNS 2U

struct speed {
    struct hub_member **nodes;
    unsigned count;
    json_t *rows; /* [{a, b, latency_us, bandwidth, mean_ms, runs}] */
    json_t **row; /* of rows, by round and node; NULL: that pair was not measured. Borrowed */
    unsigned runs;
    struct shk_error why; /* not measured */
};

/* To four digits: what a measurement is worth, and short in the report. */
static json_t *speed_number(double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.4g", isfinite(value) ? value : 0);
    return json_real(strtod(text, NULL));
}

static void speed_add(json_t *object, const char *member, double value)
{
    json_t *array = json_object_get(object, member);

    if (!array) {
        array = json_array();
        (void)json_object_set_new(object, member, array);
    }
    (void)json_array_append_new(array, speed_number(value));
}

static double speed_less(double a, double b)
{
    return a < b ? a : b;
}

static double speed_more(double a, double b)
{
    return a > b ? a : b;
}

/* What both ends of a pair measured in a round, in all parts of a run. */
static json_t *speed_run_json(const struct shk_pairs_result *mine,
                              const struct shk_pairs_result *other, unsigned round)
{
    json_t *run = json_object();

    for (unsigned part = 0; part < SHK_PAIRS_PARTS; part++) {
        /* The rank that began the ping-pong has timed all of it. */
        speed_add(run, "latency_us", mine->round[part][round].latency_us);
        speed_add(run, "ping_wait_us",
                  mine->round[part][round].ping_wait_us + other->round[part][round].ping_wait_us);
        speed_add(
            run, "bandwidth",
            speed_less(mine->round[part][round].bandwidth, other->round[part][round].bandwidth));
        speed_add(run, "mean_us",
                  speed_more(mine->round[part][round].mean_us, other->round[part][round].mean_us));
        speed_add(run, "put_wait_us",
                  speed_more(mine->round[part][round].put_wait_us,
                             other->round[part][round].put_wait_us));
    }
    return run;
}

static double speed_last(const json_t *run, const char *member)
{
    return json_number_value(json_array_get(json_object_get(run, member), SHK_PAIRS_PARTS - 1));
}

static double speed_mean(const json_t *run)
{
    double sum = 0;

    for (unsigned part = 0; part < SHK_PAIRS_PARTS; part++)
        sum += json_number_value(json_array_get(json_object_get(run, "mean_us"), part));
    return sum / SHK_PAIRS_PARTS;
}

/* A row for each pair that the first run measured; in a later one it may be missing. */
static void speed_keep(struct speed *speed, json_t **row_p, unsigned a, unsigned b, json_t *run)
{
    if (!*row_p && speed->runs == 0 && run) {
        *row_p = json_pack("{s:s, s:s, s:[]}", "a", speed->nodes[a]->host, "b",
                           speed->nodes[b]->host, "runs");
        (void)json_array_append_new(speed->rows, *row_p);
    }
    if (*row_p && run) {
        (void)json_object_set_new(*row_p, "latency_us", json_real(speed_last(run, "latency_us")));
        (void)json_object_set_new(*row_p, "bandwidth", json_real(speed_last(run, "bandwidth")));
        (void)json_object_set_new(*row_p, "mean_ms", speed_number(speed_mean(run) / 1000));
    }
    (void)json_array_append(json_object_get(*row_p, "runs"), run ? run : json_null());
}

static void speed_take(struct speed *speed, const struct hub_group *group)
{
    for (unsigned round = 0; round < shk_pairs_rounds(speed->count); round++) {
        for (unsigned i = 0; i < speed->count; i++) {
            unsigned peer = shk_pairs_partner(speed->count, round, i);
            const struct shk_pairs_result *mine = shk_job_result(group->job, i);
            const struct shk_pairs_result *other = shk_job_result(group->job, peer);

            if (peer > i) {
                json_t *run = mine->done && other->done ? speed_run_json(mine, other, round) : NULL;

                speed_keep(speed, &speed->row[round * speed->count + i], i, peer, run);
                json_decref(run);
            }
        }
    }
    speed->runs++;
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
    if (!group)
        return false;
    hub_groups_finish(world, &group, 1);
    hub_net_add(world, group, "pairs");
    if (group->result.outcome != SHK_CREW_OK)
        speed->why = group->result.reason;
    else
        speed_take(speed, group);
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

static json_t *speed_json(const struct speed *speed)
{
    return json_pack("{s:i, s:i, s:i, s:I, s:O}", "nodes", (int)speed->count, "pairs",
                     (int)json_array_size(speed->rows), "runs", (int)speed->runs, "bytes",
                     (json_int_t)SHK_PAIRS_BYTES, "rows", speed->rows);
}

/* Runs it once, and once more where that seems worth while. Found: as after the last of them. */
static int speed_measure(struct shk_world *world, struct speed *speed,
                         const struct shk_transport *transport,
                         const struct shk_collective_options *options, uint64_t end_ns,
                         struct hub_speed *found)
{
    int rc = 0;

    while (speed->runs < SPEED_RUNS && rc == 0 && speed_run(world, speed, transport, options)) {
        shk_pairspeed_clear(&found->judged);
        json_decref(found->summary);
        found->summary = speed_json(speed);
        rc = found->summary ? shk_pairspeed_of(found->summary, &found->judged) : -ENOMEM;
        if (rc == 0 && json_array_size(found->judged.slow) == 0 &&
            (speed->runs > 1 || !speed_lossy(world))) {
            return 0;
        }
        if (rc == 0 && speed->runs < SPEED_RUNS &&
            shk_job_now_ns() + options->deadline_ms * 1000000ULL > end_ns) {
            (void)shk_error_set(&speed->why, ETIMEDOUT,
                                "no time was left to measure again what seemed slow");
            break;
        }
    }
    if (speed->why.text[0] != '\0')
        hub_speed_clear(found);
    return rc;
}

int hub_speed(struct shk_world *world, const struct shk_transport *transport,
              const struct shk_collective_options *options, uint64_t end_ns,
              struct hub_speed *found)
{
    struct speed speed = {
        .nodes = calloc(world->nodes_count + 1, sizeof *speed.nodes),
        .row = calloc((world->nodes_count + 1) * SHK_PAIRS_ROUNDS, sizeof *speed.row),
        .rows = json_array(),
    };
    int rc = -1;

    *found = (struct hub_speed){.summary = NULL};
    if (speed.nodes && speed.row && speed.rows) {
        speed.count = hub_leaders(world, speed.nodes);
        /* of two nodes neither is the odd one */
        rc = speed.count < SHK_OUTLIER_MIN
                 ? 0
                 : speed_measure(world, &speed, transport, options, end_ns, found);
        found->why = speed.why;
    }
    json_decref(speed.rows);
    free(speed.nodes);
    free(speed.row);
    return rc;
}

void hub_speed_clear(struct hub_speed *found)
{
    json_decref(found->summary);
    shk_pairspeed_clear(&found->judged);
    *found = (struct hub_speed){0};
}
