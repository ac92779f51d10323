/* Helpers of the check tests: facts from JSON text, one run of all checks, rows by setting. */
#ifndef SHK_TESTS_CHECKS_SUPPORT_H
#define SHK_TESTS_CHECKS_SUPPORT_H

#include "checks/base/check.h"

/* The embedded catalogue; loaded once per test process. */
const struct shk_config *support_config(void);

/* The small catalogue of tests/unit/checks/catalogue laid over the embedded one. */
const struct shk_config *support_test_config(void);

/* `members` are the members of the facts object, as JSON with ' instead of ". Fails the test when
 * they do not parse. */
struct shk_facts *support_facts(const char *members);

/* Runs every check. Free with shk_findings_destroy(). */
struct shk_findings *support_run(const struct shk_config *config, const char *profile,
                                 const char *members);

/* The same with a profile that may be another one, for the reason `doubt`. */
struct shk_findings *support_run_in_doubt(const struct shk_config *config, const char *profile,
                                          const char *members, const char *doubt);

/* The row about `setting` (made by check `id` when not NULL); NULL when there is none. */
const struct shk_finding *support_find(const struct shk_findings *findings, const char *id,
                                       const char *setting);

/* Everything that a row says, in one text; free(). */
char *support_text(const struct shk_finding *finding);

/* What one check says of some facts. */
struct support_case {
    const char *name, *profile, *id, *setting, *facts;
    enum shk_verdict verdict; /* SHK_VERDICT_COUNT: no row at all */
    enum shk_evidence evidence;
    const char *says;
};

/* Expects of each case its row, with verdict, evidence and text. */
void support_cases(const struct support_case *cases, size_t count);

#endif
