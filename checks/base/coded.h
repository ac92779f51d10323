/* The coded checks, one descriptor each; checks/base/list.def has their order. */
#ifndef SHK_CHECKS_CODED_H
#define SHK_CHECKS_CODED_H

#include "checks/base/row.h"
#include <stdlib.h>

#define CHECK(name) extern const struct shk_check shk_check_##name;
#include "checks/base/list.def"
#undef CHECK

/* GPUs of any maker on the node: -1 unknown. */
long long shk_gpu_count(const struct shk_facts *facts);

/* Diagnosis of a collective.<t>.cause; NULL: none. */
const char *shk_collective_cause_key(const char *cause);

/* Diagnosis and scope of a row about transport `t` (of that length) that did not end well, `rank`:
 * to blame, -1 none. */
void shk_collective_why(struct shk_row *row, const struct shk_facts *facts, const char *t, int len,
                        long long rank);

/* "docker" …; NULL when not in a container or not known. */
const char *shk_container(const struct shk_facts *facts);

#endif
