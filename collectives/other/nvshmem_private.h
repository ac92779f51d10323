/* Inside of the nvshmem transport: one PE, and what it leaves for the facts. */
#ifndef SHK_COLLECTIVES_NVSHMEM_PRIVATE_H
#define SHK_COLLECTIVES_NVSHMEM_PRIVATE_H

#include "collectives/other/nvshmem.h"
#include "collectives/ranks/crew.h"
#include "collectives/ranks/job.h"
#include "core/run/isolate.h"
#include <jansson.h>

#define NVSHMEM_ROWS 3

struct nvshmem_row {
    uint64_t bytes;
    double time_us; /* of a put and a quiet to the next PE, all PEs at once */
    uint64_t wrong; /* bytes from the PE before that did not arrive */
    uint32_t done;
};

/* In the job's result space. */
struct nvshmem_result {
    struct nvshmem_row row[NVSHMEM_ROWS];
};

/* In a child of its own (core/run/isolate.h): {library, version, gpus}. arg: the tweaks. Fails
 * where it does not apply: no library, no driver, no GPU. */
int nvshmem_look(void *arg, json_t **result_p, struct shk_error *err);

/* One PE of the job. arg: the tweaks. */
int nvshmem_pe(struct shk_job *job, void *arg, struct shk_error *err);

/* Facts of PEs that were run, and of a look that found no reason to. */
int nvshmem_facts(struct shk_facts *facts, const json_t *look, const struct shk_job *job,
                  const struct shk_crew_result *result, struct shk_error *err);
int nvshmem_facts_not_run(struct shk_facts *facts, const struct shk_isolate_result *look,
                          const char *why, struct shk_error *err);

#endif
