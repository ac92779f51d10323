/* Every row, by family. */
#include "core/text/nodefold.h"
#include "reports/term/term_private.h"

#include <stdio.h>
#include <string.h>

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

static bool term_has_line(const char *text, const char *line)
{
    size_t len = strlen(line);
    for (const char *at = text; at && (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && (at[len] == '\n' || !at[len]))
            return true;
    return false;
}

/* What its root cause says already is not said again. */
static void term_remedy(const struct term *t, struct shk_table *table,
                        const struct shk_finding *row)
{
    size_t number = shk_model_cause(t->report, row);
    const struct shk_diagnosis_row *cause = number ? &t->report->diagnoses->rows[number - 1] : NULL;
    bool bad = row->verdict == SHK_FAIL || row->verdict == SHK_WARN;
    bool note = row->verdict == SHK_NOTE;
    if (!bad && !note)
        return;
    bool fix = row->fix && !(cause && term_has_line(cause->fix, row->fix));
    bool advice = row->advice && (!cause || !cause->advice || !strstr(cause->advice, row->advice));
    if (fix)
        shk_table_note(table, bad ? SHK_ROLE_FIX : SHK_ROLE_DIM,
                       bad ? shk_term_arrow(t) : "optional: ", SHK_TABLE_COMMAND, row->fix);
    if (advice)
        shk_table_note(table, bad ? SHK_ROLE_PLAIN : SHK_ROLE_DIM, SHK_TERM_ADVICE, SHK_TABLE_WORDS,
                       row->advice);
    if (!bad || !cause || fix || advice)
        return;
    char text[64];
    snprintf(text, sizeof text, "see root cause %zu", number);
    shk_table_note(table, SHK_ROLE_DIM, shk_term_arrow(t), SHK_TABLE_WORDS, text);
}

static void term_row_notes(const struct term *t, struct shk_table *table,
                           const struct shk_finding *row)
{
    if (row->why)
        shk_table_note(table, SHK_ROLE_PLAIN, "", SHK_TABLE_WORDS, row->why);
    if (row->expected)
        shk_table_note(table, SHK_ROLE_PLAIN, "expected ", SHK_TABLE_WORDS, row->expected);
    struct shk_strbuf nodes = SHK_STRBUF_INIT;
    term_nodes(t, row, &nodes);
    if (nodes.len)
        shk_table_note(table, SHK_ROLE_DIM, "on ", SHK_TABLE_WORDS, shk_strbuf_text(&nodes));
    t->out->failed |= nodes.failed;
    shk_strbuf_free(&nodes);
    term_remedy(t, table, row);
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

static void term_groups(const struct term *t, struct shk_table *table)
{
    for (size_t g = 0; g < t->model->groups_count; g++) {
        const struct shk_group *group = &t->model->groups[g];
        shk_table_heading(table, group->title);
        for (size_t i = 0; i < group->count; i++)
            term_row(t, table, group->rows[i]);
    }
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
    term_groups(t, table);
    view.header = shk_table_rows(table) > 0;
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
