#include "probes/nccl/plugin_try.h"

#include "core/facts/facts.h"
#include "core/run/dynlib.h"
#include "core/run/isolate.h"
#include "probes/nccl/plugin_child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Lines of a plugin's log that are kept, candidates that are put through init, and how many at a
 * time. Below TRY_LEAST_MS a deadline would say more about us than about the plugin. */
enum { TRY_MAX_LOG = 60, TRY_MAX = 64, TRY_PARALLEL = 4, TRY_LEAST_MS = 250 };

static json_t *try_text(const char *text)
{
    return text ? shk_json_text(text, strlen(text)) : json_null();
}

static json_t *try_log(const char *output)
{
    json_t *lines = json_array();
    for (const char *p = output; p && *p && json_array_size(lines) < TRY_MAX_LOG;) {
        size_t n = strcspn(p, "\n");
        if (n)
            json_array_append_new(lines, shk_json_text(p, n));
        p += n + (p[n] == '\n');
    }
    return lines;
}

/* What every kind of try records: how it ended, and where when it did not end well. */
static json_t *try_outcome(const struct shk_isolate_result *r)
{
    json_t *row = json_is_object(r->result) ? json_copy(r->result) : json_object();
    json_object_set_new(row, "ok", json_boolean(r->outcome == SHK_CHILD_OK));
    json_object_set_new(row, "outcome", json_string(shk_isolate_outcome_name(r->outcome)));
    json_object_set_new(row, "wall_ms", json_real(r->ms));
    if (r->outcome != SHK_CHILD_OK) {
        if (!json_object_get(row, "error"))
            json_object_set_new(row, "error", try_text(r->error.text));
        if (*r->call)
            json_object_set_new(row, "call", try_text(r->call));
    }
    if (r->output)
        json_object_set_new(row, "log", try_log(r->output));
    return row;
}

struct round {
    int (*fn)(void *arg, json_t **result_p, struct shk_error *err);
    const char *name;
    unsigned deadline_ms;
    double share; /* of the time that is left, when that is short */
    bool (*wanted)(const struct shk_plugin *plugin);
    void (*store)(struct shk_plugin *plugin, const struct shk_isolate_result *result);
};

static const char *try_path(const struct shk_plugin *plugin)
{
    return json_string_value(json_object_get(plugin->row, "path"));
}

static bool try_ok(const struct shk_plugin *plugin, const char *step)
{
    return json_is_true(json_object_get(json_object_get(plugin->row, step), "ok"));
}

/* Deadline of each of n jobs, so that all of them and the later rounds find time. */
static unsigned try_deadline(const struct round *round, size_t n)
{
    double left = shk_isolate_left_ms();
    if (left < 0)
        return round->deadline_ms;
    size_t turns = (n + TRY_PARALLEL - 1) / TRY_PARALLEL;
    double each = left * round->share / (double)turns;
    return each < round->deadline_ms ? (unsigned)each : round->deadline_ms;
}

static int try_round(const struct round *round, struct shk_plugin *plugins, size_t count,
                     struct shk_error *err)
{
    struct shk_plugin_job args[TRY_MAX];
    struct shk_isolate_job jobs[TRY_MAX];
    size_t index[TRY_MAX], n = 0;
    for (size_t i = 0; i < count && n < TRY_MAX; i++) {
        if (!try_path(&plugins[i]) || !round->wanted(&plugins[i]))
            continue;
        args[n] =
            (struct shk_plugin_job){.path = try_path(&plugins[i]), .version = plugins[i].version};
        jobs[n] = (struct shk_isolate_job){.name = round->name, .fn = round->fn, .arg = &args[n]};
        index[n++] = i;
    }
    unsigned deadline_ms = n ? try_deadline(round, n) : 0;
    for (size_t i = 0; i < n; i++) {
        jobs[i].deadline_ms = deadline_ms;
        /* pending connections are told apart from a call that does not return */
        args[i].connect_ms = deadline_ms / 2;
        if (deadline_ms < TRY_LEAST_MS)
            json_object_set_new(plugins[index[i]].row, "untried",
                                json_sprintf("%s: no time was left", round->name));
    }
    if (deadline_ms < TRY_LEAST_MS)
        return 0;
    struct shk_isolate_result *results = calloc(n, sizeof *results);
    if (!results)
        return shk_error_sys(err, ENOMEM, "%s", round->name);
    int rc = shk_isolate_run(jobs, results, n, TRY_PARALLEL, err);
    for (size_t i = 0; i < n && !rc; i++) {
        /* how a step ends that had no processor time is not known */
        if (results[i].outcome == SHK_CHILD_STARVED)
            json_object_set_new(plugins[index[i]].row, "untried", try_text(results[i].error.text));
        else
            round->store(&plugins[index[i]], &results[i]);
        shk_isolate_result_clear(&results[i]);
    }
    free(results);
    return rc;
}

/* As root: neither the plugin nor what it brings along may be changed by others. */
static void try_permit(struct shk_plugin *plugin)
{
    struct shk_error why = {""};
    json_t *needed = json_object_get(plugin->row, "needed"), *row;
    size_t i;
    int rc = try_path(plugin) ? shk_dynlib_permitted(try_path(plugin), &why) : 0;
    json_array_foreach(needed, i, row)
    {
        const char *path = json_string_value(json_object_get(row, "path"));
        if (!rc && path)
            rc = shk_dynlib_permitted(path, &why);
    }
    if (rc) {
        json_object_set_new(plugin->row, "untried", try_text(why.text));
        json_object_set_new(plugin->row, "refused", json_true());
    }
}

/* A file that cannot be read as a library is tried, too: what the loader does with it is the truth.
 * Not so one for another machine, of which the loader would say "No such file". */
static bool try_wants_load(const struct shk_plugin *plugin)
{
    bool read = json_object_get(plugin->row, "needed") != NULL;
    bool odd = json_object_get(plugin->row, "error") && !json_object_get(plugin->row, "machine");
    return plugin->found && (read || odd) && !json_object_get(plugin->row, "untried");
}

static void try_store_load(struct shk_plugin *plugin, const struct shk_isolate_result *result)
{
    json_object_set_new(plugin->row, "load", try_outcome(result));
}

static bool try_wants_init(const struct shk_plugin *plugin)
{
    return plugin->considered && plugin->kind == SHK_ABI_NET && plugin->version &&
           try_ok(plugin, "load");
}

/* The devices call has a member of its own, also when the child did not live to tell. */
static void try_store_init(struct shk_plugin *plugin, const struct shk_isolate_result *result)
{
    json_t *row = try_outcome(result);
    json_t *devices = json_object_get(row, "devices");
    bool beyond =
        strncmp(result->call, "devices", 7) == 0 || strncmp(result->call, "getProperties", 13) == 0;
    if (devices || beyond) {
        json_t *own = devices ? json_deep_copy(devices) : json_object();
        json_object_set_new(own, "ok", json_boolean(result->outcome == SHK_CHILD_OK));
        json_object_set_new(own, "outcome", json_string(shk_isolate_outcome_name(result->outcome)));
        if (result->outcome != SHK_CHILD_OK) {
            json_object_set_new(own, "error", try_text(result->error.text));
            json_object_set_new(own, "call", try_text(result->call));
        }
        json_object_set_new(plugin->row, "devices", own);
        json_object_set_new(row, "ok", json_true());
        json_object_set_new(row, "outcome", json_string("ok"));
        json_object_del(row, "error");
        json_object_del(row, "call");
        json_object_del(row, "devices");
    }
    json_object_set_new(plugin->row, "init", row);
}

static bool try_wants_loopback(const struct shk_plugin *plugin)
{
    json_t *devices = json_object_get(plugin->row, "devices");
    return try_ok(plugin, "init") && try_ok(plugin, "devices") &&
           json_integer_value(json_object_get(devices, "count")) > 0;
}

static void try_store_loopback(struct shk_plugin *plugin, const struct shk_isolate_result *result)
{
    json_t *row = try_outcome(result);
    if (!json_object_get(row, "step") && *result->call)
        json_object_set_new(row, "step", try_text(result->call));
    json_object_set_new(plugin->row, "loopback", row);
}

int shk_plugin_try(struct shk_plugin *plugins, size_t count,
                   const struct shk_plugin_deadlines *deadlines, bool quick, struct shk_error *err)
{
    const struct round rounds[] = {
        {.fn = shk_plugin_child_load,
         .name = "plugin load",
         .deadline_ms = deadlines->load_ms,
         .share = 0.3,
         .wanted = try_wants_load,
         .store = try_store_load},
        {.fn = shk_plugin_child_init,
         .name = "plugin init",
         .deadline_ms = deadlines->init_ms,
         .share = 0.5,
         .wanted = try_wants_init,
         .store = try_store_init},
        {.fn = shk_plugin_child_loopback,
         .name = "plugin loopback",
         .deadline_ms = deadlines->loopback_ms,
         .share = 0.9,
         .wanted = try_wants_loopback,
         .store = try_store_loopback},
    };
    int rc = 0;
    for (size_t i = 0; i < count; i++)
        try_permit(&plugins[i]);
    for (size_t i = 0; i < (quick ? 1 : 3) && !rc; i++)
        rc = try_round(&rounds[i], plugins, count, err);
    return rc;
}
