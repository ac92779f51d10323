#include "core/text/strbuf.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

Test(text, edit_distance)
{
    static const struct {
        const char *a, *b;
        size_t want;
    } rows[] = {
        {"", "", 0},
        {"abc", "", 3},
        {"hns3", "hsn3", 1},
        {"INFOO", "INFO", 1},
        {"nccl", "NCCL", 0},
        {"kitten", "sitting", 3},
        {"FI_PROVIDERS", "FI_PROVIDER", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(shk_edit_distance(rows[i].a, rows[i].b), rows[i].want, "%s %s", rows[i].a,
                     rows[i].b);
    char big[200];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    cr_expect_eq(shk_edit_distance(big, "x"), SIZE_MAX);
}

Test(text, edit_distance_within_a_limit_is_the_same_distance)
{
    static const char *const words[] = {"",        "a",       "ab",      "ba",       "kitten",
                                        "sitting", "sittign", "ikttens", "kitten_a", "nettik"};
    size_t n = sizeof words / sizeof *words;
    for (size_t k = 0; k < n * n * 10; k++) {
        const char *a = words[k % n], *b = words[k / n % n];
        size_t limit = k / n / n, full = shk_edit_distance(a, b),
               d = shk_edit_distance_within(a, b, limit);
        cr_expect(full <= limit ? d == full : d > limit, "%s %s within %zu: %zu, not %zu", a, b,
                  limit, d, full);
    }
}

Test(text, nearest_suggests_plausible_names_only)
{
    static const char *const names[] = {"NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "hsn0", "hsn3", "lo"};
    cr_expect_str_eq(shk_nearest("NCCL_SOCKET_IFNAMES", names, 5), "NCCL_SOCKET_IFNAME");
    cr_expect_str_eq(shk_nearest("hns3", names, 5), "hsn3");
    cr_expect_null(shk_nearest("eth7", names, 5));
    cr_expect_null(shk_nearest("lo", names, 5), "an exact match is no suggestion");
    cr_expect_null(shk_nearest("x", names, 0));
}

Test(text, version_cmp)
{
    static const struct {
        const char *a, *b;
        int want;
    } rows[] = {
        {"1.18.0", "1.9", 1},   {"v2.28.3", "2.28.3", 0},    {"2.28", "2.28.0", 0},
        {"2.28", "2.28.9", -1}, {"1.17.0-rc1", "1.17.0", 0}, {"", "1", -1},
        {"x", "", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int got = shk_version_cmp(rows[i].a, rows[i].b);
        cr_expect_eq(got, rows[i].want, "%s %s: %d", rows[i].a, rows[i].b, got);
        cr_expect_eq(shk_version_cmp(rows[i].b, rows[i].a), -rows[i].want);
    }
}

Test(text, strbuf_is_sticky_and_hands_over)
{
    struct shk_strbuf sb = SHK_STRBUF_INIT;
    cr_expect_str_eq(shk_strbuf_text(&sb), "");
    shk_strbuf_puts(&sb, "a");
    shk_strbuf_printf(&sb, "%d-%s", 42, "b");
    for (int i = 0; i < 1000; i++)
        shk_strbuf_putc(&sb, 'x');
    char *text = shk_strbuf_take(&sb);
    cr_assert_not_null(text);
    cr_expect_eq(strlen(text), 1005);
    cr_expect_eq(strncmp(text, "a42-bxx", 7), 0);
    free(text);
    shk_strbuf_add(&sb, "", SIZE_MAX / 2);
    cr_expect(sb.failed, "an impossible size is remembered");
    shk_strbuf_puts(&sb, "more");
    cr_expect_null(shk_strbuf_take(&sb));
}

Test(text, trim)
{
    char s[] = " \t a b \n";
    cr_expect_str_eq(shk_trim(s), "a b");
    char blank[] = "  ";
    cr_expect_str_eq(shk_trim(blank), "");
}

Test(text, error_is_one_line_and_cut)
{
    struct shk_error err;
    char big[2000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    cr_expect_eq(shk_error_set(&err, 22, "line\none\x1b[31m %s", big), -22);
    cr_expect_eq(strlen(err.text), sizeof err.text - 1);
    cr_expect_null(strchr(err.text, '\n'));
    cr_expect_null(strchr(err.text, '\x1b'));
    cr_expect_eq(shk_error_sys(&err, 2, "%s", "/x"), -2);
    cr_expect_str_eq(err.text, "/x: No such file or directory");
    cr_expect_eq(shk_error_set(NULL, 5, "nobody listens"), -5);
}
