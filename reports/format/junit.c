/* JUnit XML for CI: one suite per family, one case per row that applies; the class is the check,
 * the time that of the probes and collectives whose facts the row is the first to rest on. FAIL is
 * a failure, a required row that is unknown an error, another unknown row is skipped, WARN and
 * notes pass with their text in system-out. Accepted by Jenkins' and GitLab's readers. */
#include "core/text/nodefold.h"
#include "reports/formats.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/model/spent.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* CI servers keep these files in memory: a text of this length is a log, not a message. */
enum { JUNIT_CLIP = 8000, JUNIT_NAME_CLIP = 200 };

static void junit_attr(struct shk_strbuf *out, const char *name, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, text, JUNIT_CLIP, 0);
    shk_strbuf_printf(out, " %s=\"", name);
    shk_escape_html(out, shk_strbuf_text(&cut));
    shk_strbuf_putc(out, '"');
    out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static void junit_line(struct shk_strbuf *out, const char *label, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    if (!text || !*text)
        return;
    shk_text_clip_lines(&cut, text, JUNIT_CLIP, 0);
    shk_strbuf_printf(out, "%s: ", label);
    shk_escape_html(out, shk_strbuf_text(&cut));
    shk_strbuf_putc(out, '\n');
    out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static void junit_body(struct shk_strbuf *out, const struct shk_finding *row)
{
    junit_line(out, "observed", row->observed);
    junit_line(out, "expected", row->expected);
    junit_line(out, "why", row->why);
    if (row->fix && strlen(row->fix) < JUNIT_CLIP)
        junit_line(out, "fix", row->fix);
    else if (row->fix)
        junit_line(out, "fix", "too long for this format, see the JSON report");
    junit_line(out, "advice", row->advice);
    junit_line(out, "verified", shk_model_evidence(row->evidence));
    junit_line(out, "source", row->source);
    if (row->nodes) {
        struct shk_strbuf nodes = SHK_STRBUF_INIT;
        size_t count = 0;
        while (row->nodes[count])
            count++;
        shk_nodefold(&nodes, (const char *const *)row->nodes, count);
        junit_line(out, "nodes", shk_strbuf_text(&nodes));
        shk_strbuf_free(&nodes);
    }
}

enum junit_kind {
    JUNIT_OK,
    JUNIT_NOTE,
    JUNIT_WARN,
    JUNIT_FAILURE,
    JUNIT_ERROR,
    JUNIT_SKIPPED,
    JUNIT_KINDS
};

static enum junit_kind junit_kind(const struct shk_finding *row)
{
    switch (row->verdict) {
    case SHK_FAIL: return JUNIT_FAILURE;
    case SHK_WARN: return JUNIT_WARN;
    case SHK_NOTE: return JUNIT_NOTE;
    case SHK_PASS: return JUNIT_OK;
    case SHK_UNKNOWN: return row->required ? JUNIT_ERROR : JUNIT_SKIPPED;
    default: return JUNIT_SKIPPED; /* n/a: no case */
    }
}

static void junit_name(struct shk_strbuf *out, const char *attribute, const char *text)
{
    struct shk_strbuf name = SHK_STRBUF_INIT;
    shk_text_clip(&name, text, JUNIT_NAME_CLIP, 0);
    junit_attr(out, attribute, shk_strbuf_text(&name));
    out->failed |= name.failed;
    shk_strbuf_free(&name);
}

static void junit_case(struct shk_strbuf *out, const struct shk_finding *row,
                       struct shk_spent *spent)
{
    static const struct {
        const char *open, *close;
    } tags[JUNIT_KINDS] = {
        [JUNIT_NOTE] = {"<system-out>note\n", "</system-out>"},
        [JUNIT_WARN] = {"<system-out>WARN\n", "</system-out>"},
        [JUNIT_FAILURE] = {"<failure type=\"fail\"", "</failure>"},
        [JUNIT_ERROR] = {"<error type=\"unknown\"", "</error>"},
        [JUNIT_SKIPPED] = {"<skipped", "</skipped>"},
    };
    enum junit_kind kind = junit_kind(row);
    shk_strbuf_puts(out, "    <testcase");
    junit_name(out, "classname", row->id);
    junit_name(out, "name", row->setting);
    shk_strbuf_printf(out, " time=\"%.3f\"%s", shk_spent_on(spent, row),
                      kind == JUNIT_OK ? "/>\n" : ">");
    if (kind == JUNIT_OK)
        return;
    shk_strbuf_puts(out, tags[kind].open);
    if (kind != JUNIT_WARN && kind != JUNIT_NOTE) {
        junit_attr(out, "message", row->why ? row->why : row->observed ? row->observed : "");
        shk_strbuf_putc(out, '>');
    }
    junit_body(out, row);
    shk_strbuf_printf(out, "%s</testcase>\n", tags[kind].close);
}

/* Returns how many there are. */
static size_t junit_counts(struct shk_strbuf *out, const struct shk_group *group)
{
    unsigned n[JUNIT_KINDS] = {0};
    size_t cases = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (group->rows[i]->verdict == SHK_NA)
            continue;
        n[junit_kind(group->rows[i])]++;
        cases++;
    }
    shk_strbuf_printf(out, " tests=\"%zu\" failures=\"%u\" errors=\"%u\" skipped=\"%u\"", cases,
                      n[JUNIT_FAILURE], n[JUNIT_ERROR], n[JUNIT_SKIPPED]);
    return cases;
}

static void junit_properties(struct shk_strbuf *out, const struct shk_model *model)
{
    const struct shk_report *report = model->report;
    struct shk_strbuf hardware = SHK_STRBUF_INIT;
    char *start = shk_hardware_date(model), *job = shk_hardware_job(model);
    out->failed |= shk_hardware_line(model, &hardware) != 0;
    const struct {
        const char *name, *value;
    } properties[] = {
        {"version", report->version},
        {"command", report->command},
        {"profile", report->profile},
        {"profile.why", report->profile_why},
        {"interrupted", report->interrupted},
        {"start", start},
        {"job", job},
        {"hardware", hardware.len ? shk_strbuf_text(&hardware) : NULL},
    };
    shk_strbuf_puts(out, "    <properties>\n");
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (!properties[i].value)
            continue;
        shk_strbuf_puts(out, "      <property");
        junit_attr(out, "name", properties[i].name);
        junit_attr(out, "value", properties[i].value);
        shk_strbuf_puts(out, "/>\n");
    }
    shk_strbuf_puts(out, "    </properties>\n");
    out->failed |= hardware.failed;
    shk_strbuf_free(&hardware);
    free(start);
    free(job);
}

static void junit_suite(struct shk_strbuf *out, const struct shk_model *model,
                        const struct shk_group *group, const char *start, double *elapsed,
                        struct shk_spent *spent)
{
    struct shk_strbuf counts = SHK_STRBUF_INIT;
    bool first = *elapsed >= 0;
    if (junit_counts(&counts, group) || first) {
        shk_strbuf_puts(out, "  <testsuite");
        junit_attr(out, "name", group->title);
        junit_attr(out, "hostname", model->where);
        shk_strbuf_puts(out, shk_strbuf_text(&counts));
        shk_strbuf_printf(out, " time=\"%.3f\"", first ? *elapsed : 0);
        if (start)
            junit_attr(out, "timestamp", start);
        shk_strbuf_puts(out, ">\n");
        if (first)
            junit_properties(out, model);
        for (size_t i = 0; i < group->count; i++)
            if (group->rows[i]->verdict != SHK_NA)
                junit_case(out, group->rows[i], spent);
        shk_strbuf_puts(out, "  </testsuite>\n");
        *elapsed = -1;
    }
    out->failed |= counts.failed;
    shk_strbuf_free(&counts);
}

static void junit_suites(struct shk_strbuf *out, const struct shk_model *model)
{
    const struct shk_report *report = model->report;
    double elapsed = report->elapsed_s >= 0 && isfinite(report->elapsed_s) ? report->elapsed_s : 0;
    char *start = shk_hardware_date(model);
    struct shk_spent *spent = shk_spent_begin(report);
    out->failed |= !spent;
    shk_strbuf_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "
                         "name=\"shakedown\"");
    shk_strbuf_printf(out, " time=\"%.3f\">\n", elapsed);
    /* the first one carries the time of all, and the properties */
    for (size_t g = 0; spent && g < model->groups_count; g++)
        junit_suite(out, model, &model->groups[g], start, &elapsed, spent);
    shk_strbuf_puts(out, "</testsuites>\n");
    shk_spent_end(spent);
    free(start);
}

static int junit_render(const struct shk_report *report, const struct shk_report_options *options,
                        FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_model *model = shk_model_create(report, options);
    if (!model)
        return -ENOMEM;
    junit_suites(&text, model);
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_junit = {
    .name = "junit",
    .extension = ".xml",
    .doc = "JUnit XML for CI servers",
    .render = junit_render,
};
