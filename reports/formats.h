/* The formats, for registry.c. */
#ifndef SHK_REPORTS_FORMATS_H
#define SHK_REPORTS_FORMATS_H

#include "reports/report.h"
#include "reports/text/write.h"

extern const struct shk_format shk_format_term;
extern const struct shk_format shk_format_md;
extern const struct shk_format shk_format_json;
extern const struct shk_format shk_format_html;
extern const struct shk_format shk_format_junit;
extern const struct shk_format shk_format_prom;
extern const struct shk_format shk_format_line;
extern const struct shk_format shk_format_github;
extern const struct shk_format shk_format_gitlab;

#endif
