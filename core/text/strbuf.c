#include "core/text/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool strbuf_reserve(struct shk_strbuf *sb, size_t extra)
{
    if (sb->failed)
        return false;
    if (extra > SIZE_MAX / 2 - sb->len - 1) {
        sb->failed = true;
        return false;
    }
    size_t need = sb->len + extra + 1;
    if (need <= sb->cap)
        return true;
    size_t cap = sb->cap ? sb->cap : 64;
    while (cap < need)
        cap *= 2;
    char *data = realloc(sb->data, cap);
    if (!data) {
        sb->failed = true;
        return false;
    }
    sb->data = data;
    sb->cap = cap;
    return true;
}

void shk_strbuf_add(struct shk_strbuf *sb, const void *data, size_t len)
{
    if (!strbuf_reserve(sb, len))
        return;
    if (len)
        memcpy(sb->data + sb->len, data, len);
    sb->len += len;
    sb->data[sb->len] = '\0';
}

void shk_strbuf_puts(struct shk_strbuf *sb, const char *text)
{
    shk_strbuf_add(sb, text, strlen(text));
}

void shk_strbuf_putc(struct shk_strbuf *sb, char c)
{
    shk_strbuf_add(sb, &c, 1);
}

void shk_strbuf_printf(struct shk_strbuf *sb, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0) {
        sb->failed = true;
    } else if (strbuf_reserve(sb, (size_t)n)) {
        vsnprintf(sb->data + sb->len, (size_t)n + 1, fmt, again);
        sb->len += (size_t)n;
    }
    va_end(again);
}

const char *shk_strbuf_text(const struct shk_strbuf *sb)
{
    return sb->data ? sb->data : "";
}

char *shk_strbuf_take(struct shk_strbuf *sb)
{
    char *text = NULL;
    if (!sb->failed)
        text = sb->data ? sb->data : calloc(1, 1);
    else
        free(sb->data);
    *sb = (struct shk_strbuf)SHK_STRBUF_INIT;
    return text;
}

void shk_strbuf_free(struct shk_strbuf *sb)
{
    free(sb->data);
    *sb = (struct shk_strbuf)SHK_STRBUF_INIT;
}

char *shk_copy(const char *text)
{
    return strdup(text ? text : "");
}

char *shk_strf(const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return text;
}

bool shk_has_word(const char *text, const char *word, const char *ends)
{
    size_t len = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += len)
        if ((p == text || p[-1] == ' ') && (p[len] == ' ' || !p[len] || strchr(ends, p[len])))
            return true;
    return false;
}
