/* The names that a probe of the environment writes down. */
#include "config/config.h"

#include "config/load/load.h"
#include "config/schema/valid.h"
#include "core/text/nameset.h"

#include <errno.h>
#include <string.h>

enum { NAMESET_NEAR = 8 }; /* letters of a name that one typing error does not make another word */

static int nameset_rows(const struct shk_config *config, struct shk_name_set *set)
{
    size_t count;
    int rc = 0;
    const struct shk_name *names = shk_config_names(config, &count);
    for (size_t i = 0; i < count && !rc; i++) {
        const struct shk_name_rule rule = {.name = names[i].name,
                                           .family = names[i].family,
                                           .prefix = names[i].prefix,
                                           .wraps = names[i].wraps,
                                           .near = names[i].near};
        if (names[i].captured)
            rc = shk_name_set_add(set, &rule);
    }
    return rc;
}

/* A name that no row of config/names covers. Typing errors count in those of a site's file. */
static int nameset_add(struct shk_name_set *set, const char *name, const char *family, bool site)
{
    static const char *const any[] = {"*", NULL};
    const struct shk_name_rule rule = {
        .name = name, .family = family, .near = site && strlen(name) >= NAMESET_NEAR ? any : NULL};
    struct shk_why why;
    if (shk_name_covered(set, name) || !shk_valid_variable(name, &why))
        return 0;
    return shk_name_set_add(set, &rule);
}

static int nameset_settings(const struct shk_config *config, struct shk_name_set *set)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_SETTINGS];
    size_t count;
    int rc = 0;
    const struct shk_setting *settings = shk_config_settings(config, &count);
    for (size_t i = 0; i < count && !rc; i++)
        if (settings[i].variable)
            rc = nameset_add(set, settings[i].name, settings[i].family,
                             shk_table_layer(table, i) > 0);
    return rc;
}

/* A fact that somebody wants to see: "env.CLUSTER". */
static int nameset_fact(struct shk_name_set *set, const char *fact)
{
    return fact && strncmp(fact, "env.", 4) == 0 ? nameset_add(set, fact + 4, "site", false) : 0;
}

static int nameset_facts(const struct shk_config *config, struct shk_name_set *set)
{
    size_t count, rules_count;
    int rc = 0;
    const struct shk_profile *profiles = shk_config_profiles(config, &count);
    const struct shk_rule *rules = shk_config_rules(config, &rules_count);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < profiles[i].signals_count && !rc; k++)
            rc = nameset_fact(set, profiles[i].signals[k].fact);
    for (size_t i = 0; i < rules_count; i++)
        for (size_t k = 0; k < rules[i].when_count && !rc; k++)
            rc = nameset_fact(set, rules[i].when[k].fact);
    return rc;
}

int shk_config_name_set(const struct shk_config *config, struct shk_name_set **set_p)
{
    struct shk_name_set *set = shk_name_set_create();
    int rc = set ? nameset_rows(config, set) : -ENOMEM;
    if (!rc)
        rc = nameset_settings(config, set);
    if (!rc)
        rc = nameset_facts(config, set);
    if (rc < 0) {
        shk_name_set_destroy(set);
        return rc;
    }
    *set_p = set;
    return 0;
}

bool shk_config_name_is_builtin(const struct shk_config *config, const char *name)
{
    const struct shk_table *rows = &config->tables[SHK_SECTION_NAMES];
    const struct shk_table *settings = &config->tables[SHK_SECTION_SETTINGS];
    size_t count, row;
    const struct shk_name *names = shk_config_names(config, &count);
    if (shk_table_find(settings, &shk_record_setting, name, &row) &&
        shk_table_layer(settings, row) == 0)
        return true;
    for (size_t i = 0; i < count; i++)
        if (names[i].captured && shk_table_layer(rows, i) == 0 &&
            (names[i].prefix ? strncmp(name, names[i].name, strlen(names[i].name)) == 0
                             : strcmp(name, names[i].name) == 0))
            return true;
    return false;
}
