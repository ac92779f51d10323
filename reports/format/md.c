/* Markdown for tickets: the verdict first, what is long collapsed, nothing that a value could
 * break or trigger. */
#include "core/text/nodefold.h"
#include "reports/formats.h"
#include "reports/model/factfold.h"
#include "reports/model/hardware.h"
#include "reports/model/model.h"
#include "reports/model/nodecount.h"
#include "reports/model/runs_table.h"
#include "reports/text/escape.h"
#include "reports/text/utf8.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Jira takes 32767 characters by default, GitHub 65536; a command line longer than MD_COMMAND is a
 * list of files. */
enum { MD_LIMIT = 32000, MD_COMMAND = 400, MD_FIX = 400 };
#define MD_LONG "omitted to fit; the JSON and HTML reports have it"

/* How much is said; the first level that fits the limit is used. */
struct md_level {
    unsigned clip;   /* characters of one text */
    size_t causes;   /* root causes at most */
    size_t evidence; /* lines of each */
    size_t rows;     /* failed and warned rows at most */
    size_t runs;
    bool passes; /* the whole matrix, else only what did not pass */
    bool matrix;
    bool environment;
    bool gaps;
};

static const struct md_level md_levels[] = {
    {.clip = 2000,
     .causes = 50,
     .evidence = 20,
     .rows = 400,
     .runs = 16,
     .passes = true,
     .matrix = true,
     .environment = true,
     .gaps = true},
    {.clip = 600,
     .causes = 50,
     .evidence = 20,
     .rows = 400,
     .runs = 8,
     .passes = false,
     .matrix = true,
     .environment = true,
     .gaps = true},
    {.clip = 300,
     .causes = 20,
     .evidence = 8,
     .rows = 60,
     .runs = 4,
     .matrix = false,
     .environment = true},
    {.clip = 160, .causes = 10, .evidence = 4, .rows = 20, .runs = 2},
    {.clip = 60, .causes = 4, .evidence = 2, .rows = 6, .runs = 1},
};

struct md {
    const struct shk_model *model;
    const struct shk_report *report;
    const struct md_level *level;
    bool verbose;
    struct shk_strbuf *out;
};

enum { MD_BAD = 1, MD_UNKNOWN = 2, MD_NOTE = 4, MD_GOOD = 8 }; /* kinds of rows */

/* Prose, cut to the level's length; lines are kept apart. */
static void md_text(const struct md *m, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip_lines(&cut, text ? text : "", m->level->clip, 0);
    shk_escape_md(m->out, shk_strbuf_text(&cut));
    m->out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static void md_code(const struct md *m, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip(&cut, text, m->level->clip, 0);
    shk_escape_md_code(m->out, shk_strbuf_text(&cut));
    m->out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

static void md_block(const struct md *m, const char *info, const char *text)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip_lines(&cut, text, m->level->clip, 0);
    shk_escape_md_block(m->out, info, shk_strbuf_text(&cut));
    m->out->failed |= cut.failed;
    shk_strbuf_free(&cut);
}

/* Whole lines to copy, as many as fit. */
static void md_fix(const struct md *m, const char *fix)
{
    struct shk_strbuf whole = SHK_STRBUF_INIT;
    size_t most = m->level->clip > MD_FIX ? m->level->clip : MD_FIX;
    bool more = false;
    shk_strbuf_puts(m->out, "Fix:\n\n");
    for (size_t len; *fix; fix += len + (fix[len] == '\n')) {
        len = strcspn(fix, "\n");
        if (whole.len + len < most)
            shk_strbuf_printf(&whole, "%s%.*s", whole.len ? "\n" : "", (int)len, fix);
        else
            more = true;
    }
    if (whole.len)
        shk_escape_md_block(m->out, "sh", shk_strbuf_text(&whole));
    if (more)
        shk_strbuf_puts(m->out, MD_LONG "\n\n");
    m->out->failed |= whole.failed;
    shk_strbuf_free(&whole);
}

static void md_details(const struct md *m, const char *summary)
{
    shk_strbuf_printf(m->out, "\n<details><summary>%s</summary>\n\n", summary);
}

static void md_details_end(const struct md *m)
{
    shk_strbuf_puts(m->out, "\n</details>\n");
}

static void md_left_out(const struct md *m, size_t n, const char *what)
{
    if (n)
        shk_strbuf_printf(m->out,
                          "\n*%zu more %s omitted to fit; the JSON and HTML reports have "
                          "them.*\n",
                          n, what);
}

static void md_part(const char *part, void *arg)
{
    const struct md *m = arg;
    if (!part || !*part)
        return;
    shk_strbuf_puts(m->out, shk_strbuf_text(m->out)[m->out->len - 1] == '\n' ? "\n" : "; ");
    md_text(m, part);
}

/* What a reader of a ticket asks first: which machine, when, which job. */
static void md_machine(const struct md *m)
{
    size_t from = m->out->len;
    char *date = shk_hardware_date(m->model), *job = shk_hardware_job(m->model);
    char *number = job ? shk_strf("job %s", job) : NULL;
    m->out->failed |= shk_hardware_each(m->model, md_part, (void *)m) != 0;
    md_part(number, (void *)m);
    md_part(date, (void *)m);
    shk_strbuf_puts(m->out, m->out->len > from ? "\n" : "");
    free(date);
    free(job);
    free(number);
}

/* "5 of 1000 nodes fail, 8 more warn: `nid[…]`"; nothing for one node. */
static void md_nodes(const struct md *m)
{
    struct shk_node_counts counts = {0};
    m->out->failed |= shk_node_counts(&counts, m->model) != 0;
    char *say = counts.total > 1 && !m->report->headline ? shk_node_counts_say(&counts) : NULL;
    if (say) {
        shk_strbuf_printf(m->out, "\n%s%s", say, counts.failing ? ": " : "");
        if (counts.failing)
            md_code(m, counts.failing);
        shk_strbuf_putc(m->out, '\n');
    }
    free(say);
    shk_node_counts_free(&counts);
}

static void md_verdict(const struct md *m)
{
    if (m->report->headline) {
        shk_strbuf_puts(m->out, "**shakedown diagnosis:** ");
        md_text(m, m->report->headline);
    } else {
        shk_strbuf_printf(m->out, "**shakedown: %s** on ", shk_model_word(m->model->verdict));
        md_code(m, m->model->where);
        shk_strbuf_puts(m->out, ": ");
        shk_model_counts(m->out, m->report->coverage.verdicts);
    }
    if (m->report->profile) {
        shk_strbuf_puts(m->out, "; profile ");
        md_code(m, m->report->profile);
    }
    if (m->report->elapsed_s >= 0)
        shk_strbuf_printf(m->out, "; %.1f s", m->report->elapsed_s);
    shk_strbuf_puts(m->out, "\n");
    md_nodes(m);
    md_machine(m);
    if (m->report->interrupted)
        shk_strbuf_printf(m->out, "\n**" SHK_MODEL_INTERRUPTED "**\n", m->report->interrupted);
}

/* Which nodes, of several. */
static void md_cause_nodes(const struct md *m, size_t number)
{
    char *names = NULL;
    size_t count = 0;
    if (m->report->nodes <= 1 && !strchr(m->model->where, '['))
        return;
    m->out->failed |= shk_cause_nodes(m->model, number, &names, &count) != 0;
    if (names) {
        shk_strbuf_printf(m->out, "On %zu node%s: ", count, count == 1 ? "" : "s");
        md_code(m, names);
        shk_strbuf_puts(m->out, "\n\n");
    }
    free(names);
}

static void md_cause(const struct md *m, size_t number, size_t place)
{
    const struct shk_diagnosis_row *row = &m->report->diagnoses->rows[number - 1];
    size_t lines = 0;
    struct shk_strbuf who = SHK_STRBUF_INIT, below = SHK_STRBUF_INIT;
    shk_strbuf_printf(m->out, "\n### %zu. ", place);
    md_text(m, row->title);
    shk_strbuf_puts(m->out, "\n\n");
    shk_model_who(&who, row);
    if (who.len) {
        shk_strbuf_puts(m->out, "*");
        md_text(m, shk_strbuf_text(&who));
        shk_strbuf_puts(m->out, "*\n\n");
    }
    md_cause_nodes(m, number);
    md_text(m, row->explanation);
    shk_strbuf_puts(m->out, "\n\n");
    for (; row->evidence && row->evidence[lines]; lines++) {
        if (lines >= m->level->evidence)
            continue;
        shk_strbuf_puts(m->out, "- ");
        md_text(m, row->evidence[lines]);
        shk_strbuf_putc(m->out, '\n');
    }
    md_left_out(m, lines > m->level->evidence ? lines - m->level->evidence : 0, "lines");
    if (lines && (row->fix || row->advice))
        shk_strbuf_putc(m->out, '\n');
    if (row->fix)
        md_fix(m, row->fix);
    if (row->advice) {
        shk_strbuf_puts(m->out, "Advice: ");
        md_text(m, row->advice);
        shk_strbuf_puts(m->out, "\n\n");
    }
    if (shk_cause_below(m->model, number, &below)) {
        shk_strbuf_puts(m->out, "Less likely: ");
        md_text(m, shk_strbuf_text(&below));
        shk_strbuf_puts(m->out, "\n\n");
    }
    m->out->failed |= who.failed || below.failed;
    shk_strbuf_free(&who);
    shk_strbuf_free(&below);
}

static void md_causes(const struct md *m)
{
    const struct shk_diagnoses *list = m->report->diagnoses;
    size_t count = list ? list->count : 0, place = 0;
    if (count)
        shk_strbuf_printf(m->out, "\n## Root cause%s\n", count == 1 ? "" : "s");
    for (size_t i = 0; i < count && i < m->level->causes; i++)
        if (shk_cause_is_open(&list->rows[i]))
            md_cause(m, i + 1, ++place);
    md_left_out(m, count > m->level->causes ? count - m->level->causes : 0, "root causes");
}

static const struct shk_column md_columns[] = {
    {.title = "verdict"},
    {.title = "family"},
    {.title = "setting", .code = true},
    {.title = "observed", .code = true},
    {.title = "verified"},
    {.title = "why, expected, fix, advice"},
};

static unsigned md_kind(const struct shk_finding *row)
{
    switch (row->verdict) {
    case SHK_FAIL:
    case SHK_WARN: return MD_BAD;
    case SHK_UNKNOWN: return MD_UNKNOWN;
    case SHK_NOTE: return MD_NOTE;
    default: return MD_GOOD;
    }
}

/* A fix that is too long is left out, never cut. */
static bool md_fits(const struct md *m, const char *fix)
{
    return strlen(fix) <= (m->level->clip > MD_FIX ? m->level->clip : MD_FIX);
}

static void md_remedy(const struct md *m, struct shk_table *table, const struct shk_finding *row)
{
    bool bad = md_kind(row) == MD_BAD;
    if (row->fix && md_fits(m, row->fix))
        shk_table_note(table, SHK_ROLE_FIX, bad ? "fix " : "optional ", SHK_TABLE_COMMAND,
                       row->fix);
    else if (row->fix)
        shk_table_note(table, SHK_ROLE_PLAIN, "fix: ", SHK_TABLE_WORDS, MD_LONG);
    if (row->advice)
        shk_table_note(table, SHK_ROLE_PLAIN, "advice: ", SHK_TABLE_WORDS, row->advice);
}

static void md_row(const struct md *m, struct shk_table *table, const struct shk_finding *row)
{
    shk_table_row(table);
    shk_table_text(table, SHK_ROLE_PLAIN, shk_model_word(row->verdict));
    shk_table_text(table, SHK_ROLE_PLAIN, row->family);
    shk_table_text(table, SHK_ROLE_PLAIN, row->setting);
    shk_table_text(table, SHK_ROLE_PLAIN, row->observed);
    shk_table_text(table, SHK_ROLE_PLAIN,
                   row->verdict == SHK_NA ? "" : shk_model_evidence(row->evidence));
    shk_table_text(table, SHK_ROLE_PLAIN, row->why ? row->why : "");
    if (row->expected)
        shk_table_note(table, SHK_ROLE_PLAIN, "expected ", SHK_TABLE_CODE, row->expected);
    if (md_kind(row) & (MD_BAD | MD_NOTE))
        md_remedy(m, table, row);
    if (row->nodes && m->report->nodes > 1) {
        struct shk_strbuf nodes = SHK_STRBUF_INIT;
        size_t count = 0;
        while (row->nodes[count])
            count++;
        shk_nodefold(&nodes, (const char *const *)row->nodes, count);
        shk_table_note(table, SHK_ROLE_DIM, "on ", SHK_TABLE_CODE, shk_strbuf_text(&nodes));
        shk_strbuf_free(&nodes);
    }
}

/* Rows of the wanted kinds, `max` at most. Returns how many were left out. */
static size_t md_rows(const struct md *m, unsigned kinds, size_t max)
{
    size_t left_out = 0, total = m->report->findings ? shk_findings_count(m->report->findings) : 0;
    struct shk_table *table = shk_table_create(md_columns, sizeof md_columns / sizeof *md_columns);
    if (!table) {
        m->out->failed = true;
        return 0;
    }
    for (size_t i = 0; i < total; i++) {
        const struct shk_finding *row = shk_findings_at(m->report->findings, i);
        bool told = kinds == MD_BAD && row->verdict == SHK_FAIL && shk_model_cause(m->report, row);
        if (!(md_kind(row) & kinds) || row->verdict == SHK_NA || told)
            continue;
        if (shk_table_rows(table) < max)
            md_row(m, table, row);
        else
            left_out++;
    }
    if (shk_table_rows(table))
        shk_table_md(table, m->level->clip, m->out);
    shk_table_destroy(table);
    return left_out;
}

static void md_bad_rows(const struct md *m)
{
    const unsigned *v = m->report->coverage.verdicts;
    if (!(v[SHK_FAIL] + v[SHK_WARN]))
        return;
    bool other = false;
    for (size_t i = 0; !other && i < shk_findings_count(m->report->findings); i++) {
        const struct shk_finding *row = shk_findings_at(m->report->findings, i);
        other = row->verdict == SHK_WARN ||
                (row->verdict == SHK_FAIL && !shk_model_cause(m->report, row));
    }
    if (!other)
        return;
    shk_strbuf_puts(m->out, "\n## Other settings that failed or warned\n\n");
    md_left_out(m, md_rows(m, MD_BAD, m->level->rows), "rows");
}

/* One line that unfolds to the rows, where there is room for them. */
static void md_notes(const struct md *m)
{
    struct shk_strbuf line = SHK_STRBUF_INIT;
    bool rows = m->level->matrix;
    if (shk_model_notes(&line, m->report)) {
        if (rows)
            shk_strbuf_printf(m->out, "\n<details%s><summary>", m->verbose ? " open" : "");
        else
            shk_strbuf_putc(m->out, '\n');
        md_text(m, shk_strbuf_text(&line));
        shk_strbuf_puts(m->out, rows ? "</summary>\n\n" : "\n");
    }
    if (line.len && rows) {
        md_left_out(m, md_rows(m, MD_NOTE, m->level->rows), "notes");
        md_details_end(m);
    }
    m->out->failed |= line.failed;
    shk_strbuf_free(&line);
}

static void md_matrix(const struct md *m)
{
    const unsigned *v = m->report->coverage.verdicts;
    if (!m->level->matrix || !m->model->groups_count)
        return;
    md_details(m, m->level->passes ? "Matrix: all settings that apply"
                                   : "Matrix: settings without a verdict");
    unsigned kinds = m->level->passes ? MD_BAD | MD_UNKNOWN | MD_NOTE | MD_GOOD : MD_UNKNOWN;
    md_left_out(m, md_rows(m, kinds, SIZE_MAX), "rows");
    if (!m->level->passes)
        md_left_out(m, v[SHK_PASS], "rows (passed)");
    md_details_end(m);
}

static void md_coverage(const struct md *m)
{
    shk_strbuf_puts(m->out, "\n**Coverage:** ");
    shk_model_coverage(m->out, &m->report->coverage);
    shk_strbuf_puts(m->out, "\n");
}

static void md_gaps(const struct md *m)
{
    if (!m->model->gaps_count || !m->level->gaps)
        return;
    md_details(m, "Not covered, and why");
    for (size_t g = 0; g < m->model->gaps_count; g++) {
        const struct shk_group *gap = &m->model->gaps[g];
        shk_strbuf_puts(m->out, "- ");
        md_text(m, gap->title);
        shk_strbuf_puts(m->out, ": ");
        for (size_t i = 0; i < gap->count; i++) {
            shk_strbuf_puts(m->out, i ? ", " : "");
            md_code(m, gap->rows[i]->setting);
        }
        shk_strbuf_putc(m->out, '\n');
    }
    md_details_end(m);
}

/* Every transport in one table; what each measured is folded below. */
static void md_transports(const struct md *m)
{
    struct shk_runs_table runs;
    if (shk_runs_table(&runs, m->model)) {
        m->out->failed = true;
        return;
    }
    if (runs.table && shk_table_rows(runs.table)) {
        shk_strbuf_putc(m->out, '\n');
        shk_table_md(runs.table, m->level->clip, m->out);
    }
    shk_runs_table_free(&runs);
}

static void md_run(const struct md *m, const struct shk_run *run)
{
    struct shk_strbuf title = SHK_STRBUF_INIT, summary = SHK_STRBUF_INIT;
    const char *library = shk_run_text(run, "library"), *version = shk_run_text(run, "version");
    const char *reason = shk_run_text(run, "reason");
    shk_run_title(&title, run);
    shk_run_summary(&summary, run);
    shk_strbuf_putc(m->out, '\n');
    md_text(m, shk_strbuf_text(&title));
    shk_strbuf_puts(m->out, ", on ");
    md_code(m, run->node);
    if (library) {
        shk_strbuf_puts(m->out, ", library ");
        md_code(m, library);
        shk_strbuf_puts(m->out, version ? " " : "");
        md_text(m, version);
    }
    if (strcmp(run->status, "na") == 0) {
        shk_strbuf_puts(m->out, ": ");
        md_text(m, reason);
    } else if (!shk_run_ok(run)) {
        shk_strbuf_puts(m->out, "<br>**");
        md_text(m, run->status);
        shk_strbuf_puts(m->out, "** ");
        md_text(m, reason);
    }
    shk_strbuf_puts(m->out, summary.len ? "<br>" : "");
    md_text(m, shk_strbuf_text(&summary));
    shk_strbuf_putc(m->out, '\n');
    struct shk_table *table = shk_run_table(run, 0);
    if (!table)
        m->out->failed = true;
    if (table && shk_table_rows(table)) {
        md_details(m, "All sizes");
        shk_table_md(table, m->level->clip, m->out);
        md_details_end(m);
    }
    shk_table_destroy(table);
    m->out->failed |= title.failed || summary.failed;
    shk_strbuf_free(&title);
    shk_strbuf_free(&summary);
}

static void md_runs(const struct md *m)
{
    size_t count = m->model->runs_count;
    shk_strbuf_puts(m->out, "\n## Collectives\n");
    if (!count)
        shk_strbuf_puts(m->out, "\nNone was run.\n");
    md_transports(m);
    for (size_t i = 0; i < count && i < m->level->runs; i++)
        md_run(m, &m->model->runs[i]);
    md_left_out(m, count > m->level->runs ? count - m->level->runs : 0, "runs");
}

static void md_environment(const struct md *m)
{
    struct shk_table *table = m->level->environment ? shk_environment_table(m->model) : NULL;
    if (!m->level->environment)
        return;
    if (!table) {
        m->out->failed = true;
        return;
    }
    md_details(m, "Environment and versions");
    if (shk_table_rows(table))
        shk_table_md(table, m->level->clip, m->out);
    else
        shk_strbuf_puts(m->out, "Not recorded in the facts.\n");
    md_details_end(m);
    shk_table_destroy(table);
}

static void md_reproduce(const struct md *m)
{
    shk_strbuf_puts(m->out, "\n## How to reproduce\n\n");
    struct shk_strbuf command = SHK_STRBUF_INIT;
    shk_text_clip(&command, m->report->command ? m->report->command : "shakedown", MD_COMMAND, 0);
    md_block(m, "sh", shk_strbuf_text(&command));
    m->out->failed |= command.failed;
    shk_strbuf_free(&command);
    if (m->report->version) {
        shk_strbuf_puts(m->out, "\nshakedown ");
        md_text(m, m->report->version);
        shk_strbuf_putc(m->out, '\n');
    }
    if (m->report->profile_why && *m->report->profile_why) {
        shk_strbuf_puts(m->out, "\nProfile: ");
        md_text(m, m->report->profile_why);
        shk_strbuf_putc(m->out, '\n');
    }
}

static void md_sections(const struct md *m)
{
    md_verdict(m);
    md_causes(m);
    md_coverage(m);
    md_bad_rows(m);
    md_notes(m);
    md_runs(m);
    md_matrix(m);
    md_gaps(m);
    md_environment(m);
    md_reproduce(m);
}

static int md_render(const struct shk_report *report, const struct shk_report_options *options,
                     FILE *out)
{
    size_t limit = options->limit ? options->limit : MD_LIMIT;
    size_t levels = sizeof md_levels / sizeof *md_levels;
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_model *model = shk_model_create(report, options);
    if (!model)
        return -ENOMEM;
    for (size_t i = 0; i < levels; i++) {
        struct md m = {.model = model,
                       .report = model->report,
                       .level = &md_levels[i],
                       .verbose = options->verbose,
                       .out = &text};
        shk_strbuf_free(&text);
        md_sections(&m);
        if (text.len <= limit)
            break;
    }
    int rc = shk_format_write(&text, out);
    shk_strbuf_free(&text);
    shk_model_destroy(model);
    return rc;
}

const struct shk_format shk_format_md = {
    .name = "md",
    .extension = ".md",
    .doc = "markdown for tickets, safe to paste",
    .render = md_render,
};
