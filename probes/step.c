#include "probes/step.h"

#include "core/facts.h"

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
                  const char *observedf, ...)
{
    char *observed = NULL;
    va_list args;
    va_start(args, observedf);
    if (vasprintf(&observed, observedf, args) < 0)
        observed = NULL;
    va_end(args);
    json_t *row = json_pack("{s:s, s:s}", "step", step, "state", states[state]);
    if (observed)
        json_object_set_new(row, "observed", shk_json_text(observed, strlen(observed)));
    if (detail && *detail)
        json_object_set_new(row, "detail", shk_json_text(detail, strlen(detail)));
    json_array_append_new(steps, row);
    free(observed);
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
