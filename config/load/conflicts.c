#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

static const char *const conflict_verdicts[] = {"note", "warn", "fail"};

static const struct shk_field term_fields[] = {
    {.key = "setting",
     SHK_AT(struct shk_conflict_term, setting),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "a setting of the catalogue; exactly one of the other keys says what about it"},
    {.key = "is",
     SHK_AT(struct shk_conflict_term, is),
     .kind = SHK_FIELD_TEXTS,
     .doc = "set to one of these values"},
    {.key = "is-not",
     SHK_AT(struct shk_conflict_term, is_not),
     .kind = SHK_FIELD_TEXTS,
     .doc = "set, but to none of these values"},
    {.key = "matches",
     SHK_AT(struct shk_conflict_term, matches),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "set to a value that matches this regular expression"},
    {.key = "lacks",
     SHK_AT(struct shk_conflict_term, lacks),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "not set, or set to a value that does not match this regular expression"},
    {.key = "differs-from",
     SHK_AT(struct shk_conflict_term, differs_from),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "both are set, and to different values"},
    {.key = "set",
     SHK_AT(struct shk_conflict_term, set),
     .kind = SHK_FIELD_BOOL,
     .doc = "set to anything"},
    {.key = "unset",
     SHK_AT(struct shk_conflict_term, unset),
     .kind = SHK_FIELD_BOOL,
     .doc = "not set"},
};

static int term_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_conflict_term *term = row;
    int given = (term->is != NULL) + (term->is_not != NULL) + (term->matches != NULL) +
                (term->lacks != NULL) + (term->differs_from != NULL) + term->set + term->unset;
    if (given != 1)
        return shk_fill_error(
            fill, node, "setting",
            "needs exactly one of is, is-not, matches, lacks, differs-from, set, unset");
    return 0;
}

static const struct shk_record record_term = {
    .what = "term",
    .type = "struct shk_conflict_term",
    .size = sizeof(struct shk_conflict_term),
    SHK_FIELDS(term_fields),
    .check = term_check,
};

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
     .record = &record_term,
     .doc = "all of these hold at once"},
    {.key = "condition",
     SHK_AT(struct shk_conflict, condition),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_condition,
     .doc = "on what nodes it is a conflict, as in a profile; absent: everywhere"},
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
     .doc = "what comes of it, one sentence"},
    {.key = "fix",
     SHK_AT(struct shk_conflict, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one line for a shell that mends it, without anything to fill in"},
    {.key = "advice",
     SHK_AT(struct shk_conflict, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "what to do, in words; needed without a fix"},
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
    if (conflict->when_count < 2 && !conflict->condition)
        return shk_fill_error(fill, node, "when",
                              "a conflict takes two settings, or one and a condition");
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
