/* Rows of a chain of steps: [{step, state, observed, detail}]. The first broken row is the cause;
 * what comes after it is only looked at as far as it does not depend on it. */
#ifndef SHK_PROBES_STEP_H
#define SHK_PROBES_STEP_H

#include "core/error.h"

#include <jansson.h>

enum shk_step_state { SHK_STEP_OK, SHK_STEP_BROKEN, SHK_STEP_UNKNOWN, SHK_STEP_NA };

/* Appends a row. detail may be NULL: then the row has none. */
void shk_step_add(json_t *steps, const char *step, enum shk_step_state state, const char *detail,
                  const char *observedf, ...) SHK_PRINTF(5, 6);

/* Name of the first broken step, NULL when none is. Borrowed from steps. */
const char *shk_step_first_broken(const json_t *steps);

#endif
