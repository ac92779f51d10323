#include "checks/past/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of the nodes that have a counter of that name, so many in a hundred may see it rise as often
 * before it is no fault of one node. */
enum { SERIES_SHARED = 25 };

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
static int series_common(struct shk_past_series *const *all, size_t count)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        n += all[i]->count;
    struct day *days = calloc(n + 1, sizeof *days);
    double *values = calloc(n + 1, sizeof *values);
    for (size_t i = 0; days && i < count; i++)
        for (size_t k = 0; k < all[i]->count; k++) {
            struct shk_past_point *p = &all[i]->points[k];
            days[at++] = (struct day){all[i]->kind, (long)floor(p->t), p->value, p};
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

double shk_past_now(const struct shk_past_series *s)
{
    double last[SHK_PAST_RECENT];
    if (s->count < SHK_PAST_RECENT)
        return NAN;
    for (size_t i = 0; i < SHK_PAST_RECENT; i++)
        last[i] = s->points[s->count - 1 - i].value;
    return shk_past_median(last, SHK_PAST_RECENT);
}

/* What the nodes of one kind have, of which this is the first: all stand beside the same. */
static void siblings_of(struct shk_past_series *const *all, size_t count, size_t first,
                        const double *now, double *work)
{
    struct shk_past_series *s = all[first];
    size_t n = 0;
    for (size_t k = first; k < count; k++)
        if (isfinite(now[k]) && strcmp(all[k]->kind, s->kind) == 0)
            work[n++] = now[k];
    shk_past_spread(work, n, &s->siblings, &s->spread);
    s->siblings_count = n;
}

/* Where each node stands among those of its kind. */
static int series_siblings(struct shk_past_series *const *all, size_t count, int better,
                           double least)
{
    double *now = calloc(2 * count + 1, sizeof *now), *work = now + count;
    if (!now)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        now[i] = shk_past_now(all[i]);
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;
        while (first < i && strcmp(all[first]->kind, all[i]->kind) != 0)
            first++;
        if (first == i)
            siblings_of(all, count, i, now, work);
        all[i]->siblings = all[first]->siblings;
        all[i]->spread = all[first]->spread;
        all[i]->siblings_count = all[first]->siblings_count;
        all[i]->outside = shk_past_worse(now[i], all[i]->siblings, all[i]->spread, better, least);
        all[i]->compared |= isfinite(now[i]) && isfinite(all[i]->siblings);
    }
    free(now);
    return 0;
}

/* A counter that rises everywhere is no fault of one node. */
static void series_counts(struct shk_past_series *const *all, size_t count, double today)
{
    size_t rising = 0;
    for (size_t i = 0; i < count; i++) {
        shk_past_count(all[i]->points, all[i]->count, today, &all[i]->past);
        rising += all[i]->past.change == SHK_PAST_RISES_OFTEN;
        all[i]->compared = all[i]->count > SHK_PAST_RISES;
    }
    bool shared = count >= SHK_PAST_SIBLINGS && rising * 100 > count * SERIES_SHARED;
    for (size_t i = 0; shared && i < count; i++)
        all[i]->past.change = SHK_PAST_SAME;
}

int shk_past_series_judge(struct shk_past_series *const *all, size_t count,
                          const struct shk_metric *metric, double today)
{
    int better = metric->kind == SHK_METRIC_MORE ? 1 : -1, rc = 0;
    for (size_t i = 0; i < count; i++) {
        all[i]->siblings = all[i]->spread = NAN;
        all[i]->siblings_count = 0;
        all[i]->outside = all[i]->compared = false;
    }
    if (metric->kind == SHK_METRIC_COUNT) {
        series_counts(all, count, today);
        return 0;
    }
    rc = series_common(all, count);
    for (size_t i = 0; i < count && !rc; i++) {
        rc = shk_past_judge(all[i]->points, all[i]->count, better, metric->least, &all[i]->past);
        all[i]->compared = all[i]->past.change != SHK_PAST_FEW;
    }
    return rc ? rc : series_siblings(all, count, better, metric->least);
}

bool shk_past_wrong(const struct shk_past_series *s)
{
    return s->outside || s->past.change == SHK_PAST_DRIFT || s->past.change == SHK_PAST_STEP ||
           s->past.change == SHK_PAST_RISES_OFTEN;
}

bool shk_past_flaps(const char *metric, const struct shk_past_series *s)
{
    const char *dot = strrchr(metric, '.');
    return s->past.change == SHK_PAST_RISES_OFTEN && dot && strstr(dot, "link_down");
}

bool shk_past_drains(const char *verdict, const char *scope, const char *observed, const char *why)
{
    return verdict && strcmp(verdict, shk_verdict_name(SHK_FAIL)) == 0 && scope &&
           strcmp(scope, shk_scope_name(SHK_SCOPE_NODE)) == 0 &&
           ((observed && *observed) || (why && *why));
}

enum shk_verdict shk_past_verdict(size_t drains, size_t wrong, size_t good)
{
    return drains ? SHK_FAIL : wrong ? SHK_WARN : good ? SHK_PASS : SHK_UNKNOWN;
}
