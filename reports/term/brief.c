#include "reports/term/brief.h"

#include "reports/model/model.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* More causes than anybody acts on at once; the report has them. */
enum { BRIEF_CAUSES = 5, BRIEF_CLIP = 200 };

static bool brief_say(struct shk_strbuf *line, void (*say)(const char *line, void *arg), void *arg)
{
    bool whole = !line->failed;
    if (whole)
        say(shk_strbuf_text(line), arg);
    shk_strbuf_free(line);
    return whole;
}

static bool brief_verdict(const struct shk_model *model, void (*say)(const char *line, void *arg),
                          void *arg)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    for (const char *p = shk_verdict_name(model->verdict); *p; p++)
        shk_strbuf_putc(&line, (char)toupper((unsigned char)*p));
    shk_strbuf_putc(&line, ' ');
    shk_text_clip(&line, model->where, BRIEF_CLIP, 0);
    shk_strbuf_puts(&line, ": ");
    shk_model_counts(&line, model->report->coverage.verdicts);
    if (model->report->interrupted)
        shk_strbuf_printf(&line, "; " SHK_MODEL_INTERRUPTED, model->report->interrupted);
    return brief_say(&line, say, arg);
}

static bool brief_causes(const struct shk_diagnoses *list, void (*say)(const char *line, void *arg),
                         void *arg)
{
    bool whole = true;
    for (size_t i = 0; whole && i < list->count && i < BRIEF_CAUSES; i++) {
        struct shk_strbuf line = SHK_STRBUF_INIT;
        shk_strbuf_printf(&line, "%zu. ", i + 1);
        shk_text_clip(&line, list->rows[i].title, BRIEF_CLIP, 0);
        if (list->rows[i].confidence)
            shk_strbuf_printf(&line, " (%s)", list->rows[i].confidence);
        if (i + 1 == BRIEF_CAUSES && list->count > BRIEF_CAUSES)
            shk_strbuf_printf(&line, "; and %zu more", list->count - BRIEF_CAUSES);
        whole = brief_say(&line, say, arg);
    }
    return whole;
}

int shk_report_brief(const struct shk_report *report, const struct shk_report_options *options,
                     void (*say)(const char *line, void *arg), void *arg)
{
    struct shk_model *model = shk_model_create(report, options);
    bool whole = model && brief_verdict(model, say, arg);
    if (whole && model->report->diagnoses)
        whole = brief_causes(model->report->diagnoses, say, arg);
    shk_model_destroy(model);
    return whole ? 0 : -ENOMEM;
}
