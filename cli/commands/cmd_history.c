#include "cli/commands/commands.h"
#include "cli/exit_code.h"
#include "cli/history/history.h"
#include "cli/history/print.h"
#include "cli/output.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Trends of one node that are drawn at once. */
enum { HISTORY_TRENDS = 64 };

/* history add FILE... DB; with --history all are files. */
static int history_add(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_history *history = NULL;
    struct shk_collected count;
    struct shk_error err = {""};
    size_t files = o->arguments.count - 1 - !o->history;
    if (o->arguments.count < 2 + (size_t)!o->history) {
        shk_say("history add needs FILE... DATABASE");
        return SHK_EXIT_USAGE;
    }
    const char *path = o->history ? o->history : o->arguments.items[o->arguments.count - 1];
    int rc = shk_history_open(&history, path, true, &err);
    if (rc)
        return shk_history_fail(&err, rc);
    int code = shk_collect(session, history, o->arguments.items + 1, files, &count);
    shk_history_close(history);
    if (code == SHK_EXIT_OK)
        shk_say("%s: %zu run%s added, %zu already present, %zu skipped", path, count.added,
                count.added == 1 ? "" : "s", count.known,
                count.undated + count.unnamed + count.future);
    if (code == SHK_EXIT_OK && count.unreadable + count.undated + count.unnamed + count.future)
        code = SHK_EXIT_USAGE;
    return code;
}

struct history_names {
    const char *want;
    bool found;
    json_t *list;
};

static int history_name(const char *name, void *arg)
{
    struct history_names *names = arg;
    names->found |= names->want && strcmp(name, names->want) == 0;
    if (names->list && shk_metric_find(name))
        json_array_append_new(names->list, json_string(name));
    return 0;
}

static void history_keep(json_t *document, const char *metric)
{
    json_t *rows = json_object_get(document, "rows");
    for (size_t i = json_array_size(rows); i-- > 0;) {
        const char *name = json_string_value(json_object_get(json_array_get(rows, i), "metric"));
        if (!name || strcmp(name, metric) != 0)
            json_array_remove(rows, i);
    }
}

/* The worst of the trends; PASS only where each passes. */
static enum shk_verdict history_verdict(const json_t *trends)
{
    size_t i, drains = 0, wrong = 0, good = 0;
    json_t *trend;
    json_array_foreach((json_t *)trends, i, trend)
    {
        const char *verdict = json_string_value(json_object_get(trend, "verdict"));
        drains += strcmp(verdict, shk_verdict_name(SHK_FAIL)) == 0;
        wrong += strcmp(verdict, shk_verdict_name(SHK_WARN)) == 0;
        good += strcmp(verdict, shk_verdict_name(SHK_PASS)) == 0;
    }
    return shk_past_verdict(drains, wrong, good == i ? good : 0);
}

/* {"schema", "until", "verdict", "trends": […]} of one node, of all its metrics or of one. */
static json_t *history_node(struct shk_history *history, const char *node, const char *metric,
                            long long until, struct shk_error *err)
{
    struct history_names names = {.list = json_array()};
    json_t *document = json_pack("{s:s, s:[]}", "schema", "shakedown.trend/1", "trends"), *name;
    json_t *trends = json_object_get(document, "trends");
    size_t i;
    int rc = 0;
    if (metric)
        json_array_append_new(names.list, json_string(metric));
    else
        rc = shk_history_metrics(history, history_name, &names, err);
    json_array_foreach(names.list, i, name)
    {
        struct shk_error why = {""};
        json_t *trend = rc || json_array_size(trends) >= HISTORY_TRENDS
                            ? NULL
                            : shk_trend(history, node, json_string_value(name), until, &why);
        if (trend)
            json_array_append_new(trends, trend);
        else if (!rc && metric)
            rc = shk_error_set(err, EINVAL, "%s", why.text);
    }
    json_decref(names.list);
    json_object_set_new(document, "until", shk_history_stamp(until));
    json_object_set_new(document, "verdict",
                        json_string(shk_verdict_name(history_verdict(trends))));
    if (!rc && !json_array_size(trends))
        rc = shk_error_set(err, EINVAL, "%.64s: nothing was measured in the last %d days", node,
                           SHK_HISTORY_WINDOW);
    if (rc) {
        json_decref(document);
        return NULL;
    }
    return document;
}

/* Arguments: a node, a metric, both in either order, or none. */
static json_t *history_ask(struct shk_history *history, const struct shk_options *o,
                           long long until, struct shk_error *err)
{
    const char *node = NULL, *metric = NULL;
    for (size_t i = 0; i < o->arguments.count; i++) {
        const char *word = o->arguments.items[i];
        struct history_names names = {.want = word};
        int rc = shk_history_nodes(history, history_name, &names, err);
        bool is_node = !rc && names.found && !node;
        if (!rc && !is_node)
            rc = shk_history_metrics(history, history_name, &names, err);
        if (rc)
            return NULL;
        if (!names.found) {
            shk_error_set(err, EINVAL, "%.100s: neither a node nor a metric of the history", word);
            return NULL;
        }
        *(is_node ? &node : &metric) = word;
    }
    if (node)
        return history_node(history, node, metric, until, err);
    json_t *document = shk_overview(history, until, err);
    if (document && metric)
        history_keep(document, metric);
    return document;
}

static int history_show(struct shk_session *session)
{
    const struct shk_options *o = session->options;
    struct shk_history *history = NULL;
    struct shk_error err = {""};
    long long until;
    int code = shk_history_until(session, &until);
    if (code == SHK_EXIT_OK)
        code = shk_history_outputs(o);
    if (code != SHK_EXIT_OK)
        return code;
    int rc = shk_history_open(&history, shk_history_place(o), false, &err);
    if (rc)
        return shk_history_fail(&err, rc);
    json_t *document = history_ask(history, o, until, &err);
    shk_history_close(history);
    if (!document) {
        shk_say("%s", err.text);
        return SHK_EXIT_USAGE;
    }
    const json_t *row;
    size_t i;
    bool drain = false;
    json_array_foreach(json_object_get(document, "rows"), i, row)
    {
        drain |= json_is_true(json_object_get(row, "drain"));
    }
    code = shk_history_print(o, document);
    json_decref(document);
    return code == SHK_EXIT_OK && drain ? SHK_EXIT_FAIL : code;
}

int shk_cmd_history(const struct shk_options *options, int argc, char **argv)
{
    struct shk_session session;
    bool add = options->arguments.count && strcmp(options->arguments.items[0], "add") == 0;
    int rc = shk_session_open(&session, options, argc, argv);
    if (rc == SHK_EXIT_OK)
        rc = add ? history_add(&session) : history_show(&session);
    shk_session_end(&session);
    return rc;
}
