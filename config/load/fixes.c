#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

static const struct shk_field fix_fields[] = {
    {.key = "key",
     SHK_AT(struct shk_fix, key),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "name by which the checks ask for it"},
    {.key = "fix",
     SHK_AT(struct shk_fix, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one line for a shell; `{value}` is put in as one word, `{value*}` as several, "
            "`{value$}` with its $NAME left to the shell"},
    {.key = "advice",
     SHK_AT(struct shk_fix, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "the same in words, or what no single line can do"},
};

static int fix_check(const struct shk_fill *fill, const struct shk_yaml_node *node, const void *row)
{
    const struct shk_fix *fix = row;
    return fix->fix || fix->advice ? 0 : shk_fill_error(fill, node, "fix", "or advice is needed");
}

const struct shk_record shk_record_fix = {
    .what = "fix",
    .type = "struct shk_fix",
    .size = sizeof(struct shk_fix),
    SHK_FIELDS(fix_fields),
    .check = fix_check,
    .name_offset = offsetof(struct shk_fix, key),
    .place_offset = offsetof(struct shk_fix, place),
};
