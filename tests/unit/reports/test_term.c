#include "hostile.h"
#include "reports/text/utf8.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(term, .timeout = 300);

static void term_expect_fits(const char *what, char *text, unsigned width)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (!strstr(line, "\xE2\x86\x92 ")) /* a line to copy is whole */
            cr_expect_leq(shk_text_width(line), width, "%s: %zu columns: %.300s", what,
                          shk_text_width(line), line);
}

/* Every text occurs, in this order. */
static void term_expect_order(const char *text, const char *const *parts, size_t count)
{
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order in:\n%s", parts[i], text);
        at = found ? found : at;
    }
}

Test(term, most_important_first)
{
    static const char *const parts[] = {
        "\xE2\x9C\x97 FAIL  nid001234 \xC2\xB7 1 cause\n",
        "libfabric 1.15.2.0 \xC2\xB7 1.2 s\n",
        "profile lumi-g (env.SLURM_CLUSTER_NAME is lumi",
        " 1  The interface named in NCCL_SOCKET_IFNAME does not exist  (confirmed; for the user to "
        "fix)\n",
        "    NCCL_SOCKET_IFNAME = hsn0,hsn1,hsn2,hns3: ",
        "did you mean hsn3?",
        "\xE2\x86\x92 Set it to interfaces",
        " !  NCCL_DEBUG",
        "all-reduce, 2 ranks   4 B  1 MiB  4 MiB  of roof  wrong\n",
        "                       us   GB/s   GB/s        %\n",
        "fabric tcp;ofi_rxm   11.2",
        "3.83        -      0\n",
        "unknown: ",
        "1 failed, 1 warning, 3 unknown, 5 passed, 1 do not apply; verified: 3 tested, 1 inferred, "
        "3\ndeclared, 3 not checked\n",
        "\xE2\x9C\x97 FAIL  nid001234 \xC2\xB7 1 cause \xC2\xB7 rows: -v",
        "shakedown explain ",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "term");
    term_expect_order(text, parts, sizeof parts / sizeof *parts);
    cr_expect_null(strstr(text, "efa module"), "n/a rows are counted only");
    cr_expect_null(strstr(text, "NCCL_CROSS_NIC"), "what passed is counted only");
    cr_expect_null(strstr(text, "Probes"), "timings are for --verbose");
    free(text);
    sample_free(&s);
}

static void gpus_set(struct sample *s, const char *key, const char *value)
{
    json_t *doc = json_loads(value, JSON_DECODE_ANY, NULL);
    cr_assert_not_null(doc, "%s", value);
    cr_assert_eq(shk_facts_present(s->facts[0], key, doc, NULL, "test"), 0);
}

/* GPUs and the host have other sizes: each has a column that tells, and between two GPUs the roof
 * is what copies in both directions reach. */
Test(term, transports_of_gpus_beside_that_of_the_host)
{
    static const char *const gpus[] = {"peer", "lsa", "nccl"};
    static const char *const parts[] = {
        "all-reduce, 2 ranks   4 B  1 MiB  4 MiB  256 MiB  of roof  wrong\n",
        "360       90      0"};
    struct sample s;
    sample_failing(&s);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        char key[64];
        snprintf(key, sizeof key, "collective.%s.status", gpus[i]);
        gpus_set(&s, key, "\"ok\"");
        snprintf(key, sizeof key, "collective.%s.ranks", gpus[i]);
        gpus_set(&s, key, "2");
        snprintf(key, sizeof key, "collective.%s.devices", gpus[i]);
        gpus_set(&s, key, "[]");
        snprintf(key, sizeof key, "collective.%s.sizes", gpus[i]);
        gpus_set(&s, key,
                 "[{\"bytes\": 4, \"time_us\": 4.5, \"busbw\": 0.001, \"wrong\": 0},"
                 "{\"bytes\": 268435456, \"time_us\": 745.0, \"busbw\": 360.0, \"wrong\": 0}]");
    }
    gpus_set(&s, "collective.peer.copy", "{\"one_way_gbs\": 410.0, \"both_ways_gbs\": 400.0}");
    char *text = sample_render(&s, "term");
    term_expect_order(text, parts, sizeof parts / sizeof *parts);
    free(text);
    sample_free(&s);
}

Test(term, verbose_shows_every_row_and_the_probes)
{
    static const char *const parts[] = {
        "pass     NCCL_CROSS_NIC",
        "declared\n",
        "n/a      efa module",
        "no EFA device\n",
        "Probes\n",
        "host       nid001234  ok        2.2\n",
        "libfabric  nid001234  crashed     -  SIGSEGV in libfabric.so.1: fi_getinfo\n",
    };
    struct sample s;
    sample_failing(&s);
    s.options.verbose = true;
    char *text = sample_render(&s, "term");
    term_expect_order(text, parts, sizeof parts / sizeof *parts);
    free(text);
    sample_free(&s);
}

Test(term, verdict_line)
{
    static const struct {
        const char *name, *first;
        void (*make)(struct sample *s);
    } cases[] = {
        {"healthy", "\xE2\x9C\x93 PASS  nid001234 \xC2\xB7 5 passed\n", sample_healthy},
        {"cluster", "\xE2\x9C\x97 FAIL  2 of 3 nodes fail \xC2\xB7 1 failed\n", sample_cluster},
        {"thousand",
         "\xE2\x9C\x97 FAIL  2 of 1000 nodes fail, 29 more warn, 1 unknown \xC2\xB7 1 cause\n",
         sample_thousand},
        {"nothing known", "? UNKNOWN  no node \xC2\xB7 nothing was judged\n", sample_empty},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sample s;
        cases[i].make(&s);
        s.options = (struct shk_report_options){.unicode = true};
        char *text = sample_render(&s, "term");
        cr_expect_eq(strncmp(text, cases[i].first, strlen(cases[i].first)), 0, "%s: %.100s",
                     cases[i].name, text);
        cr_expect_null(strstr(text, "Root cause"), "%s", cases[i].name);
        free(text);
        sample_free(&s);
    }
}

/* A required row that nobody could read makes the whole unknown, not passed. */
Test(term, required_unknown_is_no_pass)
{
    struct sample s;
    sample_healthy(&s);
    shk_findings_add(s.findings, &(struct shk_finding_in){.id = "x",
                                                          .family = "kernel",
                                                          .setting = "iommu",
                                                          .verdict = SHK_UNKNOWN,
                                                          .evidence = SHK_NOT_COVERED,
                                                          .required = 1});
    s.report.coverage = shk_findings_coverage(s.findings);
    char *text = sample_render(&s, "term");
    cr_expect_eq(strncmp(text, "? UNKNOWN", 9), 0, "%.60s", text);
    free(text);
    sample_free(&s);
}

Test(term, cluster_names_the_nodes_of_a_row)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "term");
    cr_expect_not_null(strstr(text, "2 nodes: nid[001235-001236]\n"), "%s", text);
    cr_expect_not_null(strstr(text, ": failed "), "%s", text);
    free(text);
    s.options.verbose = true;
    text = sample_render(&s, "term");
    cr_expect_not_null(strstr(text, "on nid[001235-001236]\n"));
    cr_expect_not_null(strstr(text, "failed: rank 1 died of SIGKILL in warmup\n"));
    free(text);
    sample_free(&s);
}

Test(term, fits_the_width)
{
    static const unsigned widths[] = {0, 60, 80, 100, 132, 200};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        /* below 80 columns the tables of numbers, which -v has, keep their width */
        for (int verbose = 0; verbose < (widths[i] == 60 ? 1 : 2); verbose++) {
            struct sample s;
            sample_failing(&s);
            s.options.width = widths[i];
            s.options.verbose = verbose;
            char *text = sample_render(&s, "term");
            term_expect_fits("failing", text, widths[i] ? widths[i] : 100);
            free(text);
            sample_free(&s);
        }
    }
}

Test(term, color_only_when_asked)
{
    struct sample s;
    sample_failing(&s);
    char *plain = sample_render(&s, "term");
    cr_expect_null(strchr(plain, '\x1b'));
    s.options.color = true;
    char *color = sample_render(&s, "term"), *out = color;
    cr_expect_not_null(strstr(color, "\x1b[1;31m"));
    for (char *in = color; *in; in++) { /* without the sequences it is the same report */
        if (*in == '\x1b')
            in = strchr(in, 'm');
        else
            *out++ = *in;
    }
    *out = '\0';
    cr_expect_str_eq(color, plain);
    free(plain);
    free(color);
    sample_free(&s);
}

Test(term, ascii_fallback)
{
    struct sample s;
    sample_failing(&s);
    s.options.unicode = false;
    char *text = sample_render(&s, "term");
    for (const char *p = text; *p; p++)
        cr_assert((unsigned char)*p < 0x80, "not ASCII: %.40s", p);
    cr_expect_eq(strncmp(text, "x FAIL  nid001234 - 1 cause\n", 28), 0, "%.60s", text);
    free(text);
    sample_free(&s);
}

Test(term, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        for (int verbose = 0; verbose < 2; verbose++) {
            struct sample s;
            sample_hostile(&s, hostile_texts[i].text);
            s.options.verbose = verbose;
            char *text = sample_render(&s, "term");
            hostile_expect_clean(hostile_texts[i].name, text);
            term_expect_fits(hostile_texts[i].name, text, 100);
            free(text);
            sample_free(&s);
        }
    }
}

Test(term, a_long_text_stays_a_screenful)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "term");
    cr_expect_lt(strlen(text), HOSTILE_LONG);
    cr_expect_not_null(strstr(text, "bytes)"), "%.3000s", text);
    hostile_expect_clean("megabyte", text);
    term_expect_fits("megabyte", text, 100);
    free(text);
    sample_free(&s);
    free(big);
}

Test(term, full_disk_is_an_error)
{
    struct sample s;
    sample_failing(&s);
    FILE *full = fopen("/dev/full", "w");
    cr_assert_not_null(full);
    static const char *const names[] = {"term", "md", "json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        cr_expect_lt(shk_format_find(names[i])->render(&s.report, &s.options, full), 0, "%s",
                     names[i]);
    fclose(full);
    sample_free(&s);
}

/* The largest numbers that occur, on GPUs: 1 GiB of bfloat16 in narrow and wide terminals. */
Test(term, in_place_columns_of_gpu_transports)
{
    static const char *const narrow[] = {"redop  ",
                                         "time   algbw   busbw  #wrong  in place   busbw  #wrong\n",
                                         "1073741824  536870912  bfloat16    sum  4176.45  257.09  "
                                         "257.09       0   4000.00  268.44  "
                                         "     3\n",
                                         "algorithm and percentiles: 128 columns or more"};
    static const char *const wide[] = {"#wrong  algorithm      p50      p99\n",
                                       "two-shot  4200.00  4300.25\n"};
    struct sample s;
    sample_healthy(&s);
    shk_facts_text(s.facts[0], "collective.peer.status", "ok", "peer");
    shk_facts_int(s.facts[0], "collective.peer.ranks", 2, NULL, "peer");
    shk_facts_present(s.facts[0], "collective.peer.sizes",
                      json_pack("[{s:I,s:I,s:s,s:s,s:s,s:f,s:f,s:f,s:i,s:f,s:i,s:f,s:f}]", "bytes",
                                (json_int_t)1 << 30, "count", (json_int_t)1 << 29, "type",
                                "bfloat16", "redop", "sum", "algorithm", "two-shot", "time_us",
                                4176.45, "algbw", 257.0944, "busbw", 257.0944, "wrong", 0,
                                "in_place_us", 4000.0, "in_place_wrong", 3, "p50_us", 4200.0,
                                "p99_us", 4300.25),
                      NULL, "peer");
    s.options.width = 100;
    s.options.verbose = true;
    char *text = sample_render(&s, "term");
    term_expect_order(text, narrow, sizeof narrow / sizeof *narrow);
    cr_expect_null(strstr(text, "p99"));
    term_expect_fits("in place", text, 100);
    free(text);
    s.options.width = 140;
    text = sample_render(&s, "term");
    term_expect_order(text, wide, sizeof wide / sizeof *wide);
    cr_expect_null(strstr(text, "percentiles"));
    free(text);
    text = sample_render(&s, "md");
    cr_expect_not_null(strstr(text, "p99 (us)"));
    free(text);
    sample_free(&s);
}
