#include "reports/text/wrap.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t shk_wrap_line(const char *s, size_t columns, size_t *skip_p)
{
    /* Looking no further than a line may reach, marks included, keeps long texts linear. */
    size_t len = strnlen(s, columns * 16 + 64), at = 0, width = 0, space = 0, soft = 0;
    while (at < len) {
        uint32_t cp;
        size_t n = shk_utf8_next(s + at, len - at, &cp);
        width += shk_utf8_width(cp);
        if (cp == ' ')
            space = at;
        if (width > columns && at)
            break;
        at += n;
        if (cp < 0x80 && strchr(",;:/=|", (int)cp))
            soft = at;
    }
    if (at < len) {
        if (space)
            at = space;
        else if (soft)
            at = soft;
    }
    size_t next = at + strspn(s + at, " ");
    while (at && s[at - 1] == ' ' && next < len)
        at--;
    *skip_p = next;
    return at;
}

void shk_wrap_pad(struct shk_strbuf *out, size_t columns)
{
    while (columns--)
        shk_strbuf_putc(out, ' ');
}

static void wrap_one(struct shk_strbuf *out, const struct shk_wrap *wrap, const char *line,
                     bool led, bool shell)
{
    const char *lead = wrap->lead ? wrap->lead : "";
    size_t hang = wrap->indent + shk_text_width(lead);
    size_t columns = wrap->width > hang + 8 ? wrap->width - hang : 8;
    enum shk_role lead_role = wrap->lead_role ? wrap->lead_role : wrap->role;
    bool first = true;
    do {
        size_t skip = strlen(line), n = skip;
        if (!shell)
            n = shk_wrap_line(line, columns, &skip);
        shk_wrap_pad(out, first && led ? wrap->indent : hang);
        if (first && led && *lead)
            shk_strbuf_printf(out, "%s%s%s", shk_style_on(wrap->style, lead_role), lead,
                              shk_style_off(wrap->style, lead_role));
        shk_strbuf_puts(out, shk_style_on(wrap->style, wrap->role));
        shk_strbuf_add(out, line, n);
        line += skip;
        shk_strbuf_puts(out, shk_style_off(wrap->style, wrap->role));
        shk_strbuf_putc(out, '\n');
        first = false;
    } while (*line);
}

void shk_wrap_put(struct shk_strbuf *out, const struct shk_wrap *wrap, const char *text)
{
    bool shell = wrap->shell && strlen(text) < SHK_WRAP_SHELL, first = true;
    unsigned flags = wrap->style.unicode || shell ? 0 : SHK_CLEAN_ASCII;
    unsigned clip = shell ? 0 : wrap->clip;
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    shk_text_clip_lines(&clean, text, clip ? clip : SIZE_MAX / 8, flags);
    out->failed |= clean.failed;
    for (char *line = clean.data, *end; line && !clean.failed; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        wrap_one(out, wrap, line, first || !wrap->block, shell);
        first = false;
    }
    shk_strbuf_free(&clean);
}
