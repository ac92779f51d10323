#include "core/job/pairspeed.h"
#include "core/job/loss.h"
#include "core/job/outlier.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* More outliers than this are named by the first of them. */
#define SPEED_SLOW 32U

/* Parts of a run, and runs: none has more. */
#define SPEED_PARTS 16U
#define SPEED_RUNS  8U

enum speed_metric {
    SPEED_LATENCY,   /* the fastest ping-pong, us */
    SPEED_BANDWIDTH, /* the median, ns per byte */
    SPEED_MEAN,      /* over all parts of a run, us: what stalls now and then */
    SPEED_METRICS
};

struct speed_pair {
    unsigned a, b;
    double cost[SPEED_METRICS]; /* lower is better, 0 is not known */
    double wait[SPEED_METRICS]; /* of that the ranks may have waited for a CPU: not the network's */
};

/* A node (b is a) or a pair that is slow. */
struct speed_slow {
    unsigned a, b;
    enum speed_metric metric;
    double cost, median;
};

struct speed_list {
    struct speed_slow of[SPEED_SLOW];
    unsigned count;
};

struct speed {
    const json_t *rows;
    double bytes;
    unsigned runs, parts, nodes;
    const char **names;
    struct speed_pair *pairs;
    unsigned pairs_count;
    double *best, *calm, *rest; /* room for values of nodes (calm: without waits), of pairs */
    struct shk_outlier of_pairs[SPEED_METRICS];
    struct speed_list slow;
};

static const char *const speed_names[SPEED_METRICS] = {"latency_us", "bandwidth", "mean_ms"};

static double speed_number(const json_t *run, const char *member, unsigned part)
{
    return json_number_value(json_array_get(json_object_get(run, member), part));
}

/* Is this a run of a pair, with so many parts? `parts_p` 0: any number, which it becomes. */
static bool speed_is_run(const json_t *run, unsigned *parts_p)
{
    static const char *const members[] = {"latency_us", "ping_wait_us", "bandwidth", "mean_us",
                                          "put_wait_us"};
    for (size_t m = 0; m < sizeof members / sizeof *members; m++) {
        const json_t *array = json_object_get(run, members[m]);
        size_t parts = json_array_size(array);
        *parts_p = *parts_p ? *parts_p : (unsigned)parts;
        if (!parts || parts > SPEED_PARTS || parts != *parts_p)
            return false;
        for (size_t i = 0; i < parts; i++)
            if (!json_is_number(json_array_get(array, i)))
                return false;
    }
    return true;
}

/* Index of a node, by its name. */
static bool speed_node(struct speed *speed, json_t *known, const json_t *name)
{
    if (!json_is_string(name))
        return false;
    if (!json_object_get(known, json_string_value(name))) {
        speed->names[speed->nodes] = json_string_value(name);
        json_object_set_new_nocheck(known, json_string_value(name), json_integer(speed->nodes++));
    }
    return true;
}

static bool speed_is_row(struct speed *speed, json_t *known, const json_t *row,
                         struct speed_pair *pair)
{
    const json_t *runs = json_object_get(row, "runs"), *a = json_object_get(row, "a"),
                 *b = json_object_get(row, "b");
    if (!speed_node(speed, known, a) || !speed_node(speed, known, b) ||
        json_array_size(runs) != speed->runs)
        return false;
    pair->a = (unsigned)json_integer_value(json_object_get(known, json_string_value(a)));
    pair->b = (unsigned)json_integer_value(json_object_get(known, json_string_value(b)));
    if (pair->a == pair->b)
        return false;
    for (unsigned i = 0; i < speed->runs; i++) {
        const json_t *run = json_array_get(runs, i);
        if (!json_is_null(run) && !speed_is_run(run, &speed->parts))
            return false;
    }
    return true;
}

/* Looks at the whole document; what it is about is known afterwards. */
static int speed_read(struct speed *speed, const json_t *measured)
{
    const json_t *pairs = json_object_get(measured, "pairs"),
                 *runs = json_object_get(measured, "runs"), *row;
    json_t *known = json_object();
    size_t i, count = json_array_size(json_object_get(measured, "rows"));
    speed->rows = json_object_get(measured, "rows");
    speed->bytes = json_number_value(json_object_get(measured, "bytes"));
    speed->names = calloc(2 * count + 1, sizeof *speed->names);
    speed->pairs = calloc(2 * count + 1, sizeof *speed->pairs); /* the document's, one run's */
    speed->best = calloc(2 * count + 1, sizeof *speed->best);
    speed->calm = calloc(2 * count + 1, sizeof *speed->calm);
    speed->rest = calloc(count + 1, sizeof *speed->rest);
    if (!known || !speed->names || !speed->pairs || !speed->best || !speed->calm || !speed->rest) {
        json_decref(known);
        return -ENOMEM;
    }
    bool ok = json_is_array(speed->rows) && json_is_integer(pairs) && json_is_integer(runs) &&
              json_integer_value(pairs) == (json_int_t)count && json_integer_value(runs) > 0 &&
              json_integer_value(runs) <= SPEED_RUNS && speed->bytes > 0;
    speed->runs = ok ? (unsigned)json_integer_value(runs) : 0;
    json_array_foreach((json_t *)speed->rows, i, row) ok =
        ok && speed_is_row(speed, known, row, &speed->pairs[count + i]);
    json_decref(known);
    return ok ? 0 : -EINVAL;
}

/* One part of a run; the means are those of the run. */
static void speed_take(struct speed *speed, unsigned run_index, unsigned part)
{
    size_t count = json_array_size(speed->rows);
    speed->pairs_count = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(speed->rows, i),
                     *run = json_array_get(json_object_get(row, "runs"), run_index);
        struct speed_pair pair = speed->pairs[count + i];
        double rate = speed_number(run, "bandwidth", part);
        if (json_is_null(run))
            continue;
        pair.cost[SPEED_LATENCY] = speed_number(run, "latency_us", part);
        pair.wait[SPEED_LATENCY] = speed_number(run, "ping_wait_us", part);
        pair.cost[SPEED_BANDWIDTH] = rate > 0 ? 1 / rate : 0;
        pair.wait[SPEED_BANDWIDTH] = speed_number(run, "put_wait_us", part) * 1000 / speed->bytes;
        for (unsigned k = 0; k < speed->parts; k++) {
            pair.cost[SPEED_MEAN] += speed_number(run, "mean_us", k) / speed->parts;
            pair.wait[SPEED_MEAN] += speed_number(run, "put_wait_us", k) / speed->parts;
        }
        speed->pairs[speed->pairs_count++] = pair;
    }
}

static bool speed_node_slow(const struct speed *speed, enum speed_metric metric, unsigned node)
{
    for (unsigned i = 0; i < speed->slow.count; i++) {
        const struct speed_slow *slow = &speed->slow.of[i];
        if (slow->a == slow->b && slow->a == node && slow->metric == metric)
            return true;
    }
    return false;
}

static void speed_add(struct speed *speed, struct speed_slow slow)
{
    if (speed->slow.count < SPEED_SLOW)
        speed->slow.of[speed->slow.count++] = slow;
}

/* Without the time for which the ranks waited for a CPU. While the network is slow they poll and
 * give up the CPU to others, so of the time of a large message it is never more than a half. */
static double speed_calm(const struct speed_pair *pair, enum speed_metric metric)
{
    double most = metric == SPEED_LATENCY ? pair->cost[metric] : pair->cost[metric] / 2;
    double wait = pair->wait[metric] < most ? pair->wait[metric] : most;
    return pair->cost[metric] > wait ? pair->cost[metric] - wait : DBL_MIN;
}

static void speed_least(double *least, double value)
{
    *least = *least <= 0 || value < *least ? value : *least;
}

/* A node is as good as its best pair. */
static bool speed_judge_nodes(struct speed *speed, enum speed_metric metric)
{
    struct shk_outlier nodes;
    memset(speed->best, 0, speed->nodes * sizeof *speed->best);
    memset(speed->calm, 0, speed->nodes * sizeof *speed->calm);
    for (unsigned i = 0; i < speed->pairs_count; i++) {
        const struct speed_pair *pair = &speed->pairs[i];
        unsigned two[2] = {pair->a, pair->b};
        for (unsigned k = 0; k < 2 && pair->cost[metric] > 0; k++) {
            speed_least(&speed->best[two[k]], pair->cost[metric]);
            speed_least(&speed->calm[two[k]], speed_calm(pair, metric));
        }
    }
    if (!shk_outlier_of(speed->best, speed->nodes, &nodes))
        return false;
    for (unsigned i = 0; i < speed->nodes; i++)
        if (nodes.limit > 0 && speed->calm[i] > nodes.limit)
            speed_add(speed, (struct speed_slow){i, i, metric, speed->best[i], nodes.median});
    return true;
}

/* A pair counts only where its ends are not slow by themselves. */
static bool speed_judge_pairs(struct speed *speed, enum speed_metric metric)
{
    struct shk_outlier *o = &speed->of_pairs[metric];
    for (unsigned i = 0; i < speed->pairs_count; i++) {
        const struct speed_pair *pair = &speed->pairs[i];
        bool slow =
            speed_node_slow(speed, metric, pair->a) || speed_node_slow(speed, metric, pair->b);
        speed->rest[i] = slow ? 0 : pair->cost[metric];
    }
    if (!shk_outlier_of(speed->rest, speed->pairs_count, o))
        return false;
    for (unsigned i = 0; i < speed->pairs_count; i++) {
        const struct speed_pair *pair = &speed->pairs[i];
        if (o->limit > 0 && speed->rest[i] > 0 && speed_calm(pair, metric) > o->limit)
            speed_add(speed,
                      (struct speed_slow){pair->a, pair->b, metric, speed->rest[i], o->median});
    }
    return true;
}

static bool speed_judge(struct speed *speed, enum speed_metric metric)
{
    return speed_judge_nodes(speed, metric) && speed_judge_pairs(speed, metric);
}

/* Keeps what was slow before as well: what passes by does not come every time. */
static void speed_confirm(struct speed_list *slow, const struct speed_list *before)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < slow->count; i++) {
        const struct speed_slow *now = &slow->of[i];
        bool again = false;
        for (unsigned k = 0; k < before->count && !again; k++)
            again = before->of[k].a == now->a && before->of[k].b == now->b &&
                    before->of[k].metric == now->metric;
        if (again)
            slow->of[kept++] = *now;
    }
    slow->count = kept;
}

/* What is slow in every part of one run. */
static bool speed_judge_run(struct speed *speed, unsigned run)
{
    for (unsigned part = 0; part < speed->parts; part++) {
        struct speed_list before = speed->slow;
        speed->slow.count = 0;
        speed_take(speed, run, part);
        if (!speed_judge(speed, SPEED_LATENCY) || !speed_judge(speed, SPEED_BANDWIDTH))
            return false;
        if (part > 0)
            speed_confirm(&speed->slow, &before);
    }
    return speed_judge(speed, SPEED_MEAN);
}

/* And in every run. */
static bool speed_judge_all(struct speed *speed)
{
    for (unsigned run = 0; run < speed->runs; run++) {
        struct speed_list before = speed->slow;
        speed->slow.count = 0;
        if (!speed_judge_run(speed, run))
            return false;
        if (run > 0)
            speed_confirm(&speed->slow, &before);
    }
    return true;
}

static double speed_show(enum speed_metric metric, double cost)
{
    return metric == SPEED_BANDWIDTH && cost > 0 ? 1 / cost
           : metric == SPEED_MEAN                ? cost / 1000
                                                 : cost;
}

static void speed_name(json_t *names, const char *name)
{
    if (!shk_loss_names(names, name))
        json_array_append_new(names, json_string(name));
}

static int speed_tell(const struct speed *speed, struct shk_pairspeed *found)
{
    *found = (struct shk_pairspeed){
        .slow = json_array(),
        .nodes = json_array(),
        .ends = json_array(),
        .latency_us = speed_show(SPEED_LATENCY, speed->of_pairs[SPEED_LATENCY].median),
        .bandwidth = speed_show(SPEED_BANDWIDTH, speed->of_pairs[SPEED_BANDWIDTH].median),
    };
    for (unsigned i = 0; i < speed->slow.count; i++) {
        const struct speed_slow *s = &speed->slow.of[i];
        const char *a = speed->names[s->a], *b = s->a == s->b ? NULL : speed->names[s->b];
        speed_name(b ? found->ends : found->nodes, a);
        if (b)
            speed_name(found->ends, b);
        json_array_append_new(found->slow, json_pack("{s:[s, s*], s:s, s:f, s:f}", "nodes", a, b,
                                                     "what", speed_names[s->metric], "value",
                                                     speed_show(s->metric, s->cost), "median",
                                                     speed_show(s->metric, s->median)));
    }
    return found->slow && found->nodes && found->ends ? 0 : -ENOMEM;
}

int shk_pairspeed_of(const json_t *measured, struct shk_pairspeed *found)
{
    struct speed speed = {.runs = 0};
    *found = (struct shk_pairspeed){.slow = NULL};
    int rc = speed_read(&speed, measured);
    if (!rc)
        rc = speed_judge_all(&speed) ? speed_tell(&speed, found) : -ENOMEM;
    free(speed.names);
    free(speed.pairs);
    free(speed.best);
    free(speed.calm);
    free(speed.rest);
    return rc;
}

void shk_pairspeed_clear(struct shk_pairspeed *speed)
{
    json_decref(speed->slow);
    json_decref(speed->nodes);
    json_decref(speed->ends);
    *speed = (struct shk_pairspeed){.slow = NULL};
}
