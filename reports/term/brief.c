#include "reports/term/brief.h"

#include "reports/term/term_private.h"

#include <errno.h>

int shk_report_brief(const struct shk_report *report, const struct shk_report_options *options,
                     struct shk_strbuf *out)
{
    struct shk_report_options how = *options;
    struct term t;
    how.verbose = false;
    int rc = shk_term_begin(&t, report, &how, out);
    if (rc)
        return rc;
    shk_term_head(&t);
    shk_term_causes(&t);
    shk_term_end(&t);
    return out->failed ? -ENOMEM : 0;
}
