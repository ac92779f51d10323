#include "core/text/nodefold.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(nodefold, .timeout = 100);

Test(nodefold, cases)
{
    static const struct {
        const char *what, *names[8], *folded;
    } cases[] = {
        {"none", {NULL}, ""},
        {"one", {"nid001"}, "nid001"},
        {"range", {"nid002", "nid001", "nid003"}, "nid[001-003]"},
        {"gap", {"n1", "n2", "n4"}, "n[1-2,4]"},
        {"digits differ", {"n9", "n10"}, "n9,n10"},
        {"suffix", {"c1-ib", "c2-ib"}, "c[1-2]-ib"},
        {"last number counts", {"r1n1", "r1n2", "r2n1"}, "r1n[1-2],r2n1"},
        {"no number", {"login", "alpha"}, "alpha,login"},
        {"twice the same", {"n1", "n1"}, "n1"},
        {"folded already", {"n[1-3,5]", "n4", "m1"}, "m1,n[1-5]"},
        {"number too long",
         {"n1234567890123456789012", "n1234567890123456789013"},
         "n1234567890123456789012,n1234567890123456789013"},
        {"empty names", {"", ""}, ","},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = 0;
        struct shk_strbuf out = SHK_STRBUF_INIT;
        while (count < 8 && cases[i].names[count])
            count++;
        shk_nodefold(&out, cases[i].names, count);
        cr_expect_str_eq(shk_strbuf_text(&out), cases[i].folded, "%s: %s", cases[i].what,
                         shk_strbuf_text(&out));
        shk_strbuf_free(&out);
    }
}

Test(nodefold, a_thousand)
{
    enum { N = 1000 };
    static char text[N][16];
    const char *names[N];
    struct shk_strbuf out = SHK_STRBUF_INIT;
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "nid%06d", (i * 7) % N + 1);
        names[i] = text[i];
    }
    shk_nodefold(&out, names, N);
    cr_expect_str_eq(shk_strbuf_text(&out), "nid[000001-001000]");
    shk_strbuf_free(&out);
}

static void nodefold_collect(const char *name, void *arg)
{
    shk_strbuf_printf(arg, "%s ", name);
}

Test(nodefold, each)
{
    static const struct {
        const char *what, *list, *names;
    } cases[] = {
        {"one", "nid001", "nid001 "},
        {"range", "nid[001-003]", "nid001 nid002 nid003 "},
        {"ranges, names and a suffix", "a,n[1-2,5]-ib,b", "a n1-ib n2-ib n5-ib b "},
        {"width grows", "n[9-10]", "n9 n10 "},
        {"no number", "n[x]", ""},
        {"open", "n[1-", ""},
        {"two pairs", "r[1-2]n[1-2],x", "r1n1 r1n2 r2n1 r2n2 x "},
        {"backwards", "n[3-1]", ""},
        {"empty", "", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shk_strbuf out = SHK_STRBUF_INIT;
        (void)shk_nodefold_each(cases[i].list, SHK_NODEFOLD_MAX, nodefold_collect, &out);
        cr_expect_str_eq(shk_strbuf_text(&out), cases[i].names, "%s: %s", cases[i].what,
                         shk_strbuf_text(&out));
        shk_strbuf_free(&out);
    }
}

static void nodefold_count(const char *name, void *arg)
{
    (void)name;
    ++*(size_t *)arg;
}

Test(nodefold, a_range_without_end_is_cut)
{
    size_t count = 0;
    (void)shk_nodefold_each("n[0-999999999999999999]", SHK_NODEFOLD_MAX, nodefold_count, &count);
    cr_expect_eq(count, SHK_NODEFOLD_MAX);
}

/* A few bytes can mean billions of names. */
Test(nodefold, many_ranges_are_cut)
{
    size_t count = 0;
    shk_nodefold_each("a[0-99999],b[0-99999],c,d[0-99999]", SHK_NODEFOLD_MAX, nodefold_count,
                      &count);
    cr_expect_eq(count, (size_t)SHK_NODEFOLD_MAX);
}

Test(nodefold, more_names_than_nodes_anywhere_stay_as_they_are)
{
    enum { N = 1000 };
    static char text[N][24];
    const char *names[N];
    struct shk_strbuf out = SHK_STRBUF_INIT;
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "n%d-[0-65535]", i);
        names[i] = text[i];
    }
    shk_nodefold(&out, names, N);
    cr_expect_not(out.failed);
    cr_expect_eq(strncmp(shk_strbuf_text(&out), "n0-[0-65535],n1-[0-65535],", 26), 0);
    shk_strbuf_free(&out);
}

struct written {
    char *names[512];
    size_t count;
};

static void write_out(const char *name, void *arg)
{
    struct written *all = arg;
    if (all->count < 512)
        all->names[all->count++] = strdup(name);
}

/* Lists that are folded already come out as their names would, in any order, with repeats. */
Test(nodefold, ranges_as_their_names)
{
    static const char *const forms[] = {"nid[%03u-%03u]",  "a[%u-%u]x,b",    "n1[%u-%u]",
                                        "r[%02u,%02u]-ib", "gpu%u-[%u]",     "[%u-%u]",
                                        "c[%u-%u]s0",      "nid%03u,nid%03u"};
    unsigned seed = 7;
    for (int round = 0; round < 500; round++) {
        char *lists[4];
        struct written all = {.count = 0};
        struct shk_strbuf folded = SHK_STRBUF_INIT, plain = SHK_STRBUF_INIT;
        for (int i = 0; i < 4; i++) {
            seed = seed * 1103515245u + 12345u;
            unsigned from = seed >> 16 & 31, to = from + (seed >> 24 & 15);
            lists[i] = shk_strf(forms[(seed >> 9) % (sizeof forms / sizeof *forms)], from, to);
            (void)shk_nodefold_each(lists[i], 512, write_out, &all);
        }
        shk_nodefold(&folded, (const char *const *)lists, 4);
        shk_nodefold(&plain, (const char *const *)all.names, all.count);
        bool bracket = false;
        for (int i = 0; i < 4; i++)
            bracket |= strchr(lists[i], '[') != NULL;
        if (bracket)
            cr_expect_str_eq(shk_strbuf_text(&folded), shk_strbuf_text(&plain), "%s %s %s %s",
                             lists[0], lists[1], lists[2], lists[3]);
        for (int i = 0; i < 4; i++)
            free(lists[i]);
        for (size_t i = 0; i < all.count; i++)
            free(all.names[i]);
        shk_strbuf_free(&folded);
        shk_strbuf_free(&plain);
    }
}
