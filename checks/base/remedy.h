/* What to do about a row: a line that can be run (fix), words (advice). Both stand in the catalogue
 * (config/fixes/ and the `fix` and `advice` of its other rows); values of this host are put in
 * here.
 *
 * In a fix {name} is the value as one word of a shell, {name*} each of its words (separated by
 * blanks) as one, {name$} a value whose $NAME the shell expands. {name} itself is the
 * name of a variable. In advice {name} is the value as it is. A fix is left out, and the advice
 * says so, when a value is NULL, cannot be quoted (core/text/quote.h), or would begin a word with a
 * dash. */
#ifndef SHK_CHECKS_REMEDY_H
#define SHK_CHECKS_REMEDY_H

#include "checks/base/row.h"

struct shk_fix_value {
    const char *name, *value;
};

/* The row `key` of config/fixes, with pairs of name and value (strings) up to a NULL name. Replaces
 * what the row had. A key that the catalogue does not have leaves the row without. */
void shk_row_fix(struct shk_row *row, const char *key, ...) __attribute__((sentinel));

/* The same with what another row of the catalogue says; either may be NULL. */
void shk_row_remedy(struct shk_row *row, const char *fix, const char *advice);

/* Leaves the row without fix, advice and edits. */
void shk_row_no_remedy(struct shk_row *row);

/* Template to text, as above: a new string (free()), NULL when it cannot be made. */
char *shk_remedy_command(const char *fix, const struct shk_fix_value *values, size_t count);
char *shk_remedy_words(const char *advice, const struct shk_fix_value *values, size_t count);

/* What a fix made of `unset NAME…` and `export NAME=VALUE…`, joined by "; " or " && ", does to the
 * environment (core/result/finding.h has the form); NULL when it is anything else. */
json_t *shk_remedy_edits(const char *fix, const struct shk_fix_value *values, size_t count);

#endif
