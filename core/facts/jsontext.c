#include "core/facts/facts.h"
#include "core/text/strbuf.h"

#include <stdlib.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at p (of `left` bytes), 0 when it is not one. */
static size_t utf8_valid(const unsigned char *p, size_t left)
{
    static const unsigned min[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80             ? 1
               : (p[0] & 0xe0) == 0xc0 ? 2
               : (p[0] & 0xf0) == 0xe0 ? 3
               : (p[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 1)
        return 1;
    if (n == 0 || n > left)
        return 0;
    unsigned cp = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (p[i] & 0x3f);
    }
    if (cp < min[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return 0;
    return n;
}

json_t *shk_json_text(const char *bytes, size_t len)
{
    json_t *direct = memchr(bytes, 0, len) ? NULL : json_stringn(bytes, len);
    if (direct)
        return direct;
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    for (size_t i = 0; i < len;) {
        size_t n = bytes[i] ? utf8_valid((const unsigned char *)bytes + i, len - i) : 0;
        if (n)
            shk_strbuf_add(&sb, bytes + i, n);
        else
            shk_strbuf_puts(&sb, "\xef\xbf\xbd");
        i += n ? n : 1;
    }
    char *text = shk_strbuf_take(&sb);
    json_t *value = text ? json_string(text) : NULL;
    free(text);
    return value;
}
