/* Why a collective did not end well, from the codes that it left. */
#ifndef SHK_CHECKS_COLLECTIVE_WHY_H
#define SHK_CHECKS_COLLECTIVE_WHY_H

#include "checks/base/row.h"

/* Diagnosis of a collective.<t>.cause; NULL: none. */
const char *shk_collective_cause_key(const char *cause);

/* Diagnosis and scope of a row about transport `t` (of that length) that did not end well, `rank`:
 * to blame, -1 none. */
void shk_collective_why(struct shk_row *row, const struct shk_facts *facts, const char *t, int len,
                        long long rank);

#endif
