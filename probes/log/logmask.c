#include "probes/log/logmask.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef unsigned char block __attribute__((vector_size(16)));
enum { BLOCK = sizeof(block) };

/* Masks the digits. *x_p: any byte set when there is an x. */
static inline void mask_block(char *out, const char *in, block *x_p)
{
    block c;
    memcpy(&c, in, sizeof c);
    block digit = (block)((c - '0') < 10);
    *x_p |= (block)(c == 'x');
    c = (c & ~digit) | (digit & '0');
    memcpy(out, &c, sizeof c);
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Numbers behind "0x" that are a whole word with it at their end; other digits before an x. */
static void mask_hex(char *text, const char *line, size_t len)
{
    const char *x = text + 1;
    while (len && (x = memchr(x, 'x', (size_t)(text + len - x)))) {
        char *start = text + (++x - text), *end = start;
        char before = line[x - text - 2];
        while (end < text + len && (*end == '0' || (*end >= 'a' && *end <= 'f')))
            end++;
        if (before == '0' && !(end < text + len && in_word(*end)))
            memset(start, '1', (size_t)(end - start));
        else if (before >= '1' && before <= '9')
            start[-2] = '9';
    }
}

static uint64_t mask_hash(const char *text, size_t len)
{
    uint64_t a = len, b = 0x9e3779b97f4a7c15u, words[2];
    for (size_t at = 0; at < len; at += BLOCK) {
        memcpy(words, text + at, sizeof words);
        a = (a ^ words[0]) * 0xff51afd7ed558ccdu;
        b = (b ^ words[1]) * 0xc4ceb9fe1a85ec53u;
        a ^= a >> 32;
        b ^= b >> 29;
    }
    a = (a ^ (b << 31 | b >> 33)) * 0xff51afd7ed558ccdu;
    return a ^ a >> 33;
}

void shk_logmask(struct shk_logmask *mask, const char *line, size_t len, size_t room)
{
    size_t at = 0;
    block x = {0};
    uint64_t any[2];
    for (; at + BLOCK <= room && at < len; at += BLOCK)
        mask_block(mask->text + at, line + at, &x);
    if (at < len) {
        char rest[BLOCK] = "";
        memcpy(rest, line + at, len - at);
        mask_block(mask->text + at, rest, &x);
    }
    memset(mask->text + len, 0, BLOCK);
    memcpy(any, &x, sizeof any);
    if (any[0] | any[1])
        mask_hex(mask->text, line, len);
    mask->len = len;
    mask->hash = mask_hash(mask->text, len);
}
