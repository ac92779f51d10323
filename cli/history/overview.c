/* What the history says of all nodes, and of one metric of one node, as JSON: reports/history draws
 * it. */
#include "cli/history/history.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Changes of software that a row names; metrics that one database is asked for. */
enum { OVERVIEW_CHANGES = 8, OVERVIEW_DAY = 86400 };

static json_t *overview_time(double days)
{
    time_t t = (time_t)llround(days * OVERVIEW_DAY);
    struct tm tm;
    char text[32] = "";
    if (gmtime_r(&t, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

/* Adds {"path", "from", "to", "at"} for each change between two points of a series. */
static void overview_changes(struct shk_history *history, const struct shk_series *s, size_t from,
                             size_t to, json_t *list)
{
    for (size_t i = from ? from : 1; i <= to && i < s->count; i++) {
        json_t *changes, *change;
        size_t k;
        if (s->points[i].states == s->points[i - 1].states)
            continue;
        changes = shk_states_diff(history, s->points[i - 1].states, s->points[i].states);
        json_array_foreach(changes, k, change)
        {
            json_object_set_new(change, "at", overview_time(s->points[i].t));
            if (json_array_size(list) < OVERVIEW_CHANGES)
                json_array_append(list, change);
        }
        json_decref(changes);
    }
}

/* A change of one thing on the same run may be what made the step; several during a drift may not
 * be. */
static json_t *overview_software(struct shk_history *history, const struct shk_series *s)
{
    json_t *list = json_array();
    size_t at = s->past.from;
    if (s->past.change == SHK_PAST_STEP)
        overview_changes(history, s, at ? at - 1 : 0, at + 1, list);
    else if (s->past.change == SHK_PAST_DRIFT)
        overview_changes(history, s, at, s->count - 1, list);
    else if (s->outside) /* since when is not known: all that changed */
        overview_changes(history, s, 0, s->count - 1, list);
    return list;
}

static void overview_number(json_t *row, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(row, key, json_real(value));
}

static const char *overview_change(const struct shk_series *s)
{
    return s->past.change == SHK_PAST_DRIFT         ? "drift"
           : s->past.change == SHK_PAST_STEP        ? "step"
           : s->past.change == SHK_PAST_RISES_OFTEN ? "rises"
           : s->outside                             ? "siblings"
           : s->past.change == SHK_PAST_FEW         ? "few"
                                                    : "same";
}

static bool overview_wrong(const struct shk_series *s)
{
    return s->outside || s->past.change == SHK_PAST_DRIFT || s->past.change == SHK_PAST_STEP ||
           s->past.change == SHK_PAST_RISES_OFTEN;
}

static json_t *overview_row(struct shk_history *history, const struct shk_metric_series *m,
                            const struct shk_series *s)
{
    const struct shk_past *p = &s->past;
    bool began = p->change == SHK_PAST_DRIFT || p->change == SHK_PAST_STEP ||
                 p->change == SHK_PAST_RISES_OFTEN;
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "node", s->node, "metric", m->name,
                  "title", m->metric->title, "unit", m->metric->unit, "change", overview_change(s),
                  "samples", (json_int_t)s->count, "software", overview_software(history, s));
    if (began && p->from < s->count)
        json_object_set_new(row, "since", overview_time(s->points[p->from].t));
    if (p->change == SHK_PAST_RISES_OFTEN) {
        json_object_set_new(row, "rises", json_integer((json_int_t)p->rises));
        overview_number(row, "by", p->by);
    } else if (p->change != SHK_PAST_FEW) {
        overview_number(row, "before", p->before);
        overview_number(row, "part", p->part);
        overview_number(row, "spread", p->spread);
    }
    overview_number(row, "now",
                    p->change != SHK_PAST_FEW ? p->now
                    : s->count                ? s->points[s->count - 1].value
                                              : NAN);
    overview_number(row, "siblings_before", p->common_before);
    overview_number(row, "siblings", s->siblings);
    overview_number(row, "siblings_spread", s->spread);
    if (isfinite(s->siblings))
        json_object_set_new(row, "siblings_count", json_integer((json_int_t)s->siblings_count));
    return row;
}

/* What all nodes of a kind share, judged like one node: the median of each day. */
static void overview_kind(struct shk_history *history, const struct shk_metric_series *m,
                          const struct shk_series *s, size_t nodes, json_t *rows)
{
    struct shk_series all = {.node = shk_strf("all %zu nodes", nodes),
                             .siblings = NAN,
                             .spread = NAN,
                             .points = calloc(s->count, sizeof *s->points)};
    int better = m->metric->kind == SHK_METRIC_MORE ? 1 : -1;
    for (size_t i = 0; all.points && i < s->count; i++) {
        if (!isfinite(s->points[i].common))
            continue;
        all.points[all.count] = s->points[i];
        all.points[all.count].value = s->points[i].common;
        all.points[all.count++].common = NAN;
    }
    if (all.points && all.node &&
        !shk_past_judge(all.points, all.count, better, m->metric->least, &all.past) &&
        overview_wrong(&all)) {
        json_t *row = overview_row(history, m, &all);
        json_object_set_new(row, "shared", json_true());
        json_array_append_new(rows, row);
    }
    free(all.points);
    free(all.node);
}

static void overview_kinds(struct shk_history *history, const struct shk_metric_series *m,
                           json_t *rows)
{
    json_t *kinds = json_object(), *value;
    const char *kind;
    for (size_t i = 0; i < m->count; i++) {
        const json_t *had = json_object_get(kinds, m->series[i].kind);
        json_int_t best = had ? json_integer_value(json_array_get(had, 0)) : (json_int_t)i,
                   nodes = json_integer_value(json_array_get(had, 1)) + 1;
        if (m->series[i].count > m->series[best].count)
            best = (json_int_t)i;
        json_object_set_new(kinds, m->series[i].kind, json_pack("[I, I]", best, nodes));
    }
    json_object_foreach(kinds, kind, value)
    {
        size_t at = (size_t)json_integer_value(json_array_get(value, 0)),
               nodes = (size_t)json_integer_value(json_array_get(value, 1));
        if (nodes >= SHK_PAST_SIBLINGS)
            overview_kind(history, m, &m->series[at], nodes, rows);
    }
    json_decref(kinds);
}

struct overview {
    struct shk_history *history;
    json_t *names, *object;
    long long until;
    size_t runs;
    double from, to;
    json_t *nodes;
};

static int overview_name(const char *name, void *arg)
{
    return json_array_append_new(arg, json_string(name)) ? -ENOMEM : 0;
}

static int overview_run(const struct shk_history_run *run, void *arg)
{
    struct overview *o = arg;
    double t = (double)run->start / OVERVIEW_DAY;
    o->from = o->runs ? fmin(o->from, t) : t;
    o->to = o->runs ? fmax(o->to, t) : t;
    o->runs++;
    return json_object_set_new_nocheck(o->nodes, run->node, json_true());
}

static int overview_metric(struct overview *o, const char *name, json_t *rows, json_t *metrics,
                           struct shk_error *err)
{
    struct shk_metric_series m;
    int rc = shk_series_load(o->history, name, o->until, &m, err);
    for (size_t i = 0; !rc && i < m.count; i++)
        if (overview_wrong(&m.series[i]))
            json_array_append_new(rows, overview_row(o->history, &m, &m.series[i]));
    if (!rc && m.metric->kind != SHK_METRIC_COUNT)
        overview_kinds(o->history, &m, rows);
    if (!rc && m.count)
        json_array_append_new(metrics, json_pack("{s:s, s:s, s:s, s:I}", "name", name, "title",
                                                 m.metric->title, "unit", m.metric->unit, "nodes",
                                                 (json_int_t)m.count));
    shk_series_free(&m);
    return rc;
}

json_t *shk_overview(struct shk_history *history, long long until, struct shk_error *err)
{
    json_t *rows = json_array(), *metrics = json_array(), *name;
    struct overview o = {
        .history = history, .until = until, .names = json_array(), .nodes = json_object()};
    size_t i;
    int rc = !rows || !metrics || !o.names || !o.nodes
                 ? shk_error_sys(err, ENOMEM, "history")
                 : shk_history_runs(history, NULL, 0, until, overview_run, &o, err);
    rc = rc ? rc : shk_history_metrics(history, overview_name, o.names, err);
    json_array_foreach(o.names, i, name)
    {
        if (!rc && shk_metric_find(json_string_value(name)))
            rc = overview_metric(&o, json_string_value(name), rows, metrics, err);
    }
    if (!rc) {
        o.object = json_pack("{s:s, s:o, s:I, s:I, s:O, s:O}", "schema", "shakedown.history/1",
                             "until", overview_time((double)until / OVERVIEW_DAY), "nodes",
                             (json_int_t)json_object_size(o.nodes), "runs", (json_int_t)o.runs,
                             "metrics", metrics, "rows", rows);
        if (o.object && o.runs) {
            json_object_set_new(o.object, "from", overview_time(o.from));
            json_object_set_new(o.object, "to", overview_time(o.to));
        }
        if (!o.object)
            shk_error_sys(err, ENOMEM, "history");
    }
    json_decref(rows);
    json_decref(metrics);
    json_decref(o.names);
    json_decref(o.nodes);
    return o.object;
}

json_t *shk_trend(struct shk_history *history, const char *node, const char *metric,
                  long long until, struct shk_error *err)
{
    struct shk_metric_series m;
    json_t *row = NULL, *points = json_array(), *events = json_array();
    int rc = shk_series_load(history, metric, until, &m, err);
    for (size_t i = 0; !rc && i < m.count; i++) {
        const struct shk_series *s = &m.series[i];
        if (strcmp(s->node, node) != 0)
            continue;
        row = overview_row(history, &m, s);
        for (size_t k = 0; k < s->count; k++)
            json_array_append_new(points,
                                  json_pack("{s:o, s:f}", "at", overview_time(s->points[k].t),
                                            "value", s->points[k].value));
        overview_changes(history, s, 0, s->count, events);
        json_object_set(row, "points", points);
        json_object_set(row, "events", events);
    }
    if (!rc && !row)
        shk_error_set(err, EINVAL, "%.64s has no '%.64s' in the last %d days", node, metric,
                      SHK_HISTORY_WINDOW);
    json_decref(points);
    json_decref(events);
    shk_series_free(&m);
    return row;
}
