/* Sides of a difference as text. */
#ifndef SHK_REPORTS_DIFF_TEXT_H
#define SHK_REPORTS_DIFF_TEXT_H

#include "core/text/strbuf.h"
#include <jansson.h>

/* Texts of a row of shk_diff_rows(): whole values, or of long lists that have members in common
 * only the members that the other side lacks, after "… ". */
void shk_diff_texts(const json_t *row, struct shk_strbuf *a, struct shk_strbuf *b);

/* The rows again, those that say the same of paths that differ in numbers only as one row:
 * "dev.nvidia*" with a member "alike", the number of them. New reference; NULL: out of memory. */
json_t *shk_diff_fold(const json_t *rows);

#endif
