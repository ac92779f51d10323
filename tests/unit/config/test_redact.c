/* Ordinary settings are no secrets: whatever the catalogue accepts, recommends or calls a default
 * goes through the gate as it is. */
#include "config/config.h"
#include "core/redact/redact.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(redact, .timeout = 300);

static size_t redact_looked;

static void redact_expect_plain(const char *name, const char *value)
{
    const char *why = "";
    if (!value)
        return;
    redact_looked++;
    cr_expect_not(shk_redact_value(name, value, &why), "%s=%s: %s", name, value, why);
    char *line = NULL;
    cr_assert_gt(asprintf(&line, "%s=%s", name, value), 0);
    char *out = shk_redact(line);
    cr_expect_str_eq(out, line, "%s", out);
    free(out);
    free(line);
}

static void redact_expect_text(const char *place, const char *text)
{
    char *out = shk_redact(text ? text : "");
    cr_expect_str_eq(out, text ? text : "", "%s: %s", place, out);
    free(out);
}

Test(redact, the_catalogue_passes)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t n;
    cr_assert_eq(shk_config_load(&config, NULL, NULL, &err), 0, "%s", err.text);
    const struct shk_setting *settings = shk_config_settings(config, &n);
    for (size_t i = 0; i < n; i++) {
        const struct shk_setting *s = &settings[i];
        redact_expect_plain(s->name, s->default_value);
        for (const char *const *v = s->grammar.values; v && *v; v++)
            redact_expect_plain(s->name, *v);
        for (const char *const *v = s->grammar.wrong; v && *v; v++)
            redact_expect_plain(s->name, *v);
        redact_expect_text(s->place, s->effect);
        redact_expect_text(s->place, s->if_wrong);
        redact_expect_text(s->place, s->fix);
        redact_expect_text(s->place, s->advice);
        redact_expect_text(s->place, s->source);
    }
    const struct shk_profile *profiles = shk_config_profiles(config, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < profiles[i].settings_count; k++) {
            const struct shk_profile_setting *s = &profiles[i].settings[k];
            for (const char *const *v = s->accepted; v && *v; v++)
                redact_expect_plain(s->name, *v);
            redact_expect_text(profiles[i].place, s->why);
        }
    cr_expect_gt(redact_looked, 500);
    shk_config_free(config);
}
