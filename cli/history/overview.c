/* What the history says of all nodes, and of one metric of one node, as JSON: reports/history draws
 * it. */
#include "cli/history/history.h"
#include "cli/history/print.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Changes of software that a row names; metrics that one database is asked for. */
enum { OVERVIEW_CHANGES = 8, OVERVIEW_DAY = 86400 };

static json_t *overview_time(double days)
{
    return shk_history_stamp(llround(days * OVERVIEW_DAY));
}

/* Adds {"path", "from", "to", "at"} for each change between two points of a series. False: of one
 * of them it is not known. */
static bool overview_changes(struct shk_history *history, const struct shk_past_series *s,
                             size_t from, size_t to, json_t *list)
{
    bool known = true;
    for (size_t i = from ? from : 1; i <= to && i < s->count; i++) {
        json_t *changes, *change;
        size_t k;
        changes = shk_states_diff(history, s->points[i - 1].states, s->points[i].states);
        known = known && changes;
        json_array_foreach(changes, k, change)
        {
            json_object_set_new(change, "at", overview_time(s->points[i].t));
            if (json_array_size(list) < OVERVIEW_CHANGES)
                json_array_append(list, change);
        }
        json_decref(changes);
    }
    return known;
}

/* A change of one thing on the same run may be what made the step; several during a drift may not
 * be. NULL: nothing is known of it. */
static json_t *overview_software(struct shk_history *history, const struct shk_past_series *s)
{
    json_t *list = json_array();
    size_t at = s->past.from;
    bool known = true;
    if (s->past.change == SHK_PAST_STEP)
        known = overview_changes(history, s, at ? at - 1 : 0, at + 1, list);
    else if (s->past.change == SHK_PAST_DRIFT)
        known = overview_changes(history, s, at, s->count - 1, list);
    else if (s->outside) /* since when is not known: all that changed */
        known = overview_changes(history, s, 0, s->count - 1, list);
    if (known || json_array_size(list))
        return list;
    json_decref(list);
    return NULL;
}

static void overview_number(json_t *row, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(row, key, json_real(value));
}

static const char *overview_change(const struct shk_past_series *s)
{
    return s->past.change == SHK_PAST_DRIFT         ? "drift"
           : s->past.change == SHK_PAST_STEP        ? "step"
           : s->past.change == SHK_PAST_RISES_OFTEN ? "rises"
           : s->outside                             ? "siblings"
           : s->past.change == SHK_PAST_FEW         ? "few"
                                                    : "same";
}

static json_t *overview_row(struct shk_history *history, const struct shk_metric_series *m,
                            const char *node, const struct shk_past_series *s)
{
    const struct shk_past *p = &s->past;
    bool began = p->change == SHK_PAST_DRIFT || p->change == SHK_PAST_STEP ||
                 p->change == SHK_PAST_RISES_OFTEN;
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:o?}", "node", node, "metric", m->name, "title",
                  m->metric->title, "unit", m->metric->unit, "change", overview_change(s),
                  "samples", (json_int_t)s->count, "software", overview_software(history, s));
    if (began && p->from < s->count)
        json_object_set_new(row, "since", overview_time(s->points[p->from].t));
    if (p->change == SHK_PAST_RISES_OFTEN) {
        json_object_set_new(row, "rises", json_integer((json_int_t)p->rises));
        json_object_set_new(row, "drain", json_boolean(shk_past_flaps(m->name, s)));
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
                          const struct shk_past_series *s, size_t nodes, json_t *rows)
{
    struct shk_past_series all = {.kind = "", .points = calloc(s->count, sizeof *s->points)},
                           *one = &all;
    char *name = shk_strf("all %zu nodes", nodes);
    for (size_t i = 0; all.points && i < s->count; i++) {
        if (!isfinite(s->points[i].common))
            continue;
        all.points[all.count] = s->points[i];
        all.points[all.count++].value = s->points[i].common;
    }
    if (all.points && name && !shk_past_series_judge(&one, 1, m->metric, 0) &&
        shk_past_wrong(&all)) {
        json_t *row = overview_row(history, m, name, &all);
        json_object_set_new(row, "shared", json_true());
        json_array_append_new(rows, row);
    }
    free(all.points);
    free(name);
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
        if (m->series[i].of.count > m->series[best].of.count)
            best = (json_int_t)i;
        json_object_set_new(kinds, m->series[i].kind, json_pack("[I, I]", best, nodes));
    }
    json_object_foreach(kinds, kind, value)
    {
        size_t at = (size_t)json_integer_value(json_array_get(value, 0)),
               nodes = (size_t)json_integer_value(json_array_get(value, 1));
        if (nodes >= SHK_PAST_SIBLINGS)
            overview_kind(history, m, &m->series[at].of, nodes, rows);
    }
    json_decref(kinds);
}

struct overview {
    struct shk_history *history;
    json_t *names, *object;
    long long until;
    size_t runs, compared, few;
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
    for (size_t i = 0; !rc && i < m.count; i++) {
        const struct shk_past_series *s = &m.series[i].of;
        *(s->compared ? &o->compared : &o->few) += 1;
        if (shk_past_wrong(s))
            json_array_append_new(rows, overview_row(o->history, &m, m.series[i].node, s));
    }
    if (!rc && m.metric->kind != SHK_METRIC_COUNT)
        overview_kinds(o->history, &m, rows);
    if (!rc && m.count)
        json_array_append_new(metrics, json_pack("{s:s, s:s, s:s, s:I}", "name", name, "title",
                                                 m.metric->title, "unit", m.metric->unit, "nodes",
                                                 (json_int_t)m.count));
    shk_series_free(&m);
    return rc;
}

static size_t overview_drains(const json_t *rows)
{
    size_t i, drains = 0;
    json_t *row;
    json_array_foreach(rows, i, row) drains += json_is_true(json_object_get(row, "drain"));
    return drains;
}

/* What a value needs to be compared. */
static json_t *overview_needs(void)
{
    return json_pack("{s:i, s:i}", "runs", SHK_PAST_FIRST + SHK_PAST_RECENT, "siblings",
                     SHK_PAST_SIBLINGS);
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
        enum shk_verdict verdict =
            shk_past_verdict(overview_drains(rows), json_array_size(rows), o.compared);
        o.object = json_pack(
            "{s:s, s:o, s:I, s:I, s:s, s:I, s:I, s:o, s:O, s:O}", "schema", "shakedown.history/1",
            "until", overview_time((double)until / OVERVIEW_DAY), "nodes",
            (json_int_t)json_object_size(o.nodes), "runs", (json_int_t)o.runs, "verdict",
            shk_verdict_name(verdict), "compared", (json_int_t)o.compared, "few", (json_int_t)o.few,
            "needs", overview_needs(), "metrics", metrics, "rows", rows);
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
        const struct shk_past_series *s = &m.series[i].of;
        if (strcmp(m.series[i].node, node) != 0)
            continue;
        row = overview_row(history, &m, node, s);
        json_object_set_new(row, "verdict",
                            json_string(shk_verdict_name(shk_past_verdict(
                                shk_past_flaps(metric, s), shk_past_wrong(s), s->compared))));
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
