/* Documents of `shakedown hang` from files. */
#ifndef SHK_CLI_HANG_FILES_H
#define SHK_CLI_HANG_FILES_H

#include "core/text/error.h"

#include <jansson.h>

/* Adds the nodes of the document in the file ("-": stdin; at most 64 MiB) to the array. -EINVAL
 * with text: no such document; -EFBIG; other negative errno: cannot be read. */
int shk_hang_load(const char *path, json_t *nodes, struct shk_error *err) SHK_MUST_CHECK;

/* The whole file ("-": stdin) as a new string with a NUL behind it; the same errors but -EINVAL. */
int shk_hang_read(const char *path, char **text_p, size_t *length_p,
                  struct shk_error *err) SHK_MUST_CHECK;

/* The same of a text; `name` stands for it in messages. */
int shk_hang_take(const char *text, size_t length, const char *name, json_t *nodes,
                  struct shk_error *err) SHK_MUST_CHECK;

#endif
