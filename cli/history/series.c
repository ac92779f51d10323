/* One metric of all nodes, read for checks/past. */
#include "cli/history/history.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SERIES_DAY = 86400 };

static void series_one_free(struct shk_series *s)
{
    free(s->node);
    free(s->kind);
    free(s->of.points);
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
    *last = (struct shk_series){.node = strdup(node)};
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
    struct shk_past_series *of = &s->of;
    if (of->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct shk_past_point *more = realloc(of->points, room * sizeof *more);
        if (!more)
            return -ENOMEM;
        of->points = more;
        s->room = room;
    }
    of->points[of->count++] = (struct shk_past_point){.t = (double)sample->start / SERIES_DAY,
                                                      .value = sample->value,
                                                      .common = NAN,
                                                      .states = sample->states_id};
    return 0;
}

static int series_judge(struct shk_metric_series *all, double today)
{
    struct shk_past_series **each = calloc(all->count + 1, sizeof *each);
    if (!each)
        return -ENOMEM;
    for (size_t i = 0; i < all->count; i++) {
        each[i] = &all->series[i].of;
        each[i]->kind = all->series[i].kind;
    }
    int rc = shk_past_series_judge(each, all->count, all->metric, today);
    free(each);
    return rc;
}

/* The mark of the runs that have read a counter: of "count.mlx5_0/1.link_downed" the scope is what
 * is between. */
static char *series_mark(const char *metric)
{
    const char *from = strchr(metric, '.') + 1, *dot = strrchr(metric, '.');
    return shk_strf(SHK_METRIC_READ "%.*s", dot > from ? (int)(dot - from) : 0, from);
}

int shk_series_load(struct shk_history *history, const char *metric, long long until,
                    struct shk_metric_series *out, struct shk_error *err)
{
    *out = (struct shk_metric_series){.name = strdup(metric), .metric = shk_metric_find(metric)};
    if (!out->name || !out->metric)
        return shk_error_set(err, EINVAL, "there is no metric '%.64s' in the history", metric);
    char *mark = out->metric->kind == SHK_METRIC_COUNT ? series_mark(metric) : NULL;
    if (out->metric->kind == SHK_METRIC_COUNT && !mark)
        return shk_error_sys(err, ENOMEM, "history");
    int rc = shk_history_samples(history, metric, mark, NULL,
                                 until - (long long)SHK_HISTORY_WINDOW * SERIES_DAY, until,
                                 series_take, out, err);
    free(mark);
    if (!rc && (rc = series_judge(out, (double)until / SERIES_DAY)))
        shk_error_sys(err, -rc, "history");
    else if (rc == -ENOMEM)
        shk_error_sys(err, ENOMEM, "history");
    return rc;
}

json_t *shk_states_diff(struct shk_history *history, long long from, long long to)
{
    struct shk_error err = {""};
    json_t *a = NULL, *b = NULL, *list = NULL;
    if (from == to)
        return from ? json_array() : NULL;
    if (!shk_history_states(history, from, &a, &err) &&
        !shk_history_states(history, to, &b, &err) && a && b)
        list = shk_states_changes(a, b);
    json_decref(a);
    json_decref(b);
    return list;
}
