/* Proof that each check can fail: for every check there are facts of a healthy node, which must
 * give no fail and no warn, the same facts with one thing broken, which must be found, and the same
 * facts with that thing unreadable, which must not pass. checks/selftest/ has the cases. */
#ifndef SHK_CHECKS_SELFTEST_H
#define SHK_CHECKS_SELFTEST_H

#include "checks/base/check.h"

/* Texts of checks/selftest/, ends with NULL. Each is an array of {check, what, setting?, profile?,
 * verdict, healthy: facts, broken: facts}: `broken` is laid over `healthy` (null takes a fact
 * away), `setting` names the row that must have `verdict`, else any row of the check may; without
 * `profile` it is "single-node". */
extern const char *const shk_selftest_cases[];

struct shk_selftest_row {
    const char *check, *what;
    bool ok;
    const char *problem; /* one line; NULL when ok */
};

/* Runs the cases of a JSON text with the settings and profiles of config and reports each to `row`.
 * Returns 0, -EINVAL when the text is not such an array (err names the case), -ENOMEM. */
int shk_selftest_checks(const struct shk_config *config, const char *json,
                        void (*row)(const struct shk_selftest_row *row, void *arg), void *arg,
                        struct shk_error *err) SHK_MUST_CHECK;

#endif
