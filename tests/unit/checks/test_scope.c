#include "support.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct scope_case {
    const char *id, *diagnosis;
    enum shk_scope given, settled;
} cases[] = {
    /* of the diagnosis */
    {"nic.link", "cxi-link-down", SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    {"limits.memlock", "memlock-too-low", SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    {"container.kind", "gpu-device-not-in-container", SHK_SCOPE_UNSET, SHK_SCOPE_LAUNCH},
    {"collective.allreduce", "duplicate-gpu", SHK_SCOPE_UNSET, SHK_SCOPE_LAUNCH},
    /* also for a check whose own findings are of the launch */
    {"env.value", "hostname-not-unique", SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    /* of the check */
    {"env.value", NULL, SHK_SCOPE_UNSET, SHK_SCOPE_LAUNCH},
    {"library.copies", NULL, SHK_SCOPE_UNSET, SHK_SCOPE_LAUNCH},
    {"gpu.nvlink", NULL, SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    {"nodes.agree", NULL, SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    {"job.missing", NULL, SHK_SCOPE_UNSET, SHK_SCOPE_NODE},
    /* of the row */
    {"nodes.agree", "provider-differs-across-nodes", SHK_SCOPE_LAUNCH, SHK_SCOPE_LAUNCH},
    {"nodes.agree", "socket-ifname-differs-across-nodes", SHK_SCOPE_NODE, SHK_SCOPE_NODE},
};

Test(scope, of_the_row_else_of_the_diagnosis_else_of_the_check)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    cr_assert_eq(shk_config_load(&config, "/nonexistent", NULL, &err), 0, "%s", err.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct scope_case *c = &cases[i];
        struct shk_findings *list = shk_findings_create();
        shk_findings_add(list, &(struct shk_finding_in){.id = c->id,
                                                        .family = "x",
                                                        .setting = "y",
                                                        .verdict = SHK_FAIL,
                                                        .evidence = SHK_EFFECT,
                                                        .diagnosis = c->diagnosis,
                                                        .scope = c->given});
        shk_scopes_settle(config, list);
        cr_expect_eq(shk_findings_at(list, 0)->scope, c->settled, "%s, %s", c->id,
                     c->diagnosis ? c->diagnosis : "no diagnosis");
        struct shk_diagnoses causes = {0};
        cr_assert_eq(shk_diagnose(config, list, NULL, 0, &causes, &err), 0, "%s", err.text);
        cr_assert_eq(causes.count, 1);
        cr_expect_eq(causes.rows[0].scope, c->settled, "cause of %s", c->id);
        shk_diagnoses_free(&causes);
        shk_findings_destroy(list);
    }
    shk_config_free(config);
}

/* What belongs to a setting or a container of the job is no reason to drain a node. */
Test(scope, every_diagnosis_that_only_users_mend_by_a_setting_is_of_the_launch)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    size_t n, launch = 0;
    cr_assert_eq(shk_config_load(&config, "/nonexistent", NULL, &err), 0, "%s", err.text);
    const struct shk_diagnosis *rows = shk_config_diagnoses(config, &n);
    for (size_t i = 0; i < n; i++) {
        bool of_launch = shk_scope_of(&rows[i]) == SHK_SCOPE_LAUNCH;
        launch += of_launch;
        if (strcmp(rows[i].who, "admin") == 0 && !strstr(rows[i].key, "subnets"))
            cr_expect_not(of_launch, "%s: only an admin can mend it", rows[i].place);
        if (strncmp(rows[i].key, "env-", 4) == 0 || strncmp(rows[i].key, "socket-ifname-", 14) == 0)
            cr_expect(of_launch, "%s: a setting of the job", rows[i].place);
    }
    cr_expect_gt(launch, 100);
    shk_config_free(config);
}

/* A limit that may be low explains nothing that was seen to happen. */
Test(scope, a_warning_does_not_go_before_a_rank_that_was_killed)
{
    struct shk_config *config = NULL;
    struct shk_error err = {""};
    struct shk_diagnoses causes = {0};
    struct shk_findings *list = shk_findings_create();
    cr_assert_eq(shk_config_load(&config, "/nonexistent", NULL, &err), 0, "%s", err.text);
    shk_findings_add(list, &(struct shk_finding_in){.id = "limits.nofile",
                                                    .family = "limits",
                                                    .setting = "RLIMIT_NOFILE",
                                                    .verdict = SHK_WARN,
                                                    .evidence = SHK_EFFECT,
                                                    .diagnosis = "nofile-too-low"});
    shk_findings_add(list, &(struct shk_finding_in){.id = "collective.allreduce",
                                                    .family = "collectives",
                                                    .setting = "all-reduce (fabric)",
                                                    .verdict = SHK_FAIL,
                                                    .evidence = SHK_TESTED,
                                                    .diagnosis = "rank-ended"});
    cr_assert_eq(shk_diagnose(config, list, NULL, 0, &causes, &err), 0, "%s", err.text);
    cr_assert_eq(causes.count, 2);
    cr_expect_str_eq(causes.rows[0].key, "rank-ended");
    shk_diagnoses_free(&causes);
    shk_findings_destroy(list);
    shk_config_free(config);
}
