/* Words of the enumerations, and grammars in words. */
#include "support.h"

#include "config/load/names.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each word in a YAML row, and back. */
static const struct shk_setting *load_setting(struct shk_config **config_p, const char *grammar,
                                              const char *kind, const char *severity,
                                              const char *verify)
{
    struct shk_error err = {""};
    char *yaml = shk_strf("- name: X\n  family: nccl\n  kind: %s\n"
                          "  readers: [{library: nccl, until: 1}]\n  grammar: {%s}\n"
                          "  effect: x\n  severity: %s\n  verify: %s\n  fix: x\n  source: x\n",
                          kind, grammar, severity, verify);
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
        cr_expect_eq(load_setting(&config, grammar, "current", "none", "log")->grammar.type, type);
        shk_config_free(config);
    }
    cr_expect_str_eq(shk_value_type_name(SHK_VALUE_COUNT), "unknown");
    cr_expect_str_eq(shk_value_type_name((enum shk_value_type) - 1), "unknown");
}

Test(names, kinds_severities_verification)
{
    struct shk_config *config = NULL;
    for (unsigned i = 0; i <= SHK_SETTING_FOLKLORE; i++) {
        cr_expect_eq(
            load_setting(&config, "type: bool", shk_setting_kind_name(i), "none", "log")->kind, i);
        shk_config_free(config);
    }
    for (unsigned i = 0; i <= SHK_SEV_FATAL; i++) {
        cr_expect_eq(
            load_setting(&config, "type: bool", "current", shk_severity_name(i), "log")->severity,
            i);
        shk_config_free(config);
    }
    for (unsigned i = 0; i <= SHK_VERIFY_NOT; i++) {
        cr_expect_eq(
            load_setting(&config, "type: bool", "current", "none", shk_verify_name(i))->verify, i);
        shk_config_free(config);
    }
    for (unsigned i = 0; i <= SHK_INT_DECIMAL; i++) {
        char grammar[64];
        snprintf(grammar, sizeof grammar, "type: int, parser: %s", shk_int_parser_name(i));
        cr_expect_eq(load_setting(&config, grammar, "current", "none", "log")->grammar.int_parser,
                     i);
        shk_config_free(config);
    }
    cr_expect_str_eq(shk_setting_kind_name(SHK_SETTING_FOLKLORE + 1), "unknown");
    cr_expect_str_eq(shk_severity_name(SHK_SEV_FATAL + 1), "unknown");
    cr_expect_str_eq(shk_verify_name(SHK_VERIFY_NOT + 1), "unknown");
    cr_expect_str_eq(shk_int_parser_name(SHK_INT_DECIMAL + 1), "unknown");
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

Test(names, grammar_text)
{
    static const struct {
        const char *grammar, *text;
    } cases[] = {
        {"type: string", "any text"},
        {"type: string, wrong: [a]", "any text; wrong although it looks right: a"},
        {"type: bool", "0 or 1, off or on, false or true, no or yes"},
        {"type: flag", "any value: being set is what counts"},
        {"type: int, min: 0, max: 16", "whole number, 0 to 16"},
        {"type: int, min: -1", "whole number, at least -1"},
        {"type: int, max: 4, values: [auto]", "whole number, at most 4, or auto"},
        {"type: size", "size in bytes, suffix k, m or g allowed"},
        {"type: enum, values: [a, b], ignore-case: true", "one of a, b; upper or lower case"},
        {"type: list, values: [a, b], negation: true",
         "list separated by ',' of a, b; '^' in front excludes"},
        {"type: list, separator: \";\"", "list separated by ';'"},
        {"type: path, must-exist: true, directory: true", "path of a directory; must exist"},
        {"type: path", "path"},
        {"type: paths", "directories separated by ':'"},
        {"type: host-port", "host:port"},
        {"type: devices", "comma-separated device numbers, ranges or UUIDs"},
    };
    for (size_t i = 0; i < SHK_COUNT(cases); i++) {
        struct shk_config *config = NULL;
        const struct shk_setting *s =
            load_setting(&config, cases[i].grammar, "current", "none", "log");
        char *text = shk_grammar_text(&s->grammar);
        cr_expect_str_eq(text, cases[i].text, "%s: %s", cases[i].grammar, text);
        free(text);
        shk_config_free(config);
    }
}

Test(names, readers_text)
{
    static const struct shk_reader readers[] = {
        {.library = "nccl", .since = "2.8", .until = "2.27", .file = "src/debug.cc"},
        {.library = "rccl", .since = "2.9"},
        {.library = "torch", .until = "2.1"},
        {.library = "cuda"},
    };
    struct shk_setting setting = {.readers = readers, .readers_count = 4};
    char *text = shk_readers_text(&setting);
    cr_expect_str_eq(text,
                     "nccl 2.8 to 2.27 (src/debug.cc), rccl since 2.9, torch until 2.1, cuda");
    free(text);
    setting.readers_count = 0;
    text = shk_readers_text(&setting);
    cr_expect_str_eq(text, "no library");
    free(text);
}
