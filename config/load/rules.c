#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

static const struct shk_field term_fields[] = {
    {.key = "log",
     SHK_AT(struct shk_rule_term, log),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "a log shows this signature (with `capture`: and a captured value matches)"},
    {.key = "no-log",
     SHK_AT(struct shk_rule_term, no_log),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "there are logs, and none shows this signature"},
    {.key = "setting",
     SHK_AT(struct shk_rule_term, setting),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "a setting of the catalogue, with `matches`, `lacks`, `set` or `unset`"},
    {.key = "fact",
     SHK_AT(struct shk_rule_term, fact),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_fact,
     .doc = "a fact, with `matches` or `lacks`"},
    {.key = "capture",
     SHK_AT(struct shk_rule_term, capture),
     .kind = SHK_FIELD_TEXT,
     .doc = "`log`: named group that `matches` or `lacks` looks at"},
    {.key = "matches",
     SHK_AT(struct shk_rule_term, matches),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "is there, and the value matches this extended regular expression"},
    {.key = "lacks",
     SHK_AT(struct shk_rule_term, lacks),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_regex,
     .doc = "is known, and the value does not match"},
    {.key = "set",
     SHK_AT(struct shk_rule_term, set),
     .kind = SHK_FIELD_BOOL,
     .doc = "`setting`: set to anything"},
    {.key = "unset",
     SHK_AT(struct shk_rule_term, unset),
     .kind = SHK_FIELD_BOOL,
     .doc = "`setting`: known not to be set"},
    {.key = "lines",
     SHK_AT(struct shk_rule_term, lines),
     .kind = SHK_FIELD_INT,
     .min = 2,
     .max = 1000000,
     .doc = "`log`: seen on at least so many lines"},
};

static int term_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_rule_term *t = row;
    int subjects =
        (t->log != NULL) + (t->no_log != NULL) + (t->setting != NULL) + (t->fact != NULL);
    int tests = (t->matches != NULL) + (t->lacks != NULL) + t->set + t->unset;
    if (subjects != 1)
        return shk_fill_error(fill, node, "log", "needs exactly one of log, no-log, setting, fact");
    if ((t->set || t->unset) && !t->setting)
        return shk_fill_error(fill, node, t->set ? "set" : "unset", "is for a setting");
    if (t->capture && !t->log)
        return shk_fill_error(fill, node, "capture", "is for log");
    if (t->lines && !t->log)
        return shk_fill_error(fill, node, "lines", "is for log");
    if (tests != ((t->setting || t->fact || t->capture) ? 1 : 0))
        return shk_fill_error(fill, node, "matches",
                              "setting, fact and capture need exactly one of matches, lacks, set, "
                              "unset; a plain log or no-log none");
    return 0;
}

static const struct shk_record record_term = {
    .what = "term",
    .type = "struct shk_rule_term",
    .size = sizeof(struct shk_rule_term),
    SHK_FIELDS(term_fields),
    .check = term_check,
};

static const struct shk_field rule_fields[] = {
    {.key = "name",
     SHK_AT(struct shk_rule, name),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .doc = "name of the rule"},
    {.key = "when",
     SHK_AT(struct shk_rule, when),
     SHK_EXTRA(struct shk_rule, when_count),
     .kind = SHK_FIELD_RECORDS,
     .required = true,
     .record = &record_term,
     .doc = "all of these hold at once"},
    {.key = "condition",
     SHK_AT(struct shk_rule, condition),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_condition,
     .doc = "on what nodes, as in a profile; what cannot be decided does not hold"},
    {.key = "diagnosis",
     SHK_AT(struct shk_rule, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause that it speaks for, or against"},
    {.key = "weight",
     SHK_AT(struct shk_rule, weight),
     .kind = SHK_FIELD_INT,
     .required = true,
     .min = -100,
     .max = 100,
     .doc = "as of a signature; below zero: speaks against"},
    {.key = "why",
     SHK_AT(struct shk_rule, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "the mechanism, one sentence"},
    {.key = "source",
     SHK_AT(struct shk_rule, source),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "where the mechanism is documented"},
};

static int rule_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_rule *rule = row;
    if (!rule->weight)
        return shk_fill_error(fill, node, "weight", "zero says nothing");
    if (!rule->when_count)
        return shk_fill_error(fill, node, "when", "is empty: the rule would always hold");
    return 0;
}

const struct shk_record shk_record_rule = {
    .what = "rule",
    .type = "struct shk_rule",
    .size = sizeof(struct shk_rule),
    SHK_FIELDS(rule_fields),
    .check = rule_check,
    .name_offset = offsetof(struct shk_rule, name),
    .place_offset = offsetof(struct shk_rule, place),
};
