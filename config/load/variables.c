#include "config/load/names.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#include <string.h>

static const char *const name_unknown_names[] = {
    [SHK_NAME_IGNORED] = "ignored",
    [SHK_NAME_FOREIGN] = "foreign",
    [SHK_NAME_LOOSE] = "loose",
    [SHK_NAME_STRICT] = "strict",
};

static const struct shk_field name_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_name, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_variable,
     .doc = "environment variable, or with `prefix` the beginning of variable names"},
    {.key = "prefix",
     SHK_AT(struct shk_name, prefix),
     .kind = SHK_FIELD_BOOL,
     .doc = "all variables with this prefix; the longest matching prefix counts"},
    {.key = "wraps",
     SHK_AT(struct shk_name, wraps),
     .kind = SHK_FIELD_BOOL,
     .doc = "`prefix`: what follows is the name of a variable, and it counts as that one"},
    {.key = "captured",
     SHK_AT(struct shk_name, captured),
     .kind = SHK_FIELD_BOOL,
     .doc = "written down from the environment; default `true`"},
    {.key = "family",
     SHK_AT(struct shk_name, family),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "whose variables they are; group in the report for those not in the catalogue"},
    {.key = "near",
     SHK_AT(struct shk_name, near),
     .kind = SHK_FIELD_TEXTS,
     .doc = "typing errors are recognised: in a prefix when one of these words follows, in a name "
            "when the list is not empty; `*` is any"},
    {.key = "libraries",
     SHK_AT(struct shk_name, libraries),
     .kind = SHK_FIELD_TEXTS,
     .doc = "`prefix`: libraries to ask about a name that is not in the catalogue, as for the "
            "readers of a setting"},
    {.key = "unknown",
     SHK_AT(struct shk_name, unknown),
     .kind = SHK_FIELD_ENUM,
     SHK_NAMES(name_unknown_names),
     .doc =
         "`prefix`: a name that is not in the catalogue and that none of the libraries has is "
         "wrong (`strict`: all such variables are meant for them), or skipped (`loose`, `ignored`, "
         "`foreign`: variables of programs that are not judged; not checked for typing errors)"},
};

static bool name_is_library(const char *word)
{
    for (size_t i = 0; i < shk_library_names_count; i++)
        if (strcmp(shk_library_names[i], word) == 0)
            return true;
    return false;
}

static int name_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    static const char *const of_prefix[] = {"wraps", "libraries", "unknown"};
    const struct shk_name *name = row;
    char hint[SHK_HINT];
    for (size_t i = 0; i < SHK_COUNT(of_prefix); i++)
        if (!name->prefix && shk_yaml_get(node, of_prefix[i]))
            return shk_fill_error(fill, node, of_prefix[i], "is for a prefix");
    if (name->prefix && name->captured && strlen(name->name) < 3)
        return shk_fill_error(fill, node, "name", "too short for a prefix that is captured");
    for (const char *const *l = name->libraries; l && *l; l++)
        if (!name_is_library(*l))
            return shk_fill_error(fill, node, "libraries", "unknown library \"%.64s\"%s", *l,
                                  shk_hint(hint, *l, shk_library_names, shk_library_names_count));
    return 0;
}

static const struct shk_name name_defaults = {.captured = true};

const struct shk_record shk_record_name = {
    .what = "name",
    .type = "struct shk_name",
    .size = sizeof(struct shk_name),
    SHK_FIELDS(name_fields),
    .defaults = &name_defaults,
    .check = name_check,
    .name_offset = offsetof(struct shk_name, name),
    .place_offset = offsetof(struct shk_name, place),
};
