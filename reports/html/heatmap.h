/* Node x setting map of the HTML report: nodes with the same verdicts share a row, settings that
 * pass everywhere are left out, so that a thousand healthy nodes are one line. */
#ifndef SHK_REPORTS_HEATMAP_H
#define SHK_REPORTS_HEATMAP_H

#include "core/text/strbuf.h"
#include "reports/model/model.h"

/* Appends the map; nothing for a single node. */
void shk_heatmap_html(struct shk_strbuf *out, const struct shk_model *model);

#endif
