#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(wrap, .timeout = 100);

static void wrap_expect(const char *name, struct shk_wrap wrap, const char *text,
                        const char *expected)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    wrap.style.unicode = true;
    shk_wrap_put(&out, &wrap, text);
    cr_expect_str_eq(shk_strbuf_text(&out), expected, "%s:\n%s", name, shk_strbuf_text(&out));
    shk_strbuf_free(&out);
}

Test(wrap, lines)
{
    static const struct {
        const char *name, *text, *expected;
        unsigned indent, width;
        const char *lead;
    } cases[] = {
        {"fits", "one two", "  one two\n", 2, 20, ""},
        {"at a space", "one two three four", "  one two three\n  four\n", 2, 17, ""},
        {"hangs below the lead", "one two three", "> one two\n  three\n", 0, 12, "> "},
        {"at a comma", "hsn0,hsn1,hsn2", "hsn0,hsn1,\nhsn2\n", 0, 11, ""},
        {"anywhere", "abcdefghijklmnop", "abcdefghij\nklmnop\n", 0, 10, ""},
        {"own lines", "a\nb", "> a\n> b\n", 0, 10, "> "},
        {"wide characters", "\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD",
         "\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\xE4\xB8\xAD\n\xE4\xB8\xAD\n", 0, 9, ""},
        {"never narrower than eight", "abcdefghij", "      abcdefgh\n      ij\n", 6, 8, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_wrap wrap = {
            .indent = cases[i].indent, .width = cases[i].width, .lead = cases[i].lead};
        wrap_expect(cases[i].name, wrap, cases[i].text, cases[i].expected);
    }
}

Test(wrap, commands_stay_whole)
{
    static const char *const lines[] = {
        "sudo grubby --update-kernel ALL --args iommu=pt",
        "echo 'a b c d e f g h i j k l m' > file",
        "export FI_PATH=/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p",
        "export A='gr\xC3\xBC\xC3\x9F' # in a terminal of ASCII, too",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct shk_wrap wrap = {.width = 32, .lead = "> ", .shell = true, .clip = 10};
        char *expected = shk_strf("> %s\n", lines[i]);
        wrap_expect(lines[i], wrap, lines[i], expected);
        free(expected);
    }
}

Test(wrap, a_block_has_one_lead)
{
    struct shk_wrap wrap = {.width = 32, .lead = "advice: ", .block = true};
    wrap_expect("block", wrap, "first line\nsecond line",
                "advice: first line\n        second line\n");
}

Test(wrap, loses_nothing_and_fits)
{
    const char *text =
        "alpha beta,gamma;delta/epsilon zeta=eta \xC3\xBC\xC3\xBC\xC3\xBC theta iota";
    for (unsigned width = 8; width < 80; width++) {
        struct shk_strbuf out = SHK_STRBUF_INIT, joined = SHK_STRBUF_INIT;
        shk_wrap_put(&out, &(struct shk_wrap){.width = width, .style.unicode = true}, text);
        char *copy = strdup(shk_strbuf_text(&out)), *save = NULL;
        for (char *l = strtok_r(copy, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
            cr_expect_leq(shk_text_width(l), width, "width %u: %s", width, l);
            for (; *l; l++)
                if (*l != ' ')
                    shk_strbuf_putc(&joined, *l);
        }
        cr_expect_str_eq(shk_strbuf_text(&joined),
                         "alphabeta,gamma;delta/epsilonzeta=eta\xC3\xBC\xC3\xBC\xC3\xBCthetaiota");
        free(copy);
        shk_strbuf_free(&out);
        shk_strbuf_free(&joined);
    }
}
