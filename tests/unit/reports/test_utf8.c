#include "reports/text/utf8.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(utf8, .timeout = 100);

Test(utf8, clean)
{
    static const struct {
        const char *name, *in, *out;
        unsigned flags;
    } cases[] = {
        {"plain", "hsn0,hsn1", "hsn0,hsn1", 0},
        {"newline", "a\nb", "a\\nb", 0},
        {"newline kept", "a\nb", "a\nb", SHK_CLEAN_LINES},
        {"carriage return before newline", "a\r\nb", "a\nb", SHK_CLEAN_LINES},
        {"lone carriage return", "a\rb", "a\\x0db", SHK_CLEAN_LINES},
        {"tab", "a\tb", "a\\tb", 0},
        {"colour sequence", "\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", 0},
        {"C1 control",
         "a\xC2\x9B"
         "1m",
         "a\\u009b1m", 0},
        {"right-to-left override",
         "a\xE2\x80\xAE"
         "b",
         "a\\u202eb", 0},
        {"zero width space",
         "a\xE2\x80\x8B"
         "b",
         "a\\u200bb", 0},
        {"tag character", "\xF3\xA0\x80\x81", "\\ue0001", 0},
        {"soft hyphen",
         "a\xC2\xAD"
         "b",
         "a\\u00adb", 0},
        {"byte order mark", "\xEF\xBB\xBFx", "\\ufeffx", 0},
        {"umlaut", "Z\xC3\xBCrich", "Z\xC3\xBCrich", 0},
        {"stray byte", "a\xFFz", "a\xEF\xBF\xBDz", 0},
        {"cut sequence", "a\xE2\x82", "a\xEF\xBF\xBD\xEF\xBF\xBD", 0},
        {"overlong slash", "\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD", 0},
        {"surrogate", "\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 0},
        {"noncharacter", "\xEF\xBF\xBF", "\xEF\xBF\xBD", 0},
        {"above Unicode", "\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD",
         0},
        {"ASCII arrow", "a \xE2\x86\x92 b", "a -> b", SHK_CLEAN_ASCII},
        {"ASCII umlaut", "\xC3\xBC", "\\u00fc", SHK_CLEAN_ASCII},
        {"ASCII stray byte", "\xFF", "?", SHK_CLEAN_ASCII},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_strbuf out = SHK_STRBUF_INIT;
        shk_text_clean(&out, cases[i].in, strlen(cases[i].in), cases[i].flags);
        cr_expect_str_eq(shk_strbuf_text(&out), cases[i].out, "%s: %s", cases[i].name,
                         shk_strbuf_text(&out));
        shk_strbuf_free(&out);
    }
}

Test(utf8, clean_keeps_bytes_behind_nul)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_text_clean(&out, "a\0b", 3, 0);
    cr_expect_str_eq(shk_strbuf_text(&out), "a\\x00b");
    shk_strbuf_free(&out);
}

Test(utf8, width)
{
    static const struct {
        const char *name, *text;
        size_t width;
    } cases[] = {
        {"empty", "", 0},
        {"ASCII", "abc", 3},
        {"umlaut", "\xC3\xBC", 1},
        {"combining accent", "e\xCC\x81", 1},
        {"CJK", "\xE4\xB8\xAD\xE6\x96\x87", 4},
        {"emoji", "\xF0\x9F\x98\x80", 2},
        {"check mark", "\xE2\x9C\x93", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(shk_text_width(cases[i].text), cases[i].width, "%s", cases[i].name);
}

Test(utf8, clip)
{
    static const struct {
        const char *name, *in, *out;
        size_t columns;
    } cases[] = {
        {"fits", "abcdef", "abcdef", 6},
        {"cut", "abcdefg", "abcde\xE2\x80\xA6", 6},
        {"wide character at the edge",
         "abcd\xE4\xB8\xAD"
         "efg",
         "abcd\xE2\x80\xA6", 6},
        {"empty", "", "", 6},
        {"control at the edge", "abcde\x1bxyz", "abcde\xE2\x80\xA6", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_strbuf out = SHK_STRBUF_INIT;
        shk_text_clip(&out, cases[i].in, cases[i].columns, 0);
        cr_expect_str_eq(shk_strbuf_text(&out), cases[i].out, "%s: %s", cases[i].name,
                         shk_strbuf_text(&out));
        shk_strbuf_free(&out);
    }
}

Test(utf8, clip_tells_the_size_of_much)
{
    char *big = malloc((1 << 20) + 1);
    cr_assert_not_null(big);
    memset(big, 'x', 1 << 20);
    big[1 << 20] = '\0';
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_text_clip(&out, big, 60, 0);
    cr_expect_eq(shk_text_width(shk_strbuf_text(&out)), 60);
    cr_expect_not_null(strstr(shk_strbuf_text(&out), "xxx\xE2\x80\xA6 (1048576 bytes)"));
    shk_strbuf_free(&out);
    free(big);
}
