/* Text as a terminal or a browser will show it: decoding, display width, and making every
 * character visible that could move the cursor, hide text or reorder it. */
#ifndef SHK_REPORTS_UTF8_H
#define SHK_REPORTS_UTF8_H

#include "core/text/strbuf.h"
#include <stdint.h>

/* Decodes the character at s (len > 0 bytes are left). Returns the bytes it takes, at least 1; a
 * byte that starts no valid sequence (overlong forms, surrogates and values above U+10FFFF
 * included) counts as one U+FFFD. */
size_t shk_utf8_next(const char *s, size_t len, uint32_t *cp_p);

/* Columns on a terminal: 0 for combining marks, 2 for East Asian wide characters and emoji
 * (Unicode 15, East_Asian_Width W and F, in blocks), else 1. */
unsigned shk_utf8_width(uint32_t cp);

/* Columns of a whole string of printable text. */
size_t shk_text_width(const char *s);

enum shk_clean_flags {
    SHK_CLEAN_LINES = 1, /* keep '\n'; a tab becomes a space, '\r' before '\n' goes */
    SHK_CLEAN_ASCII = 2, /* for terminals without UTF-8: common signs spelt out ("->", "us"),
                            everything else as \uXXXX */
};

/* Appends text with nothing invisible left in it: control characters become \n, \t or \xHH; zero
 * width, directional and other format characters become \uXXXX; invalid bytes and noncharacters
 * become U+FFFD ("?" in ASCII). The result is valid UTF-8 and valid XML 1.0 character data. */
void shk_text_clean(struct shk_strbuf *out, const char *s, size_t len, unsigned flags);

/* Appends a JSON text, the same value, with every character that shk_text_clean() would not let
 * through written as \uXXXX (RFC 8259 section 7): safe to print on a terminal. */
void shk_text_json(struct shk_strbuf *out, const char *json, size_t len);

/* As shk_text_clean() on one line, but at most `columns` columns: "…" stands for what is cut,
 * with the size of the whole when that is much ("… (1048576 bytes)"). */
void shk_text_clip(struct shk_strbuf *out, const char *s, size_t columns, unsigned flags);

/* As shk_text_clip() for each line of s; the lines together hold little more than four times
 * `columns` bytes. No newline at the end. */
void shk_text_clip_lines(struct shk_strbuf *out, const char *s, size_t columns, unsigned flags);

#endif
