/* The transports in one table, and the counts. */
#include "reports/model/runs_table.h"
#include "reports/term/term_private.h"
#include "reports/text/wrap.h"

#include <stdlib.h>
#include <string.h>

/* Columns below which the head of the table has no room for the ranks. */
enum { SUMMARY_NARROW = 72 };

void shk_term_summary(const struct term *t)
{
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .clip = TERM_CLIP, .header = true};
    struct shk_runs_table runs;
    if (shk_runs_table(&runs, t->model)) {
        t->out->failed = true;
        return;
    }
    if (t->width < SUMMARY_NARROW)
        runs.columns[0].title = "all-reduce";
    if (runs.table && shk_table_rows(runs.table)) {
        shk_strbuf_putc(t->out, '\n');
        shk_table_term(runs.table, &view, t->out);
        t->out->failed |= shk_table_status(runs.table) != 0;
    }
    if (runs.idle && !t->report->headline) {
        bool some = runs.table && shk_table_rows(runs.table);
        const char *why =
            runs.why && strncmp(runs.why, "not run: ", 9) == 0 ? runs.why + 9 : runs.why;
        char *text = some ? shk_strf("%s (-v: why)", runs.idle)
                          : shk_strf("all-reduce%s%s", why ? ": " : "", why ? why : "");
        if (!some)
            shk_strbuf_putc(t->out, '\n');
        shk_term_text(t, SHK_ROLE_DIM, 0, "not run: ", text);
        t->out->failed |= !text;
        free(text);
    }
    shk_runs_table_free(&runs);
}

/* Names of the unknown rows that the profile or the command line needs. */
static void counts_unknown(const struct term *t)
{
    enum { COUNTS_NAMES = 6 };
    struct shk_strbuf names = SHK_STRBUF_INIT;
    unsigned shown = 0, more = 0;
    const char *why = NULL;
    for (size_t i = 0; t->report->findings && i < shk_findings_count(t->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(t->report->findings, i);
        if (row->verdict != SHK_UNKNOWN || !row->required)
            continue;
        why = shown ? why : row->why;
        if (shown++ < COUNTS_NAMES)
            shk_strbuf_printf(&names, "%s%s", names.len ? ", " : "", row->setting);
        else
            more++;
    }
    if (more)
        shk_strbuf_printf(&names, " and %u more", more);
    if (shown)
        shk_strbuf_puts(&names, " (-v: why)");
    if (shown == 1 && why) {
        shk_strbuf_free(&names);
        names = (struct shk_strbuf)SHK_STRBUF_INIT;
        for (size_t i = 0; i < shk_findings_count(t->report->findings); i++) {
            const struct shk_finding *row = shk_findings_at(t->report->findings, i);
            if (row->verdict == SHK_UNKNOWN && row->required)
                shk_strbuf_printf(&names, "%s: %s", row->setting, why);
        }
    }
    shk_term_text(t, SHK_ROLE_UNKNOWN, 0, "unknown: ", names.len ? shk_strbuf_text(&names) : NULL);
    t->out->failed |= names.failed;
    shk_strbuf_free(&names);
}

/* What a diagnosis lacked: why each of its rows is unknown. */
static void counts_missing(const struct term *t)
{
    for (size_t i = 0; t->report->findings && i < shk_findings_count(t->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(t->report->findings, i);
        if (row->verdict == SHK_UNKNOWN && !t->verbose) {
            shk_term_text(t, SHK_ROLE_UNKNOWN, 0, "", row->why);
            shk_term_fix(t, 0, row->fix, 1);
            shk_term_advice(t, 0, row->advice, 1);
        }
    }
}

/* "78 passed: 3 tested, 40 inferred, 35 declared; 62 do not apply". */
static void counts_line(const struct term *t)
{
    const struct shk_coverage *c = &t->report->coverage;
    static const char *const words[SHK_EVIDENCE_COUNT] = {[SHK_TESTED] = "tested",
                                                          [SHK_LOG] = "in logs",
                                                          [SHK_EFFECT] = "inferred",
                                                          [SHK_DECLARED] = "declared",
                                                          [SHK_NOT_COVERED] = "not checked"};
    struct shk_strbuf line = SHK_STRBUF_INIT;
    const char *sep = "; verified: ";
    shk_model_counts(&line, c->verdicts);
    if (c->verdicts[SHK_NA])
        shk_strbuf_printf(&line, ", %u do not apply", c->verdicts[SHK_NA]);
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++) {
        if (!c->evidence[e])
            continue;
        shk_strbuf_printf(&line, "%s%u %s", sep, c->evidence[e], words[e]);
        sep = ", ";
    }
    shk_term_text(t, SHK_ROLE_DIM, 0, "", shk_strbuf_text(&line));
    t->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

void shk_term_counts(const struct term *t)
{
    struct shk_strbuf notes = SHK_STRBUF_INIT;
    const struct shk_coverage *c = &t->report->coverage;
    unsigned total = 0;
    for (int v = 0; v < SHK_VERDICT_COUNT; v++)
        total += c->verdicts[v];
    if (!total)
        return;
    shk_strbuf_putc(t->out, '\n');
    if (t->report->headline)
        counts_missing(t);
    else
        counts_unknown(t);
    counts_line(t);
    if (!t->verbose && shk_model_notes(&notes, t->report)) {
        shk_strbuf_puts(&notes, " (-v)");
        shk_term_text(t, SHK_ROLE_DIM, 0, "", shk_strbuf_text(&notes));
    }
    t->out->failed |= notes.failed;
    shk_strbuf_free(&notes);
}
