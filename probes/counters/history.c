/* What the counters of the network and the kernel's log say of the time before: old totals, and
 * what was logged since boot. */
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/counters/counters_private.h"

#include <stdbool.h>
#include <string.h>

static const char totals_key[] = "counters.totals", events_key[] = "kernel.log.events";

static bool is_load(const char *kind)
{
    return !kind || strcmp(kind, "busy") == 0;
}

/* Errors only, and only what is not 0. */
static json_t *history_errors(const struct counters *c)
{
    json_t *errors = json_object(), *counters, *value;
    const char *scope, *name;
    json_object_foreach(c->values, scope, counters)
    {
        json_object_foreach(counters, name, value)
        {
            json_t *of = json_object_get(errors, scope);
            if (json_integer_value(value) <= 0 ||
                is_load(json_string_value(json_object_get(c->kinds, name))))
                continue;
            if (!of && json_object_set_new(errors, scope, of = json_object()) != 0)
                continue;
            json_object_set(of, name, value);
        }
    }
    return errors;
}

static void history_totals(struct shk_gather *g, struct counters *c)
{
    counters_rdma(c);
    counters_cxi(c);
    if (!json_object_size(c->classes)) {
        shk_gather_absent(g, totals_key, "/sys/class/infiniband", "no RDMA or Slingshot device");
        return;
    }
    json_t *read = json_array(), *value;
    const char *scope;
    json_object_foreach(c->values, scope, value) json_array_append_new(read, json_string(scope));
    shk_gather_present(g, totals_key,
                       json_pack("{s:o, s:o, s:o}", "read", read, "errors", history_errors(c),
                                 "unread", json_deep_copy(c->unread)),
                       NULL, "/sys/class/infiniband, /sys/class/cxi");
}

/* Events of one kind at one device are one entry: how many, when first and last. */
static void history_fold(json_t *list, const json_t *event)
{
    static const char *const same[] = {"scope", "counter", "kind"};
    json_t *entry;
    size_t i, k;
    json_array_foreach(list, i, entry)
    {
        for (k = 0; k < 3; k++)
            if (!json_equal(json_object_get(entry, same[k]), json_object_get(event, same[k])))
                break;
        if (k < 3)
            continue;
        json_int_t count = json_integer_value(json_object_get(entry, "count"));
        json_object_set_new(entry, "count", json_integer(count + 1));
        json_object_set_new(
            entry, "last_s",
            json_integer(json_integer_value(json_object_get(event, "usec")) / 1000000));
        return;
    }
    json_int_t seconds = json_integer_value(json_object_get(event, "usec")) / 1000000;
    json_array_append_new(
        list, json_pack("{s:O, s:O, s:O, s:O, s:i, s:I, s:I, s:O}", "scope",
                        json_object_get(event, "scope"), "class", json_object_get(event, "class"),
                        "counter", json_object_get(event, "counter"), "kind",
                        json_object_get(event, "kind"), "count", 1, "first_s", seconds, "last_s",
                        seconds, "line", json_object_get(event, "line")));
}

static void history_log(struct shk_gather *g, struct counters *c)
{
    json_t *list = json_array(), *event;
    size_t i;
    counters_kmsg(c);
    const char *why = json_string_value(json_object_get(c->unread, "kernel log"));
    json_array_foreach(json_object_get(c->log, "events"), i, event) history_fold(list, event);
    if (why) {
        shk_gather_failed(g, events_key, "/dev/kmsg", "%s", why);
        json_decref(list);
        return;
    }
    shk_gather_present(g, events_key, list, NULL, "/dev/kmsg");
}

static int history_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct counters c = {
        .host = g.host,
        .values = json_object(),
        .kinds = json_object(),
        .classes = json_object(),
        .unread = json_object(),
        .log = json_object(),
    };
    history_totals(&g, &c);
    history_log(&g, &c);
    json_decref(c.values);
    json_decref(c.kinds);
    json_decref(c.classes);
    json_decref(c.unread);
    json_decref(c.log);
    return shk_gather_end(&g, err);
}

static const char *const history_provides[] = {totals_key, events_key, NULL};

const struct shk_probe shk_probe_history = {
    .name = "history",
    .phase = SHK_PHASE_HOST,
    .doc = "errors that RDMA and Slingshot devices counted, and what the kernel logged of devices",
    .provides = history_provides,
    .deadline_ms = 5000,
    .run = history_run,
};
