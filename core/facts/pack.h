/* Texts for the wire: compressed with Zstandard, checked when they are opened. */
#ifndef SHK_CORE_PACK_H
#define SHK_CORE_PACK_H

#include "core/text/error.h"
#include "core/text/strbuf.h"

/* Appends the compressed text to out (out->failed: out of memory). */
void shk_pack(struct shk_strbuf *out, const char *text, size_t len);

/* A new string (free()) with a NUL behind it. -EPROTO with text in err when the bytes are damaged,
 * or open to more than `limit`; -ENOMEM. */
int shk_unpack(const void *data, size_t len, size_t limit, char **text_p, size_t *len_p,
               struct shk_error *err) SHK_MUST_CHECK;

#endif
