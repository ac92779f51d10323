#include "reports/text/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Sizes above the first are told; a text of several lines may have so many times the columns. */
enum { UTF8_CLIP_SIZE = 256, UTF8_CLIP_LINES = 4 };

struct utf8_range {
    uint32_t first, last;
};

static const struct utf8_range utf8_combining[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A},
    {0x064B, 0x065F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},   {0x20D0, 0x20FF},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF},
};

static const struct utf8_range utf8_wide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},   {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x17000, 0x18CFF}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

/* Format characters that change how their neighbours are shown (Trojan Source, CVE-2021-42574) or
 * that nobody can see. */
static const struct utf8_range utf8_invisible[] = {
    {0x0080, 0x009F}, {0x00AD, 0x00AD}, {0x061C, 0x061C},   {0x115F, 0x1160}, {0x180E, 0x180E},
    {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},   {0x3164, 0x3164}, {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xE0000, 0xE007F},
};

static bool utf8_in(const struct utf8_range *ranges, size_t count, uint32_t cp)
{
    for (size_t i = 0; i < count; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last)
            return true;
    return false;
}

#define UTF8_IN(table, cp) utf8_in(table, sizeof(table) / sizeof *(table), cp)

static const struct {
    uint32_t cp;
    const char *text;
} utf8_ascii[] = {
    {0x00A0, " "},  {0x00B5, "u"},  {0x00B7, "-"},  {0x00D7, "x"},   {0x03BC, "u"},
    {0x2010, "-"},  {0x2011, "-"},  {0x2013, "-"},  {0x2014, "--"},  {0x2018, "'"},
    {0x2019, "'"},  {0x201C, "\""}, {0x201D, "\""}, {0x2026, "..."}, {0x2190, "<-"},
    {0x2192, "->"}, {0x2260, "!="}, {0x2264, "<="}, {0x2265, ">="},  {0xFFFD, "?"},
};

size_t shk_utf8_next(const char *s, size_t len, uint32_t *cp_p)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)*s;
    size_t need = c < 0x80 ? 1 : (c & 0xE0) == 0xC0 ? 2 : (c & 0xF0) == 0xE0 ? 3 : 4;
    *cp_p = 0xFFFD;
    if (need == 1) {
        *cp_p = c;
        return 1;
    }
    if ((c & 0xC0) == 0x80 || c > 0xF4 || need > len)
        return 1;
    uint32_t cp = c & (0xFFu >> (need + 1));
    for (size_t i = 1; i < need; i++) {
        if (((unsigned char)s[i] & 0xC0) != 0x80)
            return 1;
        cp = cp << 6 | ((unsigned char)s[i] & 0x3F);
    }
    if (cp < least[need] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
        return 1;
    *cp_p = cp;
    return need;
}

unsigned shk_utf8_width(uint32_t cp)
{
    if (cp < 0x300)
        return 1;
    if (UTF8_IN(utf8_combining, cp))
        return 0;
    return UTF8_IN(utf8_wide, cp) ? 2 : 1;
}

size_t shk_text_width(const char *s)
{
    size_t width = 0, left = strlen(s);
    while (left) {
        uint32_t cp;
        size_t n = shk_utf8_next(s, left, &cp);
        width += shk_utf8_width(cp);
        s += n;
        left -= n;
    }
    return width;
}

static void utf8_put_ascii(struct shk_strbuf *out, uint32_t cp)
{
    for (size_t i = 0; i < sizeof utf8_ascii / sizeof *utf8_ascii; i++) {
        if (utf8_ascii[i].cp == cp) {
            shk_strbuf_puts(out, utf8_ascii[i].text);
            return;
        }
    }
    shk_strbuf_printf(out, "\\u%04x", (unsigned)cp);
}

static bool utf8_is_noncharacter(uint32_t cp)
{
    return (cp & 0xFFFE) == 0xFFFE || (cp >= 0xFDD0 && cp <= 0xFDEF);
}

/* One character made visible; `raw` are its n bytes. */
static void utf8_put(struct shk_strbuf *out, uint32_t cp, const char *raw, size_t n, unsigned flags)
{
    bool lines = flags & SHK_CLEAN_LINES;
    if (cp == '\n')
        shk_strbuf_puts(out, lines ? "\n" : "\\n");
    else if (cp == '\t')
        shk_strbuf_puts(out, lines ? " " : "\\t");
    else if (cp < 0x20 || cp == 0x7F)
        shk_strbuf_printf(out, "\\x%02x", (unsigned)cp);
    else if (cp < 0x7F)
        shk_strbuf_putc(out, (char)cp);
    else if (utf8_is_noncharacter(cp) || (cp == 0xFFFD && n == 1))
        shk_strbuf_puts(out, flags & SHK_CLEAN_ASCII ? "?" : "\xEF\xBF\xBD");
    else if (UTF8_IN(utf8_invisible, cp))
        shk_strbuf_printf(out, "\\u%04x", (unsigned)cp);
    else if (flags & SHK_CLEAN_ASCII)
        utf8_put_ascii(out, cp);
    else
        shk_strbuf_add(out, raw, n);
}

/* Bytes of plain ASCII at s. */
static size_t utf8_plain(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] >= 0x20 && s[n] < 0x7F)
        n++;
    return n;
}

void shk_text_clean(struct shk_strbuf *out, const char *s, size_t len, unsigned flags)
{
    while (len) {
        uint32_t cp;
        size_t n = utf8_plain(s, len);
        if (n) {
            shk_strbuf_add(out, s, n);
            s += n;
            len -= n;
            continue;
        }
        n = shk_utf8_next(s, len, &cp);
        bool crlf = cp == '\r' && len > 1 && s[1] == '\n' && (flags & SHK_CLEAN_LINES);
        if (!crlf)
            utf8_put(out, cp, s, n, flags);
        s += n;
        len -= n;
    }
}

void shk_text_json(struct shk_strbuf *out, const char *json, size_t len)
{
    while (len) {
        uint32_t cp;
        size_t n = utf8_plain(json, len);
        if (!n) {
            n = shk_utf8_next(json, len, &cp);
            bool hide = cp == 0x7F || utf8_is_noncharacter(cp) || UTF8_IN(utf8_invisible, cp);
            if (hide && cp > 0xFFFF)
                shk_strbuf_printf(out, "\\u%04x\\u%04x", 0xD7C0u + (unsigned)(cp >> 10),
                                  0xDC00u + (unsigned)(cp & 0x3FF));
            else if (hide)
                shk_strbuf_printf(out, "\\u%04x", (unsigned)cp);
            else
                shk_strbuf_add(out, json, n);
        } else {
            shk_strbuf_add(out, json, n);
        }
        json += n;
        len -= n;
    }
}

static void utf8_clip(struct shk_strbuf *out, const char *s, size_t len, size_t columns,
                      unsigned flags)
{
    size_t left = len, width = 0, keep = out->len;
    char note[64];
    const char *dots = flags & SHK_CLEAN_ASCII ? "..." : "\xE2\x80\xA6";
    if (len < UTF8_CLIP_SIZE)
        snprintf(note, sizeof note, "%s", dots);
    else
        snprintf(note, sizeof note, "%s (%zu bytes)", dots, len);
    size_t reserve = shk_text_width(note);
    while (left) {
        uint32_t cp;
        size_t n = shk_utf8_next(s, left, &cp), before = out->len;
        utf8_put(out, cp, s, n, flags);
        if (out->failed)
            return;
        width += shk_text_width(out->data + before);
        if (width + reserve <= columns)
            keep = out->len;
        if (width > columns)
            break;
        s += n;
        left -= n;
    }
    if (!left)
        return;
    out->len = keep;
    out->data[keep] = '\0';
    shk_strbuf_puts(out, note);
}

void shk_text_clip(struct shk_strbuf *out, const char *s, size_t columns, unsigned flags)
{
    utf8_clip(out, s, strlen(s), columns, flags & ~(unsigned)SHK_CLEAN_LINES);
}

void shk_text_clip_lines(struct shk_strbuf *out, const char *s, size_t columns, unsigned flags)
{
    size_t start = out->len;
    while (*s) {
        size_t len = strcspn(s, "\n");
        bool cr = len && s[len] == '\n' && s[len - 1] == '\r';
        utf8_clip(out, s, len - cr, columns, flags | SHK_CLEAN_LINES);
        s += len;
        if (*s == '\n' && *++s)
            shk_strbuf_putc(out, '\n');
        if (*s && (out->len - start) / UTF8_CLIP_LINES > columns) {
            shk_strbuf_printf(out,
                              flags & SHK_CLEAN_ASCII ? "... (%zu more bytes)"
                                                      : "\xE2\x80\xA6 (%zu more bytes)",
                              strlen(s));
            break;
        }
    }
}
