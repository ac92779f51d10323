/* Profiles that extend profiles. */
#include "support.h"

#include "config/load/extends.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct source {
    const char *file, *yaml;
};

/* A catalogue of settings A to D and these profiles. */
static int load_profiles(const struct source *sources, size_t count, struct shk_config **config_p,
                         struct shk_error *err)
{
    static const char settings[] =
        SETTING_ROW("A") SETTING_ROW("B") SETTING_ROW("C") SETTING_ROW("D");
    struct shk_config *config = shk_config_create();
    cr_assert_not_null(config);
    int rc = shk_config_add_buffer(config, SHK_SECTION_SETTINGS, "s.yaml", settings,
                                   sizeof settings - 1, err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = shk_config_add_buffer(config, SHK_SECTION_PROFILES, sources[i].file, sources[i].yaml,
                                   strlen(sources[i].yaml), err);
    if (!rc)
        rc = shk_config_finish(config, err);
    if (rc < 0)
        shk_config_free(config);
    else
        *config_p = config;
    return rc;
}

#define LINE(name_, why_) "- {name: " name_ ", why: " why_ ", source: x}\n"

Test(extends, merges)
{
    static const struct source sources[] = {
        {"leaf.yaml", PROFILE_ROW("leaf") "extends: middle\nsignals: [{fact: a.leaf}]\n"
                                          "settings:\n" LINE("B", "leaf") LINE("D", "leaf")},
        {"base.yaml",
         PROFILE_ROW(
             "base") "abstract: true\nproviders: [cxi]\nplugin: required\ngpu: amd\nnics: 4\n"
                     "signals: [{fact: a.base}]\n"
                     "settings:\n" LINE("A", "base") LINE(
                         "B", "base") "- {name: C, condition: nodes>1, why: base, source: x}\n"
                                      "- {name: C, condition: nodes=1, why: base, source: x}\n"},
        {"middle.yaml", PROFILE_ROW("middle") "extends: base\nplugin: recommended\nnics: 2\n"
                                              "settings:\n" LINE("C", "middle")},
        {"lone.yaml", PROFILE_ROW("lone")},
    };
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_assert_eq(load_profiles(sources, SHK_COUNT(sources), &config, &err), 0, "%s", err.text);
    const struct shk_profile *leaf = shk_config_profile(config, "leaf");
    static const char *const want[][2] = {
        {"A", "base"}, {"C", "middle"}, {"B", "leaf"}, {"D", "leaf"}};
    cr_assert_eq(leaf->settings_count, SHK_COUNT(want));
    for (size_t i = 0; i < SHK_COUNT(want); i++) {
        cr_expect_str_eq(leaf->settings[i].name, want[i][0]);
        cr_expect_str_eq(leaf->settings[i].why, want[i][1]);
        cr_expect_eq(leaf->settings[i].strength, SHK_RECOMMENDED);
    }
    cr_expect_eq(leaf->signals_count, 1);
    cr_expect_str_eq(leaf->signals[0].fact, "a.leaf");
    cr_expect_eq(leaf->signals[0].weight, 1);
    cr_expect_str_eq(leaf->providers[0], "cxi");
    cr_expect_str_eq(leaf->plugin, "recommended");
    cr_expect_str_eq(leaf->gpu, "amd");
    cr_expect_eq(leaf->nics, 2);
    cr_expect_not(leaf->abstract);
    cr_expect_str_eq(leaf->title, "A system");

    const struct shk_profile *base = shk_config_profile(config, "base");
    cr_expect(base->abstract);
    cr_expect_eq(base->settings_count, 4);
    cr_expect_eq(shk_config_profile(config, "middle")->settings_count, 3);

    const struct shk_profile *lone = shk_config_profile(config, "lone");
    cr_expect_str_eq(lone->plugin, "none");
    cr_expect_str_eq(lone->gpu, "any");
    cr_expect_null(lone->providers);
    cr_expect_eq(lone->settings_count, 0);
    shk_config_free(config);
}

Test(extends, refused)
{
    static const struct {
        const char *name;
        struct source sources[4];
        const char *message;
    } cases[] = {
        {"two",
         {{"a.yaml", PROFILE_ROW("a") "extends: b\n"},
          {"b.yaml", PROFILE_ROW("b") "\nextends: a\n"}},
         "a.yaml:4: extends: a cycle: a -> b -> a"},
        {"three, and one that leads there",
         {{"x.yaml", PROFILE_ROW("x") "extends: b\n"},
          {"a.yaml", PROFILE_ROW("a") "extends: c\n"},
          {"b.yaml", PROFILE_ROW("b") "extends: a\n"},
          {"c.yaml", PROFILE_ROW("c") "extends: b\n"}},
         "a.yaml:4: extends: a cycle: a -> c -> b -> a"},
        {"unknown",
         {{"a.yaml", PROFILE_ROW("lumi-g")}, {"b.yaml", PROFILE_ROW("b") "extends: lumi-c\n"}},
         "b.yaml:4: extends: unknown profile \"lumi-c\", did you mean \"lumi-g\"?"},
        {"twice",
         {{"a.yaml", PROFILE_ROW("a")}, {"b.yaml", PROFILE_ROW("a")}},
         "b.yaml:1: name: profile \"a\" is at a.yaml:1 already"},
        {"unknown setting",
         {{"a.yaml", PROFILE_ROW("a") "settings:\n" LINE("E", "x")}},
         "a.yaml:5: settings.name: unknown setting \"E\", did you mean \"A\"?"},
    };
    for (size_t i = 0; i < SHK_COUNT(cases); i++) {
        struct shk_config *config = NULL;
        struct shk_error err = {""};
        size_t count = 0;
        while (count < SHK_COUNT(cases[i].sources) && cases[i].sources[count].file)
            count++;
        cr_expect_eq(load_profiles(cases[i].sources, count, &config, &err), -EINVAL, "%s",
                     cases[i].name);
        cr_expect_str_eq(err.text, cases[i].message, "%s:\n  got  %s\n  want %s", cases[i].name,
                         err.text, cases[i].message);
    }
}

/* Nine bases are refused in whatever order they come, eight are not. */
static int load_chain(int length, bool reverse, struct shk_error *err)
{
    struct source sources[16];
    char names[16][32], yaml[16][160];
    for (int i = 0; i <= length; i++) {
        int id = reverse ? length - i : i;
        snprintf(names[i], sizeof names[i], "p%d.yaml", id);
        snprintf(yaml[i], sizeof yaml[i], PROFILE_ROW("p%d") "%s", id, "");
        if (id)
            snprintf(yaml[i], sizeof yaml[i], PROFILE_ROW("p%d") "extends: p%d\n", id, id - 1);
        sources[i] = (struct source){names[i], yaml[i]};
    }
    struct shk_config *config = NULL;
    int rc = load_profiles(sources, (size_t)length + 1, &config, err);
    if (!rc)
        shk_config_free(config);
    return rc;
}

Test(extends, long_chain)
{
    struct shk_error err = {""};
    cr_expect_eq(load_chain(SHK_PROFILE_MAX_EXTENDS, false, &err), 0, "%s", err.text);
    cr_expect_eq(load_chain(SHK_PROFILE_MAX_EXTENDS, true, &err), 0, "%s", err.text);
    for (int reverse = 0; reverse < 2; reverse++) {
        cr_expect_eq(load_chain(SHK_PROFILE_MAX_EXTENDS + 1, reverse, &err), -EINVAL);
        cr_expect_str_eq(err.text, "p9.yaml:4: extends: too many profiles extend each other");
    }
}

/* A cycle made by an overlay is reported in the overlay's file, not in the built-in row. */
Test(extends, cycle_through_built_in_rows)
{
    static const char yaml[] = PROFILE_ROW("cxi-common") "extends: lumi-g\n";
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_expect_eq(
        shk_config_load_buffer(&config, "profiles", "mine.yaml", yaml, sizeof yaml - 1, &err),
        -EINVAL);
    cr_expect_str_eq(err.text, "mine.yaml:4: extends: a cycle: cxi-common -> lumi-g -> cxi-common");
}

/* An overlay of a base reaches the built-in profiles that extend it. */
Test(extends, overlay_of_a_base)
{
    static const char yaml[] = PROFILE_ROW("cxi-common") "nics: 7\n";
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_assert_eq(
        shk_config_load_buffer(&config, "profiles", "mine.yaml", yaml, sizeof yaml - 1, &err), 0,
        "%s", err.text);
    cr_expect_eq(shk_config_profile(config, "generic-cxi")->nics, 7);
    shk_config_free(config);
}
