/* JSON values on their way from a child to its parent, in a binary form: read an order of magnitude
 * faster than text. Sender and reader are the same program on the same machine. */
#ifndef SHK_CORE_TREE_H
#define SHK_CORE_TREE_H

#include "core/text/error.h"
#include "core/text/strbuf.h"

#include <jansson.h>

/* Deeper values are refused on both sides; facts nest a dozen levels. */
#define SHK_TREE_DEPTH 128

/* Appends the value; out->failed: out of memory, or too deep. */
void shk_tree_write(struct shk_strbuf *out, const json_t *value);

/* A new reference. The bytes may be anything: -EPROTO when they are not exactly one value with
 * valid UTF-8 and no NUL in its texts; -ENOMEM. */
int shk_tree_read(const void *data, size_t len, json_t **value_p) SHK_MUST_CHECK;

#endif
