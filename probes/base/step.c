#include "probes/base/step.h"

#include "core/facts/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const states[] = {
    [SHK_STEP_OK] = "ok",
    [SHK_STEP_BROKEN] = "broken",
    [SHK_STEP_UNKNOWN] = "unknown",
    [SHK_STEP_NA] = "na",
};

void shk_step_add(json_t *steps, const char *step, enum shk_step_state state, const char *detail,
                  const char *whatf, ...)
{
    char *what = NULL;
    va_list args;
    va_start(args, whatf);
    if (vasprintf(&what, whatf, args) < 0)
        what = NULL;
    va_end(args);
    json_t *row = json_pack("{s:s, s:s}", "step", step, "state", states[state]);
    if (what)
        json_object_set_new(row, "what", shk_json_text(what, strlen(what)));
    if (detail && *detail)
        json_object_set_new(row, "detail", shk_json_text(detail, strlen(detail)));
    json_array_append_new(steps, row);
    free(what);
}

void shk_step_where(json_t *steps, const char *where)
{
    size_t count = json_array_size(steps);
    if (count && where && *where)
        json_object_set_new(json_array_get(steps, count - 1), "where",
                            shk_json_text(where, strlen(where)));
}

const char *shk_step_first_broken(const json_t *steps)
{
    size_t i;
    json_t *row;
    json_array_foreach(steps, i, row)
    {
        const char *state = json_string_value(json_object_get(row, "state"));
        if (state && strcmp(state, states[SHK_STEP_BROKEN]) == 0)
            return json_string_value(json_object_get(row, "step"));
    }
    return NULL;
}
