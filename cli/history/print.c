#include "cli/history/print.h"
#include "cli/exit_code.h"
#include "cli/how.h"
#include "cli/session/output.h"
#include "core/history/record.h"
#include "core/text/strbuf.h"
#include "reports/history/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

json_t *shk_history_stamp(long long at)
{
    time_t t = (time_t)at;
    struct tm tm;
    char text[32] = "";
    if (gmtime_r(&t, &tm))
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_string(text);
}

int shk_history_until(const struct shk_session *session, long long *until_p)
{
    const char *text = session->options->until;
    *until_p = (long long)session->started_at;
    if (!text)
        return SHK_EXIT_OK;
    char *whole = strlen(text) == 10 ? shk_strf("%sT23:59:59Z", text) : strdup(text);
    *until_p = shk_record_time(whole);
    free(whole);
    if (*until_p >= 0)
        return SHK_EXIT_OK;
    shk_say("--until: '%s' is neither a day (2026-11-28) nor a time (2026-11-28T18:49:07Z)", text);
    return SHK_EXIT_USAGE;
}

static const char *const print_formats[] = {"term", "html", "json"};
static const char *const print_extensions[] = {".html", ".json"};

static const char *print_format(const struct shk_options *o, const char *path)
{
    if (o->format)
        return o->format;
    for (size_t i = 0; path && i < 2; i++)
        if (shk_how_extension(path, print_extensions[i]))
            return print_formats[i + 1];
    return "term";
}

int shk_history_outputs(const struct shk_options *o)
{
    struct shk_error err = {""};
    int rc = o->format ? -EINVAL : 0;
    for (size_t i = 0; i < 3 && rc; i++)
        rc = strcmp(o->format, print_formats[i]) == 0 ? 0 : rc;
    if (rc)
        shk_error_set(&err, EINVAL, "--format: '%s' is not one of term, html, json", o->format);
    for (size_t i = 0; !rc && i < o->outputs.count; i++) {
        rc = o->format ? 0 : shk_how_known(o->outputs.items[i], print_extensions, 2, &err);
        rc = rc ? rc : shk_output_check(o->outputs.items[i], &err);
    }
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_USAGE : SHK_EXIT_OK;
}

static int print_one(const struct shk_options *o, const json_t *document, const char *path)
{
    const char *format = print_format(o, path);
    struct shk_report_options how = shk_how(o, !path);
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_error err = {""};
    struct shk_output out;
    if (strcmp(format, "html") == 0)
        shk_history_html(document, &text);
    else if (strcmp(format, "json") == 0)
        shk_history_json(document, &text);
    else
        shk_history_term(document, &how, &text);
    int rc = text.failed ? shk_error_sys(&err, ENOMEM, "report") : shk_output_begin(&out, &err);
    if (!rc) {
        fwrite(shk_strbuf_text(&text), 1, text.len, out.stream);
        rc = shk_output_finish(&out, path, &err);
    }
    shk_strbuf_free(&text);
    if (rc)
        shk_say("%s", err.text);
    return rc ? SHK_EXIT_INTERNAL : SHK_EXIT_OK;
}

int shk_history_print(const struct shk_options *o, const json_t *document)
{
    json_t *clean = shk_history_scrub(document, o->anonymize);
    int worst = SHK_EXIT_OK;
    if (!clean) {
        shk_say("out of memory");
        return SHK_EXIT_INTERNAL;
    }
    for (size_t i = 0; i < o->outputs.count; i++) {
        const char *path = o->outputs.items[i];
        int rc = print_one(o, clean, strcmp(path, "-") == 0 ? NULL : path);
        worst = rc > worst ? rc : worst;
    }
    if (!o->outputs.count)
        worst = print_one(o, clean, NULL);
    json_decref(clean);
    return worst;
}
