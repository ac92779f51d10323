/* One line: verdict, node, cause, what was seen; for the reason of a drained node, a log, a chat.
 * Plain ASCII without quotes, backslashes or dollar signs, so that it passes through a shell and a
 * scheduler's command line as it is. */
#include "core/text/nodefold.h"
#include "reports/formats.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/text/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Slurm's accounting keeps 255 bytes of a node's reason (tinytext, accounting_storage_mysql.c); the
 * rest is for the script that puts its own words before it. */
enum { LINE_BYTES = 200, LINE_NODES = 60, LINE_KEY = 60 };

/* At most `room` bytes of text on one line; "..." stands for what is cut. */
static void line_text(struct shk_strbuf *out, const char *text, size_t room)
{
    struct shk_strbuf clean = SHK_STRBUF_INIT, kept = SHK_STRBUF_INIT;
    shk_text_clean(&clean, text, strlen(text), SHK_CLEAN_LINES | SHK_CLEAN_ASCII);
    for (const char *p = shk_strbuf_text(&clean); *p; p++) {
        char c = isspace((unsigned char)*p) ? ' ' : *p == '\\' ? '/' : *p;
        bool twice = c == ' ' && (!kept.len || shk_strbuf_text(&kept)[kept.len - 1] == ' ');
        if (!strchr("'\"`$", c) && !twice)
            shk_strbuf_putc(&kept, c);
    }
    bool cut = kept.len > room;
    shk_strbuf_printf(out, "%.*s%s", (int)(cut ? room - 3 : kept.len), shk_strbuf_text(&kept),
                      cut ? "..." : "");
    out->failed |= clean.failed || kept.failed;
    shk_strbuf_free(&clean);
    shk_strbuf_free(&kept);
}

/* The row that stands for a cause, or NULL: the first of its verdict and scope. */
static const struct shk_finding *line_row(const struct shk_report *report,
                                          const struct shk_diagnosis_row *cause)
{
    for (size_t i = 0; i < shk_findings_count(report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(report->findings, i);
        const char *key = row->diagnosis ? row->diagnosis : row->id;
        bool scope = cause->scope == SHK_SCOPE_LAUNCH || row->scope != SHK_SCOPE_LAUNCH;
        if (row->verdict == cause->verdict && scope && strcmp(key, cause->key) == 0)
            return row;
    }
    return NULL;
}

/* The first cause of the verdict, one of the node before one of how the job was started, and how
 * many more there are: a node is drained for its own fault. */
static const struct shk_diagnosis_row *line_cause(const struct shk_model *model, size_t *more_p)
{
    const struct shk_diagnoses *list = model->report->diagnoses;
    const struct shk_diagnosis_row *first = NULL;
    size_t count = 0;
    for (size_t i = 0; list && i < list->count; i++) {
        const struct shk_diagnosis_row *row = &list->rows[i];
        if (row->verdict != model->verdict)
            continue;
        count++;
        if (!first || (first->scope == SHK_SCOPE_LAUNCH && row->scope != SHK_SCOPE_LAUNCH))
            first = row;
    }
    *more_p = count ? count - 1 : 0;
    return first;
}

/* The first row of the verdict; an unknown one that is required. Passes stand for nothing. */
static const struct shk_finding *line_first(const struct shk_report *report,
                                            enum shk_verdict verdict)
{
    bool named = verdict == SHK_FAIL || verdict == SHK_WARN || verdict == SHK_UNKNOWN;
    for (size_t i = 0; named && i < shk_findings_count(report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(report->findings, i);
        if (row->verdict == verdict && (verdict != SHK_UNKNOWN || row->required))
            return row;
    }
    return NULL;
}

static void line_where(struct shk_strbuf *out, const struct shk_model *model,
                       const struct shk_finding *row)
{
    struct shk_strbuf nodes = SHK_STRBUF_INIT;
    size_t count = 0;
    while (row && row->nodes && row->nodes[count])
        count++;
    if (count)
        shk_nodefold(&nodes, (const char *const *)row->nodes, count);
    line_text(out, count ? shk_strbuf_text(&nodes) : model->where, LINE_NODES);
    out->failed |= nodes.failed;
    shk_strbuf_free(&nodes);
}

static void line_seen(struct shk_strbuf *seen, const struct shk_diagnosis_row *cause,
                      const struct shk_finding *row)
{
    const char *observed = row && row->observed && *row->observed ? row->observed : NULL;
    if (row)
        shk_strbuf_printf(seen, "%s%s%s", row->setting, observed ? " " : "",
                          observed ? observed : "");
    if (row && row->why && *row->why)
        shk_strbuf_printf(seen, ": %s", row->why);
    if (!row && cause)
        shk_strbuf_puts(seen, cause->title);
}

/* "2026-11-28T18:49:07Z, job 1234, 8.1 s"; "" when the documents do not say. */
static char *line_when(const struct shk_model *model)
{
    char *start = shk_hardware_date(model), *job = shk_hardware_job(model);
    struct shk_strbuf all = SHK_STRBUF_INIT, text = SHK_STRBUF_INIT;
    if (start)
        shk_strbuf_puts(&text, start);
    if (start && job)
        shk_strbuf_printf(&text, ", job %.24s", job);
    if (start && model->report->elapsed_s >= 0)
        shk_strbuf_printf(&text, ", %.1f s", model->report->elapsed_s);
    if (text.len)
        line_text(&all, shk_strbuf_text(&text), LINE_NODES);
    all.failed |= text.failed;
    shk_strbuf_free(&text);
    free(start);
    free(job);
    return all.len || all.failed ? shk_strbuf_take(&all) : strdup("");
}

struct line_end {
    struct shk_strbuf text; /* "[when; part; part" */
    size_t room;
};

/* A part for which there is no room is left out whole. */
static void line_part(const char *part, void *arg)
{
    struct line_end *end = arg;
    struct shk_strbuf clean = SHK_STRBUF_INIT;
    line_text(&clean, part, LINE_BYTES);
    if (end->text.len + clean.len + sizeof " ; ]" - 1 <= end->room)
        shk_strbuf_printf(&end->text, "%s%s", end->text.len > 1 ? "; " : "",
                          shk_strbuf_text(&clean));
    end->text.failed |= clean.failed;
    shk_strbuf_free(&clean);
}

/* " [when; hardware]": what is seen of the fault comes first, the hardware where room is left. */
static void line_tail(struct shk_strbuf *out, const struct shk_model *model, const char *when)
{
    struct line_end end = {.text = SHK_STRBUF_INIT,
                           .room = out->len < LINE_BYTES ? LINE_BYTES - out->len : 0};
    shk_strbuf_printf(&end.text, "[%s", when);
    if (shk_hardware_each(model, line_part, &end) != 0)
        end.text.failed = true;
    if (end.text.len > 1)
        shk_strbuf_printf(out, " %s]", shk_strbuf_text(&end.text));
    out->failed |= end.text.failed;
    shk_strbuf_free(&end.text);
}

static void line_cause_text(struct shk_strbuf *out, const struct shk_model *model, size_t after)
{
    size_t more;
    const struct shk_diagnosis_row *cause = line_cause(model, &more);
    const struct shk_finding *row =
        cause ? line_row(model->report, cause) : line_first(model->report, model->verdict);
    const char *key = cause ? cause->key : row && row->diagnosis ? row->diagnosis : NULL;
    struct shk_strbuf seen = SHK_STRBUF_INIT, tail = SHK_STRBUF_INIT;
    line_where(out, model, row);
    shk_strbuf_puts(out, ": ");
    if (key) {
        line_text(out, key, LINE_KEY);
        shk_strbuf_puts(out, ": ");
    }
    if (cause || row)
        line_seen(&seen, cause, row);
    else
        shk_model_counts(&seen, model->report->coverage.verdicts);
    if (more)
        shk_strbuf_printf(&tail, ", +%zu more", more);
    line_text(out, shk_strbuf_text(&seen), LINE_BYTES - out->len - tail.len - after);
    shk_strbuf_puts(out, shk_strbuf_text(&tail));
    out->failed |= seen.failed || tail.failed;
    shk_strbuf_free(&seen);
    shk_strbuf_free(&tail);
}

static int line_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    static const char *const words[SHK_VERDICT_COUNT] = {
        [SHK_PASS] = "PASS", [SHK_NOTE] = "PASS",       [SHK_WARN] = "WARN",
        [SHK_FAIL] = "FAIL", [SHK_UNKNOWN] = "UNKNOWN", [SHK_NA] = "PASS",
    };
    struct shk_model *model = shk_model_create(report, options);
    struct shk_strbuf text = SHK_STRBUF_INIT;
    if (!model)
        return -ENOMEM;
    shk_strbuf_printf(&text, "%s ", words[model->verdict]);
    char *when = line_when(model);
    line_cause_text(&text, model, when && *when ? strlen(when) + sizeof " []" - 1 : 0);
    line_tail(&text, model, when ? when : "");
    text.failed |= !when;
    free(when);
    shk_strbuf_putc(&text, '\n');
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_line = {
    .name = "line",
    .doc = "one line: verdict, node, cause and what was seen; for the reason of a drained node",
    .render = line_render,
};
