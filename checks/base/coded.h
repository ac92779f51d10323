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

/* "docker" …; NULL when not in a container or not known. */
const char *shk_container(const struct shk_facts *facts);

#endif
