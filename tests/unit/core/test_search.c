#include "core/search/search.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct shk_search *made(void)
{
    static const char *const texts[] = {
        "the locked memory limit is too low, ibv_reg_mr cannot allocate memory",
        "no space left on device, disk quota exceeded",
        "the name of the host cannot be resolved, unknown host",
        "registered memory regions of the adapter are used up",
    };
    struct shk_error err = {""};
    struct shk_search *search = NULL;
    cr_assert_eq(shk_search_create(&search, &err), 0, "%s", err.text);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert_eq(shk_search_add(search, i, texts[i], &err), 0, "%s", err.text);
    return search;
}

static int best(struct shk_search *search, const char *text)
{
    struct shk_error err = {""};
    struct shk_search_hit hits[4];
    int n = shk_search_find(search, text, hits, 4, &err);
    cr_assert_geq(n, 0, "%s", err.text);
    for (int i = 0; i < n; i++)
        cr_expect_gt(hits[i].score, 0);
    for (int i = 1; i < n; i++)
        cr_expect_leq(hits[i].score, hits[i - 1].score);
    return n ? (int)hits[0].id : -1;
}

Test(search, the_text_with_most_words_in_common_comes_first)
{
    struct shk_search *search = made();
    cr_expect_eq(best(search, "write: disk full, quota"), 1);
    cr_expect_eq(best(search, "getaddrinfo node07: host unknown"), 2);
    cr_expect_eq(best(search, "could not lock memory: limits"), 0);
    cr_expect_eq(best(search, "adapter: registering region"), 3); /* endings do not count */
    shk_search_destroy(search);
}

Test(search, names_are_taken_apart)
{
    struct shk_search *search = made();
    cr_expect_eq(best(search, "ibvRegMr: -12"), 0);
    cr_expect_eq(best(search, "IBV_REG_MR"), 0);
    shk_search_destroy(search);
}

Test(search, nothing_in_common_is_no_hit)
{
    struct shk_search *search = made();
    cr_expect_eq(best(search, "frobnicator"), -1);
    cr_expect_eq(best(search, ""), -1);
    cr_expect_eq(best(search, "error: failed"), -1);
    cr_expect_eq(best(search, "\" OR * NEAR( -- \xff\xc3"), -1); /* no query language */
    shk_search_destroy(search);
}

Test(search, long_texts_and_many_ids)
{
    struct shk_error err = {""};
    struct shk_search *search = made();
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_search_hit hits[2];
    for (int i = 0; i < 20000; i++)
        shk_strbuf_printf(&text, "%c%c%c ", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26);
    cr_expect_eq(shk_search_find(search, shk_strbuf_text(&text), hits, 2, &err), 0);
    shk_strbuf_puts(&text, "quota");
    cr_assert_eq(shk_search_add(search, 1, shk_strbuf_text(&text), &err), 0);
    cr_expect_eq(shk_search_find(search, "quota", hits, 2, &err), 2); /* one id, two texts */
    cr_expect_eq(hits[0].id, 1);
    cr_expect_eq(hits[1].id, 1);
    cr_expect_eq(shk_search_find(search, "quota", hits, 1, &err), 1);
    shk_strbuf_free(&text);
    shk_search_destroy(search);
}

Test(search, words)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"ncclCommInitRank failed: 12", "nccl comm init rank 12 "},
        {"NCCL_IB_HCA=mlx5_0", "nccl ib hca mlx 5 0 "},
        {"HMEMInit CUDAError", "hmem init cuda "},
        {"The error was 123456 in x", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shk_strbuf words = SHK_STRBUF_INIT;
        shk_search_words(&words, rows[i].text);
        cr_expect_str_eq(shk_strbuf_text(&words), rows[i].words);
        shk_strbuf_free(&words);
    }
}
