/* What `shakedown history` and `shakedown fleet` print, drawn from one JSON object each. Every text
 * in it is foreign. */
#ifndef SHK_REPORTS_HISTORY_H
#define SHK_REPORTS_HISTORY_H

#include "core/text/strbuf.h"
#include "reports/report.h"

#include <jansson.h>

/* term, html, json. */
const struct shk_form *shk_history_forms(size_t *count_p);

/* Writes a document, by the schema in it shakedown.history/1 (of all nodes), shakedown.trend/1 (one
 * node) or shakedown.fleet/1; secrets and, if asked for, names are taken out before. Returns 0 or a
 * negative errno. */
int shk_history_report(const json_t *document, const struct shk_form *form,
                       const struct shk_report_options *how, FILE *out);

/* Its drawings. */
void shk_history_term(const json_t *document, const struct shk_report_options *how,
                      struct shk_strbuf *out);
void shk_history_html(const json_t *document, struct shk_strbuf *out);

/* Of rows: that all is as it was, or that nothing could be compared, and with how many values that
 * is so. */
void shk_history_quiet(struct shk_strbuf *out, const json_t *document);

/* One row in words: "fell little by little from 380 to 361 GB/s (-5.0 %) since 2026-10-02; …". */
void shk_history_sentence(struct shk_strbuf *out, const json_t *row);

/* The points of a trend in one line of `width` characters at most, and below it a '^' where
 * software changed. Without unicode with the characters of ASCII. */
void shk_sparkline(struct shk_strbuf *out, const json_t *trend, size_t width, bool unicode);

/* The same as a plot, with a line at each change. */
void shk_trend_svg(struct shk_strbuf *out, const json_t *trend);

/* Text of a member, "" when it has none. */
const char *shk_history_text(const json_t *object, const char *key);

/* The names of an array, folded: nid[001-004]. */
void shk_history_names(struct shk_strbuf *out, const json_t *names);

#endif
