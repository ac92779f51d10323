#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#define TERM_TEXT(name) SHK_AT(struct shk_rule_term, name), .kind = SHK_FIELD_TEXT

static const struct shk_field term_fields[] = {
    {.key = "log",
     TERM_TEXT(log),
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "a log shows this signature (with `capture`: and a captured value fits)"},
    {.key = "no-log",
     TERM_TEXT(no_log),
     .refers = true,
     .section = SHK_SECTION_SIGNATURES,
     .doc = "there are logs, and none shows this signature"},
    {.key = "setting",
     TERM_TEXT(setting),
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc =
         "a setting of the catalogue, with `matches`, `lacks`, `set`, `unset`, `in` or `not-in`"},
    {.key = "fact",
     TERM_TEXT(fact),
     .check = shk_valid_fact,
     .doc = "a fact, with `matches`, `lacks`, `present`, `absent`, `in` or `not-in`"},
    {.key = "differs",
     TERM_TEXT(differs),
     .check = shk_valid_fact,
     .doc = "a fact (or `member` of it) that is known on several nodes and not the same on all; "
            "known to be absent is a value"},
    {.key = "member",
     TERM_TEXT(member),
     .doc = "`fact`, `differs`: path of a member in the value, arrays left out: `ports.state`; the "
            "test holds when it does for one element"},
    {.key = "every",
     SHK_AT(struct shk_rule_term, every),
     .kind = SHK_FIELD_BOOL,
     .doc = "`member`: the test holds for every element, and there is one"},
    {.key = "capture", TERM_TEXT(capture), .doc = "`log`: named group that the test looks at"},
    {.key = "matches",
     TERM_TEXT(matches),
     .check = shk_valid_regex,
     .doc = "is there, and the value matches this extended regular expression"},
    {.key = "lacks",
     TERM_TEXT(lacks),
     .check = shk_valid_regex,
     .doc = "is known, and the value does not match (with `member`: none does)"},
    {.key = "in",
     TERM_TEXT(in),
     .check = shk_valid_fact,
     .doc = "every name in the value (a list; `^`, `=` and `:port` left out) is a value of this "
            "fact's `in-member`; a setting without `=` may name the beginning only"},
    {.key = "not-in",
     TERM_TEXT(not_in),
     .check = shk_valid_fact,
     .doc = "the fact is known, and a name in the value is none of it; never holds for a list that "
            "excludes (`^`)"},
    {.key = "in-member", TERM_TEXT(in_member), .doc = "`in`, `not-in`: path as of `member`"},
    {.key = "same-as",
     TERM_TEXT(same_as),
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "`capture`: the captured name is one of those in the value of this setting"},
    {.key = "set",
     SHK_AT(struct shk_rule_term, set),
     .kind = SHK_FIELD_BOOL,
     .doc = "`setting`: set to anything"},
    {.key = "unset",
     SHK_AT(struct shk_rule_term, unset),
     .kind = SHK_FIELD_BOOL,
     .doc = "`setting`: known not to be set; where nobody knows, the rule is a guess (possible)"},
    {.key = "present",
     SHK_AT(struct shk_rule_term, present),
     .kind = SHK_FIELD_BOOL,
     .doc = "`fact`: has a value"},
    {.key = "absent",
     SHK_AT(struct shk_rule_term, absent),
     .kind = SHK_FIELD_BOOL,
     .doc = "`fact`: somebody looked, and there is none; what was not read does not count"},
    {.key = "lines",
     SHK_AT(struct shk_rule_term, lines),
     .kind = SHK_FIELD_INT,
     .min = 2,
     .max = 1000000,
     .doc = "`log`: seen on at least so many lines"},
    {.key = "at-most",
     SHK_AT(struct shk_rule_term, at_most),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 1000000,
     .doc = "`log`: seen, on no more than so many lines"},
    {.key = "fewer-than",
     SHK_AT(struct shk_rule_term, fewer_than),
     .kind = SHK_FIELD_TEXT,
     .doc = "`log`: seen, on fewer lines than the number that this fact has"},
};

static const char *misplaced(const struct shk_rule_term *t)
{
    if ((t->set || t->unset) && !t->setting)
        return "`set` and `unset` are for a setting";
    if ((t->present || t->absent) && !t->fact)
        return "`present` and `absent` are for a fact";
    if ((t->capture || t->lines || t->at_most || t->fewer_than) && !t->log)
        return "`capture`, `lines`, `at-most` and `fewer-than` are for log";
    if (t->same_as && !t->capture)
        return "`same-as` is for a capture";
    if (t->member && !t->fact && !t->differs)
        return "`member` is for fact and differs";
    if (t->every && (!t->member || t->differs))
        return "`every` is for a member of a fact";
    return t->in_member && !t->in && !t->not_in ? "`in-member` is for in and not-in" : NULL;
}

static int term_check(const struct shk_fill *fill, const struct shk_yaml_node *node,
                      const void *row)
{
    const struct shk_rule_term *t = row;
    int subjects = (t->log != NULL) + (t->no_log != NULL) + (t->setting != NULL) +
                   (t->fact != NULL) + (t->differs != NULL);
    int tests = (t->matches != NULL) + (t->lacks != NULL) + (t->in != NULL) + (t->not_in != NULL) +
                (t->same_as != NULL) + t->set + t->unset + t->present + t->absent;
    const char *wrong = misplaced(t);
    if (subjects != 1)
        return shk_fill_error(fill, node, "log",
                              "needs exactly one of log, no-log, setting, fact, differs");
    if (wrong)
        return shk_fill_error(fill, node, "when", "%s", wrong);
    if (tests != ((t->setting || t->fact || t->capture) ? 1 : 0))
        return shk_fill_error(
            fill, node, "matches",
            "setting, fact and capture need exactly one test; a plain log, no-log "
            "or differs none");
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
     .doc = "on what nodes, as in a profile; where it cannot be decided, the rule is a guess"},
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
