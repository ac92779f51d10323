#include "core/facts/digest.h"
#include "core/regex/pattern.h"

#include <criterion/criterion.h>
#include <string.h>

/* Values of FNV-1a with 128 bits: draft-eastlake-fnv, and its reference program. */
Test(digest, known_values)
{
    static const struct {
        const char *text, *digest;
    } cases[] = {{"", "6c62272e07bb014262b821756295c58d"},
                 {"a", "d228cb696f1a8caf78912b704e4a8964"},
                 {"foobar", "343e1662793c64bf6f0d3597ba446f18"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[SHK_DIGEST_TEXT];
        struct shk_digest digest = shk_digest_of(cases[i].text, strlen(cases[i].text));
        shk_digest_text(&digest, text);
        cr_expect_str_eq(text, cases[i].digest, "%s", cases[i].text);
    }
}

Test(digest, pieces_are_the_whole)
{
    struct shk_digest_sum sum = SHK_DIGEST_SUM_INIT;
    struct shk_digest whole = shk_digest_of("foobar", 6);
    shk_digest_add(&sum, "foo", 3);
    shk_digest_add(&sum, "", 0);
    shk_digest_add(&sum, "bar", 3);
    struct shk_digest pieces = shk_digest_end(&sum);
    cr_expect(shk_digest_equal(&whole, &pieces));
}

Test(digest, mixing_knows_no_order_but_how_often)
{
    struct shk_digest_sum a = SHK_DIGEST_SUM_INIT, b = SHK_DIGEST_SUM_INIT, ab = {0}, ba = {0};
    shk_digest_add(&a, "a", 1);
    shk_digest_add(&b, "b", 1);
    shk_digest_mix(&ab, &a);
    shk_digest_mix(&ab, &b);
    shk_digest_mix(&ba, &b);
    shk_digest_mix(&ba, &a);
    struct shk_digest first = shk_digest_end(&ab), second = shk_digest_end(&ba);
    cr_expect(shk_digest_equal(&first, &second));
    shk_digest_mix(&ba, &a);
    second = shk_digest_end(&ba);
    cr_expect_not(shk_digest_equal(&first, &second));
}

Test(pattern, matches_anywhere_and_a_bad_one_never)
{
    cr_expect(shk_pattern_matches("^(a|b)[0-9]+$", "b12"));
    cr_expect(shk_pattern_matches("b1", "ab12"));
    cr_expect_not(shk_pattern_matches("^(a|b)[0-9]+$", "c12"));
    cr_expect_not(shk_pattern_matches("(", "("));
}
