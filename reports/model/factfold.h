/* One fact over many nodes: which values it has, and where. */
#ifndef SHK_REPORTS_FACTFOLD_H
#define SHK_REPORTS_FACTFOLD_H

#include "core/text/strbuf.h"
#include "reports/model/model.h"

/* A value and the nodes that have it. */
struct shk_fold {
    char *value; /* text of the value, JSON for arrays and objects */
    char *nodes; /* folded names */
    size_t count;
};

/* Distinct values of a present fact, the most common one first; *count_p is 0 when no node has
 * it. Free with shk_factfold_free(). Returns 0 or -ENOMEM. */
int shk_factfold(const struct shk_model *model, const char *key, struct shk_fold **folds_p,
                 size_t *count_p) SHK_MUST_CHECK;
void shk_factfold_free(struct shk_fold *folds, size_t count);

/* Table fact, value, nodes: host, library versions, launcher, and the environment variables that
 * were recorded. NULL: out of memory. Destroy it. */
struct shk_table *shk_environment_table(const struct shk_model *model);

#endif
