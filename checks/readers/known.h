/* Names that a library or the catalogue knows: is this one of them, and if not, which one was
 * meant? Made once and asked for every variable that is set, of which a stranger's facts can hold
 * a hundred thousand. */
#ifndef SHK_CHECKS_KNOWN_H
#define SHK_CHECKS_KNOWN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct shk_known;

/* NULL when out of memory; every function here takes NULL for a list without names. */
struct shk_known *shk_known_create(void);
void shk_known_destroy(struct shk_known *known);

/* Borrowed; NULL is left out. When memory is short, a name is missing. */
void shk_known_add(struct shk_known *known, const char *name);

/* An array of strings, or of objects with a "name". */
void shk_known_add_array(struct shk_known *known, const json_t *array);

void shk_known_add_all(struct shk_known *known, const struct shk_known *more);

size_t shk_known_count(const struct shk_known *known);
bool shk_known_has(struct shk_known *known, const char *name);

/* The name that was probably meant: few letters differ, or the order of its words, or one word is
 * missing or too much. NULL when none is near; never `name` itself. */
const char *shk_known_nearest(const struct shk_known *known, const char *name);

#endif
