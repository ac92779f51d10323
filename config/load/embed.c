/* Build tool: checks the YAML files of the catalogue and writes them as C tables.
 *
 *   shk_config_embed OUT.c ROOT FILE...
 *       FILE is relative to ROOT, in a folder named like its section.
 *   shk_config_embed --markdown
 *       Prints the tables of docs/config.md. */
#include "config/load/load.h"
#include "core/text/strbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Name of the folder that the file is in. */
static int embed_section(const char *file, enum shk_section *section_p, struct shk_error *err)
{
    const char *base = strrchr(file, '/'), *start = base;
    while (start && start > file && start[-1] != '/')
        start--;
    char *folder = base ? strndup(start, (size_t)(base - start)) : NULL;
    int rc = folder ? shk_section_find(folder, section_p) : -EINVAL;
    free(folder);
    return rc < 0 ? shk_error_set(err, EINVAL, "%s: not in a folder of the catalogue", file) : 0;
}

static int embed_add(struct shk_config *config, const char *root, const char *file,
                     struct shk_error *err)
{
    enum shk_section section;
    char *path = shk_strf("%s/%s", root, file), *data = NULL;
    size_t size = 0;
    int rc = path ? embed_section(file, &section, err) : -ENOMEM;
    if (!rc)
        rc = shk_config_read(path, &data, &size, err);
    if (!rc)
        rc = shk_config_add_buffer(config, section, file, data, size, err);
    free(data);
    free(path);
    return rc;
}

/* The order of the rows by their names, for the search. */
static void embed_order(struct shk_strbuf *out, const struct shk_table *table, enum shk_section s)
{
    unsigned short *order = calloc(table->count + 1, sizeof *order);
    if (!order || shk_table_order(table, shk_sections[s].record, order) < 0)
        out->failed = true;
    shk_strbuf_printf(out, "static const unsigned short %s_order[] = {", shk_sections[s].folder);
    for (size_t i = 0; order && i < table->count; i++)
        shk_strbuf_printf(out, "%s%u,", i % 16 ? " " : "\n    ", order[i]);
    shk_strbuf_puts(out, "\n};\n");
    free(order);
}

static void embed_emit(struct shk_strbuf *out, const struct shk_config *config)
{
    shk_strbuf_puts(out, "/* Generated from config/, do not edit. */\n"
                         "#include \"config/load/builtin.h\"\n"
                         "#include \"config/codes.h\"\n"
                         "#include \"config/defects.h\"\n"
                         "#include \"core/job/launch.h\"\n"
                         "#include \"core/text/errnos.h\"\n"
                         "#include \"core/text/uses.h\"\n\n");
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        shk_schema_emit(out, shk_sections[s].record, config->tables[s].rows,
                        config->tables[s].count, shk_sections[s].folder);
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        if (config->tables[s].count)
            embed_order(out, &config->tables[s], s);
    shk_strbuf_puts(out, "\nconst struct shk_builtin shk_builtin[SHK_SECTION_COUNT] = {\n");
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        if (config->tables[s].count)
            shk_strbuf_printf(out, "    [%d] = {.rows = %s, .count = %zu, .order = %s_order},\n",
                              (int)s, shk_sections[s].folder, config->tables[s].count,
                              shk_sections[s].folder);
    shk_strbuf_puts(out, "};\n");
}

static int embed_write(const char *path, const struct shk_strbuf *text, struct shk_error *err)
{
    if (text->failed)
        return shk_error_set(err, ENOMEM, "out of memory");
    FILE *file = fopen(path, "w");
    if (!file)
        return shk_error_sys(err, errno, "%s: cannot be written", path);
    bool bad = fwrite(text->data, 1, text->len, file) != text->len;
    if (fclose(file) != 0 || bad)
        return shk_error_sys(err, errno, "%s: cannot be written", path);
    return 0;
}

static int embed_files(const char *output, const char *root, char **files, struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_config *config = shk_config_create();
    int rc = config ? 0 : shk_error_set(err, ENOMEM, "out of memory");
    for (; !rc && *files; files++)
        rc = embed_add(config, root, *files, err);
    if (!rc)
        rc = shk_config_finish(config, err);
    if (!rc) {
        embed_emit(&text, config);
        rc = embed_write(output, &text, err);
    }
    shk_strbuf_free(&text);
    shk_config_free(config);
    return rc;
}

static void embed_markdown(void)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    for (enum shk_section s = 0; s < SHK_SECTION_COUNT; s++)
        shk_schema_markdown(&text, shk_sections[s].record);
    shk_schema_markdown(&text, &shk_record_term);
    fputs(shk_strbuf_text(&text), stdout);
    shk_strbuf_free(&text);
}

int main(int argc, char **argv)
{
    struct shk_error err = {""};
    if (argc == 2 && strcmp(argv[1], "--markdown") == 0) {
        embed_markdown();
        return 0;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: %s OUT.c ROOT FILE...\n", argv[0]);
        return 2;
    }
    if (embed_files(argv[1], argv[2], argv + 3, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    return 0;
}
