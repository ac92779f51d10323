/* The last step of a format: the finished text into the stream. */
#ifndef SHK_REPORTS_WRITE_H
#define SHK_REPORTS_WRITE_H

#include "core/text/strbuf.h"

#include <jansson.h>
#include <stdio.h>

/* Writes a finished report. -ENOMEM when text is incomplete, else 0 or the stream's errno. */
int shk_format_write(const struct shk_strbuf *text, FILE *out) SHK_MUST_CHECK;

/* The same of a document as JSON, and a line break; NULL: -ENOMEM. `flags` of json_dumps(). */
int shk_format_document(const json_t *document, size_t flags, FILE *out) SHK_MUST_CHECK;

#endif
