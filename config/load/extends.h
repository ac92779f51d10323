/* Profiles inherit: `extends` is resolved once all files are read. */
#ifndef SHK_CONFIG_EXTENDS_H
#define SHK_CONFIG_EXTENDS_H

#include "config/config.h"
#include "config/schema/schema.h"

/* Bases of bases; real ones need 2. */
#define SHK_PROFILE_MAX_EXTENDS 8

struct shk_table;

/* Copies the profiles of the table into a new array in arena, each with the settings and
 * expectations of its bases. -EINVAL for a cycle or a chain that is too long (refs give the line),
 * -ENOMEM. Names of unknown bases must have been refused before. */
int shk_profiles_resolve(struct shk_arena *arena, const struct shk_table *table,
                         const struct shk_refs *refs, struct shk_profile **resolved_p,
                         struct shk_error *err) SHK_MUST_CHECK;

#endif
