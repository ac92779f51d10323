#include "config/schema.h"
#include "core/factdiff.h"

static const char *const diff_classes[SHK_DIFF_CLASS_COUNT] = {
    [SHK_DIFF_TIME] = "time",       [SHK_DIFF_NODE] = "node",   [SHK_DIFF_JOB] = "job",
    [SHK_DIFF_DERIVED] = "derived", [SHK_DIFF_NOISE] = "noise", [SHK_DIFF_COMPARE] = "compare",
};

static const struct shk_field diff_fields[] = {
    {.key = "path",
     SHK_AT(struct shk_diff_rule, path),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "shell pattern on the key of a fact and the members inside its value, array elements "
            "left out: net.ifaces.addrs"},
    {.key = "differs",
     SHK_AT(struct shk_diff_rule, differs),
     .kind = SHK_FIELD_ENUM,
     .required = true,
     SHK_NAMES(diff_classes),
     .doc = "why a difference means nothing: with time, between nodes, between jobs, repeats other "
            "facts, measured (counts above percent); compare: it does mean something"},
    {.key = "percent",
     SHK_AT(struct shk_diff_rule, percent),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 99,
     .doc = "noise only: how far off is still the same"},
    {.key = "fails-jobs",
     SHK_AT(struct shk_diff_rule, fails_jobs),
     .kind = SHK_FIELD_BOOL,
     .doc = "nodes of one job that differ here cannot work together, with differs: compare"},
    {.key = "why",
     SHK_AT(struct shk_diff_rule, why),
     .kind = SHK_FIELD_TEXT,
     .required = true,
     .doc = "one sentence"},
};

static int diff_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_diff_rule *rule = row;
    if ((rule->differs == SHK_DIFF_NOISE) != (rule->percent != 0))
        return shk_fill_error(fill, node, "percent", "goes with differs: noise, and only with it");
    return 0;
}

const struct shk_record shk_record_diff = {
    .what = "comparison rule",
    .type = "struct shk_diff_rule",
    .size = sizeof(struct shk_diff_rule),
    SHK_FIELDS(diff_fields),
    .check = diff_check,
    .name_offset = offsetof(struct shk_diff_rule, path),
    .place_offset = offsetof(struct shk_diff_rule, place),
};
