#include "config/config.h"
#include "config/codes.h"
#include "config/defects.h"

#include "config/load/builtin.h"
#include "config/load/load.h"
#include "core/job/launch.h"
#include "core/text/errnos.h"
#include "core/text/uses.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The built-in rows, as the first layer. */
static int config_start(struct shk_config **config_p, struct shk_error *err)
{
    struct shk_config *config = shk_config_create();
    if (!config)
        return shk_error_set(err, ENOMEM, "out of memory");
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        config->tables[s] = (struct shk_table){.rows = (char *)(uintptr_t)shk_builtin[s].rows,
                                               .order = shk_builtin[s].order,
                                               .count = shk_builtin[s].count};
    *config_p = config;
    return 0;
}

/* /etc/shakedown need not exist; the folder of --config must, and hold something. */
static int config_add_layer(struct shk_config *config, const char *dir, bool required,
                            struct shk_error *err)
{
    if (!dir || (!required && access(dir, F_OK) < 0 && errno == ENOENT))
        return 0;
    config->layer++;
    return shk_config_add_dir(config, dir, required, err);
}

int shk_config_load(struct shk_config **config_p, const char *etc_dir, const char *config_dir,
                    struct shk_error *err)
{
    struct shk_config *config = NULL;
    int rc = config_start(&config, err);
    if (!rc)
        rc = config_add_layer(config, etc_dir, false, err);
    if (!rc)
        rc = config_add_layer(config, config_dir, true, err);
    if (!rc)
        rc = shk_config_finish(config, err);
    if (rc < 0) {
        shk_config_free(config);
        return rc;
    }
    *config_p = config;
    return 0;
}

int shk_config_load_buffer(struct shk_config **config_p, const char *folder, const char *name,
                           const void *data, size_t size, struct shk_error *err)
{
    struct shk_config *config = NULL;
    enum shk_section section;
    if (shk_section_find(folder, &section) < 0)
        return shk_error_set(err, EINVAL, "%s: no such part of the configuration", folder);
    int rc = config_start(&config, err);
    if (!rc) {
        config->layer++;
        rc = shk_config_add_buffer(config, section, name, data, size, err);
    }
    if (!rc)
        rc = shk_config_finish(config, err);
    if (rc < 0) {
        shk_config_free(config);
        return rc;
    }
    *config_p = config;
    return 0;
}

/* Adds the file as a layer of its own and finds its row. */
static int config_add_profile(struct shk_config *config, const char *path, size_t *row_p,
                              struct shk_error *err)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_PROFILES];
    config->layer++;
    int rc = shk_config_add_file(config, SHK_SECTION_PROFILES, path, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < table->count; i++)
        if (shk_table_layer(table, i) == config->layer) {
            *row_p = i;
            return shk_config_finish(config, err);
        }
    return shk_error_set(err, EINVAL, "%s: there is no profile in it", path);
}

int shk_config_load_profile(struct shk_config *config, const char *path,
                            const struct shk_profile **profile_p, struct shk_error *err)
{
    struct shk_table *table = &config->tables[SHK_SECTION_PROFILES];
    struct shk_table before;
    size_t row = 0;
    if (shk_table_copy(table, &shk_record_profile, &before) < 0)
        return shk_error_set(err, ENOMEM, "out of memory");
    int rc = config_add_profile(config, path, &row, err);
    if (rc < 0) {
        shk_table_free(table);
        *table = before;
        config->refs = (struct shk_refs){0};
        return rc;
    }
    shk_table_free(&before);
    *profile_p = &config->profiles[row];
    return 0;
}

const struct shk_setting *shk_config_settings(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_SETTINGS];
    *count_p = table->count;
    return (const struct shk_setting *)(const void *)table->rows;
}

const struct shk_profile *shk_config_profiles(const struct shk_config *config, size_t *count_p)
{
    *count_p = config->tables[SHK_SECTION_PROFILES].count;
    return config->profiles;
}

const struct shk_diagnosis *shk_config_diagnoses(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_DIAGNOSES];
    *count_p = table->count;
    return (const struct shk_diagnosis *)(const void *)table->rows;
}

const struct shk_conflict *shk_config_conflicts(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_CONFLICTS];
    *count_p = table->count;
    return (const struct shk_conflict *)(const void *)table->rows;
}

const struct shk_diff_rule *shk_config_diff(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_DIFF];
    *count_p = table->count;
    return (const struct shk_diff_rule *)(const void *)table->rows;
}

const struct shk_signature *shk_config_signatures(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_SIGNATURES];
    *count_p = table->count;
    return (const struct shk_signature *)(const void *)table->rows;
}

const struct shk_rule *shk_config_rules(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_RULES];
    *count_p = table->count;
    return (const struct shk_rule *)(const void *)table->rows;
}

const struct shk_name *shk_config_names(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_NAMES];
    *count_p = table->count;
    return (const struct shk_name *)(const void *)table->rows;
}

void shk_config_install(const struct shk_config *config)
{
    const struct shk_builtin *uses = &shk_builtin[SHK_SECTION_USES],
                             *launchers = &shk_builtin[SHK_SECTION_LAUNCHERS],
                             *errors = &shk_builtin[SHK_SECTION_ERRORS];
    const struct shk_table *tables = config ? config->tables : NULL;
    const void *use_rows = tables ? tables[SHK_SECTION_USES].rows : uses->rows;
    const void *launch_rows = tables ? tables[SHK_SECTION_LAUNCHERS].rows : launchers->rows;
    shk_uses_install(use_rows, tables ? tables[SHK_SECTION_USES].count : uses->count);
    shk_launch_install(launch_rows,
                       tables ? tables[SHK_SECTION_LAUNCHERS].count : launchers->count);
    shk_errnos_install(tables ? (const void *)tables[SHK_SECTION_ERRORS].rows : errors->rows,
                       tables ? tables[SHK_SECTION_ERRORS].count : errors->count);
}

const struct shk_fix *shk_config_fixes(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_FIXES];
    *count_p = table->count;
    return (const struct shk_fix *)(const void *)table->rows;
}

const struct shk_waitcall *shk_config_calls(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_CALLS];
    *count_p = table->count;
    return (const struct shk_waitcall *)(const void *)table->rows;
}

const struct shk_code *shk_config_codes(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_CODES];
    *count_p = table->count;
    return (const struct shk_code *)(const void *)table->rows;
}

const struct shk_defect *shk_config_defects(const struct shk_config *config, size_t *count_p)
{
    const struct shk_table *table = &config->tables[SHK_SECTION_DEFECTS];
    *count_p = table->count;
    return (const struct shk_defect *)(const void *)table->rows;
}

const struct shk_code *shk_config_code(const struct shk_config *config, const char *counter)
{
    size_t count;
    const struct shk_code *codes = shk_config_codes(config, &count);
    enum shk_code_kind kind = *counter == 'S' ? SHK_CODE_SXID : SHK_CODE_XID;
    const char *number = strchr(counter, ' ');
    for (size_t i = 0; number && i < count; i++)
        for (const char *const *n = codes[i].numbers; codes[i].kind == kind && n && *n; n++)
            if (strcmp(*n, number + 1) == 0)
                return &codes[i];
    return NULL;
}

static bool config_find(const struct shk_config *config, enum shk_section section, const char *name,
                        size_t *row_p)
{
    return name &&
           shk_table_find(&config->tables[section], shk_sections[section].record, name, row_p);
}

const struct shk_setting *shk_config_setting(const struct shk_config *config, const char *name)
{
    size_t row, count;
    return config_find(config, SHK_SECTION_SETTINGS, name, &row)
               ? &shk_config_settings(config, &count)[row]
               : NULL;
}

const struct shk_profile *shk_config_profile(const struct shk_config *config, const char *name)
{
    size_t row;
    return config_find(config, SHK_SECTION_PROFILES, name, &row) ? &config->profiles[row] : NULL;
}

const struct shk_diagnosis *shk_config_diagnosis(const struct shk_config *config, const char *key)
{
    size_t row, count;
    return config_find(config, SHK_SECTION_DIAGNOSES, key, &row)
               ? &shk_config_diagnoses(config, &count)[row]
               : NULL;
}

const struct shk_object *shk_config_object(const struct shk_config *config, const char *key)
{
    size_t row;
    const void *rows = config->tables[SHK_SECTION_OBJECTS].rows;
    return config_find(config, SHK_SECTION_OBJECTS, key, &row)
               ? &((const struct shk_object *)rows)[row]
               : NULL;
}

const struct shk_fix *shk_config_fix(const struct shk_config *config, const char *key)
{
    size_t row, count;
    return config_find(config, SHK_SECTION_FIXES, key, &row)
               ? &shk_config_fixes(config, &count)[row]
               : NULL;
}
