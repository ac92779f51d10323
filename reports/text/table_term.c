#include "reports/text/table_private.h"
#include "reports/text/utf8.h"
#include "reports/text/wrap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TERM_GAP = 2, TERM_LEAST = 8, TERM_COLUMNS = 40 };

struct term_layout {
    const struct shk_table *table;
    const struct shk_table_view *view;
    size_t width[TERM_COLUMNS];
    size_t at[TERM_COLUMNS]; /* first terminal column */
};

static char *term_clean(const struct shk_table_view *view, const char *text)
{
    unsigned flags = view->style.unicode ? 0 : SHK_CLEAN_ASCII;
    struct shk_strbuf out = SHK_STRBUF_INIT;
    shk_text_clip(&out, text, view->clip ? view->clip : SIZE_MAX / 2, flags);
    return shk_strbuf_take(&out);
}

static void term_widen(size_t *width, size_t w)
{
    if (w > *width)
        *width = w;
}

/* Columns that a text takes when it is wrapped at `max` (0: not at all). */
static size_t term_text_width(const char *text, unsigned max)
{
    size_t width = shk_text_width(text), widest = 0;
    if (!max || width <= max)
        return width;
    while (*text) {
        size_t skip, n = shk_wrap_line(text, max, &skip);
        struct shk_strbuf line = SHK_STRBUF_INIT;
        shk_strbuf_add(&line, text, n);
        term_widen(&widest, shk_text_width(shk_strbuf_text(&line)));
        shk_strbuf_free(&line);
        text += skip;
    }
    return widest;
}

static void term_measure(struct term_layout *l)
{
    const struct shk_table *t = l->table;
    for (size_t c = 0; c < t->columns_count && l->view->header; c++) {
        term_widen(&l->width[c], shk_text_width(t->columns[c].title));
        if (t->columns[c].unit)
            term_widen(&l->width[c], shk_text_width(t->columns[c].unit));
    }
    for (size_t r = 0; r < t->rows_count; r++) {
        const struct table_row *row = &t->rows[r];
        for (size_t c = 0; c < row->cells_count && !row->heading; c++) {
            if (row->cells[c].span)
                continue;
            char *text = term_clean(l->view, shk_table_cell_text(&row->cells[c]));
            term_widen(&l->width[c], text ? term_text_width(text, t->columns[c].max) : 0);
            free(text);
        }
    }
}

/* Takes the columns that are missing from the widest flexible column, then from any with text.
 * Numbers keep their width: a table of them is rather too wide than unreadable. */
static void term_fit(struct term_layout *l)
{
    size_t n = l->table->columns_count, total = l->view->indent + TERM_GAP * (n - 1);
    for (size_t c = 0; c < n; c++)
        total += l->width[c];
    for (int flexible = 1; flexible >= 0; flexible--) {
        while (total > l->view->width) {
            size_t widest = n;
            for (size_t c = 0; c < n; c++)
                if ((flexible ? l->table->columns[c].flexible : !l->table->columns[c].right) &&
                    l->width[c] > TERM_LEAST && (widest == n || l->width[c] > l->width[widest]))
                    widest = c;
            if (widest == n)
                break;
            l->width[widest]--;
            total--;
        }
    }
    size_t at = l->view->indent;
    for (size_t c = 0; c < n; c++) {
        l->at[c] = at;
        at += l->width[c] + TERM_GAP;
    }
}

static size_t term_room(const struct term_layout *l, const struct table_row *row, size_t c)
{
    size_t room = l->width[c];
    if (row->cells[c].span)
        room = l->view->width > l->at[c] + TERM_LEAST ? l->view->width - l->at[c] : TERM_LEAST;
    return room ? room : 1;
}

/* Prints one piece of a cell at its place; *column_p is where the line has got to. */
static void term_piece(const struct term_layout *l, const struct table_row *row, size_t c,
                       const char *text, size_t len, size_t *column_p, struct shk_strbuf *out)
{
    char *piece = strndup(text, len);
    if (!piece) {
        out->failed = true;
        return;
    }
    size_t w = shk_text_width(piece), start = l->at[c];
    if (l->table->columns[c].right && !row->cells[c].span && w < l->width[c])
        start += l->width[c] - w;
    if (start > *column_p)
        shk_wrap_pad(out, start - *column_p);
    shk_strbuf_puts(out, shk_style_on(l->view->style, row->cells[c].role));
    for (const char *p = piece; *p; p++) { /* a no-break space has done its work */
        bool glue = p[0] == '\xC2' && p[1] == '\xA0';
        shk_strbuf_putc(out, glue ? ' ' : *p);
        p += glue;
    }
    shk_strbuf_puts(out, shk_style_off(l->view->style, row->cells[c].role));
    *column_p = (start > *column_p ? start : *column_p) + w;
    free(piece);
}

static void term_cells(const struct term_layout *l, const struct table_row *row,
                       struct shk_strbuf *out)
{
    char *text[TERM_COLUMNS] = {0};
    const char *rest[TERM_COLUMNS] = {0};
    for (size_t c = 0; c < row->cells_count; c++) {
        text[c] = term_clean(l->view, shk_table_cell_text(&row->cells[c]));
        rest[c] = text[c] ? text[c] : "";
    }
    bool more = true;
    while (more) {
        size_t column = 0;
        more = false;
        for (size_t c = 0; c < row->cells_count; c++) {
            if (!*rest[c])
                continue;
            size_t skip, n = shk_wrap_line(rest[c], term_room(l, row, c), &skip);
            term_piece(l, row, c, rest[c], n, &column, out);
            rest[c] += skip;
            more |= *rest[c] != '\0';
        }
        shk_strbuf_putc(out, '\n');
    }
    for (size_t c = 0; c < row->cells_count; c++)
        free(text[c]);
}

static void term_notes(const struct term_layout *l, const struct table_row *row,
                       struct shk_strbuf *out)
{
    for (size_t n = 0; n < row->notes_count; n++) {
        const struct table_note *note = &row->notes[n];
        struct shk_wrap wrap = {
            .style = l->view->style,
            .role = note->role,
            .indent = (unsigned)l->at[l->view->note_column],
            .width = l->view->width,
            .lead = note->lead,
            .clip = l->view->clip,
            .shell = note->kind == SHK_TABLE_COMMAND,
            .block = note->kind == SHK_TABLE_WORDS,
        };
        shk_wrap_put(out, &wrap, note->text);
    }
}

static void term_header_line(const struct term_layout *l, bool units, struct shk_strbuf *out)
{
    size_t column = 0;
    bool any = false;
    for (size_t c = 0; c < l->table->columns_count; c++) {
        const struct shk_column *col = &l->table->columns[c];
        const char *text = units ? col->unit : col->title;
        if (!text || !*text)
            continue;
        size_t w = shk_text_width(text), start = l->at[c];
        if (col->right && w < l->width[c])
            start += l->width[c] - w;
        shk_wrap_pad(out, start > column ? start - column : 0);
        shk_strbuf_printf(out, "%s%s%s", shk_style_on(l->view->style, SHK_ROLE_DIM), text,
                          shk_style_off(l->view->style, SHK_ROLE_DIM));
        column = start + w;
        any = true;
    }
    if (any)
        shk_strbuf_putc(out, '\n');
}

void shk_table_term(const struct shk_table *table, const struct shk_table_view *view,
                    struct shk_strbuf *out)
{
    struct term_layout l = {.table = table, .view = view};
    if (table->failed || table->columns_count > TERM_COLUMNS) {
        out->failed = true;
        return;
    }
    term_measure(&l);
    term_fit(&l);
    if (view->header) {
        term_header_line(&l, false, out);
        term_header_line(&l, true, out);
    }
    for (size_t r = 0; r < table->rows_count; r++) {
        if (table->rows[r].heading && r)
            shk_strbuf_putc(out, '\n');
        term_cells(&l, &table->rows[r], out);
        term_notes(&l, &table->rows[r], out);
    }
}
