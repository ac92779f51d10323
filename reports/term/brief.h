/* The verdict and the causes in a few lines, for whoever starts a run that writes its report to
 * files. */
#ifndef SHK_REPORTS_BRIEF_H
#define SHK_REPORTS_BRIEF_H

#include "core/text/strbuf.h"
#include "reports/report.h"

/* Appends the head and the causes of the terminal report. Returns 0 or -ENOMEM. */
int shk_report_brief(const struct shk_report *report, const struct shk_report_options *options,
                     struct shk_strbuf *out) SHK_MUST_CHECK;

#endif
