/* The rows of config/{settings,profiles,diagnoses,conflicts}/ *.yaml as C tables, generated at
 * build time. */
#ifndef SHK_CONFIG_BUILTIN_H
#define SHK_CONFIG_BUILTIN_H

#include "config/schema/schema.h"

struct shk_builtin {
    const void *rows; /* of the section's record; NULL when there is none */
    size_t count;
    const unsigned short *order; /* row numbers, by the names of the rows */
};

extern const struct shk_builtin shk_builtin[SHK_SECTION_COUNT];

#endif
