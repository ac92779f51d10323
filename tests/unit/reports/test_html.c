#include "hostile.h"
#include "reports/html/plot.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(html, .timeout = 300);

static size_t html_count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)); p += strlen(part))
        n++;
    return n;
}

Test(html, sections)
{
    static const char *const parts[] = {
        "<title>FAIL: nid001234</title>",
        "<header class=\"banner fail\"><h1><span class=\"fail\">FAIL</span> nid001234</h1>",
        "1 failed, 1 warning, 3 unknown, 5 passed; 1.2 s",
        "<h2>Root cause</h2>",
        "<h3><span class=\"fail\">1</span> The interface named in NCCL_SOCKET_IFNAME",
        "<h2>Coverage</h2>",
        "10 settings: 3 tested",
        "<h2>Collectives</h2>",
        "aria-label=\"Bus bandwidth\"",
        "aria-label=\"Time of one all-reduce\"",
        "<table class=\"sizes\">",
        "<h2>Matrix</h2>",
        "<input id=\"filter\"",
        "<code>NCCL_SOCKET_IFNAME</code>",
        "<div class=\"note fix\"><code>export NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3</code>",
        "<h2>Not covered, and why</h2>",
        "Environment and versions",
        "<pre>shakedown --profile auto</pre>",
        "</html>\n",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "html"), *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order", parts[i]);
        at = found ? found : at;
    }
    cr_expect_null(strstr(text, "table class=\"heat\""), "one node needs no map");
    free(text);
    sample_free(&s);
}

Test(html, needs_nothing_else)
{
    static const char *const outside[] = {"http:", "https:", "src=", "@import", "url("};
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "html");
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        cr_expect_null(strstr(text, outside[i]), "%s", outside[i]);
    for (const char *at = text; (at = strstr(at, "href=")); at++)
        cr_expect(strncmp(at, "href=\"#", 7) == 0, "a link out of the page: %.40s", at);
    cr_expect_not_null(strstr(text, "Content-Security-Policy\" content=\"default-src 'none';"));
    free(text);
    sample_free(&s);
}

Test(html, a_thousand_nodes_are_a_few_rows)
{
    struct sample s;
    sample_thousand(&s);
    char *text = sample_render(&s, "html");
    static const char *const rows[] = {
        "<tr><th scope=\"row\">1 node: nid001018</th><td class=\"fail\" "
        "title=\"NCCL_SOCKET_IFNAME: fail\">",
        "<tr><th scope=\"row\">1 node: nid001017</th>",
        "<tr><th scope=\"row\">29 nodes: nid[001019-001047]</th>",
        "<tr><th scope=\"row\">1 node: nid001999</th>",
        "<tr><th scope=\"row\">951 nodes: nid[001048-001998]</th>",
        ("<tr><th scope=\"row\">17 nodes: nid[001000-001016]</th><td class=\"\" "
         "title=\"NCCL_SOCKET_IFNAME: "
         "not "
         "judged\">"),
        "1000 nodes; 4 settings are the same and without complaint on all of them.",
    };
    const char *at = text;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *found = strstr(at, rows[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order", rows[i]);
        at = found ? found : at;
    }
    cr_expect_lt(strlen(text), 64 << 10);
    free(text);
    sample_free(&s);
}

Test(html, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "html");
        hostile_expect_clean(hostile_texts[i].name, text);
        cr_expect_eq(html_count(text, "<script"), 1, "%s", hostile_texts[i].name);
        cr_expect_eq(html_count(text, "</body>"), 1, "%s", hostile_texts[i].name);
        cr_expect_eq(html_count(text, "<!"), 1, "%s", hostile_texts[i].name);
        cr_expect_null(strstr(text, "\" onmouseover"), "%s", hostile_texts[i].name);
        free(text);
        sample_free(&s);
    }
}

Test(html, a_long_text_is_cut)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "html");
    cr_expect_lt(strlen(text), 8 << 20);
    hostile_expect_clean("megabyte", text);
    free(text);
    sample_free(&s);
    free(big);
}

static const char *html_tick(double x, char *buf, size_t size)
{
    snprintf(buf, size, "%g", x);
    return buf;
}

Test(html, plot_leaves_out_what_has_no_logarithm)
{
    static const struct shk_plot_point points[] = {{4, 0}, {8, 1}, {16, -3}, {0, 5}, {32, 10}};
    static const struct shk_plot_line line = {"a<b", points, 5, false, 0};
    static const struct shk_plot_line none = {"none", points, 1, false, 0};
    struct shk_plot plot = {"t", "x", "y", html_tick, &line, 1, false, 0};
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_plot_svg(&out, &plot);
    cr_expect_eq(html_count(shk_strbuf_text(&out), "<circle"), 2, "%s", shk_strbuf_text(&out));
    cr_expect_not_null(strstr(shk_strbuf_text(&out), "a&lt;b"));
    shk_strbuf_free(&out);
    plot.lines = &none;
    shk_plot_svg(&out, &plot);
    cr_expect_eq(out.len, 0, "nothing to draw, nothing drawn");
    shk_strbuf_free(&out);
}

Test(html, expected_bandwidth_is_a_dashed_line)
{
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "html");
    cr_expect_null(strstr(text, " expected\""), "nothing is expected");
    free(text);
    shk_facts_present(s.facts[0], "collective.fabric.roofline",
                      json_loads("{\"latency_us\": 1, \"sizes\": [{\"bytes\": 4096, "
                                 "\"bandwidth\": 5.5}, {\"bytes\": 65536, \"bandwidth\": 11}]}",
                                 0, NULL),
                      NULL, "test");
    text = sample_render(&s, "html");
    cr_expect_eq(html_count(text, "<g class=\"line0 expected\">"), 2,
                 "bandwidth only: the line and its sign in the legend");
    cr_expect_not_null(strstr(text, "expected: plain puts, fabric<"));
    free(text);
    sample_free(&s);
}

Test(html, copies_between_gpus_are_the_roof)
{
    struct sample s;
    sample_failing(&s);
    shk_facts_present(s.facts[0], "collective.fabric.copy",
                      json_loads("{\"one_way_gbs\": 380, \"both_ways_gbs\": 478}", 0, NULL), NULL,
                      "test");
    shk_facts_present(s.facts[0], "collective.fabric.sizes",
                      json_loads("[{\"bytes\": 1048576, \"busbw\": 88, \"time_us\": 20},"
                                 " {\"bytes\": 8388608, \"busbw\": 261, \"time_us\": 60}]",
                                 0, NULL),
                      NULL, "test");
    char *text = sample_render(&s, "html");
    cr_expect_not_null(strstr(text, "roof: copies both ways between two GPUs<"));
    cr_expect_eq(html_count(text, "<g class=\"line0 expected\">"), 2);
    free(text);
    sample_free(&s);
}

/* As on the screen: how many nodes and which, and what warns without being a cause. */
Test(html, headline_of_many_nodes)
{
    static const char *const parts[] = {
        "<title>FAIL: 2 of 1000 nodes fail, 29 more warn, 1 unknown</title>",
        "FAIL</span> 2 of 1000 nodes fail, 29 more warn, 1 unknown</h1>\n<p>nid[001017-001018]</p>",
        "<h3><span class=\"fail\">1</span> The interface named in NCCL_SOCKET_IFNAME",
        "<p>2 nodes: nid[001017-001018]</p>",
        "<h3><span class=\"warn\">WARN</span> ",
        "<p>30 nodes: nid[001018-001047]</p>",
        "<h2>Coverage</h2>",
    };
    struct sample s;
    sample_thousand(&s);
    char *text = sample_render(&s, "html"), *at = text;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order in %.9000s", parts[i], text);
        at = found ? found : at;
    }
    free(text);
    sample_free(&s);
}

/* What another cause explains is a line of that cause, with its own words behind it. */
Test(html, what_a_cause_explains_is_below_it)
{
    static const char *const formats[] = {"html", "md"};
    static const char *const lines[] = {"<summary>less likely: Another reading</summary>\n<h4>",
                                        "Less likely: Another reading\n"};
    struct sample s;
    sample_failing(&s);
    struct shk_diagnosis_row two[2] = {
        s.diagnoses.rows[0],
        {.key = "other", .title = "Another reading", .verdict = SHK_WARN, .below = 1}};
    struct shk_diagnoses own = s.diagnoses;
    own.rows = two;
    own.count = 2;
    s.report.diagnoses = &own;
    for (size_t i = 0; i < 2; i++) {
        char *text = sample_render(&s, formats[i]);
        cr_expect_not_null(strstr(text, lines[i]), "%s:\n%.6000s", formats[i], text);
        cr_expect_null(strstr(text, i ? "### 2." : "warn\">2</span>"), "%s", formats[i]);
        free(text);
    }
    two[1].verdict = SHK_FAIL;
    char *text = sample_render(&s, "html");
    cr_expect_not_null(strstr(text, "<span class=\"fail\">2</span> Another reading"),
                       "a FAIL is "
                       "never folded");
    free(text);
    s.report.diagnoses = &s.diagnoses;
    sample_free(&s);
}
