#include "fuzz.h"

#include "checks/base/check.h"

#include <stdlib.h>

void shk_fuzz_judge(struct shk_facts *facts)
{
    static struct shk_config *config;
    struct shk_error err = {""};
    char *why = NULL;
    if (!config && shk_config_load(&config, NULL, NULL, &err) != 0)
        abort();
    shk_facts_freeze(facts);
    struct shk_findings *findings = shk_findings_create();
    struct shk_check_context ctx = {
        .facts = facts, .config = config, .profile = shk_profile_detect(config, facts, &why, NULL)};
    if (shk_checks_run(&ctx, findings, &err) != 0)
        abort();
    shk_findings_destroy(findings);
    free(why);
}
