/* A report without secrets, and on request without names: a copy of the model, made before any
 * format renders it. */
#ifndef SHK_REPORTS_ANONYMIZE_H
#define SHK_REPORTS_ANONYMIZE_H

#include "reports/privacy/scrub.h"
#include "reports/report.h"

struct shk_scrubbed;

/* Copies the report with `what` (SHK_SCRUB_SECRETS and SHK_SCRUB_IDENTITY, or'ed) taken out of
 * every text: facts, findings, diagnoses, command line. Names are learnt from the facts first
 * (host.name, the launcher's variables, serial numbers, users), so that they are replaced
 * wherever they occur. What no fact tells, such as a project's name in a path, stays. */
int shk_report_scrub(struct shk_scrubbed **scrubbed_p, const struct shk_report *report,
                     unsigned what, struct shk_error *err) SHK_MUST_CHECK;

/* Lives as long as scrubbed; borrows nothing but static text. */
const struct shk_report *shk_scrubbed_report(const struct shk_scrubbed *scrubbed);
void shk_scrubbed_destroy(struct shk_scrubbed *scrubbed);

#endif
