/* Would the loader bring a shared object and everything it needs together? Worked out from the
 * files, nothing is loaded. */
#ifndef SHK_PROBES_ELFDEPS_H
#define SHK_PROBES_ELFDEPS_H

#include "probes/library/ldsearch.h"

#include <jansson.h>

/* Walks DT_NEEDED breadth first, as the loader does: the first object of a name serves all that ask
 * for it. `loader` is the object whose dlopen() call would load this one (its RPATH counts); may be
 * NULL. New references:
 *   *needed_p    [{name, path, via, by}]: path null when found nowhere; by names the asking file,
 *                and is missing for what the object itself needs
 *   *problems_p  [{kind, by, library, path, version, provides, text}]
 *       kind "missing"   `library` is nowhere on the search path
 *            "invalid"   a file was found, but it is no shared object (text says what it is)
 *            "version"   `path` lacks symbol version `version`; provides is the highest it has
 * Only what is fatal for the load is a problem: weak version needs and libraries without any
 * version table are not. -ENOMEM only. */
int shk_elfdeps_walk(const struct shk_ldsearch *search, const struct shk_elf *elf, const char *path,
                     const struct shk_ldsearch_asker *loader, json_t **needed_p,
                     json_t **problems_p, struct shk_error *err) SHK_MUST_CHECK;

#endif
