/* The chain of one plugin candidate, from its row: file, format, abi, dependencies, versions, load,
 * init, devices, properties, loopback. */
#include "core/facts/facts.h"
#include "core/text/strbuf.h"
#include "probes/base/step.h"
#include "probes/nccl/plugin_try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *steps_text(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

/* "6, 7, 8" */
static void steps_numbers(const json_t *list, char *buf, size_t size)
{
    size_t i, len = 0;
    json_t *v;
    snprintf(buf, size, "none");
    json_array_foreach(list, i, v)
    {
        int n = snprintf(buf + len, size - len, "%s%lld", len ? ", " : "",
                         (long long)json_integer_value(v));
        len = n > 0 && (size_t)n < size - len ? len + (size_t)n : size - 1;
    }
}

/* "/x/libnccl-net.so: a link to …, which does not exist": the first file in the way; NULL: none.
 * New text (free()). */
static char *steps_blocked(const struct shk_plugin *p)
{
    const json_t *first = json_array_get(json_object_get(p->row, "blocked"), 0);
    return first ? shk_strf("%s: %s", steps_text(first, "path"), steps_text(first, "text")) : NULL;
}

static void steps_file(json_t *steps, const struct shk_plugin *p)
{
    const char *places = steps_text(p->row, "places"), *over = steps_text(p->row, "passed_over");
    char *blocked = steps_blocked(p), *note = blocked ? shk_strf("passed over: %s", blocked) : NULL;
    const json_t *first = json_array_get(json_object_get(p->row, "blocked"), 0);
    if (p->found)
        shk_step_add(steps, "file", SHK_STEP_OK, note, "%s (%s)", steps_text(p->row, "path"),
                     steps_text(p->row, "via"));
    else if (*over)
        shk_step_add(steps, "file", SHK_STEP_OK, note ? note : places, "%s", over);
    else if (blocked)
        shk_step_add(steps, "file", SHK_STEP_BROKEN, places, "%s", blocked);
    else
        shk_step_add(steps, "file", SHK_STEP_BROKEN, places, "%s: no such file", p->name);
    if (p->found || *over || !blocked)
        shk_step_where(steps, steps_text(p->row, p->found ? "path" : "passed_over"));
    else
        shk_step_where(steps, steps_text(first, "path"));
    free(blocked);
    free(note);
}

/* What the loader said to a file that looks unusable: a crash is worse than a refusal, and a file
 * that loads all the same is usable. */
static bool steps_loads(const struct shk_plugin *p)
{
    return json_is_true(json_object_get(json_object_get(p->row, "load"), "ok"));
}

static bool steps_format(json_t *steps, const struct shk_plugin *p)
{
    const char *error = steps_text(p->row, "error");
    const char *said = steps_text(json_object_get(p->row, "load"), "error");
    if (!p->found && !*error) {
        shk_step_add(steps, "format", SHK_STEP_NA, NULL, "no file");
        return false;
    }
    if (*error) {
        shk_step_add(steps, "format", steps_loads(p) ? SHK_STEP_UNKNOWN : SHK_STEP_BROKEN,
                     p->found ? said : "the loader passes over such a file without a word", "%s",
                     error);
        return false;
    }
    shk_step_add(steps, "format", SHK_STEP_OK, NULL, "ELF %d-bit shared object for %s",
                 (int)json_integer_value(json_object_get(p->row, "bits")),
                 steps_text(p->row, "machine"));
    return true;
}

static void steps_abi(json_t *steps, const struct shk_plugin *p)
{
    char exported[256], common[256];
    const char *kind = shk_nccl_abi_name(p->kind);
    json_t *wrong = json_object_get(p->row, "abi_wrong");
    json_t *list = json_object_get(json_object_get(p->row, "abi"), kind);
    steps_numbers(list, exported, sizeof exported);
    steps_numbers(json_object_get(p->row, "abi_common"), common, sizeof common);
    if (!json_array_size(list))
        shk_step_add(steps, "abi", SHK_STEP_BROKEN, NULL, "exports no %s plugin symbol", kind);
    else if (!p->usable)
        shk_step_add(steps, "abi", SHK_STEP_BROKEN, NULL,
                     "exports %s versions %s, none of which the library accepts", kind, exported);
    else if (json_array_size(wrong))
        shk_step_add(steps, "abi", SHK_STEP_BROKEN, NULL, "%s has not the size of its version",
                     steps_text(json_array_get(wrong, 0), "symbol"));
    else
        shk_step_add(steps, "abi", SHK_STEP_OK, NULL, "%s versions %s, in common: %s", kind,
                     exported, common);
}

/* Problems of the dependency walk, told apart: a library that is not there, and one that is there
 * but too old. */
static void steps_problems(json_t *steps, const struct shk_plugin *p, const char *step,
                           bool versions, const char *fine)
{
    size_t i;
    json_t *problem, *problems = json_object_get(p->row, "problems");
    if (!problems) {
        shk_step_add(steps, step, SHK_STEP_UNKNOWN, NULL, "not looked at");
        return;
    }
    json_array_foreach(problems, i, problem)
    {
        bool version = strcmp(steps_text(problem, "kind"), "version") == 0;
        if (version == versions) {
            shk_step_add(steps, step, SHK_STEP_BROKEN, steps_text(problem, "releases"), "%s",
                         steps_text(problem, "text"));
            shk_step_where(steps, steps_text(problem, "path"));
            return;
        }
    }
    shk_step_add(steps, step, SHK_STEP_OK, NULL, "%s", fine);
}

static void steps_tried(json_t *steps, const struct shk_plugin *p, const char *step,
                        const char *fine)
{
    const json_t *row = json_object_get(p->row, step);
    if (!row)
        shk_step_add(steps, step, SHK_STEP_UNKNOWN, steps_text(p->row, "untried"), "not tried");
    else if (json_is_true(json_object_get(row, "ok")))
        shk_step_add(steps, step, SHK_STEP_OK, NULL, "%s", fine);
    else
        shk_step_add(steps, step, SHK_STEP_BROKEN, NULL, "%s", steps_text(row, "error"));
    shk_step_where(steps,
                   *steps_text(row, "call") ? steps_text(row, "call") : steps_text(p->row, "path"));
}

/* Lines of a log that tell of something that went wrong. */
static bool steps_tells(const char *text)
{
    static const char *const bad[] = {"no ",    " not ",   "fail",  "error",
                                      "denied", "invalid", "unable"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        if (strcasestr(text, bad[k]))
            return true;
    return false;
}

/* The plugin's own first warning says more than its result code; where it only says that something
 * failed, the line before it says what ("No eligible providers were found"). Without a warning the
 * last line that tells of a failure. New text (free()). */
static char *steps_warning(const json_t *log)
{
    size_t i;
    json_t *line;
    const char *before = NULL, *last = NULL;
    json_array_foreach(log, i, line)
    {
        const char *text = json_string_value(line);
        if (text && strncmp(text, "WARN ", 5) == 0)
            return before ? shk_strf("%s; %s", before, text + 5) : shk_strf("%s", text + 5);
        bool level = text && (strncmp(text, "INFO ", 5) == 0 || strncmp(text, "TRACE ", 6) == 0);
        const char *said = level ? strchr(text, ' ') + 1 : text;
        bool tells = said && steps_tells(said);
        before = tells && level && *text == 'I' ? said : NULL;
        last = tells ? said : last;
    }
    return last ? shk_strf("%s", last) : NULL;
}

static void steps_init(json_t *steps, const struct shk_plugin *p)
{
    const json_t *row = json_object_get(p->row, "init");
    char fine[256];
    snprintf(fine, sizeof fine, "\"%s\" through version %d", steps_text(row, "name"), p->version);
    if (!row || json_is_true(json_object_get(row, "ok"))) {
        steps_tried(steps, p, "init", fine);
        return;
    }
    char *why = steps_warning(json_object_get(row, "log"));
    shk_step_add(steps, "init", SHK_STEP_BROKEN, why, "%s", steps_text(row, "error"));
    shk_step_where(steps, steps_text(row, "call"));
    free(why);
}

static bool steps_died_in_properties(const json_t *devices)
{
    return strncmp(steps_text(devices, "call"), "getProperties", 13) == 0;
}

static void steps_devices(json_t *steps, const struct shk_plugin *p)
{
    const json_t *row = json_object_get(p->row, "devices");
    long long count = json_integer_value(json_object_get(row, "count"));
    bool listed = json_object_get(row, "count") != NULL;
    if (steps_died_in_properties(row))
        shk_step_add(steps, "devices", SHK_STEP_OK, NULL, "answered");
    else if (!row || !listed)
        steps_tried(steps, p, "devices", "");
    else if (json_integer_value(json_object_get(row, "rc")))
        shk_step_add(steps, "devices", SHK_STEP_BROKEN, NULL, "%s", steps_text(row, "error"));
    else if (count <= 0)
        shk_step_add(steps, "devices", SHK_STEP_BROKEN, NULL, "the plugin has %lld devices", count);
    else
        shk_step_add(steps, "devices", SHK_STEP_OK, NULL, "%lld", count);
}

static void steps_properties(json_t *steps, const struct shk_plugin *p)
{
    size_t i;
    json_t *devices = json_object_get(p->row, "devices");
    json_t *device, *rows = json_object_get(devices, "rows");
    if (steps_died_in_properties(devices)) {
        shk_step_add(steps, "properties", SHK_STEP_BROKEN, NULL, "%s",
                     steps_text(devices, "error"));
        shk_step_where(steps, steps_text(devices, "call"));
        return;
    }
    if (!json_array_size(rows)) {
        shk_step_add(steps, "properties", SHK_STEP_UNKNOWN, NULL, "no device to ask");
        return;
    }
    json_array_foreach(rows, i, device)
    {
        json_t *wrong = json_object_get(device, "wrong");
        long long rc = json_integer_value(json_object_get(device, "rc"));
        const char *first = json_string_value(json_array_get(wrong, 0));
        if (!rc && !first)
            continue;
        shk_step_add(steps, "properties", SHK_STEP_BROKEN, NULL, "device %zu: %s", i,
                     first ? first : steps_text(device, "result"));
        return;
    }
    shk_step_add(steps, "properties", SHK_STEP_OK, NULL, "of %zu devices", i);
}

static void steps_loopback(json_t *steps, const struct shk_plugin *p)
{
    const json_t *row = json_object_get(p->row, "loopback");
    char fine[128];
    snprintf(fine, sizeof fine, "%lld bytes on device %lld, every one right",
             (long long)json_integer_value(json_object_get(row, "bytes")),
             (long long)json_integer_value(json_object_get(row, "device")));
    steps_tried(steps, p, "loopback", fine);
}

json_t *shk_plugin_steps(const struct shk_plugin *plugin)
{
    json_t *steps = json_array();
    steps_file(steps, plugin);
    if (!steps_format(steps, plugin))
        return steps;
    steps_abi(steps, plugin);
    steps_problems(steps, plugin, "dependencies", false, "every needed library is found");
    steps_problems(steps, plugin, "versions", true, "every needed symbol version is provided");
    steps_tried(steps, plugin, "load", "dlopen");
    if (plugin->kind != SHK_ABI_NET)
        return steps;
    steps_init(steps, plugin);
    steps_devices(steps, plugin);
    steps_properties(steps, plugin);
    steps_loopback(steps, plugin);
    return steps;
}
