/* All transports in one table: a small message's time, the bus bandwidth of larger ones, and how
 * near that is to what the link can do. */
#ifndef SHK_REPORTS_RUNS_TABLE_H
#define SHK_REPORTS_RUNS_TABLE_H

#include "reports/model/model.h"

enum { RUNS_SIZES = 4 };

struct shk_runs_table {
    struct shk_table *table; /* NULL: nothing was measured */
    struct shk_column columns[RUNS_SIZES + 3];
    char titles[RUNS_SIZES + 1][48]; /* the columns point into it */
    char *idle; /* "fabric-hmem, multimem": what did not run; NULL: nothing to say */
    char *why;  /* the one reason of all of these; NULL: they differ */
};

/* Of several nodes that measured the same transport, the slowest one is shown. What cannot exist on
 * these nodes (GPU transports where there is no GPU) is left out. Returns 0 or -ENOMEM; free with
 * shk_runs_table_free(). */
int shk_runs_table(struct shk_runs_table *out, const struct shk_model *model) SHK_MUST_CHECK;
void shk_runs_table_free(struct shk_runs_table *out);

#endif
