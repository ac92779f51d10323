/* The matrix: what needs attention in full, what passed in one line per family and evidence. */
#include "reports/model/nodefold.h"
#include "reports/term/term_private.h"
#include "reports/text/utf8.h"

#include <stdio.h>
#include <string.h>

#define TERM_GLUE "\xC2\xA0"

/* Passes named in one line; the rest is counted, --verbose shows them. */
enum { MATRIX_VALUE_CLIP = 28, MATRIX_NAME_CLIP = 56, MATRIX_PASSES = 8 };

static const struct shk_column term_matrix_columns[] = {
    {.title = ""},
    {.title = "setting", .max = 40},
    {.title = "observed", .max = 60, .flexible = true},
    {.title = "verified"},
};

/* The nodes of a row, unless it speaks of all of them. */
static void term_nodes(const struct term *t, const struct shk_finding *row, struct shk_strbuf *out)
{
    size_t count = 0;
    while (row->nodes && row->nodes[count])
        count++;
    if (count && count < t->report->nodes)
        shk_nodefold(out, (const char *const *)row->nodes, count);
}

static void term_row_notes(const struct term *t, struct shk_table *table,
                           const struct shk_finding *row)
{
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
    size_t cause = shk_model_cause(t->report, row);
    const char *cause_fix = cause ? t->report->diagnoses->rows[cause - 1].fix : NULL;
    if (row->why && (bad || row->verdict == SHK_UNKNOWN || t->verbose))
        shk_table_note(table, SHK_ROLE_PLAIN, "", false, row->why);
    if (row->expected && (bad || t->verbose))
        shk_table_note(table, SHK_ROLE_PLAIN, "expected ", false, row->expected);
    struct shk_strbuf nodes = SHK_STRBUF_INIT;
    term_nodes(t, row, &nodes);
    if (nodes.len)
        shk_table_note(table, SHK_ROLE_DIM, "on ", false, shk_strbuf_text(&nodes));
    t->out->failed |= nodes.failed;
    shk_strbuf_free(&nodes);
    if (row->verdict == SHK_NOTE && row->fix)
        shk_table_note(table, SHK_ROLE_DIM, "optional: ", true, row->fix);
    if (bad && row->fix && !(cause_fix && strstr(cause_fix, row->fix)))
        shk_table_note(table, SHK_ROLE_FIX, shk_term_arrow(t), true, row->fix);
    else if (bad && cause) {
        char text[64];
        snprintf(text, sizeof text, "fix of root cause %zu", cause);
        shk_table_note(table, SHK_ROLE_DIM, shk_term_arrow(t), false, text);
    }
}

static void term_row(const struct term *t, struct shk_table *table, const struct shk_finding *row)
{
    char mark[32];
    snprintf(mark, sizeof mark, "%s %s",
             shk_style_sign(t->style, shk_style_verdict_sign(row->verdict)),
             shk_style_verdict_word(row->verdict));
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
    shk_table_row(table);
    shk_table_text(table, shk_style_role(row->verdict), mark);
    shk_table_text(table, bad ? SHK_ROLE_TITLE : SHK_ROLE_PLAIN, row->setting);
    shk_table_text(table, SHK_ROLE_PLAIN, row->observed);
    shk_table_text(table, SHK_ROLE_DIM,
                   row->verdict == SHK_NA ? "" : shk_model_evidence(row->evidence));
    term_row_notes(t, table, row);
}

/* Text whose words stay on one line: a no-break space is printed as a plain one. */
static void term_glue(struct shk_strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == ' ')
            shk_strbuf_puts(out, TERM_GLUE);
        else
            shk_strbuf_putc(out, *text);
    }
}

/* "NAME: value", and the nodes when they are not all. */
static void term_pass(const struct term *t, const struct shk_finding *row, struct shk_strbuf *out)
{
    unsigned flags = t->style.unicode ? 0 : SHK_CLEAN_ASCII;
    struct shk_strbuf item = SHK_STRBUF_INIT, nodes = SHK_STRBUF_INIT;
    shk_text_clip(&item, row->setting, MATRIX_NAME_CLIP, flags);
    if (row->observed && *row->observed) {
        shk_strbuf_puts(&item, ": ");
        shk_text_clip(&item, row->observed, MATRIX_VALUE_CLIP, flags);
    }
    term_nodes(t, row, &nodes);
    if (nodes.len) {
        shk_strbuf_puts(&item, " on ");
        shk_text_clip(&item, shk_strbuf_text(&nodes), MATRIX_VALUE_CLIP, flags);
    }
    term_glue(out, shk_strbuf_text(&item));
    out->failed |= item.failed || nodes.failed;
    shk_strbuf_free(&item);
    shk_strbuf_free(&nodes);
}

/* "3 tested  NAME: value · …": the passes of one family with the same evidence; nothing when none.
 */
static void term_passes(const struct term *t, const struct shk_group *group,
                        enum shk_evidence evidence, struct shk_strbuf *out)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    unsigned count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct shk_finding *row = group->rows[i];
        if (row->verdict != SHK_PASS || row->evidence != evidence || count++ >= MATRIX_PASSES)
            continue;
        if (count > 1)
            shk_strbuf_printf(&names, "%s%s ", TERM_GLUE, shk_style_sign(t->style, SHK_SIGN_DOT));
        term_pass(t, row, &names);
    }
    if (count > MATRIX_PASSES)
        shk_strbuf_printf(&names, "%s%s %u" TERM_GLUE "more", TERM_GLUE,
                          shk_style_sign(t->style, SHK_SIGN_DOT), count - MATRIX_PASSES);
    if (count)
        shk_strbuf_printf(out, "%u" TERM_GLUE "%s  %s", count, shk_model_evidence(evidence),
                          shk_strbuf_text(&names));
    out->failed |= names.failed;
    shk_strbuf_free(&names);
}

/* What passed in a family: one row for each kind of evidence, `head` in the first. */
static void term_pass_rows(const struct term *t, struct shk_table *table,
                           const struct shk_group *group, const char *head)
{
    char mark[32];
    snprintf(mark, sizeof mark, "%s pass", shk_style_sign(t->style, SHK_SIGN_PASS));
    for (int e = 0; e < SHK_EVIDENCE_COUNT; e++) {
        struct shk_strbuf text = SHK_STRBUF_INIT;
        term_passes(t, group, (enum shk_evidence)e, &text);
        if (text.len) {
            shk_table_row(table);
            shk_table_text(table, SHK_ROLE_PASS, mark);
            if (*head)
                shk_table_text(table, SHK_ROLE_PLAIN, head);
            shk_table_span(table, SHK_ROLE_DIM, shk_strbuf_text(&text));
            mark[0] = '\0';
            head = *head ? " " : "";
        }
        t->out->failed |= text.failed;
        shk_strbuf_free(&text);
    }
}

static bool term_is_shown(const struct term *t, const struct shk_finding *row)
{
    switch (row->verdict) {
    case SHK_FAIL:
    case SHK_WARN: return true;
    case SHK_UNKNOWN: return !shk_model_is_gap(row) || row->required;
    default: return t->verbose;
    }
}

static bool term_group_is_shown(const struct term *t, const struct shk_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        if (term_is_shown(t, group->rows[i]))
            return true;
    return false;
}

/* Families with something to look at come first, row by row. */
static void term_open_groups(const struct term *t, struct shk_table *table)
{
    for (size_t g = 0; g < t->model->groups_count; g++) {
        const struct shk_group *group = &t->model->groups[g];
        if (!term_group_is_shown(t, group))
            continue;
        shk_table_heading(table, group->title);
        for (size_t i = 0; i < group->count; i++)
            if (term_is_shown(t, group->rows[i]))
                term_row(t, table, group->rows[i]);
        if (!t->verbose)
            term_pass_rows(t, table, group, "");
    }
}

/* Then a line for each family in which everything that was judged passed. */
static void term_good_groups(const struct term *t, struct shk_table *table)
{
    bool first = true;
    for (size_t g = 0; g < t->model->groups_count; g++) {
        const struct shk_group *group = &t->model->groups[g];
        if (term_group_is_shown(t, group) || !group->verdicts[SHK_PASS])
            continue;
        if (first)
            shk_table_heading(table, "all passed");
        first = false;
        term_pass_rows(t, table, group, group->title);
    }
}

static void term_not_applicable(const struct term *t, struct shk_table *table)
{
    struct shk_strbuf names = SHK_STRBUF_INIT;
    unsigned count = 0;
    for (size_t g = 0; g < t->model->groups_count; g++) {
        const struct shk_group *group = &t->model->groups[g];
        if (group->verdicts[SHK_NA])
            shk_strbuf_printf(&names, "%s%s %u", count ? ", " : "", group->title,
                              group->verdicts[SHK_NA]);
        count += group->verdicts[SHK_NA];
    }
    if (count) {
        char mark[32];
        snprintf(mark, sizeof mark, "%s n/a", shk_style_sign(t->style, SHK_SIGN_NA));
        shk_table_heading(table, "not applicable here");
        shk_table_row(table);
        shk_table_text(table, SHK_ROLE_NA, mark);
        shk_table_span(table, SHK_ROLE_DIM, shk_strbuf_text(&names));
    }
    t->out->failed |= names.failed;
    shk_strbuf_free(&names);
}

void shk_term_matrix(const struct term *t)
{
    struct shk_table *table = shk_table_create(
        term_matrix_columns, sizeof term_matrix_columns / sizeof *term_matrix_columns);
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .indent = 2, .note_column = 1, .clip = TERM_CLIP};
    if (!table) {
        t->out->failed = true;
        return;
    }
    term_open_groups(t, table);
    view.header = shk_table_rows(table) > 0;
    if (!t->verbose) {
        term_good_groups(t, table);
        term_not_applicable(t, table);
    }
    if (shk_table_rows(table)) {
        shk_term_title(t, "Matrix", NULL);
        shk_table_term(table, &view, t->out);
    }
    shk_table_destroy(table);
}

static const struct shk_column term_gap_columns[] = {
    {.title = "setting", .max = 40},
    {.title = "reason", .flexible = true},
};

void shk_term_gaps(const struct term *t)
{
    struct shk_table *table =
        shk_table_create(term_gap_columns, sizeof term_gap_columns / sizeof *term_gap_columns);
    struct shk_table_view view = {
        .style = t->style, .width = t->width, .indent = 2, .clip = TERM_CLIP};
    if (!table) {
        t->out->failed = true;
        return;
    }
    for (size_t g = 0; g < t->model->gaps_count; g++) {
        const struct shk_group *gap = &t->model->gaps[g];
        struct shk_strbuf names = SHK_STRBUF_INIT;
        for (size_t i = 0; i < gap->count; i++)
            shk_strbuf_printf(&names, "%s%s", i ? ", " : "", gap->rows[i]->setting);
        shk_table_row(table);
        shk_table_text(table, SHK_ROLE_PLAIN, shk_strbuf_text(&names));
        shk_table_text(table, SHK_ROLE_DIM, gap->title);
        t->out->failed |= names.failed;
        shk_strbuf_free(&names);
    }
    if (shk_table_rows(table)) {
        shk_term_title(t, "Not covered", NULL);
        shk_table_term(table, &view, t->out);
    }
    shk_table_destroy(table);
}
