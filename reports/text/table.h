/* Tables of typed cells: one description, printed for a terminal, as markdown or as HTML.
 *
 * A table is filled row by row, cell by cell. Texts are raw and are copied; every printer cleans
 * and escapes them itself. Out of memory is remembered (shk_table_status()). */
#ifndef SHK_REPORTS_TABLE_H
#define SHK_REPORTS_TABLE_H

#include "core/text/strbuf.h"
#include "reports/text/style.h"
#include <stdbool.h>

struct shk_column {
    const char *title; /* "" for none */
    const char *unit;  /* second header line, with its parentheses; NULL */
    bool right;        /* numbers */
    bool code;         /* literal text from outside: markdown and HTML show it as code */
    bool flexible;     /* narrowed first when the terminal is too small */
    unsigned max;      /* terminal columns at most, longer text is wrapped; 0: no limit */
};

struct shk_table;

struct shk_table *shk_table_create(const struct shk_column *columns, size_t count); /* columns are
                                                                                    borrowed */
void shk_table_destroy(struct shk_table *table);

void shk_table_row(struct shk_table *table);
/* A line of its own between rows, with an empty line before it. */
void shk_table_heading(struct shk_table *table, const char *text);

/* Next cell of the row; NULL and numbers that are not finite show as "-": unknown is never 0. */
void shk_table_text(struct shk_table *table, enum shk_role role, const char *text);
void shk_table_number(struct shk_table *table, double value, unsigned digits);
enum shk_table_kind {
    SHK_TABLE_WORDS,
    SHK_TABLE_CODE,   /* set in type for code where there is one */
    SHK_TABLE_COMMAND /* a line to copy: likewise, and never broken or cut */
};

/* Lines below the row, from note_column of the view on. `lead` is printable and static; words have
 * it before their first line, the others before each. */
void shk_table_note(struct shk_table *table, enum shk_role role, const char *lead,
                    enum shk_table_kind kind, const char *text);

size_t shk_table_rows(const struct shk_table *table);
int shk_table_status(const struct shk_table *table) SHK_MUST_CHECK; /* 0 or -ENOMEM */

struct shk_table_view {
    struct shk_style style;
    unsigned width;       /* of the terminal */
    unsigned indent;      /* of every row */
    unsigned note_column; /* index of the column under which notes start */
    unsigned clip;        /* columns of a cell's or note's text at most */
    bool header;
};

void shk_table_term(const struct shk_table *table, const struct shk_table_view *view,
                    struct shk_strbuf *out);
/* Markup: texts above `clip` characters are cut as by shk_text_clip(). Notes follow the last cell,
 * each line of them on its own. css_class is ours, not escaped. */
void shk_table_md(const struct shk_table *table, unsigned clip, struct shk_strbuf *out);
void shk_table_html(const struct shk_table *table, const char *css_class, unsigned clip,
                    struct shk_strbuf *out);

#endif
