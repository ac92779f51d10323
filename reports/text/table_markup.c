#include "reports/text/escape.h"
#include "reports/text/table_private.h"
#include "reports/text/utf8.h"

#include <limits.h>
#include <string.h>

enum { MARKUP_WHOLE = INT_MAX };

typedef void (*markup_escape_fn)(struct shk_strbuf *out, const char *s);

/* Each line of text, cut and escaped, with `between` before all but the first. */
static void markup_lines(struct shk_strbuf *out, markup_escape_fn escape, unsigned clip,
                         const char *text, const char *between)
{
    struct shk_strbuf cut = SHK_STRBUF_INIT;
    shk_text_clip_lines(&cut, text, clip, 0);
    out->failed |= cut.failed;
    const char *sep = "";
    for (char *line = cut.data, *end; line && !cut.failed; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        shk_strbuf_puts(out, sep);
        escape(out, line);
        sep = between;
    }
    shk_strbuf_free(&cut);
}

static void markup_md_cell(const struct shk_column *column, const struct table_cell *cell,
                           unsigned clip, struct shk_strbuf *out)
{
    if (!cell->text)
        shk_strbuf_puts(out, "\xE2\x80\x93");
    else
        markup_lines(out, column->code ? shk_escape_md_code : shk_escape_md, clip, cell->text,
                     "<br>");
}

static void markup_md_notes(const struct table_row *row, bool empty, unsigned clip,
                            struct shk_strbuf *out)
{
    for (size_t n = 0; n < row->notes_count; n++) {
        const struct table_note *note = &row->notes[n];
        shk_strbuf_puts(out, n == 0 && empty ? "" : "<br>");
        shk_strbuf_puts(out, note->lead);
        markup_lines(out, note->kind ? shk_escape_md_code : shk_escape_md,
                     note->kind == SHK_TABLE_COMMAND ? MARKUP_WHOLE : clip, note->text, "<br>");
    }
}

static void markup_md_row(const struct shk_table *t, const struct table_row *row, unsigned clip,
                          struct shk_strbuf *out)
{
    for (size_t c = 0; c < t->columns_count; c++) {
        const struct table_cell *cell = c < row->cells_count ? &row->cells[c] : NULL;
        shk_strbuf_puts(out, "| ");
        if (cell)
            markup_md_cell(&t->columns[c], cell, clip, out);
        if (c + 1 == t->columns_count)
            markup_md_notes(row, !cell || !*shk_table_cell_text(cell), clip, out);
        shk_strbuf_putc(out, ' ');
    }
    shk_strbuf_puts(out, "|\n");
}

void shk_table_md(const struct shk_table *table, unsigned clip, struct shk_strbuf *out)
{
    if (table->failed)
        out->failed = true;
    for (size_t c = 0; c < table->columns_count; c++) {
        const struct shk_column *col = &table->columns[c];
        shk_strbuf_printf(out, "| %s%s%s ", col->title, col->unit ? " " : "",
                          col->unit ? col->unit : "");
    }
    shk_strbuf_puts(out, "|\n");
    for (size_t c = 0; c < table->columns_count; c++)
        shk_strbuf_puts(out, table->columns[c].right ? "|---:" : "|---");
    shk_strbuf_puts(out, "|\n");
    for (size_t r = 0; r < table->rows_count; r++)
        markup_md_row(table, &table->rows[r], clip, out);
}

static const char *const markup_class[SHK_ROLE_COUNT] = {
    [SHK_ROLE_PLAIN] = "",    [SHK_ROLE_TITLE] = "title",     [SHK_ROLE_DIM] = "dim",
    [SHK_ROLE_FIX] = "fix",   [SHK_ROLE_PASS] = "pass",       [SHK_ROLE_WARN] = "warn",
    [SHK_ROLE_FAIL] = "fail", [SHK_ROLE_UNKNOWN] = "unknown", [SHK_ROLE_NA] = "na",
    [SHK_ROLE_NOTE] = "note",
};

static void markup_html_notes(const struct table_row *row, unsigned clip, struct shk_strbuf *out)
{
    for (size_t n = 0; n < row->notes_count; n++) {
        const char *tag = row->notes[n].kind ? "code" : "span";
        shk_strbuf_printf(out, "<div class=\"note %s\"><%s>", markup_class[row->notes[n].role],
                          tag);
        shk_escape_html(out, row->notes[n].kind ? "" : row->notes[n].lead);
        markup_lines(out, shk_escape_html,
                     row->notes[n].kind == SHK_TABLE_COMMAND ? MARKUP_WHOLE : clip,
                     row->notes[n].text, "\n");
        shk_strbuf_printf(out, "</%s></div>", tag);
    }
}

static void markup_html_row(const struct shk_table *t, const struct table_row *row, unsigned clip,
                            struct shk_strbuf *out)
{
    shk_strbuf_puts(out, row->heading ? "<tr class=\"heading\">" : "<tr>");
    for (size_t c = 0; c < row->cells_count; c++) {
        const struct table_cell *cell = &row->cells[c];
        const struct shk_column *col = &t->columns[c];
        bool last = c + 1 == row->cells_count, code = col->code && cell->text && *cell->text;
        shk_strbuf_printf(out, "<td class=\"%s%s\"", markup_class[cell->role],
                          col->right ? " num" : "");
        if (last && c + 1 < t->columns_count)
            shk_strbuf_printf(out, " colspan=\"%zu\"", t->columns_count - c);
        shk_strbuf_puts(out, code ? "><code>" : ">");
        markup_lines(out, shk_escape_html, clip, cell->text ? cell->text : "\xE2\x80\x93", "\n");
        shk_strbuf_puts(out, code ? "</code>" : "");
        if (last)
            markup_html_notes(row, clip, out);
        shk_strbuf_puts(out, "</td>");
    }
    shk_strbuf_puts(out, "</tr>\n");
}

void shk_table_html(const struct shk_table *table, const char *css_class, unsigned clip,
                    struct shk_strbuf *out)
{
    if (table->failed)
        out->failed = true;
    shk_strbuf_printf(out, "<table class=\"%s\"><thead><tr>", css_class);
    for (size_t c = 0; c < table->columns_count; c++) {
        const struct shk_column *col = &table->columns[c];
        shk_strbuf_puts(out,
                        col->right ? "<th scope=\"col\" class=\"num\">" : "<th scope=\"col\">");
        shk_escape_html(out, col->title);
        if (col->unit) {
            shk_strbuf_puts(out, "<small>");
            shk_escape_html(out, col->unit);
            shk_strbuf_puts(out, "</small>");
        }
        shk_strbuf_puts(out, "</th>");
    }
    shk_strbuf_puts(out, "</tr></thead><tbody>\n");
    for (size_t r = 0; r < table->rows_count; r++)
        markup_html_row(table, &table->rows[r], clip, out);
    shk_strbuf_puts(out, "</tbody></table>\n");
}
