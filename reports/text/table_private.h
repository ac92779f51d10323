/* Inside of a table, shared by table.c and its printers only. */
#ifndef SHK_REPORTS_TABLE_PRIVATE_H
#define SHK_REPORTS_TABLE_PRIVATE_H

#include "reports/text/table.h"

struct table_cell {
    char *text; /* NULL: unknown */
    enum shk_role role;
    bool span;
};

struct table_note {
    char *text;
    const char *lead;
    enum shk_role role;
    enum shk_table_kind kind;
};

struct table_row {
    struct table_cell *cells;
    struct table_note *notes;
    size_t cells_count, notes_count;
    bool heading;
};

struct shk_table {
    const struct shk_column *columns;
    size_t columns_count;
    struct table_row *rows;
    size_t rows_count, rows_cap;
    bool failed;
};

/* Text of a cell as shown: "-" when unknown. */
const char *shk_table_cell_text(const struct table_cell *cell);

#endif
