/* Rows of a chain of steps: [{step, state, what, where, detail}]. The first broken row is the
 * cause; what comes after it is only looked at as far as it does not depend on it. */
#ifndef SHK_PROBES_STEP_H
#define SHK_PROBES_STEP_H

#include "core/text/error.h"

#include <jansson.h>

enum shk_step_state { SHK_STEP_OK, SHK_STEP_BROKEN, SHK_STEP_UNKNOWN, SHK_STEP_NA };

/* Appends a row: what was seen, and what helps to understand it. detail may be NULL or empty: then
 * the row has none. */
void shk_step_add(json_t *steps, const char *step, enum shk_step_state state, const char *detail,
                  const char *whatf, ...) SHK_PRINTF(5, 6);

/* Names the place that the last row is about: a path, a variable, a call. NULL or empty: none. */
void shk_step_where(json_t *steps, const char *where);

/* Name of the first broken step, NULL when none is. Borrowed from steps. */
const char *shk_step_first_broken(const json_t *steps);

#endif
