/* Inside of the transport shm. */
#ifndef SHK_COLLECTIVES_SHM_PRIVATE_H
#define SHK_COLLECTIVES_SHM_PRIVATE_H

#include "collectives/other/shm.h"
#include "collectives/ranks/crew.h"

/* collective.shm.* of what the crew and its ranks left. */
int shm_facts(struct shk_facts *facts, const struct shk_job *job,
              const struct shk_crew_result *result, struct shk_error *err) SHK_MUST_CHECK;
/* … when no rank was started. */
int shm_facts_not_run(struct shk_facts *facts, unsigned ranks, const char *why,
                      struct shk_error *err) SHK_MUST_CHECK;

#endif
