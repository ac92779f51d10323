/* Collectives of the HTML report: what ran, plots of time and bandwidth, the table. */
#ifndef SHK_REPORTS_HTML_RUNS_H
#define SHK_REPORTS_HTML_RUNS_H

#include "core/text/strbuf.h"
#include "reports/model/model.h"

void shk_html_runs(struct shk_strbuf *out, const struct shk_model *model);

#endif
