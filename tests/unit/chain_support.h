/* A chain as rows of JSON, for tests: [{step, state, code, what, where, detail}]. */
#ifndef SHK_TESTS_CHAIN_SUPPORT_H
#define SHK_TESTS_CHAIN_SUPPORT_H

#include "checks/fabric/chain.h"

#include <stdio.h>
#include <string.h>

/* A new reference. */
static inline json_t *chain_rows(const struct shk_chain *chain)
{
    static const char *const states[] = {
        [SHK_LINK_OK] = "ok",
        [SHK_LINK_BROKEN] = "broken",
        [SHK_LINK_UNKNOWN] = "unknown",
        [SHK_LINK_NA] = "na",
    };
    json_t *rows = json_array();
    for (size_t i = 0; i < chain->count; i++) {
        const struct shk_link *link = &chain->links[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:i, s:s, s:s, s:s}", "step", link->step,
                                              "state", states[link->state], "code", (int)link->code,
                                              "what", link->what, "where", link->where, "detail",
                                              link->detail));
    }
    return rows;
}

/* State and texts of one step: "broken: what | detail"; "" when there is no such step. In a ring of
 * static buffers. */
static inline const char *step_text(const json_t *steps, const char *step)
{
    static char texts[8][4096];
    static size_t turn;
    char *buf = texts[turn++ % 8];
    size_t i;
    json_t *row;
    buf[0] = '\0';
    json_array_foreach((json_t *)steps, i, row)
    {
        const char *detail = json_string_value(json_object_get(row, "detail"));
        if (strcmp(json_string_value(json_object_get(row, "step")), step) == 0)
            snprintf(buf, sizeof texts[0], "%s: %s%s%s",
                     json_string_value(json_object_get(row, "state")),
                     json_string_value(json_object_get(row, "what")), *detail ? " | " : "", detail);
    }
    return buf;
}

/* The first step that is broken; "nothing". */
static inline const char *first_broken(const json_t *steps)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)steps, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "state")), "broken") == 0)
            return json_string_value(json_object_get(row, "step"));
    }
    return "nothing";
}

#endif
