/* Build tool: compiles the built-in log signatures and writes the database as a C table, so that
 * reading a log does not start with compiling.
 *
 *   shk_embed_logdb OUT.c */
#include "cli/logpatterns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void embed_data(FILE *out, const char *name, const char *data, size_t size)
{
    fprintf(out, "static const unsigned char %s[] = {", name);
    for (size_t i = 0; i < size; i++)
        fprintf(out, "%s%u,", i % 24 ? "" : "\n", (unsigned char)data[i]);
    fputs("\n};\n\n", out);
}

static int embed_write(const char *path, const struct shk_log_database *made)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return -1;
    fputs("/* Generated from config/signatures/, do not edit. */\n"
          "#include \"cli/logpatterns.h\"\n\n",
          out);
    embed_data(out, "data", made->data, made->size);
    embed_data(out, "wide", made->wide, made->wide_size);
    fprintf(
        out,
        "const struct shk_log_database shk_log_builtin = {\n    .patterns = UINT64_C(%" PRIu64
        "),\n    .data = (const char *)data,\n    .size = %zu,\n    .wide = (const char *)wide,\n"
        "    .wide_size = %zu,\n};\n",
        made->patterns, made->size, made->wide_size);
    return fclose(out);
}

int main(int argc, char **argv)
{
    struct shk_error err = {""};
    struct shk_config *config = NULL;
    struct shk_log_database made = {.data = NULL};
    size_t n = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s OUT.c\n", argv[0]);
        return 2;
    }
    int rc = shk_config_load(&config, NULL, NULL, &err);
    shk_config_install(NULL);
    struct shk_log_pattern *patterns = rc ? NULL : shk_log_patterns(config, &n);
    if (!rc && !patterns)
        rc = shk_error_set(&err, 12, "out of memory");
    if (!rc)
        rc = shk_logscan_compile(patterns, n, NULL, &made, &err);
    if (!rc && !made.wide)
        rc = shk_error_set(&err, 22, "a log pattern is of a form that logwide.c does not know");
    if (!rc && embed_write(argv[1], &made))
        rc = shk_error_set(&err, 5, "%s: cannot be written", argv[1]);
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    free((char *)made.data);
    free((char *)made.wide);
    free(patterns);
    shk_config_free(config);
    return rc ? 1 : 0;
}
