/* Prometheus text format for the textfile collector of node_exporter: no time stamps (the
 * collector refuses them), one sample per set of labels, base units. */
#include "core/facts/metrics.h"
#include "core/text/stamp.h"
#include "reports/formats.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/model/nodecount.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Label values are kept in an index by every scraper. */
enum { PROM_CLIP = 160 };

struct prom {
    const struct shk_model *model;
    struct shk_strbuf *out;
    json_t *seen; /* set of "metric{labels}" already written */
};

struct prom_label {
    const char *name;
    const char *value; /* NULL: the label is left out */
};

static void prom_head(const struct prom *p, const char *metric, const char *help)
{
    shk_strbuf_printf(p->out, "# HELP %s %s\n# TYPE %s gauge\n", metric, help, metric);
}

/* A sample; labels end with name NULL. Not finite: not known, so not written. */
static void prom_put(const struct prom *p, const char *metric, const struct prom_label *labels,
                     double value)
{
    struct shk_strbuf series = SHK_STRBUF_INIT;
    const char *sep = "{";
    shk_strbuf_puts(&series, metric);
    for (; labels && labels->name; labels++) {
        struct shk_strbuf cut = SHK_STRBUF_INIT;
        if (!labels->value)
            continue;
        shk_text_clip(&cut, labels->value, PROM_CLIP, 0);
        shk_strbuf_printf(&series, "%s%s=\"", sep, labels->name);
        shk_escape_prom(&series, shk_strbuf_text(&cut));
        shk_strbuf_putc(&series, '"');
        series.failed |= cut.failed;
        shk_strbuf_free(&cut);
        sep = ",";
    }
    shk_strbuf_puts(&series, *sep == ',' ? "}" : "");
    const char *key = shk_strbuf_text(&series);
    p->out->failed |= series.failed;
    if (isfinite(value) && !json_object_get(p->seen, key)) {
        p->out->failed |= json_object_set_new_nocheck(p->seen, key, json_true()) != 0;
        shk_strbuf_printf(p->out, "%s %.10g\n", key, value);
    }
    shk_strbuf_free(&series);
}

static void prom_summary(const struct prom *p)
{
    const struct shk_report *report = p->model->report;
    prom_head(p, "shakedown_info", "Version and profile of the last run.");
    prom_put(p, "shakedown_info",
             (struct prom_label[]){
                 {"version", report->version}, {"profile", report->profile}, {NULL, NULL}},
             1);
    prom_head(p, "shakedown_verdict", "1 for the verdict of the last run, 0 for the others.");
    for (int v = SHK_PASS; v <= SHK_UNKNOWN; v++)
        if (v != SHK_NOTE) /* never the verdict of a whole */
            prom_put(p, "shakedown_verdict",
                     (struct prom_label[]){{"verdict", shk_verdict_name((enum shk_verdict)v)},
                                           {NULL, NULL}},
                     p->model->verdict == (enum shk_verdict)v);
    prom_head(p, "shakedown_findings", "Rows of the coverage matrix by verdict.");
    for (int v = 0; v < SHK_VERDICT_COUNT; v++)
        prom_put(
            p, "shakedown_findings",
            (struct prom_label[]){{"verdict", shk_verdict_name((enum shk_verdict)v)}, {NULL, NULL}},
            report->coverage.verdicts[v]);
    prom_head(p, "shakedown_coverage", "Rows of the coverage matrix by how they were verified.");
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++)
        prom_put(p, "shakedown_coverage",
                 (struct prom_label[]){{"evidence", shk_evidence_name((enum shk_evidence)e)},
                                       {NULL, NULL}},
                 report->coverage.evidence[e]);
    if (report->interrupted) {
        prom_head(p, "shakedown_interrupted", "1 when a signal ended the last run early.");
        prom_put(p, "shakedown_interrupted",
                 (struct prom_label[]){{"signal", report->interrupted}, {NULL, NULL}}, 1);
    }
    if (report->elapsed_s >= 0) {
        prom_head(p, "shakedown_run_seconds", "Wall time of the last run.");
        prom_put(p, "shakedown_run_seconds", NULL, report->elapsed_s);
    }
}

/* The job's name is new in every run: a comment, or each run would be a series of its own. */
static void prom_job(const struct prom *p, const char *job)
{
    shk_strbuf_puts(p->out, "# last run: job ");
    shk_escape_prom(p->out, job);
    shk_strbuf_putc(p->out, '\n');
}

static void prom_last(const struct prom *p)
{
    struct shk_strbuf hardware = SHK_STRBUF_INIT;
    char *start = shk_hardware_date(p->model), *job = shk_hardware_job(p->model);
    long long seconds = shk_stamp_read(start);
    if (seconds >= 0) {
        prom_head(p, "shakedown_last_run_timestamp_seconds",
                  "When the last run began, in seconds since 1970.");
        prom_put(p, "shakedown_last_run_timestamp_seconds", NULL, (double)seconds);
    }
    if (job)
        prom_job(p, job);
    p->out->failed |= shk_hardware_line(p->model, &hardware) != 0;
    if (hardware.len) {
        prom_head(p, "shakedown_hardware_info", "What most nodes of the last run are made of.");
        prom_put(p, "shakedown_hardware_info",
                 (struct prom_label[]){{"hardware", shk_strbuf_text(&hardware)}, {NULL, NULL}}, 1);
    }
    shk_strbuf_free(&hardware);
    free(start);
    free(job);
}

static void prom_nodes(const struct prom *p)
{
    static const enum shk_verdict verdicts[] = {SHK_PASS, SHK_WARN, SHK_FAIL, SHK_UNKNOWN};
    struct shk_node_counts counts;
    if (shk_node_counts(&counts, p->model)) {
        p->out->failed = true;
        return;
    }
    prom_head(p, "shakedown_nodes", "Nodes of the last run by verdict.");
    for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
        prom_put(p, "shakedown_nodes",
                 (struct prom_label[]){{"verdict", shk_verdict_name(verdicts[i])}, {NULL, NULL}},
                 (double)counts.by[verdicts[i]]);
    shk_node_counts_free(&counts);
}

static bool prom_is_problem(const struct shk_finding *row)
{
    return row->verdict == SHK_FAIL || row->verdict == SHK_WARN ||
           (row->verdict == SHK_UNKNOWN && row->required);
}

static void prom_row(const struct prom *p, const char *metric, const struct shk_finding *row,
                     const char *node)
{
    prom_put(p, metric,
             (struct prom_label[]){{"node", node},
                                   {"family", row->family},
                                   {"setting", row->setting},
                                   {"check", row->id},
                                   {"diagnosis", row->diagnosis},
                                   {"verdict", shk_verdict_name(row->verdict)},
                                   {NULL, NULL}},
             1);
}

static bool prom_is_note(const struct shk_finding *row)
{
    return row->verdict == SHK_NOTE;
}

/* The wanted rows, once for each of their nodes. */
static void prom_rows(const struct prom *p, const char *metric,
                      bool (*wanted)(const struct shk_finding *row))
{
    const struct shk_findings *list = p->model->report->findings;
    for (size_t i = 0; list && i < shk_findings_count(list); i++) {
        const struct shk_finding *row = shk_findings_at(list, i);
        if (!wanted(row))
            continue;
        for (char **node = row->nodes; node && *node; node++)
            prom_row(p, metric, row, *node);
        for (size_t n = 0; !row->nodes && n < p->model->report->nodes; n++)
            prom_row(p, metric, row, p->model->nodes[n]);
    }
}

/* Only rows that need attention: what passes is counted, so that the number of series is small. */
static void prom_problems(const struct prom *p)
{
    prom_head(p, "shakedown_problem",
              "1 for each setting that failed, warned, or is required and "
              "unknown.");
    prom_rows(p, "shakedown_problem", prom_is_problem);
    if (p->model->report->coverage.verdicts[SHK_NOTE])
        prom_head(p, "shakedown_note", "1 for each note: worth knowing, nothing to act on.");
    prom_rows(p, "shakedown_note", prom_is_note);
    const struct shk_diagnoses *causes = p->model->report->diagnoses;
    if (causes && causes->count)
        prom_head(p, "shakedown_root_cause", "1 for each root cause that was found.");
    for (size_t i = 0; causes && i < causes->count; i++)
        prom_put(p, "shakedown_root_cause",
                 (struct prom_label[]){{"key", causes->rows[i].key},
                                       {"confidence", causes->rows[i].confidence},
                                       {NULL, NULL}},
                 1);
}

static double prom_number(const json_t *row, const char *member)
{
    const json_t *value = json_object_get(row, member);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* The rows of the smallest and of the largest message, SIZE_MAX where there is none: a series for
 * each size that was measured would be dozens for each node. */
static void prom_ends(const json_t *sizes, size_t ends[2])
{
    double least = INFINITY, most = -INFINITY;
    size_t i;
    json_t *row;
    ends[0] = ends[1] = SIZE_MAX;
    json_array_foreach(sizes, i, row)
    {
        double bytes = prom_number(row, "bytes");
        if (bytes < least) {
            least = bytes;
            ends[0] = i;
        }
        if (bytes > most) {
            most = bytes;
            ends[1] = i;
        }
    }
}

/* One metric at two sizes of every run; the value is `member` times `scale`. */
static void prom_sizes(const struct prom *p, const char *metric, const char *help,
                       const char *member, double scale)
{
    prom_head(p, metric, help);
    for (size_t r = 0; r < p->model->runs_count; r++) {
        const struct shk_run *run = &p->model->runs[r];
        const json_t *sizes = shk_run_array(run, "sizes");
        size_t ends[2];
        prom_ends(sizes, ends);
        for (int i = 0; i < 2; i++) {
            char bytes[32];
            const json_t *row = json_array_get(sizes, ends[i]);
            double size = row ? prom_number(row, "bytes") : NAN;
            if (!isfinite(size) || (i && ends[1] == ends[0]))
                continue;
            snprintf(bytes, sizeof bytes, "%.0f", fabs(size) < 1e15 ? size : 0);
            prom_put(p, metric,
                     (struct prom_label[]){{"node", run->node},
                                           {"transport", run->transport},
                                           {"provider", shk_run_text(run, "provider")},
                                           {"bytes", bytes},
                                           {NULL, NULL}},
                     prom_number(row, member) * scale);
        }
    }
}

static void prom_wrong(const struct prom *p)
{
    prom_head(p, "shakedown_collective_wrong_elements",
              "Elements of the results of all sizes that were wrong.");
    for (size_t r = 0; r < p->model->runs_count; r++) {
        const struct shk_run *run = &p->model->runs[r];
        double wrong = NAN;
        size_t i;
        json_t *row;
        json_t *sizes = shk_run_array(run, "sizes");
        json_array_foreach(sizes, i, row)
        {
            double value = prom_number(row, "wrong");
            if (isfinite(value))
                wrong = value + (isnan(wrong) ? 0 : wrong);
        }
        prom_put(p, "shakedown_collective_wrong_elements",
                 (struct prom_label[]){{"node", run->node},
                                       {"transport", run->transport},
                                       {"provider", shk_run_text(run, "provider")},
                                       {NULL, NULL}},
                 wrong);
    }
}

/* The best of a run over its sizes, and the time of its smallest: few series, whatever was
 * measured. */
static void prom_best(const struct prom *p, const char *metric, const char *help, bool busbw)
{
    bool head = false;
    for (size_t r = 0; r < p->model->runs_count; r++) {
        const struct shk_run *run = &p->model->runs[r];
        double best, time;
        shk_sizes_best(shk_run_array(run, "sizes"), &best, &time);
        best = busbw ? best : time;
        if (!isfinite(best))
            continue;
        if (!head)
            prom_head(p, metric, help);
        head = true;
        prom_put(p, metric,
                 (struct prom_label[]){{"node", run->node},
                                       {"transport", run->transport},
                                       {"provider", shk_run_text(run, "provider")},
                                       {NULL, NULL}},
                 best * (busbw ? 1e9 : 1e-6));
    }
}

static void prom_runs(const struct prom *p)
{
    if (!p->model->runs_count)
        return;
    prom_head(p, "shakedown_collective_ok", "1 if the all-reduce ran and every element was right.");
    for (size_t i = 0; i < p->model->runs_count; i++) {
        const struct shk_run *run = &p->model->runs[i];
        prom_put(p, "shakedown_collective_ok",
                 (struct prom_label[]){{"node", run->node},
                                       {"transport", run->transport},
                                       {"provider", shk_run_text(run, "provider")},
                                       {NULL, NULL}},
                 shk_run_ok(run));
    }
    prom_best(p, "shakedown_collective_best_bus_bytes_per_second",
              "Best bus bandwidth of the all-reduce over all sizes.", true);
    prom_best(p, "shakedown_collective_latency_seconds",
              "Time of the all-reduce of the smallest message.", false);
    prom_sizes(p, "shakedown_collective_seconds",
               "Time of one all-reduce of the smallest and of the largest message.", "time_us",
               1e-6);
    prom_sizes(p, "shakedown_collective_bus_bytes_per_second",
               "Bus bandwidth of the all-reduce of the smallest and of the largest message.",
               "busbw", 1e9);
    prom_wrong(p);
}

static int prom_render(const struct shk_report *report, const struct shk_report_options *options,
                       FILE *out)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_model *model = shk_model_create(report, options);
    struct prom p = {.model = model, .out = &text, .seen = json_object()};
    int rc = -ENOMEM;
    if (model && p.seen) {
        prom_summary(&p);
        prom_last(&p);
        prom_nodes(&p);
        prom_problems(&p);
        prom_runs(&p);
        rc = shk_format_write(&text, out);
    }
    shk_strbuf_free(&text);
    json_decref(p.seen);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_prom = {
    .name = "prom",
    .extension = ".prom",
    .doc = "Prometheus metrics for node_exporter's textfile collector",
    .render = prom_render,
};
