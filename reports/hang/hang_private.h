/* What the forms of `shakedown hang` share (lines.c). Every text is raw. */
#ifndef SHK_REPORTS_HANG_PRIVATE_H
#define SHK_REPORTS_HANG_PRIVATE_H

#include "core/text/strbuf.h"
#include "reports/hang/hang.h"

#include <stdio.h>

/* Text of a member, "" when it has none. */
const char *hang_word(const json_t *object, const char *member);

/* "ranks 0-2,5" of an array of numbers; others in it (processes) as they are, of `instead` (NULL:
 * none) where there is no number. */
void hang_ranks(struct shk_strbuf *out, const json_t *ranks, const json_t *instead);

/* One line for each branch of the merged stacks, indented by two blanks for each level. */
void hang_tree_lines(struct shk_strbuf *out, const json_t *tree);

/* "main (job) > solve (job)" of the frames of a branch; the middle of many is left out. */
void hang_frames(struct shk_strbuf *out, const json_t *frames);

/* Titles of the next two. */
extern const char hang_audit_title[], hang_check_title[];

/* What is wrong or differs in the libraries and variables of the ranks: a new array of {text, fix,
 * key, verdict}. */
json_t *hang_audit_lines(const json_t *judgement);

/* What the checks of the suspect nodes came to: a new array of {text, fix, key, verdict}; of key
 * "check" for each check, "cause" and "row" below it. */
json_t *hang_check_lines(const json_t *judgement);

int hang_html(const struct shk_hang_report *report, const struct shk_report_options *options,
              FILE *out) SHK_MUST_CHECK;

/* The judgement as rows, in the format of that name (reports/report.h); `facts`: of the nodes. 0 or
 * a negative errno. */
int hang_rows(const struct shk_hang_report *report, const struct shk_facts *const *facts,
              size_t nodes, const char *form, const struct shk_report_options *options,
              FILE *out) SHK_MUST_CHECK;

#endif
