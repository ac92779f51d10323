/* Words of the enumerations, and grammars in words. */
#include "support.h"

#include "config/load/names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each word in a YAML row, and back. */
static const struct shk_setting *load_setting(struct shk_config **config_p, const char *grammar,
                                              const char *kind, const char *severity)
{
    struct shk_error err = {""};
    char *yaml = shk_strf("- name: X\n  family: nccl\n  kind: %s\n"
                          "  readers: [{library: nccl, until: 1}]\n  grammar: {%s}\n"
                          "  effect: x\n  severity: %s\n  fix: x\n  source: x\n",
                          kind, grammar, severity);
    cr_assert_not_null(yaml);
    cr_assert_eq(load_alone(SHK_SECTION_SETTINGS, "x", yaml, strlen(yaml), config_p, &err), 0, "%s",
                 err.text);
    free(yaml);
    return shk_config_setting(*config_p, "X");
}

Test(names, value_types)
{
    for (unsigned type = 0; type < SHK_VALUE_COUNT; type++) {
        struct shk_config *config = NULL;
        char grammar[64];
        snprintf(grammar, sizeof grammar, "type: %s%s", shk_value_type_name(type),
                 type == SHK_VALUE_ENUM ? ", values: [a]" : "");
        cr_expect_eq(load_setting(&config, grammar, "current", "none")->grammar.type, type);
        shk_config_free(config);
    }
    cr_expect_str_eq(shk_value_type_name(SHK_VALUE_COUNT), "unknown");
    cr_expect_str_eq(shk_value_type_name((enum shk_value_type) - 1), "unknown");
}

Test(names, kinds_severities_verification)
{
    struct shk_config *config = NULL;
    for (unsigned i = 0; i <= SHK_SETTING_FOLKLORE; i++) {
        cr_expect_eq(load_setting(&config, "type: bool", shk_setting_kind_name(i), "none")->kind,
                     i);
        shk_config_free(config);
    }
    for (unsigned i = 0; i <= SHK_SEV_FATAL; i++) {
        cr_expect_eq(load_setting(&config, "type: bool", "current", shk_severity_name(i))->severity,
                     i);
        shk_config_free(config);
    }
    for (unsigned i = 0; i <= SHK_INT_DECIMAL; i++) {
        static const char *const parsers[] = {"strtol0", "nccl", "decimal"};
        char grammar[64];
        snprintf(grammar, sizeof grammar, "type: int, parser: %s", parsers[i]);
        cr_expect_eq(load_setting(&config, grammar, "current", "none")->grammar.int_parser, i);
        shk_config_free(config);
    }
    cr_expect_str_eq(shk_setting_kind_name(SHK_SETTING_FOLKLORE + 1), "unknown");
    cr_expect_str_eq(shk_severity_name(SHK_SEV_FATAL + 1), "unknown");
    cr_expect_str_eq(shk_strength_name(SHK_REQUIRED + 1), "unknown");
}

Test(names, strengths)
{
    for (unsigned i = 0; i <= SHK_REQUIRED; i++) {
        struct shk_config *config = shk_config_create();
        struct shk_error err = {""};
        char *yaml =
            shk_strf(PROFILE_ROW("a") "settings: [{name: X, strength: %s, why: x, source: x}]\n",
                     shk_strength_name(i));
        cr_assert_eq(shk_config_add_buffer(config, SHK_SECTION_SETTINGS, "s", SETTING_ROW("X"),
                                           strlen(SETTING_ROW("X")), &err),
                     0, "%s", err.text);
        cr_assert_eq(
            shk_config_add_buffer(config, SHK_SECTION_PROFILES, "p", yaml, strlen(yaml), &err), 0,
            "%s", err.text);
        cr_assert_eq(shk_config_finish(config, &err), 0, "%s", err.text);
        cr_expect_eq(shk_config_profile(config, "a")->settings[0].strength, i);
        shk_config_free(config);
        free(yaml);
    }
}
