/* What /proc says of a process that holds memory of a GPU. */
#ifndef SHK_PROBES_NVML_PROCESSES_H
#define SHK_PROBES_NVML_PROCESSES_H

#include "core/host/host.h"
#include <jansson.h>

/* {pid, memory: B, state: `running`, `blocked` (in the kernel), `zombie`, `gone` (no such process)
 * or null (its numbers are of another namespace), name, uid, started_s: after boot, job: of Slurm}.
 * NULL: out of memory. */
json_t *shk_nvml_process(const struct shk_host *host, unsigned pid, unsigned long long bytes);

#endif
