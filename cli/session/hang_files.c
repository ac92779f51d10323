#include "cli/session/hang_files.h"
#include "core/text/strbuf.h"
#include "reports/hang/hang.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANG_FILE_MAX ((size_t)64 << 20)

int shk_hang_take(const char *text, size_t length, const char *name, json_t *nodes,
                  struct shk_error *err)
{
    json_error_t why;
    json_t *doc = json_loadb(text, length, 0, &why);
    if (!doc)
        return shk_error_set(err, EINVAL, "%s: no JSON: line %d: %s", name, why.line, why.text);
    const char *schema = json_string_value(json_object_get(doc, "schema"));
    json_t *add = json_object_get(doc, "nodes");
    int rc = 0;
    if (!schema || strcmp(schema, SHK_HANG_SCHEMA) != 0)
        rc = shk_error_set(err, EINVAL, "%s: schema is %s, not " SHK_HANG_SCHEMA, name,
                           schema ? schema : "not given");
    else if (!json_is_array(add) || !json_array_size(add))
        rc = shk_error_set(err, EINVAL, "%s: has no nodes", name);
    else if (json_array_extend(nodes, add))
        rc = shk_error_sys(err, ENOMEM, "%s", name);
    json_decref(doc);
    return rc;
}

int shk_hang_read(const char *path, char **text_p, size_t *length_p, struct shk_error *err)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char chunk[65536];
    size_t got;
    int rc = 0;
    if (!file)
        return shk_error_sys(err, errno, "%s", path);
    while (!rc && (got = fread(chunk, 1, sizeof chunk, file)) > 0) {
        shk_strbuf_add(&text, chunk, got);
        if (text.len > HANG_FILE_MAX)
            rc = shk_error_set(err, EFBIG, "%s: larger than %zu MiB", path, HANG_FILE_MAX >> 20);
    }
    if (!rc && ferror(file))
        rc = shk_error_sys(err, errno ? errno : EIO, "%s", path);
    if (file != stdin)
        fclose(file);
    *length_p = text.len;
    *text_p = rc ? NULL : shk_strbuf_take(&text);
    shk_strbuf_free(&text);
    return rc || *text_p ? rc : shk_error_sys(err, ENOMEM, "%s", path);
}

int shk_hang_load(const char *path, json_t *nodes, struct shk_error *err)
{
    char *text = NULL;
    size_t length = 0;
    int rc = shk_hang_read(path, &text, &length, err);
    rc = rc ? rc : shk_hang_take(text, length, path, nodes, err);
    free(text);
    return rc;
}
