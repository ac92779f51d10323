#include "reports/text/escape.h"

#include <criterion/criterion.h>

TestSuite(escape, .timeout = 100);

typedef void (*escape_fn)(struct shk_strbuf *out, const char *s);

struct escape_case {
    const char *name, *in, *out;
};

static void escape_check(escape_fn fn, const struct escape_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct shk_strbuf out = SHK_STRBUF_INIT;
        fn(&out, cases[i].in);
        cr_expect_str_eq(shk_strbuf_text(&out), cases[i].out, "%s: %s", cases[i].name,
                         shk_strbuf_text(&out));
        shk_strbuf_free(&out);
    }
}

#define CHECK(fn, cases) escape_check(fn, cases, sizeof(cases) / sizeof *(cases))

Test(escape, html)
{
    static const struct escape_case cases[] = {
        {"plain", "a b", "a b"},
        {"script", "<script>alert('x')</script>",
         "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"},
        {"attribute", "\" onload=\"x", "&quot; onload=&quot;x"},
        {"entity", "&lt;", "&amp;lt;"},
        {"escape sequence", "\x1b]0;title\x07", "\\x1b]0;title\\x07"},
        {"invalid byte", "\xFF", "\xEF\xBF\xBD"},
    };
    CHECK(shk_escape_html, cases);
}

Test(escape, md)
{
    static const struct escape_case cases[] = {
        {"plain", "hns3 is no interface; did you mean hsn3?",
         "hns3 is no interface; did you mean hsn3?"},
        {"variable", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"},
        {"dunder", "__init__", "&#95;&#95;init_&#95;"},
        {"pipe", "a|b", "a&#124;b"},
        {"html", "<img src=x>", "&lt;img src=x&gt;"},
        {"emphasis", "**bold** `code`", "&#42;&#42;bold&#42;&#42; &#96;code&#96;"},
        {"link", "[x](http://e)", "&#91;x&#93;(http://e)"},
        {"image", "![x](y)", "&#33;&#91;x&#93;(y)"},
        {"backslash", "a\\|b", "a&#92;&#124;b"},
        {"heading", "# title", "&#35; title"},
        {"list", "- item", "&#45; item"},
        {"numbered list", "1. item", "1&#46; item"},
        {"version is no list", "1.15.2", "1.15.2"},
        {"mention", "@root and me@host", "@<!-- -->root and me@<!-- -->host"},
        {"issue", "see #12", "see #<!-- -->12"},
        {"formula", "$HOME$", "&#36;HOME&#36;"},
        {"lines", "a\nb", "a<br>b"},
        {"strike", "~~x~~", "&#126;&#126;x&#126;&#126;"},
        {"comment end", "--> x", "&#45;-&gt; x"},
    };
    CHECK(shk_escape_md, cases);
}

Test(escape, md_code)
{
    static const struct escape_case cases[] = {
        {"plain", "hsn0,hsn1", "`hsn0,hsn1`"},
        {"html is inert", "<b>", "`<b>`"},
        {"backtick", "a`b", "<code>a&#96;b</code>"},
        {"pipe", "a|b", "<code>a&#124;b</code>"},
        {"newline", "a\nb", "`a\\nb`"},
        {"empty", "", "<code></code>"},
        {"blank edge", " a", "<code> a</code>"},
        {"closing tag", "`</code><script>", "<code>&#96;&lt;/code&gt;&lt;script&gt;</code>"},
    };
    CHECK(shk_escape_md_code, cases);
}

Test(escape, md_block_cannot_be_closed_from_inside)
{
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_escape_md_block(&out, "sh", "a\n```\n# out\n````");
    cr_expect_str_eq(shk_strbuf_text(&out), "`````sh\na\n```\n# out\n````\n`````\n");
    shk_strbuf_free(&out);
}

Test(escape, prom)
{
    static const struct escape_case cases[] = {
        {"plain", "nid001", "nid001"},
        {"quote", "a\"b", "a\\\"b"},
        {"backslash", "a\\b", "a\\\\b"},
        {"newline", "a\nb", "a\\\\nb"},
    };
    CHECK(shk_escape_prom, cases);
}
