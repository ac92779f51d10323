/* Reads the data of a Python pickle and executes nothing: of the machine that a pickle is written
 * for, only the opcodes that make numbers, texts, lists, tuples and dictionaries are there (Python:
 * Lib/pickletools.py). A pickle that wants a class, a function or a persistent object is refused.
 */
#ifndef SHK_PROBES_PICKLE_H
#define SHK_PROBES_PICKLE_H

#include "core/text/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Nesting, and lists and dictionaries in all (some 100 bytes each): a dump of PyTorch's flight
 * recorder with the usual 2000 entries and their stacks has 60,000. */
#define SHK_PICKLE_DEPTH_MAX      32
#define SHK_PICKLE_CONTAINERS_MAX 2000000

/* Does it look like one (protocol 2 to 5)? */
bool shk_pickle_is(const void *data, size_t len);

/* *value_p: new reference. Tuples become arrays, keys of dictionaries text. null stands for None,
 * numbers beyond 64 bits, and a list or dictionary that is met for the second time (a tuple of
 * plain values is not). -EINVAL names the place, -ENOMEM, -E2BIG beyond the limits. */
int shk_pickle_read(json_t **value_p, const void *data, size_t len,
                    struct shk_error *err) SHK_MUST_CHECK;

#endif
