#include "cli/history/print.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/output.h"
#include "core/text/stamp.h"
#include "core/text/strbuf.h"
#include "reports/history/history.h"

#include <stdlib.h>
#include <string.h>

json_t *shk_history_stamp(long long at)
{
    char text[SHK_STAMP];
    shk_stamp(text, at);
    return json_string(text);
}

int shk_history_until(const struct shk_session *session, long long *until_p)
{
    const char *text = session->options->until;
    *until_p = (long long)session->started_at;
    if (!text)
        return SHK_EXIT_OK;
    char *whole = strlen(text) == 10 ? shk_strf("%sT23:59:59Z", text) : strdup(text);
    *until_p = shk_stamp_read(whole);
    free(whole);
    if (*until_p >= 0)
        return SHK_EXIT_OK;
    shk_say("--until: '%s' is neither a day (2026-11-28) nor a time (2026-11-28T18:49:07Z)", text);
    return SHK_EXIT_USAGE;
}

int shk_history_outputs(const struct shk_options *o)
{
    size_t count;
    const struct shk_form *forms = shk_history_forms(&count);
    return shk_how_outputs(o, forms, count);
}

static int print_write(void *arg, const struct shk_form *form, const struct shk_report_options *how,
                       FILE *out)
{
    return shk_history_report(arg, form, how, out);
}

int shk_history_print(const struct shk_options *o, const json_t *document)
{
    size_t count;
    const struct shk_form *forms = shk_history_forms(&count);
    return shk_how_write_all(o, forms, count, "history", print_write, (void *)document);
}
