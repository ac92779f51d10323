/* The catalogue in the making: tables of rows, filled layer by layer. Shared by config.c and the
 * build tool that embeds the YAML files. */
#ifndef SHK_CONFIG_LOAD_H
#define SHK_CONFIG_LOAD_H

#include "config/config.h"
#include "config/load/index.h"
#include "config/schema/schema.h"

/* The built-in rows are borrowed until a row is added: then all of them are copied. */
struct shk_table {
    char *rows;                  /* count × record size */
    const unsigned short *order; /* of borrowed rows, by their names; NULL: rows are owned */
    unsigned *layers;            /* NULL: all are of layer 0 */
    size_t count, cap;
    struct shk_index index; /* of owned rows */
};

struct shk_config {
    struct shk_arena arena; /* all texts and arrays that rows point to */
    struct shk_table tables[SHK_SECTION_COUNT];
    struct shk_refs refs; /* of rows from files, until shk_config_finish() has checked them */
    unsigned layer;       /* rows of one layer must not have the same name */
    struct shk_profile *profiles; /* tables[SHK_SECTION_PROFILES] resolved */
};

struct shk_section_desc {
    const char *folder;
    const struct shk_record *record;
    bool single; /* a file holds one row, not a list of rows */
};

extern const struct shk_section_desc shk_sections[SHK_SECTION_COUNT];

/* Section of a folder's name (`messages` holds signatures, too); -EINVAL when there is none. */
int shk_section_find(const char *folder, enum shk_section *section_p);

struct shk_config *shk_config_create(void);

/* The row of that name in a table of such records. */
bool shk_table_find(const struct shk_table *table, const struct shk_record *record,
                    const char *name, size_t *row_p);
unsigned shk_table_layer(const struct shk_table *table, size_t row);
/* The numbers of the rows in the order of their names, in `order` (table->count of them). 0 or
 * -ENOMEM. */
int shk_table_order(const struct shk_table *table, const struct shk_record *record,
                    unsigned short *order) SHK_MUST_CHECK;

/* Each adds to the current layer: YAML text, a file, the sub-folders of a folder (-ENOENT when it
 * has none of them and need_any is set). */
int shk_config_add_buffer(struct shk_config *config, enum shk_section section, const char *name,
                          const void *data, size_t size, struct shk_error *err) SHK_MUST_CHECK;
int shk_config_add_file(struct shk_config *config, enum shk_section section, const char *path,
                        struct shk_error *err) SHK_MUST_CHECK;
int shk_config_add_dir(struct shk_config *config, const char *dir, bool need_any,
                       struct shk_error *err) SHK_MUST_CHECK;

/* Checks that every name that a row refers to exists, and resolves the profiles. */
int shk_config_finish(struct shk_config *config, struct shk_error *err) SHK_MUST_CHECK;

/* Reads a regular file of at most SHK_YAML_MAX_BYTES: new memory in *data_p (free()). */
int shk_config_read(const char *path, char **data_p, size_t *size_p,
                    struct shk_error *err) SHK_MUST_CHECK;

/* A table that shares nothing but texts with the original. */
int shk_table_copy(const struct shk_table *table, const struct shk_record *record,
                   struct shk_table *copy) SHK_MUST_CHECK;
void shk_table_free(struct shk_table *table);

#endif
