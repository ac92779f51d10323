/* `shakedown hang`: what was seen and judged, for a terminal, a ticket or a program. */
#ifndef SHK_REPORTS_HANG_H
#define SHK_REPORTS_HANG_H

#include "reports/report.h"

#include <jansson.h>

#define SHK_HANG_SCHEMA "shakedown.hang/1"

struct shk_hang_report {
    const char *version;     /* of shakedown */
    const char *command;     /* as typed */
    const char *time;        /* RFC 3339 in UTC */
    const json_t *nodes;     /* array (probes/hang/hang.h) */
    const json_t *judgement; /* of them (checks/hang/hang.h) */
};

/* term, md, json, html, junit, prom, github, gitlab, and "line": the headline alone; the last one.
 */
const struct shk_form *shk_hang_forms(size_t *count_p);

/* Writes the report; secrets and, if asked for, names are taken out before. Returns 0 or a negative
 * errno. */
int shk_hang_report(const struct shk_hang_report *report, const struct shk_form *form,
                    const struct shk_report_options *options, FILE *out);

#endif
