#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

static const char *const conflict_verdicts[] = {"note", "warn", "fail"};

static const struct shk_field conflict_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_conflict, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "for `explain`"},
    {.key = "when",
     SHK_AT(struct shk_conflict, when),
     SHK_EXTRA(struct shk_conflict, when_count),
     .kind = SHK_FIELD_RECORDS,
     .required = true,
     .record = &shk_record_term,
     .doc =
         "terms, see [above](#when-something-holds), about settings and facts: all hold at once"},
    {.key = "condition",
     SHK_AT(struct shk_conflict, condition),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_condition,
     .doc = "on what nodes it is a conflict; absent: everywhere"},
    {.key = "verdict",
     SHK_AT(struct shk_conflict, verdict),
     .kind = SHK_FIELD_WORD,
     .required = true,
     SHK_NAMES(conflict_verdicts),
     .doc = "how bad it is; `note`: odd, but it costs nothing"},
    {.key = "why",
     SHK_AT(struct shk_conflict, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "the consequence, one sentence"},
    {.key = "fix",
     SHK_AT(struct shk_conflict, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one shell line that fixes it, ready to run"},
    {.key = "advice",
     SHK_AT(struct shk_conflict, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "what to do, in words; required when there is no fix"},
    {.key = "diagnosis",
     SHK_AT(struct shk_conflict, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause that it points to"},
    {.key = "source",
     SHK_AT(struct shk_conflict, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where this is documented"},
};

static int conflict_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                          const void *row)
{
    const struct shk_conflict *conflict = row;
    for (size_t i = 0; i < conflict->when_count; i++)
        if (conflict->when[i].log || conflict->when[i].no_log || conflict->when[i].differs)
            return shk_fill_error(fill, node, "when",
                                  "log, no-log and differs are for rules: a conflict is about one "
                                  "node, with or without logs");
    if (conflict->when_count && !conflict->when[0].setting)
        return shk_fill_error(fill, node, "when", "the first term of a conflict is a setting");
    if (conflict->when_count < 2 && !conflict->condition)
        return shk_fill_error(fill, node, "when",
                              "a conflict takes two terms, or one and a condition");
    return conflict->fix || conflict->advice
               ? 0
               : shk_fill_error(fill, node, "fix", "or advice is needed");
}

const struct shk_record shk_record_conflict = {
    .what = "conflict",
    .type = "struct shk_conflict",
    .size = sizeof(struct shk_conflict),
    SHK_FIELDS(conflict_fields),
    .check = conflict_check,
    .name_offset = offsetof(struct shk_conflict, name),
    .place_offset = offsetof(struct shk_conflict, place),
};
