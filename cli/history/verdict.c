/* --history and --baseline: the nodes of a session against what is known of earlier runs, and
 * against good ones. */
#include "checks/past/rows.h"
#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/output.h"
#include "core/text/strbuf.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Good documents that are read. */
enum { VERDICT_GOOD = 1000 };

struct verdict {
    struct shk_session *session;
    struct shk_history *history;
    json_t *cache; /* shk_states_of() */
    struct shk_error *err;
};

static json_t *verdict_states(struct verdict *v, const struct shk_facts *facts)
{
    size_t count;
    const struct shk_diff_rule *rules = shk_config_diff(v->session->config, &count);
    return shk_states_of(facts, rules, count, v->cache);
}

/* The values that one is compared with: its own last ones, and the last medians of its siblings. */
static int verdict_fill(const struct shk_metric_series *all, const char *node, const char *kind,
                        struct shk_past_case *c, long long *states_p)
{
    size_t earlier = 0;
    c->earlier = calloc(SHK_PAST_FIRST_MOST, sizeof *c->earlier);
    c->siblings = calloc(all->count + 1, sizeof *c->siblings);
    if (!c->earlier || !c->siblings)
        return -ENOMEM;
    for (size_t i = 0; i < all->count; i++) {
        const struct shk_series *s = &all->series[i];
        const struct shk_past_series *of = &s->of;
        size_t from = of->count > SHK_PAST_FIRST_MOST ? of->count - SHK_PAST_FIRST_MOST : 0;
        double now = shk_past_now(of);
        if (strcmp(s->node, node) == 0) {
            for (size_t k = from; k < of->count; k++)
                c->earlier[earlier++] = of->points[k].value;
            *states_p = of->count ? of->points[of->count - 1].states : 0;
        } else if (isfinite(now) && strcmp(s->kind, kind) == 0) {
            c->siblings[c->siblings_count++] = now;
        }
    }
    c->earlier_count = earlier;
    return 0;
}

static int verdict_metric(struct verdict *v, const struct shk_facts *facts, const char *node,
                          const char *kind, const json_t *states, const char *name, double value)
{
    const struct shk_metric *metric = shk_metric_find(name);
    struct shk_metric_series all = {0};
    long long last = 0;
    json_t *had = NULL, *changed = NULL;
    if (!metric || metric->kind == SHK_METRIC_COUNT)
        return 0;
    struct shk_past_case c = {.metric = name,
                              .title = metric->title,
                              .unit = metric->unit,
                              .value = value,
                              .better = metric->kind == SHK_METRIC_MORE ? 1 : -1,
                              .least = metric->least};
    int rc = shk_series_load(v->history, name, shk_run_start(facts) - 1, &all, v->err);
    if (!rc && (rc = verdict_fill(&all, node, kind, &c, &last)))
        shk_error_sys(v->err, ENOMEM, "history");
    if (!rc && last)
        rc = shk_history_states(v->history, last, &had, v->err);
    if (!rc) {
        c.changed = changed = had ? shk_states_changes(had, states) : NULL;
        shk_past_row(&c, node, v->session->findings);
    }
    shk_series_free(&all);
    json_decref(had);
    json_decref(changed);
    free(c.earlier);
    free(c.siblings);
    return rc;
}

static int verdict_node(struct verdict *v, size_t i)
{
    const struct shk_facts *facts = v->session->facts[i];
    const char *node = shk_facts_get_text(facts, "host.name"), *name;
    char *kind = shk_hardware_kind(facts);
    json_t *metrics = shk_metrics_of(facts), *states = verdict_states(v, facts), *value;
    int rc = 0;
    if (!metrics || !states || !kind)
        rc = shk_error_sys(v->err, ENOMEM, "history");
    json_object_foreach(node && shk_run_start(facts) >= 0 ? metrics : NULL, name, value)
    {
        rc = rc ? rc : verdict_metric(v, facts, node, kind, states, name, json_number_value(value));
    }
    json_decref(metrics);
    json_decref(states);
    free(kind);
    return rc;
}

static int verdict_history(struct shk_session *session, const char *path, struct shk_error *err)
{
    struct verdict v = {.session = session, .cache = json_object(), .err = err};
    int rc = shk_history_open(&v.history, path, true, err);
    for (size_t i = 0; !rc && i < session->nodes; i++)
        rc = verdict_node(&v, i);
    shk_history_close(v.history);
    json_decref(v.cache);
    return rc;
}

/* Numbers and texts of the good documents of one kind. */
struct good {
    const struct shk_facts *facts;
    json_t *metrics, *states;
    char *hardware;
};

static void baseline_settings(struct shk_session *session, const struct good *good, size_t count,
                              const struct good *mine, const char *node)
{
    json_t *theirs = json_array();
    for (size_t i = 0; i < count; i++)
        if (strcmp(good[i].hardware, mine->hardware) == 0)
            json_array_append(theirs, good[i].states);
    shk_baseline_settings(mine->states, theirs, node, session->findings);
    json_decref(theirs);
}

static int baseline_node(struct shk_session *session, const struct good *good, size_t count,
                         const struct good *mine)
{
    const char *node = shk_facts_get_text(mine->facts, "host.name"), *name;
    double *values = calloc(count + 1, sizeof *values);
    json_t *value;
    if (!values)
        return -ENOMEM;
    json_object_foreach(mine->metrics, name, value)
    {
        const struct shk_metric *metric = shk_metric_find(name);
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            const json_t *theirs = json_object_get(good[i].metrics, name);
            if (theirs && strcmp(good[i].hardware, mine->hardware) == 0)
                values[n++] = json_number_value(theirs);
        }
        if (metric && metric->kind != SHK_METRIC_COUNT)
            shk_baseline_row(
                &(struct shk_past_case){.metric = name,
                                        .title = metric->title,
                                        .unit = metric->unit,
                                        .value = json_number_value(value),
                                        .better = metric->kind == SHK_METRIC_MORE ? 1 : -1,
                                        .least = metric->least,
                                        .earlier = values,
                                        .earlier_count = n},
                node, session->findings);
    }
    free(values);
    baseline_settings(session, good, count, mine, node);
    return 0;
}

static bool baseline_read(struct verdict *v, const struct shk_facts *facts, struct good *good)
{
    *good = (struct good){.facts = facts,
                          .metrics = shk_metrics_of(facts),
                          .states = verdict_states(v, facts),
                          .hardware = shk_hardware_kind(facts)};
    return good->metrics && good->states && good->hardware;
}

static void baseline_free(struct good *good)
{
    json_decref(good->metrics);
    json_decref(good->states);
    free(good->hardware);
}

static int verdict_baseline(struct shk_session *session, const char *path, struct shk_error *err)
{
    struct verdict v = {.session = session, .cache = json_object()};
    struct shk_facts **facts = NULL;
    size_t count = 0, read = 0;
    int rc = shk_facts_load(&facts, &count, path, NULL, err);
    if (!rc && count > VERDICT_GOOD)
        rc = shk_error_set(err, E2BIG, "%s: more than %d documents", path, VERDICT_GOOD);
    struct good *good = rc ? NULL : calloc(count + 1, sizeof *good), mine = {0};
    while (good && read < count && baseline_read(&v, facts[read], &good[read]))
        read++;
    if (!rc && (!good || read < count))
        rc = shk_error_sys(err, ENOMEM, "%s", path);
    for (size_t i = 0; !rc && i < session->nodes; i++) {
        bool ok = baseline_read(&v, session->facts[i], &mine);
        if (!ok || baseline_node(session, good, count, &mine))
            rc = shk_error_sys(err, ENOMEM, "%s", path);
        baseline_free(&mine);
    }
    for (size_t i = 0; good && i < count; i++)
        baseline_free(&good[i]);
    for (size_t i = 0; i < count; i++)
        shk_facts_destroy(facts[i]);
    free(facts);
    free(good);
    json_decref(v.cache);
    return rc;
}

int shk_history_verdict(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_error err = {""};
    int rc = 0;
    if (o->history && session->fleet)
        shk_say("--history: so many documents at once are added, not compared: shakedown history");
    else if (o->history)
        rc = verdict_history(session, o->history, &err);
    if (!rc && o->baseline)
        rc = verdict_baseline(session, o->baseline, &err);
    return rc ? shk_history_fail(&err, rc) : SHK_EXIT_OK;
}

int shk_history_keep(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_history *history = NULL;
    struct shk_collected count;
    struct shk_error err = {""};
    int code = SHK_EXIT_OK;
    if (!o->history || !shk_session_speaks(session))
        return SHK_EXIT_OK;
    int rc = shk_history_open(&history, o->history, true, &err);
    if (!rc && session->fleet && o->arguments.count)
        code = shk_collect(session, history, o->arguments.items, o->arguments.count, &count);
    else if (!rc && session->fleet)
        shk_say("--history: more nodes than are kept one by one: save their reports and use "
                "shakedown history add");
    else if (!rc)
        rc = shk_collect_session(session, history, &err);
    shk_history_close(history);
    return rc ? shk_history_fail(&err, rc) : code;
}
