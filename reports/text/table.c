#include "reports/text/table_private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shk_table *shk_table_create(const struct shk_column *columns, size_t count)
{
    struct shk_table *table = calloc(1, sizeof *table);
    if (table) {
        table->columns = columns;
        table->columns_count = count;
    }
    return table;
}

void shk_table_destroy(struct shk_table *table)
{
    if (!table)
        return;
    for (size_t r = 0; r < table->rows_count; r++) {
        struct table_row *row = &table->rows[r];
        for (size_t c = 0; c < row->cells_count; c++)
            free(row->cells[c].text);
        for (size_t n = 0; n < row->notes_count; n++)
            free(row->notes[n].text);
        free(row->cells);
        free(row->notes);
    }
    free(table->rows);
    free(table);
}

void shk_table_row(struct shk_table *table)
{
    if (table->failed)
        return;
    if (table->rows_count == table->rows_cap) {
        size_t cap = table->rows_cap ? 2 * table->rows_cap : 32;
        struct table_row *rows = realloc(table->rows, cap * sizeof *rows);
        if (!rows) {
            table->failed = true;
            return;
        }
        table->rows = rows;
        table->rows_cap = cap;
    }
    struct table_row *row = &table->rows[table->rows_count];
    *row = (struct table_row){.cells = calloc(table->columns_count, sizeof *row->cells)};
    if (!row->cells) {
        table->failed = true;
        return;
    }
    table->rows_count++;
}

/* Next free cell of the current row, NULL when the row is full or memory is short. */
static struct table_cell *table_cell(struct shk_table *table)
{
    if (table->failed || !table->rows_count)
        return NULL;
    struct table_row *row = &table->rows[table->rows_count - 1];
    if (row->cells_count == table->columns_count)
        return NULL;
    return &row->cells[row->cells_count++];
}

static void table_put(struct shk_table *table, enum shk_role role, const char *text, bool span)
{
    struct table_cell *cell = table_cell(table);
    if (!cell)
        return;
    cell->role = role;
    cell->span = span;
    cell->text = text ? strdup(text) : NULL;
    if (text && !cell->text)
        table->failed = true;
}

void shk_table_text(struct shk_table *table, enum shk_role role, const char *text)
{
    table_put(table, role, text, false);
}

void shk_table_number(struct shk_table *table, double value, unsigned digits)
{
    char text[64];
    bool huge = !(fabs(value) < 1e15); /* more digits than a double knows */
    snprintf(text, sizeof text, huge ? "%.*e" : "%.*f", (int)(digits > 9 ? 9 : digits), value);
    table_put(table, SHK_ROLE_PLAIN, isfinite(value) ? text : NULL, false);
}

void shk_table_heading(struct shk_table *table, const char *text)
{
    shk_table_row(table);
    table_put(table, SHK_ROLE_TITLE, text, true);
    if (!table->failed)
        table->rows[table->rows_count - 1].heading = true;
}

void shk_table_note(struct shk_table *table, enum shk_role role, const char *lead,
                    enum shk_table_kind kind, const char *text)
{
    if (table->failed || !table->rows_count)
        return;
    struct table_row *row = &table->rows[table->rows_count - 1];
    struct table_note *notes = realloc(row->notes, (row->notes_count + 1) * sizeof *notes);
    char *copy = strdup(text);
    if (notes)
        row->notes = notes;
    if (!notes || !copy) {
        free(copy);
        table->failed = true;
        return;
    }
    row->notes[row->notes_count++] =
        (struct table_note){.text = copy, .lead = lead, .role = role, .kind = kind};
}

size_t shk_table_rows(const struct shk_table *table)
{
    return table->rows_count;
}

int shk_table_status(const struct shk_table *table)
{
    return table->failed ? -ENOMEM : 0;
}

const char *shk_table_cell_text(const struct table_cell *cell)
{
    return cell->text ? cell->text : "-";
}
