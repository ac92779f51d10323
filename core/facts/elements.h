/* Arrays of objects in facts: which member tells an element from its siblings. */
#ifndef SHK_CORE_ELEMENTS_H
#define SHK_CORE_ELEMENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets of members that may tell the elements of an array apart, the closest first. */
#define SHK_ELEMENT_IDENTITIES 21U

/* What set `which` (below SHK_ELEMENT_IDENTITIES) says of an element, "cxi 0000:01:00.0": a new
 * string. NULL: a member of the set is missing, or neither text nor integer; or out of memory. */
char *shk_element_identity(const json_t *element, size_t which);

/* The first set that every element has and no two share; SHK_ELEMENT_IDENTITIES: none does. */
size_t shk_elements_identity(const json_t *array);

/* Does every element of an array of objects say what it is of? False when one holds no value at
 * all, or lacks the members that tell most of the others apart while no other set tells all of
 * them: it was not read, and may be anything. */
bool shk_elements_told(const json_t *array);

#endif
