/* Build tool: compiles the built-in log signatures and writes the database as a C table, so that
 * reading a log does not start with compiling.
 *
 *   shk_embed_logdb OUT.c */
#include "cli/logpatterns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int embed_write(const char *path, uint64_t digest, const char *data, size_t size)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return -1;
    fputs("/* Generated from config/signatures/, do not edit. */\n"
          "#include \"cli/logpatterns.h\"\n\n"
          "static const unsigned char data[] = {",
          out);
    for (size_t i = 0; i < size; i++)
        fprintf(out, "%s%u,", i % 24 ? "" : "\n", (unsigned char)data[i]);
    fprintf(out,
            "\n};\n\nconst struct shk_log_database shk_log_builtin = {\n    .patterns = "
            "UINT64_C(%" PRIu64 "),\n    .data = (const char *)data,\n    .size = %zu,\n};\n",
            digest, size);
    return fclose(out);
}

int main(int argc, char **argv)
{
    struct shk_error err = {""};
    struct shk_config *config = NULL;
    char *data = NULL;
    size_t n = 0, size = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s OUT.c\n", argv[0]);
        return 2;
    }
    int rc = shk_config_load(&config, NULL, NULL, &err);
    struct shk_log_pattern *patterns = rc ? NULL : shk_log_patterns(config, &n);
    if (!rc && !patterns)
        rc = shk_error_set(&err, 12, "out of memory");
    if (!rc)
        rc = shk_logscan_compile(patterns, n, &data, &size, &err);
    if (!rc && embed_write(argv[1], shk_logscan_digest(patterns, n), data, size))
        rc = shk_error_set(&err, 5, "%s: cannot be written", argv[1]);
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    free(data);
    free(patterns);
    shk_config_free(config);
    return rc ? 1 : 0;
}
