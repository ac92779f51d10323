/* What health checks of other tools came to, from what they print: `dcgmi diag -j`, ibdiagnet,
 * cxi_healthcheck, rvs, and files of node_exporter's textfile collector. Read, and not repeated. */
#ifndef SHK_PROBES_RESULTS_H
#define SHK_PROBES_RESULTS_H

#include <jansson.h>
#include <stddef.h>

/* More entries than a node's tools print; beyond, what is bad takes the place of what passed. */
enum { SHK_RESULTS_MOST = 512 };

/* Appends to list what the text holds: {id, tool, test, where: text or null, result: "pass",
 * "warn", "fail" or "skip", text: text or null}; id is unique in the list. `text` is ended by a
 * NUL, of any bytes. Returns how many were appended; 0: it is no output of these tools. */
size_t shk_results_read(json_t *list, const char *text, size_t len);

#endif
