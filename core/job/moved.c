#include "core/job/moved.h"
#include <string.h>

static const char log_scope[] = "kernel log";

static void moved_unread(json_t *unread, const char *scope, const char *why)
{
    (void)json_array_append_new(unread, json_pack("{s:s, s:s}", "scope", scope, "why", why));
}

static const char *moved_word(const json_t *table, const char *name, const char *other)
{
    const char *word = json_string_value(json_object_get(table, name));

    return word != NULL ? word : other;
}

/* NULL, or why the scope is not known. */
static const char *moved_scope(json_t *moved, const char *scope, const json_t *doc, json_t *before,
                               json_t *after)
{
    const char *class = moved_word(json_object_get(doc, "classes"), scope, "network");
    const char *name = NULL;
    json_t *value = NULL;

    json_object_foreach(after, name, value)
    {
        const json_t *was = json_object_get(before, name);
        json_int_t by = json_integer_value(value) - json_integer_value(was);

        if (was == NULL) {
            return "it was not there before";
        }
        if (by < 0) {
            return "a counter went back meanwhile";
        }
        if (by > 0) {
            (void)json_array_append_new(
                moved,
                json_pack("{s:s, s:s, s:s, s:s, s:I}", "scope", scope, "class", class, "counter",
                          name, "kind", moved_word(json_object_get(doc, "kinds"), name, "busy"),
                          "by", by));
        }
    }
    return json_object_size(before) > json_object_size(after) ? "it was there only before" : NULL;
}

/* The entry of `moved` about an event of that kind, at that device; NULL. */
static json_t *moved_event(const json_t *moved, const json_t *event)
{
    json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(moved, i, row)
    {
        if (json_equal(json_object_get(row, "scope"), json_object_get(event, "scope")) &&
            json_equal(json_object_get(row, "kind"), json_object_get(event, "kind")) &&
            json_equal(json_object_get(row, "counter"), json_object_get(event, "counter"))) {
            return row;
        }
    }
    return NULL;
}

/* Lines of the kernel's log that came after the first reading. */
static void moved_log(json_t *moved, const json_t *before, const json_t *after)
{
    json_int_t last = json_integer_value(json_object_get(json_object_get(before, "log"), "last"));
    json_t *event = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(json_object_get(after, "log"), "events"), i, event)
    {
        json_t *row = moved_event(moved, event);

        if (json_integer_value(json_object_get(event, "seq")) <= last) {
            continue;
        }
        if (row != NULL) {
            json_int_t by = json_integer_value(json_object_get(row, "by"));

            (void)json_object_set_new(row, "by", json_integer(by + 1));
        } else {
            (void)json_array_append_new(moved, json_pack("{s:O, s:O, s:O, s:O, s:i, s:O}", "scope",
                                                         json_object_get(event, "scope"), "class",
                                                         json_object_get(event, "class"), "counter",
                                                         json_object_get(event, "counter"), "kind",
                                                         json_object_get(event, "kind"), "by", 1,
                                                         "line", json_object_get(event, "line")));
        }
    }
}

json_t *shk_moved(const json_t *before, const json_t *after)
{
    json_t *was = json_object_get(before, "values");
    json_t *now = json_object_get(after, "values");
    json_t *failed = json_object_get(after, "unread");
    double seconds = json_number_value(json_object_get(after, "time")) -
                     json_number_value(json_object_get(before, "time"));
    json_t *classes = json_deep_copy(json_object_get(before, "classes"));
    json_t *read = json_array();
    json_t *moved = json_array();
    json_t *unread = json_array();
    const char *scope = NULL;
    json_t *value = NULL;

    json_object_foreach(now, scope, value)
    {
        const char *why = moved_scope(moved, scope, after, json_object_get(was, scope), value);

        if (json_object_get(failed, scope) != NULL) {
            continue;
        }
        if (json_object_get(was, scope) == NULL) {
            why = "it was not there before";
        }
        if (why != NULL) {
            moved_unread(unread, scope, why);
        } else {
            (void)json_array_append_new(read, json_string(scope));
        }
    }
    if (json_object_get(failed, log_scope) == NULL && json_object_get(was, log_scope) != NULL) {
        moved_log(moved, before, after);
    }
    json_object_foreach(failed, scope, value)
    {
        moved_unread(unread, scope, json_string_value(value));
    }
    json_object_foreach(was, scope, value)
    {
        if (json_object_get(now, scope) == NULL && json_object_get(failed, scope) == NULL) {
            moved_unread(unread, scope, "it was there only before");
        }
    }
    if (classes != NULL) {
        (void)json_object_update(classes, json_object_get(after, "classes"));
    }
    return json_pack("{s:f, s:o?, s:o, s:o, s:o}", "seconds", seconds, "classes", classes, "read",
                     read, "moved", moved, "unread", unread);
}

static bool part_has(const json_t *doc, const char *scope, bool network)
{
    const char *class = moved_word(json_object_get(doc, "classes"), scope, "network");

    return (strcmp(class, "network") == 0) == network;
}

json_t *shk_moved_part(const json_t *moved, bool network)
{
    json_t *part = json_pack("{s:O, s:[], s:[], s:[]}", "seconds",
                             json_object_get(moved, "seconds"), "read", "moved", "unread");
    static const char *const lists[] = {"read", "moved", "unread"};
    json_t *item = NULL;
    size_t i = 0;
    size_t k = 0;

    for (i = 0; part != NULL && i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_array_foreach(json_object_get(moved, lists[i]), k, item)
        {
            const char *scope = json_is_string(item)
                                    ? json_string_value(item)
                                    : json_string_value(json_object_get(item, "scope"));
            const char *class = json_string_value(json_object_get(item, "class"));
            bool fits = class != NULL ? (strcmp(class, "network") == 0) == network
                                      : part_has(moved, scope != NULL ? scope : "", network);

            if (fits) {
                (void)json_array_append(json_object_get(part, lists[i]), item);
            }
        }
    }
    return part;
}

bool shk_moved_quiet(const json_t *part)
{
    json_t *item = NULL;
    size_t devices = 0;
    size_t i = 0;

    json_array_foreach(json_object_get(part, "moved"), i, item)
    {
        const char *scope = json_string_value(json_object_get(item, "scope"));

        if (scope == NULL || strcmp(scope, "tcp") != 0) {
            return false;
        }
    }
    json_array_foreach(json_object_get(part, "read"), i, item)
    {
        devices += json_is_string(item) && strcmp(json_string_value(item), "tcp") != 0;
    }
    return devices > 0 && json_array_size(json_object_get(part, "unread")) == 0;
}
