#include "config/load/load.h"

#include "config/load/extends.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct shk_section_desc shk_sections[SHK_SECTION_COUNT] = {
    [SHK_SECTION_SETTINGS] = {.folder = "settings", .record = &shk_record_setting},
    [SHK_SECTION_PROFILES] = {.folder = "profiles", .record = &shk_record_profile, .single = true},
    [SHK_SECTION_DIAGNOSES] = {.folder = "diagnoses", .record = &shk_record_diagnosis},
    [SHK_SECTION_CONFLICTS] = {.folder = "conflicts", .record = &shk_record_conflict},
    [SHK_SECTION_DIFF] = {.folder = "diff", .record = &shk_record_diff},
    [SHK_SECTION_SIGNATURES] = {.folder = "signatures", .record = &shk_record_signature},
    [SHK_SECTION_RULES] = {.folder = "rules", .record = &shk_record_rule},
    [SHK_SECTION_NAMES] = {.folder = "names", .record = &shk_record_name},
    [SHK_SECTION_USES] = {.folder = "uses", .record = &shk_record_use},
    [SHK_SECTION_LAUNCHERS] = {.folder = "launchers", .record = &shk_record_launcher},
    [SHK_SECTION_FIXES] = {.folder = "fixes", .record = &shk_record_fix},
    [SHK_SECTION_CALLS] = {.folder = "calls", .record = &shk_record_waitcall},
    [SHK_SECTION_CODES] = {.folder = "codes", .record = &shk_record_code},
    [SHK_SECTION_DEFECTS] = {.folder = "defects", .record = &shk_record_defect},
    [SHK_SECTION_ERRORS] = {.folder = "errors", .record = &shk_record_errno},
    [SHK_SECTION_OBJECTS] = {.folder = "objects", .record = &shk_record_object},
};

int shk_section_find(const char *folder, enum shk_section *section_p)
{
    if (strcmp(folder, "messages") == 0) {
        *section_p = SHK_SECTION_SIGNATURES;
        return 0;
    }
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        if (strcmp(shk_sections[s].folder, folder) == 0) {
            *section_p = s;
            return 0;
        }
    return -EINVAL;
}

struct shk_config *shk_config_create(void)
{
    return calloc(1, sizeof(struct shk_config));
}

void shk_config_free(struct shk_config *config)
{
    if (!config)
        return;
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        shk_table_free(&config->tables[s]);
    shk_arena_free(&config->arena);
    free(config);
}

void shk_table_free(struct shk_table *table)
{
    if (!table->order)
        free(table->rows);
    free(table->layers);
    shk_index_free(&table->index);
    *table = (struct shk_table){0};
}

static int table_reserve(struct shk_table *table, const struct shk_record *record, size_t extra)
{
    size_t cap = table->cap ? table->cap : 64;
    while (cap < table->count + extra)
        cap *= 2;
    if (cap == table->cap)
        return 0;
    char *rows = reallocarray(table->rows, cap, record->size);
    if (!rows)
        return -ENOMEM;
    table->rows = rows;
    unsigned *layers = reallocarray(table->layers, cap, sizeof *layers);
    if (!layers)
        return -ENOMEM;
    table->layers = layers;
    table->cap = cap;
    return 0;
}

static char *table_row(const struct shk_table *table, const struct shk_record *record, size_t i)
{
    return table->rows + i * record->size;
}

static const char *row_text(const void *row, size_t offset)
{
    return *(const char *const *)(const void *)((const char *)row + offset);
}

bool shk_table_find(const struct shk_table *table, const struct shk_record *record,
                    const char *name, size_t *row_p)
{
    if (!table->order)
        return shk_index_find(&table->index, name, row_p);
    for (size_t low = 0, high = table->count; low < high;) {
        size_t middle = low + (high - low) / 2, row = table->order[middle];
        int side = strcmp(name, row_text(table_row(table, record, row), record->name_offset));
        if (side == 0) {
            *row_p = row;
            return true;
        }
        if (side < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

unsigned shk_table_layer(const struct shk_table *table, size_t row)
{
    return table->layers ? table->layers[row] : 0;
}

struct order_entry {
    const char *name;
    unsigned short row;
};

static int order_compare(const void *a, const void *b)
{
    return strcmp(((const struct order_entry *)a)->name, ((const struct order_entry *)b)->name);
}

int shk_table_order(const struct shk_table *table, const struct shk_record *record,
                    unsigned short *order)
{
    struct order_entry *entries = calloc(table->count + 1, sizeof *entries);
    if (!entries || table->count > USHRT_MAX) {
        free(entries);
        return -ENOMEM;
    }
    for (size_t i = 0; i < table->count; i++)
        entries[i] =
            (struct order_entry){.name = row_text(table_row(table, record, i), record->name_offset),
                                 .row = (unsigned short)i};
    qsort(entries, table->count, sizeof *entries, order_compare);
    for (size_t i = 0; i < table->count; i++)
        order[i] = entries[i].row;
    free(entries);
    return 0;
}

/* Copies borrowed rows. */
static int table_own(struct shk_table *table, const struct shk_record *record)
{
    struct shk_table own;
    if (!table->order)
        return 0;
    if (shk_table_copy(table, record, &own) < 0)
        return -ENOMEM;
    *table = own;
    return 0;
}

/* Adds a row, or puts it in the place of the one with the same name. */
static int table_put(struct shk_table *table, const struct shk_record *record, const void *row,
                     unsigned layer)
{
    const char *name = row_text(row, record->name_offset);
    size_t i;
    if (table_own(table, record) < 0)
        return -ENOMEM;
    if (!shk_table_find(table, record, name, &i)) {
        if (table_reserve(table, record, 1) < 0 ||
            shk_index_set(&table->index, name, table->count) < 0)
            return -ENOMEM;
        i = table->count++;
    }
    memcpy(table_row(table, record, i), row, record->size);
    table->layers[i] = layer;
    return 0;
}

int shk_table_copy(const struct shk_table *table, const struct shk_record *record,
                   struct shk_table *copy)
{
    struct shk_table next = {0};
    for (size_t i = 0; i < table->count; i++)
        if (table_put(&next, record, table_row(table, record, i), shk_table_layer(table, i)) < 0) {
            shk_table_free(&next);
            return -ENOMEM;
        }
    *copy = next;
    return 0;
}

/* Converts one mapping and adds it. scratch has record->size bytes. */
static int load_row(struct shk_config *config, enum shk_section section, const char *file,
                    const struct shk_yaml_node *node, void *scratch, struct shk_error *err)
{
    const struct shk_record *record = shk_sections[section].record;
    struct shk_table *table = &config->tables[section];
    const struct shk_fill fill = {
        .arena = &config->arena, .file = file, .refs = &config->refs, .err = err};
    int rc = shk_schema_fill(&fill, record, node, scratch);
    if (rc < 0)
        return rc;
    const char *name = row_text(scratch, record->name_offset);
    size_t i;
    if (shk_table_find(table, record, name, &i) && shk_table_layer(table, i) == config->layer)
        return shk_fill_error(&fill, node, record->fields[0].key, "%s \"%s\" is at %s already",
                              record->what, name,
                              row_text(table_row(table, record, i), record->place_offset));
    char *place = shk_arena_printf(&config->arena, "%s:%u", file, node->line);
    if (!place)
        return shk_error_set(err, ENOMEM, "out of memory");
    memcpy((char *)scratch + record->place_offset, &place, sizeof place);
    if (table_put(table, record, scratch, config->layer) < 0)
        return shk_error_set(err, ENOMEM, "out of memory");
    return 0;
}

static int load_rows(struct shk_config *config, enum shk_section section, const char *file,
                     const struct shk_yaml_node *root, struct shk_error *err)
{
    const struct shk_section_desc *desc = &shk_sections[section];
    if (!desc->single && root->kind != SHK_YAML_LIST)
        return shk_yaml_error(err, EINVAL, file, root->line, desc->folder,
                              "must be a list (\"- %s: ...\")", desc->record->fields[0].key);
    void *scratch = malloc(desc->record->size);
    if (!scratch)
        return shk_error_set(err, ENOMEM, "out of memory");
    int rc = 0;
    if (desc->single)
        rc = load_row(config, section, file, root, scratch, err);
    else
        for (const struct shk_yaml_node *item = root->first; !rc && item; item = item->next)
            rc = load_row(config, section, file, item, scratch, err);
    free(scratch);
    return rc;
}

int shk_config_add_buffer(struct shk_config *config, enum shk_section section, const char *name,
                          const void *data, size_t size, struct shk_error *err)
{
    struct shk_arena tree = {0};
    const struct shk_yaml_node *root;
    int rc;
    const char *file = shk_arena_text(&config->arena, name, strlen(name));
    if (!file)
        return shk_error_set(err, ENOMEM, "out of memory");
    rc = shk_yaml_parse(&tree, file, data, size, &root, err);
    if (!rc && root)
        rc = load_rows(config, section, file, root, err);
    shk_arena_free(&tree);
    return rc;
}

int shk_config_add_file(struct shk_config *config, enum shk_section section, const char *path,
                        struct shk_error *err)
{
    char *data = NULL;
    size_t size = 0;
    int rc = shk_config_read(path, &data, &size, err);
    if (!rc)
        rc = shk_config_add_buffer(config, section, path, data, size, err);
    free(data);
    return rc;
}

static int load_unknown_ref(const struct shk_config *config, const struct shk_ref *ref,
                            struct shk_error *err)
{
    const struct shk_record *record = shk_sections[ref->section].record;
    const struct shk_table *table = &config->tables[ref->section];
    char hint[SHK_HINT] = "", shown[SHK_EXCERPT + 4];
    const char **names = calloc(table->count + 1, sizeof *names);
    if (names) {
        for (size_t i = 0; i < table->count; i++)
            names[i] = row_text(table_row(table, record, i), record->name_offset);
        shk_hint(hint, ref->name, names, table->count);
    }
    free(names);
    return shk_yaml_error(err, EINVAL, ref->file, ref->line, ref->key, "unknown %s \"%s\"%s",
                          record->what, shk_excerpt(shown, ref->name), hint);
}

/* The pattern of a defect is looked for as if it were a signature. */
static int load_clash(const struct shk_config *config, struct shk_error *err)
{
    const struct shk_table *defects = &config->tables[SHK_SECTION_DEFECTS];
    const struct shk_record *record = shk_sections[SHK_SECTION_DEFECTS].record;
    for (size_t i = 0; i < defects->count; i++) {
        const void *row = table_row(defects, record, i);
        const char *name = row_text(row, record->name_offset);
        size_t other;
        if (shk_table_find(&config->tables[SHK_SECTION_SIGNATURES],
                           shk_sections[SHK_SECTION_SIGNATURES].record, name, &other))
            return shk_error_set(err, EINVAL, "%s: name: a signature is called \"%s\", too",
                                 row_text(row, record->place_offset), name);
    }
    return 0;
}

int shk_config_finish(struct shk_config *config, struct shk_error *err)
{
    const struct shk_table *profiles = &config->tables[SHK_SECTION_PROFILES];
    for (const struct shk_ref *ref = config->refs.first; ref; ref = ref->next) {
        size_t row;
        if (!shk_table_find(&config->tables[ref->section], shk_sections[ref->section].record,
                            ref->name, &row))
            return load_unknown_ref(config, ref, err);
    }
    if (load_clash(config, err) < 0)
        return -EINVAL;
    int rc = shk_profiles_resolve(&config->arena, profiles, &config->refs, &config->profiles, err);
    if (!rc)
        config->refs = (struct shk_refs){0};
    return rc;
}
