/* Whose fault a row is: the node's, or that of how the job was launched. */
#include "checks/base/check.h"

#include <string.h>

enum shk_scope shk_scope_of(const struct shk_diagnosis *diagnosis)
{
    const char *scope = diagnosis ? diagnosis->scope : NULL;
    return scope && strcmp(scope, "launch") == 0 ? SHK_SCOPE_LAUNCH : SHK_SCOPE_NODE;
}

static enum shk_scope scope_of_check(const char *id)
{
    size_t n;
    const struct shk_check *const *checks = shk_checks(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(checks[i]->id, id) == 0 && checks[i]->scope != SHK_SCOPE_UNSET)
            return checks[i]->scope;
    return SHK_SCOPE_NODE;
}

bool shk_check_of_job(const char *id)
{
    size_t n;
    const struct shk_check *const *checks = shk_checks(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(checks[i]->id, id) == 0)
            return checks[i]->of_job;
    return false;
}

void shk_scopes_settle(const struct shk_config *config, struct shk_findings *findings)
{
    for (size_t i = 0; i < shk_findings_count(findings); i++) {
        const struct shk_finding *f = shk_findings_at(findings, i);
        const struct shk_diagnosis *entry =
            f->diagnosis ? shk_config_diagnosis(config, f->diagnosis) : NULL;
        if (f->scope == SHK_SCOPE_UNSET)
            shk_findings_set_scope(findings, i,
                                   entry ? shk_scope_of(entry) : scope_of_check(f->id));
    }
}
