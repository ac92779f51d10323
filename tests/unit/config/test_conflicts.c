#include "support.h"

#include "config/load/load.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define ROW(name, when, rest)                                                                      \
    "- name: " name "\n  when: " when "\n" rest                                                    \
    "  verdict: warn\n  why: Because.\n  fix: unset it\n  source: x\n"
#define TWO "[{setting: NCCL_NET, is: [Socket]}, {setting: NCCL_DEBUG, set: true}]"

static const struct {
    const char *name, *yaml, *error;
} cases[] = {
    {"unknown setting",
     ROW("a", "[{setting: NCCL_NTE, set: true}, {setting: NCCL_NET, set: true}]", ""),
     "unknown setting \"NCCL_NTE\", did you mean"},
    {"no condition in a term",
     ROW("a", "[{setting: NCCL_NET}, {setting: NCCL_DEBUG, set: true}]", ""),
     "setting, fact and capture need exactly one test (is, is-not, "},
    {"two conditions in a term",
     ROW("a", "[{setting: NCCL_NET, set: true, is: [IB]}, {setting: NCCL_DEBUG, set: true}]", ""),
     "need exactly one test"},
    {"no subject in a term", ROW("a", "[{set: true}, {setting: NCCL_DEBUG, set: true}]", ""),
     "needs exactly one of log, no-log, setting, fact, differs"},
    {"a log", ROW("a", "[{setting: NCCL_NET, set: true}, {log: nccl-using-network-socket}]", ""),
     "when: log, no-log and differs are for rules"},
    {"no setting first",
     ROW("a", "[{fact: host.virt, is: [kvm]}, {setting: NCCL_NET, set: true}]", ""),
     "when: the first term of a conflict is a setting"},
    {"another setting's value in a fact",
     ROW("a", "[{setting: NCCL_NET, set: true}, {fact: host.virt, differs-from: NCCL_NET}]", ""),
     "`set`, `unset` and `differs-from` are for a setting"},
    {"bad expression",
     ROW("a", "[{setting: NCCL_NET, matches: \"(\"}, {setting: NCCL_DEBUG, set: true}]", ""),
     "matches: "},
    {"one term alone", ROW("a", "[{setting: NCCL_NET, set: true}]", ""),
     "when: a conflict takes two terms, or one and a condition"},
    {"unknown word in the condition",
     ROW("a", "[{setting: NCCL_NET, set: true}]", "  condition: \"ndoes>1\"\n"),
     "unknown name \"ndoes\" in a condition, did you mean \"nodes\"?"},
    {"unknown verdict",
     "- name: a\n  when: " TWO "\n  verdict: worn\n  why: x\n  fix: x\n  source: x\n", "verdict: "},
    {"twice", ROW("a", TWO, "") ROW("a", TWO, ""), "conflict \"a\" is at c.yaml:1 already"},
    {"no terms", "- name: a\n  verdict: warn\n  why: x\n  fix: x\n  source: x\n",
     "when: missing in this conflict"},
};

Test(conflicts, bad_rows)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct shk_config *config = NULL;
        struct shk_error err = {""};
        int rc = shk_config_load_buffer(&config, "conflicts", "c.yaml", cases[i].yaml,
                                        strlen(cases[i].yaml), &err);
        cr_expect_eq(rc, -EINVAL, "%s: %d", cases[i].name, rc);
        cr_expect(strncmp(err.text, "c.yaml:", 7) == 0 && strstr(err.text, cases[i].error),
                  "%s: %s", cases[i].name, err.text);
    }
}

/* What `lacks` said of a setting in rules is `matches-not` now. */
Test(conflicts, the_old_word_in_a_rule)
{
    static const char yaml[] = "- name: a\n  when: [{setting: NCCL_NET, lacks: x}]\n"
                               "  diagnosis: net-plugin-missing\n  weight: 50\n  why: x\n"
                               "  source: x\n";
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_expect_eq(shk_config_load_buffer(&config, "rules", "r.yaml", yaml, strlen(yaml), &err),
                 -EINVAL);
    cr_expect_str_eq(err.text, "r.yaml:2: when: `lacks` of a setting also holds when it is not "
                               "set: use `matches-not`");
}

Test(conflicts, a_good_row)
{
    static const char yaml[] = ROW("site-a", TWO, "  condition: \"nodes>1\"\n");
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t count;
    cr_assert_eq(shk_config_load_buffer(&config, "conflicts", "c.yaml", yaml, strlen(yaml), &err),
                 0, "%s", err.text);
    const struct shk_conflict *row = &shk_config_conflicts(config, &count)[0];
    for (size_t i = 0; i < count && strcmp(row->name, "site-a") != 0; i++)
        row++;
    cr_assert_str_eq(row->name, "site-a");
    cr_expect_eq(row->when_count, 2);
    cr_expect_str_eq(row->when[0].is[0], "Socket");
    cr_expect(row->when[1].set);
    cr_expect_str_eq(row->condition, "nodes>1");
    cr_expect_str_eq(row->verdict, "warn");
    cr_expect_str_eq(row->place, "c.yaml:1");
    shk_config_free(config);
}
