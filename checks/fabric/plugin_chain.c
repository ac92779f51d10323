/* The chain of one plugin candidate, from its row: file, format, abi, dependencies, versions, load,
 * init, devices, properties, loopback. */
#include "checks/fabric/plugin.h"

#include <stdlib.h>
#include <string.h>

#define steps_text shk_plugin_text

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
static char *steps_blocked(const json_t *plugin)
{
    const json_t *first = json_array_get(json_object_get(plugin, "blocked"), 0);
    return first ? shk_strf("%s: %s", steps_text(first, "path"), steps_text(first, "text")) : NULL;
}

static void steps_file(struct shk_chain *chain, const json_t *plugin)
{
    const char *places = steps_text(plugin, "places"), *over = steps_text(plugin, "passed_over");
    char *blocked = steps_blocked(plugin),
         *note = blocked ? shk_strf("passed over: %s", blocked) : NULL;
    const json_t *first = json_array_get(json_object_get(plugin, "blocked"), 0);
    bool found = shk_plugin_is_found(plugin) == SHK_TOLD_YES;
    if (found)
        shk_chain_add(chain, "file", SHK_LINK_OK, note, "%s (%s)", steps_text(plugin, "path"),
                      steps_text(plugin, "via"));
    else if (*over)
        shk_chain_add(chain, "file", SHK_LINK_OK, note ? note : places, "%s", over);
    else if (blocked)
        shk_chain_add(chain, "file", SHK_LINK_BROKEN, places, "%s", blocked);
    else
        shk_chain_add(chain, "file", SHK_LINK_BROKEN, places, "%s: no such file",
                      steps_text(plugin, "name"));
    if (!found && !*over && blocked)
        shk_chain_code(chain, SHK_CODE_BLOCKED);
    if (found || *over || !blocked)
        shk_chain_where(chain, steps_text(plugin, found ? "path" : "passed_over"));
    else
        shk_chain_where(chain, steps_text(first, "path"));
    free(blocked);
    free(note);
}

/* What the loader said to a file that looks unusable: a crash is worse than a refusal, and a file
 * that loads all the same is usable. */
static bool steps_loads(const json_t *plugin)
{
    return json_is_true(json_object_get(json_object_get(plugin, "load"), "ok"));
}

/* Died or did not return at that step, rather than returned an error. */
static bool steps_died(const json_t *plugin, const char *step)
{
    static const char *const outcomes[] = {"crashed", "exited", "timeout", "memory", NULL};
    return shk_list_has(outcomes, steps_text(json_object_get(plugin, step), "outcome"));
}

static bool steps_cut_off(const json_t *plugin)
{
    bool cut_off = false;
    return shk_look_member_bool(plugin, "cut_off", &cut_off) == SHK_LOOK_PRESENT && cut_off;
}

/* False when there is nothing to look at after it. */
static bool steps_format(struct shk_chain *chain, const json_t *plugin)
{
    const char *error = steps_text(plugin, "error"), *machine = steps_text(plugin, "machine");
    const char *said = steps_text(json_object_get(plugin, "load"), "error");
    bool found = shk_plugin_is_found(plugin) == SHK_TOLD_YES;
    long long bits = 0;
    if (!found && !*error) {
        shk_chain_add(chain, "format", SHK_LINK_NA, NULL, "no file");
        return false;
    }
    if (*error) {
        shk_chain_add(chain, "format", steps_loads(plugin) ? SHK_LINK_UNKNOWN : SHK_LINK_BROKEN,
                      found ? said : "the loader silently passes over such a file", "%s", error);
        if (steps_cut_off(plugin) || steps_died(plugin, "load"))
            shk_chain_code(chain, SHK_CODE_DIED);
        return false;
    }
    if (shk_look_member_int(plugin, "bits", &bits) == SHK_LOOK_PRESENT)
        shk_chain_add(chain, "format", SHK_LINK_OK, NULL, "ELF %lld-bit shared object for %s", bits,
                      machine);
    else
        shk_chain_add(chain, "format", SHK_LINK_UNKNOWN, NULL, "not checked");
    return true;
}

static void steps_abi(struct shk_chain *chain, const json_t *plugin)
{
    char exported[256], common[256];
    const char *kind = steps_text(plugin, "kind");
    json_t *abi = NULL, *both = NULL, *wrong = json_object_get(plugin, "abi_wrong");
    json_t *list = NULL;
    (void)shk_look_member_object(plugin, "abi", &abi);
    bool known = shk_look_member_numbers(abi, kind, &list) == SHK_LOOK_PRESENT;
    steps_numbers(list, exported, sizeof exported);
    if (!known)
        shk_chain_add(chain, "abi", SHK_LINK_UNKNOWN, NULL, "not checked");
    else if (!json_array_size(list))
        shk_chain_add(chain, "abi", SHK_LINK_BROKEN, NULL, "exports no %s plugin symbol", kind);
    else if (shk_look_member_numbers(plugin, "abi_common", &both) != SHK_LOOK_PRESENT)
        shk_chain_add(chain, "abi", SHK_LINK_UNKNOWN, NULL,
                      "exports %s versions %s; those in common are not known", kind, exported);
    else if (!json_array_size(both))
        shk_chain_add(chain, "abi", SHK_LINK_BROKEN, NULL,
                      "exports %s versions %s, none of which the library accepts", kind, exported);
    else if (json_array_size(wrong))
        shk_chain_add(chain, "abi", SHK_LINK_BROKEN, NULL, "%s has not the size of its version",
                      steps_text(json_array_get(wrong, 0), "symbol"));
    else {
        steps_numbers(both, common, sizeof common);
        shk_chain_add(chain, "abi", SHK_LINK_OK, NULL, "%s versions %s, in common: %s", kind,
                      exported, common);
    }
    /* older documents have no abi_common; plugin.abi finds it out by itself */
    if (!known || shk_look_member(plugin, "abi_common", &both) == SHK_LOOK_FAILED ||
        (both && !json_is_array(both)))
        shk_chain_last(chain)->unread = SHK_PLUGIN_FACT;
}

/* A symbol version of libfabric ("FABRIC_1.8"), alone or in what the loader said. */
static bool steps_of_libfabric(const char *text)
{
    return strstr(text, "FABRIC_") != NULL;
}

/* Problems of the dependency walk, told apart: a library that is not there, and one that is there
 * but too old. */
static void steps_problems(struct shk_chain *chain, const json_t *plugin, const char *step,
                           bool versions, const char *fine)
{
    size_t i;
    json_t *problem, *problems = NULL;
    if (shk_look_member_array(plugin, "problems", &problems) != SHK_LOOK_PRESENT) {
        shk_chain_add(chain, step, SHK_LINK_UNKNOWN, NULL, "not checked");
        return;
    }
    json_array_foreach(problems, i, problem)
    {
        bool version = strcmp(steps_text(problem, "kind"), "version") == 0;
        if (version == versions) {
            shk_chain_add(chain, step, SHK_LINK_BROKEN, steps_text(problem, "releases"), "%s",
                          steps_text(problem, "text"));
            shk_chain_where(chain, steps_text(problem, "path"));
            if (steps_of_libfabric(steps_text(problem, "version")))
                shk_chain_code(chain, SHK_CODE_LIBFABRIC_OLD);
            return;
        }
    }
    shk_chain_add(chain, step, SHK_LINK_OK, NULL, "%s", fine);
}

/* A call that was tried, by its member of that name. */
static void steps_tried(struct shk_chain *chain, const json_t *plugin, const char *step,
                        const char *fine)
{
    json_t *row = NULL;
    bool ok = false;
    enum shk_look look = shk_look_member_object(plugin, step, &row);
    const char *error = steps_text(row, "error"), *untried = steps_text(plugin, "untried");
    if (look == SHK_LOOK_MISSING)
        shk_chain_add(chain, step, SHK_LINK_UNKNOWN, untried, "not tried");
    else if (shk_look_member_bool(row, "ok", &ok) != SHK_LOOK_PRESENT)
        shk_chain_add(chain, step, SHK_LINK_UNKNOWN, NULL, "how it went could not be read");
    else if (ok)
        shk_chain_add(chain, step, SHK_LINK_OK, NULL, "%s", fine);
    else
        shk_chain_add(chain, step, SHK_LINK_BROKEN, NULL, "%s", *error ? error : "no reason given");
    if (steps_died(plugin, step))
        shk_chain_code(chain, SHK_CODE_DIED);
    shk_chain_where(chain, *steps_text(row, "call") ? steps_text(row, "call")
                                                    : steps_text(plugin, "path"));
}

static bool steps_is_broken(struct shk_chain *chain)
{
    const struct shk_link *last = shk_chain_last(chain);
    return last && last->state == SHK_LINK_BROKEN && last->code == SHK_CODE_NONE;
}

/* Once dlopen() has succeeded the path of what it took is known: then the table is at fault. */
static void steps_load(struct shk_chain *chain, const json_t *plugin)
{
    const json_t *row = json_object_get(plugin, "load");
    steps_tried(chain, plugin, "load", "dlopen");
    if (!steps_is_broken(chain))
        return;
    if (*steps_text(row, "missing_slots") || *steps_text(row, "path"))
        shk_chain_code(chain, SHK_CODE_SLOTS_MISSING);
    else if (steps_of_libfabric(steps_text(row, "error")))
        shk_chain_code(chain, SHK_CODE_LIBFABRIC_OLD);
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

/* Names of the accelerators' runtimes in what the plugin said about its start. */
static bool steps_names_gpu(const char *said)
{
    static const char *const names[] = {"CUDA", "cuda", "hip", "HIP", "ROCr", "GPU", "Neuron"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(said, names[i]))
            return true;
    return false;
}

static void steps_init(struct shk_chain *chain, const json_t *plugin)
{
    const json_t *row = json_object_get(plugin, "init");
    char fine[256], *said = steps_warning(json_object_get(row, "log"));
    struct shk_link *last = &chain->links[chain->count];
    snprintf(fine, sizeof fine, "\"%s\" through version %lld", steps_text(row, "name"),
             (long long)json_integer_value(json_object_get(row, "version")));
    steps_tried(chain, plugin, "init", fine);
    if (last->state == SHK_LINK_BROKEN && said) {
        free(last->detail);
        last->detail = said;
        said = NULL;
    }
    if (steps_is_broken(chain) && *steps_text(row, "missing_slots"))
        shk_chain_code(chain, SHK_CODE_SLOTS_MISSING);
    else if (steps_is_broken(chain) && steps_names_gpu(last->detail))
        shk_chain_code(chain, SHK_CODE_NAMES_GPU);
    free(said);
}

static bool steps_died_in_properties(const json_t *devices)
{
    return strncmp(steps_text(devices, "call"), "getProperties", 13) == 0;
}

static void steps_devices(struct shk_chain *chain, const json_t *plugin)
{
    const json_t *row = json_object_get(plugin, "devices");
    long long count = 0, rc = 0;
    bool listed = shk_look_member_int(row, "count", &count) == SHK_LOOK_PRESENT;
    (void)shk_look_member_int(row, "rc", &rc);
    if (steps_died_in_properties(row))
        shk_chain_add(chain, "devices", SHK_LINK_OK, NULL, "answered");
    else if (!row || !listed)
        steps_tried(chain, plugin, "devices", "");
    else if (rc)
        shk_chain_add(chain, "devices", SHK_LINK_BROKEN, NULL, "%s", steps_text(row, "error"));
    else if (count <= 0)
        shk_chain_add(chain, "devices", SHK_LINK_BROKEN, NULL, "the plugin has %lld devices",
                      count);
    else
        shk_chain_add(chain, "devices", SHK_LINK_OK, NULL, "%lld", count);
    if (steps_died(plugin, "devices") && !steps_died_in_properties(row))
        shk_chain_code(chain, SHK_CODE_DIED);
    else if (rc)
        shk_chain_code(chain, SHK_CODE_CALL_FAILED);
}

static void steps_properties(struct shk_chain *chain, const json_t *plugin)
{
    size_t i;
    json_t *devices = json_object_get(plugin, "devices");
    json_t *device, *rows = json_object_get(devices, "rows");
    if (steps_died_in_properties(devices)) {
        shk_chain_add(chain, "properties", SHK_LINK_BROKEN, NULL, "%s",
                      steps_text(devices, "error"));
        shk_chain_where(chain, steps_text(devices, "call"));
        if (steps_died(plugin, "devices"))
            shk_chain_code(chain, SHK_CODE_DIED);
        return;
    }
    if (!json_array_size(rows)) {
        shk_chain_add(chain, "properties", SHK_LINK_UNKNOWN, NULL, "no device to ask");
        return;
    }
    json_array_foreach(rows, i, device)
    {
        json_t *wrong = json_object_get(device, "wrong");
        long long rc = json_integer_value(json_object_get(device, "rc"));
        const char *first = json_string_value(json_array_get(wrong, 0));
        if (!rc && !first)
            continue;
        shk_chain_add(chain, "properties", SHK_LINK_BROKEN, NULL, "device %zu: %s", i,
                      first ? first : steps_text(device, "result"));
        return;
    }
    shk_chain_add(chain, "properties", SHK_LINK_OK, NULL, "of %zu devices", i);
}

/* What does not complete in time has no call that failed: only its step is known. */
static void steps_loopback(struct shk_chain *chain, const json_t *plugin)
{
    static const char *const waits[] = {"connect", "accept", "test", "isend", "irecv", NULL};
    const json_t *row = json_object_get(plugin, "loopback");
    char fine[128];
    snprintf(fine, sizeof fine, "%lld bytes on device %lld, every one right",
             (long long)json_integer_value(json_object_get(row, "bytes")),
             (long long)json_integer_value(json_object_get(row, "device")));
    steps_tried(chain, plugin, "loopback", fine);
    if (!steps_is_broken(chain))
        return;
    const char *step = steps_text(row, "step");
    if (strcmp(step, "verify") == 0)
        shk_chain_code(chain, SHK_CODE_DATA_WRONG);
    else if (shk_list_has(waits, step) && json_integer_value(json_object_get(row, "rc")) == 0)
        shk_chain_code(chain, SHK_CODE_PENDING);
}

void shk_plugin_chain(const json_t *plugin, struct shk_chain *chain)
{
    *chain = (struct shk_chain){.count = 0};
    steps_file(chain, plugin);
    if (!steps_format(chain, plugin))
        return;
    steps_abi(chain, plugin);
    steps_problems(chain, plugin, "dependencies", false, "every needed library is found");
    steps_problems(chain, plugin, "versions", true, "every needed symbol version is provided");
    steps_load(chain, plugin);
    if (strcmp(steps_text(plugin, "kind"), "net") != 0)
        return;
    steps_init(chain, plugin);
    steps_devices(chain, plugin);
    steps_properties(chain, plugin);
    steps_loopback(chain, plugin);
}
