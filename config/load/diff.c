#include "config/schema/schema.h"
#include "config/schema/valid.h"
#include "core/facts/factdiff.h"
#include "core/regex/regex.h"

static const char *const diff_classes[SHK_DIFF_CLASS_COUNT] = {
    [SHK_DIFF_TIME] = "time",       [SHK_DIFF_NODE] = "node",   [SHK_DIFF_JOB] = "job",
    [SHK_DIFF_DERIVED] = "derived", [SHK_DIFF_NOISE] = "noise", [SHK_DIFF_COMPARE] = "compare",
    [SHK_DIFF_AGREE] = "agree",
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
     .doc = "why a difference does not matter: changes with `time`, belongs to one `node` or "
            "`job`, is `derived` from other facts, is measurement `noise` (matters above "
            "`percent`). `compare`: it does matter; `agree`: nodes of one kind must agree here "
            "(other comparisons are unaffected)"},
    {.key = "percent",
     SHK_AT(struct shk_diff_rule, percent),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 99,
     .doc = "noise only: a difference up to this counts as equal"},
    {.key = "fails-jobs",
     SHK_AT(struct shk_diff_rule, fails_jobs),
     .kind = SHK_FIELD_BOOL,
     .doc = "with `differs: compare`: nodes of one job that differ here cannot work together"},
    {.key = "less-fails",
     SHK_AT(struct shk_diff_rule, less_fails),
     .kind = SHK_FIELD_BOOL,
     .doc = "agree only, of a number: jobs fail on a node that has less than most others"},
    {.key = "agree",
     SHK_AT(struct shk_diff_rule, agree),
     .kind = SHK_FIELD_BOOL,
     .doc = "noise only: nodes of one kind must agree within percent"},
    {.key = "job-wide",
     SHK_AT(struct shk_diff_rule, job_wide),
     .kind = SHK_FIELD_BOOL,
     .doc = "with `differs: job`: all nodes of one job have the same value"},
    {.key = "part",
     SHK_AT(struct shk_diff_rule, part),
     .check = shk_valid_regex,
     .kind = SHK_FIELD_TEXT,
     .doc = "regular expression on a line of a text: only what its last group matches may differ "
            "between nodes"},
    {.key = "diagnosis",
     SHK_AT(struct shk_diff_rule, diagnosis),
     .kind = SHK_FIELD_TEXT,
     .refers = true,
     .section = SHK_SECTION_DIAGNOSES,
     .doc = "with fails-jobs: the root cause that a difference points to"},
    {.key = "follows",
     SHK_AT(struct shk_diff_rule, follows),
     .kind = SHK_FIELD_TEXTS,
     .doc = "agree or fails-jobs: patterns of paths; a difference there, on the same nodes, "
            "explains one here"},
    {.key = "where",
     SHK_AT(struct shk_diff_rule, where),
     .kind = SHK_FIELD_TEXTS,
     .doc = "agree only, on the path of an array: members that must be true (`!name`: not true) "
            "for an element to count"},
    {.key = "fix",
     SHK_AT(struct shk_diff_rule, fix),
     .kind = SHK_FIELD_TEXT,
     .check = shk_valid_command,
     .doc = "one shell line that fixes it, ready to run"},
    {.key = "advice",
     SHK_AT(struct shk_diff_rule, advice),
     .kind = SHK_FIELD_LINES,
     .doc = "what to do, in words"},
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
    if (rule->job_wide && rule->differs != SHK_DIFF_JOB)
        return shk_fill_error(fill, node, "job-wide", "goes with differs: job only");
    if (rule->agree && rule->differs != SHK_DIFF_NOISE)
        return shk_fill_error(fill, node, "agree", "goes with differs: noise only");
    if (rule->differs != SHK_DIFF_AGREE && rule->where)
        return shk_fill_error(fill, node, "where", "goes with differs: agree only");
    if (rule->differs != SHK_DIFF_AGREE && !rule->fails_jobs && rule->follows)
        return shk_fill_error(fill, node, "follows", "goes with differs: agree or fails-jobs only");
    struct shk_regex *part = NULL;
    struct shk_error why = {""};
    if (!rule->part)
        return 0;
    if (shk_regex_create(&part, rule->part, &why))
        return shk_fill_error(fill, node, "part", "%s", why.text);
    size_t groups = shk_regex_groups(part);
    shk_regex_destroy(part);
    return groups ? 0 : shk_fill_error(fill, node, "part", "has no group: what differs goes in ()");
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
