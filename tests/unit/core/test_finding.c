#include "core/result/finding.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void add(struct shk_findings *l, const char *family, const char *setting, enum shk_verdict v,
                enum shk_evidence e)
{
    shk_findings_add(
        l, &(struct shk_finding_in){
               .id = "t", .family = family, .setting = setting, .verdict = v, .evidence = e});
}

Test(finding, pass_without_looking_is_unknown)
{
    struct shk_findings *l = shk_findings_create();
    add(l, "f", "s", SHK_PASS, SHK_NOT_COVERED);
    cr_expect_eq(shk_findings_at(l, 0)->verdict, SHK_UNKNOWN);
    shk_findings_destroy(l);
}

Test(finding, sorts_families_as_seen_and_worst_first)
{
    struct shk_findings *l = shk_findings_create();
    add(l, "z", "b", SHK_PASS, SHK_TESTED);
    add(l, "a", "c", SHK_NA, SHK_NOT_COVERED);
    add(l, "z", "d", SHK_FAIL, SHK_TESTED);
    add(l, "z", "a", SHK_WARN, SHK_EFFECT);
    add(l, "a", "e", SHK_UNKNOWN, SHK_NOT_COVERED);
    shk_findings_sort(l);
    char order[16] = "";
    for (size_t i = 0; i < shk_findings_count(l); i++)
        strcat(order, shk_findings_at(l, i)->setting);
    cr_expect_str_eq(order, "dabec");
    struct shk_coverage c = shk_findings_coverage(l);
    cr_expect_eq(c.verdicts[SHK_FAIL], 1);
    cr_expect_eq(c.verdicts[SHK_NA], 1);
    cr_expect_eq(c.evidence[SHK_TESTED], 2);
    cr_expect_eq(c.evidence[SHK_NOT_COVERED], 1, "n/a rows are not counted");
    shk_findings_destroy(l);
}

Test(finding, control_characters_do_not_get_through)
{
    struct shk_findings *l = shk_findings_create();
    shk_findings_add(l, &(struct shk_finding_in){.id = "t",
                                                 .family = "f",
                                                 .setting = "s",
                                                 .verdict = SHK_FAIL,
                                                 .evidence = SHK_TESTED,
                                                 .observed = "a\x1b[31mb\nc\x7f"});
    cr_expect_str_eq(shk_findings_at(l, 0)->observed, "a?[31mb\nc?");
    shk_findings_destroy(l);
}

Test(finding, fold_joins_equal_rows_and_names_the_nodes)
{
    struct shk_findings *all = shk_findings_create();
    struct shk_findings_fold *fold = NULL;
    static const char *const nodes[] = {"n1", "n2", "n3"};
    for (int i = 0; i < 3; i++) {
        struct shk_findings *one = shk_findings_create();
        add(one, "f", "same", SHK_PASS, SHK_TESTED);
        add(one, "f", "odd", i == 1 ? SHK_FAIL : SHK_PASS, SHK_TESTED);
        cr_assert_eq(shk_findings_fold(all, &fold, one, nodes[i]), 0);
        shk_findings_destroy(one);
    }
    shk_findings_fold_free(fold);
    cr_assert_eq(shk_findings_count(all), 3);
    cr_expect_str_eq(shk_findings_at(all, 0)->nodes[2], "n3");
    cr_expect_eq(shk_findings_at(all, 2)->verdict, SHK_FAIL);
    cr_expect_str_eq(shk_findings_at(all, 2)->nodes[0], "n2");
    cr_expect_null(shk_findings_at(all, 2)->nodes[1]);
    shk_findings_destroy(all);
}

Test(finding, fold_keeps_the_nodes_that_a_row_names)
{
    const char *named[] = {"n2", "n3"};
    struct shk_findings *one = shk_findings_create(), *all = shk_findings_create();
    struct shk_findings_fold *fold = NULL;
    shk_findings_add(one, &(struct shk_finding_in){.id = "collective.allreduce",
                                                   .family = "collectives",
                                                   .setting = "all-reduce (fabric)",
                                                   .verdict = SHK_FAIL,
                                                   .evidence = SHK_TESTED,
                                                   .scope = SHK_SCOPE_LAUNCH});
    cr_assert_eq(shk_findings_set_nodes(one, 0, named, 2), 0);
    cr_assert_eq(shk_findings_fold(all, &fold, one, "n1"), 0);
    cr_assert_eq(shk_findings_fold(all, &fold, one, "n1"), 0);
    cr_assert_eq(shk_findings_count(all), 1);
    const struct shk_finding *f = shk_findings_at(all, 0);
    cr_expect_str_eq(f->nodes[0], "n2");
    cr_expect_str_eq(f->nodes[1], "n3");
    cr_expect_null(f->nodes[2]);
    cr_expect_eq(f->scope, SHK_SCOPE_LAUNCH);
    shk_findings_fold_free(fold);
    shk_findings_destroy(one);
    shk_findings_destroy(all);
}
