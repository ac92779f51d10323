/* One metric of all nodes: read, put beside the siblings, judged. */
#include "cli/history/history.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the siblings that have a counter of that name, so many in a hundred may rise as often before
 * it is no fault of one node. */
enum { SERIES_SHARED = 25, SERIES_DAY = 86400 };

static void series_one_free(struct shk_series *s)
{
    free(s->node);
    free(s->kind);
    free(s->points);
}

void shk_series_free(struct shk_metric_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        series_one_free(&series->series[i]);
    free(series->series);
    free(series->name);
    *series = (struct shk_metric_series){0};
}

/* The kind that most runs have: a vote that the last one standing wins (Boyer and Moore). */
static bool series_vote(struct shk_series *s, const char *kind)
{
    kind = kind ? kind : "";
    if (s->kind && strcmp(s->kind, kind) == 0) {
        s->votes++;
    } else if (s->votes) {
        s->votes--;
    } else {
        free(s->kind);
        s->kind = strdup(kind);
        s->votes = 1;
    }
    return s->kind;
}

static struct shk_series *series_of(struct shk_metric_series *all, const char *node)
{
    struct shk_series *last = all->count ? &all->series[all->count - 1] : NULL;
    if (last && strcmp(last->node, node) == 0)
        return last;
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        struct shk_series *more = realloc(all->series, room * sizeof *more);
        if (!more)
            return NULL;
        all->series = more;
        all->room = room;
    }
    last = &all->series[all->count];
    *last = (struct shk_series){.node = strdup(node), .siblings = NAN, .spread = NAN};
    if (!last->node)
        return NULL;
    all->count++;
    return last;
}

static int series_take(const struct shk_history_sample *sample, void *arg)
{
    struct shk_series *s = series_of(arg, sample->node);
    if (!s || !series_vote(s, sample->kind))
        return -ENOMEM;
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct shk_past_point *more = realloc(s->points, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        s->points = more;
        s->room = room;
    }
    s->points[s->count++] = (struct shk_past_point){.t = (double)sample->start / SERIES_DAY,
                                                    .value = sample->value,
                                                    .common = NAN,
                                                    .states = sample->states_id};
    return 0;
}

struct day {
    const char *kind;
    long day;
    double value;
    struct shk_past_point *point;
};

static int day_order(const void *a, const void *b)
{
    const struct day *x = a, *y = b;
    int d = strcmp(x->kind, y->kind);
    return d ? d : (x->day > y->day) - (x->day < y->day);
}

/* Gives every point the median of its kind on that day, where enough nodes have one. */
static int series_common(struct shk_metric_series *all)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < all->count; i++)
        n += all->series[i].count;
    struct day *days = calloc(n + 1, sizeof *days);
    double *values = calloc(n + 1, sizeof *values);
    for (size_t i = 0; days && i < all->count; i++)
        for (size_t k = 0; k < all->series[i].count; k++) {
            struct shk_past_point *p = &all->series[i].points[k];
            days[at++] = (struct day){all->series[i].kind, (long)floor(p->t), p->value, p};
        }
    if (days && values)
        qsort(days, n, sizeof *days, day_order);
    for (size_t from = 0, to; days && values && from < n; from = to) {
        for (to = from; to < n && !day_order(&days[from], &days[to]); to++)
            values[to - from] = days[to].value;
        double median = to - from >= SHK_PAST_SIBLINGS ? shk_past_median(values, to - from) : NAN;
        for (size_t i = from; i < to; i++)
            days[i].point->common = median;
    }
    bool bad = !days || !values;
    free(days);
    free(values);
    return bad ? -ENOMEM : 0;
}

double shk_series_now(const struct shk_series *s)
{
    double last[SHK_PAST_RECENT];
    if (s->count < SHK_PAST_RECENT)
        return NAN;
    for (size_t i = 0; i < SHK_PAST_RECENT; i++)
        last[i] = s->points[s->count - 1 - i].value;
    return shk_past_median(last, SHK_PAST_RECENT);
}

/* Where each node stands among those of its kind. */
static int series_siblings(struct shk_metric_series *all, int better)
{
    double *now = calloc(2 * all->count + 1, sizeof *now), *work = now + all->count;
    if (!now)
        return -ENOMEM;
    for (size_t i = 0; i < all->count; i++)
        now[i] = shk_series_now(&all->series[i]);
    for (size_t i = 0; i < all->count; i++) {
        struct shk_series *s = &all->series[i];
        bool done = false;
        size_t n = 0;
        for (size_t k = 0; k < i && !done; k++) {
            struct shk_series *o = &all->series[k];
            if (strcmp(o->kind, s->kind) != 0 || !o->siblings_count)
                continue;
            s->siblings = o->siblings; /* of one kind all stand beside the same */
            s->spread = o->spread;
            s->siblings_count = o->siblings_count;
            done = true;
        }
        for (size_t k = i; k < all->count && !done; k++)
            if (isfinite(now[k]) && strcmp(all->series[k].kind, s->kind) == 0)
                work[n++] = now[k];
        if (!done) {
            (void)shk_past_outside(0, work, n, better, all->metric->least, &s->siblings,
                                   &s->spread);
            s->siblings_count = n;
        }
        double worse = better * (s->siblings - now[i]);
        s->outside = s->siblings > 0 && worse > all->metric->least * s->siblings &&
                     worse > SHK_PAST_SIBLING_SIGMAS * s->spread;
    }
    free(now);
    return 0;
}

/* A counter that rises everywhere is no fault of one node. */
static void series_counts(struct shk_metric_series *all, double today)
{
    size_t rising = 0;
    for (size_t i = 0; i < all->count; i++) {
        shk_past_count(all->series[i].points, all->series[i].count, today, &all->series[i].past);
        rising += all->series[i].past.change == SHK_PAST_RISES_OFTEN;
    }
    bool shared = all->count >= SHK_PAST_SIBLINGS && rising * 100 > all->count * SERIES_SHARED;
    for (size_t i = 0; shared && i < all->count; i++)
        all->series[i].past.change = SHK_PAST_SAME;
}

static int series_judge(struct shk_metric_series *all, double today)
{
    enum shk_metric_kind kind = all->metric->kind;
    int better = kind == SHK_METRIC_MORE ? 1 : -1, rc = 0;
    if (kind == SHK_METRIC_COUNT) {
        series_counts(all, today);
        return 0;
    }
    rc = series_common(all);
    for (size_t i = 0; i < all->count && !rc; i++)
        rc = shk_past_judge(all->series[i].points, all->series[i].count, better, all->metric->least,
                            &all->series[i].past);
    return rc ? rc : series_siblings(all, better);
}

int shk_series_load(struct shk_history *history, const char *metric, long long until,
                    struct shk_metric_series *out, struct shk_error *err)
{
    *out = (struct shk_metric_series){.name = strdup(metric), .metric = shk_metric_find(metric)};
    if (!out->name || !out->metric)
        return shk_error_set(err, EINVAL, "there is no metric '%.64s' in the history", metric);
    bool zero = out->metric->kind == SHK_METRIC_COUNT;
    int rc = shk_history_samples(history, metric, zero, NULL,
                                 until - (long long)SHK_HISTORY_WINDOW * SERIES_DAY, until,
                                 series_take, out, err);
    if (!rc && (rc = series_judge(out, (double)until / SERIES_DAY)))
        shk_error_sys(err, -rc, "history");
    else if (rc == -ENOMEM)
        shk_error_sys(err, ENOMEM, "history");
    return rc;
}

json_t *shk_states_diff(struct shk_history *history, long long from, long long to)
{
    struct shk_error err = {""};
    json_t *a = NULL, *b = NULL, *list = json_array(), *value;
    const char *path;
    bool bad = !list || from == to || shk_history_states(history, from, &a, &err) ||
               shk_history_states(history, to, &b, &err);
    json_object_foreach(bad ? NULL : a, path, value)
    {
        json_t *other = json_object_get(b, path);
        if (!json_equal(value, other))
            json_array_append_new(
                list, json_pack("{s:s, s:O, s:O*}", "path", path, "from", value, "to", other));
    }
    json_object_foreach(bad ? NULL : b, path, value)
    {
        if (!json_object_get(a, path))
            json_array_append_new(list, json_pack("{s:s, s:O}", "path", path, "to", value));
    }
    json_decref(a);
    json_decref(b);
    return list;
}
