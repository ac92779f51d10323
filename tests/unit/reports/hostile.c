#include "hostile.h"
#include "reports/text/utf8.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

const struct hostile hostile_texts[] = {
    {"pipe", "a|b|c"},
    {"table row", "x |\n| FAIL | injected | row |"},
    {"backticks", "` `` ``` ````"},
    {"fence", "a\n```\n# heading\n```\n~~~\n"},
    {"script", "<script>alert(1)</script>"},
    {"attribute", "\" onmouseover=\"alert(1)' x='"},
    {"details", "</details></code></td></tr></table><h1>out</h1>"},
    {"comment", "--><!-- x --><![CDATA[y]]>]]>"},
    {"entity", "&lt;script&gt; &#x3c; &amp;"},
    {"colour", "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x9b"},
    {"newlines", "a\nb\r\nc\rd\n\n# e\n- f\n1. g"},
    {"controls", "\x01\x02\x07\x08\x0b\x0c\x7f\t"},
    {"bidi", "a\xE2\x80\xAE"
             "b\xE2\x81\xA6"
             "c\xE2\x80\x8F"},
    {"zero width", "a\xE2\x80\x8B"
                   "b\xEF\xBB\xBF"
                   "c\xC2\xAD"},
    {"invalid UTF-8", "a\xFF\xC0\xAF\xED\xA0\x80\xF8 z\xE2\x82"},
    {"noncharacter", "\xEF\xBF\xBE\xEF\xBF\xBF\xEF\xB7\x90"},
    {"format", "%s%n%d%%"},
    {"prometheus", "x\"} 1\nfake_metric{a=\"b\\"},
    {"markdown", "![x](y) [z](javascript:alert(1)) **b** _i_ ~~s~~ @root #1 $x$ <http://e>"},
    {"wide", "\xE4\xB8\xAD\xE6\x96\x87\xF0\x9F\x98\x80"
             "e\xCC\x81\xCC\x81\xCC\x81"},
    {"no text", ""},
    {"blank", "   "},
};
const size_t hostile_count = sizeof hostile_texts / sizeof *hostile_texts;

char *hostile_long(void)
{
    size_t size = HOSTILE_LONG;
    char *text = malloc(size + 1);
    cr_assert_not_null(text);
    memset(text, 'x', size);
    for (size_t i = 0; i < size; i += 997)
        text[i] = "|<`& \n"[i / 997 % 6];
    text[size] = '\0';
    return text;
}

void hostile_expect_clean(const char *what, const char *text)
{
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    shk_text_clean(&clean, text, strlen(text), SHK_CLEAN_LINES);
    cr_expect(strcmp(shk_strbuf_text(&clean), text) == 0, "%s: unclean output", what);
    shk_strbuf_free(&clean);
}
