/* What lines are made of: errors of the system, and objects that they are about. */
#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/text/errnos.h"

static const struct shk_field error_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_errno, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "as in errno.h; in small letters: no error of errno.h, only words"},
    {.key = "number",
     SHK_AT(struct shk_errno, number),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 4095,
     .doc = "on Linux; a log has it as `errno 12`, `rc = -12`, `(12)` and the like"},
    {.key = "texts",
     SHK_AT(struct shk_errno, texts),
     .kind = SHK_FIELD_TEXTS,
     .doc = "what strerror() says, that of the GNU C library first; the first letter may be of "
            "either case"},
    {.key = "names",
     SHK_AT(struct shk_errno, names),
     .kind = SHK_FIELD_TEXTS,
     .check = shk_valid_variable,
     .doc = "other names of just this error, as classes of exceptions"},
    {.key = "words",
     SHK_AT(struct shk_errno, words),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "regular expression: what else says so where the line names an object"},
    {.key = "source",
     SHK_AT(struct shk_errno, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where the texts are from"},
};

static int error_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                       const void *row)
{
    const struct shk_errno *error = row;
    return error->texts || error->words
               ? 0
               : shk_fill_error(fill, node, "texts", "either this or words is needed");
}

const struct shk_record shk_record_errno = {
    .what = "system error",
    .type = "struct shk_errno",
    .size = sizeof(struct shk_errno),
    SHK_FIELDS(error_fields),
    .check = error_check,
    .name_offset = offsetof(struct shk_errno, name),
    .place_offset = offsetof(struct shk_errno, place),
};

static const struct shk_field object_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_object, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "names the row"},
    {.key = "pattern",
     SHK_AT(struct shk_object, pattern),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_log_pattern,
     .doc = "regular expression for the path, name, number or function by which a line names it"},
    {.key = "is",
     SHK_AT(struct shk_object, is),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "what it is, in words"},
    {.key = "general",
     SHK_AT(struct shk_object, general),
     .kind = SHK_FIELD_BOOL,
     .doc = "of many kinds, as any path: a signature with `yields` keeps its line"},
    {.key = "source",
     SHK_AT(struct shk_object, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where the path, name or number is documented"},
};

const struct shk_record shk_record_object = {
    .what = "named object",
    .type = "struct shk_object",
    .size = sizeof(struct shk_object),
    SHK_FIELDS(object_fields),
    .name_offset = offsetof(struct shk_object, key),
    .place_offset = offsetof(struct shk_object, place),
};
