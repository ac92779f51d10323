/* `shakedown diff`: what differs between two sets of nodes, for a terminal, a ticket or a program.
 */
#ifndef SHK_REPORTS_DIFF_H
#define SHK_REPORTS_DIFF_H

#include "core/facts/factdiff.h"
#include "reports/report.h"

struct shk_diff_input {
    const char *version;         /* of shakedown */
    const char *command;         /* command line as typed */
    const char *name_a, *name_b; /* as the user calls the two sides: paths */
    const struct shk_facts *const *a, *const *b;
    size_t nodes_a, nodes_b;
    const struct shk_diff_rule *rules;
    size_t rules_count;
    bool all; /* set nothing aside */
};

/* term, md, json. */
const struct shk_form *shk_diff_forms(size_t *count_p);

/* Compares and writes; secrets and, if asked for, names are taken out before. *found_p: there is a
 * difference, or a node without a partner. Returns 0 or a negative errno. */
int shk_diff_report(const struct shk_diff_input *input, const struct shk_form *form,
                    const struct shk_report_options *options, FILE *out, bool *found_p);

#endif
