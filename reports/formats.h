/* The formats, for registry.c, and what their files share. */
#ifndef SHK_REPORTS_FORMATS_H
#define SHK_REPORTS_FORMATS_H

#include "core/text/strbuf.h"
#include "reports/report.h"

extern const struct shk_format shk_format_term;
extern const struct shk_format shk_format_md;
extern const struct shk_format shk_format_json;
extern const struct shk_format shk_format_html;
extern const struct shk_format shk_format_junit;
extern const struct shk_format shk_format_prom;
extern const struct shk_format shk_format_line;
extern const struct shk_format shk_format_github;
extern const struct shk_format shk_format_gitlab;

/* Writes a finished report. -ENOMEM when text is incomplete, else 0 or the stream's errno. */
int shk_format_write(const struct shk_strbuf *text, FILE *out) SHK_MUST_CHECK;

/* The same of a document as JSON, and a line break; NULL: -ENOMEM. `flags` of json_dumps(). */
int shk_format_document(const json_t *document, size_t flags, FILE *out) SHK_MUST_CHECK;

#endif
