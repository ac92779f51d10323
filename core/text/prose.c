#include "core/text/prose.h"

#ifdef SHK_SCRAMBLE

#include <string.h>

static void prose_reverse(char *from, char *to)
{
    for (; from < to && from < --to; from++) {
        char c = *from;
        *from = *to;
        *to = c;
    }
}

/* Bytes beyond ASCII stay, so that a word stays UTF-8. */
static char prose_letter(char c)
{
    if (c >= 'a' && c <= 'z')
        return (char)('a' + (c - 'a' + 13) % 26);
    if (c >= 'A' && c <= 'Z')
        return (char)('A' + (c - 'A' + 13) % 26);
    return c;
}

static void prose_line(char *line, size_t len)
{
    char *end = line + len;
    if (!memchr(line, ' ', len) || strncmp(line, "export ", 7) == 0 ||
        strncmp(line, "unset ", 6) == 0)
        return;
    prose_reverse(line, end);
    for (char *word = line; word < end;) {
        char *blank = memchr(word, ' ', (size_t)(end - word));
        char *stop = blank ? blank : end;
        prose_reverse(word, stop);
        for (char *c = word; c < stop; c++)
            *c = prose_letter(*c);
        word = stop + 1;
    }
}

void shk_prose(char *text)
{
    while (text && *text) {
        size_t len = strcspn(text, "\n");
        prose_line(text, len);
        text += len + (text[len] == '\n');
    }
}

#else

void shk_prose(char *text)
{
    (void)text;
}

#endif
