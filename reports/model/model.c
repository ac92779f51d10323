#include "reports/model/model.h"
#include "core/text/nodefold.h"
#include "reports/text/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Names in one line of notes; the rest is counted. */
enum { MODEL_NOTES = 8, MODEL_NOTE_CLIP = 56 };

bool shk_model_is_gap(const struct shk_finding *row)
{
    return row->verdict == SHK_UNKNOWN && row->evidence == SHK_NOT_COVERED;
}

enum shk_verdict shk_model_verdict(const struct shk_coverage *coverage)
{
    if (coverage->verdicts[SHK_FAIL])
        return SHK_FAIL;
    if (coverage->verdicts[SHK_WARN])
        return SHK_WARN;
    if (coverage->required_unknown ||
        !(coverage->verdicts[SHK_PASS] + coverage->verdicts[SHK_NOTE]))
        return SHK_UNKNOWN;
    return SHK_PASS;
}

const char *shk_model_word(enum shk_verdict verdict)
{
    static const char *const words[SHK_VERDICT_COUNT] = {
        [SHK_PASS] = "PASS", [SHK_NOTE] = "note",       [SHK_WARN] = "WARN",
        [SHK_FAIL] = "FAIL", [SHK_UNKNOWN] = "UNKNOWN", [SHK_NA] = "n/a",
    };
    return words[verdict];
}

void shk_model_counts(struct shk_strbuf *out, const unsigned verdicts[SHK_VERDICT_COUNT])
{
    static const struct {
        enum shk_verdict verdict;
        const char *one, *many;
    } words[] = {
        {SHK_FAIL, "failed", "failed"},      {SHK_WARN, "warning", "warnings"},
        {SHK_UNKNOWN, "unknown", "unknown"}, {SHK_NOTE, "note", "notes"},
        {SHK_PASS, "passed", "passed"},
    };
    const char *sep = "";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        unsigned n = verdicts[words[i].verdict];
        if (!n)
            continue;
        shk_strbuf_printf(out, "%s%u %s", sep, n, n == 1 ? words[i].one : words[i].many);
        sep = ", ";
    }
    if (!*sep)
        shk_strbuf_puts(out, "nothing was judged");
}

void shk_model_coverage(struct shk_strbuf *out, const struct shk_coverage *coverage)
{
    static const char *const words[SHK_EVIDENCE_COUNT] = {
        [SHK_TESTED] = "tested",     [SHK_LOG] = "seen in logs",        [SHK_EFFECT] = "inferred",
        [SHK_DECLARED] = "declared", [SHK_NOT_COVERED] = "not covered",
    };
    const char *sep = ": ";
    unsigned total = 0;
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++)
        total += coverage->evidence[e];
    shk_strbuf_printf(out, "%u setting%s", total, total == 1 ? "" : "s");
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++) {
        if (!coverage->evidence[e])
            continue;
        shk_strbuf_printf(out, "%s%u %s", sep, coverage->evidence[e], words[e]);
        sep = ", ";
    }
}

unsigned shk_model_notes(struct shk_strbuf *out, const struct shk_report *report)
{
    unsigned total = report->coverage.verdicts[SHK_NOTE], named = 0;
    size_t rows = report->findings ? shk_findings_count(report->findings) : 0;
    if (total)
        shk_strbuf_printf(out, "%u note%s: ", total, total == 1 ? "" : "s");
    for (size_t i = 0; i < rows && named < total && named < MODEL_NOTES; i++) {
        const struct shk_finding *row = shk_findings_at(report->findings, i);
        if (row->verdict != SHK_NOTE)
            continue;
        shk_strbuf_puts(out, named++ ? "; " : "");
        shk_text_clip(out, row->setting, MODEL_NOTE_CLIP, 0);
    }
    if (named < total)
        shk_strbuf_printf(out, " and %u more", total - named);
    return total;
}

const char *shk_model_evidence(enum shk_evidence evidence)
{
    static const char *const words[SHK_EVIDENCE_COUNT] = {
        [SHK_TESTED] = "tested",           [SHK_LOG] = "in log",
        [SHK_EFFECT] = "inferred",         [SHK_DECLARED] = "declared",
        [SHK_NOT_COVERED] = "not covered",
    };
    return words[evidence];
}

void shk_model_who(struct shk_strbuf *out, const struct shk_diagnosis_row *row)
{
    if (row->confidence)
        shk_strbuf_puts(out, row->confidence);
    if (!row->who || !*row->who)
        return;
    shk_strbuf_puts(out, row->confidence ? "; for the " : "for the ");
    for (const char *p = row->who; *p; p++) {
        bool comma = p[0] == ',' && p[1] == ' ';
        if (comma)
            shk_strbuf_puts(out, " or ");
        else
            shk_strbuf_putc(out, *p);
        p += comma;
    }
    shk_strbuf_puts(out, " to fix");
}

size_t shk_model_cause(const struct shk_report *report, const struct shk_finding *row)
{
    const char *key = row->diagnosis ? row->diagnosis : row->id;
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN || row->diagnosis;
    for (size_t i = 0; bad && report->diagnoses && i < report->diagnoses->count; i++)
        if (strcmp(report->diagnoses->rows[i].key, key) == 0)
            return i + 1;
    return 0;
}

/* Group of that title, a new one at the end if there is none. `near` looks at the last one only. */
static struct shk_group *model_group(struct shk_group *groups, size_t *count, const char *title,
                                     bool near)
{
    for (size_t i = near && *count ? *count - 1 : 0; i < *count; i++)
        if (strcmp(groups[i].title, title) == 0)
            return &groups[i];
    groups[*count] = (struct shk_group){.title = title};
    return &groups[(*count)++];
}

static bool model_add(struct shk_group *group, const struct shk_finding *row)
{
    size_t n = group->count;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        const struct shk_finding **rows = realloc(group->rows, (n ? 2 * n : 1) * sizeof *rows);
        if (!rows)
            return false;
        group->rows = rows;
    }
    group->rows[group->count++] = row;
    group->verdicts[row->verdict]++;
    return true;
}

static bool model_rows(struct shk_model *model)
{
    const struct shk_findings *list = model->report->findings;
    size_t n = list ? shk_findings_count(list) : 0;
    model->groups = calloc(n + 1, sizeof *model->groups);
    model->gaps = calloc(n + 1, sizeof *model->gaps);
    if (!model->groups || !model->gaps)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        const char *why = row->why ? row->why : "no check looks at it";
        if (!model_add(model_group(model->groups, &model->groups_count, row->family, true), row))
            return false;
        if (shk_model_is_gap(row) &&
            !model_add(model_group(model->gaps, &model->gaps_count, why, false), row))
            return false;
    }
    return true;
}

struct model_transports {
    struct shk_model *model;
    size_t node;
    bool failed;
};

/* collective.<t>.status names a run. */
static int model_transport(const struct shk_fact *fact, void *arg)
{
    struct model_transports *t = arg;
    struct shk_model *model = t->model;
    const char *name = fact->key + strlen("collective."), *end = strrchr(name, '.');
    if (!end || strcmp(end, ".status") != 0 || fact->state != SHK_FACT_PRESENT ||
        !json_is_string(fact->value))
        return 0;
    struct shk_run *runs = realloc(model->runs, (model->runs_count + 1) * sizeof *runs);
    if (!runs) {
        t->failed = true;
        return -1;
    }
    model->runs = runs;
    char *transport = strndup(name, (size_t)(end - name));
    t->failed |= !transport;
    model->runs[model->runs_count++] = (struct shk_run){
        .node = model->nodes[t->node],
        .transport = transport,
        .status = json_string_value(fact->value),
        .facts = model->report->facts[t->node],
    };
    return 0;
}

static bool model_nodes(struct shk_model *model)
{
    const struct shk_report *report = model->report;
    struct shk_strbuf where = SHK_STRBUF_INIT;
    model->nodes = calloc(report->nodes + 1, sizeof *model->nodes);
    if (!model->nodes)
        return false;
    for (size_t i = 0; i < report->nodes; i++) {
        const char *name = shk_facts_get_text(report->facts[i], "host.name");
        model->nodes[i] = name ? name : "unnamed node";
        model->unnamed |= !name;
    }
    shk_nodefold(&where, model->nodes, report->nodes);
    model->where = report->nodes ? shk_strbuf_take(&where) : strdup("no node");
    shk_strbuf_free(&where);
    for (size_t i = 0; i < report->nodes; i++) {
        struct model_transports t = {.model = model, .node = i};
        shk_facts_each(report->facts[i], "collective.", model_transport, &t);
        if (t.failed)
            return false;
    }
    return model->where != NULL;
}

struct shk_model *shk_model_create(const struct shk_report *report,
                                   const struct shk_report_options *options)
{
    unsigned what = SHK_SCRUB_SECRETS | (options->anonymize ? SHK_SCRUB_IDENTITY : 0u);
    struct shk_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    if (shk_report_scrub(&model->scrubbed, report, what, NULL))
        goto fail;
    model->report = shk_scrubbed_report(model->scrubbed);
    model->verdict = shk_model_verdict(&report->coverage);
    if (report->interrupted && model->verdict == SHK_PASS)
        model->verdict = SHK_UNKNOWN;
    if (model_nodes(model) && model_rows(model))
        return model;
fail:
    shk_model_destroy(model);
    return NULL;
}

void shk_model_destroy(struct shk_model *model)
{
    if (!model)
        return;
    for (size_t i = 0; i < model->groups_count; i++)
        free(model->groups[i].rows);
    for (size_t i = 0; i < model->gaps_count; i++)
        free(model->gaps[i].rows);
    for (size_t i = 0; i < model->runs_count; i++)
        free(model->runs[i].transport);
    free(model->groups);
    free(model->gaps);
    free(model->runs);
    free(model->nodes);
    free(model->where);
    shk_scrubbed_destroy(model->scrubbed);
    free(model);
}
