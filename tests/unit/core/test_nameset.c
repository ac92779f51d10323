#include "core/text/nameset.h"

#include <criterion/criterion.h>
#include <stdio.h>

static const char *const words[] = {"SWITCH", NULL};
static const char *const any[] = {"*", NULL};

static struct shk_name_set *made(void)
{
    static const struct shk_name_rule rules[] = {
        {.name = "AAAA_", .family = "a", .prefix = true, .near = words},
        {.name = "AAAA_BB_", .family = "b", .prefix = true},
        {.name = "WRAP_", .family = "w", .prefix = true, .wraps = true},
        {.name = "SITE_SCRATCH", .family = "site", .near = any},
        {.name = "AAAA_ALSO", .family = "a"},
    };
    struct shk_name_set *set = shk_name_set_create();
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        cr_assert_eq(shk_name_set_add(set, &rules[i]), 0);
    return set;
}

Test(nameset, classify)
{
    static const struct {
        const char *name, *family;
        enum shk_name_how how;
    } rows[] = {
        {"AAAA_X", "a", SHK_NAME_PREFIX},
        {"AAAA_BB_X", "b", SHK_NAME_PREFIX},
        {"aaaa_x", "a", SHK_NAME_NEAR},
        {"AAA_SWITCH_ON", "a", SHK_NAME_NEAR},
        {"AAAASWITCH", "a", SHK_NAME_NEAR},
        {"SITE_SCRATCH", "site", SHK_NAME_EXACT},
        {"SITE_SCRACH", "site", SHK_NAME_NEAR},
        {"WRAP_AAAA_X", "a", SHK_NAME_PREFIX},
        {"WRAP_SITE_SCRATCH", "site", SHK_NAME_EXACT},
        {"qX", "q", SHK_NAME_NEAR},
        {"Q", "q", SHK_NAME_PREFIX},
        {"MANY_0", "many", SHK_NAME_EXACT},
        {"MANY_399", "many", SHK_NAME_EXACT},
    };
    struct shk_name_set *set = made();
    char many[400][16];
    for (int i = 0; i < 400; i++) {
        snprintf(many[i], sizeof many[i], "MANY_%d", i);
        cr_assert_eq(
            shk_name_set_add(set, &(struct shk_name_rule){.name = many[i], .family = "many"}), 0);
    }
    cr_assert_eq(
        shk_name_set_add(set, &(struct shk_name_rule){.name = "Q", .family = "q", .prefix = true}),
        0);
    /* the first of two with the same name */
    cr_assert_eq(
        shk_name_set_add(set, &(struct shk_name_rule){.name = "MANY_0", .family = "again"}), 0);
    struct shk_name_match match;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert(shk_name_classify(set, rows[i].name, &match), "%s", rows[i].name);
        cr_expect_str_eq(match.family, rows[i].family, "%s", rows[i].name);
        cr_expect_eq(match.how, rows[i].how, "%s", rows[i].name);
    }
    cr_expect_not(shk_name_classify(set, "AAA_OTHER", &match));
    cr_expect_not(shk_name_classify(set, "WRAP_HOME", &match));
    cr_expect_not(shk_name_classify(set, "SITE_", &match));
    cr_expect_not(shk_name_classify(set, "", &match));
    shk_name_set_destroy(set);
    shk_name_set_destroy(NULL);
}

Test(nameset, record)
{
    struct shk_name_set *set = made();
    json_t *record = shk_name_set_json(set);
    char *text = json_dumps(record, JSON_COMPACT);
    cr_expect_str_eq(text, "{\"names\":[\"SITE_SCRATCH\"],\"prefixes\":[\"AAAA_\",\"AAAA_BB_\","
                           "\"WRAP_\"]}");
    cr_expect(shk_name_covered(set, "AAAA_X"));
    cr_expect_not(shk_name_covered(set, "aaaa_x"), "that is a typing error of one");
    cr_expect(shk_name_json_covers(record, "AAAA_X"));
    cr_expect(shk_name_json_covers(record, "SITE_SCRATCH"));
    cr_expect_not(shk_name_json_covers(record, "SITE_SCRATCH2"));
    cr_expect_not(shk_name_json_covers(record, "HOME"));
    json_t *odd = json_pack("{s:[i,s], s:s}", "prefixes", 1, "", "names", "x");
    cr_expect_not(shk_name_json_covers(odd, "HOME"));
    cr_expect_not(shk_name_json_covers(NULL, "HOME"));
    json_decref(odd);
    json_decref(record);
    free(text);
    shk_name_set_destroy(set);
}
