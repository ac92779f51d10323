/* What the rows of a report took: the time of the probes and collectives that their facts are of.
 */
#ifndef SHK_REPORTS_SPENT_H
#define SHK_REPORTS_SPENT_H

#include "reports/report.h"

struct shk_spent;

/* NULL: out of memory. The report is borrowed until shk_spent_end(). */
struct shk_spent *shk_spent_begin(const struct shk_report *report);

/* Seconds of the probes (probe.NAME.ms) and transports (collective.T.ms) that this row is the first
 * to rest on, of several nodes of the slowest. 0 for a row that only judges what an earlier one
 * counted, or facts without a time: each is counted once, so that the rows add up. */
double shk_spent_on(struct shk_spent *spent, const struct shk_finding *row);

void shk_spent_end(struct shk_spent *spent); /* NULL is fine */

#endif
