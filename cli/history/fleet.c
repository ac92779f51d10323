/* The state of a fleet: each node by its last run, since when, and who should be drained. */
#include "cli/history/history.h"
#include "cli/history/print.h"
#include "core/text/strbuf.h"
#include "reports/model/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A node that was not tested for so many days, while others were, is listed as silent. */
enum { FLEET_SILENT_DAYS = 7, FLEET_DAY = 86400 };

struct fleet {
    struct shk_history *history;
    json_t *nodes;  /* of the node that is being read: its last run */
    json_t *node;   /* the node itself */
    json_t *open;   /* cause -> when its unbroken series of runs began */
    long long last; /* newest run of all */
    struct shk_error *err;
};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The issues of a run, each with the time since when it is there. */
static int fleet_issues(struct fleet *f, const struct shk_history_run *run, json_t **issues_p)
{
    json_t *open = json_object(), *issue;
    size_t i;
    bool wrong = strcmp(run->verdict, "fail") == 0 || strcmp(run->verdict, "warn") == 0;
    *issues_p = wrong ? NULL : json_array();
    if (wrong && shk_history_issues(f->history, run->id, issues_p, f->err)) {
        json_decref(open);
        return -EIO;
    }
    json_array_foreach(*issues_p, i, issue)
    {
        char *key = shk_strf("%s %s", text_of(issue, "cause"), text_of(issue, "setting"));
        json_t *since = key ? json_object_get(f->open, key) : NULL;
        since = since ? json_incref(since) : shk_history_stamp(run->start);
        json_object_set(issue, "since", since);
        if (key)
            json_object_set_new(open, key, since);
        free(key);
    }
    json_decref(f->open);
    f->open = open;
    return 0;
}

static int fleet_run(const struct shk_history_run *run, void *arg)
{
    struct fleet *f = arg;
    bool same = f->node && strcmp(text_of(f->node, "node"), run->node) == 0;
    json_t *issues = NULL;
    if (!same) {
        json_decref(f->open);
        f->open = json_object();
        f->node = json_object();
        if (json_array_append_new(f->nodes, f->node))
            return -ENOMEM;
    }
    if (fleet_issues(f, run, &issues))
        return -EIO;
    f->last = run->start > f->last ? run->start : f->last;
    json_object_set_new(f->node, "node", json_string(run->node));
    json_object_set_new(f->node, "last", shk_history_stamp(run->start));
    json_object_set_new(f->node, "last_at", json_integer(run->start));
    json_object_set_new(f->node, "verdict", json_string(run->verdict));
    json_object_set_new(f->node, "kind", json_string(run->kind ? run->kind : ""));
    json_object_set_new(f->node, "issues", issues);
    return 0;
}

static void fleet_count(json_t *object, const char *key)
{
    json_object_set_new(object, key,
                        json_integer(json_integer_value(json_object_get(object, key)) + 1));
}

/* {key: {"name", "nodes", verdict: number, "names": [text]}} */
static json_t *fleet_entry(json_t *map, const char *key)
{
    json_t *entry = json_object_get(map, key);
    if (!entry) {
        entry = json_pack("{s:s, s:[]}", "name", key, "names");
        json_object_set_new_nocheck(map, key, entry);
    }
    return entry;
}

/* Nodes of one kind, by the words for it. */
static json_t *fleet_group(json_t *groups, const char *kind)
{
    bool had = json_object_get(groups, kind) != NULL;
    json_t *group = fleet_entry(groups, kind);
    char *words = had ? NULL : shk_hardware_words(kind);
    if (words)
        json_object_set_new(group, "name", json_string(words));
    free(words);
    return group;
}

static void fleet_node_issues(const json_t *node, json_t *causes, json_t *drain)
{
    json_t *seen = json_object(), *issue;
    bool drained = false;
    size_t i;
    json_array_foreach(json_object_get(node, "issues"), i, issue)
    {
        const char *cause = text_of(issue, "cause");
        json_t *entry = fleet_entry(causes, cause);
        if (!json_object_get(seen, cause)) {
            fleet_count(entry, "nodes");
            json_array_append(json_object_get(entry, "names"), json_object_get(node, "node"));
            json_object_set_new_nocheck(seen, cause, json_true());
        }
        if (!json_object_get(entry, "verdict") || strcmp(text_of(issue, "verdict"), "fail") == 0)
            json_object_set(entry, "verdict", json_object_get(issue, "verdict"));
        if (!json_object_get(entry, "since") ||
            strcmp(text_of(issue, "since"), text_of(entry, "since")) < 0)
            json_object_set(entry, "since", json_object_get(issue, "since"));
        if (*text_of(issue, "scope"))
            json_object_set(entry, "scope", json_object_get(issue, "scope"));
        if (!drained && shk_past_drains(text_of(issue, "verdict"), text_of(issue, "scope"),
                                        text_of(issue, "observed"), text_of(issue, "why"))) {
            json_t *row = json_copy(issue);
            json_object_set(row, "node", json_object_get(node, "node"));
            json_object_set(row, "last", json_object_get(node, "last"));
            json_array_append_new(drain, row);
            drained = true;
        }
    }
    json_decref(seen);
}

static void fleet_flaps(const json_t *rows, json_t *drain)
{
    json_t *row, *had;
    size_t i, k;
    json_array_foreach(rows, i, row)
    {
        const char *metric = text_of(row, "metric"), *dot = strrchr(metric, '.');
        bool known = false;
        if (!json_is_true(json_object_get(row, "drain")))
            continue;
        json_array_foreach(drain, k, had)
        {
            known |= strcmp(text_of(had, "node"), text_of(row, "node")) == 0;
        }
        char *seen = shk_strf(
            "%.*s lost its link in %lld runs of %g days", (int)(dot - metric - 6), metric + 6,
            (long long)json_integer_value(json_object_get(row, "rises")), SHK_PAST_RISE_DAYS);
        if (!known && seen)
            json_array_append_new(
                drain,
                json_pack("{s:O, s:s, s:s, s:s, s:s, s:O*}", "node", json_object_get(row, "node"),
                          "cause", "port-flaps", "setting", metric, "observed", seen, "why",
                          "a job that uses the port when it goes down loses its connections",
                          "since", json_object_get(row, "since")));
        free(seen);
    }
}

static int fleet_by_count(const void *a, const void *b)
{
    json_int_t x = json_integer_value(json_object_get(*(json_t *const *)a, "nodes")),
               y = json_integer_value(json_object_get(*(json_t *const *)b, "nodes"));
    int d = (y > x) - (y < x);
    return d ? d
             : strcmp(text_of(*(json_t *const *)a, "name"), text_of(*(json_t *const *)b, "name"));
}

static int fleet_rank(const json_t *node)
{
    static const char *const order[] = {"pass", "unknown", "warn", "fail"};
    for (int i = 3; i > 0; i--)
        if (strcmp(text_of(node, "verdict"), order[i]) == 0)
            return i;
    return 0;
}

static int fleet_by_worst(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    size_t m = json_array_size(json_object_get(x, "issues")),
           n = json_array_size(json_object_get(y, "issues"));
    int d = fleet_rank(y) - fleet_rank(x);
    d = d ? d : (n > m) - (n < m);
    return d ? d : strcmp(text_of(x, "node"), text_of(y, "node"));
}

/* New array of the members of a map, or the elements of an array, in that order. */
static json_t *fleet_sorted(json_t *from, int (*order)(const void *a, const void *b))
{
    size_t n = json_is_array(from) ? json_array_size(from) : json_object_size(from), at = 0, i;
    json_t **list = calloc(n + 1, sizeof *list), *sorted = json_array(), *value;
    const char *key;
    if (list && json_is_array(from)) {
        json_array_foreach(from, i, value) list[at++] = value;
    }
    json_object_foreach(list && !json_is_array(from) ? from : NULL, key, value) list[at++] = value;
    if (list)
        qsort(list, at, sizeof *list, order);
    for (i = 0; list && i < at; i++)
        json_array_append(sorted, list[i]);
    free(list);
    return sorted;
}

static enum shk_verdict fleet_verdict(const json_t *verdicts, const json_t *drain,
                                      const json_t *rows)
{
    json_int_t good = json_integer_value(json_object_get(verdicts, "pass")), bad = 0;
    static const char *const words[] = {"fail", "warn"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        bad += json_integer_value(json_object_get(verdicts, words[i]));
    bool all = good && !json_object_get(verdicts, "unknown");
    return shk_past_verdict(json_array_size(drain), (size_t)bad + json_array_size(rows), all);
}

static json_t *fleet_report(const struct fleet *f, const json_t *overview, long long until)
{
    json_t *verdicts = json_object(), *causes = json_object(), *groups = json_object(),
           *drain = json_array(), *silent = json_array(), *node;
    const json_t *rows = json_object_get(overview, "rows");
    size_t i;
    json_array_foreach(f->nodes, i, node)
    {
        json_t *group = fleet_group(groups, text_of(node, "kind"));
        fleet_count(verdicts, text_of(node, "verdict"));
        fleet_count(group, text_of(node, "verdict"));
        fleet_count(group, "nodes");
        json_array_append(json_object_get(group, "names"), json_object_get(node, "node"));
        fleet_node_issues(node, causes, drain);
        if (json_integer_value(json_object_get(node, "last_at")) <
            f->last - FLEET_SILENT_DAYS * FLEET_DAY)
            json_array_append(silent, node);
    }
    fleet_flaps(rows, drain);
    json_t *report = json_pack(
        "{s:s, s:o, s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:O, s:O, s:O, s:O}", "schema",
        "shakedown.fleet/1", "until", shk_history_stamp(until), "nodes",
        (json_int_t)json_array_size(f->nodes), "verdict",
        shk_verdict_name(fleet_verdict(verdicts, drain, rows)), "verdicts", verdicts, "causes",
        fleet_sorted(causes, fleet_by_count), "groups", fleet_sorted(groups, fleet_by_count),
        "drain", drain, "silent", silent, "worst", fleet_sorted(f->nodes, fleet_by_worst), "trend",
        rows, "compared", json_object_get(overview, "compared"), "few",
        json_object_get(overview, "few"), "needs", json_object_get(overview, "needs"));
    json_decref(causes);
    json_decref(groups);
    return report;
}

json_t *shk_fleet_state(struct shk_history *history, long long until, struct shk_error *err)
{
    struct fleet f = {.history = history, .nodes = json_array(), .open = json_object(), .err = err};
    json_t *overview = shk_overview(history, until, err), *report = NULL;
    int rc = overview ? shk_history_runs(history, NULL,
                                         until - (long long)SHK_HISTORY_WINDOW * FLEET_DAY, until,
                                         fleet_run, &f, err)
                      : -EIO;
    if (!rc && !(report = fleet_report(&f, overview, until)))
        shk_error_sys(err, ENOMEM, "fleet");
    json_decref(overview);
    json_decref(f.nodes);
    json_decref(f.open);
    return report;
}
