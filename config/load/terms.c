/* Terms of `when:`: one language for conflicts and rules. */
#include "config/config.h"
#include "config/schema/schema.h"
#include "config/schema/valid.h"

#define TERM_TEXT(name) SHK_AT(struct shk_term, name), .kind = SHK_FIELD_TEXT

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
     .doc = "a setting of the catalogue, with one test; values are compared as its grammar reads "
            "them (`1` is `on`, `0x10` is `16`)"},
    {.key = "fact",
     TERM_TEXT(fact),
     .check = shk_valid_fact,
     .doc = "a fact, with one test; of one that is known to be absent the value is empty"},
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
     SHK_AT(struct shk_term, every),
     .kind = SHK_FIELD_BOOL,
     .doc = "`member`: the test holds for every element, and there is one"},
    {.key = "capture", TERM_TEXT(capture), .doc = "`log`: named group that the test looks at"},
    {.key = "is",
     SHK_AT(struct shk_term, is),
     .kind = SHK_FIELD_TEXTS,
     .doc = "the value is one of these"},
    {.key = "is-not",
     SHK_AT(struct shk_term, is_not),
     .kind = SHK_FIELD_TEXTS,
     .doc = "there is a value, and it is none of these"},
    {.key = "matches",
     TERM_TEXT(matches),
     .check = shk_valid_regex,
     .doc = "the value matches this regular expression"},
    {.key = "matches-not",
     TERM_TEXT(matches_not),
     .check = shk_valid_regex,
     .doc = "there is a value, and it does not match"},
    {.key = "lacks",
     TERM_TEXT(lacks),
     .check = shk_valid_regex,
     .doc = "not set or absent, or the value does not match (with `member`: there are elements, "
            "and none does)"},
    {.key = "differs-from",
     TERM_TEXT(differs_from),
     .check = shk_valid_setting,
     .refers = true,
     .section = SHK_SECTION_SETTINGS,
     .doc = "`setting`: both are set, and to different values"},
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
     SHK_AT(struct shk_term, set),
     .kind = SHK_FIELD_BOOL,
     .doc = "`setting`: set to anything"},
    {.key = "unset",
     SHK_AT(struct shk_term, unset),
     .kind = SHK_FIELD_BOOL,
     .doc =
         "`setting`: known not to be set; where that is not known, a rule is a guess (possible)"},
    {.key = "present",
     SHK_AT(struct shk_term, present),
     .kind = SHK_FIELD_BOOL,
     .doc = "`fact`: has a value"},
    {.key = "absent",
     SHK_AT(struct shk_term, absent),
     .kind = SHK_FIELD_BOOL,
     .doc = "`fact`: looked for, and there is none"},
    {.key = "lines",
     SHK_AT(struct shk_term, lines),
     .kind = SHK_FIELD_INT,
     .min = 2,
     .max = 1000000,
     .doc = "`log`: seen on at least so many lines"},
    {.key = "at-most",
     SHK_AT(struct shk_term, at_most),
     .kind = SHK_FIELD_INT,
     .min = 1,
     .max = 1000000,
     .doc = "`log`: seen, on no more than so many lines"},
    {.key = "fewer-than",
     SHK_AT(struct shk_term, fewer_than),
     .kind = SHK_FIELD_TEXT,
     .doc = "`log`: seen, on fewer lines than the number that this fact has"},
};

static const char *misplaced(const struct shk_term *t)
{
    if ((t->set || t->unset || t->differs_from) && !t->setting)
        return "`set`, `unset` and `differs-from` are for a setting";
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
    const struct shk_term *t = row;
    int subjects = (t->log != NULL) + (t->no_log != NULL) + (t->setting != NULL) +
                   (t->fact != NULL) + (t->differs != NULL);
    int tests = (t->is != NULL) + (t->is_not != NULL) + (t->matches != NULL) +
                (t->matches_not != NULL) + (t->lacks != NULL) + (t->differs_from != NULL) +
                (t->in != NULL) + (t->not_in != NULL) + (t->same_as != NULL) + t->set + t->unset +
                t->present + t->absent;
    const char *wrong = misplaced(t);
    if (subjects != 1)
        return shk_fill_error(fill, node, "log",
                              "needs exactly one of log, no-log, setting, fact, differs");
    if (wrong)
        return shk_fill_error(fill, node, "when", "%s", wrong);
    if (tests != ((t->setting || t->fact || t->capture) ? 1 : 0))
        return shk_fill_error(
            fill, node, "matches",
            "setting, fact and capture need exactly one test (is, is-not, matches, matches-not, "
            "lacks, in, not-in, set, unset, present, absent, differs-from, same-as); a plain log, "
            "no-log or differs none");
    return 0;
}

const struct shk_record shk_record_term = {
    .what = "term",
    .type = "struct shk_term",
    .size = sizeof(struct shk_term),
    SHK_FIELDS(term_fields),
    .check = term_check,
    .apart = true,
};
