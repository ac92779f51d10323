/* Rows about what a collective measured across nodes: one for each transport that has the fact, and
 * for each that should have it. */
#ifndef SHK_CHECKS_ACROSS_H
#define SHK_CHECKS_ACROSS_H

#include "checks/base/read.h"

struct shk_across {
    const struct shk_check *check;
    const char *member;  /* "counters": the fact is collective.<transport>.counters */
    const char *setting; /* "packet loss": the row is "packet loss (<transport>)" */
    unsigned nodes;      /* with fewer nodes there is no such fact */
    const char *only;    /* transport; NULL: every one across nodes that was not n/a */
    bool ok;             /* only after a collective that passed */
    /* Judges `row`, and ends it. `key` is the fact's. */
    void (*judge)(struct shk_row *row, struct shk_findings *findings, const char *key);
};

void shk_across_eval(const struct shk_across *across, const struct shk_check_context *ctx,
                     struct shk_findings *findings);

#endif
