#include "core/facts/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

/* The level that costs most is still below a millisecond for small texts. */
enum { PACK_SMALL = 16 << 10, PACK_LEVEL_SMALL = 19, PACK_LEVEL = 6 };

void shk_pack(struct shk_strbuf *out, const char *text, size_t len)
{
    size_t room = ZSTD_compressBound(len);
    char *packed = malloc(room);
    size_t n = packed ? ZSTD_compress(packed, room, text, len,
                                      len <= PACK_SMALL ? PACK_LEVEL_SMALL : PACK_LEVEL)
                      : 0;
    if (!packed || ZSTD_isError(n))
        out->failed = true;
    else
        shk_strbuf_add(out, packed, n);
    free(packed);
}

int shk_unpack(const void *data, size_t len, size_t limit, char **text_p, size_t *len_p,
               struct shk_error *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(data, len);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
        return shk_error_set(err, EPROTO, "not a Zstandard frame that tells its size");
    if (size > limit)
        return shk_error_set(err, EPROTO, "opens to %llu bytes, more than %zu", size, limit);
    char *text = malloc((size_t)size + 1);
    if (!text)
        return shk_error_sys(err, ENOMEM, "unpacking");
    size_t n = ZSTD_decompress(text, (size_t)size, data, len);
    if (ZSTD_isError(n) || n != size) {
        free(text);
        return shk_error_set(err, EPROTO, "damaged: %s",
                             ZSTD_isError(n) ? ZSTD_getErrorName(n) : "shorter than it says");
    }
    text[n] = '\0';
    *text_p = text;
    *len_p = n;
    return 0;
}
