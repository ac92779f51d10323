/* Parts of the JSON report that other commands print on their own. */
#ifndef SHK_REPORTS_JSON_PARTS_H
#define SHK_REPORTS_JSON_PARTS_H

#include "core/result/finding.h"

#define SHK_REPORT_SCHEMA "shakedown.report/2"

/* New reference to the "diagnoses" array of the report (each with "key"); NULL: out of memory. A
 * NULL list is an empty array. */
json_t *shk_json_diagnoses(const struct shk_diagnoses *list);

#endif
