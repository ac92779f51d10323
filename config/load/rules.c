#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

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
     .record = &shk_record_term,
     .doc = "terms, see [above](#when-something-holds): all hold at once; what is not known "
            "is no evidence"},
    {.key = "condition",
     SHK_AT(struct shk_rule, condition),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_condition,
     .doc = "on what nodes; where it cannot be decided, the rule is a guess"},
    {.key = "stated",
     SHK_AT(struct shk_rule, stated),
     .kind = SHK_FIELD_BOOL,
     .doc =
         "only for facts that somebody states in a report, not for those of a probe, which looked "
         "at the whole node: there the checks know more"},
    {.key = "diagnosis",
     SHK_AT(struct shk_rule, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .check = shk_valid_key,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "the root cause that it is evidence for, or against"},
    {.key = "weight",
     SHK_AT(struct shk_rule, weight),
     .kind = SHK_FIELD_INT,
     .required = true,
     .min = -100,
     .max = 100,
     .doc = "as for a signature; negative: evidence against"},
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
    for (size_t i = 0; i < rule->when_count; i++)
        if (rule->when[i].setting && rule->when[i].lacks)
            return shk_fill_error(fill, node, "when",
                                  "`lacks` of a setting also holds when it is not set: use "
                                  "`matches-not`");
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
