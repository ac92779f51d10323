/* Escaping for the formats that have structure. Every function takes raw text of any origin, makes
 * invisible characters visible (reports/text/utf8.h) and appends text that cannot leave its place.
 */
#ifndef SHK_REPORTS_ESCAPE_H
#define SHK_REPORTS_ESCAPE_H

#include "core/text/strbuf.h"

/* HTML and XML: text and quoted attribute values. '\n' is kept. */
void shk_escape_html(struct shk_strbuf *out, const char *s);

/* Markdown (GitHub's dialect) prose, in a paragraph, list item or table cell: nothing is markup,
 * a mention, a reference or a formula any more. '\n' becomes <br>. */
void shk_escape_md(struct shk_strbuf *out, const char *s);

/* Markdown inline code on one line, usable in table cells. */
void shk_escape_md_code(struct shk_strbuf *out, const char *s);

/* Markdown fenced code block; the fence is longer than any run of backticks in the text. */
void shk_escape_md_block(struct shk_strbuf *out, const char *info, const char *s);

/* Prometheus text format: inside the quotes of a label value. */
void shk_escape_prom(struct shk_strbuf *out, const char *s);

#endif
