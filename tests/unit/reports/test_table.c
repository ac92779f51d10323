#include "reports/text/table.h"

#include <criterion/criterion.h>
#include <math.h>

TestSuite(table, .timeout = 100);

static const struct shk_column columns[] = {
    {.title = "name"},
    {.title = "value", .code = true, .flexible = true},
    {.title = "time", .unit = "(us)", .right = true},
};

static struct shk_table *table_two_rows(void)
{
    struct shk_table *t = shk_table_create(columns, 3);
    cr_assert_not_null(t);
    shk_table_row(t);
    shk_table_text(t, SHK_ROLE_PLAIN, "a");
    shk_table_text(t, SHK_ROLE_PLAIN, "x|y");
    shk_table_number(t, 1.5, 2);
    shk_table_row(t);
    shk_table_text(t, SHK_ROLE_PLAIN, "long name");
    shk_table_text(t, SHK_ROLE_PLAIN, NULL);
    shk_table_number(t, NAN, 2);
    shk_table_note(t, SHK_ROLE_FIX, "> ", SHK_TABLE_COMMAND, "export A=1\nexport B=2");
    cr_assert_eq(shk_table_status(t), 0);
    return t;
}

Test(table, term)
{
    struct shk_table *t = table_two_rows();
    struct shk_strbuf out = SHK_STRBUF_INIT;
    struct shk_table_view view = {.width = 60, .indent = 2, .note_column = 1, .header = true};
    shk_table_term(t, &view, &out);
    cr_expect_str_eq(shk_strbuf_text(&out), "  name       value  time\n"
                                            "                    (us)\n"
                                            "  a          x|y    1.50\n"
                                            "  long name  -         -\n"
                                            "             > export A=1\n"
                                            "             > export B=2\n");
    shk_strbuf_free(&out);
    shk_table_destroy(t);
}

Test(table, term_narrows_the_flexible_column)
{
    struct shk_table *t = shk_table_create(columns, 3);
    struct shk_strbuf out = SHK_STRBUF_INIT;
    struct shk_table_view view = {.width = 30};
    cr_assert_not_null(t);
    shk_table_row(t);
    shk_table_text(t, SHK_ROLE_PLAIN, "setting");
    shk_table_text(t, SHK_ROLE_PLAIN, "hsn0,hsn1,hsn2,hsn3,hsn4");
    shk_table_number(t, 12, 0);
    shk_table_heading(t, "next");
    shk_table_heading(t, "reaches to the right edge of it");
    shk_table_term(t, &view, &out);
    cr_expect_str_eq(shk_strbuf_text(&out), "setting  hsn0,hsn1,hsn2,    12\n"
                                            "         hsn3,hsn4\n"
                                            "\n"
                                            "next\n"
                                            "\n"
                                            "reaches to the right edge of\n"
                                            "it\n");
    shk_strbuf_free(&out);
    shk_table_destroy(t);
}

Test(table, md)
{
    struct shk_table *t = table_two_rows();
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_table_md(t, 200, &out);
    cr_expect_str_eq(
        shk_strbuf_text(&out),
        "| name | value | time (us) |\n"
        "|---|---|---:|\n"
        "| a | <code>x&#124;y</code> | 1.50 |\n"
        "| long name | \xE2\x80\x93 | \xE2\x80\x93<br>> `export A=1`<br>`export B=2` |\n");
    shk_strbuf_free(&out);
    shk_table_destroy(t);
}

Test(table, html)
{
    struct shk_table *t = shk_table_create(columns, 3);
    struct shk_strbuf out = SHK_STRBUF_INIT;
    cr_assert_not_null(t);
    shk_table_row(t);
    shk_table_text(t, SHK_ROLE_FAIL, "<b>");
    shk_table_text(t, SHK_ROLE_PLAIN, "\"v\"");
    shk_table_number(t, 3, 0);
    shk_table_html(t, "plain", 200, &out);
    cr_expect_str_eq(
        shk_strbuf_text(&out),
        "<table class=\"plain\"><thead><tr><th scope=\"col\">name</th><th scope=\"col\">value</th>"
        "<th scope=\"col\" class=\"num\">time<small>(us)</small></th></tr></thead><tbody>\n"
        "<tr><td class=\"fail\">&lt;b&gt;</td><td class=\"\">"
        "<code>&quot;v&quot;</code></td><td class=\" num\">3</td></tr>\n"
        "</tbody></table>\n");
    shk_strbuf_free(&out);
    shk_table_destroy(t);
}

Test(table, cells_beyond_the_columns_are_not_written)
{
    struct shk_table *t = shk_table_create(columns, 1);
    struct shk_strbuf out = SHK_STRBUF_INIT;
    struct shk_table_view view = {.width = 30};
    cr_assert_not_null(t);
    shk_table_text(t, SHK_ROLE_PLAIN, "before any row");
    shk_table_row(t);
    shk_table_text(t, SHK_ROLE_PLAIN, "a");
    shk_table_text(t, SHK_ROLE_PLAIN, "b");
    shk_table_term(t, &view, &out);
    cr_expect_str_eq(shk_strbuf_text(&out), "a\n");
    shk_strbuf_free(&out);
    shk_table_destroy(t);
}
