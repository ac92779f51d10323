/* How many nodes a report is about and how they are: a folded name counts as the nodes that it
 * stands for, so that the numbers do not depend on how the facts were put together. */
#ifndef SHK_REPORTS_NODECOUNT_H
#define SHK_REPORTS_NODECOUNT_H

#include "reports/model/model.h"

struct shk_node_counts {
    size_t total;
    size_t by[SHK_VERDICT_COUNT]; /* by the worst row that names the node: SHK_FAIL, SHK_WARN,
                                     SHK_UNKNOWN (of a required row), else SHK_PASS */
    char *failing, *warning;      /* folded names; NULL: none */
    bool of_job;                  /* a FAIL names no node though there are several */
};

/* Returns 0 or -ENOMEM. Free with shk_node_counts_free(). */
int shk_node_counts(struct shk_node_counts *counts, const struct shk_model *model) SHK_MUST_CHECK;
void shk_node_counts_free(struct shk_node_counts *counts);

/* Is it a cause of its own? One that another one explains is so only when it fails. */
bool shk_cause_is_open(const struct shk_diagnosis_row *row);

/* Adds the titles of the causes that this one explains and that are none of their own, with "; "
 * between. Returns how many there are. */
size_t shk_cause_below(const struct shk_model *model, size_t number, struct shk_strbuf *out);

/* The nodes that the rows of a cause name, `number` from 1: those of its verdict. *names_p is
 * folded, NULL when there is only one node or no row names any; free it. Returns 0 or -ENOMEM. */
int shk_cause_nodes(const struct shk_model *model, size_t number, char **names_p,
                    size_t *count_p) SHK_MUST_CHECK;

/* "6 of 1000 nodes fail, 9 more warn", of several nodes; NULL: out of memory. */
char *shk_node_counts_say(const struct shk_node_counts *counts);

/* Names and folded names in one: as the next, with *names_p NULL when there are none. */
int shk_names_folded(const char *const *lists, size_t count, char **names_p,
                     size_t *count_p) SHK_MUST_CHECK;

/* The nodes that a row names, folded and counted; free *names_p. Returns 0 or -ENOMEM. */
int shk_row_nodes_folded(const struct shk_finding *row, char **names_p,
                         size_t *count_p) SHK_MUST_CHECK;

#endif
