/* The dialect of regular expressions, and that no pattern takes long. */
#include "core/regex/regex.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *pattern, *text;
    bool matches;
} finds[] = {
    {"^(a|b)[0-9]+$", "b12", true},
    {"^(a|b)[0-9]+$", "b12\n", false},
    {"a.b", "a\nb", true},
    {"(?i)nccl\\b", "NCCL_X nccl", true},
    {"nccl\\b", "NCCL nccl_x", false},
    {"[[:space:]]x[^[:alpha:]]", "\tx1", true},
    {"[]a-c\\d]{3}", "x]9b", true},
    {"(?:ab){2,3}?c", "ababc", true},
    {"\\x41\\.[\\x42-\\x44]", "A.C", true},
    {"^(|yes)$", "", true},
    {"(^|,)lo(,|$)", "eth0,lo", true},
    {"a\\{2\\}", "a{2}", true},
    {"\\Bb", "ab", true},
    {"}", "}", true},
};

Test(regex, finds)
{
    struct shk_regex_work *work = shk_regex_work_create();
    for (size_t i = 0; i < sizeof finds / sizeof *finds; i++) {
        struct shk_regex *regex = NULL;
        struct shk_error err = {""};
        size_t len = strlen(finds[i].text);
        cr_assert_eq(shk_regex_check(finds[i].pattern, &err), 0, "%s: %s", finds[i].pattern,
                     err.text);
        cr_assert_eq(shk_regex_create(&regex, finds[i].pattern, &err), 0, "%s", err.text);
        cr_expect_eq(shk_regex_find(regex, work, finds[i].text, len), finds[i].matches, "%s",
                     finds[i].pattern);
        shk_regex_speed(regex);
        cr_expect_eq(shk_regex_find(regex, work, finds[i].text, len), finds[i].matches, "%s",
                     finds[i].pattern);
        shk_regex_destroy(regex);
    }
    shk_regex_work_destroy(work);
}

static const struct {
    const char *pattern, *why;
} refused[] = {
    {"a**", "* behind"},
    {"a{2}{3}", "{ behind"},
    {"a++", "+ behind"},
    {"+a", "nothing that + could repeat"},
    {"(|*)", "nothing that * could repeat"},
    {"a{", "{ without a number"},
    {"a{,3}", "{ without a number"},
    {"a{3,1}", "no count"},
    {"a{300}", "more than 255"},
    {"(a{200}){200}", "too large"},
    {"a)", ") without ("},
    {"(a", "does not end"},
    {"[a", "does not end"},
    {"[]", "does not end"},
    {"[b-a]", "no character"},
    {"[a-\\d]", "on either side"},
    {"[[:nope:]]", "names no class"},
    {"[[.a.]]", "[. is not understood"},
    {"[\\Q]", "\\Q is not understood in a class"},
    {"(a)\\1", "\\1 is not understood"},
    {"(?<n>a)", "is not understood"},
    {"(?>a)", "is not understood"},
    {"(*UTF)a", "is not understood"},
    {"x(?i)a", "is not understood"},
    {"\\<a", "write \\b"},
    {"\\xg1", "\\x is not understood"},
    {"a\\", "is not understood"},
    {"a^b", "^ is not at the begin"},
    {"a$b", "$ is not at the end"},
};

Test(regex, refuses)
{
    char deep[100];
    struct shk_error err = {""};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        err.text[0] = '\0';
        cr_expect_eq(shk_regex_check(refused[i].pattern, &err), -EINVAL, "%s", refused[i].pattern);
        cr_expect(strstr(err.text, refused[i].why), "%s: %s", refused[i].pattern, err.text);
    }
    memset(deep, '(', 40);
    memset(deep + 40, ')', 40);
    deep[80] = '\0';
    cr_expect_eq(shk_regex_check(deep, &err), -EINVAL);
    cr_expect(strstr(err.text, "32 groups"), "%s", err.text);
    char *large = calloc(1, 600);
    memset(large, 'a', 513);
    cr_expect_eq(shk_regex_check(large, &err), -EINVAL);
    cr_expect(strstr(err.text, "512 bytes"), "%s", err.text);
    free(large);
}

struct ends {
    size_t to[64], count;
};

static int on_end(void *arg, size_t to)
{
    struct ends *ends = arg;
    ends->to[ends->count++] = to;
    return ends->count == 64;
}

static const struct {
    const char *pattern, *text;
    size_t to[6]; /* ends in 0 */
} ends_of[] = {
    {"WARN ", "WARN WARN x", {5, 10}},
    {"W (a*)", "W aaa", {2, 3, 4, 5}},
    {"a{1,3}", "aaaa", {1, 2, 3, 4}},
    {"(kernel: )(\\[x\\] )?", "kernel: [x] y", {8, 12}},
    {"b", "aaaa", {0}},
    {"^a|b$", "a b", {1, 3}},
};

Test(regex, tells_every_end)
{
    struct shk_regex_work *work = shk_regex_work_create();
    for (size_t i = 0; i < sizeof ends_of / sizeof *ends_of; i++) {
        struct shk_regex *regex = NULL;
        struct shk_error err = {""};
        struct ends ends = {.count = 0};
        cr_assert_eq(shk_regex_create(&regex, ends_of[i].pattern, &err), 0, "%s", err.text);
        cr_assert_eq(
            shk_regex_ends(regex, work, ends_of[i].text, strlen(ends_of[i].text), on_end, &ends),
            0);
        size_t k = 0;
        for (; ends_of[i].to[k]; k++)
            cr_expect_eq(ends.to[k], ends_of[i].to[k], "%s: %zu", ends_of[i].pattern, ends.to[k]);
        cr_expect_eq(ends.count, k, "%s: %zu", ends_of[i].pattern, ends.count);
        shk_regex_destroy(regex);
    }
    shk_regex_work_destroy(work);
}

Test(regex, more_ends_than_there_was_room_for)
{
    enum { LEN = 40 };
    struct shk_regex_work *work = shk_regex_work_create();
    struct shk_regex *regex = NULL;
    struct shk_error err = {""};
    struct ends ends = {.count = 0};
    char text[LEN];
    memset(text, 'a', sizeof text);
    cr_assert_eq(shk_regex_create(&regex, "a(a*)", &err), 0, "%s", err.text);
    cr_assert_eq(shk_regex_ends(regex, work, text, LEN, on_end, &ends), 0);
    cr_expect_eq(ends.count, LEN);
    cr_expect_eq(ends.to[LEN - 1], LEN);
    shk_regex_destroy(regex);
    shk_regex_work_destroy(work);
}

/* Where PCRE2 alone would take longer than anybody waits. */
static const struct {
    const char *pattern;
    int found;
} hostile[] = {
    {"(a+)+b", 0},
    {"(a|aa)+b", 0},
    {"((((((((((a+)+)+)+)+)+)+)+)+)+)+b", 0},
    {"(a|a)*(a|a)*(a|a)*[^c]b", 0},
    {"a.*a.*a.*a.*x?bb", 0},
    {"(.{1,200}){1,5}bb", 0},
    {"(a?){100}a{100}b", 0},
    {"(\\w+\\s?)*:b", 0},
    {"a{1,255}a{1,255}cb", 1},
    {"(a|c)*b", 1},
};

Test(regex, no_pattern_takes_long, .timeout = 120)
{
    enum { LEN = 8192, SECONDS_MAX = 15 };
    char *text = malloc(LEN);
    struct shk_regex_work *work = shk_regex_work_create();
    memset(text, 'a', LEN);
    memcpy(text + LEN - 3, ":cb", 3);
    for (size_t i = 0; i < 2 * sizeof hostile / sizeof *hostile; i++) {
        const char *pattern = hostile[i / 2].pattern;
        struct shk_regex *regex = NULL;
        struct shk_error err = {""};
        clock_t start = clock();
        text[LEN - 3] = strchr(pattern, ':') ? ':' : 'a';
        cr_assert_eq(shk_regex_check(pattern, &err), 0, "%s: %s", pattern, err.text);
        cr_assert_eq(shk_regex_create(&regex, pattern, &err), 0, "%s", err.text);
        if (i % 2)
            shk_regex_speed(regex);
        cr_expect_eq(shk_regex_find(regex, work, text, LEN), hostile[i / 2].found, "%s", pattern);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        cr_expect_lt(seconds, SECONDS_MAX, "%s: %.1f s", pattern, seconds);
        shk_regex_destroy(regex);
    }
    free(text);
    shk_regex_work_destroy(work);
}

Test(regex, the_last_group)
{
    struct shk_regex_work *work = shk_regex_work_create();
    struct shk_regex *regex = NULL;
    struct shk_error err = {""};
    size_t start = 0, end = 0;
    const char *text = "count=\"12\" x count=\"3\"";
    cr_assert_eq(shk_regex_create(&regex, "(a|count)=\"([^\"]*)\"", &err), 0, "%s", err.text);
    cr_expect_eq(shk_regex_groups(regex), 2);
    cr_assert_eq(shk_regex_last_group(regex, work, text, strlen(text), 0, &start, &end), 1);
    cr_expect(start == 7 && end == 9, "%zu %zu", start, end);
    cr_assert_eq(shk_regex_last_group(regex, work, text, strlen(text), end, &start, &end), 1);
    cr_expect(start == 20 && end == 21, "%zu %zu", start, end);
    cr_expect_eq(shk_regex_last_group(regex, work, text, strlen(text), end, &start, &end), 0);
    shk_regex_destroy(regex);
    cr_assert_eq(shk_regex_create(&regex, "a(b)?", &err), 0);
    cr_expect_eq(shk_regex_last_group(regex, work, "a", 1, 0, &start, &end), 0);
    shk_regex_destroy(regex);
    shk_regex_work_destroy(work);
}
