/* The verdict and the causes in a few lines, for whoever starts a run that writes its report to
 * files. */
#ifndef SHK_REPORTS_BRIEF_H
#define SHK_REPORTS_BRIEF_H

#include "reports/report.h"

/* Calls say() with one line after the other, without newline. Returns 0 or -ENOMEM. */
int shk_report_brief(const struct shk_report *report, const struct shk_report_options *options,
                     void (*say)(const char *line, void *arg), void *arg);

#endif
